//! The fields of a commit, read in one pass, and the place of its signature.

use codec::Cid;
use codec::cbor::{KeyOrder, Reader};

use super::Commit;
use super::error::{CommitError, CommitFault, fail};
use super::signing::SigningBytes;

pub(super) fn parse(block: &[u8]) -> Result<Commit<'_>, CommitError> {
    let mut reader = Reader::new(block);
    let (mut did, mut rev, mut sig, mut data, mut prev) = (None, None, None, None, None);
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
    // The version first: it explains whatever else is amiss.
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

/// The entry of the signature, its length not yet looked at.
struct Sig<'a> {
    bytes: &'a [u8],
    /// Where the value starts.
    at: usize,
    /// Where key and value stand in the block.
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

/// A link that must name DAG-CBOR under SHA-256.
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
