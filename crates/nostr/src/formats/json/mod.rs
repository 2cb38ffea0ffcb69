//! NIP-01's JSON object. Hand-written.
//!
//! | field | value |
//! |---|---|
//! | `id`, `pubkey` | 64 lower-case hexadecimal digits |
//! | `created_at` | a whole number of 64 bits |
//! | `kind` | a whole number up to 65,535 |
//! | `tags` | a list of lists of text |
//! | `content` | text |
//! | `sig` | 128 lower-case hexadecimal digits |
//!
//! Written without spaces, in this order but for `sig`, which comes last. Read in any order and with
//! JSON's spaces; a field that is not listed is checked and passed over, one that comes a second time
//! or not at all is refused. A batch is an array.

mod fields;
mod reader;
mod text;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::append::{Appender, Pieces, append};

pub use fields::Fields;

use crate::canonical::{self, Controls};
use crate::{DecodeError, EncodeError, Event, Limits};
use reader::Reader;

/// Appends `event` without spaces. JSON can hold every event.
///
/// # Errors
/// None; the signature is that of every format.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    append(Object(event), out);
    Ok(())
}

/// The event that the JSON in `bytes` is.
///
/// # Errors
/// If it is no event in strict JSON, or is over a limit.
pub fn decode<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let mut reader = Reader::new(bytes, arena, limits)?;
    let event = reader.event()?;
    reader.end()?;
    Ok(event)
}

/// Appends `events` as an array.
///
/// # Errors
/// None; the signature is that of every format.
pub fn encode_batch(events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
    out.push(b'[');
    for (at, event) in events.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        encode(event, out)?;
    }
    out.push(b']');
    Ok(())
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
    let mut reader = Reader::new(bytes, arena, limits)?;
    let mut events = BumpVec::new_in(arena);
    let mut more = reader.opens_array()?;
    while more {
        limits.hold_events(events.len() + 1, reader.offset())?;
        events.push(reader.event()?);
        more = reader.has_more_items()?;
    }
    reader.end()?;
    Ok(events.into_bump_slice())
}

struct Object<'e>(&'e Event<'e>);

impl Pieces for Object<'_> {
    #[inline(always)]
    fn append_to(self, out: &mut Appender) {
        let Self(event) = self;
        out.reserve(LEAST_BYTES + event.content.len());
        out.array(b"{\"id\":\"");
        out.hex(&event.id);
        out.array(b"\",\"pubkey\":\"");
        out.hex(&event.pubkey);
        out.array(b"\",\"created_at\":");
        canonical::write_integer(event.created_at, out);
        out.array(b",\"kind\":");
        canonical::write_integer(event.kind.into(), out);
        out.array(b",\"tags\":");
        canonical::write_tags(event.tags, Controls::Escaped, out);
        out.array(b",\"content\":");
        canonical::write_text(event.content, Controls::Escaped, out);
        out.array(b",\"sig\":\"");
        out.hex(&event.sig);
        out.array(b"\"}");
    }
}

/// Bytes of an event without tags and content, about.
const LEAST_BYTES: usize = 400;

#[cfg(test)]
mod tests;
