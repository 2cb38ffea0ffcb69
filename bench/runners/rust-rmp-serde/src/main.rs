//! rmp-serde, the MessagePack library for serde, with a struct that borrows.

use std::fmt;

use runner_shell::nostr::{self, Codec, EventCounts, line};
use runner_shell::{BoxError, Runner};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

fn main() -> std::io::Result<()> {
    runner_shell::run(&Runner {
        engine: "rmp-serde 1.3.1 into a borrowed struct, serde_bytes 0.11.19, faster-hex 0.10.1",
        version: "1.3.1",
        tasks: &nostr::tasks::<Msgpack>(),
    })
}

struct Msgpack;

/// Id, pubkey, created_at, kind, tags, content, sig.
#[derive(serde::Serialize, serde::Deserialize)]
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
    /// Text that is not UTF-8 reaches a visitor as bytes, so a value would be taken for bytes.
    const CHECKS: &'static [&'static str] = &["kind-range"];

    type Event = Event<'static>;
    type Decoded<'a> = Event<'a>;

    /// The corpus stays until the end, and so its texts may.
    fn parse(line: &str) -> Result<Event<'static>, BoxError> {
        let line::Event { id, pubkey, created_at, kind, tags, content, sig } =
            serde_json::from_str(line)?;
        let value = |text: line::Text<'_>| Value::Text(text.0.into_owned().leak());
        let tag = |tag: Vec<_>| tag.into_iter().map(value).collect();
        let tags = tags.into_iter().map(tag).collect();
        Ok(Event(id, pubkey, created_at, kind, tags, content.into_owned().leak(), sig))
    }

    fn encode(event: &Event<'static>, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(rmp_serde::encode::write(out, event)?)
    }

    fn decode(bytes: &[u8]) -> Result<Event<'_>, BoxError> {
        Ok(rmp_serde::from_slice(bytes)?)
    }

    fn count(
        Event(_, _, created_at, kind, tags, content, _): &Event<'_>,
        counts: &mut EventCounts,
    ) {
        counts.event(*kind, *created_at, content);
        for tag in tags {
            counts.tag();
            tag.iter().for_each(|value| value.count(counts));
        }
    }

    fn encode_batch(events: &[Event<'static>], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(rmp_serde::encode::write(out, events)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event<'_>>, BoxError> {
        Ok(rmp_serde::from_slice(bytes)?)
    }
}

/// A tag's value: text, or the bytes of its digits.
enum Value<'a> {
    Text(&'a str),
    Hex(&'a [u8]),
}

impl Value<'_> {
    fn count(&self, counts: &mut EventCounts) {
        match self {
            Value::Text(text) => counts.text(text),
            Value::Hex(bytes) => counts.hex(bytes),
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Hex(bytes) => serializer.serialize_bytes(bytes),
            Value::Text(text) => line::with_hex_bytes(text, MIN_DIGITS, |bytes| match bytes {
                Some(bytes) => serializer.serialize_bytes(bytes),
                None => serializer.serialize_str(text),
            }),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrBytes)
    }
}

struct TextOrBytes;

impl<'de> Visitor<'de> for TextOrBytes {
    type Value = Value<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("text or bytes")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(text))
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Value<'de>, E> {
        Ok(Value::Hex(bytes))
    }
}

const MIN_DIGITS: usize = 8;

#[cfg(test)]
mod tests {
    use runner_shell::nostr::claims;

    use super::*;

    #[test]
    fn the_claims_hold() {
        claims::assert_claims::<Msgpack>();
    }
}
