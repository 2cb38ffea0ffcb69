//! What does one field of a message say, without the others?

use std::fmt;

use super::generated::{event, nostr_event};
use super::stream::Message;
use super::*;
use crate::Field;

/// A message, not packed, whose fields are looked at when they are asked for.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    is_envelope: bool,
    place: Place<'a>,
    message: &'a Message<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of the message in `bytes`; the packed layouts must be unpacked whole, and have none.
    ///
    /// # Errors
    /// If its table of segments is not that of these bytes, or the layout is a packed one.
    pub fn new(layout: Layout, bytes: &'a [u8], arena: &'a Bump) -> Result<Self, DecodeError> {
        if layout.is_packed() {
            return Err(DecodeError::new(0, Reason::Expected("a message that is not packed")));
        }
        let is_envelope = layout == Layout::Envelope;
        let message = arena.alloc(stream::open_for_fields(bytes)?);
        Ok(Self { is_envelope, place: Place(bytes), message })
    }

    /// The id.
    ///
    /// # Errors
    /// If the way to it leaves the message, or it is of a wrong length.
    pub fn id(&self) -> Result<[u8; 32], DecodeError> {
        match self.event()? {
            Found::Envelope(fixed) => Ok(*fixed.part(0)),
            Found::Schema(event) => schema::fixed(event.get_id(), Field::Id, self.place),
        }
    }

    /// The author's key.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        match self.event()? {
            Found::Envelope(fixed) => Ok(*fixed.part(32)),
            Found::Schema(event) => schema::fixed(event.get_pubkey(), Field::Pubkey, self.place),
        }
    }

    /// When it was made, by the author's clock.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn created_at(&self) -> Result<i64, DecodeError> {
        Ok(match self.event()? {
            Found::Envelope(fixed) => fixed.created_at(),
            Found::Schema(event) => event.get_created_at(),
        })
    }

    /// The kind.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn kind(&self) -> Result<u16, DecodeError> {
        Ok(match self.event()? {
            Found::Envelope(fixed) => fixed.kind(),
            Found::Schema(event) => event.get_kind(),
        })
    }

    fn event(&self) -> Result<Found<'_>, DecodeError> {
        if !self.is_envelope {
            return Ok(Found::Schema(self.message.get_root().map_err(refused)?));
        }
        let root: nostr_event::Reader<'_> = self.message.get_root().map_err(refused)?;
        Ok(Found::Envelope(envelope::Fixed::of(root, self.place)?))
    }
}

impl fmt::Debug for Fields<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").field("is_envelope", &self.is_envelope).finish_non_exhaustive()
    }
}

enum Found<'m> {
    Envelope(envelope::Fixed<'m>),
    Schema(event::Reader<'m>),
}
