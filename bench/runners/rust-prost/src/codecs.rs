//! The Protobuf schemas of Nostr events: `proto-string`, whose ids, keys and signatures are strings of digits;
//! `proto-binary`, where they are bytes; `proto-binary-hex`, where hexadecimal values of tags are bytes too.

use prost::{Message, Oneof};
use runner_shell::BoxError;
use runner_shell::nostr::{Codec, EventCounts, Fields, line};
use serde::Deserialize;

pub(crate) struct Strings;

/// The struct that prost generates for the schema. `Deserialize` is used at load only.
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

/// The schema without the other fields, which are skipped.
#[derive(Clone, PartialEq, Message)]
struct TextPubkey {
    #[prost(string, tag = "2")]
    pubkey: String,
}

#[derive(Clone, PartialEq, Message)]
struct TextBoth {
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

    fn parse(line: &str) -> Result<ProtoEvent, BoxError> {
        Ok(serde_json::from_str(line)?)
    }

    fn encode(event: &ProtoEvent, out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(event.encode(out)?)
    }

    fn decode(bytes: &[u8]) -> Result<ProtoEvent, BoxError> {
        Ok(ProtoEvent::decode(bytes)?)
    }

    fn count(event: &ProtoEvent, counts: &mut EventCounts) {
        counts.event(event.kind, event.created_at, &event.content);
        event.tags.iter().for_each(|tag| counts.texts(&tag.values));
    }

    fn encode_batch(events: &[ProtoEvent], out: &mut Vec<u8>) -> Result<(), BoxError> {
        Ok(EventBatch { events: events.to_vec() }.encode(out)?)
    }

    fn decode_batch(bytes: &[u8]) -> Result<Vec<ProtoEvent>, BoxError> {
        Ok(EventBatch::decode(bytes)?.events)
    }
}

impl Fields for Strings {
    fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
        Ok(Kind::decode(bytes)?.kind.try_into()?)
    }

    fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
        line::bytes(&TextPubkey::decode(bytes)?.pubkey)
    }

    fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
        let TextBoth { pubkey, kind } = TextBoth::decode(bytes)?;
        Ok((kind.try_into()?, line::bytes(&pubkey)?))
    }
}

pub(crate) struct Binary;
pub(crate) struct BinaryHex;

/// The structs that prost generates for the two schemas, which differ in their tags.
macro_rules! messages {
    ($event:ident, $tag:ident, $batch:ident) => {
        #[derive(Clone, PartialEq, Message)]
        pub(crate) struct $event {
            #[prost(bytes = "vec", tag = "1")]
            id: Vec<u8>,
            #[prost(bytes = "vec", tag = "2")]
            pubkey: Vec<u8>,
            #[prost(int64, tag = "3")]
            created_at: i64,
            #[prost(int32, tag = "4")]
            kind: i32,
            #[prost(message, repeated, tag = "5")]
            tags: Vec<$tag>,
            #[prost(string, tag = "6")]
            content: String,
            #[prost(bytes = "vec", tag = "7")]
            sig: Vec<u8>,
        }

        #[derive(Clone, PartialEq, Message)]
        struct $batch {
            #[prost(message, repeated, tag = "1")]
            events: Vec<$event>,
        }
    };
}

messages!(ProtoEventBinary, Tag, EventBatchBinary);
messages!(ProtoEventHex, TagHex, EventBatchHex);

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TagHex {
    #[prost(message, repeated, tag = "2")]
    values_v2: Vec<TagValueBinary>,
}

#[derive(Clone, PartialEq, Message)]
struct TagValueBinary {
    #[prost(oneof = "TagValue", tags = "1, 2")]
    value: Option<TagValue>,
}

#[derive(Clone, PartialEq, Oneof)]
enum TagValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bytes = "vec", tag = "2")]
    Hex(Vec<u8>),
}

/// The schemas without the other fields, which are skipped.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Kind {
    #[prost(int32, tag = "4")]
    pub(crate) kind: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Pubkey {
    #[prost(bytes = "vec", tag = "2")]
    pubkey: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Both {
    #[prost(bytes = "vec", tag = "2")]
    pubkey: Vec<u8>,
    #[prost(int32, tag = "4")]
    kind: i32,
}

macro_rules! codec {
    ($codec:ident, $format:literal, $event:ident, $batch:ident, $tag:ident, $count_tag:ident) => {
        impl Codec for $codec {
            const FORMAT: &'static str = $format;
            const CHECKS: &'static [&'static str] = &["utf8"];

            type Event = $event;
            type Decoded<'a> = $event;

            fn parse(line: &str) -> Result<$event, BoxError> {
                let event: line::Event<'_> = serde_json::from_str(line)?;
                Ok($event {
                    id: event.id.into(),
                    pubkey: event.pubkey.into(),
                    created_at: event.created_at,
                    kind: event.kind.into(),
                    tags: event.tags.into_iter().map($tag).collect(),
                    content: event.content.into(),
                    sig: event.sig.into(),
                })
            }

            fn encode(event: &$event, out: &mut Vec<u8>) -> Result<(), BoxError> {
                Ok(event.encode(out)?)
            }

            fn decode(bytes: &[u8]) -> Result<$event, BoxError> {
                Ok($event::decode(bytes)?)
            }

            fn count(event: &$event, counts: &mut EventCounts) {
                counts.event(event.kind, event.created_at, &event.content);
                event.tags.iter().for_each(|tag| $count_tag(tag, counts));
            }

            fn encode_batch(events: &[$event], out: &mut Vec<u8>) -> Result<(), BoxError> {
                Ok($batch { events: events.to_vec() }.encode(out)?)
            }

            fn decode_batch(bytes: &[u8]) -> Result<Vec<$event>, BoxError> {
                Ok($batch::decode(bytes)?.events)
            }
        }

        impl Fields for $codec {
            fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
                Ok(Kind::decode(bytes)?.kind.try_into()?)
            }

            fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
                array(Pubkey::decode(bytes)?.pubkey)
            }

            fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
                let Both { pubkey, kind } = Both::decode(bytes)?;
                Ok((kind.try_into()?, array(pubkey)?))
            }
        }
    };
}

codec!(Binary, "proto-binary", ProtoEventBinary, EventBatchBinary, texts, count_texts);
codec!(BinaryHex, "proto-binary-hex", ProtoEventHex, EventBatchHex, values, count_values);

fn array(bytes: Vec<u8>) -> Result<[u8; 32], BoxError> {
    Ok(bytes.as_slice().try_into()?)
}

fn texts(tag: Vec<line::Text<'_>>) -> Tag {
    Tag { values: tag.into_iter().map(|text| text.0.into()).collect() }
}

fn count_texts(tag: &Tag, counts: &mut EventCounts) {
    counts.texts(&tag.values);
}

/// The schema has separate types for text and bytes, so the message has them before it is encoded.
fn values(tag: Vec<line::Text<'_>>) -> TagHex {
    let value = |text: line::Text<'_>| {
        let value = line::with_hex_bytes(&text.0, MIN_DIGITS, |bytes| match bytes {
            Some(bytes) => TagValue::Hex(bytes.to_vec()),
            None => TagValue::Text(text.0.to_string()),
        });
        TagValueBinary { value: Some(value) }
    };
    TagHex { values_v2: tag.into_iter().map(value).collect() }
}

fn count_values(tag: &TagHex, counts: &mut EventCounts) {
    counts.tag();
    for value in &tag.values_v2 {
        match &value.value {
            Some(TagValue::Text(text)) => counts.text(text),
            Some(TagValue::Hex(bytes)) => counts.hex(bytes),
            None => counts.text(""),
        }
    }
}

const MIN_DIGITS: usize = 8;
