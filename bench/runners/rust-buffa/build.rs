//! Generates the messages and their views.
//!
//! `nostr.binpb` is the output of `protoc --descriptor_set_out=nostr.binpb *.proto` for the schemas in its folder, so
//! that the build does not need protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    buffa_build::Config::new()
        .descriptor_set("proto/nostr.binpb")
        .files(&["nostr.proto", "nostr_binary.proto", "nostr_hex.proto"])
        .lazy_views(true)
        // Its documentation names this as the lever where decoding of views is hot.
        .preserve_unknown_fields(false)
        .include_file("messages.rs")
        .compile()
}
