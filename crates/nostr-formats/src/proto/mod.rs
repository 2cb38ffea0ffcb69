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
//! A field is a varint `number << 3 | type`, followed by:
//!
//! | type | bytes | fields |
//! |---|---|---|
//! | 0 | a varint | `created_at` in two's complement (ten bytes before 1970); `kind` |
//! | 1, 5 | 8 or 4 bytes | only unknown fields |
//! | 2 | the length as a varint, then the bytes | all others |
//! | 3, 4 | a group | rejected |
//!
//! Written in the order of the numbers, without fields that have their default (`kind` 0, `created_at` 0, empty
//! `content`). Read in any order, and more strictly than Protocol Buffers require: varints must be minimal, a
//! singular field must not repeat, a known field must have its type, and a `kind` is never truncated. Unknown
//! fields are skipped. A tag of [`Schema::BinaryHex`] may have its values in either list, but not in both.

mod explain;
mod reader;
mod tags;
#[cfg(test)]
mod tests;
mod wire;
mod writer;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use super::codec::Codec;
use super::explain::{Visit, Walker};
use super::fields::ReadFields;
use nostr::input::{self, Input};
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Event, Field, Limits, Reason, Value};
use wire::Key;

/// The codec of a schema: how it stores hexadecimal. Protocol Buffers hold every event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schema {
    /// As text, everywhere.
    String,
    /// As bytes in `id`, `pubkey` and `sig`; as text in tags.
    Binary,
    /// As bytes; in tags for values of at least 8 lower-case digits.
    BinaryHex,
}

impl Codec for Schema {
    type Fields<'a> = Fields<'a>;

    #[inline]
    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        writer::event(self, event, out);
        Ok(())
    }

    #[inline]
    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        reader::event(self, Input::new(bytes), arena, &Budget::new(bytes.len(), limits))
    }

    fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        for event in events {
            writer::nested(EVENTS, out, |out| writer::event(self, event, out));
        }
        Ok(())
    }

    fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let mut input = Input::new(bytes);
        let limits = Budget::new(bytes.len(), limits);
        let mut events = BumpVec::new_in(arena);
        while let Some(key) = wire::key(&mut input)? {
            if key.number() != EVENTS {
                wire::skip(key, &mut input)?;
                continue;
            }
            limits.check_events(events.len() + 1, input.offset())?;
            let message = wire::message(key, &mut input)?;
            events.push(reader::event(self, message, arena, &limits)?);
        }
        Ok(events.into_bump_slice())
    }

    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        explain::event(self, &mut Walker::new(bytes, visit), bytes.len())
    }

    #[inline]
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        _: &'a Bump,
        _: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        Ok(Fields { schema: self, input: Input::new(bytes) })
    }
}

/// The fields of a message. A read searches from the front for the first field of its number and does not look
/// at the fields after it, so that duplicates are not noticed.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    schema: Schema,
    input: Input<'a>,
}

impl<'a> Fields<'a> {
    /// Reads the id.
    ///
    /// # Errors
    /// If the field is missing or malformed, or the bytes before it are not a message.
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        self.fixed(ID, Field::Id)
    }

    /// Reads the tags one by one.
    pub fn tags(&self) -> Tags<'a> {
        Tags { schema: self.schema, input: Some(self.input) }
    }

    #[inline]
    fn fixed<const N: usize>(&self, number: u32, field: Field) -> Result<[u8; N], DecodeError> {
        match find(number, self.input)? {
            Some((key, mut input)) => reader::fixed(self.schema, key, &mut input, field),
            None => Err(self.input.error(Reason::Missing(field))),
        }
    }

    /// Reads an integer and its offset; `None` if the field is missing and so has its default.
    #[inline]
    fn varint(&self, number: u32) -> Result<Option<(usize, u64)>, DecodeError> {
        let Some((key, mut input)) = find(number, self.input)? else { return Ok(None) };
        Ok(Some((input.offset(), wire::varint(key, &mut input)?)))
    }
}

impl ReadFields for Fields<'_> {
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        self.fixed(PUBKEY, Field::Pubkey)
    }

    #[inline]
    fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(self.varint(CREATED_AT)?.map_or(0, |(_, seconds)| seconds as i64))
    }

    #[inline]
    fn kind(&self) -> Result<u16, DecodeError> {
        self.varint(KIND)?.map_or(Ok(0), |(offset, value)| input::kind(value, offset))
    }
}

/// Finds the first field of that number; returns its key and the input after the key.
#[inline]
fn find(number: u32, mut input: Input<'_>) -> Result<Option<(Key, Input<'_>)>, DecodeError> {
    while let Some(key) = wire::key(&mut input)? {
        if key.number() == number {
            return Ok(Some((key, input)));
        }
        wire::skip(key, &mut input)?;
    }
    Ok(None)
}

/// The tags of a message, read one by one; ends after the first error.
#[derive(Clone, Debug)]
pub struct Tags<'a> {
    schema: Schema,
    // None after an error.
    input: Option<Input<'a>>,
}

impl<'a> Iterator for Tags<'a> {
    type Item = Result<Values<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = find(TAGS, self.input.take()?).transpose()?;
        let tag = found.and_then(|(key, mut input)| {
            let tag = wire::message(key, &mut input)?;
            self.input = Some(input);
            Ok(Values { schema: self.schema, input: Some(tag) })
        });
        Some(tag)
    }
}

/// The values of a tag, read one by one; ends after the first error.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    schema: Schema,
    // None after an error.
    input: Option<Input<'a>>,
}

impl<'a> Iterator for Values<'a> {
    type Item = Result<Value<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut input = self.input.take()?;
        let value = tags::next_value(self.schema, &mut input).transpose()?;
        self.input = value.is_ok().then_some(input);
        Some(value.map(|(_, value)| value))
    }
}

/// Field numbers of `Event`.
const ID: u32 = 1;
const PUBKEY: u32 = 2;
const CREATED_AT: u32 = 3;
const KIND: u32 = 4;
const TAGS: u32 = 5;
const CONTENT: u32 = 6;
const SIG: u32 = 7;

/// Field numbers of `Tag`.
const VALUES: u32 = 1;
const VALUES_V2: u32 = 2;

/// Field numbers of `TagValue`.
const TEXT: u32 = 1;
const HEX: u32 = 2;

/// Field number of `EventBatch`.
const EVENTS: u32 = 1;
