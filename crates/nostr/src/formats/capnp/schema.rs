//! What does a message say that has a field for each field?

use kernels::{hex, utf8};

use super::generated::{event, tag_value};
use super::*;
use crate::{Field, Tag, Value};

/// Words of the event with its struct.
pub(super) fn words_at_most(event: &Event<'_>) -> usize {
    let value = |value: &Value<'_>| 2 + value.text_len() / 8 + 1;
    let tag = |tag: &Tag<'_>| 2 + tag.iter().map(value).sum::<usize>();
    7 + 16 + event.tags.iter().map(tag).sum::<usize>() + event.content.len() / 8 + 1
}

/// Fills the struct.
pub(super) fn write(event: &Event<'_>, mut to: event::Builder<'_>) {
    to.set_id(&event.id);
    to.set_pubkey(&event.pubkey);
    to.set_created_at(event.created_at);
    to.set_kind(event.kind);
    let mut tags = to.reborrow().init_tags(event.tags.len() as u32);
    for (tag, at) in event.tags.iter().zip(0..) {
        let mut values = tags.reborrow().init(at, tag.len() as u32);
        for (value, at) in tag.iter().zip(0..) {
            write_value(value, values.reborrow().get(at));
        }
    }
    to.set_content(event.content);
    to.set_sig(&event.sig);
}

#[inline]
fn write_value(value: &Value<'_>, mut to: tag_value::Builder<'_>) {
    match (value.hex_len(LEAST_DIGITS), value) {
        (Some(_), Value::Hex(bytes)) => to.set_hex(bytes),
        (Some(len), Value::Text(digits)) => {
            let is_hex = hex::decode(digits.as_bytes(), to.init_hex(len as u32));
            assert!(is_hex, "asked before");
        }
        (None, value) => to.set_text(value.to_text().as_ref()),
    }
}

/// The event of a struct.
pub(super) fn read<'a>(
    from: event::Reader<'a>,
    place: Place<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let content = from.get_content().map_err(refused)?.as_bytes();
    limits.hold_content(content.len(), place.offset(content))?;
    Ok(Event {
        id: fixed(from.get_id(), Field::Id, place)?,
        pubkey: fixed(from.get_pubkey(), Field::Pubkey, place)?,
        created_at: from.get_created_at(),
        kind: from.get_kind(),
        tags: tags(from, place, arena, limits)?,
        content: utf8::from_utf8(content).ok_or_else(|| place.fault(content, Reason::Utf8))?,
        sig: fixed(from.get_sig(), Field::Sig, place)?,
    })
}

/// A field of `N` bytes.
#[inline]
pub(super) fn fixed<const N: usize>(
    data: ::capnp::Result<&[u8]>,
    field: Field,
    place: Place<'_>,
) -> Result<[u8; N], DecodeError> {
    let data = data.map_err(refused)?;
    data.try_into().map_err(|_| place.fault(data, Reason::Length(field)))
}

fn tags<'a>(
    from: event::Reader<'a>,
    place: Place<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let tags = from.get_tags().map_err(refused)?;
    limits.hold_tags(tags.len() as usize, 0)?;
    collect(tags, arena, |tag| {
        let values = tag.map_err(refused)?;
        limits.hold_tag_values(values.len() as usize, 0)?;
        collect(values, arena, |from| value(from, place, limits))
    })
}

#[inline]
fn value<'a>(
    from: tag_value::Reader<'a>,
    place: Place<'a>,
    limits: &Limits,
) -> Result<Value<'a>, DecodeError> {
    let unknown = |_| DecodeError::new(0, Reason::Expected("a value's text or bytes"));
    let value = match from.which().map_err(unknown)? {
        tag_value::Text(text) => {
            let text = text.map_err(refused)?.as_bytes();
            Value::Text(utf8::from_utf8(text).ok_or_else(|| place.fault(text, Reason::Utf8))?)
        }
        tag_value::Hex(bytes) => Value::Hex(bytes.map_err(refused)?),
    };
    limits.hold_value(value.text_len(), 0)?;
    Ok(value)
}
