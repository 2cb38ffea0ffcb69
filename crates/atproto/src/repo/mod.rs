//! A repository as it is exported: a CAR whose first root is the commit.
//!
//! | item | question it answers |
//! |---|---|
//! | [`Archive`] | which blocks are there, found by CID, and how many? |
//! | [`Repository`] | which commit is this, and which records does its tree hold? |
//!
//! An archive may hold its blocks in any order, repeat them, and have others beside them; all that
//! is known after reading is that each block is what its CID says, and that the commit is one.
//! Whether the tree is sound and whole shows when it is walked, who signed it is for others to
//! judge.
//!
//! Source: the repository specification, "CAR File Serialization".
//!
//! ```
//! use wireproof_atproto::commit::UnsignedCommit;
//! use wireproof_atproto::repo::{Options, Repository};
//! use codec::{Cid, car, cid::Codec};
//!
//! let tree = b"\xa2\x61e\x80\x61l\xf6";
//! let data = Cid::of(Codec::DagCbor, tree);
//! let (did, rev) = ("did:plc:wq4aajammjtxdomz3e23667t", "3mptbypluud2a");
//! let commit = UnsignedCommit { did, rev, data, prev: None }.with_signature(&[1; 64]);
//! let root = Cid::of(Codec::DagCbor, &commit);
//! let mut writer = car::Writer::new(Vec::new(), &[root])?;
//! writer.block(&root, &commit)?;
//! writer.block(&data, tree)?;
//! let export = writer.into_inner();
//!
//! let repository = Repository::read(&export, &Options::default())?;
//! assert_eq!((repository.root(), repository.commit().did), (root, did));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod archive;
mod diff;
mod error;
mod export;
mod index;
mod locality;
mod prefetch;
mod records;
#[cfg(test)]
mod tests;
mod writer;

use codec::Cid;

pub use archive::{Archive, BlockTotals};
pub use codec::car::Options;
pub use error::{RepoError, RepoFault};
pub use export::ExportError;
pub use locality::SequentialBlocks;
pub use records::{Record, RecordJsonError, Records};
pub use writer::{
    MAX_RECORD_BYTES, PreparedCommit, RepositoryWriter, WriteError, WrittenCommit, WrittenOp,
};

use crate::commit::Commit;
use crate::mst::canonical::Walk;
use crate::mst::{BlockSource, TreeLimits};
use error::fail;

/// A repository in the bytes of its export. Nothing is known yet of its signature and its tree.
#[derive(Clone, Debug)]
pub struct Repository<'a> {
    archive: Archive<'a>,
    root: Cid,
    block: &'a [u8],
    commit: Commit<'a>,
}

impl<'a> Repository<'a> {
    /// Reads an export: a CAR whose first root is the commit. What other roots mean is undefined, and
    /// they are ignored.
    ///
    /// # Errors
    /// If the archive breaks a rule or a bound of `options`, a hash is wrong, there is no root, or
    /// what the first root names is not there or no commit of version 3.
    pub fn read(export: &'a [u8], options: &Options) -> Result<Self, RepoError> {
        let archive = Archive::read(export, options)?;
        Self::at_first_root(archive)
    }

    /// The repository whose commit is the first root of an archive that was read before.
    ///
    /// # Errors
    /// If there is no root, or what it names is not there or no commit of version 3.
    pub fn at_first_root(archive: Archive<'a>) -> Result<Self, RepoError> {
        match archive.roots().first() {
            None => fail(None, RepoFault::NoRoot),
            Some(root) if !root.is_dag_cbor() => fail(root.to_cid(), RepoFault::Root),
            Some(root) => Self::at_root(archive, root.to_cid().expect("DAG-CBOR under SHA-256")),
        }
    }

    /// The repository whose commit is `root`, whatever roots the archive names: for archives without
    /// any, such as `getBlocks` answers, when the commit is known from elsewhere.
    ///
    /// # Errors
    /// If the block is not there, or no commit of version 3.
    pub fn at_root(archive: Archive<'a>, root: Cid) -> Result<Self, RepoError> {
        let Some(block) = archive.block(&root) else {
            return fail(Some(root), RepoFault::MissingCommit);
        };
        let commit = Commit::parse(block)
            .map_err(|error| RepoError::in_commit(error, root, archive.offset_of(block)))?;
        Ok(Self { archive, root, block, commit })
    }

    /// The CID of the commit.
    pub fn root(&self) -> Cid {
        self.root
    }

    /// The commit.
    pub fn commit(&self) -> &Commit<'a> {
        &self.commit
    }

    /// The bytes of the commit.
    pub fn commit_block(&self) -> &'a [u8] {
        self.block
    }

    /// All blocks, those that the commit does not lead to as well.
    pub fn archive(&self) -> &Archive<'a> {
        &self.archive
    }

    /// The data of the block that `cid` names.
    #[inline]
    pub fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.archive.block(cid)
    }

    /// A walk over the whole tree, in key order: [`mst::canonical`](crate::mst::canonical).
    pub fn walk(&self, options: &TreeLimits) -> Walk<'a, SequentialBlocks<'_, 'a>> {
        let archive = self.archive.as_bytes();
        Walk::in_archive(self.commit.data, self.archive.sequential(), archive, options)
    }
}

impl<'a> BlockSource<'a> for Archive<'a> {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        Archive::block(self, cid)
    }
}

impl<'a> BlockSource<'a> for Repository<'a> {
    #[inline]
    fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.archive.block(cid)
    }
}
