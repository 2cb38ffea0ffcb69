//! serde_json, the JSON library of nearly all Rust programs, with a struct derived by serde.
//!
//! Texts without escapes are borrowed, which spares most allocations of a struct of `String`s.

use runner_shell::nostr::line::{Both, Event, Kind, Pubkey};
use runner_shell::nostr::{self, Codec, EventCounts, Fields};
use runner_shell::{BoxError, Runner};

fn main() -> std::io::Result<()> {
    let mut tasks = nostr::tasks::<Json>();
    tasks.push(nostr::fields::<Json>());
    runner_shell::run(&Runner {
        engine: "serde_json 1.0.154 into a borrowed struct, faster-hex 0.10.1",
        version: "1.0.154",
        tasks: &tasks,
    })
}

struct Json;

impl Codec for Json {
    const FORMAT: &'static str = "json";
    const CHECKS: &'static [&'static str] =
        &["utf8", "trailing-bytes", "kind-range", "duplicate-fields"];

    type Event = Event<'static>;
    type Decoded<'a> = Event<'a>;

    fn parse(line: &str) -> Result<Event<'static>, BoxError> {
        Ok(serde_json::from_str::<Event<'_>>(line)?.into_owned())
    }

    fn encode(event: &Event<'static>, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(serde_json::to_writer(out, event)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event<'_>, BoxError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    fn count(event: &Event<'_>, counts: &mut EventCounts) {
        event.count(counts);
    }

    fn encode_batch(events: &[Event<'static>], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(serde_json::to_writer(out, events)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event<'_>>, BoxError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// Into structs of these fields alone: the others are passed over.
impl Fields for Json {
    fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
        Ok(serde_json::from_slice::<Kind>(bytes)?.kind)
    }

    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
        Ok(serde_json::from_slice::<Pubkey>(bytes)?.pubkey)
    }

    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
        let Both { kind, pubkey } = serde_json::from_slice(bytes)?;
        Ok((kind, pubkey))
    }
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::claims;

    use super::*;

    #[test]
    fn the_claims_hold() {
        claims::assert_claims::<Json>();
        claims::assert_fields::<Json>();
    }
}
