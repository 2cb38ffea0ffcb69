//! `cbor-packed`: an array, which is what serde's derive makes of a struct whose fields have no names.

use runner_shell::Refusal;
use runner_shell::nostr::{Codec, Tally, line};
use serde::{Deserialize, Serialize};

use crate::value::{Tags, tags, tell};

pub(crate) struct Packed;

/// Id, pubkey, created_at, kind, tags, content, sig.
#[derive(Serialize, Deserialize)]
pub(crate) struct Event(
    #[serde(with = "serde_bytes")] [u8; 32],
    #[serde(with = "serde_bytes")] [u8; 32],
    i64,
    u16,
    Tags,
    String,
    #[serde(with = "serde_bytes")] [u8; 64],
);

impl Codec for Packed {
    const FORMAT: &'static str = "cbor-packed";
    const CHECKS: &'static [&'static str] = &["utf8", "kind-range"];

    type Event = Event;
    type Decoded<'a> = Event;

    fn parse(line: &str) -> Result<Event, Refusal> {
        let event: line::Event<'_> = serde_json::from_str(line)?;
        let line::Event { id, pubkey, created_at, kind, content, sig, .. } = event;
        Ok(Event(id, pubkey, created_at, kind, tags(event.tags), content.into(), sig))
    }

    fn encode(event: &Event, out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(ciborium::into_writer(event, out)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event, Refusal> {
        Ok(ciborium::from_reader(bytes)?)
    }

    fn tell(Event(_, _, created_at, kind, tags, content, _): &Event, tally: &mut Tally) {
        tally.event(*kind, *created_at, content);
        tell(tags, tally);
    }

    fn encode_batch(events: &[Event], out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(ciborium::into_writer(events, out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event>, Refusal> {
        Ok(ciborium::from_reader(bytes)?)
    }
}
