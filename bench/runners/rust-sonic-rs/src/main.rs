//! How fast is sonic-rs, which reads JSON by SIMD, with a struct derived by serde?
//!
//! Texts without escapes are borrowed, which spares most allocations of a struct of `String`s. It is
//! built for any CPU of the architecture, as all peers here are, and not with the flag
//! `target-cpu=native` that its documentation asks for.

use runner_shell::nostr::line::{self, Event};
use runner_shell::nostr::{self, Codec, Fields, Tally};
use runner_shell::{Refusal, Runner};
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

    fn parse(line: &str) -> Result<Event<'static>, Refusal> {
        Ok(sonic_rs::from_str::<Event<'_>>(line)?.into_owned())
    }

    fn encode(event: &Event<'static>, out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(sonic_rs::to_writer(out, event)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event<'_>, Refusal> {
        Ok(sonic_rs::from_slice(bytes)?)
    }

    fn tell(event: &Event<'_>, tally: &mut Tally) {
        event.tell(tally);
    }

    fn encode_batch(events: &[Event<'static>], out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(sonic_rs::to_writer(out, events)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event<'_>>, Refusal> {
        Ok(sonic_rs::from_slice(bytes)?)
    }
}

/// By `get`, which reads no further than the field.
impl Fields for Json {
    fn kind(bytes: &[u8]) -> Result<u16, Refusal> {
        let kind = sonic_rs::get(bytes, ["kind"])?.as_u64().ok_or("the kind is no number")?;
        Ok(kind.try_into()?)
    }

    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], Refusal> {
        let pubkey = sonic_rs::get(bytes, ["pubkey"])?;
        line::bytes(pubkey.as_str().ok_or("the pubkey is no text")?)
    }

    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), Refusal> {
        Ok((Json::kind(bytes)?, Json::pubkey(bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::experiments;

    use super::*;

    #[test]
    fn the_claims_hold() {
        experiments::hold_to_claims::<Json>();
        experiments::hold_fields::<Json>();
    }
}
