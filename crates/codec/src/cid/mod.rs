//! Content identifiers: the codec of a block and its hash.
//!
//! Two forms. [`Cid`] is the form that the AT Protocol blesses, and nothing else, in 36 bytes:
//!
//! | bytes | |
//! |---|---|
//! | `01` | version 1 |
//! | `71` or `55` | codec: DAG-CBOR or raw |
//! | `12 20` | hash: SHA-256, 32 bytes |
//! | 32 bytes | the digest |
//!
//! [`CidRef`] borrows the bytes of any well-formed identifier, blessed or not, because archives and records
//! may contain foreign ones that must be kept byte for byte. [`AnyCid`] is its owned form.

mod any;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use kernels::base32;
use kernels::sha256::{self, Digest};

pub use any::{AnyCid, CidRef};

/// The encoding of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// DAG-CBOR (0x71): records, commits, tree nodes.
    DagCbor,
    /// Raw bytes (0x55): blobs.
    Raw,
}

impl Codec {
    const fn byte(self) -> u8 {
        match self {
            Self::DagCbor => 0x71,
            Self::Raw => 0x55,
        }
    }
}

/// A blessed content identifier: version 1, DAG-CBOR or raw, SHA-256.
///
/// ```
/// use wireproof::codec::cid::{Cid, Codec};
/// let empty_node = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
/// assert_eq!(
///     empty_node.to_string(),
///     "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm",
/// );
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cid([u8; Cid::LEN]);

impl Cid {
    /// The length of the binary form, in bytes.
    pub const LEN: usize = 36;

    /// The length of the text form, in bytes: `b` and 58 base32 symbols.
    pub const TEXT_LEN: usize = 59;

    /// The identifier of a block: the SHA-256 of `block` under `codec`.
    pub fn of(codec: Codec, block: &[u8]) -> Self {
        Self::from_digest(codec, &sha256::digest(block))
    }

    /// The identifier of the block whose SHA-256 is `digest`.
    #[inline]
    pub fn from_digest(codec: Codec, digest: &Digest) -> Self {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&[0x01, codec.byte(), 0x12, 0x20]);
        bytes[4..].copy_from_slice(digest);
        Self(bytes)
    }

    /// Reads the binary form. `None` if `bytes` are not exactly one blessed identifier.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        is_blessed(bytes).then_some(Self(*bytes))
    }

    /// The binary form.
    #[inline]
    pub fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// The encoding of the block.
    #[inline]
    pub fn codec(&self) -> Codec {
        if self.0[1] == Codec::DagCbor.byte() { Codec::DagCbor } else { Codec::Raw }
    }

    /// The SHA-256 of the block.
    #[inline]
    pub fn digest(&self) -> &Digest {
        self.0.last_chunk().expect("36 bytes end in 32")
    }

    /// The same identifier, borrowed.
    #[inline]
    pub fn as_cid_ref(&self) -> CidRef<'_> {
        CidRef::blessed_unchecked(&self.0)
    }
}

/// The prefix test that makes 36 bytes a [`Cid`].
#[inline]
fn is_blessed(bytes: &[u8; Cid::LEN]) -> bool {
    let [version, codec, hash, len, ..] = *bytes;
    version == 0x01 && (codec == 0x71 || codec == 0x55) && hash == 0x12 && len == 0x20
}

impl fmt::Display for Cid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_cid_ref().fmt(f)
    }
}

impl fmt::Debug for Cid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cid({self})")
    }
}

/// Why a text is not a blessed CID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CidTextError {
    /// The text is not 59 bytes.
    #[error("a CID is 59 characters long, this is {0}")]
    Length(usize),
    /// The multibase letter is not `b`.
    #[error("a CID starts with `b` for lower-case base32")]
    Multibase,
    /// A symbol outside `a-z2-7`, or set bits after the last byte.
    #[error("not canonical lower-case base32")]
    Base32,
    /// The bytes are another version, codec or hash.
    #[error("not version 1, DAG-CBOR or raw, SHA-256")]
    NotBlessed,
}

impl FromStr for Cid {
    type Err = CidTextError;

    /// Reads the text form, strictly: 59 characters, `b`, canonical base32, blessed bytes.
    fn from_str(text: &str) -> Result<Self, CidTextError> {
        if text.len() != Self::TEXT_LEN {
            return Err(CidTextError::Length(text.len()));
        }
        let symbols = text.strip_prefix('b').ok_or(CidTextError::Multibase)?;
        let bytes = base32::decode(symbols).ok_or(CidTextError::Base32)?;
        Self::from_bytes(&bytes).ok_or(CidTextError::NotBlessed)
    }
}
