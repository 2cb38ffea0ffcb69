//! DannyPack: fixed offsets, then tags and content. Hand-written, and sound.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 32 | `id` |
//! | 32 | 32 | `pubkey` |
//! | 64 | 64 | `sig` |
//! | 128 | 8 | `created_at`, little-endian, signed |
//! | 136 | 2 | `kind`, little-endian |
//! | 138 | varint | bytes of the tags |
//! | | varint | how many tags, then for each: |
//! | | 1 | how many values, then for each: |
//! | | 1… | head of the value |
//! | | … | the value |
//! | | 1… | head of the content |
//! | | … | the content |
//!
//! | bits of a head | |
//! |---|---|
//! | 7 | whether bytes follow that digits spell, and no text |
//! | 0–6 | how many bytes follow; 127: a varint behind the head says it |
//!
//! Values and content are bytes if they are lower-case hexadecimal of an even number of digits, eight at
//! least. A tag has up to 255 values; one with more is refused. Varints are LEB128 and minimal. A batch
//! is [framed].

mod fields;
#[cfg(test)]
mod tests;

use bumpalo::Bump;

use super::compact::{self, Form, LEAST_DIGITS};
use super::tags::{self, Layout};
use super::{framed, or_undo};
use crate::input::{Input, varint_len, write_varint};
use crate::{DecodeError, EncodeError, Event, Limits, Reason, Tag};
pub use fields::{Fields, Tags};

/// Appends `event`.
///
/// # Errors
/// If a tag has more than 255 values; then nothing was appended.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.reserve(HEAD_BYTES + 16 + event.content.len() + 48 * event.tags.len());
    or_undo(out, |out| {
        out.extend_from_slice(&event.id);
        out.extend_from_slice(&event.pubkey);
        out.extend_from_slice(&event.sig);
        out.extend_from_slice(&event.created_at.to_le_bytes());
        out.extend_from_slice(&event.kind.to_le_bytes());
        write_tags(event.tags, out)?;
        compact::write_text(event.content.as_bytes(), LEAST_DIGITS, out, write_head);
        Ok(())
    })
}

/// The event that `bytes` are.
///
/// # Errors
/// If they are no event of the format, or over a limit.
pub fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let mut input = Input::new(bytes);
    let (id, pubkey, sig) = (*input.array()?, *input.array()?, *input.array()?);
    let created_at = i64::from_le_bytes(*input.array()?);
    let kind = u16::from_le_bytes(*input.array()?);
    let tags = read_tags(&mut input, arena, limits)?;
    let content = content(&mut input, arena, limits)?;
    input.end()?;
    Ok(Event { id, pubkey, created_at, kind, tags, content, sig })
}

/// Appends `events`, [framed].
///
/// # Errors
/// As [`encode`].
pub fn encode_batch(events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    framed::encode(events, out, encode)
}

/// The events of a batch.
///
/// # Errors
/// As [`decode`], and if there are more than the limit.
pub fn decode_batch<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Event<'a>], DecodeError> {
    framed::decode(bytes, arena, limits, decode)
}

/// Tags behind their length, for which room is left that is most often the right one.
fn write_tags(tags: &[Tag<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = out.len();
    let room = if tags.len() < 3 { 1 } else { 2 };
    out.extend_from_slice(&[0; 2][..room]);
    write_varint(tags.len() as u64, out);
    for tag in tags {
        EncodeError::at_most("values of a tag", tag.len(), u8::MAX.into())?;
        out.push(tag.len() as u8);
        for value in *tag {
            compact::write(value, LEAST_DIGITS, out, write_head);
        }
    }
    write_len(start, room, out);
    Ok(())
}

/// Says at `start`, where there is `room`, how many bytes follow the room.
fn write_len(start: usize, room: usize, out: &mut Vec<u8>) {
    let len = (out.len() - start - room) as u64;
    match (room, varint_len(len)) {
        (1, 1) => out[start] = len as u8,
        (2, 2) => out[start..start + 2].copy_from_slice(&[len as u8 | 0x80, (len >> 7) as u8]),
        _ => {
            let mut varint = Vec::new();
            write_varint(len, &mut varint);
            out.splice(start..start + room, varint);
        }
    }
}

#[inline(always)]
fn write_head(form: Form, len: usize, out: &mut Vec<u8>) {
    let is_bytes = if form == Form::Bytes { IS_BYTES } else { 0 };
    if len < LONG {
        out.push(is_bytes | len as u8);
    } else {
        out.push(is_bytes | LONG as u8);
        write_varint(len as u64, out);
    }
}

#[inline(always)]
fn read_tags<'a>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let mut part = section(input)?;
    let tags = tags::read::<Counted>(&mut part, arena, limits)?;
    part.end()?;
    Ok(tags)
}

/// The bytes of the tags.
#[inline(always)]
fn section<'a>(input: &mut Input<'a>) -> Result<Input<'a>, DecodeError> {
    let len = input.varint()?;
    input.part(usize::try_from(len).unwrap_or(usize::MAX))
}

#[inline(always)]
fn content<'a>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a str, DecodeError> {
    let start = input.offset();
    match Counted::head(input)? {
        (Form::Text, len) => {
            limits.hold_content(len, start)?;
            input.text(len)
        }
        (Form::Bytes, len) => {
            let bytes = input.take(len)?;
            limits.hold_content(2 * len, start)?;
            Ok(digits(bytes, arena))
        }
    }
}

/// The digits of `bytes`, as text in the arena.
fn digits<'a>(bytes: &[u8], arena: &'a Bump) -> &'a str {
    let digits = arena.alloc_slice_fill_copy(2 * bytes.len(), 0);
    for (place, byte) in digits.as_chunks_mut().0.iter_mut().zip(bytes) {
        *place = [byte >> 4, byte & 15].map(|value| b"0123456789abcdef"[usize::from(value)]);
    }
    str::from_utf8(digits).expect("digits are ASCII")
}

/// How tags are told.
#[derive(Clone, Copy, Debug)]
pub enum Counted {}

impl Layout for Counted {
    #[inline(always)]
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        input.varint()
    }

    #[inline(always)]
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        Ok(input.byte()?.into())
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let first = input.byte()?;
        let form = if first & IS_BYTES == 0 { Form::Text } else { Form::Bytes };
        match usize::from(first & !IS_BYTES) {
            LONG => Ok((form, long(input)?)),
            len => Ok((form, len)),
        }
    }
}

#[inline]
fn long(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    let start = *input;
    let len = usize::try_from(input.varint()?).unwrap_or(usize::MAX);
    if len < LONG { Err(start.fault(Reason::NotMinimal)) } else { Ok(len) }
}

/// The bit of a head that tells bytes from text.
const IS_BYTES: u8 = 0x80;

/// The length in a head behind which a varint tells it.
const LONG: usize = 0x7f;

/// Bytes at fixed offsets.
const HEAD_BYTES: usize = 138;
