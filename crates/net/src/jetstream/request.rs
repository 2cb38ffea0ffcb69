//! Requests to a Jetstream.

use serde_json::json;

use super::wanted::Filter;
use crate::cursors;
use crate::http::Url;

/// Which version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `/subscribe`.
    V1,
    /// `network.bsky.jetstream.subscribeEvents`.
    V2,
}

/// What the stream of a host is called: cursors are kept under this name.
pub fn stream_name(host: &Url, version: Version) -> String {
    cursors::stream_name(&endpoint(host, version))
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) url: Url,
    /// What has to be said when the connection is there: then, and only then, the host begins.
    pub(super) hello: Option<String>,
}

/// What a host is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'q> {
    pub(super) version: Version,
    pub(super) wanted: &'q Filter,
    pub(super) cursor: Option<u64>,
    /// The number of the dictionary with which it is to compress.
    pub(super) dictionary: Option<u32>,
}

impl Question<'_> {
    /// The request that asks it. Choices that make a URL too long for what lies on its way are made
    /// otherwise: version 1 is told of them later, of version 2 the answers are chosen from here.
    pub(super) fn to_request(self, host: &Url) -> Request {
        let url = self.url(host, &self.choices(true, true));
        if url.as_str().len() <= MAX_URL_BYTES {
            return Request { url, hello: None };
        }
        if self.version == Version::V1 {
            let hello = [("requireHello", "true".to_owned())];
            return Request { url: self.url(host, &hello), hello: Some(self.update()) };
        }
        let shorter = [self.choices(false, true), self.choices(false, false)];
        let mut urls = shorter.iter().map(|choices| self.url(host, choices));
        let url = urls.find(|url| url.as_str().len() <= MAX_URL_BYTES);
        Request { url: url.unwrap_or_else(|| self.url(host, &[])), hello: None }
    }

    /// The message by which a reader of version 1 changes what it wants.
    pub(super) fn update(self) -> String {
        let payload = json!({
            "wantedCollections": self.wanted.collections,
            "wantedDids": self.wanted.dids.iter().map(|did| did.as_str()).collect::<Vec<_>>(),
            "maxMessageSizeBytes": self.wanted.max_message_bytes.unwrap_or(0),
        });
        json!({ "type": "options_update", "payload": payload }).to_string()
    }

    fn url(self, host: &Url, choices: &[(&str, String)]) -> Url {
        let mut url = endpoint(host, self.version);
        let mut pairs = url.query_pairs_mut();
        for (name, value) in choices {
            pairs.append_pair(name, value);
        }
        if let Some(cursor) = self.cursor {
            pairs.append_pair("cursor", &cursor.to_string());
        }
        match (self.version, self.dictionary) {
            (Version::V1, Some(_)) => drop(pairs.append_pair("compress", "true")),
            (Version::V2, Some(id)) => drop(pairs.append_pair("zstdDictionary", &id.to_string())),
            (_, None) => {}
        }
        drop(pairs);
        if url.query() == Some("") {
            url.set_query(None);
        }
        url
    }

    fn choices(&self, with_dids: bool, with_collections: bool) -> Vec<(&'static str, String)> {
        let wanted = self.wanted;
        let (dids, collections) = match self.version {
            Version::V1 => ("wantedDids", "wantedCollections"),
            Version::V2 => ("dids", "collections"),
        };
        let mut choices = Vec::new();
        if self.version == Version::V2 {
            choices.extend(wanted.kinds.iter().map(|kind| ("kinds", kind.name().to_owned())));
        }
        if with_collections {
            choices.extend(wanted.collections.iter().map(|name| (collections, name.clone())));
        }
        if with_dids {
            choices.extend(wanted.dids.iter().map(|did| (dids, did.as_str().to_owned())));
        }
        let most = wanted.max_message_bytes.filter(|most| *most > 0);
        choices.extend(most.map(|most| ("maxMessageSizeBytes", most.to_string())));
        choices
    }
}

/// The URL of the method at a host that is given without a path.
fn endpoint(host: &Url, version: Version) -> Url {
    let mut url = host.clone();
    if url.path() == "/" {
        url.set_path(match version {
            Version::V1 => "/subscribe",
            Version::V2 => "/xrpc/network.bsky.jetstream.subscribeEvents",
        });
    }
    url
}

/// What servers and proxies in use take.
const MAX_URL_BYTES: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::super::wanted::EventKind;
    use super::*;

    fn wanted(dids: usize) -> Filter {
        let did = |at| format!("did:web:account-{at}.example.com").parse().unwrap();
        Filter {
            kinds: vec![EventKind::Commit, EventKind::Sync],
            collections: vec!["app.bsky.feed.*".to_owned()],
            dids: (0..dids).map(did).collect(),
            max_message_bytes: Some(5_000),
        }
    }

    fn request(version: Version, wanted: &Filter) -> Request {
        let question = Question { version, wanted, cursor: Some(9), dictionary: Some(3) };
        question.to_request(&"wss://jetstream.test".parse().unwrap())
    }

    #[test]
    fn both_versions_are_asked_by_their_own_names() {
        let v1 = "wss://jetstream.test/subscribe?wantedCollections=app.bsky.feed.*&\
                  wantedDids=did%3Aweb%3Aaccount-0.example.com&maxMessageSizeBytes=5000&cursor=9&compress=true";
        assert_eq!(request(Version::V1, &wanted(1)).url.as_str(), v1);
        let v2 = "wss://jetstream.test/xrpc/network.bsky.jetstream.subscribeEvents?kinds=commit&kinds=sync&\
                  collections=app.bsky.feed.*&dids=did%3Aweb%3Aaccount-0.example.com&\
                  maxMessageSizeBytes=5000&cursor=9&zstdDictionary=3";
        assert_eq!(request(Version::V2, &wanted(1)).url.as_str(), v2);
        let wanted = Filter::default();
        let question =
            Question { version: Version::V1, wanted: &wanted, cursor: None, dictionary: None };
        let plain = question.to_request(&"wss://jetstream.test".parse().unwrap());
        assert_eq!(plain.url.as_str(), "wss://jetstream.test/subscribe");
    }

    #[test]
    fn ten_thousand_accounts_are_told_of_later_or_chosen_here() {
        let wanted = wanted(10_000);
        let Request { url, hello } = request(Version::V1, &wanted);
        assert_eq!(url.query(), Some("requireHello=true&cursor=9&compress=true"));
        let hello: serde_json::Value = serde_json::from_str(&hello.unwrap()).unwrap();
        assert_eq!(hello["type"], "options_update");
        assert_eq!(hello["payload"]["wantedDids"].as_array().unwrap().len(), 10_000);
        let Request { url, hello } = request(Version::V2, &wanted);
        assert!(url.as_str().contains("collections=") && !url.as_str().contains("dids="), "{url}");
        assert_eq!(hello, None);
    }
}
