//! The nostr crate, which most Rust clients and relays of Nostr use. It verifies by libsecp256k1, has one format, JSON, and
//! no way to read a single field.

use nostr::event::Event;
use runner_shell::nostr::{Codec, EventCounts, Validate};
use runner_shell::schnorr::{self, Peer};
use runner_shell::{BoxError, Runner, Variant};

fn main() -> std::io::Result<()> {
    let mut tasks = runner_shell::nostr::tasks::<Json>();
    tasks.push(runner_shell::nostr::validated::<Json>());
    tasks.push(schnorr::task::<Nostr>());
    runner_shell::run(&Runner {
        engine: "nostr 0.45.6 (secp256k1 0.30.0, serde_json 1.0.154)",
        version: "0.45.6",
        tasks: &tasks,
    })
}

struct Nostr;

impl Peer for Nostr {
    type Event = Event;

    const VARIANTS: &'static [Variant] = &[Variant { name: "verify", checks: &[] }];

    fn parse(line: &str) -> Result<Event, BoxError> {
        Ok(Event::from_json(line)?)
    }

    /// A key that is not a point counts as a wrong signature: the crate does not distinguish them.
    fn verify(event: &Event) -> Result<bool, BoxError> {
        Ok(event.verify_signature())
    }
}

struct Json;

impl Codec for Json {
    const FORMAT: &'static str = "json";
    const CHECKS: &'static [&'static str] =
        &["utf8", "trailing-bytes", "kind-range", "duplicate-fields"];

    type Event = Event;
    type Decoded<'a> = Event;

    fn parse(line: &str) -> Result<Event, BoxError> {
        Ok(Event::from_json(line)?)
    }

    /// Like `as_json`, but into existing memory.
    fn encode(event: &Event, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(serde_json::to_writer(out, event)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event, BoxError> {
        Ok(Event::from_json(bytes)?)
    }

    fn count(event: &Event, counts: &mut EventCounts) {
        counts.event(event.kind.as_u16(), event.created_at.as_secs() as i64, &event.content);
        event.tags.iter().for_each(|tag| counts.texts(tag.as_slice()));
    }

    fn encode_batch(events: &[Event], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(serde_json::to_writer(out, events)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event>, BoxError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

impl Validate for Json {
    const CHECKS: &'static [&'static str] =
        &["utf8", "trailing-bytes", "kind-range", "duplicate-fields", "id", "signature"];

    fn validate(bytes: &[u8]) -> Result<bool, BoxError> {
        Ok(Event::from_json(bytes)?.verify().is_ok())
    }
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::claims;

    use super::*;

    #[test]
    fn the_claims_hold() {
        claims::assert_claims::<Json>();
        claims::assert_verdicts::<Json>();
    }
}
