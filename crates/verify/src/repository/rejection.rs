//! Why a repository, or the proof of a record, is refused.

use std::fmt;

use atproto::commit::{CommitError, CommitFault};
use atproto::mst::TreeFault;
use atproto::repo::{RepoError, RepoFault};
use atproto::syntax::SyntaxError;
use codec::Cid;
use codec::car::CarFault;
use codec::cbor::{DecodeError, Reason};
use crypto::SignatureFault;

use crate::commit::{object_code, signature_code};

/// Why a repository, or the proof of a record, is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryRejection {
    /// The rule that was broken.
    pub fault: RepositoryFault,
    /// The block that broke it or that is missing, where the rule is one of blocks.
    pub cid: Option<Cid>,
    /// The path of the record, or the key of the tree, that it is about.
    pub path: Option<Box<str>>,
    /// Bytes from the start of the archive to the part that broke the rule, if it is there.
    pub offset: Option<u64>,
}

/// A rule of repositories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryFault {
    /// The archive breaks a rule, or a block's hash is wrong.
    #[error("{0}")]
    Car(CarFault),
    /// The archive names no root, so nothing says which block is the commit.
    #[error("the archive names no root: the first one is the commit")]
    NoRoot,
    /// The first root cannot be a commit.
    #[error("the first root is no DAG-CBOR block under SHA-256")]
    Root,
    /// The commit is not there.
    #[error("the commit is not among the blocks")]
    MissingCommit,
    /// The block of the commit is no commit of version 3.
    #[error("commit: {0}")]
    Commit(CommitFault),
    /// The commit's account is not a DID.
    #[error("the commit's account: {0}")]
    Did(SyntaxError),
    /// The commit's revision is not a TID.
    #[error("the commit's revision: {0}")]
    Rev(SyntaxError),
    /// The commit is another account's than the one asked for.
    #[error("the commit is of another account")]
    OtherAccount,
    /// The signature is malformed, malleable, or not of the key.
    #[error("the commit's signature: {0}")]
    Signature(SignatureFault),
    /// The tree is not the one that its records must have, or not all there.
    #[error("tree: {0}")]
    Tree(TreeFault),
    /// The tree that the records must have has another root.
    #[error("the tree of these records has the root {0}")]
    Rebuilt(Cid),
    /// A key of the tree is not the path of a record.
    #[error("the path: {0}")]
    Path(SyntaxError),
    /// A record that the tree names is not there.
    #[error("the record is not among the blocks")]
    RecordMissing,
    /// The tree names a record by a CID of another kind than DAG-CBOR under SHA-256.
    #[error("a record must be DAG-CBOR under SHA-256")]
    RecordLink,
    /// A record is not canonical DAG-CBOR.
    #[error("record: {0}")]
    RecordCbor(Reason),
    /// A record is not a map.
    #[error("a record must be a map")]
    RecordShape,
    /// A record is longer than the bound.
    #[error("a record over the limit of {0} bytes")]
    RecordSize(usize),
    /// There are more blocks beside the repository than the caller allows.
    #[error("more than {0} blocks that the commit does not lead to")]
    ExtraBlocks(u64),
    /// There are more bytes beside the repository than the caller allows.
    #[error("more than {0} bytes in blocks that the commit does not lead to")]
    ExtraBytes(u64),
}

impl RepositoryRejection {
    /// The stable name of the rule that was broken.
    pub fn code(&self) -> &'static str {
        match self.fault {
            RepositoryFault::Car(fault) => fault.code(),
            RepositoryFault::NoRoot | RepositoryFault::Root => "car/roots",
            RepositoryFault::MissingCommit => "commit/missing-block",
            RepositoryFault::Commit(fault) => object_code(&CommitError { offset: 0, fault }),
            RepositoryFault::Did(_) | RepositoryFault::OtherAccount => "commit/did",
            RepositoryFault::Rev(_) => "commit/rev",
            RepositoryFault::Signature(fault) => signature_code(fault),
            RepositoryFault::Tree(fault) => fault.code(),
            RepositoryFault::Rebuilt(_) => "tree/rebuilt",
            RepositoryFault::Path(_) => "record/path",
            RepositoryFault::RecordMissing => "record/missing",
            RepositoryFault::RecordLink => "record/link",
            RepositoryFault::RecordCbor(_) => "record/cbor",
            RepositoryFault::RecordShape => "record/shape",
            RepositoryFault::RecordSize(_) => "record/size",
            RepositoryFault::ExtraBlocks(_) | RepositoryFault::ExtraBytes(_) => "car/extra",
        }
    }

    /// A fault that is about nothing in particular yet.
    #[cold]
    pub(crate) fn of(fault: RepositoryFault) -> Self {
        Self { fault, cid: None, path: None, offset: None }
    }

    /// The same, about this block.
    pub(crate) fn with_cid(self, cid: impl Into<Option<Cid>>) -> Self {
        Self { cid: cid.into(), ..self }
    }

    /// The same, about what this key of the tree names.
    pub(crate) fn with_key(self, key: &[u8]) -> Self {
        self.with_path(&String::from_utf8_lossy(key))
    }

    /// The same, about this path.
    pub(crate) fn with_path(self, path: &str) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    /// The same, of what stands at this byte of the archive.
    pub(crate) fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// The fault of a record whose data starts at `data_at` in the archive.
    #[cold]
    pub(crate) fn in_record(error: DecodeError, data_at: u64) -> Self {
        Self::of(RepositoryFault::RecordCbor(error.reason)).at(data_at + error.offset as u64)
    }
}

impl From<RepoError> for RepositoryRejection {
    #[cold]
    fn from(error: RepoError) -> Self {
        let fault = match error.fault {
            RepoFault::Car(fault) => RepositoryFault::Car(fault),
            RepoFault::NoRoot => RepositoryFault::NoRoot,
            RepoFault::Root => RepositoryFault::Root,
            RepoFault::MissingCommit => RepositoryFault::MissingCommit,
            RepoFault::Commit(fault) => RepositoryFault::Commit(fault),
            RepoFault::Tree(fault) => RepositoryFault::Tree(fault),
            RepoFault::RecordLink => RepositoryFault::RecordLink,
            _ => RepositoryFault::RecordMissing,
        };
        let offset = Some(error.offset).filter(|offset| *offset > 0);
        Self { fault, cid: error.cid, path: None, offset }
    }
}

impl std::error::Error for RepositoryRejection {}

impl fmt::Display for RepositoryRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path:?}: ")?;
        }
        self.fault.fmt(f)?;
        if let Some(cid) = &self.cid {
            write!(f, ", block {cid}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, ", at byte {offset} of the archive")?;
        }
        Ok(())
    }
}
