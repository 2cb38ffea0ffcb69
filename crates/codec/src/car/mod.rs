//! CAR v1: archives of blocks with their CIDs.
//!
//! | part | bytes |
//! |---|---|
//! | header | varint length, DAG-CBOR `{"roots": [CID, …], "version": 1}` |
//! | block, any number | varint length, CID, data |
//!
//! [`read`] and [`Blocks`] read a slice without copying; [`StreamReader`] reads any `io::Read` in bounded
//! memory; [`Writer`] writes. Every block's SHA-256 is compared with its CID unless the caller sets
//! [`trust_hashes`](Options::trust_hashes). A block under another hash function cannot be checked here:
//! [`Block::proof`] says so, and its CID is never a blessed one.
//!
//! Blocks may be in any order, repeated, and unreferenced. An archive cut between two blocks is a shorter
//! archive: only a walk over the tree can detect that.

mod pushed;
mod slice;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

pub use pushed::Pushed;
pub use slice::{Block, Blocks, Car, HashProof, Roots, Sections, check_hashes, read};
pub use stream::{BlockBatch, OwnedBlock, StreamError, StreamReader};
pub use writer::Writer;

use crate::cbor;

/// Limits for reading archives, and whether to check hashes. Start from the default and assign fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Skips hashing. Only for archives that were checked before: the CID of a block is then unproved.
    pub trust_hashes: bool,
    /// Maximum length of the header in bytes.
    pub max_header_bytes: usize,
    /// Maximum length of a block, with its CID, in bytes.
    pub max_block_bytes: usize,
    /// Maximum length of the archive in bytes.
    pub max_total_bytes: u64,
    /// Maximum number of blocks.
    pub max_blocks: u64,
}

impl Default for Options {
    /// Hashes checked; header 64 KiB, block 2 MiB, archive 4 GiB, 50 million blocks.
    fn default() -> Self {
        Self {
            trust_hashes: false,
            max_header_bytes: 64 << 10,
            max_block_bytes: 2 << 20,
            max_total_bytes: 4 << 30,
            max_blocks: 50_000_000,
        }
    }
}

/// Why bytes are not a CAR, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {fault}")]
pub struct CarError {
    /// Bytes from the start of the archive to the part that broke the rule.
    pub offset: u64,
    /// The rule.
    pub fault: CarFault,
}

/// A rule of CAR v1, or a limit of [`Options`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CarFault {
    /// The archive ends inside this part.
    #[error("the archive ends inside this part")]
    Truncated,
    /// A length is not a minimal varint of at most nine bytes.
    #[error("a length that is not a minimal varint")]
    Varint,
    /// The header is not canonical DAG-CBOR of the two fields.
    #[error("the header, {0}")]
    Header(cbor::DecodeError),
    /// The header lacks `roots` or `version`.
    #[error("the header lacks its roots or its version")]
    HeaderField,
    /// The header states another version.
    #[error("CAR version {0}; only version 1 is supported")]
    Version(i64),
    /// A section too short for a CID, or without a well-formed one.
    #[error("a section that does not start with a CID")]
    Cid,
    /// A block's bytes do not hash to its CID.
    #[error("a block whose SHA-256 is not the one in its CID")]
    HashMismatch,
    /// The header is longer than the limit.
    #[error("a header over the limit of {0} bytes")]
    HeaderLimit(usize),
    /// A block is longer than the limit.
    #[error("a block over the limit of {0} bytes")]
    BlockLimit(usize),
    /// The archive is longer than the limit.
    #[error("an archive over the limit of {0} bytes")]
    TotalLimit(u64),
    /// The archive has more blocks than the limit.
    #[error("more blocks than the limit of {0}")]
    BlockCountLimit(u64),
}

impl CarFault {
    /// The stable code of the rule.
    pub fn code(self) -> &'static str {
        match self {
            Self::Header(_) | Self::HeaderField => "car/header",
            Self::Version(_) => "car/version",
            Self::Truncated => "car/truncated",
            Self::Varint => "car/varint",
            Self::Cid => "car/cid",
            Self::HashMismatch => "car/hash",
            Self::HeaderLimit(_)
            | Self::BlockLimit(_)
            | Self::TotalLimit(_)
            | Self::BlockCountLimit(_) => "car/limit",
        }
    }
}

#[cold]
#[inline(never)]
fn fail<T>(offset: u64, fault: CarFault) -> Result<T, CarError> {
    Err(CarError { offset, fault })
}
