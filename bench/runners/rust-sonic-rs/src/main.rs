//! sonic-rs, which reads JSON by SIMD, with a struct derived by serde.
//!
//! Texts without escapes are borrowed, which spares most allocations of a struct of `String`s. It is built for any
//! CPU of the architecture, like all peers here, and not with the flag `target-cpu=native` that its documentation
//! recommends.

use runner_shell::nostr::line::{self, Event};
use runner_shell::nostr::{self, Codec, EventCounts, Fields};
use runner_shell::{BoxError, Runner};
use sonic_rs::JsonValueTrait;

fn main() -> std::io::Result<()> {
    let mut tasks = nostr::tasks::<Json>();
    tasks.push(nostr::fields::<Json>());
    runner_shell::run(&Runner {
        engine: "sonic-rs 0.5.10 into a borrowed struct, faster-hex 0.10.1",
        version: "0.5.10",
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
        Ok(sonic_rs::from_str::<Event<'_>>(line)?.into_owned())
    }

    fn encode(event: &Event<'static>, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(sonic_rs::to_writer(out, event)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event<'_>, BoxError> {
        Ok(sonic_rs::from_slice(bytes)?)
    }

    fn count(event: &Event<'_>, counts: &mut EventCounts) {
        event.count(counts);
    }

    fn encode_batch(events: &[Event<'static>], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(sonic_rs::to_writer(out, events)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event<'_>>, BoxError> {
        Ok(sonic_rs::from_slice(bytes)?)
    }
}

/// By `get`, which reads no further than the field.
impl Fields for Json {
    fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
        let kind = sonic_rs::get(bytes, ["kind"])?.as_u64().ok_or("the kind is no number")?;
        Ok(kind.try_into()?)
    }

    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
        let pubkey = sonic_rs::get(bytes, ["pubkey"])?;
        line::bytes(pubkey.as_str().ok_or("the pubkey is no text")?)
    }

    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
        Ok((Json::kind(bytes)?, Json::pubkey(bytes)?))
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
