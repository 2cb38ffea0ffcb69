//! Connection attempts: the cursor and the URL of a request, and the dictionary before it.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::dictionary::{self, Dictionary};
use super::event::Filter;
use super::options::{Compression, Options, Version};
use crate::cursors;
use crate::firehose::{StartFrom, Upstream};
use crate::hosts::HostId;
use crate::http::Url;
use crate::websocket::{
    DialError, Dialer, JETSTREAM_V2, Socket, SocketOptions, StreamKind, with_other_stream,
};

/// The name of the stream of a host, under which its cursor is stored.
pub fn stream_name(host: &Url, version: Version) -> String {
    cursors::stream_name(&endpoint(host, version))
}

/// A connection attempt.
pub(super) struct ConnectAttempt {
    pub(super) dialer: Dialer,
    pub(super) url: Url,
    pub(super) cursor: Option<u64>,
    pub(super) filter: Filter,
    /// The revision of the filter.
    pub(super) filter_revision: u64,
    pub(super) options: Options,
    /// Set when the attempt succeeds.
    pub(super) setup: Arc<Mutex<ConnectionSetup>>,
}

/// The state of a new connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionSetup {
    pub(super) dictionary: Option<Dictionary>,
    /// A filter update to send.
    pub(super) update: Option<String>,
    /// The revision of the filter in the request.
    pub(super) filter_revision: u64,
}

impl ConnectAttempt {
    /// Fetches the dictionary and opens the WebSocket. If there is none, the error says which other stream the host has.
    pub(super) async fn connect(self) -> Result<Socket, DialError> {
        let (dialer, host) = (self.dialer.clone(), self.url.clone());
        match self.open().await {
            Err(error) => {
                Err(with_other_stream(error, &dialer, &host, StreamKind::Jetstream).await)
            }
            socket => socket,
        }
    }

    async fn open(self) -> Result<Socket, DialError> {
        let version = self.options.version;
        let dictionary = self.dictionary().await?;
        let id = dictionary.as_ref().map(|dictionary| dictionary.id);
        let (filter, cursor) = (&self.filter, self.cursor);
        let parameters = Parameters { version, filter, cursor, dictionary: id };
        let Request { url, update } = parameters.to_request(&self.url);
        let protocol = (version == Version::V2).then_some(JETSTREAM_V2);
        let socket = SocketOptions { protocol, ..self.options.socket };
        let socket = self.dialer.dial(&url, &socket).await?;
        let setup = ConnectionSetup { dictionary, update, filter_revision: self.filter_revision };
        *self.setup.lock().unwrap_or_else(PoisonError::into_inner) = setup;
        Ok(socket)
    }

    async fn dictionary(&self) -> Result<Option<Dictionary>, DialError> {
        match &self.options.compression {
            Compression::None => Ok(None),
            Compression::Served(id) => {
                dictionary::fetch(self.dialer.client(), &self.url, *id).await.map(Some)
            }
            // `Client::new` has checked that it is valid.
            Compression::Given(bytes) => Ok(Dictionary::new(bytes)),
        }
    }
}

/// A host and its position in the stream.
#[derive(Debug)]
pub(super) struct HostPosition {
    pub(super) url: Url,
    /// The cursor of its latest event, or the stored cursor.
    pub(super) cursor: Option<u64>,
    /// The time of that event, in microseconds since 1970.
    pub(super) micros: Option<u64>,
    pub(super) start: StartFrom,
    /// The cursor in the latest request.
    pub(super) requested: Option<u64>,
}

impl HostPosition {
    pub(super) fn new(origin: &Upstream, start: StartFrom) -> Self {
        let micros = origin.cursor.filter(|cursor| *cursor >= MIN_TIME_CURSOR);
        Self { url: origin.url.clone(), cursor: origin.cursor, micros, start, requested: None }
    }

    /// The cursor of the next request to this host, whose id is `host`.
    ///
    /// Sequence numbers belong to one host, so after a change of hosts the cursor is the time of the latest
    /// event minus [`Options::rewind`]. It is the time of an event, not of an attempt: failed attempts do not move it.
    /// Several events of version 1 can have the time of the last one: they are asked for again, whether the host begins with
    /// them or after them.
    pub(super) fn next_cursor(
        &self,
        latest: Option<(HostId, u64)>,
        options: &Options,
        host: HostId,
    ) -> Option<u64> {
        let rewind = u64::try_from(options.rewind.as_micros()).unwrap_or(u64::MAX);
        let bound = latest.map(|(_, micros)| micros.saturating_sub(rewind).max(MIN_TIME_CURSOR));
        let is_other_host = latest.is_some_and(|(latest, _)| latest != host);
        match (self.cursor, bound) {
            (Some(_), Some(bound))
                if is_other_host && self.micros.is_none_or(|micros| micros < bound) =>
            {
                Some(bound)
            }
            (Some(own), _) if options.version == Version::V1 && own > MIN_TIME_CURSOR => {
                Some(own - 1)
            }
            (Some(own), _) => Some(own),
            (None, Some(bound)) => Some(bound),
            (None, None) => (self.start == StartFrom::Oldest).then_some(MIN_TIME_CURSOR),
        }
    }
}

/// The request of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) url: Url,
    /// A filter update to send once connected; the host waits for it.
    pub(super) update: Option<String>,
}

/// The parameters of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters<'p> {
    pub(super) version: Version,
    pub(super) filter: &'p Filter,
    pub(super) cursor: Option<u64>,
    /// The id of the dictionary for compression.
    pub(super) dictionary: Option<u32>,
}

impl Parameters<'_> {
    /// The request. A filter too long for a URL is sent as an update in version 1, and shortened in version 2,
    /// where the client drops the other events.
    pub(super) fn to_request(self, host: &Url) -> Request {
        let url = self.url(host, &self.filter_pairs(true, true));
        if url.as_str().len() <= MAX_URL_BYTES {
            return Request { url, update: None };
        }
        if self.version == Version::V1 {
            let require_hello = [("requireHello", "true".to_owned())];
            return Request { url: self.url(host, &require_hello), update: Some(self.update()) };
        }
        let shorter = [self.filter_pairs(false, true), self.filter_pairs(false, false)];
        let mut urls = shorter.iter().map(|pairs| self.url(host, pairs));
        let url = urls.find(|url| url.as_str().len() <= MAX_URL_BYTES);
        Request { url: url.unwrap_or_else(|| self.url(host, &[])), update: None }
    }

    /// The message of version 1 that replaces the filter of a connection.
    pub(super) fn update(self) -> String {
        let payload = json!({
            "wantedCollections": self.filter.collections,
            "wantedDids": self.filter.dids.iter().map(|did| did.as_str()).collect::<Vec<_>>(),
            "maxMessageSizeBytes": self.filter.max_message_bytes.unwrap_or(0),
        });
        json!({ "type": "options_update", "payload": payload }).to_string()
    }

    fn url(self, host: &Url, filter_pairs: &[(&str, String)]) -> Url {
        let mut url = endpoint(host, self.version);
        let mut pairs = url.query_pairs_mut();
        for (name, value) in filter_pairs {
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

    fn filter_pairs(&self, with_dids: bool, with_collections: bool) -> Vec<(&'static str, String)> {
        let filter = self.filter;
        let (dids, collections) = match self.version {
            Version::V1 => ("wantedDids", "wantedCollections"),
            Version::V2 => ("dids", "collections"),
        };
        let mut pairs = Vec::new();
        if self.version == Version::V2 {
            pairs.extend(filter.kinds.iter().map(|kind| ("kinds", kind.name().to_owned())));
        }
        if with_collections {
            pairs.extend(filter.collections.iter().map(|name| (collections, name.clone())));
        }
        if with_dids {
            pairs.extend(filter.dids.iter().map(|did| (dids, did.as_str().to_owned())));
        }
        let max = filter.max_message_bytes.filter(|max| *max > 0);
        pairs.extend(max.map(|max| ("maxMessageSizeBytes", max.to_string())));
        pairs
    }
}

/// The URL of the method at a host; a path given with the host is kept.
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

/// The smallest cursor that is a time, in microseconds since 1970; smaller ones are sequence numbers of version 2.
pub const MIN_TIME_CURSOR: u64 = 1_000_000_000_000_000;

/// Maximum length of a URL in bytes, which servers and proxies in use accept.
const MAX_URL_BYTES: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::super::event::EventKind;
    use super::*;

    fn filter(dids: usize) -> Filter {
        let did = |at| format!("did:web:account-{at}.example.com").parse().unwrap();
        Filter {
            kinds: vec![EventKind::Commit, EventKind::Sync],
            collections: vec!["app.bsky.feed.*".to_owned()],
            dids: (0..dids).map(did).collect(),
            max_message_bytes: Some(5_000),
        }
    }

    fn request(version: Version, filter: &Filter) -> Request {
        let parameters = Parameters { version, filter, cursor: Some(9), dictionary: Some(3) };
        parameters.to_request(&"wss://jetstream.test".parse().unwrap())
    }

    #[test]
    fn each_version_has_its_own_names_of_parameters() {
        let v1 = "wss://jetstream.test/subscribe?wantedCollections=app.bsky.feed.*&\
                  wantedDids=did%3Aweb%3Aaccount-0.example.com&maxMessageSizeBytes=5000&cursor=9&compress=true";
        assert_eq!(request(Version::V1, &filter(1)).url.as_str(), v1);
        let v2 = "wss://jetstream.test/xrpc/network.bsky.jetstream.subscribeEvents?kinds=commit&kinds=sync&\
                  collections=app.bsky.feed.*&dids=did%3Aweb%3Aaccount-0.example.com&\
                  maxMessageSizeBytes=5000&cursor=9&zstdDictionary=3";
        assert_eq!(request(Version::V2, &filter(1)).url.as_str(), v2);
        let filter = Filter::default();
        let parameters =
            Parameters { version: Version::V1, filter: &filter, cursor: None, dictionary: None };
        let plain = parameters.to_request(&"wss://jetstream.test".parse().unwrap());
        assert_eq!(plain.url.as_str(), "wss://jetstream.test/subscribe");
    }

    #[test]
    fn a_filter_of_10_000_accounts_is_an_update_in_version_1_and_is_shortened_in_version_2() {
        let filter = filter(10_000);
        let Request { url, update } = request(Version::V1, &filter);
        assert_eq!(url.query(), Some("requireHello=true&cursor=9&compress=true"));
        let update: serde_json::Value = serde_json::from_str(&update.unwrap()).unwrap();
        assert_eq!(update["type"], "options_update");
        assert_eq!(update["payload"]["wantedDids"].as_array().unwrap().len(), 10_000);
        let Request { url, update } = request(Version::V2, &filter);
        assert!(url.as_str().contains("collections=") && !url.as_str().contains("dids="), "{url}");
        assert_eq!(update, None);
    }
}
