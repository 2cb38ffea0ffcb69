//! Fuzz targets: functions that take any bytes and panic if a property does not hold.
//!
//! [`TARGETS`] has all of them. They run in three ways: under libFuzzer (`cargo xtask fuzz`, nightly toolchain),
//! under the plain [driver] on any toolchain, and briefly in the tests of this crate.

#![forbid(unsafe_code)]

mod car;
mod cbor;
pub mod driver;
mod frame;
mod http_body;
mod jetstream;
mod json;
mod judge;
mod labels;
mod loopback;
mod negentropy;
mod nostr;
mod nostr_relay;
mod plc;
mod plc_log;
mod repository;
pub mod seeds;
mod signatures;
mod state_file;
mod syntax;
mod tree;
mod websocket;

use nostr_formats::Format;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name.
    pub name: &'static str,
    /// Runs the target on one input. Panics if a property does not hold.
    pub run: fn(&[u8]),
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8])) -> Self {
        Self { name, run }
    }

    /// The target of this name.
    pub fn find(name: &str) -> Option<Self> {
        TARGETS.iter().copied().find(|target| target.name == name)
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target::new("car", car::run),
    Target::new("cbor", cbor::run),
    Target::new("frame", frame::run),
    Target::new("http_body", http_body::run),
    Target::new("jetstream", jetstream::run),
    Target::new("json", json::run),
    Target::new("judge", judge::run),
    Target::new("labels", labels::run),
    Target::new("negentropy", negentropy::run),
    Target::new("nostr_relay", nostr_relay::run),
    Target::new("plc", plc::run),
    Target::new("plc_log", plc_log::run),
    Target::new("repository", repository::run),
    Target::new("signatures", signatures::run),
    Target::new("state_file", state_file::run),
    Target::new("syntax", syntax::run),
    Target::new("tree", tree::run),
    Target::new("websocket", websocket::run),
    Target::new("nostr_capnp", |bytes| nostr::run(Format::Capnp, bytes)),
    Target::new("nostr_capnp_packed", |bytes| nostr::run(Format::CapnpPacked, bytes)),
    Target::new("nostr_capnp_schema", |bytes| nostr::run(Format::CapnpSchema, bytes)),
    Target::new("nostr_capnp_schema_packed", |bytes| nostr::run(Format::CapnpSchemaPacked, bytes)),
    Target::new("nostr_cbor_intkey", |bytes| nostr::run(Format::CborIntkey, bytes)),
    Target::new("nostr_cbor_packed", nostr::run_cbor_packed),
    Target::new("nostr_cbor_schemaless", |bytes| nostr::run(Format::CborSchemaless, bytes)),
    Target::new("nostr_container", nostr::run_container),
    Target::new("nostr_dannypack", |bytes| nostr::run(Format::Dannypack, bytes)),
    Target::new("nostr_flatbuffers", |bytes| nostr::run(Format::Flatbuffers, bytes)),
    Target::new("nostr_json", |bytes| nostr::run(Format::Json, bytes)),
    Target::new("nostr_msgpack", |bytes| nostr::run(Format::Msgpack, bytes)),
    Target::new("nostr_ndb_note", |bytes| nostr::run(Format::NdbNote, bytes)),
    Target::new("nostr_notepack", nostr::run_notepack),
    Target::new("nostr_packed_event", nostr::run_packed_event),
    Target::new("nostr_proto_binary", |bytes| nostr::run(Format::ProtoBinary, bytes)),
    Target::new("nostr_proto_binary_hex", |bytes| nostr::run(Format::ProtoBinaryHex, bytes)),
    Target::new("nostr_proto_string", |bytes| nostr::run(Format::ProtoString, bytes)),
    Target::new("nostr_wireproof", |bytes| nostr::run(Format::Wireproof, bytes)),
];
