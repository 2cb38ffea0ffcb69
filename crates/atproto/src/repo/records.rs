//! The records of a repository, and its export in streamable order: the commit, then every node before its
//! records and children, in the order of their keys.

use std::collections::btree_map;
use std::io::{self, Write};

use bumpalo::Bump;
use codec::car::Writer;
use codec::cbor::{self, DecodeError, Value};
use codec::json::{self, ItemJsonError};
use codec::{AnyCid, Cid, CidRef};

use super::error::{RepoError, RepoFault, fail};
use super::{Archive, Repository, SequentialBlocks};
use crate::mst::canonical::{BlockSet, KeyRanges, Step, Walk, search_ranges};
use crate::mst::{BlockSource, TreeLimits};

/// A record of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The path: collection and record key, unless malformed.
    pub path: String,
    /// The CID.
    pub cid: Cid,
    /// The bytes.
    pub block: &'a [u8],
}

impl<'a> Record<'a> {
    /// Decodes the record.
    ///
    /// # Errors
    /// If its bytes are not canonical DAG-CBOR.
    pub fn value(&self, arena: &'a Bump) -> Result<Value<'a>, DecodeError> {
        cbor::decode(self.block, arena)
    }

    /// Converts the record to the JSON of the AT Protocol's data model, on one line.
    ///
    /// # Errors
    /// If its bytes are not canonical DAG-CBOR, or have no JSON form.
    pub fn to_json(&self) -> Result<String, ItemJsonError> {
        let mut json = Vec::new();
        json::append_item(&mut json, self.block)?;
        Ok(String::from_utf8(json).expect("JSON of UTF-8 text is UTF-8"))
    }
}

/// The records of a repository in the order of their paths.
///
/// They come from a strict walk over the tree, which is proved sound only after the last one. After an error
/// the iterator skips the subtree at fault and continues.
#[derive(Clone, Debug)]
pub struct Records<'r, 'a> {
    archive: &'r Archive<'a>,
    walk: Walk<'a, SequentialBlocks<'r, 'a>>,
}

impl<'a> Repository<'a> {
    /// The records in the order of their paths.
    pub fn records(&self) -> Records<'_, 'a> {
        Records { archive: &self.archive, walk: self.walk(&TreeLimits::default()) }
    }

    /// The records in some ranges, in the order of their paths. Only the nodes that can have keys of the ranges are read, so the archive
    /// may lack the others.
    ///
    /// # Errors
    /// If a node is missing or breaks a rule, or the keys are longer than
    /// [`MAX_RANGE_KEY_BYTES`](crate::mst::MAX_RANGE_KEY_BYTES).
    pub fn records_in(&self, ranges: KeyRanges) -> Result<RecordsInRanges<'_, 'a>, RepoError> {
        let found = search_ranges(self.commit.data, &self.archive, ranges, u64::MAX)
            .map_err(|error| RepoError::in_tree(error, &self.archive))?;
        Ok(RecordsInRanges { archive: &self.archive, records: found.records.into_iter() })
    }
}

/// The records in some ranges, in the order of their paths: [`Repository::records_in`].
#[derive(Debug)]
pub struct RecordsInRanges<'r, 'a> {
    archive: &'r Archive<'a>,
    records: btree_map::IntoIter<Vec<u8>, AnyCid>,
}

impl<'a> Iterator for RecordsInRanges<'_, 'a> {
    type Item = Result<Record<'a>, RepoError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.records.next()?;
        Some(record_cid(value.as_cid_ref()).and_then(|cid| record(&self.archive, key, cid)))
    }
}

impl<'a> Iterator for Records<'_, 'a> {
    type Item = Result<Record<'a>, RepoError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (key, cid) = match self.walk.next()? {
                Ok(Step::Node { .. }) => continue,
                Ok(Step::Record { key, value }) => (key.to_vec(), record_cid(value)),
                Err(error) => return Some(Err(RepoError::in_tree(error, self.archive))),
            };
            return Some(cid.and_then(|cid| record(self.walk.blocks(), key, cid)));
        }
    }
}

fn record<'a>(
    blocks: &impl BlockSource<'a>,
    key: Vec<u8>,
    cid: Cid,
) -> Result<Record<'a>, RepoError> {
    let block = record_block(blocks, &cid)?;
    match String::from_utf8(key) {
        Ok(path) => Ok(Record { path, cid, block }),
        Err(_) => fail(Some(cid), RepoFault::Key),
    }
}

/// The CID of a record that the tree names.
#[inline]
fn record_cid(value: CidRef<'_>) -> Result<Cid, RepoError> {
    match value.to_cid() {
        Some(cid) if value.is_dag_cbor() => Ok(cid),
        cid => fail(cid, RepoFault::RecordLink),
    }
}

#[inline]
fn record_block<'a>(blocks: &impl BlockSource<'a>, cid: &Cid) -> Result<&'a [u8], RepoError> {
    match blocks.block(cid) {
        Some(block) => Ok(block),
        None => fail(Some(*cid), RepoFault::MissingRecord),
    }
}

/// Why a repository was not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// It is incomplete, or its tree is not canonical. Nothing was written.
    #[error(transparent)]
    Repo(#[from] RepoError),
    /// The output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Repository<'_> {
    /// Writes the repository in streamable order: only the blocks that its commit reaches, without
    /// duplicates. Source: the repository specification, "CAR File Serialization".
    ///
    /// The bytes depend on the repository alone, not on the archive from which it was read.
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

    /// Calls `visit` for every block below the commit, in streamable order.
    fn for_each_block<E: From<RepoError>>(
        &self,
        mut visit: impl FnMut(&Cid, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut written = BlockSet::for_archive(self.archive.as_bytes());
        let mut walk = self.walk(&TreeLimits::default());
        while let Some(step) = walk.next() {
            let (cid, node) =
                match step.map_err(|error| RepoError::in_tree(error, &self.archive))? {
                    Step::Node { cid, block } => (cid, Some(block)),
                    Step::Record { value, .. } => (record_cid(value)?, None),
                };
            let block = node.map_or_else(|| record_block(walk.blocks(), &cid), Ok)?;
            if written.insert(block) {
                visit(&cid, block)?;
            }
        }
        Ok(())
    }
}
