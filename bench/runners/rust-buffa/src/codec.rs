//! `proto-string`, `proto-binary` and `proto-binary-hex`: messages are written, and read as views.

use buffa::{LazyMessageView, Message, MessageView};
use runner_shell::BoxError;
use runner_shell::nostr::{Codec, EventCounts, Fields, line};

pub(crate) struct Strings;
pub(crate) struct Binary;
pub(crate) struct BinaryHex;

/// The generated names, the same for all schemas.
mod strings {
    pub(super) use crate::messages::nostr::{
        EventBatch as Batch, EventBatchView as BatchView, ProtoEvent as Event,
        ProtoEventLazyView as LazyView, ProtoEventView as View, Tag, TagView,
    };
}

mod binary {
    pub(super) use crate::messages::nostr_binary::{
        EventBatchBinary as Batch, EventBatchBinaryView as BatchView, ProtoEventBinary as Event,
        ProtoEventBinaryLazyView as LazyView, ProtoEventBinaryView as View, TagBinary as Tag,
        TagBinaryView as TagView,
    };
}

mod hex {
    pub(super) use crate::messages::nostr_hex::__buffa::oneof::tag_value_binary::Value;
    pub(super) use crate::messages::nostr_hex::__buffa::view::oneof::tag_value_binary::Value as ValueView;
    pub(super) use crate::messages::nostr_hex::{
        EventBatchBinary as Batch, EventBatchBinaryView as BatchView, ProtoEventBinary as Event,
        ProtoEventBinaryLazyView as LazyView, ProtoEventBinaryView as View, TagBinary as Tag,
        TagBinaryView as TagView, TagValueBinary as TagValue,
    };
}

macro_rules! codec {
    ($codec:ident, $format:literal, $schema:ident, $bytes:ident, $pubkey:ident, $tag:ident, $count_tag:ident) => {
        impl Codec for $codec {
            const FORMAT: &'static str = $format;
            const CHECKS: &'static [&'static str] = &["utf8"];

            type Event = $schema::Event;
            type Decoded<'a> = $schema::View<'a>;

            fn parse(line: &str) -> Result<$schema::Event, BoxError> {
                let event: line::Event<'_> = serde_json::from_str(line)?;
                Ok($schema::Event {
                    id: $bytes(&event.id),
                    pubkey: $bytes(&event.pubkey),
                    created_at: event.created_at,
                    kind: event.kind.into(),
                    tags: event.tags.into_iter().map($tag).collect(),
                    content: event.content.into(),
                    sig: $bytes(&event.sig),
                })
            }

            fn encode(event: &$schema::Event, out: &mut Vec<u8>) -> Result<(), BoxError> {
                Ok(event.try_encode(out)?)
            }

            fn decode(bytes: &[u8]) -> Result<$schema::View<'_>, BoxError> {
                Ok($schema::View::decode_view(bytes)?)
            }

            fn count(event: &$schema::View<'_>, counts: &mut EventCounts) {
                counts.event(event.kind, event.created_at, event.content);
                event.tags.iter().for_each(|tag| $count_tag(tag, counts));
            }

            fn encode_batch(events: &[$schema::Event], out: &mut Vec<u8>) -> Result<(), BoxError> {
                Ok($schema::Batch { events: events.to_vec() }.try_encode(out)?)
            }

            fn decode_batch(bytes: &[u8]) -> Result<Vec<$schema::View<'_>>, BoxError> {
                let mut batch = $schema::BatchView::decode_view(bytes)?;
                Ok(std::mem::take(batch.events.as_mut_vec()))
            }
        }

        /// By its lazy views, which leave the tags as they are.
        impl Fields for $codec {
            fn kind(bytes: &[u8]) -> Result<u16, BoxError> {
                Ok($schema::LazyView::decode_lazy(bytes)?.kind.try_into()?)
            }

            fn pubkey(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
                $pubkey($schema::LazyView::decode_lazy(bytes)?.pubkey)
            }

            fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), BoxError> {
                let event = $schema::LazyView::decode_lazy(bytes)?;
                Ok((event.kind.try_into()?, $pubkey(event.pubkey)?))
            }
        }
    };
}

codec!(Strings, "proto-string", strings, digits, of_digits, texts, count_texts);
codec!(Binary, "proto-binary", binary, bytes, of_bytes, binary_texts, count_binary_texts);
codec!(BinaryHex, "proto-binary-hex", hex, bytes, of_bytes, values, count_values);

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

fn of_digits(digits: &str) -> Result<[u8; 32], BoxError> {
    line::bytes(digits)
}

fn of_bytes(bytes: &[u8]) -> Result<[u8; 32], BoxError> {
    Ok(bytes.try_into()?)
}

fn texts(tag: Vec<line::Text<'_>>) -> strings::Tag {
    strings::Tag { values: tag.into_iter().map(|text| text.0.into()).collect() }
}

fn count_texts(tag: &strings::TagView<'_>, counts: &mut EventCounts) {
    counts.texts(tag.values.iter());
}

fn binary_texts(tag: Vec<line::Text<'_>>) -> binary::Tag {
    binary::Tag { values: tag.into_iter().map(|text| text.0.into()).collect() }
}

fn count_binary_texts(tag: &binary::TagView<'_>, counts: &mut EventCounts) {
    counts.texts(tag.values.iter());
}

/// The schema has separate types for text and bytes, so the message has them before it is encoded.
fn values(tag: Vec<line::Text<'_>>) -> hex::Tag {
    let value = |text: line::Text<'_>| {
        let value = line::with_hex_bytes(&text.0, MIN_DIGITS, |bytes| match bytes {
            Some(bytes) => hex::Value::Hex(bytes.to_vec()),
            None => hex::Value::Text(text.0.to_string()),
        });
        hex::TagValue { value: Some(value) }
    };
    hex::Tag { values_v2: tag.into_iter().map(value).collect() }
}

fn count_values(tag: &hex::TagView<'_>, counts: &mut EventCounts) {
    counts.tag();
    for value in tag.values_v2.iter() {
        match &value.value {
            Some(hex::ValueView::Text(text)) => counts.text(text),
            Some(hex::ValueView::Hex(bytes)) => counts.hex(bytes),
            None => counts.text(""),
        }
    }
}

const MIN_DIGITS: usize = 8;
