//! Commit objects, version 3: parsing, writing, and the bytes that are signed.
//!
//! | key | value |
//! |---|---|
//! | `did` | text: the account |
//! | `rev` | text: the revision |
//! | `sig` | 64 bytes: the signature of the object without this entry |
//! | `data` | link: the root of the tree |
//! | `prev` | link or null: the commit before; always present, nearly always null |
//! | `version` | 3 |
//!
//! Unknown entries are ignored, but are part of the signed bytes. Therefore [`SigningBytes`] are cut from the
//! received bytes rather than encoded again.
//!
//! Source: the repository specification, version 3.
//!
//! ```
//! use wireproof::atproto::commit::{Commit, UnsignedCommit};
//! use wireproof::codec::cid::{Cid, Codec};
//!
//! let data = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
//! let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
//! let unsigned = UnsignedCommit { did, rev, data, prev: None };
//!
//! let block = unsigned.with_signature(&[1; 64]);
//! let commit = Commit::parse(&block)?;
//! assert_eq!((commit.rev, commit.sig), (rev, &[1; 64]));
//! assert_eq!(commit.signing_bytes().to_vec(), unsigned.to_bytes());
//! # Ok::<(), wireproof::atproto::commit::CommitError>(())
//! ```

mod signing;
#[cfg(test)]
mod tests;

use codec::Cid;
use codec::cbor::{DecodeError, Encoder, KeyOrder, Reader, Reason};
use codec::cid::Codec;

pub use signing::{SigningBytes, digest_many};

/// A commit object, borrowed from its block. The signature is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit<'a> {
    /// The account's DID, unchecked.
    pub did: &'a str,
    /// The revision, unchecked.
    pub rev: &'a str,
    /// The signature: r and s.
    pub sig: &'a [u8; 64],
    /// The root of the tree.
    pub data: Cid,
    /// The commit before, if the account states it.
    pub prev: Option<Cid>,
    signing_bytes: SigningBytes<'a>,
}

impl<'a> Commit<'a> {
    /// Reads the block of a commit.
    ///
    /// # Errors
    /// If the bytes are not canonical DAG-CBOR, or not a commit of version 3.
    pub fn parse(block: &'a [u8]) -> Result<Self, CommitError> {
        usual(block).map_or_else(|| parse(block), Ok)
    }

    /// The signed bytes: the block without the entry `sig`.
    pub fn signing_bytes(&self) -> SigningBytes<'a> {
        self.signing_bytes
    }
}

/// The fields of a commit before it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsignedCommit<'a> {
    /// The account's DID.
    pub did: &'a str,
    /// The revision, greater than the one before.
    pub rev: &'a str,
    /// The root of the tree.
    pub data: Cid,
    /// The commit before; accounts write `None` today.
    pub prev: Option<Cid>,
}

impl UnsignedCommit<'_> {
    /// The bytes to sign.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.encode(None)
    }

    /// The block of the commit with this signature (r and s) of the SHA-256 of [`to_bytes`](Self::to_bytes).
    pub fn with_signature(&self, signature: &[u8; 64]) -> Vec<u8> {
        self.encode(Some(signature))
    }

    fn encode(&self, signature: Option<&[u8; 64]>) -> Vec<u8> {
        let mut out = Encoder::new();
        out.map(5 + usize::from(signature.is_some()));
        out.text("did").text(self.did).text("rev").text(self.rev);
        if let Some(signature) = signature {
            out.text("sig").bytes(signature);
        }
        out.text("data").link(self.data.as_cid_ref());
        out.text("prev").link_or_null(self.prev.as_ref().map(Cid::as_cid_ref));
        out.text("version").integer(3);
        out.into_bytes()
    }
}

/// A broken rule of a commit, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the commit: {fault}")]
pub struct CommitError {
    /// Bytes from the start of the block to the part that breaks the rule.
    pub offset: usize,
    /// The broken rule.
    pub fault: CommitFault,
}

/// A rule of commit objects, or of DAG-CBOR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommitFault {
    /// The block is not canonical, or a field is of the wrong kind.
    #[error("{0}")]
    Cbor(Reason),
    /// A field is absent; `prev` may be null, but must be there.
    #[error("the field {0:?} is missing")]
    Missing(&'static str),
    /// A field has a value that the protocol does not allow.
    #[error("the field {0:?} has a value that is not allowed")]
    Field(&'static str),
    /// The signature is not 64 bytes long.
    #[error("a signature must be 64 bytes long, not {0}")]
    SignatureLength(usize),
    /// A commit of version 2, which had no revisions and is no longer in use.
    #[error("version 2 is obsolete: the version must be 3")]
    Version2,
    /// A commit of an unknown version.
    #[error("version {0} is unknown: the version must be 3")]
    Version(i64),
}

impl From<DecodeError> for CommitError {
    #[cold]
    fn from(error: DecodeError) -> Self {
        Self { offset: error.offset, fault: CommitFault::Cbor(error.reason) }
    }
}

#[cold]
#[inline(never)]
fn fail<T>(offset: usize, fault: CommitFault) -> Result<T, CommitError> {
    Err(CommitError { offset, fault })
}

/// Whether a block has the shape of nearly all commits, and so is canonical DAG-CBOR.
#[inline]
pub(crate) fn is_usual(block: &[u8]) -> bool {
    usual(block).is_some()
}

/// Reads a commit with the six entries of [`UnsignedCommit::with_signature`], of a `did:plc` and without `prev`, by
/// comparing bytes. Every other block is left to [`parse`].
#[inline]
fn usual(block: &[u8]) -> Option<Commit<'_>> {
    let (did, rest) = block.strip_prefix(b"\xa6\x63did\x78\x20")?.split_first_chunk::<32>()?;
    let (rev, rest) = rest.strip_prefix(b"\x63rev\x6d")?.split_first_chunk::<13>()?;
    let sig_at = block.len() - rest.len();
    let (sig, rest) = rest.strip_prefix(b"\x63sig\x58\x40")?.split_first_chunk::<64>()?;
    let sig_end = block.len() - rest.len();
    let rest = rest.strip_prefix(b"\x64data\xd8\x2a\x58\x25\x00\x01\x71\x12\x20")?;
    let (data, rest) = rest.split_first_chunk()?;
    let (did, rev) = (str::from_utf8(did).ok()?, str::from_utf8(rev).ok()?);
    (rest == b"\x64prev\xf6\x67version\x03").then(|| Commit {
        did,
        rev,
        sig,
        data: Cid::from_digest(Codec::DagCbor, data),
        prev: None,
        signing_bytes: SigningBytes::cut(block, 6, 1, sig_at..sig_end),
    })
}

/// Reads the fields in one pass, and the position of the signature.
fn parse(block: &[u8]) -> Result<Commit<'_>, CommitError> {
    let mut reader = Reader::new(block);
    let mut did = None;
    let mut rev = None;
    let mut sig = None;
    let mut data = None;
    let mut prev = None;
    let mut version = None;
    let count = reader.map()?;
    let entries_at = reader.offset();
    let mut keys = KeyOrder::new();
    for _ in 0..count {
        let key_at = reader.offset();
        let key = reader.key(&mut keys)?;
        let at = reader.offset();
        match key {
            "did" => did = Some(reader.text()?),
            "rev" => rev = Some(reader.text()?),
            "sig" => sig = Some(Sig { bytes: reader.bytes()?, at, entry: key_at..reader.offset() }),
            "data" => data = Some(read_link(&mut reader, "data")?),
            "prev" if reader.take_null() => prev = Some(None),
            "prev" => prev = Some(Some(read_link(&mut reader, "prev")?)),
            "version" => version = Some((reader.integer()?, at)),
            _ => reader.skip()?,
        }
    }
    reader.finish()?;
    // The version first: it explains other faults.
    check_version(version)?;
    let sig = required(sig, "sig")?;
    Ok(Commit {
        did: required(did, "did")?,
        rev: required(rev, "rev")?,
        sig: sig.to_array()?,
        data: required(data, "data")?,
        prev: required(prev, "prev")?,
        signing_bytes: SigningBytes::cut(block, count, entries_at, sig.entry),
    })
}

/// The entry of the signature, its length unchecked.
struct Sig<'a> {
    bytes: &'a [u8],
    /// Offset of the value in the block.
    at: usize,
    /// Range of key and value in the block.
    entry: std::ops::Range<usize>,
}

impl<'a> Sig<'a> {
    fn to_array(&self) -> Result<&'a [u8; 64], CommitError> {
        match self.bytes.try_into() {
            Ok(sig) => Ok(sig),
            Err(_) => fail(self.at, CommitFault::SignatureLength(self.bytes.len())),
        }
    }
}

fn check_version(version: Option<(i64, usize)>) -> Result<(), CommitError> {
    match required(version, "version")? {
        (3, _) => Ok(()),
        (2, at) => fail(at, CommitFault::Version2),
        (other, at) => fail(at, CommitFault::Version(other)),
    }
}

/// Reads a link, which must name DAG-CBOR under SHA-256.
fn read_link(reader: &mut Reader<'_>, name: &'static str) -> Result<Cid, CommitError> {
    let at = reader.offset();
    let cid = reader.link()?;
    match cid.to_cid().filter(|_| cid.is_dag_cbor()) {
        Some(cid) => Ok(cid),
        None => fail(at, CommitFault::Field(name)),
    }
}

fn required<T>(field: Option<T>, name: &'static str) -> Result<T, CommitError> {
    match field {
        Some(value) => Ok(value),
        None => fail(0, CommitFault::Missing(name)),
    }
}
