//! The lines of `wireproof nostr follow`: a Nostr event alone, or with its relay and its verdict.

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::error::LineError;
use crate::text::{Json, Text};
use crate::words::Verdict;

/// A Nostr event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NostrEvent<'l> {
    /// The hash of the event, in hexadecimal.
    #[serde(borrow)]
    pub id: Text<'l>,
    /// The key of its author, in hexadecimal.
    #[serde(borrow)]
    pub pubkey: Text<'l>,
    /// In seconds since 1970.
    pub created_at: i64,
    /// The kind, by its number.
    pub kind: u16,
    /// The tags.
    #[serde(borrow)]
    pub tags: Json<'l>,
    /// The content.
    #[serde(borrow)]
    pub content: Text<'l>,
    /// The signature, in hexadecimal.
    #[serde(borrow)]
    pub sig: Text<'l>,
}

impl<'l> NostrEvent<'l> {
    /// Reads an event.
    ///
    /// # Errors
    /// If the text is no event.
    pub fn parse(json: &'l [u8]) -> Result<Self, LineError> {
        serde_json::from_slice(json).map_err(|error| LineError::of_json(&error, json))
    }
}

/// A line of `wireproof nostr follow --json`, of version 1: the verdict on an event, or a message about a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RelayLine<'l> {
    /// The version of the lines, 1.
    pub v: u64,
    /// URL of the relay.
    #[serde(borrow)]
    pub relay: Text<'l>,
    /// `event`, or the name of the message.
    #[serde(borrow)]
    pub kind: Text<'l>,
    /// The verdict on an event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The stable name of the verdict.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code<'l>>,
    /// The id that a refused event claims.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub id: Option<Text<'l>>,
    /// The word with which the relay begins its reason.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Text<'l>>,
    /// A text of the relay, or about it; the rule that an event breaks.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'l>>,
    /// Whether all stored events are received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// Number of events that the relay has and the files have not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// Number of missing events that the relay did not send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<u64>,
    /// The event as it was received, if it is valid.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub event: Option<Json<'l>>,
}

impl RelayLine<'_> {
    /// Appends the line without a line feed. `event`, the last key, is written straight into the buffer, if there is one.
    pub fn append(&self, lines: &mut Vec<u8>, event: Option<impl FnOnce(&mut Vec<u8>)>) {
        serde_json::to_writer(&mut *lines, self).expect("text and numbers have a JSON form");
        if let Some(write) = event {
            // The object is opened again.
            lines.pop();
            lines.extend_from_slice(b",\"event\":");
            write(lines);
            lines.push(b'}');
        }
    }
}
