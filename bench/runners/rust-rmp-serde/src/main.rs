//! How fast is rmp-serde, the MessagePack library of those who have serde, with a struct that borrows?

mod value;

use runner_shell::nostr::{self, Codec, Tally, line};
use runner_shell::{Refusal, Runner};
use serde::{Deserialize, Serialize};
use value::Value;

fn main() -> std::io::Result<()> {
    runner_shell::run(&Runner {
        engine: "rmp-serde 1.3.1 into a borrowed struct, serde_bytes 0.11.19, faster-hex 0.10.1",
        version: "1.3.1",
        tasks: &nostr::tasks::<Msgpack>(),
    })
}

struct Msgpack;

/// Id, pubkey, created_at, kind, tags, content, sig.
#[derive(Serialize, Deserialize)]
struct Event<'a>(
    #[serde(with = "serde_bytes")] [u8; 32],
    #[serde(with = "serde_bytes")] [u8; 32],
    i64,
    u16,
    #[serde(borrow)] Vec<Vec<Value<'a>>>,
    &'a str,
    #[serde(with = "serde_bytes")] [u8; 64],
);

impl Codec for Msgpack {
    const FORMAT: &'static str = "msgpack";
    /// Text that is no UTF-8 comes to a visitor as bytes, and so a value would be taken for such.
    const CHECKS: &'static [&'static str] = &["kind-range"];

    type Event = Event<'static>;
    type Decoded<'a> = Event<'a>;

    /// The corpus stays until the end, and so its texts may.
    fn parse(line: &str) -> Result<Event<'static>, Refusal> {
        let line::Event { id, pubkey, created_at, kind, tags, content, sig } =
            serde_json::from_str(line)?;
        let value = |text: line::Text<'_>| Value::Text(text.0.into_owned().leak());
        let tag = |tag: Vec<_>| tag.into_iter().map(value).collect();
        let tags = tags.into_iter().map(tag).collect();
        Ok(Event(id, pubkey, created_at, kind, tags, content.into_owned().leak(), sig))
    }

    fn encode(event: &Event<'static>, out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(rmp_serde::encode::write(out, event)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event<'_>, Refusal> {
        Ok(rmp_serde::from_slice(bytes)?)
    }

    fn tell(Event(_, _, created_at, kind, tags, content, _): &Event<'_>, tally: &mut Tally) {
        tally.event(*kind, *created_at, content);
        for tag in tags {
            tally.tag();
            tag.iter().for_each(|value| value.tell(tally));
        }
    }

    fn encode_batch(events: &[Event<'static>], out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(rmp_serde::encode::write(out, events)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event<'_>>, Refusal> {
        Ok(rmp_serde::from_slice(bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use runner_shell::nostr::experiments;

    use super::*;

    #[test]
    fn the_claims_hold() {
        experiments::hold_to_claims::<Msgpack>();
    }
}
