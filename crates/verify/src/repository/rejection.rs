//! The reasons for rejecting a repository or the proof of a record.

use std::fmt;

use atproto::commit::{CommitError, CommitFault};
use atproto::mst::canonical::key_of;
use atproto::mst::{BlockSource, TreeError, TreeFault};
use atproto::repo::{Archive, RepoError, RepoFault};
use atproto::syntax::SyntaxError;
use codec::car::{CarError, CarFault};
use codec::{Cid, CidRef};
use crypto::SignatureFault;

use crate::commit::{object_code, signature_code};
use crate::{InvalidRecord, RecordFault};

/// Why a repository, or the proof of a record, is rejected, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryRejection {
    /// The rule that was broken.
    pub fault: RepositoryFault,
    /// The block that broke it or that is missing, for rules of blocks.
    pub cid: Option<Cid>,
    /// The path of the record or the key of the tree, where one is known.
    pub path: Option<Box<str>>,
    /// Offset in the archive of the part that broke the rule, in bytes; `None` if the part is missing.
    pub offset: Option<u64>,
}

/// A broken rule of repositories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryFault {
    /// The archive breaks a rule, or a block has another hash than its CID.
    #[error("{0}")]
    Car(CarFault),
    /// The archive has no root, so that the commit is unknown.
    #[error("the archive has no root; the first root must be the commit")]
    NoRoot,
    /// The first root cannot be a commit.
    #[error("the first root must be DAG-CBOR under SHA-256")]
    Root,
    /// The commit block is missing.
    #[error("the commit is not among the blocks")]
    MissingCommit,
    /// The commit block is not a commit of version 3.
    #[error("commit: {0}")]
    Commit(CommitFault),
    /// The commit's account is not a DID.
    #[error("commit account: {0}")]
    Did(SyntaxError),
    /// The commit's revision is not a TID.
    #[error("commit revision: {0}")]
    Rev(SyntaxError),
    /// The commit is another account's than the expected one.
    #[error("the commit is of another account")]
    OtherAccount,
    /// The signature is malformed, malleable, or not of the key.
    #[error("commit signature: {0}")]
    Signature(SignatureFault),
    /// The tree is not the canonical one of its records, or a node is missing.
    #[error("tree: {0}")]
    Tree(TreeFault),
    /// The tree rebuilt from the records has another root.
    #[error("the tree rebuilt from the records has the root {0}")]
    Rebuilt(Cid),
    /// A key of the tree is not the path of a record.
    #[error("record path: {0}")]
    Path(SyntaxError),
    /// A record that the tree names is missing.
    #[error("the record is not among the blocks")]
    RecordMissing,
    /// The tree names a record by a CID of another kind than DAG-CBOR under SHA-256.
    #[error("a record must be DAG-CBOR under SHA-256")]
    RecordLink,
    /// A record is invalid, and the options are strict about records.
    #[error("{0}")]
    Record(RecordFault),
    /// There are more extra blocks than the caller allows.
    #[error("more than {0} blocks that the commit does not lead to")]
    ExtraBlocks(u64),
    /// The extra blocks have more bytes than the caller allows.
    #[error("more than {0} bytes in blocks that the commit does not lead to")]
    ExtraBytes(u64),
}

impl RepositoryRejection {
    /// The stable code of the broken rule.
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
            RepositoryFault::Record(fault) => fault.code(),
            RepositoryFault::ExtraBlocks(_) | RepositoryFault::ExtraBytes(_) => "car/extra",
        }
    }

    /// A fault without a place.
    #[cold]
    pub(crate) fn of(fault: RepositoryFault) -> Self {
        Self { fault, cid: None, path: None, offset: None }
    }

    /// Adds the block.
    pub(crate) fn with_cid(self, cid: impl Into<Option<Cid>>) -> Self {
        Self { cid: cid.into(), ..self }
    }

    /// Adds the key of the tree.
    pub(crate) fn with_key(self, key: &[u8]) -> Self {
        self.with_path(&String::from_utf8_lossy(key))
    }

    /// Adds the path.
    pub(crate) fn with_path(self, path: &str) -> Self {
        Self { path: Some(path.into()), ..self }
    }

    /// Adds the offset in the archive, in bytes.
    pub(crate) fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }

    /// The fault of an archive, with its block.
    #[cold]
    pub(crate) fn in_archive(archive: &[u8], error: CarError) -> Self {
        let section = archive.get(error.offset as usize..).unwrap_or_default();
        let cid = match (error.fault, kernels::varint::read(section)) {
            (CarFault::HashMismatch, Ok((_, prefix))) => CidRef::from_prefix(&section[prefix..]),
            _ => None,
        };
        Self::in_section(error, cid.map(|(cid, _)| cid))
    }

    /// The fault of a section of an archive, with its CID if the hash is wrong.
    #[cold]
    pub(super) fn in_section(error: CarError, cid: Option<CidRef<'_>>) -> Self {
        let rejection = Self::from(RepoError::from(error)).at(error.offset);
        rejection.with_cid(cid.and_then(CidRef::to_cid))
    }

    /// The fault of a tree node, with the key where it was found.
    #[cold]
    pub(crate) fn in_tree(error: TreeError, archive: &Archive<'_>) -> Self {
        let block = error.cid.and_then(|cid| BlockSource::block(archive, &cid));
        Self::in_node(error, block.map(|block| archive.offset_of(block)), block)
    }

    /// The same, where the data of the node starts at `data_at`, and `block` is the node if it is known to be one.
    #[cold]
    pub(super) fn in_node(error: TreeError, data_at: Option<u64>, block: Option<&[u8]>) -> Self {
        let TreeError { cid, offset, fault } = error;
        let at = data_at.map_or(0, |data_at| data_at + offset as u64);
        let rejection = Self::from(RepoError { offset: at, cid, fault: RepoFault::Tree(fault) });
        match block.and_then(|block| key_of(block, offset)) {
            Some(key) => rejection.with_key(&key),
            None => rejection,
        }
    }

    /// The fault of a record whose data starts at `data_at` in the archive.
    #[cold]
    pub(crate) fn in_record(invalid: InvalidRecord, data_at: u64) -> Self {
        let InvalidRecord { path, cid, error } = invalid;
        let rejection = Self::of(RepositoryFault::Record(error.fault));
        rejection.at(data_at + error.offset as u64).with_cid(cid).with_path(&path)
    }
}

/// Receives every fault: an error ends the verification, `Ok` continues with the data that does not depend on the
/// fault.
pub(super) type FaultSink<'s> =
    &'s mut dyn FnMut(RepositoryRejection) -> Result<(), RepositoryRejection>;

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
