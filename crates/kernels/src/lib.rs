//! The instruction-level layer of Wireproof: routines that run for every byte of input.
//!
//! Each kernel has a portable form that defines the result and, where a measurement justifies it, SIMD
//! back ends that compute the same result faster. The back end is detected at run time and chosen once a
//! batch. This is the only crate with `unsafe` code; it implements no protocol.
//!
//! ```
//! use wireproof::kernels::{base32, sha256};
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
//! | module | content |
//! |---|---|
//! | [`sha256`] | SHA-256 of one message and of many |
//! | [`secp256k1`] | verification of many ECDSA and BIP-340 signatures |
//! | [`p256`] | verification of many ECDSA signatures |
//! | [`curve`] | the common part of both |
//! | [`utf8`] | UTF-8 validation |
//! | [`base32`] | lower-case base32, both ways |
//! | [`hex`] | lower-case hexadecimal, both ways |
//! | [`json`] | the prefix of a text that JSON needs no escape for |
//! | [`append`] | many short pieces appended without a call per piece |
//! | [`prefetch`] | prefetch hints |
//! | [`cpu`] | the back ends in use, and a limit to them |
//! | [`varint`] | minimal LEB128 integers |

pub mod append;
pub mod base32;
pub mod cpu;
pub mod curve;
pub mod hex;
pub mod json;
pub mod p256;
pub mod prefetch;
pub mod secp256k1;
pub mod sha256;
pub mod utf8;
pub mod varint;
