//! Well-formed identifiers of any version, codec and hash function: borrowed ([`CidRef`]) and owned
//! ([`AnyCid`]).
//!
//! | form | bytes |
//! |---|---|
//! | version 0 | `12 20` and 32 digest bytes |
//! | version 1 | varint 1, varint codec, varint hash function, varint digest length, digest |
//!
//! A digest of SHA-256 (`12`) has 32 bytes: an identifier with a shorter or longer one is malformed. The lengths of other
//! hash functions are not checked.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use kernels::sha256::Digest;
use kernels::{base32, varint};

use super::{Cid, Codec, is_blessed};

/// A well-formed content identifier, borrowed from the bytes that contain it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CidRef<'a>(&'a [u8]);

impl<'a> CidRef<'a> {
    /// Maximum length of an identifier in bytes.
    pub const MAX_LEN: usize = 100;

    /// Reads the binary form. `None` if `bytes` are not exactly one well-formed identifier.
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        match Self::from_prefix(bytes)? {
            (cid, []) => Some(cid),
            _ => None,
        }
    }

    /// Reads the identifier at the start of `bytes`, and returns the bytes after it.
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

    /// Wraps bytes that the caller has checked to be blessed.
    #[inline]
    pub(crate) fn blessed_unchecked(bytes: &'a [u8; Cid::LEN]) -> Self {
        Self(bytes)
    }

    /// Wraps bytes that were checked to be a whole identifier.
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

    /// Whether it identifies DAG-CBOR under SHA-256.
    #[inline]
    pub fn is_dag_cbor(self) -> bool {
        self.blessed().is_some_and(|bytes| bytes[1] == Codec::DagCbor.byte())
    }

    /// The SHA-256 of the block; `None` under another hash function.
    #[inline]
    pub fn sha256(self) -> Option<&'a Digest> {
        match self.blessed() {
            Some(bytes) => bytes.last_chunk(),
            None => foreign_sha256(self.0),
        }
    }

    /// The block itself, which a CID under the identity function has in the place of a hash; `None` under another function.
    pub fn identity(self) -> Option<&'a [u8]> {
        let shape = shape(self.0)?;
        (shape.hash_function == IDENTITY).then(|| &self.0[shape.digest_at..])
    }

    /// Writes the usual text form: base58 for version 0, `b` and base32 for version 1. Faster than [`Display`](fmt::Display).
    ///
    /// # Errors
    /// If `out` fails.
    #[inline]
    pub fn write_to(self, out: &mut impl fmt::Write) -> fmt::Result {
        if self.0.starts_with(V0_HEAD) {
            return out.write_str(&bs58::encode(self.0).into_string());
        }
        out.write_char('b')?;
        base32::write_to(self.0, out)
    }

    #[inline]
    fn blessed(self) -> Option<&'a [u8; Cid::LEN]> {
        <&[u8; Cid::LEN]>::try_from(self.0).ok().filter(|bytes| is_blessed(bytes))
    }
}

/// The position of the digest in a well-formed identifier, and its hash function.
struct Shape {
    hash_function: u64,
    digest_at: usize,
    len: usize,
}

/// The shape of the identifier at the start of `bytes`, which may be longer or too short.
fn shape(bytes: &[u8]) -> Option<Shape> {
    if bytes.starts_with(V0_HEAD) {
        return Some(Shape { hash_function: SHA2_256, digest_at: 2, len: 34 });
    }
    let mut at = 0;
    let mut next = || {
        let (value, len) = varint::read(&bytes[at..]).ok()?;
        at += len;
        Some(value)
    };
    let version = next()?;
    let _codec = next()?;
    let hash_function = next()?;
    let digest_len = next()?;
    let digest_len = usize::try_from(digest_len).ok()?;
    let len = at.checked_add(digest_len)?;
    let is_digest = hash_function != SHA2_256 || digest_len == size_of::<Digest>();
    let is_well_formed = version == 1 && is_digest && len <= CidRef::MAX_LEN;
    is_well_formed.then_some(Shape { hash_function, digest_at: at, len })
}

fn foreign_sha256(cid: &[u8]) -> Option<&Digest> {
    let shape = shape(cid)?;
    let digest = cid[shape.digest_at..].try_into().ok()?;
    (shape.hash_function == SHA2_256).then_some(digest)
}

impl fmt::Display for CidRef<'_> {
    /// As [`write_to`](CidRef::write_to).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_to(f)
    }
}

impl fmt::Debug for CidRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CidRef({self})")
    }
}

/// A well-formed content identifier, owned. Records of the AT Protocol may contain foreign ones, which are
/// kept byte for byte.
///
/// ```
/// use wireproof::codec::cid::{AnyCid, CidRef};
/// let identity = CidRef::from_bytes(&[0x01, 0x55, 0x00, 0x01, 7]).unwrap();
/// let owned = AnyCid::from(identity);
/// assert_eq!(owned.as_cid_ref(), identity);
/// assert_eq!(owned.to_cid(), None);
/// ```
#[derive(Clone)]
pub struct AnyCid(Form);

#[derive(Clone)]
enum Form {
    Blessed(Cid),
    /// Well-formed and not blessed.
    Foreign(Box<[u8]>),
}

impl AnyCid {
    /// The same identifier, borrowed.
    #[inline]
    pub fn as_cid_ref(&self) -> CidRef<'_> {
        match &self.0 {
            Form::Blessed(cid) => cid.as_cid_ref(),
            Form::Foreign(bytes) => CidRef::well_formed_unchecked(bytes),
        }
    }

    /// The binary form.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.as_cid_ref().as_bytes()
    }

    /// The blessed form, if this identifier is one.
    #[inline]
    pub fn to_cid(&self) -> Option<Cid> {
        match self.0 {
            Form::Blessed(cid) => Some(cid),
            Form::Foreign(_) => None,
        }
    }
}

impl From<Cid> for AnyCid {
    #[inline]
    fn from(cid: Cid) -> Self {
        Self(Form::Blessed(cid))
    }
}

impl From<CidRef<'_>> for AnyCid {
    #[inline]
    fn from(cid: CidRef<'_>) -> Self {
        match cid.to_cid() {
            Some(cid) => cid.into(),
            None => Self(Form::Foreign(cid.as_bytes().into())),
        }
    }
}

impl PartialEq for AnyCid {
    fn eq(&self, other: &Self) -> bool {
        self.as_cid_ref() == other.as_cid_ref()
    }
}

impl Eq for AnyCid {}

impl PartialOrd for AnyCid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AnyCid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_cid_ref().cmp(&other.as_cid_ref())
    }
}

impl Hash for AnyCid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_cid_ref().hash(state);
    }
}

impl fmt::Display for AnyCid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_cid_ref().fmt(f)
    }
}

impl fmt::Debug for AnyCid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyCid({self})")
    }
}

const _: () = assert!(size_of::<AnyCid>() <= 40);

/// The code of SHA-256 among hash functions.
const SHA2_256: u64 = 0x12;
const IDENTITY: u64 = 0;

/// The start of an identifier of version 0: SHA-256, 32 bytes. No later version starts so.
const V0_HEAD: &[u8] = &[0x12, 0x20];
