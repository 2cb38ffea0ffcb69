//! What do single fields of an event say, where a layout tells them without the rest?

use bumpalo::Bump;

use super::{Format, proto};
use crate::{DecodeError, Event, Limits};

/// The fields of an event, read one at a time where its format has a place for each; the rest is then
/// not looked at, and may be broken. Of other formats the event is decoded as a whole.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Fields<'a> {
    /// Of Protocol Buffers.
    Proto(proto::Fields<'a>),
    /// Of a format that is read from front to end.
    Whole(Event<'a>),
}

impl Format {
    /// The fields of the event that `bytes` are.
    ///
    /// # Errors
    /// If what must be read to find them breaks a rule of the format.
    #[inline]
    pub fn fields<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        Ok(match self {
            Self::ProtoString => Fields::Proto(proto::Fields::new(proto::Schema::String, bytes)),
            Self::ProtoBinary => Fields::Proto(proto::Fields::new(proto::Schema::Binary, bytes)),
            Self::ProtoBinaryHex => {
                Fields::Proto(proto::Fields::new(proto::Schema::BinaryHex, bytes))
            }
            _ => Fields::Whole(self.decode(bytes, arena, limits)?),
        })
    }
}

impl Fields<'_> {
    /// The kind.
    ///
    /// # Errors
    /// If what is read breaks a rule of the format.
    #[inline]
    pub fn kind(&self) -> Result<u16, DecodeError> {
        match self {
            Self::Proto(fields) => fields.kind(),
            Self::Whole(event) => Ok(event.kind),
        }
    }

    /// The author's key.
    ///
    /// # Errors
    /// If what is read breaks a rule of the format.
    #[inline]
    pub fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        match self {
            Self::Proto(fields) => fields.pubkey(),
            Self::Whole(event) => Ok(event.pubkey),
        }
    }
}
