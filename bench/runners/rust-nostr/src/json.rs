//! How fast does it write, read and verify events as JSON, the one format that it has?
//!
//! There is no way to read a single field.

use nostr::event::Event;
use runner_shell::Refusal;
use runner_shell::nostr::{Codec, Tally, Validate};

pub(crate) struct Json;

impl Codec for Json {
    const FORMAT: &'static str = "json";
    const CHECKS: &'static [&'static str] =
        &["utf8", "trailing-bytes", "kind-range", "duplicate-fields"];

    type Event = Event;
    type Decoded<'a> = Event;

    fn parse(line: &str) -> Result<Event, Refusal> {
        Ok(Event::from_json(line)?)
    }

    /// What `as_json` does, but into memory that is there.
    fn encode(event: &Event, out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(serde_json::to_writer(out, event)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event, Refusal> {
        Ok(Event::from_json(bytes)?)
    }

    fn tell(event: &Event, tally: &mut Tally) {
        tally.event(event.kind.as_u16(), event.created_at.as_secs() as i64, &event.content);
        event.tags.iter().for_each(|tag| tally.texts(tag.as_slice()));
    }

    fn encode_batch(events: &[Event], out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(serde_json::to_writer(out, events)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event>, Refusal> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

impl Validate for Json {
    const CHECKS: &'static [&'static str] =
        &["utf8", "trailing-bytes", "kind-range", "duplicate-fields", "id", "signature"];

    fn validate(bytes: &[u8]) -> Result<bool, Refusal> {
        Ok(Event::from_json(bytes)?.verify().is_ok())
    }
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::experiments;

    use super::*;

    #[test]
    fn the_claims_hold() {
        experiments::hold_to_claims::<Json>();
        experiments::hold_verdicts::<Json>();
    }
}
