//! The formats of Nostr events: a codec per format, the table that names them, and containers.
//!
//! A [`Codec`] encodes and decodes one event or a batch, and reads single fields. [`Format`] is the table of all
//! codecs, for callers that choose at run time: its methods match once, then run code compiled for
//! that codec.
//!
//! Containers (`containers`) and formats that need a library are behind cargo features, which are on by default: `capnp`, `flatbuffers` and
//! `msgpack`. A build without a feature lacks its formats altogether: [`Format`] has no variant for them and
//! [`Format::ALL`] and [`Format::from_name`] do not know them.
//!
//! [`packed_event`] is a summary of an event, not a format of whole events, and so not in the table.
//!
//! The crate reads no file, socket or clock. No input makes it panic, recurse past a stated limit, or allocate
//! memory out of proportion to its length.

#![forbid(unsafe_code)]

#[cfg(feature = "capnp")]
pub mod capnp;
pub mod cbor;
mod codec;
#[cfg(feature = "containers")]
pub mod container;
pub mod dannypack;
mod explain;
mod fields;
#[cfg(feature = "flatbuffers")]
pub mod flatbuffers;
pub mod json;
#[cfg(feature = "msgpack")]
pub mod msgpack;
pub mod ndb_note;
pub mod notepack;
pub mod packed_event;
pub mod proto;
mod tags;
pub mod wireproof;

use bumpalo::Bump;
use nostr::{DecodeError, EncodeError, Event, Limits};

pub use codec::Codec;
pub use explain::{Meaning, Span, Visit};
pub use fields::{ReadFields, SequentialFields};
pub use tags::{Tags, Values};

/// Declares [`Format`] and [`Fields`] from one row per format: the variant, its name, its codec, the implementation of
/// the codec, and the events that the layout cannot hold. `if` names the cargo feature it needs.
macro_rules! formats {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident = $name:literal, $module:ident::$codec:ident$(::$layout:ident)?,
        $implementation:expr, $restriction:expr $(, if $feature:literal)?;
    )+) => {
        /// A format that holds whole events.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Format {$(
            $(#[doc = $doc])+
            $(#[cfg(feature = $feature)])?
            $variant,
        )+}

        /// The fields of one encoded event, read one at a time.
        ///
        /// A read looks only at the bytes that locate its field; the rest may be malformed. Packed Cap'n
        /// Proto is decoded whole when it is opened.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum Fields<'a> {$(
            #[doc = concat!("An event in [`Format::", stringify!($variant), "`].")]
            $(#[cfg(feature = $feature)])?
            $variant(<$module::$codec as Codec>::Fields<'a>),
        )+}

        impl Format {
            /// All formats of this build, in the order of the published tables.
            pub const ALL: &[Self] = &[$(
                $(#[cfg(feature = $feature)])?
                Self::$variant,
            )+];

            /// The name in results and on the command line.
            pub fn name(self) -> &'static str {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => $name,
                )+}
            }

            /// The implementation of the codec: [`HAND_WRITTEN`], or the library that does the work.
            pub fn implementation(self) -> &'static str {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => $implementation,
                )+}
            }

            /// The events that the layout cannot hold; `None` if it holds every event.
            pub fn restriction(self) -> Option<&'static str> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => $restriction,
                )+}
            }

            /// Appends `event`.
            ///
            /// # Errors
            /// If the layout cannot hold the event; `out` is then unchanged.
            pub fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => $module::$codec$(::$layout)?.encode(event, out),
                )+}
            }

            /// Decodes `bytes`, which must be exactly one event; lists are allocated in `arena`.
            ///
            /// # Errors
            /// If the bytes break a rule of the format or exceed `limits`.
            #[inline]
            pub fn decode<'a>(
                self,
                bytes: &'a [u8],
                arena: &'a Bump,
                limits: &Limits,
            ) -> Result<Event<'a>, DecodeError> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => $module::$codec$(::$layout)?.decode(bytes, arena, limits),
                )+}
            }

            /// Appends `events` as one batch.
            ///
            /// # Errors
            /// If the layout cannot hold one of the events; `out` is then unchanged.
            pub fn encode_batch(
                self,
                events: &[Event<'_>],
                out: &mut Vec<u8>,
            ) -> Result<(), EncodeError> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => $module::$codec$(::$layout)?.encode_batch(events, out),
                )+}
            }

            /// Decodes `bytes`, which must be exactly one batch; events are allocated in `arena`.
            ///
            /// # Errors
            /// If the bytes break a rule of the format or exceed `limits`.
            pub fn decode_batch<'a>(
                self,
                bytes: &'a [u8],
                arena: &'a Bump,
                limits: &Limits,
            ) -> Result<&'a [Event<'a>], DecodeError> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => $module::$codec$(::$layout)?.decode_batch(bytes, arena, limits),
                )+}
            }

            /// Names the meaning of every byte of an event, in the order of the bytes. Parts that an encoder shares may
            /// overlap.
            ///
            /// # Errors
            /// If the bytes are not exactly one event, or exceed `limits`.
            pub fn explain(
                self,
                bytes: &[u8],
                limits: &Limits,
                visit: Visit<'_>,
            ) -> Result<(), DecodeError> {
                self.decode(bytes, &Bump::new(), limits)?;
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => $module::$codec$(::$layout)?.explain(bytes, visit),
                )+}
            }

            /// Opens an encoded event for reading single fields.
            ///
            /// # Errors
            /// If the bytes that locate the fields break a rule of the format.
            #[inline]
            pub fn fields<'a>(
                self,
                bytes: &'a [u8],
                arena: &'a Bump,
                limits: &Limits,
            ) -> Result<Fields<'a>, DecodeError> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant => {
                        let codec = $module::$codec$(::$layout)?;
                        codec.fields(bytes, arena, limits).map(Fields::$variant)
                    }
                )+}
            }
        }

        impl Fields<'_> {
            /// Reads the author's x-only public key.
            ///
            /// # Errors
            /// If the field, or a part that must be read to find it, breaks a rule of the format.
            #[inline]
            pub fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant(fields) => fields.pubkey(),
                )+}
            }

            /// Reads the creation time in seconds since 1970, by the author's clock.
            ///
            /// # Errors
            /// As [`pubkey`](Self::pubkey).
            #[inline]
            pub fn created_at(&self) -> Result<i64, DecodeError> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant(fields) => fields.created_at(),
                )+}
            }

            /// Reads the kind.
            ///
            /// # Errors
            /// As [`pubkey`](Self::pubkey).
            #[inline]
            pub fn kind(&self) -> Result<u16, DecodeError> {
                match self {$(
                    $(#[cfg(feature = $feature)])?
                    Self::$variant(fields) => fields.kind(),
                )+}
            }
        }
    };
}

formats! {
    /// [`json`]: the object of NIP-01.
    Json = "json", json::Json, HAND_WRITTEN, None;
    /// [`cbor::Schemaless`]: a map with the field names of JSON.
    CborSchemaless = "cbor-schemaless", cbor::Schemaless, HAND_WRITTEN, None;
    /// [`cbor::Packed`]: an array; every event has one encoding.
    CborPacked = "cbor-packed", cbor::Packed, HAND_WRITTEN, None;
    /// [`cbor::IntKey`]: a map with integer keys.
    CborIntkey = "cbor-intkey", cbor::IntKey, HAND_WRITTEN, None;
    /// [`msgpack`]: an array.
    Msgpack = "msgpack", msgpack::Msgpack, "rmp", None, if "msgpack";
    /// [`dannypack`]: fixed offsets, then tags and content.
    Dannypack = "dannypack", dannypack::Dannypack, HAND_WRITTEN,
        Some("more than 255 values in a tag");
    /// [`notepack`]: version 1.
    Notepack = "notepack", notepack::Notepack, HAND_WRITTEN, None;
    /// [`proto::Schema::String`].
    ProtoString = "proto-string", proto::Schema::String, HAND_WRITTEN, None;
    /// [`proto::Schema::Binary`].
    ProtoBinary = "proto-binary", proto::Schema::Binary, HAND_WRITTEN, None;
    /// [`proto::Schema::BinaryHex`].
    ProtoBinaryHex = "proto-binary-hex", proto::Schema::BinaryHex, HAND_WRITTEN, None;
    /// [`capnp::Layout::Envelope`].
    Capnp = "capnp", capnp::Layout::Envelope, "capnp", Some(ENVELOPE), if "capnp";
    /// [`capnp::Layout::EnvelopePacked`].
    CapnpPacked = "capnp-packed", capnp::Layout::EnvelopePacked, "capnp", Some(ENVELOPE_PACKED),
        if "capnp";
    /// [`capnp::Layout::Schema`].
    CapnpSchema = "capnp-schema", capnp::Layout::Schema, "capnp", None, if "capnp";
    /// [`capnp::Layout::SchemaPacked`].
    CapnpSchemaPacked = "capnp-schema-packed", capnp::Layout::SchemaPacked, "capnp",
        Some("an event of little but NUL"), if "capnp";
    /// [`flatbuffers`]: a table of tables.
    Flatbuffers = "flatbuffers", flatbuffers::Flatbuffers, "flatbuffers, read by hand", None,
        if "flatbuffers";
    /// [`ndb_note`]: the in-memory note of nostrdb.
    NdbNote = "ndb-note", ndb_note::NdbNote, HAND_WRITTEN,
        Some("a time before 1970; NUL in a value; more than 65,535 tags or values of a tag; \
              more than 16 MiB of strings");
    /// [`wireproof`]: the smallest; leaves out the data that readers recompute.
    Wireproof = "wireproof", wireproof::Wireproof, HAND_WRITTEN,
        Some("an id that is not that of the event");
}

impl Format {
    /// The format of that [name](Self::name) in this build.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }
}

/// The [implementation](Format::implementation) of codecs that use no library.
pub const HAND_WRITTEN: &str = "hand-written";

#[cfg(feature = "capnp")]
const ENVELOPE: &str = "more than 65,535 tags; more than 255 values in a tag; a value of more than \
                        32,767 bytes";
#[cfg(feature = "capnp")]
const ENVELOPE_PACKED: &str = "more than 65,535 tags; more than 255 values in a tag; a value of more \
                               than 32,767 bytes; an event of little but NUL";

#[cfg(test)]
pub(crate) mod tests;
