//! CBOR that numbers its fields: a map of seven integer keys. Hand-written.
//!
//! | key | value | |
//! |---|---|---|
//! | 0 | byte string of 32 | `id` |
//! | 1 | byte string of 32 | `pubkey` |
//! | 2 | integer | `created_at` |
//! | 3 | unsigned integer | `kind` |
//! | 4 | array of arrays of values | `tags` |
//! | 5 | text | `content` |
//! | 6 | byte string of 64 | `sig` |
//!
//! Written as `a7` and in this order. A value of a tag is a byte string if it is lower-case hexadecimal
//! of an even number of digits, eight at least, and text if not; the published rule took digits of any
//! case and number, and could not tell `CAFE` from `cafe` on the way back. What it wrote is read: byte
//! strings of any length, and as lower-case digits.
//!
//! Read in any order; other integer keys are passed over with their values, a key of these that comes a
//! second time or not at all is refused. A batch is an array.

use bumpalo::Bump;

use super::head::{self, ARRAY, NEGATIVE, UNSIGNED};
use super::items::{self, Reader, WithNumbers};
use super::map::{self, Keys};
use crate::formats::compact::LEAST_DIGITS;
use crate::{DecodeError, EncodeError, Event, Field, Limits, Reason};

/// Appends `event`. CBOR can hold every event.
///
/// # Errors
/// None; the signature is that of every format.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    items::reserve(event, out);
    out.extend_from_slice(&[head::MAP << 5 | 7, 0]);
    items::write_fixed(&event.id, out);
    out.push(1);
    items::write_fixed(&event.pubkey, out);
    out.push(2);
    items::write_created_at(event.created_at, out);
    out.push(3);
    items::write_kind(event.kind, out);
    out.push(4);
    items::write_tags(event.tags, LEAST_DIGITS, out);
    out.push(5);
    items::write_content(event.content, out);
    out.push(6);
    items::write_fixed(&event.sig, out);
    Ok(())
}

/// The event that `bytes` are.
///
/// # Errors
/// If they are no such map, or are over a limit.
pub fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let mut reader = Reader::new(bytes, arena, limits);
    let event = map::event::<WithNumbers>(&mut reader)?;
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
    Reader::new(bytes, arena, limits).events(map::event::<WithNumbers>)
}

/// An event of which single fields are read.
pub type Fields<'a> = map::Fields<'a, WithNumbers>;

impl Keys for WithNumbers {
    #[inline(always)]
    fn field(reader: &mut Reader<'_, '_>) -> Result<Option<Field>, DecodeError> {
        let at = reader.input;
        match head::read(&mut reader.input)? {
            (UNSIGNED, key @ 0..7) => Ok(Some(Field::ALL[key as usize])),
            (UNSIGNED | NEGATIVE, _) => Ok(None),
            _ => Err(at.fault(Reason::Expected("an integer key"))),
        }
    }
}
