//! DAG-CBOR (DRISL): canonical bytes or a refusal.
//!
//! One strict scanner, used three ways:
//!
//! - [`validate`] only judges; [`count`] judges and counts what is there;
//! - [`decode`] builds a [`Value`] in an arena, its text and bytes borrowed from the input;
//! - [`Reader`] lets a typed decoder walk the bytes itself, under the same rules.
//!
//! The rules: definite lengths, heads in the fewest bytes, maps with text keys in canonical order
//! (by length, then bytes) and none twice, UTF-8 text, 64-bit finite floats other than −0, no tag but
//! 42 around a well-formed CID, no simple value but false, true and null, nothing behind the item,
//! at most [`MAX_DEPTH`] containers inside each other. A broken rule is a [`DecodeError`] that names
//! it and the offset of the item that broke it.
//!
//! Cost is linear in the input. Stated lengths are checked against what is left, with what the
//! enclosing containers still need set aside, so a [`Value`] is at most 24 times the input, for
//! hostile input too. An arena that grows from nothing to hold it may take twice that, because its
//! chunks double.
//!
//! ```
//! use wireproof_codec::cbor;
//! let arena = bumpalo::Bump::new();
//! let value = cbor::decode(b"\xa1\x65hello\x65world", &arena)?;
//! assert_eq!(value.get("hello").and_then(|v| v.as_text()), Some("world"));
//! assert_eq!(cbor::encode(&value).unwrap(), b"\xa1\x65hello\x65world");
//! # Ok::<(), cbor::DecodeError>(())
//! ```

mod arena;
mod count;
mod encode;
mod error;
mod item;
mod reader;
#[cfg(test)]
mod reference;
mod scan;
#[cfg(test)]
mod tests;
mod value;

pub use arena::{decode, decode_into, decode_prefix};
pub use count::{ItemCounts, count};
pub use encode::{EncodeError, Encoder, encode};
pub use error::{DecodeError, ItemKind, Reason};
pub use item::KeyOrder;
pub use reader::Reader;
pub use scan::{validate, validate_prefix};
pub use value::{DuplicateKey, Map, Value, WideInteger};

/// How many containers may be inside each other; a scalar alone has depth 0.
pub const MAX_DEPTH: u32 = 64;
