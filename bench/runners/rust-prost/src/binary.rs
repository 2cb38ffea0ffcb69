//! `proto-binary` and `proto-binary-hex`: id, key and signature are bytes, and in the second so are the values of
//! tags that are hexadecimal.

use prost::{Message, Oneof};
use runner_shell::Refusal;
use runner_shell::nostr::{Codec, Fields, Tally, line};

use crate::text::Tag;

pub(crate) struct Binary;
pub(crate) struct BinaryHex;

/// What prost generates for the two schemas, which differ in their tags.
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

/// The schemas without the other fields, which are passed over.
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
    ($codec:ident, $format:literal, $event:ident, $batch:ident, $tag:ident, $tell_tag:ident) => {
        impl Codec for $codec {
            const FORMAT: &'static str = $format;
            const CHECKS: &'static [&'static str] = &["utf8"];

            type Event = $event;
            type Decoded<'a> = $event;

            fn parse(line: &str) -> Result<$event, Refusal> {
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

            fn encode(event: &$event, out: &mut Vec<u8>) -> Result<(), Refusal> {
                Ok(event.encode(out)?)
            }

            fn decode(bytes: &[u8]) -> Result<$event, Refusal> {
                Ok($event::decode(bytes)?)
            }

            fn tell(event: &$event, tally: &mut Tally) {
                tally.event(event.kind, event.created_at, &event.content);
                event.tags.iter().for_each(|tag| $tell_tag(tag, tally));
            }

            fn encode_batch(events: &[$event], out: &mut Vec<u8>) -> Result<(), Refusal> {
                Ok($batch { events: events.to_vec() }.encode(out)?)
            }

            fn decode_batch(bytes: &[u8]) -> Result<Vec<$event>, Refusal> {
                Ok($batch::decode(bytes)?.events)
            }
        }

        impl Fields for $codec {
            fn kind(bytes: &[u8]) -> Result<u16, Refusal> {
                Ok(Kind::decode(bytes)?.kind.try_into()?)
            }

            fn pubkey(bytes: &[u8]) -> Result<[u8; 32], Refusal> {
                array(Pubkey::decode(bytes)?.pubkey)
            }

            fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), Refusal> {
                let Both { pubkey, kind } = Both::decode(bytes)?;
                Ok((kind.try_into()?, array(pubkey)?))
            }
        }
    };
}

codec!(Binary, "proto-binary", ProtoEventBinary, EventBatchBinary, texts, tell_texts);
codec!(BinaryHex, "proto-binary-hex", ProtoEventHex, EventBatchHex, values, tell_values);

fn array(bytes: Vec<u8>) -> Result<[u8; 32], Refusal> {
    Ok(bytes.as_slice().try_into()?)
}

fn texts(tag: Vec<line::Text<'_>>) -> Tag {
    Tag { values: tag.into_iter().map(|text| text.0.into()).collect() }
}

fn tell_texts(tag: &Tag, tally: &mut Tally) {
    tally.texts(&tag.values);
}

/// The schema tells text from bytes, and so the message does before it is encoded.
fn values(tag: Vec<line::Text<'_>>) -> TagHex {
    let value = |text: line::Text<'_>| {
        let value = line::with_spelled(&text.0, LEAST_DIGITS, |bytes| match bytes {
            Some(bytes) => TagValue::Hex(bytes.to_vec()),
            None => TagValue::Text(text.0.to_string()),
        });
        TagValueBinary { value: Some(value) }
    };
    TagHex { values_v2: tag.into_iter().map(value).collect() }
}

fn tell_values(tag: &TagHex, tally: &mut Tally) {
    tally.tag();
    for value in &tag.values_v2 {
        match &value.value {
            Some(TagValue::Text(text)) => tally.text(text),
            Some(TagValue::Hex(bytes)) => tally.hex(bytes),
            None => tally.text(""),
        }
    }
}

const LEAST_DIGITS: usize = 8;
