//! `proto-string`: id, key and signature are strings of digits.

use prost::Message;
use runner_shell::Refusal;
use runner_shell::nostr::{Codec, Fields, Tally, line};
use serde::Deserialize;

pub(crate) struct Strings;

/// What prost generates for the schema. That it can be read from a line is for loading alone.
#[derive(Clone, PartialEq, Message, Deserialize)]
pub(crate) struct ProtoEvent {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    pubkey: String,
    #[prost(int64, tag = "3")]
    created_at: i64,
    #[prost(int32, tag = "4")]
    kind: i32,
    #[prost(message, repeated, tag = "5")]
    tags: Vec<Tag>,
    #[prost(string, tag = "6")]
    content: String,
    #[prost(string, tag = "7")]
    sig: String,
}

#[derive(Clone, PartialEq, Message, Deserialize)]
#[serde(transparent)]
pub(crate) struct Tag {
    #[prost(string, repeated, tag = "1")]
    pub(crate) values: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct EventBatch {
    #[prost(message, repeated, tag = "1")]
    events: Vec<ProtoEvent>,
}

/// The schema without the other fields, which are passed over.
#[derive(Clone, PartialEq, Message)]
struct Pubkey {
    #[prost(string, tag = "2")]
    pubkey: String,
}

#[derive(Clone, PartialEq, Message)]
struct Both {
    #[prost(string, tag = "2")]
    pubkey: String,
    #[prost(int32, tag = "4")]
    kind: i32,
}

impl Codec for Strings {
    const FORMAT: &'static str = "proto-string";
    const CHECKS: &'static [&'static str] = &["utf8"];

    type Event = ProtoEvent;
    type Decoded<'a> = ProtoEvent;

    fn parse(line: &str) -> Result<ProtoEvent, Refusal> {
        Ok(serde_json::from_str(line)?)
    }

    fn encode(event: &ProtoEvent, out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(event.encode(out)?)
    }

    fn decode(bytes: &[u8]) -> Result<ProtoEvent, Refusal> {
        Ok(ProtoEvent::decode(bytes)?)
    }

    fn tell(event: &ProtoEvent, tally: &mut Tally) {
        tally.event(event.kind, event.created_at, &event.content);
        event.tags.iter().for_each(|tag| tally.texts(&tag.values));
    }

    fn encode_batch(events: &[ProtoEvent], out: &mut Vec<u8>) -> Result<(), Refusal> {
        Ok(EventBatch { events: events.to_vec() }.encode(out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<ProtoEvent>, Refusal> {
        Ok(EventBatch::decode(bytes)?.events)
    }
}

impl Fields for Strings {
    fn kind(bytes: &[u8]) -> Result<u16, Refusal> {
        Ok(crate::binary::Kind::decode(bytes)?.kind.try_into()?)
    }

    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], Refusal> {
        line::bytes(&Pubkey::decode(bytes)?.pubkey)
    }

    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), Refusal> {
        let Both { pubkey, kind } = Both::decode(bytes)?;
        Ok((kind.try_into()?, line::bytes(&pubkey)?))
    }
}
