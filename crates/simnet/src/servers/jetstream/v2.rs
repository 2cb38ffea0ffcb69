//! Version 2: `network.bsky.jetstream.subscribeEvents`. All options come with the request.

use std::sync::Arc;

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::super::event_log::LogEntry;
use super::super::http::{QueryParams, XrpcError, error};
use super::super::network::NetworkState;
use super::super::spec::Server;
use super::super::streamer::{Encoding, StreamSetup};
use super::messages::{
    EventFilter, MAX_COLLECTIONS, MAX_DIDS, MessageCompression, SelectDictionary, StreamStart,
    V2_NSID, dictionaries, numbered, raw_message, unknown_dictionary,
};

/// The stream of a request.
pub(super) fn stream(
    network: &Arc<NetworkState>,
    server: Server,
    query: &QueryParams,
) -> Result<StreamSetup, XrpcError> {
    let unknown = query.names().find(|name| !PARAMETERS.contains(name));
    if let Some(name) = unknown {
        return Err(invalid(&format!("unknown parameter: {name}")));
    }
    let filter = filter(query)?;
    let compression = MessageCompression::new(network, dictionary(network, query)?);
    let cursor = query.get("cursor").map(str::parse::<i64>).transpose();
    let start = StreamStart::new(cursor.map_err(|_| invalid("invalid cursor"))?);
    let log = network.event_log(server).expect("a Jetstream has a log");
    let encoding = Version2 { filter, compression, start };
    let floor = log.first_seq();
    let (mut prelude, mut position) = (Vec::new(), Some(start.position(log)));
    match start {
        StreamStart::Seq(seq) if seq > 0 && seq < floor => {
            return Err(error(400, "CursorTooOld", &format!("the oldest seq is {floor}")));
        }
        StreamStart::Seq(seq) if seq > log.last_seq() + 1 => {
            prelude.push(encoding.error_message("FutureCursor", "Cursor in the future."));
            position = None;
        }
        StreamStart::Micros(micros) if log.has_dropped_since(micros) => {
            prelude.push(encoding.outdated())
        }
        _ => {}
    }
    Ok(StreamSetup {
        has_cursor: false,
        network: network.clone(),
        server,
        prelude,
        reader: position.map(|position| log.register_reader(position)),
        encoding: Box::new(encoding),
    })
}

fn filter(query: &QueryParams) -> Result<EventFilter, XrpcError> {
    let kind = |name: &str| KINDS.into_iter().find(|kind| *kind == name);
    let kinds: Option<Vec<&'static str>> = query.all("kinds").map(kind).collect();
    let kinds = kinds.filter(|kinds| kinds.len() <= KINDS.len());
    let kinds = kinds.ok_or_else(|| invalid("kinds are commit, identity, account and sync"))?;
    let collections: Vec<String> = query.all("collections").map(str::to_owned).collect();
    if collections.len() > MAX_COLLECTIONS {
        return Err(invalid("too many collections"));
    }
    if !collections.is_empty() && !kinds.is_empty() && !kinds.contains(&"commit") {
        return Err(invalid("collections without commits"));
    }
    let dids: std::collections::HashSet<String> = query.all("dids").map(str::to_owned).collect();
    if dids.len() > MAX_DIDS {
        return Err(invalid("too many dids"));
    }
    let max_bytes = query.get("maxMessageSizeBytes").map(str::parse::<u32>).transpose();
    let max_bytes = max_bytes.map_err(|_| invalid("invalid maxMessageSizeBytes"))?;
    let max_bytes = max_bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as usize);
    Ok(EventFilter { kinds, collections, dids, max_bytes })
}

fn dictionary(
    network: &NetworkState,
    query: &QueryParams,
) -> Result<Option<SelectDictionary>, XrpcError> {
    let Some(requested) = query.get("zstdDictionary") else { return Ok(None) };
    let current = dictionaries(network).v2.id.to_string();
    if requested == current {
        Ok(Some(|dictionaries| &dictionaries.v2))
    } else {
        Err(unknown_dictionary(network))
    }
}

fn invalid(message: &str) -> XrpcError {
    error(400, "InvalidRequest", message)
}

/// The encoding of version 2.
struct Version2 {
    filter: EventFilter,
    compression: MessageCompression,
    start: StreamStart,
}

impl Version2 {
    fn outdated(&self) -> Message {
        let payload = json!({
            "$type": format!("{V2_NSID}#info"),
            "name": "OutdatedCursor",
            "message": "the cursor is older than what is kept",
        });
        self.compression.message(json!({ "$type": "message", "payload": payload }).to_string())
    }
}

impl Encoding for Version2 {
    fn encode(&mut self, entry: &LogEntry, out: &mut Vec<Message>) {
        for numbered in numbered(entry) {
            let is_accepted =
                self.start.includes(&numbered) && self.filter.accepts(numbered.did, numbered.event);
            let text = is_accepted.then(|| numbered.to_v2());
            let text = text.filter(|text| self.filter.accepts_len(text.len()));
            out.extend(text.map(|text| self.compression.message(text)));
        }
    }

    fn error_message(&self, name: &str, message: &str) -> Message {
        let text = json!({ "$type": "error", "error": name, "message": message });
        self.compression.message(text.to_string())
    }

    fn unknown_message(&self, is_operation: bool) -> Message {
        let kind = if is_operation { "weather" } else { "message" };
        let payload = json!({ "$type": format!("{V2_NSID}#weather"), "sky": "clear" });
        self.compression.message(json!({ "$type": kind, "payload": payload }).to_string())
    }

    fn raw_message(&self, bytes: Vec<u8>) -> Message {
        raw_message(bytes)
    }
}

const KINDS: [&str; 4] = ["commit", "identity", "account", "sync"];
const PARAMETERS: [&str; 6] =
    ["cursor", "kinds", "dids", "collections", "maxMessageSizeBytes", "zstdDictionary"];
