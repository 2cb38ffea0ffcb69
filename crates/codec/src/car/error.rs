//! Why bytes are not an archive, and where.

use crate::cbor;

/// Why bytes are not a CAR, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: {fault}")]
pub struct CarError {
    /// Bytes from the start of the archive to the part that broke the rule.
    pub offset: u64,
    /// The rule.
    pub fault: CarFault,
}

/// A rule of CAR v1, or a bound of [`Options`](super::Options).
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
    /// The header names another version.
    #[error("CAR version {0}, only 1 is read")]
    Version(i64),
    /// A section too short for a CID, or without a well-formed one.
    #[error("a section that does not start with a CID")]
    Cid,
    /// A block's bytes do not hash to its CID.
    #[error("a block whose SHA-256 is not the one in its CID")]
    HashMismatch,
    /// The header is longer than the bound.
    #[error("a header over the limit of {0} bytes")]
    HeaderLimit(usize),
    /// A block is longer than the bound.
    #[error("a block over the limit of {0} bytes")]
    BlockLimit(usize),
    /// The archive is longer than the bound.
    #[error("an archive over the limit of {0} bytes")]
    TotalLimit(u64),
    /// The archive has more blocks than the bound.
    #[error("more blocks than the limit of {0}")]
    BlockCountLimit(u64),
}

impl CarFault {
    /// The stable name of the rule.
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
pub(super) fn fail<T>(offset: u64, fault: CarFault) -> Result<T, CarError> {
    Err(CarError { offset, fault })
}
