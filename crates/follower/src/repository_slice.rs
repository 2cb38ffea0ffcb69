//! A slice of a repository that proves some of its records: the commit, the tree nodes on their paths, and the records.

use std::collections::HashSet;
use std::io;

use atproto::mst::canonical;
use atproto::repo::Repository;
use codec::{Cid, car};

/// A slice that is being written. No block is in it twice.
pub(super) struct Slice<'r, 'a> {
    repository: &'r Repository<'a>,
    writer: car::Writer<Vec<u8>>,
    written: HashSet<Cid>,
}

impl<'r, 'a> Slice<'r, 'a> {
    pub(super) fn new(repository: &'r Repository<'a>) -> io::Result<Self> {
        let root = repository.root();
        let writer = car::Writer::new(Vec::new(), &[root]).map_err(io::Error::other)?;
        let mut slice = Self { repository, writer, written: HashSet::new() };
        slice.block(root, repository.commit_block())?;
        Ok(slice)
    }

    /// Adds the proof of the record at a path, or of its absence.
    pub(super) fn add(&mut self, path: &str) -> io::Result<()> {
        let data = self.repository.commit().data;
        let found = canonical::search(data, self.repository, path.as_bytes());
        let found = found.map_err(io::Error::other)?;
        for (cid, block) in &found.nodes {
            self.block(*cid, block)?;
        }
        let record = found.value.and_then(|value| value.to_cid());
        match record.and_then(|cid| Some((cid, self.repository.block(&cid)?))) {
            Some((cid, block)) => self.block(cid, block),
            None => Ok(()),
        }
    }

    /// The slice.
    pub(super) fn finish(self) -> Vec<u8> {
        self.writer.into_inner()
    }

    fn block(&mut self, cid: Cid, block: &[u8]) -> io::Result<()> {
        if self.written.insert(cid) {
            self.writer.block(&cid, block).map_err(io::Error::other)
        } else {
            Ok(())
        }
    }
}
