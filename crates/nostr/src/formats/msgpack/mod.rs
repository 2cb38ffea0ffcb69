//! MessagePack by position: an array of seven. Heads are read and written by the library `rmp`.
//!
//! | bytes | item | |
//! |---|---|---|
//! | `97` | array | of seven items |
//! | `c4 20` … | binary | `id` |
//! | `c4 20` … | binary | `pubkey` |
//! | | integer | `created_at` |
//! | | integer | `kind` |
//! | | array of arrays of values | `tags` |
//! | | text | `content` |
//! | `c4 40` … | binary | `sig` |
//!
//! A value that is lower-case hexadecimal of an even number of digits, eight at least, is binary; any
//! other is text. An event has one encoding: heads in more bytes than they need, digits as text and
//! binary of fewer than eight digits are refused. A batch is an array.

mod fields;
mod items;
#[cfg(test)]
mod tests;

use bumpalo::Bump;
use rmp::encode::{write_array_len, write_bin_len, write_sint, write_str_len, write_uint};

use super::compact::{self, Form, LEAST_DIGITS};
use super::{or_undo, tags};
use crate::input::Input;
use crate::{DecodeError, EncodeError, Event, Field, Limits, Reason, Tag};
pub use fields::{Fields, Tags};

/// Appends `event`.
///
/// # Errors
/// If a count or a length does not fit 32 bits; then nothing was appended.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.reserve(USUAL_BYTES + event.content.len() + 48 * event.tags.len());
    or_undo(out, |out| {
        write_array_len(out, 7).expect(TAKES_ALL);
        write_binary(&event.id, out);
        write_binary(&event.pubkey, out);
        write_sint(out, event.created_at).expect(TAKES_ALL);
        write_uint(out, event.kind.into()).expect(TAKES_ALL);
        write_tags(event.tags, out)?;
        held("bytes of the content", event.content.len())?;
        write_head(Form::Text, event.content.len(), out);
        out.extend_from_slice(event.content.as_bytes());
        write_binary(&event.sig, out);
        Ok(())
    })
}

/// The event that `bytes` are.
///
/// # Errors
/// If they are not the one encoding of an event, or are over a limit.
pub fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let mut input = Input::new(bytes);
    let event = event(&mut input, arena, limits)?;
    input.end()?;
    Ok(event)
}

/// Appends `events` as an array.
///
/// # Errors
/// As [`encode`], and if they are more than 32 bits count.
pub fn encode_batch(events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    or_undo(out, |out| {
        write_array(held("events", events.len())?, out);
        events.iter().try_for_each(|event| encode(event, out))
    })
}

/// The events of an array.
///
/// # Errors
/// As [`decode`], and if there are more than the limit.
pub fn decode_batch<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Event<'a>], DecodeError> {
    let mut input = Input::new(bytes);
    let count = items::array_len(&mut input, "an array of events")? as usize;
    limits.hold_events(count, 0)?;
    if count > input.rest().len() / LEAST_BYTES {
        return Err(DecodeError::new(0, Reason::Truncated));
    }
    let events = arena.alloc_slice_try_fill_with(count, |_| event(&mut input, arena, limits))?;
    input.end()?;
    Ok(events)
}

#[inline(always)]
fn event<'a>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let start = *input;
    if items::array_len(input, "an array")? != 7 {
        return Err(start.fault(Reason::Expected("seven items")));
    }
    Ok(Event {
        id: *items::fixed(input, Field::Id)?,
        pubkey: *items::fixed(input, Field::Pubkey)?,
        created_at: items::created_at(input)?,
        kind: items::kind(input)?,
        tags: tags::read::<items::Counted>(input, arena, limits)?,
        content: items::content(input, limits)?,
        sig: *items::fixed(input, Field::Sig)?,
    })
}

#[inline(always)]
fn write_tags(tags: &[Tag<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    write_array(held("tags", tags.len())?, out);
    for tag in tags {
        write_array(held("values of a tag", tag.len())?, out);
        for value in *tag {
            held("bytes of a value", value.text_len())?;
            compact::write(value, LEAST_DIGITS, out, write_head);
        }
    }
    Ok(())
}

#[inline(always)]
fn write_array(count: u32, out: &mut Vec<u8>) {
    write_array_len(out, count).expect(TAKES_ALL);
}

#[inline(always)]
fn write_binary<const N: usize>(bytes: &[u8; N], out: &mut Vec<u8>) {
    write_head(Form::Bytes, N, out);
    out.extend_from_slice(bytes);
}

/// The head of text or binary whose length is [`held`].
#[inline(always)]
fn write_head(form: Form, len: usize, out: &mut Vec<u8>) {
    match form {
        Form::Text => write_str_len(out, len as u32).expect(TAKES_ALL),
        Form::Bytes => write_bin_len(out, len as u32).expect(TAKES_ALL),
    };
}

/// A count that 32 bits hold.
#[inline(always)]
fn held(what: &'static str, count: usize) -> Result<u32, EncodeError> {
    EncodeError::at_most(what, count, u32::MAX as usize)?;
    Ok(count as u32)
}

const TAKES_ALL: &str = "a vector takes every byte";

/// Bytes of an event, at least.
const LEAST_BYTES: usize = 1 + 34 + 34 + 1 + 1 + 1 + 1 + 66;

/// Bytes of an event without content and tags, at most.
const USUAL_BYTES: usize = 160;
