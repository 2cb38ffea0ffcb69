//! nostrdb's note, as it lies in that database. Hand-written.
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 3 | zero |
//! | 4, 36, 68 | 32, 32, 64 | `id`, `pubkey`, `sig` |
//! | 132 | 8 | `created_at`, without sign |
//! | 140 | 4 | `kind` |
//! | 144 | 4 | bytes of the content |
//! | 148 | 4 | the content, a string |
//! | 152 | 4 | where the pool of strings starts |
//! | 156 | 2 | zero |
//! | 158 | 2 | how many tags |
//! | 160 | … | for each tag: how many values in 2 bytes, then the values, strings |
//! | … | … | the pool: texts, and ids of 32 bytes, each with a zero behind it |
//! | … | 0–7 | zeros, up to a multiple of 8 |
//!
//! | a string's last byte | its first three |
//! |---|---|
//! | 1 | up to two bytes of text, then zeros |
//! | 0 | where in the pool its text starts |
//! | 2 | where in the pool an id starts, which is text of 64 lower-case digits |
//!
//! All is little-endian. The writer puts the values into the pool in order and the content behind them, or
//! takes for the content the value that says the same. What ends with a zero cannot have one, so values
//! with one are refused, as are times before 1970 and pools over 16 MiB. nostrdb itself also compacts digits
//! in upper case, and so forgets their case; this writer does not. The reader lets strings share bytes of the
//! pool, but not read more than sixteen times the note. A batch is [framed].

mod fields;
mod reader;
mod writer;

use bumpalo::Bump;

pub use fields::Fields;

use super::{framed, or_undo};
use crate::{DecodeError, EncodeError, Event, Limits};

/// Appends `event`.
///
/// # Errors
/// If a value has a zero in it, the time is before 1970, or the note has no room for that much.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    or_undo(out, |out| writer::write(event, out))
}

/// The event of the note in `bytes`.
///
/// # Errors
/// If it is no note, or is over a limit.
pub fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    reader::event(bytes, arena, limits)
}

/// Appends `events`, [framed].
///
/// # Errors
/// As [`encode`].
pub fn encode_batch(events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    framed::encode(events, out, encode)
}

/// The events of such a batch.
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

const VERSION: u8 = 1;

/// Where the fields of the header are.
const ID: usize = 4;
const PUBKEY: usize = 36;
const SIG: usize = 68;
const CREATED_AT: usize = 132;
const KIND: usize = 140;
const CONTENT_LEN: usize = 144;
const CONTENT: usize = 148;
const POOL: usize = 152;
const TAGS: usize = 156;
const HEADER_BYTES: usize = 160;

/// The last byte of a string.
const IN_POOL: u8 = 0;
const INLINE: u8 = 1;
const IS_ID: u8 = 2;

#[cfg(test)]
mod tests;
