//! Typed records: any type that implements serde's traits, read from and written as DAG-CBOR.
//!
//! [`from_value`] and [`from_slice`] read, [`to_value`] and [`to_vec`] write. Reading from bytes is as
//! strict as [`decode`](super::decode); writing sorts map keys into canonical order, whatever the order
//! of the fields.
//!
//! | Rust | DAG-CBOR | JSON (`serde_json`) |
//! |---|---|---|
//! | `Option`, `()` | null or the value | the same |
//! | integers, floats, `bool`, text | the same kinds | the same |
//! | [`Cid`](crate::Cid), [`AnyCid`](crate::AnyCid), [`CidRef`](crate::CidRef) | link (tag 42) | `{"$link": "b…"}` |
//! | [`ByteBuf`], [`Bytes`] | byte string | `{"$bytes": "…"}` |
//! | sequences and tuples | array | array |
//! | maps with text keys, structs | map in canonical order | object |
//! | enums | as serde's attributes define: `"Variant"`, `{"Variant": …}`, `{"$type": "…", …}` | the same |
//!
//! Text, bytes and links can be borrowed from the input (`&str`, `&[u8]`, [`Bytes`], `CidRef`).
//! `Vec<u8>` is a sequence of numbers to serde: use [`ByteBuf`]. A field that may be absent needs
//! `#[serde(default, skip_serializing_if = "Option::is_none")]`, because `None` alone is written as null.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use wireproof::codec::cbor;
//! use wireproof::codec::cid::{Cid, Codec};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! #[serde(rename_all = "camelCase")]
//! struct Post<'a> {
//!     #[serde(rename = "$type")]
//!     kind: &'a str,
//!     text: &'a str,
//!     created_at: &'a str,
//!     #[serde(default, skip_serializing_if = "Vec::is_empty")]
//!     langs: Vec<&'a str>,
//!     #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
//!     reply: Option<Reply<'a>>,
//!     #[serde(default, skip_serializing_if = "Option::is_none")]
//!     embed: Option<Embed>,
//! }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Reply<'a> {
//!     #[serde(borrow)]
//!     root: StrongRef<'a>,
//!     #[serde(borrow)]
//!     parent: StrongRef<'a>,
//! }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct StrongRef<'a> {
//!     uri: &'a str,
//!     cid: &'a str,
//! }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! #[serde(tag = "$type")]
//! enum Embed {
//!     #[serde(rename = "app.bsky.embed.images")]
//!     Images { images: Vec<Image> },
//! }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Image {
//!     alt: String,
//!     image: Blob,
//! }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! #[serde(tag = "$type", rename = "blob", rename_all = "camelCase")]
//! struct Blob {
//!     r#ref: Cid,
//!     mime_type: String,
//!     size: u64,
//! }
//!
//! let image = Blob { r#ref: Cid::of(Codec::Raw, b"pixels"), mime_type: "image/png".into(), size: 6 };
//! let root = StrongRef { uri: "at://did:plc:abc/app.bsky.feed.post/3k", cid: "bafyrei…" };
//! let parent = StrongRef { ..root };
//! let post = Post {
//!     kind: "app.bsky.feed.post",
//!     text: "hello",
//!     created_at: "2026-01-01T00:00:00.000Z",
//!     langs: vec!["en"],
//!     reply: Some(Reply { root, parent }),
//!     embed: Some(Embed::Images { images: vec![Image { alt: "a dot".into(), image }] }),
//! };
//! let bytes = cbor::to_vec(&post)?;
//! assert_eq!(cbor::from_slice::<Post<'_>>(&bytes)?, post);
//!
//! let error = cbor::from_slice::<Reply<'_>>(&bytes).unwrap_err();
//! assert_eq!(error.to_string(), "missing field `root`");
//! # Ok::<(), cbor::SerdeError>(())
//! ```

mod de;
mod leaves;
mod ser;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::Deserialize;
use serde::ser::Serialize;

use super::{Arena, DecodeError, EncodeError, Value, encode, validate};
pub(crate) use leaves::decode_base64;
pub use leaves::{ByteBuf, Bytes};

/// Reads a `T` from a value. Text, bytes and links may be borrowed from the value's input.
///
/// # Errors
/// If the value does not have the shape of `T`; the error names the expected shape and the path.
pub fn from_value<'a, T: Deserialize<'a>>(value: &Value<'a>) -> Result<T, SerdeError> {
    de::from_value(value)
}

/// Reads a `T` from exactly one canonical item. Text, bytes and links may be borrowed from `input`.
///
/// # Errors
/// If `input` is not one canonical item, as [`decode`](super::decode) reports it, or does not have the
/// shape of `T`; the error names the expected shape and the path.
pub fn from_slice<'a, T: Deserialize<'a>>(input: &'a [u8]) -> Result<T, SerdeError> {
    de::from_slice(input).map_err(|error| match validate(input) {
        Err(not_canonical) => SerdeError::new(SerdeFault::Decode(not_canonical)),
        Ok(()) => error,
    })
}

/// The value of `content`. Text, bytes and containers are copied into `arena`.
///
/// # Errors
/// If `content` has no DAG-CBOR form: a map key that is not text or occurs twice, an integer beyond 64
/// bits, or more than [`MAX_DEPTH`](super::MAX_DEPTH) containers inside each other.
pub fn to_value<'a, T: Serialize + ?Sized>(
    content: &T,
    arena: &'a Arena,
) -> Result<Value<'a>, SerdeError> {
    content.serialize(ser::ToValue::new(arena))
}

/// The canonical bytes of `content`.
///
/// # Errors
/// As [`to_value`]; and for a float that is not finite or negative zero.
pub fn to_vec<T: Serialize + ?Sized>(content: &T) -> Result<Vec<u8>, SerdeError> {
    let arena = Arena::new();
    let value = to_value(content, &arena)?;
    encode(&value).map_err(|error| SerdeError::new(SerdeFault::Encode(error)))
}

/// Why a value does not fit a type, or a type has no DAG-CBOR form, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerdeError(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    fault: SerdeFault,
    path: String,
}

/// The rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SerdeFault {
    /// The bytes are not one canonical item.
    #[error("{0}")]
    Decode(DecodeError),
    /// The value has no canonical bytes.
    #[error("{0}")]
    Encode(EncodeError),
    /// A map key is not text.
    #[error("a map key must be text")]
    KeyNotText,
    /// A map key occurs twice.
    #[error("the key {0:?} occurs twice")]
    DuplicateKey(String),
    /// An integer below −2⁶⁴ or above 2⁶⁴ − 1.
    #[error("an integer beyond 64 bits")]
    IntegerRange,
    /// The type rejects the value, or the value the type, in serde's words.
    #[error("{0}")]
    Type(String),
}

impl SerdeError {
    #[cold]
    fn new(fault: SerdeFault) -> Self {
        Self(Box::new(Inner { fault, path: String::new() }))
    }

    /// The rule that was broken.
    pub fn fault(&self) -> &SerdeFault {
        &self.0.fault
    }

    /// The path to the value, as a JSON pointer without escapes: `/embed/images/0`. Empty for the whole
    /// value. Inside an untagged or internally tagged enum, or a flattened field, the path ends at the
    /// enum or the field, because serde buffers their content.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// The same error, seen from the container in which the value has this key or index.
    #[cold]
    fn within(mut self, step: impl fmt::Display) -> Self {
        self.0.path.insert_str(0, &format!("/{step}"));
        self
    }
}

impl fmt::Display for SerdeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.path.is_empty() {
            write!(f, "at {}: ", self.0.path)?;
        }
        self.0.fault.fmt(f)
    }
}

impl std::error::Error for SerdeError {}

impl serde::de::Error for SerdeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(SerdeFault::Type(message.to_string()))
    }
}

impl serde::ser::Error for SerdeError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(SerdeFault::Type(message.to_string()))
    }
}
