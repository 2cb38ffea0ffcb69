//! The two blobs of the envelope.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::utf8;

use super::records::{EnvelopeBuilder, EnvelopeReader};
use super::stream::{Origin, convert_error};
use crate::tags::{self, Form, MIN_DIGITS};
use nostr::input::Input;
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Event, Reason, Tag, Value};

/// Rejects an event with counts or lengths that the blobs cannot hold.
pub(super) fn check(event: &Event<'_>) -> Result<(), EncodeError> {
    EncodeError::at_most("tags", event.tags.len(), MAX_TAGS)?;
    for tag in event.tags {
        EncodeError::at_most("values in a tag", tag.len(), MAX_VALUES)?;
        for value in tag.iter().filter(|value| value.text_len() > MAX_VALUE_BYTES) {
            let len = value.hex_len(MIN_DIGITS).unwrap_or(value.text_len());
            EncodeError::at_most("bytes in a value", len, MAX_VALUE_BYTES)?;
        }
    }
    Ok(())
}

/// Maximum size of the event with its struct in words.
pub(super) fn max_words(event: &Event<'_>) -> usize {
    let values = event.tags.iter().flat_map(|tag| tag.iter());
    let values: usize = values.map(|value| 2 + value.text_len()).sum();
    let tags = 2 + event.tags.len() + values;
    3 + FIXED_DATA_BYTES.div_ceil(8) + tags.div_ceil(8) + event.content.len() / 8 + 1
}

/// Fills the struct; the tag data is assembled at the end of `scratch`.
pub(super) fn write(event: &Event<'_>, mut to: EnvelopeBuilder<'_>, scratch: &mut Vec<u8>) {
    to.set_fixed_data(&fixed_data(event));
    let start = scratch.len();
    write_tags(event.tags, scratch);
    to.set_tag_data(&scratch[start..]);
    scratch.truncate(start);
    to.set_content(event.content);
}

fn fixed_data(event: &Event<'_>) -> [u8; FIXED_DATA_BYTES] {
    let mut bytes = [0; FIXED_DATA_BYTES];
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
    tags::write_value(value, MIN_DIGITS, out, |form, len, out| {
        let flag = if form == Form::Bytes { IS_HEX } else { 0 };
        out.extend_from_slice(&(flag | len as u16).to_le_bytes());
    });
}

/// Decodes the struct.
pub(super) fn read<'a>(
    from: EnvelopeReader<'a>,
    origin: Origin<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Event<'a>, DecodeError> {
    let fixed = FixedData::new(from, origin)?;
    let data = from.tag_data().map_err(convert_error)?;
    let in_message = |error: DecodeError| {
        let start = origin.offset(data);
        DecodeError::new(if start > 0 { start + error.offset } else { 0 }, error.reason)
    };
    let tags = read_tags(Input::new(data), arena, limits).map_err(in_message)?;
    let content = from.content().map_err(convert_error)?.as_bytes();
    limits.check_content(content.len(), origin.offset(content))?;
    Ok(Event {
        id: *fixed.part(0),
        pubkey: *fixed.part(32),
        created_at: fixed.created_at(),
        kind: fixed.kind(),
        tags,
        content: utf8::from_utf8(content).ok_or_else(|| origin.error(content, Reason::Utf8))?,
        sig: *fixed.part(64),
    })
}

/// The first blob.
pub(super) struct FixedData<'a>(&'a [u8; FIXED_DATA_BYTES]);

impl<'a> FixedData<'a> {
    pub(super) fn new(from: EnvelopeReader<'a>, origin: Origin<'_>) -> Result<Self, DecodeError> {
        let data = from.fixed_data().map_err(convert_error)?;
        let wrong_len = |_| origin.error(data, Reason::Expected("138 bytes of fixed data"));
        data.try_into().map(Self).map_err(wrong_len)
    }

    /// The field of `N` bytes at the constant offset `start`.
    #[inline]
    pub(super) fn part<const N: usize>(&self, start: usize) -> &'a [u8; N] {
        self.0[start..].first_chunk().expect("every field lies within the blob")
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

fn read_tags<'a>(
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let count = usize::from(u16::from_le_bytes(*input.array()?));
    limits.check_tags(count, 0)?;
    if count > input.rest().len() {
        return Err(input.error(Reason::Truncated));
    }
    let mut tags = BumpVec::with_capacity_in(count, arena);
    for _ in 0..count {
        tags.push(read_tag(&mut input, arena, limits)?);
    }
    input.end()?;
    Ok(tags.into_bump_slice())
}

#[inline]
fn read_tag<'a>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Tag<'a>, DecodeError> {
    let start = *input;
    let count = usize::from(input.byte()?);
    limits.check_tag_values(count, start.offset())?;
    if 2 * count > input.rest().len() {
        return Err(start.error(Reason::Truncated));
    }
    let mut values = BumpVec::with_capacity_in(count, arena);
    for _ in 0..count {
        let start = input.offset();
        let value = read_value(input)?;
        limits.check_value(value.text_len(), start)?;
        values.push(value);
    }
    Ok(values.into_bump_slice())
}

#[inline]
fn read_value<'a>(input: &mut Input<'a>) -> Result<Value<'a>, DecodeError> {
    let head = u16::from_le_bytes(*input.array()?);
    let len = usize::from(head & !IS_HEX);
    Ok(if head & IS_HEX == 0 {
        Value::Text(input.text(len)?)
    } else {
        Value::Hex(input.take(len)?)
    })
}

pub(super) const FIXED_DATA_BYTES: usize = 138;

/// The bit in the head of a value that is set for the bytes of hexadecimal.
const IS_HEX: u16 = 1 << 15;

const MAX_TAGS: usize = u16::MAX as usize;
const MAX_VALUES: usize = u8::MAX as usize;
const MAX_VALUE_BYTES: usize = (1 << 15) - 1;
