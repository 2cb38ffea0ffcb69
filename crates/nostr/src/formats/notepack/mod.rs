//! Notepack, version 1. Hand-written.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | varint | version: 1 |
//! | 1 | 32 | `id` |
//! | 33 | 32 | `pubkey` |
//! | 65 | 64 | `sig` |
//! | 129 | varint | `created_at`, as 64 bits without sign: a time before 1970 takes ten bytes |
//! | | varint | `kind` |
//! | | varint | bytes of the content |
//! | | … | `content` |
//! | | varint | how many tags, then for each: |
//! | | varint | how many values, then for each: |
//! | | varint | twice its bytes, and one more if digits spell them |
//! | | … | the value |
//!
//! A value is bytes if it is lower-case hexadecimal of an even number of digits, two at least; content
//! never is. Varints are LEB128 and minimal. A batch is [framed].
//!
//! As a string it is `notepack_` and the base64 of the bytes, without padding: [`encode_string`].

mod fields;
mod string;
#[cfg(test)]
mod tests;

use bumpalo::Bump;

use super::compact::{self, Form};
use super::framed;
use super::tags::{self, Layout};
use crate::input::{self, Input, write_varint};
use crate::{DecodeError, EncodeError, Event, Limits, Reason};
pub use fields::{Fields, Tags};
pub use string::{decode_string, encode_string};

/// Appends `event`. Notepack can hold every event.
///
/// # Errors
/// None; the signature is that of every format.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.reserve(USUAL_BYTES + event.content.len() + 48 * event.tags.len());
    out.push(VERSION);
    out.extend_from_slice(&event.id);
    out.extend_from_slice(&event.pubkey);
    out.extend_from_slice(&event.sig);
    write_varint(event.created_at as u64, out);
    write_varint(event.kind.into(), out);
    write_varint(event.content.len() as u64, out);
    out.extend_from_slice(event.content.as_bytes());
    write_varint(event.tags.len() as u64, out);
    for tag in event.tags {
        write_varint(tag.len() as u64, out);
        for value in *tag {
            compact::write(value, LEAST_DIGITS, out, |form, len, out| {
                write_varint((len as u64) << 1 | u64::from(form == Form::Bytes), out);
            });
        }
    }
    Ok(())
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
    version(&mut input)?;
    let (id, pubkey, sig) = (*input.array()?, *input.array()?, *input.array()?);
    let created_at = input.varint()? as i64;
    let kind = kind(&mut input)?;
    let content = content(&mut input, limits)?;
    let tags = tags::read::<Counted>(&mut input, arena, limits)?;
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

#[inline(always)]
fn version(input: &mut Input<'_>) -> Result<(), DecodeError> {
    let start = *input;
    match input.varint()? {
        1 => Ok(()),
        other => Err(start.fault(Reason::Version(other))),
    }
}

#[inline(always)]
fn kind(input: &mut Input<'_>) -> Result<u16, DecodeError> {
    let start = input.offset();
    input::kind(input.varint()?, start)
}

#[inline(always)]
fn content<'a>(input: &mut Input<'a>, limits: &Limits) -> Result<&'a str, DecodeError> {
    let start = input.offset();
    let len = len(input)?;
    limits.hold_content(len, start)?;
    input.text(len)
}

#[inline(always)]
fn len(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    Ok(usize::try_from(input.varint()?).unwrap_or(usize::MAX))
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
        input.varint()
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let head = input.varint()?;
        let form = if head & 1 == 0 { Form::Text } else { Form::Bytes };
        Ok((form, usize::try_from(head >> 1).unwrap_or(usize::MAX)))
    }
}

const VERSION: u8 = 1;

/// Digits that travel as bytes, at least: less than elsewhere.
const LEAST_DIGITS: usize = 2;

/// Bytes of an event without content and tags, at most.
const USUAL_BYTES: usize = 160;
