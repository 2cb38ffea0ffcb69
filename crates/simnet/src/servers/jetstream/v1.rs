//! Version 1: `/subscribe`. Options come with the request or in later messages.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::super::event_log::LogEntry;
use super::super::http::{HttpRequest, QueryParams, XrpcError, error};
use super::super::network::NetworkState;
use super::super::spec::Server;
use super::super::streamer::{Encoding, StreamSetup};
use super::messages::{
    EventFilter, MAX_COLLECTIONS, MAX_DIDS, MIN_CURSOR_MICROS, MessageCompression, StreamStart,
    numbered, raw_message,
};

/// The stream of a request.
pub(super) fn stream(
    network: &Arc<NetworkState>,
    server: Server,
    request: &HttpRequest,
) -> Result<StreamSetup, XrpcError> {
    let query = QueryParams::of(request);
    let options = Options {
        wanted_collections: query.all("wantedCollections").map(str::to_owned).collect(),
        wanted_dids: query.all("wantedDids").map(str::to_owned).collect(),
        max_message_size_bytes: query.get("maxMessageSizeBytes").and_then(|text| text.parse().ok()),
    };
    let filter = options.into_filter().map_err(|message| error(400, "InvalidRequest", message))?;
    let is_compressed = query.get("compress") == Some("true")
        || request.headers().get("socket-encoding").is_some_and(|value| value == "zstd");
    let compression =
        MessageCompression::new(network, is_compressed.then_some(|dictionaries| &dictionaries.v1));
    let cursor = query.get("cursor").map(str::parse::<i64>).transpose();
    let cursor = cursor.map_err(|_| error(400, "InvalidRequest", "invalid cursor"))?;
    let log = network.event_log(server).expect("a Jetstream has a log");
    // A cursor from the future is none.
    let is_ahead =
        |micros: u64| micros > network.now() && log.position_of_micros(micros) == log.count();
    let cursor = cursor.filter(|cursor| !u64::try_from(*cursor).is_ok_and(is_ahead));
    let encoding = Version1 {
        filter,
        compression,
        start: StreamStart::new(cursor),
        shares_times: network.spec.jetstream_shared_times,
        is_ready: query.get("requireHello") != Some("true"),
    };
    let reader = Some(log.register_reader(encoding.start.position(log)));
    let (network, encoding) = (network.clone(), Box::new(encoding));
    Ok(StreamSetup { network, server, prelude: Vec::new(), reader, encoding, has_cursor: false })
}

/// The encoding of version 1.
struct Version1 {
    filter: EventFilter,
    compression: MessageCompression,
    start: StreamStart,
    /// Whether times are whole seconds.
    shares_times: bool,
    is_ready: bool,
}

impl Encoding for Version1 {
    fn encode(&mut self, entry: &LogEntry, out: &mut Vec<Message>) {
        for mut numbered in numbered(entry) {
            if self.shares_times {
                numbered.micros -= numbered.micros % 1_000_000;
            }
            let is_accepted = numbered.event.kind != "sync"
                && self.start.includes(&numbered)
                && self.filter.accepts(numbered.did, numbered.event);
            let text = is_accepted.then(|| numbered.to_v1());
            let text = text.filter(|text| self.filter.accepts_len(text.len()));
            out.extend(text.map(|text| self.compression.message(text)));
        }
    }

    fn handle_message(&mut self, message: &Message) -> ControlFlow<()> {
        let Message::Text(text) = message else { return ControlFlow::Continue(()) };
        match serde_json::from_str::<ReaderMessage>(text) {
            Ok(ReaderMessage { kind, payload }) if kind == "options_update" => {
                let options = serde_json::from_value::<Options>(payload).ok();
                let Some(Ok(filter)) = options.map(Options::into_filter) else {
                    return ControlFlow::Break(());
                };
                (self.filter, self.is_ready) = (filter, true);
                ControlFlow::Continue(())
            }
            Ok(_) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn error_message(&self, name: &str, message: &str) -> Message {
        self.compression.message(json!({ "error": name, "message": message }).to_string())
    }

    fn unknown_message(&self, is_operation: bool) -> Message {
        let kind = if is_operation { "tide" } else { "weather" };
        let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        let text = json!({ "did": did, "time_us": MIN_CURSOR_MICROS, "kind": kind, kind: {} });
        self.compression.message(text.to_string())
    }

    fn raw_message(&self, bytes: Vec<u8>) -> Message {
        raw_message(bytes)
    }
}

/// A message of the reader.
#[derive(Deserialize)]
struct ReaderMessage {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    payload: serde_json::Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Options {
    wanted_collections: Vec<String>,
    wanted_dids: Vec<String>,
    max_message_size_bytes: Option<i64>,
}

impl Options {
    fn into_filter(self) -> Result<EventFilter, &'static str> {
        if self.wanted_collections.len() > MAX_COLLECTIONS {
            return Err("too many filter collections");
        }
        if self.wanted_dids.len() > MAX_DIDS {
            return Err("too many filter DIDs");
        }
        let max_bytes = self.max_message_size_bytes.filter(|bytes| *bytes > 0);
        Ok(EventFilter {
            kinds: Vec::new(),
            collections: self.wanted_collections,
            dids: self.wanted_dids.into_iter().collect(),
            max_bytes: max_bytes.map(|bytes| bytes as usize),
        })
    }
}
