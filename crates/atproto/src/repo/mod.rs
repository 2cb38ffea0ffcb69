//! Repositories: reading and exporting a CAR whose first root is the commit, and writing.
//!
//! | item | content |
//! |---|---|
//! | [`Archive`] | the blocks of a CAR, by CID |
//! | [`Repository`] | a commit and the records of its tree |
//! | [`RepositoryWriter`] | a repository that is changed, committed and exported |
//!
//! An archive may have its blocks in any order, repeat them, and have other blocks. After reading, all
//! blocks are known to match their CIDs, and the commit is known to be one. The tree is checked when it is
//! walked; the signature is not checked here.
//!
//! Source: the repository specification, "CAR File Serialization".
//!
//! ```
//! use wireproof::atproto::commit::UnsignedCommit;
//! use wireproof::atproto::repo::{Options, Repository};
//! use wireproof::codec::{Cid, car, cid::Codec};
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
mod error;
mod hashed;
mod locality;
mod prefetch;
mod records;
#[cfg(test)]
mod tests;
mod writer;

use std::num::NonZeroUsize;

use codec::Cid;

pub use archive::{Archive, ArchiveBuilder, ArchiveEnd, ArchiveSplitter, BlockTotals};
pub use codec::car::Options;
pub use error::{RepoError, RepoFault};
pub use hashed::{HashedBatch, NextBatch};
pub use locality::SequentialBlocks;
pub use records::{ExportError, Record, Records, RecordsInRanges};
pub use writer::{
    MAX_RECORD_BYTES, PreparedCommit, RepositoryWriter, WriteError, WrittenCommit, WrittenOp,
};

use crate::commit::Commit;
use crate::mst::canonical::Walk;
use crate::mst::{self, BlockSource, Diff, Tree, TreeLimits};
use error::fail;

/// A repository in the bytes of its export. Its signature and its tree are not yet checked.
#[derive(Clone, Debug)]
pub struct Repository<'a> {
    archive: Archive<'a>,
    root: Cid,
    block: &'a [u8],
    commit: Commit<'a>,
}

impl<'a> Repository<'a> {
    /// Reads an export: a CAR whose first root is the commit. Other roots have no defined meaning and are
    /// ignored.
    ///
    /// # Errors
    /// If the archive breaks a rule or a limit of `options`, a hash is wrong, there is no root, or the block
    /// of the first root is missing or not a commit of version 3.
    pub fn read(export: &'a [u8], options: &Options) -> Result<Self, RepoError> {
        let archive = Archive::read(export, options)?;
        Self::at_first_root(archive)
    }

    /// Reads an export as [`read`](Self::read) does, and hashes a large one on up to this number of threads.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_on_threads(
        export: &'a [u8],
        options: &Options,
        threads: NonZeroUsize,
    ) -> Result<Self, RepoError> {
        let archive = Archive::read_on_threads(export, options, threads)?;
        Self::at_first_root(archive)
    }

    /// The repository whose commit is the first root of an archive.
    ///
    /// # Errors
    /// If there is no root, or its block is missing or not a commit of version 3.
    pub fn at_first_root(archive: Archive<'a>) -> Result<Self, RepoError> {
        match archive.roots().first() {
            None => fail(None, RepoFault::NoRoot),
            Some(root) if !root.is_dag_cbor() => fail(root.to_cid(), RepoFault::Root),
            Some(root) => Self::at_root(archive, root.to_cid().expect("DAG-CBOR under SHA-256")),
        }
    }

    /// The repository whose commit is `root`, independent of the roots of the archive: for archives without
    /// roots, such as responses of `getBlocks`, when the commit is known from elsewhere.
    ///
    /// # Errors
    /// If the block is missing, or not a commit of version 3.
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

    /// All blocks, including blocks that the commit does not reach.
    pub fn archive(&self) -> &Archive<'a> {
        &self.archive
    }

    /// The data of the block that `cid` names.
    #[inline]
    pub fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.archive.block(cid)
    }

    /// A walk over the whole tree, in key order: [`mst::canonical`].
    pub fn walk(&self, options: &TreeLimits) -> Walk<'a, SequentialBlocks<'_, 'a>> {
        let archive = self.archive.as_bytes();
        Walk::in_archive(self.commit.data, self.archive.sequential(), archive, options)
    }

    /// Compares this state of a repository with a `newer` one. Only the differing parts of the trees are
    /// read.
    ///
    /// # Errors
    /// If a node that has to be read is missing or breaks a rule.
    pub fn diff(&self, newer: &Repository<'_>) -> Result<Diff, RepoError> {
        let mut old = Tree::load_partial(self.commit.data, &self.archive);
        let mut new = Tree::load_partial(newer.commit.data, &newer.archive);
        mst::diff(&mut old, &mut new).map_err(|error| {
            let is_new = error.cid.is_some_and(|cid| newer.block(&cid).is_some());
            RepoError::in_tree(error, if is_new { &newer.archive } else { &self.archive })
        })
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
