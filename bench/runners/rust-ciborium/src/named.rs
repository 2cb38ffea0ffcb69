//! `cbor-schemaless`: a map whose keys are the names, which is what serde's derive makes of a struct.

use runner_shell::Refusal;
use runner_shell::nostr::{Codec, Tally, line};
use serde::{Deserialize, Serialize};

pub(crate) struct Schemaless;

/// No value of a tag is compacted here.
#[derive(Serialize, Deserialize)]
pub(crate) struct Event {
    #[serde(with = "serde_bytes")]
    id: [u8; 32],
    #[serde(with = "serde_bytes")]
    pubkey: [u8; 32],
    created_at: i64,
    kind: u16,
    tags: Vec<Vec<String>>,
    content: String,
    #[serde(with = "serde_bytes")]
    sig: [u8; 64],
}

impl Codec for Schemaless {
    const FORMAT: &'static str = "cbor-schemaless";
    const CHECKS: &'static [&'static str] = &["utf8", "kind-range", "duplicate-fields"];

    type Event = Event;
    type Decoded<'a> = Event;

    fn parse(line: &str) -> Result<Event, Refusal> {
        let event: line::Event<'_> = serde_json::from_str(line)?;
        let tag = |tag: Vec<line::Text<'_>>| tag.into_iter().map(|text| text.0.into()).collect();
        Ok(Event {
            id: event.id,
            pubkey: event.pubkey,
            created_at: event.created_at,
            kind: event.kind,
            tags: event.tags.into_iter().map(tag).collect(),
            content: event.content.into(),
            sig: event.sig,
        })
    }

    fn encode(event: &Event, out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(ciborium::into_writer(event, out)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event, Refusal> {
        Ok(ciborium::from_reader(bytes)?)
    }

    fn tell(event: &Event, tally: &mut Tally) {
        tally.event(event.kind, event.created_at, &event.content);
        event.tags.iter().for_each(|tag| tally.texts(tag));
    }

    fn encode_batch(events: &[Event], out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(ciborium::into_writer(events, out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event>, Refusal> {
        Ok(ciborium::from_reader(bytes)?)
    }
}
