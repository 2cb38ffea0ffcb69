//! The CBOR layouts of Nostr events, and the values of tags in layouts that compact hexadecimal.

use std::fmt;

use runner_shell::BoxError;
use runner_shell::nostr::{Codec, EventCounts, line};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_bytes::{ByteArray, Bytes};

/// `cbor-schemaless`: a map whose keys are the names, which is serde's representation of a struct.
pub(crate) struct Schemaless;

/// No value of a tag is compacted here.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct NamedEvent {
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

    type Event = NamedEvent;
    type Decoded<'a> = NamedEvent;

    fn parse(line: &str) -> Result<NamedEvent, BoxError> {
        let event: line::Event<'_> = serde_json::from_str(line)?;
        let tag = |tag: Vec<line::Text<'_>>| tag.into_iter().map(|text| text.0.into()).collect();
        Ok(NamedEvent {
            id: event.id,
            pubkey: event.pubkey,
            created_at: event.created_at,
            kind: event.kind,
            tags: event.tags.into_iter().map(tag).collect(),
            content: event.content.into(),
            sig: event.sig,
        })
    }

    fn encode(event: &NamedEvent, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(ciborium::into_writer(event, out)?)
    }

    fn decode(bytes: &[u8]) -> Result<NamedEvent, BoxError> {
        Ok(ciborium::from_reader(bytes)?)
    }

    fn count(event: &NamedEvent, counts: &mut EventCounts) {
        counts.event(event.kind, event.created_at, &event.content);
        event.tags.iter().for_each(|tag| counts.texts(tag));
    }

    fn encode_batch(events: &[NamedEvent], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(ciborium::into_writer(events, out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<NamedEvent>, BoxError> {
        Ok(ciborium::from_reader(bytes)?)
    }
}

/// `cbor-packed`: an array, which is serde's representation of a struct without field names.
pub(crate) struct Packed;

/// Id, pubkey, created_at, kind, tags, content, sig.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct PackedEvent(
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

    type Event = PackedEvent;
    type Decoded<'a> = PackedEvent;

    fn parse(line: &str) -> Result<PackedEvent, BoxError> {
        let event: line::Event<'_> = serde_json::from_str(line)?;
        let line::Event { id, pubkey, created_at, kind, content, sig, .. } = event;
        Ok(PackedEvent(id, pubkey, created_at, kind, tags(event.tags), content.into(), sig))
    }

    fn encode(event: &PackedEvent, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(ciborium::into_writer(event, out)?)
    }

    fn decode(bytes: &[u8]) -> Result<PackedEvent, BoxError> {
        Ok(ciborium::from_reader(bytes)?)
    }

    fn count(
        PackedEvent(_, _, created_at, kind, tags, content, _): &PackedEvent,
        counts: &mut EventCounts,
    ) {
        counts.event(*kind, *created_at, content);
        count_tags(tags, counts);
    }

    fn encode_batch(events: &[PackedEvent], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(ciborium::into_writer(events, out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<PackedEvent>, BoxError> {
        Ok(ciborium::from_reader(bytes)?)
    }
}

/// `cbor-intkey`: a map whose keys are numbers. serde's derive has no such shape, so it is written by hand.
pub(crate) struct IntKey;

pub(crate) struct IntKeyEvent {
    id: [u8; 32],
    pubkey: [u8; 32],
    created_at: i64,
    kind: u16,
    tags: Tags,
    content: String,
    sig: [u8; 64],
}

impl Serialize for IntKeyEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry(&0_u8, Bytes::new(&self.id))?;
        map.serialize_entry(&1_u8, Bytes::new(&self.pubkey))?;
        map.serialize_entry(&2_u8, &self.created_at)?;
        map.serialize_entry(&3_u8, &self.kind)?;
        map.serialize_entry(&4_u8, &self.tags)?;
        map.serialize_entry(&5_u8, &self.content)?;
        map.serialize_entry(&6_u8, Bytes::new(&self.sig))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for IntKeyEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = IntKeyEvent;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map with the keys 0 to 6")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IntKeyEvent, A::Error> {
        let (mut id, mut pubkey, mut created_at, mut kind) = (None, None, None, None);
        let (mut tags, mut content, mut sig) = (None, None, None);
        while let Some(key) = map.next_key::<u8>()? {
            match key {
                0 => id = Some(map.next_value::<ByteArray<32>>()?.into_array()),
                1 => pubkey = Some(map.next_value::<ByteArray<32>>()?.into_array()),
                2 => created_at = Some(map.next_value()?),
                3 => kind = Some(map.next_value()?),
                4 => tags = Some(map.next_value()?),
                5 => content = Some(map.next_value()?),
                6 => sig = Some(map.next_value::<ByteArray<64>>()?.into_array()),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(IntKeyEvent {
            id: id.ok_or_else(|| Error::missing_field("id"))?,
            pubkey: pubkey.ok_or_else(|| Error::missing_field("pubkey"))?,
            created_at: created_at.ok_or_else(|| Error::missing_field("created_at"))?,
            kind: kind.ok_or_else(|| Error::missing_field("kind"))?,
            tags: tags.ok_or_else(|| Error::missing_field("tags"))?,
            content: content.ok_or_else(|| Error::missing_field("content"))?,
            sig: sig.ok_or_else(|| Error::missing_field("sig"))?,
        })
    }
}

impl Codec for IntKey {
    const FORMAT: &'static str = "cbor-intkey";
    const CHECKS: &'static [&'static str] = &["utf8", "kind-range"];

    type Event = IntKeyEvent;
    type Decoded<'a> = IntKeyEvent;

    fn parse(line: &str) -> Result<IntKeyEvent, BoxError> {
        let event: line::Event<'_> = serde_json::from_str(line)?;
        Ok(IntKeyEvent {
            id: event.id,
            pubkey: event.pubkey,
            created_at: event.created_at,
            kind: event.kind,
            tags: tags(event.tags),
            content: event.content.into(),
            sig: event.sig,
        })
    }

    fn encode(event: &IntKeyEvent, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(ciborium::into_writer(event, out)?)
    }

    fn decode(bytes: &[u8]) -> Result<IntKeyEvent, BoxError> {
        Ok(ciborium::from_reader(bytes)?)
    }

    fn count(event: &IntKeyEvent, counts: &mut EventCounts) {
        counts.event(event.kind, event.created_at, &event.content);
        count_tags(&event.tags, counts);
    }

    fn encode_batch(events: &[IntKeyEvent], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(ciborium::into_writer(events, out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<IntKeyEvent>, BoxError> {
        Ok(ciborium::from_reader(bytes)?)
    }
}

/// A tag's value: text, or the bytes of its digits. ciborium reads from a stream, so nothing is borrowed.
enum Value {
    Text(String),
    Hex(Vec<u8>),
}

type Tags = Vec<Vec<Value>>;

/// The tags of a line, all values as text.
fn tags(tags: Vec<Vec<line::Text<'_>>>) -> Tags {
    let value = |text: line::Text<'_>| Value::Text(text.0.into());
    tags.into_iter().map(|tag| tag.into_iter().map(value).collect()).collect()
}

/// Counts all tags.
fn count_tags(tags: &Tags, counts: &mut EventCounts) {
    for tag in tags {
        counts.tag();
        for value in tag {
            match value {
                Value::Text(text) => counts.text(text),
                Value::Hex(bytes) => counts.hex(bytes),
            }
        }
    }
}

impl Serialize for Value {
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

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrBytes)
    }
}

struct TextOrBytes;

impl Visitor<'_> for TextOrBytes {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("text or bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::Hex(bytes.to_vec()))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Value, E> {
        Ok(Value::Hex(bytes))
    }
}

const MIN_DIGITS: usize = 8;
