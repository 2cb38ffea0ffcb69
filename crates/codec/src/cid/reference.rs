//! Borrowed identifiers of any kind: what makes bytes a well-formed CID, and where one ends.
//!
//! | form | bytes |
//! |---|---|
//! | version 0 | `12 20` and 32 digest bytes |
//! | version 1 | varint 1, varint codec, varint hash function, varint digest length, digest |

use std::fmt;

use kernels::sha256::Digest;
use kernels::{base32, varint};

use super::{Cid, Codec, is_blessed};

/// A well-formed content identifier, borrowed from the bytes it stood in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CidRef<'a>(&'a [u8]);

impl<'a> CidRef<'a> {
    /// The longest identifier that is read, in bytes.
    pub const MAX_LEN: usize = 100;

    /// Reads the binary form. `None` if `bytes` are not exactly one well-formed identifier.
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        match Self::from_prefix(bytes)? {
            (cid, []) => Some(cid),
            _ => None,
        }
    }

    /// Reads the identifier at the start of `bytes`, and answers the bytes behind it.
    #[inline(always)]
    pub fn from_prefix(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        match bytes.split_first_chunk() {
            Some((cid, rest)) if is_blessed(cid) => Some((Self(cid), rest)),
            _ => {
                let (cid, rest) = bytes.split_at_checked(shape(bytes)?.len)?;
                Some((Self(cid), rest))
            }
        }
    }

    /// Wraps bytes that the caller has seen to be blessed.
    #[inline]
    pub(crate) fn blessed_unchecked(bytes: &'a [u8; Cid::LEN]) -> Self {
        Self(bytes)
    }

    /// Wraps bytes that were a whole identifier when they were read.
    #[inline]
    pub(crate) fn well_formed_unchecked(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The binary form.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The owned form, if this identifier is a blessed one.
    #[inline]
    pub fn to_cid(self) -> Option<Cid> {
        Cid::from_bytes(self.0)
    }

    /// Whether the block it names is DAG-CBOR under SHA-256.
    #[inline]
    pub fn is_dag_cbor(self) -> bool {
        self.blessed().is_some_and(|bytes| bytes[1] == Codec::DagCbor.byte())
    }

    /// The SHA-256 that the block must have; `None` if another hash function is named.
    #[inline]
    pub fn sha256(self) -> Option<&'a Digest> {
        match self.blessed() {
            Some(bytes) => bytes.last_chunk(),
            None => foreign_sha256(self.0),
        }
    }

    #[inline]
    fn blessed(self) -> Option<&'a [u8; Cid::LEN]> {
        <&[u8; Cid::LEN]>::try_from(self.0).ok().filter(|bytes| is_blessed(bytes))
    }
}

/// Where the digest of a well-formed identifier stands, and what made it.
struct Shape {
    hash_function: u64,
    digest_at: usize,
    len: usize,
}

/// The shape of the identifier at the start of `bytes`, which may be longer or too short.
fn shape(bytes: &[u8]) -> Option<Shape> {
    if bytes.starts_with(V0_HEAD) {
        return Some(Shape { hash_function: 0x12, digest_at: 2, len: 34 });
    }
    let mut at = 0;
    let mut next = || {
        let (value, len) = varint::read(&bytes[at..]).ok()?;
        at += len;
        Some(value)
    };
    let (version, _codec, hash_function, digest_len) = (next()?, next()?, next()?, next()?);
    let len = at.checked_add(usize::try_from(digest_len).ok()?)?;
    let is_well_formed = version == 1 && len <= CidRef::MAX_LEN;
    is_well_formed.then_some(Shape { hash_function, digest_at: at, len })
}

fn foreign_sha256(cid: &[u8]) -> Option<&Digest> {
    let shape = shape(cid)?;
    let digest = cid[shape.digest_at..].try_into().ok()?;
    (shape.hash_function == 0x12).then_some(digest)
}

impl fmt::Display for CidRef<'_> {
    /// The usual text form: base58 for version 0, `b` and base32 for version 1.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.starts_with(V0_HEAD) {
            return f.write_str(&bs58::encode(self.0).into_string());
        }
        let mut text = String::with_capacity(Cid::TEXT_LEN);
        text.push('b');
        base32::encode_into(self.0, &mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for CidRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CidRef({self})")
    }
}

/// How an identifier of version 0 begins: SHA-256, 32 bytes. No later version can.
const V0_HEAD: &[u8] = &[0x12, 0x20];
