//! Cap'n Proto: the published envelope and a schema of Wireproof, both plain and packed. The library `capnp` lays
//! messages out and follows their pointers; the blobs in the envelope are hand-written.
//!
//! A message is a table of segments and the segments, in words of 8 bytes; a struct is its integers, then its
//! pointers.
//!
//! | [`Layout::Envelope`] | [`Layout::Schema`] |
//! |---|---|
//! | 3 pointers: `fixedData`, `tagData`, `content` | `createdAt`, `kind` in 2 words; 5 pointers: `id`, `pubkey`, `tags`, `content`, `sig` |
//! | `fixedData`, 138 bytes: id, pubkey, sig, then `created_at` in 8 and `kind` in 2, little-endian | data of 32, 32 and 64 bytes |
//! | `tagData`: number of tags in 2 bytes, little-endian; then per tag: number of values in 1 byte; per value: 2 bytes, the highest bit set for hexadecimal, the others the length; the bytes | a list of lists of structs, all unions of text and the bytes of hexadecimal |
//!
//! Both store values of at least 8 lower-case digits as bytes. The envelope holds 65,535 tags of 255 values of
//! 32,767 bytes; more is rejected. Messages are written in one segment and read in up to 32. A list, text or data
//! may be visited once: the total that is followed is limited to the length of the message.
//!
//! Packing removes zero bytes. Two bytes can then stand for 2,048, so encoder and decoder both reject a message
//! that unpacks to more than 16 times its length plus 4 KiB. The unpacked message counts as memory of
//! [lists](Limits::list_bytes).
//!
//! The schema is `docs/formats/nostr/capnp.capnp`. The library reports no positions: its errors have offset 0, as have all
//! errors in packed messages.

mod envelope;
mod explain;
mod records;
mod schema;
mod stream;

use std::fmt;

use bumpalo::Bump;

use super::{Codec, ReadFields, Visit};
use nostr::limits::Budget;
use nostr::{DecodeError, EncodeError, Event, Field, Limits};
use records::{Envelope, EnvelopeReader, ListBuilder, ListReader};
use stream::{Message, Origin, convert_error};

/// The codec of a message: its schema, and whether it is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// The published envelope.
    Envelope,
    /// The published envelope, packed.
    EnvelopePacked,
    /// A schema with a field for every field of the event.
    Schema,
    /// A schema with a field for every field of the event, packed.
    SchemaPacked,
}

impl Codec for Layout {
    type Fields<'a> = Fields<'a>;

    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if self.is_envelope() {
            envelope::check(event)?;
        }
        let words = self.max_words(event);
        stream::write(self.is_packed(), 1 + words, out, |message, scratch| {
            if self.is_envelope() {
                envelope::write(event, message.init_root(), scratch);
            } else {
                schema::write(event, message.init_root());
            }
        })
    }

    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        let limits = &Budget::new(bytes.len(), limits);
        let message = stream::read(self.is_packed(), bytes, arena, limits)?;
        let origin = Origin(bytes);
        if self.is_envelope() {
            envelope::read(message.get_root().map_err(convert_error)?, origin, arena, limits)
        } else {
            schema::read(message.get_root().map_err(convert_error)?, origin, arena, limits)
        }
    }

    /// The offsets of a packed message count in the unpacked one.
    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        if self.is_packed() {
            explain::event(&stream::unpacked(bytes), self.is_envelope(), visit)
        } else {
            explain::event(bytes, self.is_envelope(), visit)
        }
    }

    /// Appends `events` as one message with a list.
    fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        EncodeError::at_most("events", events.len(), stream::MAX_WORDS / 16)?;
        if self.is_envelope() {
            events.iter().try_for_each(envelope::check)?;
        }
        let words: usize = events.iter().map(|event| self.max_words(event)).sum();
        stream::write(self.is_packed(), 3 + words, out, |message, scratch| {
            let (root, count) = (message.init_root::<ListBuilder<'_>>(), events.len() as u32);
            if self.is_envelope() {
                let mut list = root.init_items::<Envelope>(count);
                for (event, index) in events.iter().zip(0..) {
                    envelope::write(event, list.reborrow().get(index), scratch);
                }
            } else {
                let mut list = root.init_items::<records::Event>(count);
                for (event, index) in events.iter().zip(0..) {
                    schema::write(event, list.reborrow().get(index));
                }
            }
        })
    }

    fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        let limits = &Budget::new(bytes.len(), limits);
        let message = stream::read(self.is_packed(), bytes, arena, limits)?;
        let max_events = stream::len(message) / MIN_EVENT_BYTES;
        let origin = Origin(bytes);
        let root: ListReader<'a> = message.get_root().map_err(convert_error)?;
        if self.is_envelope() {
            let list = root.items::<Envelope>().map_err(convert_error)?;
            limits.check_events(list.len() as usize, 0)?;
            let read = |event| envelope::read(event, origin, arena, limits);
            stream::collect(list, max_events, arena, read)
        } else {
            let list = root.items::<records::Event>().map_err(convert_error)?;
            limits.check_events(list.len() as usize, 0)?;
            let read = |event| schema::read(event, origin, arena, limits);
            stream::collect(list, max_events, arena, read)
        }
    }

    /// Opens a message; a packed one is decoded whole.
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        if self.is_packed() {
            return Ok(Fields(Source::Event(self.decode(bytes, arena, limits)?)));
        }
        let message = arena.alloc(stream::open_for_fields(bytes)?);
        let origin = Origin(bytes);
        Ok(Fields(Source::Message { is_envelope: self.is_envelope(), origin, message }))
    }
}

impl Layout {
    fn is_envelope(self) -> bool {
        matches!(self, Self::Envelope | Self::EnvelopePacked)
    }

    fn is_packed(self) -> bool {
        matches!(self, Self::EnvelopePacked | Self::SchemaPacked)
    }

    fn max_words(self, event: &Event<'_>) -> usize {
        if self.is_envelope() { envelope::max_words(event) } else { schema::max_words(event) }
    }
}

/// The fields of a message: looked at when they are read, unless the message is packed.
#[derive(Clone, Copy)]
pub struct Fields<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Message { is_envelope: bool, origin: Origin<'a>, message: &'a Message<'a> },
    Event(Event<'a>),
}

/// The struct that holds the fields.
enum Record<'m> {
    Envelope(envelope::FixedData<'m>),
    Schema(records::EventReader<'m>, Origin<'m>),
    Event(&'m Event<'m>),
}

impl Fields<'_> {
    /// Reads the id.
    ///
    /// # Errors
    /// If a pointer leaves the message, or the field has the wrong length.
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        match self.record()? {
            Record::Envelope(fixed) => Ok(*fixed.part(0)),
            Record::Schema(event, origin) => schema::fixed(event.id(), Field::Id, origin),
            Record::Event(event) => Ok(event.id),
        }
    }

    fn record(&self) -> Result<Record<'_>, DecodeError> {
        match &self.0 {
            Source::Message { is_envelope: true, origin, message } => {
                let root: EnvelopeReader<'_> = message.get_root().map_err(convert_error)?;
                Ok(Record::Envelope(envelope::FixedData::new(root, *origin)?))
            }
            Source::Message { is_envelope: false, origin, message } => {
                Ok(Record::Schema(message.get_root().map_err(convert_error)?, *origin))
            }
            Source::Event(event) => Ok(Record::Event(event)),
        }
    }
}

impl ReadFields for Fields<'_> {
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        match self.record()? {
            Record::Envelope(fixed) => Ok(*fixed.part(32)),
            Record::Schema(event, origin) => schema::fixed(event.pubkey(), Field::Pubkey, origin),
            Record::Event(event) => Ok(event.pubkey),
        }
    }

    fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(match self.record()? {
            Record::Envelope(fixed) => fixed.created_at(),
            Record::Schema(event, _) => event.created_at(),
            Record::Event(event) => event.created_at,
        })
    }

    fn kind(&self) -> Result<u16, DecodeError> {
        Ok(match self.record()? {
            Record::Envelope(fixed) => fixed.kind(),
            Record::Schema(event, _) => event.kind(),
            Record::Event(event) => event.kind,
        })
    }
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").finish_non_exhaustive()
    }
}

/// Minimum size of an event in a message in bytes: id, key and signature.
const MIN_EVENT_BYTES: usize = 32 + 32 + 64;

#[cfg(test)]
mod tests;
