//! Rules of repository exports, and the error that names the broken one.

use std::fmt;

use codec::Cid;
use codec::car::{CarError, CarFault};

use crate::commit::{CommitError, CommitFault};
use crate::mst::{BlockSource, TreeError, TreeFault};
use crate::repo::Archive;

/// A broken rule of a repository export, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepoError {
    /// Bytes from the start of the archive to the part that breaks the rule; 0 if it is missing.
    pub offset: u64,
    /// The block that breaks the rule or is missing, where the rule concerns a block.
    pub cid: Option<Cid>,
    /// The broken rule.
    pub fault: RepoFault,
}

/// A rule of repository exports, or of a format inside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepoFault {
    /// The archive breaks a rule, or a block's hash is wrong.
    #[error("{0}")]
    Car(CarFault),
    /// The header has no root, so the commit is unknown.
    #[error("the archive has no root: the first root is the commit")]
    NoRoot,
    /// The first root is not a DAG-CBOR block under SHA-256, so it cannot be a commit.
    #[error("the first root is not a DAG-CBOR block under SHA-256")]
    Root,
    /// The block of the root is missing.
    #[error("the commit is not among the blocks")]
    MissingCommit,
    /// The block of the root is not a commit.
    #[error("commit: {0}")]
    Commit(CommitFault),
    /// The tree is not canonical, or lacks a node.
    #[error("tree: {0}")]
    Tree(TreeFault),
    /// A record of the tree is missing.
    #[error("the record is not among the blocks")]
    MissingRecord,
    /// A record of the tree has a CID of another kind than DAG-CBOR under SHA-256.
    #[error("a record must be DAG-CBOR under SHA-256")]
    RecordLink,
    /// A key of the tree is not UTF-8, so it is not a path.
    #[error("a key of the tree is not text")]
    Key,
}

impl std::error::Error for RepoError {}

impl fmt::Display for RepoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.offset > 0 {
            write!(f, "at byte {} of the archive: ", self.offset)?;
        }
        if let Some(cid) = &self.cid {
            write!(f, "block {cid}: ")?;
        }
        self.fault.fmt(f)
    }
}

impl From<CarError> for RepoError {
    #[cold]
    fn from(error: CarError) -> Self {
        Self { offset: error.offset, cid: None, fault: RepoFault::Car(error.fault) }
    }
}

impl RepoError {
    /// The fault of the commit `cid`, whose data starts at `data_at` in the archive.
    #[cold]
    pub(super) fn in_commit(error: CommitError, cid: Cid, data_at: u64) -> Self {
        let offset = data_at + error.offset as u64;
        Self { offset, cid: Some(cid), fault: RepoFault::Commit(error.fault) }
    }

    /// The fault of a tree whose nodes are blocks of `archive`.
    #[cold]
    pub fn in_tree(error: TreeError, archive: &Archive<'_>) -> Self {
        let block = error.cid.and_then(|cid| BlockSource::block(archive, &cid));
        let offset = block.map_or(0, |block| archive.offset_of(block) + error.offset as u64);
        Self { offset, cid: error.cid, fault: RepoFault::Tree(error.fault) }
    }
}

#[cold]
#[inline(never)]
pub(super) fn fail<T>(cid: Option<Cid>, fault: RepoFault) -> Result<T, RepoError> {
    Err(RepoError { offset: 0, cid, fault })
}
