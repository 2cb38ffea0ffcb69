//! What do single fields of an event say, where a layout tells them without the rest?

use bumpalo::Bump;

use super::cbor::packed;
use super::{Format, capnp, dannypack, flatbuffers, msgpack, ndb_note, notepack, proto, wireproof};
use crate::{DecodeError, Event, Limits};

/// The fields of an event, read one at a time where its format has a place for each; the rest is then
/// not looked at, and may be broken. Of other formats the event is decoded as a whole.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Fields<'a> {
    /// Of CBOR by position.
    CborPacked(packed::Fields<'a>),
    /// Of MessagePack.
    Msgpack(msgpack::Fields<'a>),
    /// Of DannyPack.
    Dannypack(dannypack::Fields<'a>),
    /// Of Notepack.
    Notepack(notepack::Fields<'a>),
    /// Of Protocol Buffers.
    Proto(proto::Fields<'a>),
    /// Of Cap'n Proto, not packed.
    Capnp(capnp::Fields<'a>),
    /// Of FlatBuffers.
    Flatbuffers(flatbuffers::Fields<'a>),
    /// Of nostrdb's note.
    NdbNote(ndb_note::Fields<'a>),
    /// Of the format of ours.
    Wireproof(wireproof::Fields<'a>),
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
            Self::CborPacked => Fields::CborPacked(packed::Fields::new(bytes)?),
            Self::Msgpack => Fields::Msgpack(msgpack::Fields::new(bytes)?),
            Self::Dannypack => Fields::Dannypack(dannypack::Fields::new(bytes)?),
            Self::Notepack => Fields::Notepack(notepack::Fields::new(bytes)?),
            Self::ProtoString => Fields::Proto(proto::Fields::new(proto::Schema::String, bytes)),
            Self::ProtoBinary => Fields::Proto(proto::Fields::new(proto::Schema::Binary, bytes)),
            Self::ProtoBinaryHex => {
                Fields::Proto(proto::Fields::new(proto::Schema::BinaryHex, bytes))
            }
            Self::Capnp => {
                Fields::Capnp(capnp::Fields::new(capnp::Layout::Envelope, bytes, arena)?)
            }
            Self::CapnpSchema => {
                Fields::Capnp(capnp::Fields::new(capnp::Layout::Schema, bytes, arena)?)
            }
            Self::Flatbuffers => Fields::Flatbuffers(flatbuffers::Fields::new(bytes)?),
            Self::NdbNote => Fields::NdbNote(ndb_note::Fields::new(bytes)?),
            Self::Wireproof => Fields::Wireproof(wireproof::Fields::new(bytes)?),
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
            Self::CborPacked(fields) => fields.kind(),
            Self::Msgpack(fields) => fields.kind(),
            Self::Dannypack(fields) => Ok(fields.kind()),
            Self::Notepack(fields) => fields.kind(),
            Self::Proto(fields) => fields.kind(),
            Self::Capnp(fields) => fields.kind(),
            Self::Flatbuffers(fields) => fields.kind(),
            Self::NdbNote(fields) => fields.kind(),
            Self::Wireproof(fields) => fields.kind(),
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
            Self::CborPacked(fields) => Ok(*fields.pubkey()),
            Self::Msgpack(fields) => Ok(*fields.pubkey()),
            Self::Dannypack(fields) => Ok(*fields.pubkey()),
            Self::Notepack(fields) => Ok(*fields.pubkey()),
            Self::Proto(fields) => fields.pubkey(),
            Self::Capnp(fields) => fields.pubkey(),
            Self::Flatbuffers(fields) => fields.pubkey(),
            Self::NdbNote(fields) => Ok(*fields.pubkey()),
            Self::Wireproof(fields) => Ok(*fields.pubkey()),
            Self::Whole(event) => Ok(event.pubkey),
        }
    }
}
