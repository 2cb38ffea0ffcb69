//! Why bytes are not canonical DAG-CBOR, and where.

use std::fmt;

/// Why bytes are not canonical DAG-CBOR, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {reason}")]
pub struct DecodeError {
    /// Bytes from the start of the input to the item that broke the rule.
    pub offset: usize,
    /// The rule.
    pub reason: Reason,
}

/// A rule of DAG-CBOR, or the expectation of a typed reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The input ends inside the item.
    #[error("the input ends inside this item")]
    Truncated,
    /// The item states a length beyond the end of the input.
    #[error("this item states a length beyond the end of the input")]
    LengthBeyondInput,
    /// Bytes follow the one item that was expected.
    #[error("bytes follow the end of the item")]
    TrailingBytes,
    /// An integer, length or tag is encoded in more bytes than it needs.
    #[error("not the shortest form of this number")]
    NotMinimal,
    /// The reserved additional information 28, 29 or 30.
    #[error("a reserved head byte")]
    ReservedHead,
    /// An indefinite length, or the break that would end one.
    #[error("indefinite lengths are not canonical")]
    IndefiniteLength,
    /// A map key is not text.
    #[error("a map key must be text")]
    KeyNotText,
    /// A map key follows one that is longer or greater.
    #[error("map keys out of order (shorter first, then by bytes)")]
    KeyOrder,
    /// A map key occurs twice.
    #[error("a map key occurs twice")]
    DuplicateKey,
    /// Text is not UTF-8.
    #[error("text is not UTF-8")]
    NotUtf8,
    /// A tag other than 42.
    #[error("a tag other than 42")]
    Tag,
    /// Tag 42 around something other than a byte string of zero and a well-formed CID.
    #[error("tag 42 must hold a byte string of 00 and a CID")]
    Link,
    /// A simple value other than false, true and null.
    #[error("a simple value other than false, true and null")]
    Simple,
    /// A float of 16 or 32 bits.
    #[error("a float must have 64 bits")]
    FloatWidth,
    /// NaN, an infinity or negative zero.
    #[error("a float must be finite and not negative zero")]
    FloatValue,
    /// More containers inside each other than [`MAX_DEPTH`](super::MAX_DEPTH).
    #[error("nested deeper than {} levels", super::MAX_DEPTH)]
    Depth,
    /// A typed reader expected another kind of item.
    #[error("expected {0}")]
    Expected(ItemKind),
}

/// The kinds of items that a typed reader can expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ItemKind {
    /// An integer of 64 bits with a sign.
    Integer,
    /// Text.
    Text,
    /// A byte string.
    Bytes,
    /// A CID link.
    Link,
    /// False or true.
    Boolean,
    /// An array.
    Array,
    /// A map.
    Map,
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "an integer of 64 bits",
            Self::Text => "text",
            Self::Bytes => "a byte string",
            Self::Link => "a CID link",
            Self::Boolean => "a boolean",
            Self::Array => "an array",
            Self::Map => "a map",
        })
    }
}

const _: () = assert!(size_of::<DecodeError>() <= 16, "results stay in two registers");
