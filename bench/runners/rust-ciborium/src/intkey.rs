//! `cbor-intkey`: a map whose keys are numbers. serde's derive has no such shape, so it is written by hand.

use std::fmt;

use runner_shell::Refusal;
use runner_shell::nostr::{Codec, Tally, line};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_bytes::{ByteArray, Bytes};

use crate::value::{Tags, tags, tell};

pub(crate) struct IntKey;

pub(crate) struct Event {
    id: [u8; 32],
    pubkey: [u8; 32],
    created_at: i64,
    kind: u16,
    tags: Tags,
    content: String,
    sig: [u8; 64],
}

impl Serialize for Event {
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

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Event;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map with the keys 0 to 6")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
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
        Ok(Event {
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

    type Event = Event;
    type Decoded<'a> = Event;

    fn parse(line: &str) -> Result<Event, Refusal> {
        let event: line::Event<'_> = serde_json::from_str(line)?;
        Ok(Event {
            id: event.id,
            pubkey: event.pubkey,
            created_at: event.created_at,
            kind: event.kind,
            tags: tags(event.tags),
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
        tell(&event.tags, tally);
    }

    fn encode_batch(events: &[Event], out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(ciborium::into_writer(events, out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<Event>, Refusal> {
        Ok(ciborium::from_reader(bytes)?)
    }
}
