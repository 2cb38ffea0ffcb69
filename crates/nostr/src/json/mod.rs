//! The JSON object of NIP-01. Hand-written.
//!
//! | field | value |
//! |---|---|
//! | `id`, `pubkey` | 64 lower-case hexadecimal digits |
//! | `created_at` | an integer of 64 bits with sign |
//! | `kind` | an integer up to 65,535 |
//! | `tags` | an array of arrays of strings |
//! | `content` | a string |
//! | `sig` | 128 lower-case hexadecimal digits |
//!
//! Written without spaces and in this order. Read in any order and with the spaces of JSON; unknown fields are
//! checked and skipped, a duplicate or missing field is rejected. A batch is an array.

mod reader;
mod string;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::append::{Appender, Pieces, append};

use crate::canonical::{self, ControlChars};
use crate::{DecodeError, Event, Field, Limits};
use reader::Reader;

/// Appends `event`: JSON holds every one.
///
/// ```
/// use wireproof::nostr::{Arena, Limits, example, json};
///
/// let arena = Arena::new();
/// let event = json::decode(example::JSON.as_bytes(), &arena, &Limits::default())?;
/// let mut text = Vec::new();
/// json::encode(&event, &mut text);
/// assert_eq!(text, example::JSON.as_bytes());
/// # Ok::<(), wireproof::nostr::DecodeError>(())
/// ```
pub fn encode(event: &Event<'_>, out: &mut Vec<u8>) {
    append(Object(event), out);
}

/// Decodes `bytes`, which must be exactly one event; lists are allocated in `arena`.
///
/// # Errors
/// If the bytes are no such object, or exceed `limits`.
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
pub fn encode_batch(events: &[Event<'_>], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        encode(event, out);
    }
    out.push(b']');
}

/// Decodes `bytes`, which must be exactly one array of events; events are allocated in `arena`.
///
/// # Errors
/// If the bytes are no such array, or exceed `limits`.
pub fn decode_batch<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Event<'a>], DecodeError> {
    let mut reader = Reader::new(bytes, arena, limits)?;
    let mut events = BumpVec::new_in(arena);
    let mut more = reader.open_array()?;
    while more {
        limits.check_events(events.len() + 1, reader.offset())?;
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
        out.reserve(BASE_BYTES + event.content.len());
        out.array(b"{\"id\":\"");
        out.hex(&event.id);
        out.array(b"\",\"pubkey\":\"");
        out.hex(&event.pubkey);
        out.array(b"\",\"created_at\":");
        canonical::write_integer(event.created_at, out);
        out.array(b",\"kind\":");
        canonical::write_integer(event.kind.into(), out);
        out.array(b",\"tags\":");
        canonical::write_tags(event.tags, ControlChars::Escaped, out);
        out.array(b",\"content\":");
        canonical::write_text(event.content, ControlChars::Escaped, out);
        out.array(b",\"sig\":\"");
        out.hex(&event.sig);
        out.array(b"\"}");
    }
}

/// The fields of an object. A read skips the fields before its own and does not look at those after it, so that
/// duplicates are not noticed; all of the text is UTF-8.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    text: &'a str,
    arena: &'a Bump,
}

impl<'a> Fields<'a> {
    /// Opens an object. Text that needs memory is allocated in `arena`.
    ///
    /// # Errors
    /// If the bytes are not UTF-8.
    #[inline]
    pub fn open(bytes: &'a [u8], arena: &'a Bump) -> Result<Self, DecodeError> {
        Ok(Self { text: reader::utf8(bytes)?, arena })
    }

    /// Reads the id.
    ///
    /// # Errors
    /// If the field is not 64 digits, or the text before it is not JSON.
    #[inline]
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        self.read(Field::Id, |reader| reader.hex(Field::Id))
    }

    /// Reads the author's x-only public key.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    #[inline]
    pub fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        self.read(Field::Pubkey, |reader| reader.hex(Field::Pubkey))
    }

    /// Reads the creation time in seconds since 1970, by the author's clock.
    ///
    /// # Errors
    /// If the field is no integer, or the text before it is not JSON.
    #[inline]
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        self.read(Field::CreatedAt, |reader| reader.integer(Field::CreatedAt))
    }

    /// Reads the kind.
    ///
    /// # Errors
    /// As [`created_at`](Self::created_at).
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        self.read(Field::Kind, |reader| reader.kind())
    }

    #[inline(always)]
    fn read<T>(
        &self,
        field: Field,
        read: impl FnOnce(&mut Reader<'a, '_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        let limits = Limits::default();
        let mut reader = Reader::of_text(self.text, self.arena, &limits);
        reader.skip_to(field)?;
        read(&mut reader)
    }
}

/// Approximate size of an event without tags and content in bytes.
const BASE_BYTES: usize = 400;
