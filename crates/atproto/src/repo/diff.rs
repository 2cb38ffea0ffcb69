//! What was done between two states of a repository?

use super::{RepoError, Repository};
use crate::mst::{self, Diff, Tree};

impl Repository<'_> {
    /// What differs between this state of a repository and a `newer` one. Of the trees only the parts
    /// that differ are read.
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
