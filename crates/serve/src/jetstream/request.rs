//! The parameters of a request for a Jetstream, and the messages of a client of version 1.

use net::jetstream::EventKind;
use serde::Deserialize;

use super::dictionary::DICTIONARY_ID;
use super::filter::{Filter, Prefixes};
use crate::event::Wire;
use crate::seq::{arrival_of, is_time};

/// The request of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamRequest {
    pub(crate) filter: Filter,
    pub(crate) cursor: Option<Cursor>,
    pub(crate) is_compressed: bool,
    /// Whether nothing is sent until the client has sent its options.
    pub(crate) requires_hello: bool,
}

/// Where a client of a Jetstream begins: with this event, or with the first one after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cursor {
    /// The arrival that a sequence number names.
    Number(i64),
    /// A time in microseconds since 1970.
    Time(i64),
}

impl Cursor {
    /// The first arrival that the client wants.
    pub(crate) fn arrival(self) -> i64 {
        match self {
            Self::Number(arrival) | Self::Time(arrival) => arrival,
        }
    }
}

/// Why a request is refused: the name of the error, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RefusedRequest {
    pub(crate) name: &'static str,
    pub(crate) message: String,
}

impl StreamRequest {
    /// Reads the parameters of a query, and whether a header asks for compression.
    ///
    /// # Errors
    /// If a parameter breaks a rule of the protocol.
    pub(crate) fn parse(wire: Wire, query: &str, wants_zstd: bool) -> Result<Self, RefusedRequest> {
        let pairs = || form_urlencoded::parse(query.as_bytes());
        match wire {
            Wire::V1 => parse_v1(pairs(), wants_zstd),
            Wire::V2 if wants_zstd => Err(invalid(OTHER_COMPRESSION)),
            Wire::V2 => parse_v2(pairs()),
        }
    }
}

fn parse_v1(
    pairs: form_urlencoded::Parse<'_>,
    wants_zstd: bool,
) -> Result<StreamRequest, RefusedRequest> {
    let mut request = StreamRequest { is_compressed: wants_zstd, ..StreamRequest::default() };
    let filter = &mut request.filter;
    for (key, value) in pairs {
        match &*key {
            "wantedCollections" => filter.add_collection(&value, Prefixes::Any).map_err(invalid)?,
            "wantedDids" => filter.add_did(&value).map_err(invalid)?,
            // Anything else than a number is no limit.
            "maxMessageSizeBytes" => filter.max_message_bytes = value.parse().unwrap_or_default(),
            "compress" => request.is_compressed |= value == "true",
            "requireHello" => request.requires_hello = value == "true",
            "cursor" => request.cursor = cursor(&value)?,
            _ => {}
        }
    }
    Ok(request)
}

fn parse_v2(pairs: form_urlencoded::Parse<'_>) -> Result<StreamRequest, RefusedRequest> {
    let mut request = StreamRequest::default();
    let filter = &mut request.filter;
    for (key, value) in pairs {
        match &*key {
            "kinds" => add_kind(filter, &value)?,
            "collections" => filter.add_collection(&value, Prefixes::Names).map_err(invalid)?,
            "dids" => filter.add_did(&value).map_err(invalid)?,
            "maxMessageSizeBytes" => {
                let number = value.parse();
                filter.max_message_bytes = number
                    .map_err(|_| invalid("maxMessageSizeBytes is a number from 0 to 4294967295"))?;
            }
            "zstdDictionary" => {
                check_dictionary(&value)?;
                request.is_compressed = true;
            }
            "cursor" => request.cursor = cursor(&value)?,
            "wantedCollections" | "wantedDids" | "requireHello" => {
                return Err(invalid(format!("{key} is a parameter of /subscribe")));
            }
            "compress" => return Err(invalid(OTHER_COMPRESSION)),
            _ => {}
        }
    }
    if filter.excludes_its_collections() {
        return Err(invalid("collections restrict commits, which kinds excludes"));
    }
    Ok(request)
}

fn add_kind(filter: &mut Filter, name: &str) -> Result<(), RefusedRequest> {
    let all = [EventKind::Commit, EventKind::Identity, EventKind::Account, EventKind::Sync];
    let kind = all.into_iter().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| invalid("kinds are commit, identity, account and sync"))?;
    if !filter.kinds.contains(&kind) {
        filter.kinds.push(kind);
    }
    Ok(())
}

fn check_dictionary(id: &str) -> Result<(), RefusedRequest> {
    match id.parse::<u32>() {
        Ok(DICTIONARY_ID) => Ok(()),
        Ok(1..) => Err(RefusedRequest {
            name: "UnknownZstdDictionary",
            message: format!("the current dictionary is {DICTIONARY_ID}"),
        }),
        _ => Err(invalid("zstdDictionary is the id of a dictionary")),
    }
}

/// A cursor; an empty one is none.
fn cursor(text: &str) -> Result<Option<Cursor>, RefusedRequest> {
    if text.is_empty() {
        return Ok(None);
    }
    let number: i64 = text.parse().map_err(|_| invalid("cursor is an integer"))?;
    match number {
        ..0 => Err(invalid("cursor is not negative")),
        _ if is_time(number) => Ok(Some(Cursor::Time(number))),
        0 => Ok(Some(Cursor::Number(0))),
        _ => Ok(Some(Cursor::Number(arrival_of(number)))),
    }
}

fn invalid(message: impl Into<String>) -> RefusedRequest {
    RefusedRequest { name: "InvalidRequest", message: message.into() }
}

/// The options that a client of version 1 sends, which replace those before. `None` for another message.
///
/// # Errors
/// If the message is not JSON, or an option breaks a rule of the protocol.
pub(crate) fn options_update(text: &str) -> Result<Option<Filter>, &'static str> {
    let message: ClientMessage<'_> =
        serde_json::from_str(text).map_err(|_| "a message that is not of the protocol")?;
    if message.kind != "options_update" {
        return Ok(None);
    }
    let payload = message.payload.ok_or("options without a payload")?;
    let options: ClientOptions =
        serde_json::from_str(payload.get()).map_err(|_| "options that are not of the protocol")?;
    let mut filter = Filter::default();
    let mut collections = options.wanted_collections.iter();
    let added = collections.try_for_each(|name| filter.add_collection(name, Prefixes::Any));
    added.map_err(|_| "invalid wantedCollections")?;
    let added = options.wanted_dids.iter().try_for_each(|did| filter.add_did(did));
    added.map_err(|_| "invalid wantedDids")?;
    filter.max_message_bytes = u32::try_from(options.max_message_size_bytes).unwrap_or_default();
    Ok(Some(filter))
}

#[derive(Deserialize)]
struct ClientMessage<'m> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    payload: Option<&'m serde_json::value::RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct ClientOptions {
    #[serde(deserialize_with = "null_is_empty")]
    wanted_collections: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    wanted_dids: Vec<String>,
    max_message_size_bytes: i64,
}

/// Clients send `null` for no restriction.
fn null_is_empty<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

const OTHER_COMPRESSION: &str =
    "compress and Socket-Encoding are of /subscribe: name a dictionary by zstdDictionary";

/// Maximum size of a message of a client of version 1 in bytes.
pub(crate) const MAX_CLIENT_MESSAGE_BYTES: usize = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(wire: Wire, query: &str) -> &'static str {
        StreamRequest::parse(wire, query, false).unwrap_err().name
    }

    #[test]
    fn parameters_of_version_1_are_read_as_the_reference_reads_them() {
        let query = "wantedCollections=app.bsky.feed.*&wantedCollections=app.bsky.graph.follow&\
                     wantedDids=did%3Aweb%3Aa.test&cursor=1782864000000000&compress=true&\
                     requireHello=true&maxMessageSizeBytes=900&unknown=1";
        let request = StreamRequest::parse(Wire::V1, query, false).unwrap();
        assert!(request.is_compressed && request.requires_hello);
        assert_eq!(request.cursor, Some(Cursor::Time(1_782_864_000_000_000)));
        assert_eq!(request.filter.max_message_bytes, 900);
        for query in
            ["maxMessageSizeBytes=-1", "maxMessageSizeBytes=x", "compress=1&requireHello=1"]
        {
            let request = StreamRequest::parse(Wire::V1, query, false).unwrap();
            assert_eq!(request, StreamRequest::default(), "{query}");
        }
        for query in ["cursor=x", "cursor=-1", "wantedCollections=post", "wantedDids=alice"] {
            assert_eq!(refusal(Wire::V1, query), "InvalidRequest", "{query}");
        }
        assert!(StreamRequest::parse(Wire::V1, "", true).unwrap().is_compressed);
    }

    #[test]
    fn parameters_of_version_2_are_strict() {
        let query = format!(
            "kinds=commit&kinds=sync&collections=app.bsky.*&cursor=5&zstdDictionary={DICTIONARY_ID}"
        );
        let request = StreamRequest::parse(Wire::V2, &query, false).unwrap();
        assert_eq!(request.filter.kinds, [EventKind::Commit, EventKind::Sync]);
        assert_eq!(request.cursor, Some(Cursor::Number(arrival_of(5))));
        assert!(request.is_compressed);
        for query in [
            "kinds=post",
            "kinds=identity&collections=app.bsky.feed.post",
            "collections=post",
            "collections=a b.*",
            "dids=alice",
            "maxMessageSizeBytes=-1",
            "maxMessageSizeBytes=4294967296",
            "wantedCollections=app.bsky.feed.post",
            "wantedDids=did:web:a.test",
            "requireHello=true",
            "compress=true",
            "zstdDictionary=0",
            "zstdDictionary=x",
            "cursor=1.5",
        ] {
            assert_eq!(refusal(Wire::V2, query), "InvalidRequest", "{query}");
        }
        assert_eq!(refusal(Wire::V2, "zstdDictionary=7"), "UnknownZstdDictionary");
        assert!(StreamRequest::parse(Wire::V2, "", true).is_err());
    }

    #[test]
    fn options_of_a_client_replace_all_before_and_a_wrong_one_is_an_error() {
        let text = r#"{"type":"options_update","payload":{"wantedCollections":["app.bsky.feed.post"],"wantedDids":null,"maxMessageSizeBytes":7}}"#;
        let filter = options_update(text).unwrap().unwrap();
        assert!(filter.has_collection("app.bsky.feed.post") && !filter.has_collection("a.b.c"));
        assert_eq!(filter.max_message_bytes, 7);
        let empty = options_update(r#"{"type":"options_update","payload":{}}"#).unwrap().unwrap();
        assert_eq!(empty, Filter::default());
        assert_eq!(options_update(r#"{"type":"ping"}"#), Ok(None));
        for wrong in [
            "",
            "{}",
            r#"{"type":"options_update"}"#,
            r#"{"type":"options_update","payload":{"wantedDids":["alice"]}}"#,
            r#"{"type":"options_update","payload":{"wantedCollections":["post"]}}"#,
            r#"{"type":"options_update","payload":{"wantedCollections":"post"}}"#,
        ] {
            assert!(options_update(wrong).is_err(), "{wrong}");
        }
    }
}
