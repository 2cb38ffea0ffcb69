//! `com.atproto.sync.subscribeRepos`: a stream of frames, from a cursor on.

use std::sync::Arc;

use atproto::event::{ErrorFrame, Event, Header, Info, Unknown};
use tokio_tungstenite::tungstenite::Message;

use super::answer::{Query, Refusal, error};
use super::network::Network;
use super::outbox::{Entry, Start};
use super::spec::Server;
use super::teller::{Telling, Tongue};

/// What a reader with these parameters is told.
pub(super) fn telling(
    network: &Arc<Network>,
    server: Server,
    query: &Query,
) -> Result<Telling, Refusal> {
    let cursor = query.get("cursor").map(str::parse::<i64>).transpose();
    let wrong = |_| error(400, "InvalidRequest", "Error: cursor must be an integer");
    let manners = match server {
        Server::Relay(_) => network.spec.relay_cursor_policy,
        _ => network.spec.pds_cursor_policy,
    };
    let outbox = network.outbox(server).expect("this server tells");
    let (prelude, place) = match outbox.start(cursor.map_err(wrong)?, manners) {
        Start::At(place) => (vec![], Some(place)),
        Start::Outdated(place) => (vec![outdated()], Some(place)),
        Start::Future => (vec![Frames.error("FutureCursor", "Cursor in the future.")], None),
    };
    let (network, tongue) = (network.clone(), Box::new(Frames));
    Ok(Telling { network, server, prelude, place, tongue })
}

fn outdated() -> Message {
    let message = Some("Requested cursor exceeded limit. Possibly missing events");
    message_of(&Event::Info(Info { name: "OutdatedCursor", message }))
}

/// `xrpc.v0.cbor`: one binary message, one frame.
struct Frames;

impl Tongue for Frames {
    fn spell(&mut self, entry: &Entry, out: &mut Vec<Message>) {
        out.push(Message::binary(entry.told.to_frame(entry.seq)));
    }

    fn error(&self, name: &str, message: &str) -> Message {
        message_of(&Event::Error(ErrorFrame { error: name, message: Some(message) }))
    }

    fn unknown(&self, is_operation: bool) -> Message {
        let header = match is_operation {
            true => Header { op: 7, kind: None },
            false => Header { op: Header::MESSAGE, kind: Some("#weather") },
        };
        // {"sky": "clear"}
        let payload = b"\xa1\x63sky\x65clear";
        message_of(&Event::Unknown(Unknown { header, payload }))
    }

    fn raw(&self, bytes: Vec<u8>) -> Message {
        Message::binary(bytes)
    }
}

fn message_of(event: &Event<'_>) -> Message {
    Message::binary(event.to_frame())
}
