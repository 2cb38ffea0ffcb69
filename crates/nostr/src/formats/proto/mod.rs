//! Protocol Buffers: three schemas of the same fields. Hand-written.
//!
//! ```proto
//! message Event {
//!   bytes  id         = 1;  // string, in Schema::String
//!   bytes  pubkey     = 2;  // string, in Schema::String
//!   int64  created_at = 3;
//!   int32  kind       = 4;
//!   repeated Tag tags = 5;
//!   string content    = 6;
//!   bytes  sig        = 7;  // string, in Schema::String
//! }
//! message Tag {
//!   repeated string   values    = 1;  // Schema::String and Schema::Binary
//!   repeated TagValue values_v2 = 2;  // Schema::BinaryHex
//! }
//! message TagValue   { oneof value { string text = 1; bytes hex = 2; } }
//! message EventBatch { repeated Event events = 1; }
//! ```
//!
//! On the wire a field is a varint `number << 3 | type` and what the type says:
//!
//! | type | | fields |
//! |---|---|---|
//! | 0 | a varint | `created_at` in two's complement, so ten bytes before 1970; `kind` |
//! | 1, 5 | 8 or 4 bytes | none of ours |
//! | 2 | a varint of the length, then the bytes | all others |
//! | 3, 4 | a group | none, and none is read |
//!
//! Written in the order of the numbers, without fields that have their default (kind 0, the year 1970,
//! no content). Read in any order, and stricter than Protocol Buffers ask for: varints must be minimal,
//! a field that may come once must not come twice, one of ours must have its own type, and a kind
//! is never cut to fit. Fields with other numbers are passed over. A tag of [`Schema::BinaryHex`] may
//! have its values in either list, not in both.

mod fields;
mod plain_tags;
mod reader;
mod tags;
mod wire;
mod writer;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

pub use fields::{Fields, Tags, Values};

use crate::input::Input;
use crate::{DecodeError, EncodeError, Event, Limits};
use wire::{Key, Type};

/// How a schema keeps bytes whose text is hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// As text, everywhere.
    String,
    /// As bytes in `id`, `pubkey` and `sig`; as text in tags.
    Binary,
    /// As bytes; in tags for values of 8 lower-case digits or more.
    BinaryHex,
}

impl Schema {
    /// Appends `event`.
    ///
    /// # Errors
    /// None; the signature is that of every format.
    #[inline]
    pub fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        writer::event(self, event, out);
        Ok(())
    }

    /// The event that the message in `bytes` is.
    ///
    /// # Errors
    /// If it is no event in the strict reading, or is over a limit.
    #[inline]
    pub fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        reader::event(self, Input::new(bytes), arena, limits)
    }

    /// Appends `events` as an `EventBatch`.
    ///
    /// # Errors
    /// None; the signature is that of every format.
    pub fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        for event in events {
            writer::nested(EVENTS, out, |out| writer::event(self, event, out));
        }
        Ok(())
    }

    /// The events of an `EventBatch`.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and if there are more than the limit.
    pub fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let mut input = Input::new(bytes);
        let mut events = BumpVec::new_in(arena);
        while let Some(key) = wire::key(&mut input)? {
            if key.number() != EVENTS {
                wire::skip(key, &mut input)?;
                continue;
            }
            limits.hold_events(events.len() + 1, input.offset())?;
            let message = wire::message(key, &mut input)?;
            events.push(reader::event(self, message, arena, limits)?);
        }
        Ok(events.into_bump_slice())
    }
}

const ID: u32 = 1;
const PUBKEY: u32 = 2;
const CREATED_AT: u32 = 3;
const KIND: u32 = 4;
const TAGS: u32 = 5;
const CONTENT: u32 = 6;
const SIG: u32 = 7;

/// Of `Tag`.
const VALUES: u32 = 1;
const VALUES_V2: u32 = 2;

/// Of `TagValue`.
const TEXT: u32 = 1;
const HEX: u32 = 2;

/// Of `EventBatch`.
const EVENTS: u32 = 1;

/// Digits from which [`Schema::BinaryHex`] keeps a value as bytes.
const LEAST_DIGITS: usize = 8;

#[cfg(test)]
mod tests;
