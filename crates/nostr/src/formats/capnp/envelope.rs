//! What do the envelope's two blobs say?

use kernels::utf8;

use super::generated::nostr_event;
use super::*;
use crate::formats::compact::{self, Form};
use crate::input::Input;
use crate::{Tag, Value};

/// Refuses what the blobs cannot count.
pub(super) fn hold(event: &Event<'_>) -> Result<(), EncodeError> {
    EncodeError::at_most("tags", event.tags.len(), MAX_TAGS)?;
    for tag in event.tags {
        EncodeError::at_most("values of a tag", tag.len(), MAX_VALUES)?;
        for value in tag.iter().filter(|value| value.text_len() > MAX_VALUE_BYTES) {
            let len = value.hex_len(LEAST_DIGITS).unwrap_or(value.text_len());
            EncodeError::at_most("bytes of a value", len, MAX_VALUE_BYTES)?;
        }
    }
    Ok(())
}

/// Words of the event with its struct.
pub(super) fn words_at_most(event: &Event<'_>) -> usize {
    let values = event.tags.iter().flat_map(|tag| tag.iter());
    let values: usize = values.map(|value| 2 + value.text_len()).sum();
    let tags = 2 + event.tags.len() + values;
    3 + FIXED_BYTES.div_ceil(8) + tags.div_ceil(8) + event.content.len() / 8 + 1
}

/// Fills the struct; the tags are put together at the end of `scratch`.
pub(super) fn write(event: &Event<'_>, mut to: nostr_event::Builder<'_>, scratch: &mut Vec<u8>) {
    to.set_fixed_data(&fixed(event));
    let start = scratch.len();
    write_tags(event.tags, scratch);
    to.set_tag_data(&scratch[start..]);
    scratch.truncate(start);
    to.set_content(event.content);
}

fn fixed(event: &Event<'_>) -> [u8; FIXED_BYTES] {
    let mut bytes = [0; FIXED_BYTES];
    bytes[..32].copy_from_slice(&event.id);
    bytes[32..64].copy_from_slice(&event.pubkey);
    bytes[64..128].copy_from_slice(&event.sig);
    bytes[128..136].copy_from_slice(&event.created_at.to_le_bytes());
    bytes[136..].copy_from_slice(&event.kind.to_le_bytes());
    bytes
}

fn write_tags(tags: &[Tag<'_>], out: &mut Vec<u8>) {
    out.extend_from_slice(&(tags.len() as u16).to_le_bytes());
    for tag in tags {
        out.push(tag.len() as u8);
        tag.iter().for_each(|value| write_value(value, out));
    }
}

#[inline]
fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    compact::write(value, LEAST_DIGITS, out, |form, len, out| {
        let flag = if form == Form::Bytes { IS_HEX } else { 0 };
        out.extend_from_slice(&(flag | len as u16).to_le_bytes());
    });
}

/// The event of a struct.
pub(super) fn read<'a>(
    from: nostr_event::Reader<'a>,
    place: Place<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let fixed = Fixed::of(from, place)?;
    let data = from.get_tag_data().map_err(refused)?;
    let in_message = |error: DecodeError| {
        let start = place.offset(data);
        DecodeError::new(if start > 0 { start + error.offset } else { 0 }, error.reason)
    };
    let tags = tags(Input::new(data), arena, limits).map_err(in_message)?;
    let content = from.get_content().map_err(refused)?.as_bytes();
    limits.hold_content(content.len(), place.offset(content))?;
    Ok(Event {
        id: *fixed.part(0),
        pubkey: *fixed.part(32),
        created_at: fixed.created_at(),
        kind: fixed.kind(),
        tags,
        content: utf8::from_utf8(content).ok_or_else(|| place.fault(content, Reason::Utf8))?,
        sig: *fixed.part(64),
    })
}

/// The first blob.
pub(super) struct Fixed<'a>(&'a [u8; FIXED_BYTES]);

impl<'a> Fixed<'a> {
    pub(super) fn of(from: nostr_event::Reader<'a>, place: Place<'_>) -> Result<Self, DecodeError> {
        let data = from.get_fixed_data().map_err(refused)?;
        let wrong_len = |_| place.fault(data, Reason::Expected("138 bytes of fixed data"));
        data.try_into().map(Self).map_err(wrong_len)
    }

    /// The `N` bytes from `start`, which is a constant.
    #[inline]
    pub(super) fn part<const N: usize>(&self, start: usize) -> &'a [u8; N] {
        self.0[start..].first_chunk().expect("the parts end with the blob")
    }

    #[inline]
    pub(super) fn created_at(&self) -> i64 {
        i64::from_le_bytes(*self.part(128))
    }

    #[inline]
    pub(super) fn kind(&self) -> u16 {
        u16::from_le_bytes(*self.part(136))
    }
}

fn tags<'a>(
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let count = usize::from(u16::from_le_bytes(*input.array()?));
    limits.hold_tags(count, 0)?;
    if count > input.rest().len() {
        return Err(input.fault(Reason::Truncated));
    }
    let mut tags = BumpVec::with_capacity_in(count, arena);
    for _ in 0..count {
        tags.push(tag(&mut input, arena, limits)?);
    }
    input.end()?;
    Ok(tags.into_bump_slice())
}

#[inline]
fn tag<'a>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Tag<'a>, DecodeError> {
    let start = *input;
    let count = usize::from(input.byte()?);
    limits.hold_tag_values(count, start.offset())?;
    if 2 * count > input.rest().len() {
        return Err(start.fault(Reason::Truncated));
    }
    let mut values = BumpVec::with_capacity_in(count, arena);
    for _ in 0..count {
        let start = input.offset();
        let value = value(input)?;
        limits.hold_value(value.text_len(), start)?;
        values.push(value);
    }
    Ok(values.into_bump_slice())
}

#[inline]
fn value<'a>(input: &mut Input<'a>) -> Result<Value<'a>, DecodeError> {
    let head = u16::from_le_bytes(*input.array()?);
    let len = usize::from(head & !IS_HEX);
    Ok(if head & IS_HEX == 0 {
        Value::Text(input.text(len)?)
    } else {
        Value::Hex(input.take(len)?)
    })
}

const FIXED_BYTES: usize = 138;

/// In the head of a value: it is the bytes of hexadecimal.
const IS_HEX: u16 = 1 << 15;

const MAX_TAGS: usize = u16::MAX as usize;
const MAX_VALUES: usize = u8::MAX as usize;
const MAX_VALUE_BYTES: usize = (1 << 15) - 1;
