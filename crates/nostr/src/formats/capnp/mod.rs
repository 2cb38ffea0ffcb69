//! Cap'n Proto: the published envelope and a schema of our own, each plain and packed. The library
//! `capnp` lays out and follows messages; what is inside the envelope's blobs is hand-written.
//!
//! A message is a table of segments and the segments, in words of 8 bytes; a struct is its integers, then
//! its pointers.
//!
//! | [`Layout::Envelope`] | [`Layout::Schema`] |
//! |---|---|
//! | 3 pointers: `fixedData`, `tagData`, `content` | `createdAt`, `kind` in 2 words; 5 pointers: `id`, `pubkey`, `tags`, `content`, `sig` |
//! | `fixedData`, 138 bytes: id, pubkey, sig, then `created_at` in 8 and `kind` in 2, little-endian | data of 32, 32 and 64 bytes |
//! | `tagData`: how many tags in 2 bytes, little-endian; then for each: how many values in 1 byte; for each: 2 bytes, the highest bit for hexadecimal, the others for the length; the bytes | a list of lists of structs, each a union of text and the bytes of hexadecimal |
//!
//! Values of 8 lower-case digits or more are kept as bytes in both. The envelope holds 65,535 tags of 255
//! values of 32,767 bytes, and refuses more. Written in one segment; read in up to 32. A list, text or data
//! may be met once: what is followed is held to the length of the message.
//!
//! Packing leaves out bytes that are zero. Two bytes can then stand for 2,048, so that what unpacks
//! to more than 16 times its length and 4 KiB is refused by reader and writer alike.
//!
//! The schema is `nostr_event.capnp`; `generated.rs` was made of it by `capnpc` 0.27 with
//! `default_parent_module(["formats", "capnp"])` and is renamed within. The library tells no
//! places: its faults are said to be at the start of the message, and so are all in packed ones.

mod envelope;
mod fields;
#[rustfmt::skip]
#[allow(missing_docs, unreachable_pub, clippy::all, reason = "made by a program")]
mod generated;
mod schema;
mod stream;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

pub use fields::Fields;
use generated::{event_batch, events};

use crate::{DecodeError, EncodeError, Event, Limits, Reason};

/// What a message holds, and whether it is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The published envelope.
    Envelope,
    /// The published envelope, packed.
    EnvelopePacked,
    /// A schema with a field for each field.
    Schema,
    /// A schema with a field for each field, packed.
    SchemaPacked,
}

impl Layout {
    /// Appends `event`.
    ///
    /// # Errors
    /// If there are more tags, values or bytes than the layout can count, or the message packs too well.
    pub fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Envelope | Self::EnvelopePacked => envelope::hold(event)?,
            Self::Schema | Self::SchemaPacked => {}
        }
        let words = self.words_at_most(event);
        stream::write(self.is_packed(), 1 + words, out, |message, scratch| match self {
            Self::Envelope | Self::EnvelopePacked => {
                envelope::write(event, message.init_root(), scratch);
            }
            Self::Schema | Self::SchemaPacked => schema::write(event, message.init_root()),
        })
    }

    /// The event that the message in `bytes` is.
    ///
    /// # Errors
    /// If it is no such message, or is over a limit.
    pub fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        let message = stream::read(self.is_packed(), bytes, arena)?;
        let place = Place(bytes);
        match self {
            Self::Envelope | Self::EnvelopePacked => {
                envelope::read(message.get_root().map_err(refused)?, place, arena, limits)
            }
            Self::Schema | Self::SchemaPacked => {
                schema::read(message.get_root().map_err(refused)?, place, arena, limits)
            }
        }
    }

    /// Appends `events` as one message with a list.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        EncodeError::at_most("events", events.len(), MAX_WORDS / 16)?;
        let is_envelope = matches!(self, Self::Envelope | Self::EnvelopePacked);
        if is_envelope {
            events.iter().try_for_each(envelope::hold)?;
        }
        let words: usize = events.iter().map(|event| self.words_at_most(event)).sum();
        stream::write(self.is_packed(), 3 + words, out, |message, scratch| {
            let count = events.len() as u32;
            if is_envelope {
                let mut list = message.init_root::<event_batch::Builder<'_>>().init_events(count);
                for (event, at) in events.iter().zip(0..) {
                    envelope::write(event, list.reborrow().get(at), scratch);
                }
            } else {
                let mut list = message.init_root::<events::Builder<'_>>().init_events(count);
                for (event, at) in events.iter().zip(0..) {
                    schema::write(event, list.reborrow().get(at));
                }
            }
        })
    }

    /// The events of such a list.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and if there are more than the limit.
    pub fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let message = stream::read(self.is_packed(), bytes, arena)?;
        let place = Place(bytes);
        match self {
            Self::Envelope | Self::EnvelopePacked => {
                let root: event_batch::Reader<'a> = message.get_root().map_err(refused)?;
                let list = root.get_events().map_err(refused)?;
                limits.hold_events(list.len() as usize, 0)?;
                collect(list, arena, |event| envelope::read(event, place, arena, limits))
            }
            Self::Schema | Self::SchemaPacked => {
                let root: events::Reader<'a> = message.get_root().map_err(refused)?;
                let list = root.get_events().map_err(refused)?;
                limits.hold_events(list.len() as usize, 0)?;
                collect(list, arena, |event| schema::read(event, place, arena, limits))
            }
        }
    }

    fn is_packed(self) -> bool {
        matches!(self, Self::EnvelopePacked | Self::SchemaPacked)
    }

    fn words_at_most(self, event: &Event<'_>) -> usize {
        match self {
            Self::Envelope | Self::EnvelopePacked => envelope::words_at_most(event),
            Self::Schema | Self::SchemaPacked => schema::words_at_most(event),
        }
    }
}

/// The items of a list, in the arena. The library has held its length to that of the message, but an
/// item may take a byte there and much more here, so that not many are believed before they are seen.
fn collect<L, T, E>(
    list: L,
    arena: &Bump,
    mut read: impl FnMut(T) -> Result<E, DecodeError>,
) -> Result<&[E], DecodeError>
where
    L: IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
{
    let list = list.into_iter();
    let mut items = BumpVec::with_capacity_in(list.len().min(MOST_AT_ONCE), arena);
    for item in list {
        items.push(read(item)?);
    }
    Ok(items.into_bump_slice())
}

/// The bytes that a message was read from.
#[derive(Clone, Copy)]
struct Place<'a>(&'a [u8]);

impl Place<'_> {
    /// Where `part` stands, or the start if it does not stand there.
    fn offset(self, part: &[u8]) -> usize {
        let offset = part.as_ptr().addr().wrapping_sub(self.0.as_ptr().addr());
        if offset <= self.0.len() { offset } else { 0 }
    }

    /// The fault `reason` at `part`.
    #[cold]
    fn fault(self, part: &[u8], reason: Reason) -> DecodeError {
        DecodeError::new(self.offset(part), reason)
    }
}

#[cold]
fn refused(error: ::capnp::Error) -> DecodeError {
    use ::capnp::ErrorKind as Kind;
    let reason = match error.kind {
        Kind::MessageEndsPrematurely(..)
        | Kind::PrematureEndOfFile
        | Kind::PrematureEndOfPackedInput
        | Kind::FailedToFillTheWholeBuffer => Reason::Truncated,
        Kind::MessageContainsOutOfBoundsPointer => {
            Reason::Expected("a pointer that stays in the message")
        }
        Kind::ReadLimitExceeded => Reason::Expected("a message in which nothing is met twice"),
        _ => Reason::Expected("a message of Cap'n Proto"),
    };
    DecodeError::new(0, reason)
}

/// Words of a message, so that every length in it can be told.
const MAX_WORDS: usize = 1 << 28;

/// Items of a list for which memory is taken before they are read.
const MOST_AT_ONCE: usize = 256;

/// Digits from which a value is kept as bytes.
const LEAST_DIGITS: usize = 8;

#[cfg(test)]
mod tests;
