//! Writing a repository so that it can be read as it streams in: the commit, the root of the tree,
//! and then each node before its records and children, which stand in the order of their keys.

use std::io::{self, Write};

use codec::Cid;
use codec::car::Writer;

use super::Repository;
use super::error::RepoError;
use super::records::record_block;
use crate::mst::TreeLimits;
use crate::mst::canonical::{BlockSet, Step};

/// Why a repository was not written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It is not whole, or its tree is not sound. Nothing was written.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Repository<'_> {
    /// Writes the repository in streamable order, without what its commit does not lead to, and each
    /// block once. Source: the repository specification, "CAR File Serialization".
    ///
    /// The bytes depend on the repository alone, not on the archive that it was read from.
    ///
    /// # Errors
    /// If a block is missing or the tree is not canonical, before anything is written; and if `out`
    /// fails.
    pub fn export<W: Write>(&self, out: W) -> Result<W, ExportError> {
        self.for_each_block(|_, _| Ok::<_, ExportError>(()))?;
        let mut car = Writer::new(out, &[self.root])?;
        car.block(&self.root, self.block)?;
        self.for_each_block(|cid, block| Ok::<_, ExportError>(car.block(cid, block)?))?;
        Ok(car.into_inner())
    }

    /// Calls `visit` for each block below the commit, in streamable order.
    fn for_each_block<E: From<RepoError>>(
        &self,
        mut visit: impl FnMut(&Cid, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut written = BlockSet::for_archive(self.archive.as_bytes());
        let mut walk = self.walk(&TreeLimits::default());
        while let Some(step) = walk.next() {
            let (cid, block) =
                match step.map_err(|error| RepoError::in_tree(error, &self.archive))? {
                    Step::Node { cid, block } => (cid, block),
                    Step::Record { value, .. } => record_block(&self.archive, value)?,
                };
            if written.insert(block) {
                visit(&cid, block)?;
            }
        }
        Ok(())
    }
}
