//! Why a block is refused as a commit, and where.

use codec::cbor::{DecodeError, Reason};

/// Why a block is refused as a commit, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset} of the commit: {fault}")]
pub struct CommitError {
    /// Bytes from the start of the block to the part that broke the rule.
    pub offset: usize,
    /// The rule.
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
    /// A field holds what the protocol does not allow.
    #[error("the field {0:?} holds what it may not")]
    Field(&'static str),
    /// The signature is not 64 bytes long.
    #[error("a signature is 64 bytes long, this is {0}")]
    SignatureLength(usize),
    /// A commit of version 2, which had no revisions and is no longer in use.
    #[error("a commit of version 2, which is obsolete: the version must be 3")]
    Version2,
    /// A commit of an unknown version.
    #[error("a commit of version {0}: the version must be 3")]
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
pub(super) fn fail<T>(offset: usize, fault: CommitFault) -> Result<T, CommitError> {
    Err(CommitError { offset, fault })
}
