//! The two protocols of a WebSocket: the messages of an event, and the acknowledgements of a client.

use std::collections::VecDeque;

use serde::Deserialize;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::channel;
use super::schedule::{Outgoing, OutgoingMessage};
use crate::event::Event;

/// The protocol of a connection, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    /// `/lines`: the payload of an event a message, acknowledged by its id.
    Lines,
    /// `/channel`: the records of an event as tap sends them.
    Channel,
}

impl Protocol {
    /// The protocol of a path.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path {
            "/lines" => Some(Self::Lines),
            "/channel" => Some(Self::Channel),
            _ => None,
        }
    }

    /// The messages of an event; none if the protocol has no message for it. `handle` is the verified handle of the account,
    /// if it was looked up and has one.
    ///
    /// # Errors
    /// If the payload cannot be sent.
    pub(super) fn messages(
        self,
        event: &Event,
        handle: Option<&str>,
    ) -> Result<Outgoing, &'static str> {
        match self {
            Self::Lines => lines(event),
            Self::Channel => channel::messages(event, handle),
        }
    }

    /// The ids that a message of the client acknowledges.
    ///
    /// # Errors
    /// If it is no acknowledgement.
    pub(super) fn acknowledged(self, text: &str) -> Result<Vec<Box<str>>, &'static str> {
        match self {
            Self::Lines => Ok(text.lines().map(Box::from).collect()),
            Self::Channel => {
                let message: ClientMessage = serde_json::from_str(text)
                    .map_err(|_| "expected {\"type\":\"ack\",\"id\":NUMBER}")?;
                let is_ack = message.kind == "ack";
                Ok(is_ack.then(|| message.id.to_string().into()).into_iter().collect())
            }
        }
    }
}

/// A message of a client of `/channel`. Types other than `ack` have no effect, as in tap.
#[derive(Deserialize)]
struct ClientMessage {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    id: u64,
}

fn lines(event: &Event) -> Result<Outgoing, &'static str> {
    // A copy, as a slice would keep the batch of the event in memory.
    let text = str::from_utf8(event.payload()).map_err(|_| "a payload that is not UTF-8")?;
    let message = OutgoingMessage { id: event.id().into(), text: Utf8Bytes::from(text) };
    let messages = VecDeque::from([message]);
    let (is_concurrent, names_handle) = (false, false);
    Ok(Outgoing { position: event.position(), is_concurrent, names_handle, messages })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(protocol: Protocol, text: &str) -> Option<Vec<Box<str>>> {
        protocol.acknowledged(text).ok()
    }

    #[test]
    fn ids_of_lines_are_one_a_line_and_an_ack_of_tap_has_a_number() {
        let ids = |ids: &[&str]| Some(ids.iter().copied().map(Box::from).collect::<Vec<_>>());
        assert_eq!(acked(Protocol::Lines, "a/1"), ids(&["a/1"]));
        assert_eq!(acked(Protocol::Lines, "a/1\nb/2\r\n"), ids(&["a/1", "b/2"]));
        assert_eq!(acked(Protocol::Channel, r#"{"type":"ack","id":12}"#), ids(&["12"]));
        for other in [r#"{"type":"hello","id":1}"#, r#"{}"#] {
            assert_eq!(acked(Protocol::Channel, other), ids(&[]), "{other}");
        }
    }

    #[test]
    fn what_is_no_acknowledgement_of_tap_is_refused() {
        for text in ["", "12", "ack", r#"{"type":"ack","id":-1}"#, r#"{"type":"ack","id":"1"}"#] {
            assert_eq!(acked(Protocol::Channel, text), None, "{text}");
        }
        assert_eq!(Protocol::at("/"), None);
        assert_eq!(Protocol::at("/channel/"), None);
    }
}
