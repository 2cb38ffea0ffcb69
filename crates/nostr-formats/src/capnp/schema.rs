//! The schema with a field for every field of the event.

use bumpalo::Bump;
use kernels::{hex, utf8};

use super::records::{EventBuilder, EventReader, TagValueBuilder, TagValueReader, TextOrHex};
use super::stream::{Origin, collect, convert_error};
use crate::tags::MIN_DIGITS;
use nostr::limits::Budget;
use nostr::{DecodeError, Event, Field, Reason, Tag, Value};

/// Maximum size of the event with its struct in words.
pub(super) fn max_words(event: &Event<'_>) -> usize {
    let value = |value: &Value<'_>| 2 + value.text_len() / 8 + 1;
    let tag = |tag: &Tag<'_>| 2 + tag.iter().map(value).sum::<usize>();
    7 + 16 + event.tags.iter().map(tag).sum::<usize>() + event.content.len() / 8 + 1
}

/// Fills the struct.
pub(super) fn write(event: &Event<'_>, mut to: EventBuilder<'_>) {
    to.set_id(&event.id);
    to.set_pubkey(&event.pubkey);
    to.set_created_at(event.created_at);
    to.set_kind(event.kind);
    let mut tags = to.init_tags(event.tags.len() as u32);
    for (tag, index) in event.tags.iter().zip(0..) {
        let mut values = tags.reborrow().init(index, tag.len() as u32);
        for (value, index) in tag.iter().zip(0..) {
            write_value(value, values.reborrow().get(index));
        }
    }
    to.set_content(event.content);
    to.set_sig(&event.sig);
}

#[inline]
fn write_value(value: &Value<'_>, mut to: TagValueBuilder<'_>) {
    match (value.hex_len(MIN_DIGITS), value) {
        (Some(_), Value::Hex(bytes)) => to.set_hex(bytes),
        (Some(len), Value::Text(digits)) => {
            let is_hex = hex::decode(digits.as_bytes(), to.init_hex(len as u32));
            assert!(is_hex, "`hex_len` checked the digits");
        }
        (None, value) => to.set_text(value.to_text().as_ref()),
    }
}

/// Decodes the struct.
pub(super) fn read<'a>(
    from: EventReader<'a>,
    origin: Origin<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Event<'a>, DecodeError> {
    let content = from.content().map_err(convert_error)?.as_bytes();
    limits.check_content(content.len(), origin.offset(content))?;
    Ok(Event {
        id: fixed(from.id(), Field::Id, origin)?,
        pubkey: fixed(from.pubkey(), Field::Pubkey, origin)?,
        created_at: from.created_at(),
        kind: from.kind(),
        tags: tags(from, origin, arena, limits)?,
        content: utf8::from_utf8(content).ok_or_else(|| origin.error(content, Reason::Utf8))?,
        sig: fixed(from.sig(), Field::Sig, origin)?,
    })
}

/// Checks that a field has `N` bytes.
#[inline]
pub(super) fn fixed<const N: usize>(
    data: ::capnp::Result<&[u8]>,
    field: Field,
    origin: Origin<'_>,
) -> Result<[u8; N], DecodeError> {
    let data = data.map_err(convert_error)?;
    data.try_into().map_err(|_| origin.error(data, Reason::Length(field)))
}

fn tags<'a>(
    from: EventReader<'a>,
    origin: Origin<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let tags = from.tags().map_err(convert_error)?;
    limits.check_tags(tags.len() as usize, 0)?;
    collect(tags, usize::MAX, arena, |tag| {
        let values = tag.map_err(convert_error)?;
        limits.check_tag_values(values.len() as usize, 0)?;
        collect(values, usize::MAX, arena, |from| value(from, origin, limits))
    })
}

#[inline]
fn value<'a>(
    from: TagValueReader<'a>,
    origin: Origin<'a>,
    limits: &Budget<'_>,
) -> Result<Value<'a>, DecodeError> {
    let unknown = |_| DecodeError::new(0, Reason::Expected("text or bytes of a value"));
    let value = match from.which().map_err(unknown)?.map_err(convert_error)? {
        TextOrHex::Text(text) => {
            let text = text.as_bytes();
            Value::Text(utf8::from_utf8(text).ok_or_else(|| origin.error(text, Reason::Utf8))?)
        }
        TextOrHex::Hex(bytes) => Value::Hex(bytes),
    };
    limits.check_value(value.text_len(), 0)?;
    Ok(value)
}
