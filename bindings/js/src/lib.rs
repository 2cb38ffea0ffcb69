//! The functions of the npm package `wireproof`: verdicts and summaries as JSON, and places in the caller's bytes.
//!
//! JavaScript makes objects of both: a text that is parsed once, and an array of offsets, cost less than a call for every
//! property. `exports` has the functions as WebAssembly calls them. The other modules are plain Rust, and the example
//! `verdicts` calls them on this machine.

#[cfg(all(target_family = "wasm", feature = "exports"))]
mod exports;
pub mod fault;
pub mod format;
pub mod judge;
pub mod key;
pub mod nostr_event;
pub mod plc;
pub mod repository;
pub mod signature;
pub mod slice;
pub mod state;
pub mod stream;
