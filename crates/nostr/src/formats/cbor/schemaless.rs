//! CBOR that names its fields: a map of seven text keys. Hand-written.
//!
//! | key | value |
//! |---|---|
//! | `"id"` | byte string of 32 |
//! | `"pubkey"` | byte string of 32 |
//! | `"created_at"` | integer |
//! | `"kind"` | unsigned integer |
//! | `"tags"` | array of arrays of text |
//! | `"content"` | text |
//! | `"sig"` | byte string of 64 |
//!
//! Written as `a7` and in this order, values of tags always as text. Read in any order; a key that is not
//! listed is passed over with its value, one that is listed and comes a second time or not at all is
//! refused. A batch is an array.

use bumpalo::Bump;

use super::head::{self, ARRAY, TEXT};
use super::items::{self, Reader, WithNames};
use super::map::{self, Keys};
use crate::{DecodeError, EncodeError, Event, Field, Limits};

/// Appends `event`. CBOR can hold every event.
///
/// # Errors
/// None; the signature is that of every format.
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    items::reserve(event, out);
    out.extend_from_slice(b"\xa7\x62id");
    items::write_fixed(&event.id, out);
    out.extend_from_slice(b"\x66pubkey");
    items::write_fixed(&event.pubkey, out);
    out.extend_from_slice(b"\x6acreated_at");
    items::write_created_at(event.created_at, out);
    out.extend_from_slice(b"\x64kind");
    items::write_kind(event.kind, out);
    out.extend_from_slice(b"\x64tags");
    items::write_tags(event.tags, usize::MAX, out);
    out.extend_from_slice(b"\x67content");
    items::write_content(event.content, out);
    out.extend_from_slice(b"\x63sig");
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
    let event = map::event::<WithNames>(&mut reader)?;
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
    Reader::new(bytes, arena, limits).events(map::event::<WithNames>)
}

/// An event of which single fields are read.
pub type Fields<'a> = map::Fields<'a, WithNames>;

impl Keys for WithNames {
    #[inline(always)]
    fn field(reader: &mut Reader<'_, '_>) -> Result<Option<Field>, DecodeError> {
        let len = reader.len(TEXT, 1, "a key of text")?;
        Ok(match reader.input.text(len)? {
            "id" => Some(Field::Id),
            "pubkey" => Some(Field::Pubkey),
            "created_at" => Some(Field::CreatedAt),
            "kind" => Some(Field::Kind),
            "tags" => Some(Field::Tags),
            "content" => Some(Field::Content),
            "sig" => Some(Field::Sig),
            _ => None,
        })
    }
}
