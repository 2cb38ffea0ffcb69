//! The instruction-level layer of Wireproof: what must be fast because it runs for every byte.
//!
//! Each kernel has a portable form that says what the answer is and, where a measurement pays for
//! it, back ends that say the same sooner. The back end is found at run time and chosen once a
//! batch. This is the only crate with `unsafe` in it; nothing here knows a protocol.
//!
//! ```
//! use wireproof_kernels::{base32, sha256};
//!
//! let messages: [&[u8]; 3] = [b"one", b"two", b"three"];
//! let digests = sha256::digest_many(&messages);
//! assert_eq!(digests[1], sha256::digest(b"two"));
//!
//! let mut text = String::new();
//! base32::encode_into(b"two", &mut text);
//! assert_eq!(text, "or3w6");
//! ```
//!
//! | module | question it answers |
//! |---|---|
//! | [`sha256`] | what is the SHA-256 of this message, or of these many? |
//! | [`secp256k1`] | are these many signatures their keys'? |
//! | [`utf8`] | are these bytes text? |
//! | [`base32`] | how do these bytes read in lower-case base32, and back? |
//! | [`hex`] | how do these bytes read in lower-case hexadecimal, and back? |
//! | [`json`] | how much of this text stands in JSON as it is? |
//! | [`append`] | how are many short pieces appended without a call for each? |
//! | [`prefetch`] | which bytes will be read soon? |
//! | [`varint`] | which integer does this minimal LEB128 spell? |

pub mod append;
pub mod base32;
pub mod hex;
pub mod json;
pub mod prefetch;
pub mod secp256k1;
pub mod sha256;
pub mod utf8;
pub mod varint;
