//! CBOR by position: an array of seven, the deterministic profile. Hand-written.
//!
//! | bytes | item | |
//! |---|---|---|
//! | `87` | array | of seven items |
//! | `58 20` … | byte string | `id` |
//! | `58 20` … | byte string | `pubkey` |
//! | | integer | `created_at` |
//! | | unsigned integer | `kind` |
//! | | array of arrays of values | `tags` |
//! | | text | `content` |
//! | `58 40` … | byte string | `sig` |
//!
//! A value that is lower-case hexadecimal of an even number of digits, eight at least, is a byte string;
//! any other is text. An event has one encoding: heads in more bytes than they need, lengths not
//! stated, digits as text and bytes of fewer than eight digits are refused. A batch is an array.

use bumpalo::Bump;

pub use super::fields::{Fields, Tags};
use super::head::{self, ARRAY};
use super::items::{self, OneForm, Reader};
use crate::formats::compact::LEAST_DIGITS;
use crate::{DecodeError, EncodeError, Event, Field, Limits, Reason};

/// Appends `event`. CBOR can hold every event.
///
/// # Errors
/// None; the signature is that of every format.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    items::reserve(event, out);
    out.push(ARRAY << 5 | 7);
    items::write_fixed(&event.id, out);
    items::write_fixed(&event.pubkey, out);
    items::write_created_at(event.created_at, out);
    items::write_kind(event.kind, out);
    items::write_tags(event.tags, LEAST_DIGITS, out);
    items::write_content(event.content, out);
    items::write_fixed(&event.sig, out);
    Ok(())
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
    let mut reader = Reader::new(bytes, arena, limits);
    let event = event(&mut reader)?;
    reader.input.end()?;
    Ok(event)
}

/// Appends `events` as an array.
///
/// # Errors
/// None; the signature is that of every format.
pub fn encode_batch(events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    head::write(ARRAY, events.len() as u64, out);
    events.iter().try_for_each(|event| encode(event, out))
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
    Reader::new(bytes, arena, limits).events(event)
}

#[inline(always)]
fn event<'a>(reader: &mut Reader<'a, '_>) -> Result<Event<'a>, DecodeError> {
    let start = reader.input;
    if reader.len(ARRAY, 1, "an array")? != 7 {
        return Err(start.fault(Reason::Expected("seven items")));
    }
    Ok(Event {
        id: *reader.fixed(Field::Id)?,
        pubkey: *reader.fixed(Field::Pubkey)?,
        created_at: reader.created_at()?,
        kind: reader.kind()?,
        tags: reader.tags::<OneForm>()?,
        content: reader.content()?,
        sig: *reader.fixed(Field::Sig)?,
    })
}
