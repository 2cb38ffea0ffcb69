//! How does an event travel, and what do these bytes say in that format?
//!
//! Each format is a module that draws its layout and offers the same functions:
//!
//! | function | answers |
//! |---|---|
//! | `encode(event, out)` | appends the event, or refuses what the layout cannot hold |
//! | `decode(bytes, arena, limits)` | the event that these bytes are, all of them |
//! | `encode_batch(events, out)` | appends many events in the format's own list, or [framed] |
//! | `decode_batch(bytes, arena, limits)` | the events of such a list |
//! | `Fields::new(bytes)` | where the layout allows: single fields without the rest |
//!
//! [`Format`] names them all, for those who choose at run time.

pub mod capnp;
pub mod cbor;
pub(crate) mod compact;
pub mod dannypack;
mod fields;
pub mod flatbuffers;
pub mod framed;
pub mod json;
pub mod msgpack;
pub mod ndb_note;
pub mod notepack;
pub mod packed_event;
pub mod proto;
mod tags;
pub mod wireproof;

use bumpalo::Bump;

pub use fields::Fields;

use crate::{DecodeError, EncodeError, Event, Limits};

/// A format that holds whole events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// [`json`]: NIP-01's object, and an array of them.
    Json,
    /// [`cbor::schemaless`]: a map with the names of JSON.
    CborSchemaless,
    /// [`cbor::packed`]: an array in one way only.
    CborPacked,
    /// [`cbor::intkey`]: a map with numbers for names.
    CborIntkey,
    /// [`msgpack`]: an array.
    Msgpack,
    /// [`dannypack`]: fixed offsets, then tags and content.
    Dannypack,
    /// [`notepack`]: version 1.
    Notepack,
    /// [`proto::Schema::String`].
    ProtoString,
    /// [`proto::Schema::Binary`].
    ProtoBinary,
    /// [`proto::Schema::BinaryHex`].
    ProtoBinaryHex,
    /// [`capnp::Layout::Envelope`].
    Capnp,
    /// [`capnp::Layout::EnvelopePacked`].
    CapnpPacked,
    /// [`capnp::Layout::Schema`].
    CapnpSchema,
    /// [`capnp::Layout::SchemaPacked`].
    CapnpSchemaPacked,
    /// [`flatbuffers`]: a table of tables.
    Flatbuffers,
    /// [`ndb_note`]: nostrdb's note in memory.
    NdbNote,
    /// [`wireproof`]: the smallest, without what readers recompute.
    Wireproof,
}

impl Format {
    /// All formats, in the order of the tables.
    pub const ALL: &[Self] = &[
        Self::Json,
        Self::CborSchemaless,
        Self::CborPacked,
        Self::CborIntkey,
        Self::Msgpack,
        Self::Dannypack,
        Self::Notepack,
        Self::ProtoString,
        Self::ProtoBinary,
        Self::ProtoBinaryHex,
        Self::Capnp,
        Self::CapnpPacked,
        Self::CapnpSchema,
        Self::CapnpSchemaPacked,
        Self::Flatbuffers,
        Self::NdbNote,
        Self::Wireproof,
    ];

    /// The name in results and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::CborSchemaless => "cbor-schemaless",
            Self::CborPacked => "cbor-packed",
            Self::CborIntkey => "cbor-intkey",
            Self::Msgpack => "msgpack",
            Self::Dannypack => "dannypack",
            Self::Notepack => "notepack",
            Self::ProtoString => "proto-string",
            Self::ProtoBinary => "proto-binary",
            Self::ProtoBinaryHex => "proto-binary-hex",
            Self::Capnp => "capnp",
            Self::CapnpPacked => "capnp-packed",
            Self::CapnpSchema => "capnp-schema",
            Self::CapnpSchemaPacked => "capnp-schema-packed",
            Self::Flatbuffers => "flatbuffers",
            Self::NdbNote => "ndb-note",
            Self::Wireproof => "wireproof",
        }
    }

    /// The format of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// Who wrote the codec: `hand-written`, or the library that does the work.
    pub fn codec(self) -> &'static str {
        match self {
            Self::NdbNote => HAND_WRITTEN,
            Self::Flatbuffers => "flatbuffers, read by hand",
            Self::Capnp | Self::CapnpPacked | Self::CapnpSchema | Self::CapnpSchemaPacked => {
                "capnp"
            }
            Self::Msgpack => "rmp",
            _ => HAND_WRITTEN,
        }
    }

    /// Appends `event`.
    ///
    /// # Errors
    /// If the layout cannot hold it; then nothing was appended.
    pub fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Json => json::encode(event, out),
            Self::CborSchemaless => cbor::schemaless::encode(event, out),
            Self::CborPacked => cbor::packed::encode(event, out),
            Self::CborIntkey => cbor::intkey::encode(event, out),
            Self::Msgpack => msgpack::encode(event, out),
            Self::Dannypack => dannypack::encode(event, out),
            Self::Notepack => notepack::encode(event, out),
            Self::ProtoString => proto::Schema::String.encode(event, out),
            Self::ProtoBinary => proto::Schema::Binary.encode(event, out),
            Self::ProtoBinaryHex => proto::Schema::BinaryHex.encode(event, out),
            Self::Capnp => capnp::Layout::Envelope.encode(event, out),
            Self::CapnpPacked => capnp::Layout::EnvelopePacked.encode(event, out),
            Self::CapnpSchema => capnp::Layout::Schema.encode(event, out),
            Self::CapnpSchemaPacked => capnp::Layout::SchemaPacked.encode(event, out),
            Self::Flatbuffers => flatbuffers::encode(event, out),
            Self::NdbNote => ndb_note::encode(event, out),
            Self::Wireproof => wireproof::encode(event, out),
        }
    }

    /// The event that `bytes` are, with its lists in `arena`.
    ///
    /// # Errors
    /// If they are not exactly one event of the format within `limits`.
    #[inline]
    pub fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        match self {
            Self::Json => json::decode(bytes, arena, limits),
            Self::CborSchemaless => cbor::schemaless::decode(bytes, arena, limits),
            Self::CborPacked => cbor::packed::decode(bytes, arena, limits),
            Self::CborIntkey => cbor::intkey::decode(bytes, arena, limits),
            Self::Msgpack => msgpack::decode(bytes, arena, limits),
            Self::Dannypack => dannypack::decode(bytes, arena, limits),
            Self::Notepack => notepack::decode(bytes, arena, limits),
            Self::ProtoString => proto::Schema::String.decode(bytes, arena, limits),
            Self::ProtoBinary => proto::Schema::Binary.decode(bytes, arena, limits),
            Self::ProtoBinaryHex => proto::Schema::BinaryHex.decode(bytes, arena, limits),
            Self::Capnp => capnp::Layout::Envelope.decode(bytes, arena, limits),
            Self::CapnpPacked => capnp::Layout::EnvelopePacked.decode(bytes, arena, limits),
            Self::CapnpSchema => capnp::Layout::Schema.decode(bytes, arena, limits),
            Self::CapnpSchemaPacked => capnp::Layout::SchemaPacked.decode(bytes, arena, limits),
            Self::Flatbuffers => flatbuffers::decode(bytes, arena, limits),
            Self::NdbNote => ndb_note::decode(bytes, arena, limits),
            Self::Wireproof => wireproof::decode(bytes, arena, limits),
        }
    }

    /// Appends a batch of `events`.
    ///
    /// # Errors
    /// If the layout cannot hold one of them; then nothing was appended.
    pub fn encode_batch(self, events: &[Event<'_>], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Json => json::encode_batch(events, out),
            Self::CborSchemaless => cbor::schemaless::encode_batch(events, out),
            Self::CborPacked => cbor::packed::encode_batch(events, out),
            Self::CborIntkey => cbor::intkey::encode_batch(events, out),
            Self::Msgpack => msgpack::encode_batch(events, out),
            Self::Dannypack => dannypack::encode_batch(events, out),
            Self::Notepack => notepack::encode_batch(events, out),
            Self::ProtoString => proto::Schema::String.encode_batch(events, out),
            Self::ProtoBinary => proto::Schema::Binary.encode_batch(events, out),
            Self::ProtoBinaryHex => proto::Schema::BinaryHex.encode_batch(events, out),
            Self::Capnp => capnp::Layout::Envelope.encode_batch(events, out),
            Self::CapnpPacked => capnp::Layout::EnvelopePacked.encode_batch(events, out),
            Self::CapnpSchema => capnp::Layout::Schema.encode_batch(events, out),
            Self::CapnpSchemaPacked => capnp::Layout::SchemaPacked.encode_batch(events, out),
            Self::Flatbuffers => flatbuffers::encode_batch(events, out),
            Self::NdbNote => ndb_note::encode_batch(events, out),
            Self::Wireproof => wireproof::encode_batch(events, out),
        }
    }

    /// The events of a batch, in `arena`.
    ///
    /// # Errors
    /// If `bytes` are not exactly one batch of the format within `limits`.
    pub fn decode_batch<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<&'a [Event<'a>], DecodeError> {
        match self {
            Self::Json => json::decode_batch(bytes, arena, limits),
            Self::CborSchemaless => cbor::schemaless::decode_batch(bytes, arena, limits),
            Self::CborPacked => cbor::packed::decode_batch(bytes, arena, limits),
            Self::CborIntkey => cbor::intkey::decode_batch(bytes, arena, limits),
            Self::Msgpack => msgpack::decode_batch(bytes, arena, limits),
            Self::Dannypack => dannypack::decode_batch(bytes, arena, limits),
            Self::Notepack => notepack::decode_batch(bytes, arena, limits),
            Self::ProtoString => proto::Schema::String.decode_batch(bytes, arena, limits),
            Self::ProtoBinary => proto::Schema::Binary.decode_batch(bytes, arena, limits),
            Self::ProtoBinaryHex => proto::Schema::BinaryHex.decode_batch(bytes, arena, limits),
            Self::Capnp => capnp::Layout::Envelope.decode_batch(bytes, arena, limits),
            Self::CapnpPacked => capnp::Layout::EnvelopePacked.decode_batch(bytes, arena, limits),
            Self::CapnpSchema => capnp::Layout::Schema.decode_batch(bytes, arena, limits),
            Self::CapnpSchemaPacked => {
                capnp::Layout::SchemaPacked.decode_batch(bytes, arena, limits)
            }
            Self::Flatbuffers => flatbuffers::decode_batch(bytes, arena, limits),
            Self::NdbNote => ndb_note::decode_batch(bytes, arena, limits),
            Self::Wireproof => wireproof::decode_batch(bytes, arena, limits),
        }
    }
}

/// What [`Format::codec`] says of the formats whose codecs are ours.
pub const HAND_WRITTEN: &str = "hand-written";

/// Appends by `write`, or leaves `out` as it was.
pub(crate) fn or_undo(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
) -> Result<(), EncodeError> {
    let start = out.len();
    write(out).inspect_err(|_| out.truncate(start))
}

#[cfg(test)]
mod tests;
