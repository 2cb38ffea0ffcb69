//! `com.atproto.sync.subscribeRepos`: a stream of frames from a cursor.

use std::sync::Arc;

use atproto::event::{ErrorFrame, Event, Header, Info, Unknown};
use tokio_tungstenite::tungstenite::Message;

use super::event_log::{LogEntry, Start};
use super::fault::Fault;
use super::http::{QueryParams, XrpcError, error};
use super::network::NetworkState;
use super::spec::Server;
use super::streamer::{Encoding, StreamSetup};

/// The stream of a request with these parameters.
pub(super) fn stream(
    network: &Arc<NetworkState>,
    server: Server,
    query: &QueryParams,
) -> Result<StreamSetup, XrpcError> {
    let cursor = query.get("cursor").map(str::parse::<i64>).transpose();
    let invalid = |_| error(400, "InvalidRequest", "Error: cursor must be an integer");
    let policy = match server {
        Server::Relay(_) => network.spec.relay_cursor_policy,
        _ => network.spec.pds_cursor_policy,
    };
    let log = network.event_log(server).expect("a server with a log");
    let cursor = cursor.map_err(invalid)?;
    let has_cursor = cursor.is_some();
    let injected = |fault| has_cursor && network.faults.inject(server, fault).is_some();
    let cursor = cursor.filter(|_| !injected(Fault::IgnoredCursor));
    let is_told = injected(Fault::FalseOutdated);
    let (mut prelude, position) = match log.start(cursor, policy) {
        Start::At(position) => (vec![], Some(position)),
        Start::Outdated(position) => (vec![outdated()], Some(position)),
        Start::Future => {
            (vec![Frames.error_message("FutureCursor", "Cursor in the future.")], None)
        }
    };
    if is_told && prelude.is_empty() {
        prelude.push(outdated());
    }
    let reader = position.map(|position| log.register_reader(position));
    let (network, encoding) = (network.clone(), Box::new(Frames));
    Ok(StreamSetup { network, server, prelude, reader, encoding, has_cursor })
}

fn outdated() -> Message {
    let message = Some("Requested cursor exceeded limit. Possibly missing events");
    message_of(&Event::Info(Info { name: "OutdatedCursor", message }))
}

/// `xrpc.v0.cbor`: one binary message, one frame.
struct Frames;

impl Encoding for Frames {
    fn encode(&mut self, entry: &LogEntry, out: &mut Vec<Message>) {
        out.push(Message::binary(entry.event.to_frame(entry.seq)));
    }

    fn error_message(&self, name: &str, message: &str) -> Message {
        message_of(&Event::Error(ErrorFrame { error: name, message: Some(message) }))
    }

    fn unknown_message(&self, is_operation: bool) -> Message {
        let header = if is_operation {
            Header { op: 7, kind: None }
        } else {
            Header { op: Header::MESSAGE, kind: Some("#weather") }
        };
        // {"sky": "clear"}
        let payload = b"\xa1\x63sky\x65clear";
        message_of(&Event::Unknown(Unknown { header, payload }))
    }

    fn raw_message(&self, bytes: Vec<u8>) -> Message {
        Message::binary(bytes)
    }
}

fn message_of(event: &Event<'_>) -> Message {
    Message::binary(event.to_frame())
}
