//! `proto-string`, `proto-binary` and `proto-binary-hex`: messages are written, and read as views.

use buffa::{LazyMessageView, Message, MessageView};
use runner_shell::Refusal;
use runner_shell::nostr::{Codec, Fields, Tally, line};

pub(crate) struct Strings;
pub(crate) struct Binary;
pub(crate) struct BinaryHex;

/// The generated names, alike for all schemas.
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
    ($codec:ident, $format:literal, $schema:ident, $bytes:ident, $pubkey:ident, $tag:ident, $tell_tag:ident) => {
        impl Codec for $codec {
            const FORMAT: &'static str = $format;
            const CHECKS: &'static [&'static str] = &["utf8"];

            type Event = $schema::Event;
            type Decoded<'a> = $schema::View<'a>;

            fn parse(line: &str) -> Result<$schema::Event, Refusal> {
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

            fn encode(event: &$schema::Event, out: &mut Vec<u8>) -> Result<(), Refusal> {
                Ok(event.try_encode(out)?)
            }

            fn decode(bytes: &[u8]) -> Result<$schema::View<'_>, Refusal> {
                Ok($schema::View::decode_view(bytes)?)
            }

            fn tell(event: &$schema::View<'_>, tally: &mut Tally) {
                tally.event(event.kind, event.created_at, event.content);
                event.tags.iter().for_each(|tag| $tell_tag(tag, tally));
            }

            fn encode_batch(events: &[$schema::Event], out: &mut Vec<u8>) -> Result<(), Refusal> {
                Ok($schema::Batch { events: events.to_vec() }.try_encode(out)?)
            }

            fn decode_batch(bytes: &[u8]) -> Result<Vec<$schema::View<'_>>, Refusal> {
                let mut batch = $schema::BatchView::decode_view(bytes)?;
                Ok(std::mem::take(batch.events.as_mut_vec()))
            }
        }

        /// By its lazy views, which leave the tags as they are.
        impl Fields for $codec {
            fn kind(bytes: &[u8]) -> Result<u16, Refusal> {
                Ok($schema::LazyView::decode_lazy(bytes)?.kind.try_into()?)
            }

            fn pubkey(bytes: &[u8]) -> Result<[u8; 32], Refusal> {
                $pubkey($schema::LazyView::decode_lazy(bytes)?.pubkey)
            }

            fn both(bytes: &[u8]) -> Result<(u16, [u8; 32]), Refusal> {
                let event = $schema::LazyView::decode_lazy(bytes)?;
                Ok((event.kind.try_into()?, $pubkey(event.pubkey)?))
            }
        }
    };
}

codec!(Strings, "proto-string", strings, digits, of_digits, texts, tell_texts);
codec!(Binary, "proto-binary", binary, bytes, of_bytes, binary_texts, tell_binary_texts);
codec!(BinaryHex, "proto-binary-hex", hex, bytes, of_bytes, values, tell_values);

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(bytes: &[u8]) -> Vec<u8> {
    bytes.to_vec()
}

fn of_digits(digits: &str) -> Result<[u8; 32], Refusal> {
    line::bytes(digits)
}

fn of_bytes(bytes: &[u8]) -> Result<[u8; 32], Refusal> {
    Ok(bytes.try_into()?)
}

fn texts(tag: Vec<line::Text<'_>>) -> strings::Tag {
    strings::Tag { values: tag.into_iter().map(|text| text.0.into()).collect() }
}

fn tell_texts(tag: &strings::TagView<'_>, tally: &mut Tally) {
    tally.texts(tag.values.iter());
}

fn binary_texts(tag: Vec<line::Text<'_>>) -> binary::Tag {
    binary::Tag { values: tag.into_iter().map(|text| text.0.into()).collect() }
}

fn tell_binary_texts(tag: &binary::TagView<'_>, tally: &mut Tally) {
    tally.texts(tag.values.iter());
}

/// The schema tells text from bytes, and so the message does before it is encoded.
fn values(tag: Vec<line::Text<'_>>) -> hex::Tag {
    let value = |text: line::Text<'_>| {
        let value = line::with_spelled(&text.0, LEAST_DIGITS, |bytes| match bytes {
            Some(bytes) => hex::Value::Hex(bytes.to_vec()),
            None => hex::Value::Text(text.0.to_string()),
        });
        hex::TagValue { value: Some(value) }
    };
    hex::Tag { values_v2: tag.into_iter().map(value).collect() }
}

fn tell_values(tag: &hex::TagView<'_>, tally: &mut Tally) {
    tally.tag();
    for value in tag.values_v2.iter() {
        match &value.value {
            Some(hex::ValueView::Text(text)) => tally.text(text),
            Some(hex::ValueView::Hex(bytes)) => tally.hex(bytes),
            None => tally.text(""),
        }
    }
}

const LEAST_DIGITS: usize = 8;
