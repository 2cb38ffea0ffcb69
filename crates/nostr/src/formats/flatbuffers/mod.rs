//! FlatBuffers: the published schema. The library `flatbuffers` builds; what is read is hand-written, since
//! the library follows buffers by code that is not safe.
//!
//! ```text
//! table TagValue { text: string; hex: [ubyte]; }
//! table Tag      { values: [TagValue]; }
//! table Event {
//!   id: [ubyte] (required); pubkey: [ubyte] (required); created_at: long; kind: ushort;
//!   tags: [Tag]; content: string (required); sig: [ubyte] (required);
//! }
//! table EventBatch { events: [Event]; }
//! ```
//!
//! | bytes | of a buffer |
//! |---|---|
//! | 4 | where the root is, from here |
//!
//! | bytes | of a table |
//! |---|---|
//! | 4 | where its vtable is, backwards from here, signed |
//! | … | integers, and how far to what is longer, from there |
//!
//! | bytes | of a vtable |
//! |---|---|
//! | 2, 2 | bytes of the vtable, bytes of the table |
//! | 2 for each field | where it is in the table; 0 if it has its default |
//!
//! | bytes | of a vector or a string |
//! |---|---|
//! | 4 | how many items |
//! | … | the items; behind a string a byte that is zero |
//!
//! All is little-endian. Values of 8 lower-case digits or more are `hex`. The buffer is built from its end,
//! in the published order: id, pubkey, sig, content, tags.
//!
//! The reader refuses a buffer whose last part ends more than three zeros before its end. Parts may be
//! met more than once, but all of them together may not be longer than four times the buffer. Fields that
//! are not ours are not looked at.

mod fields;
mod reader;
mod walk;
mod writer;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

pub use fields::Fields;

use crate::{DecodeError, EncodeError, Event, Limits};
use walk::Walk;

/// Appends `event`.
///
/// # Errors
/// If it takes more than a gibibyte.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    writer::write(std::slice::from_ref(event), out, |events, _| events[0])
}

/// The event that the buffer in `bytes` is.
///
/// # Errors
/// If it is no such buffer, or is over a limit.
pub fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let mut walk = Walk::new(bytes)?;
    let root = walk.root()?;
    let event = reader::event(&mut walk, root, arena, limits)?;
    walk.end()?;
    Ok(event)
}

/// Appends `events` as an `EventBatch`.
///
/// # Errors
/// As [`encode`].
pub fn encode_batch(events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    writer::write(events, out, writer::batch)
}

/// The events of an `EventBatch`.
///
/// # Errors
/// As [`decode`], and if there are more than the limit.
pub fn decode_batch<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Event<'a>], DecodeError> {
    let mut walk = Walk::new(bytes)?;
    let root = walk.root()?;
    let list = walk.tables(root, EVENTS)?.unwrap_or_default();
    limits.hold_events(list.len(), list.offset())?;
    let mut events = BumpVec::with_capacity_in(list.len().min(MOST_AT_ONCE), arena);
    for at in 0..list.len() {
        let table = walk.item(list, at)?;
        events.push(reader::event(&mut walk, table, arena, limits)?);
    }
    walk.end()?;
    Ok(events.into_bump_slice())
}

/// Where a vtable says where the fields of an `Event` are.
const ID: u16 = 4;
const PUBKEY: u16 = 6;
const CREATED_AT: u16 = 8;
const KIND: u16 = 10;
const TAGS: u16 = 12;
const CONTENT: u16 = 14;
const SIG: u16 = 16;

/// Of a `Tag`.
const VALUES: u16 = 4;

/// Of a `TagValue`.
const TEXT: u16 = 4;
const HEX: u16 = 6;

/// Of an `EventBatch`.
const EVENTS: u16 = 4;

/// Events of a batch for which memory is taken before they are read: an event takes four bytes in the list
/// and many in memory.
const MOST_AT_ONCE: usize = 256;

/// Digits from which a value is kept as bytes.
const LEAST_DIGITS: usize = 8;

#[cfg(test)]
mod tests;
