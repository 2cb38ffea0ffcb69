//! What do single fields of an event say, where a layout tells them without the rest?

use bumpalo::Bump;

use super::capnp::Layout;
use super::proto::Schema;
use super::{
    Format, capnp, cbor, dannypack, flatbuffers, json, msgpack, ndb_note, notepack, proto,
    wireproof,
};
use crate::{DecodeError, Event, Limits};

/// The fields of an event, read one at a time where its format has a place for each; the rest is then
/// not looked at, and may be broken. Of other formats the event is decoded as a whole.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fields<'a> {
    /// Of JSON.
    Json(json::Fields<'a>),
    /// Of CBOR with names.
    CborSchemaless(cbor::schemaless::Fields<'a>),
    /// Of packed CBOR.
    CborPacked(cbor::packed::Fields<'a>),
    /// Of CBOR with numbers.
    CborIntkey(cbor::intkey::Fields<'a>),
    /// Of MessagePack.
    Msgpack(msgpack::Fields<'a>),
    /// Of DannyPack.
    Dannypack(dannypack::Fields<'a>),
    /// Of Notepack.
    Notepack(notepack::Fields<'a>),
    /// Of Protocol Buffers.
    Proto(proto::Fields<'a>),
    /// Of Cap'n Proto.
    Capnp(capnp::Fields<'a>),
    /// Of FlatBuffers.
    Flatbuffers(flatbuffers::Fields<'a>),
    /// Of nostrdb's note.
    NdbNote(ndb_note::Fields<'a>),
    /// Of our own format.
    Wireproof(wireproof::Fields<'a>),
    /// Of a format that must be unpacked whole.
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
        let proto = |schema| Ok(Fields::Proto(proto::Fields::new(schema, bytes)));
        let capnp = |layout| capnp::Fields::new(layout, bytes, arena).map(Fields::Capnp);
        match self {
            Self::Json => json::Fields::new(bytes, arena).map(Fields::Json),
            Self::CborSchemaless => {
                Ok(Fields::CborSchemaless(cbor::schemaless::Fields::new(bytes, arena)))
            }
            Self::CborPacked => cbor::packed::Fields::new(bytes).map(Fields::CborPacked),
            Self::CborIntkey => Ok(Fields::CborIntkey(cbor::intkey::Fields::new(bytes, arena))),
            Self::Msgpack => msgpack::Fields::new(bytes).map(Fields::Msgpack),
            Self::Dannypack => dannypack::Fields::new(bytes).map(Fields::Dannypack),
            Self::Notepack => notepack::Fields::new(bytes).map(Fields::Notepack),
            Self::ProtoString => proto(Schema::String),
            Self::ProtoBinary => proto(Schema::Binary),
            Self::ProtoBinaryHex => proto(Schema::BinaryHex),
            Self::Capnp => capnp(Layout::Envelope),
            Self::CapnpSchema => capnp(Layout::Schema),
            Self::Flatbuffers => flatbuffers::Fields::new(bytes).map(Fields::Flatbuffers),
            Self::NdbNote => ndb_note::Fields::new(bytes).map(Fields::NdbNote),
            Self::Wireproof => wireproof::Fields::new(bytes).map(Fields::Wireproof),
            Self::CapnpPacked | Self::CapnpSchemaPacked => {
                self.decode(bytes, arena, limits).map(Fields::Whole)
            }
        }
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
            Self::Json(fields) => fields.kind(),
            Self::CborSchemaless(fields) => fields.kind(),
            Self::CborPacked(fields) => fields.kind(),
            Self::CborIntkey(fields) => fields.kind(),
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
            Self::Json(fields) => fields.pubkey(),
            Self::CborSchemaless(fields) => fields.pubkey(),
            Self::CborPacked(fields) => Ok(*fields.pubkey()),
            Self::CborIntkey(fields) => fields.pubkey(),
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
