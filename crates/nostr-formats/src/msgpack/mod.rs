//! MessagePack: an array of seven items. The library `rmp` reads and writes the heads.
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
//! A tag value is binary if it is lower-case hexadecimal with an even number of digits, at least eight;
//! otherwise text. An event has one encoding: heads longer than needed, such digits as text and binary of fewer
//! than eight digits are rejected. A batch is an array.

mod items;
#[cfg(test)]
mod tests;

use bumpalo::Bump;
use rmp::Marker;
use rmp::encode::{write_array_len, write_bin_len, write_sint, write_str_len, write_uint};

use super::codec::{Codec, or_truncate};
use super::explain::{self, Visit};
use super::fields::{FieldOrder, Keys, SequentialFields};
use super::tags::{self, Form, MIN_DIGITS, TagLayout};
use nostr::input::Input;
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Event, Field, Limits, Reason, Tag, Value};

/// The codec. MessagePack holds every event whose counts and lengths fit 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct Msgpack;

impl Codec for Msgpack {
    type Fields<'a> = SequentialFields<'a, Self>;

    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        out.reserve(BASE_BYTES + event.content.len() + 48 * event.tags.len());
        or_truncate(out, |out| {
            write_array_len(out, 7).expect(INFALLIBLE);
            write_binary(&event.id, out);
            write_binary(&event.pubkey, out);
            write_sint(out, event.created_at).expect(INFALLIBLE);
            write_uint(out, event.kind.into()).expect(INFALLIBLE);
            write_tags(event.tags, out)?;
            to_u32("bytes of content", event.content.len())?;
            write_head(Form::Text, event.content.len(), out);
            out.extend_from_slice(event.content.as_bytes());
            write_binary(&event.sig, out);
            Ok(())
        })
    }

    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        let mut input = Input::new(bytes);
        let event = read_event(&mut input, arena, &Budget::new(bytes.len(), limits))?;
        input.end()?;
        Ok(event)
    }

    fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        or_truncate(out, |out| {
            write_array(to_u32("events", events.len())?, out);
            events.iter().try_for_each(|event| self.encode(event, out))
        })
    }

    fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let mut input = Input::new(bytes);
        let count = items::array_len(&mut input, "an array of events")? as usize;
        limits.check_events(count, 0)?;
        if count > input.rest().len() / MIN_EVENT_BYTES {
            return Err(DecodeError::new(0, Reason::Truncated));
        }
        let limits = Budget::new(bytes.len(), limits);
        let event = |_| read_event(&mut input, arena, &limits);
        let events = arena.alloc_slice_try_fill_with(count, event)?;
        input.end()?;
        Ok(events)
    }

    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        explain::items(bytes, items::head, visit)
    }

    #[inline]
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        _: &'a Bump,
        _: &Limits,
    ) -> Result<Self::Fields<'a>, DecodeError> {
        SequentialFields::new(bytes)
    }
}

impl TagLayout for Msgpack {
    #[inline(always)]
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        Ok(items::array_len(input, "an array of tags")?.into())
    }

    #[inline(always)]
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        Ok(items::array_len(input, "an array of values")?.into())
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let (form, len) = match items::marker(input)? {
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
                (Form::Bytes, items::binary_len(input)?)
            }
            _ => (Form::Text, items::text_len(input, "text or binary")?),
        };
        Ok((form, len as usize))
    }

    #[inline(always)]
    fn check(value: &Value<'_>) -> Result<(), Reason> {
        tags::check_form(value, MIN_DIGITS)
    }
}

impl FieldOrder for Msgpack {
    #[inline]
    fn keys<'a>(input: &mut Input<'a>) -> Result<Keys<'a>, DecodeError> {
        if items::array_len(input, "an array")? != 7 {
            return Err(DecodeError::new(0, Reason::Expected("seven items")));
        }
        Ok((items::fixed(input, Field::Id)?, items::fixed(input, Field::Pubkey)?))
    }

    #[inline]
    fn created_at(input: &mut Input<'_>) -> Result<i64, DecodeError> {
        items::created_at(input)
    }

    #[inline]
    fn kind(input: &mut Input<'_>) -> Result<u16, DecodeError> {
        items::kind(input)
    }
}

#[inline(always)]
fn read_event<'a>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Event<'a>, DecodeError> {
    let start = *input;
    if items::array_len(input, "an array")? != 7 {
        return Err(start.error(Reason::Expected("seven items")));
    }
    Ok(Event {
        id: *items::fixed(input, Field::Id)?,
        pubkey: *items::fixed(input, Field::Pubkey)?,
        created_at: items::created_at(input)?,
        kind: items::kind(input)?,
        tags: tags::read::<Msgpack>(input, arena, limits)?,
        content: items::content(input, limits)?,
        sig: *items::fixed(input, Field::Sig)?,
    })
}

#[inline(always)]
fn write_tags(tags: &[Tag<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    write_array(to_u32("tags", tags.len())?, out);
    for tag in tags {
        write_array(to_u32("values in a tag", tag.len())?, out);
        for value in *tag {
            to_u32("bytes in a value", value.text_len())?;
            tags::write_value(value, MIN_DIGITS, out, write_head);
        }
    }
    Ok(())
}

#[inline(always)]
fn write_array(count: u32, out: &mut Vec<u8>) {
    write_array_len(out, count).expect(INFALLIBLE);
}

#[inline(always)]
fn write_binary<const N: usize>(bytes: &[u8; N], out: &mut Vec<u8>) {
    write_head(Form::Bytes, N, out);
    out.extend_from_slice(bytes);
}

/// Appends the head of text or binary, whose length fits 32 bits.
#[inline(always)]
fn write_head(form: Form, len: usize, out: &mut Vec<u8>) {
    match form {
        Form::Text => write_str_len(out, len as u32).expect(INFALLIBLE),
        Form::Bytes => write_bin_len(out, len as u32).expect(INFALLIBLE),
    };
}

#[inline(always)]
fn to_u32(what: &'static str, count: usize) -> Result<u32, EncodeError> {
    EncodeError::at_most(what, count, u32::MAX as usize)?;
    Ok(count as u32)
}

const INFALLIBLE: &str = "writing to a vector cannot fail";

/// Minimum size of an event in bytes.
const MIN_EVENT_BYTES: usize = 1 + 34 + 34 + 1 + 1 + 1 + 1 + 66;

/// Maximum size of an event without content and tags in bytes.
const BASE_BYTES: usize = 160;
