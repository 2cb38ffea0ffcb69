//! Canonical DAG-CBOR (DRISL): validation, decoding and encoding.
//!
//! One strict scanner, used three ways:
//!
//! - [`validate`] checks only; [`count`] checks and counts the items;
//! - [`decode`] builds a [`Value`] in an [`Arena`], its text and bytes borrowed from the input;
//! - [`Reader`] reads item by item, for typed decoders, under the same rules.
//!
//! [`from_slice`] and [`to_vec`] read and write types that implement serde's traits: see
//! [`from_value`] for values.
//!
//! The rules: definite lengths, heads in the fewest bytes, maps with text keys in canonical order
//! (by length, then bytes) and none twice, UTF-8 text, 64-bit finite floats other than −0, no tag but
//! 42 around a well-formed CID, no simple value but false, true and null, nothing after the item, at most
//! [`MAX_DEPTH`] containers inside each other. A broken rule is a [`DecodeError`] with the rule and the
//! offset of the item that broke it.
//!
//! Cost is linear in the input. Stated lengths are checked against the rest of the input, minus the least
//! that enclosing containers still need, so a [`Value`] is at most 24 times the input, for hostile input
//! too. An empty arena that grows to hold it may take twice that, because its chunks double.
//!
//! ```
//! use wireproof::codec::cbor;
//! let arena = cbor::Arena::new();
//! let value = cbor::decode(b"\xa1\x65hello\x65world", &arena)?;
//! assert_eq!(value.get("hello").and_then(|v| v.as_text()), Some("world"));
//! assert_eq!(cbor::encode(&value).unwrap(), b"\xa1\x65hello\x65world");
//! # Ok::<(), cbor::DecodeError>(())
//! ```

mod count;
mod decode;
mod encode;
mod error;
mod item;
mod known_key;
mod reader;
#[cfg(test)]
mod reference;
mod scan;
mod serde;
#[cfg(test)]
mod tests;
mod value;

pub(crate) use self::serde::decode_base64;
pub use self::serde::{
    ByteBuf, Bytes, SerdeError, SerdeFault, from_slice, from_value, to_value, to_vec,
};
/// The arena in which containers are allocated: bumpalo's `Bump`, re-exported.
pub use bumpalo::Bump as Arena;
pub use count::{ItemCounts, count};
pub use decode::{decode, decode_into, decode_prefix};
pub use encode::{EncodeError, Encoder, encode};
pub use error::{DecodeError, ItemKind, Reason};
pub use item::{ItemError, KeyOrder};
pub use known_key::KnownKey;
pub use reader::Reader;
pub use scan::{Entries, Sink, build, build_prefix, validate, validate_prefix};
pub use value::{DuplicateKey, Map, Value, WideInteger};

/// The most containers inside each other; a scalar alone has depth 0. The lowest limit of other readers of DAG-CBOR
/// is as high, so this one reads everything that they read: `docs/decisions/strictness.md`.
pub const MAX_DEPTH: u32 = 127;
