//! The last stage: every record is a map in canonical DAG-CBOR, within the size limit. One that is not is reported
//! with the repository, or rejects it.
//!
//! Every block that may be a record is checked right after its hash, while it is in the CPU cache; only
//! the walk tells which blocks are records. The last stage checks the remaining ones. If one is invalid, a second
//! walk finds the paths: keeping all paths would take more memory than everything else.

use atproto::mst::canonical::{BlockSet, Step};
use atproto::repo::Repository;
use codec::Cid;
use codec::car::Block;

use super::options::Options;
use super::rejection::{FaultSink, RepositoryRejection};
use crate::invalid::check_record;
use crate::{InvalidRecord, InvalidRecords};

/// The blocks of an archive that are valid if they are records, so that the last stage can skip them.
///
/// As a stage of its own, reading 192,000 records took 14 ms of 77 (Zen 5, two busy cores).
#[derive(Clone, Debug)]
pub(super) struct PrecheckedRecords {
    valid: BlockSet,
    max_bytes: usize,
}

impl PrecheckedRecords {
    /// No block of this archive yet.
    pub(super) fn new(archive: &[u8], max_bytes: usize) -> Self {
        Self { valid: BlockSet::for_archive(archive), max_bytes }
    }

    /// Checks a block that may be a record.
    #[inline]
    pub(super) fn visit(&mut self, block: &Block<'_>) {
        if is_prechecked(block, self.max_bytes) {
            self.insert(block.data);
        }
    }

    /// Adds a block that was prechecked elsewhere.
    #[inline]
    pub(super) fn insert(&mut self, block: &[u8]) {
        self.valid.insert(block);
    }

    #[inline]
    pub(super) fn contains(&self, block: &[u8]) -> bool {
        self.valid.contains(block)
    }
}

/// Whether a block may be a record and is a valid one. It may be one if a tree can name it, which the set of blocks
/// requires, and if it does not look like a tree node, which records hardly ever do.
#[inline]
pub(super) fn is_prechecked(block: &Block<'_>, max_bytes: usize) -> bool {
    let Block { cid, data, .. } = *block;
    cid.sha256().is_some() && !data.starts_with(NODE_START) && check_record(data, max_bytes).is_ok()
}

/// Checks the records at these offsets of the archive, with these lengths. The invalid ones are counted, or, if the
/// options are strict, rejections for the sink.
pub(super) fn check(
    repository: &Repository<'_>,
    records: &[(u32, u32)],
    options: &Options,
    sink: FaultSink<'_>,
) -> Result<InvalidRecords, RepositoryRejection> {
    let archive = repository.archive().as_bytes();
    let blocks = records.iter().map(|(at, len)| &archive[*at as usize..][..*len as usize]);
    let mut invalid =
        blocks.filter(|block| check_record(block, options.max_record_bytes).is_err()).peekable();
    if invalid.peek().is_none() {
        return Ok(InvalidRecords::default());
    }
    let mut blocks = BlockSet::for_archive(archive);
    for block in invalid {
        blocks.insert(block);
    }
    if options.strict_records {
        reject(repository, &blocks, options, sink).map(|()| InvalidRecords::default())
    } else {
        Ok(count(repository, &blocks, options))
    }
}

/// Counts the records whose blocks are in `invalid`.
#[cold]
fn count(repository: &Repository<'_>, invalid: &BlockSet, options: &Options) -> InvalidRecords {
    let mut found = InvalidRecords::default();
    let each = |key: &[u8], cid, block: &[u8]| {
        if found.first.is_none() {
            let path = String::from_utf8_lossy(key);
            found.first = InvalidRecord::find(&path, cid, block, options.max_record_bytes);
        }
        found.records += 1;
        Ok(())
    };
    // No call of `each` fails.
    let _ = for_each_record(repository, invalid, options, each);
    found
}

/// Rejects the first record of every block in `invalid`: a block that many paths share is read once, so that the
/// cost stays linear.
#[cold]
fn reject(
    repository: &Repository<'_>,
    invalid: &BlockSet,
    options: &Options,
    sink: FaultSink<'_>,
) -> Result<(), RepositoryRejection> {
    let archive = repository.archive();
    let mut reported = BlockSet::for_archive(archive.as_bytes());
    for_each_record(repository, invalid, options, |key, cid, block| {
        if !reported.insert(block) {
            return Ok(());
        }
        let path = String::from_utf8_lossy(key);
        match InvalidRecord::find(&path, cid, block, options.max_record_bytes) {
            Some(invalid) => {
                sink(RepositoryRejection::in_record(invalid, archive.offset_of(block)))
            }
            None => Ok(()),
        }
    })
}

/// Calls `each` with key, CID and block of the records whose blocks are in `blocks`, in key order.
fn for_each_record(
    repository: &Repository<'_>,
    blocks: &BlockSet,
    options: &Options,
    mut each: impl FnMut(&[u8], Cid, &[u8]) -> Result<(), RepositoryRejection>,
) -> Result<(), RepositoryRejection> {
    let mut walk = repository.walk(&options.tree);
    while let Some(step) = walk.next() {
        if let Ok(Step::Record { key, value }) = step
            && let Some(cid) = value.to_cid()
            && let Some(block) = repository.block(&cid)
            && blocks.contains(block)
        {
            each(key, cid, block)?;
        }
    }
    Ok(())
}

/// How every tree node begins: a map of two fields, the first of them `e`.
pub(super) const NODE_START: &[u8] = b"\xa2\x61e";

#[cfg(test)]
mod tests {
    use codec::car;

    use super::*;
    use crate::repository::tests::{Parts, record};

    #[test]
    fn records_are_checked_with_their_hashes_and_nodes_and_faulty_records_are_not() {
        let mut parts = Parts::of(20);
        parts.put("app.test.record/odd", b"\x01".to_vec());
        let export = parts.export();
        let blocks = car::read(&export, &car::Options::default()).unwrap().blocks;
        let mut prechecked = PrecheckedRecords::new(&export, 1 << 20);
        blocks.iter().for_each(|block| prechecked.visit(block));
        let nodes = parts.nodes().1;
        for block in blocks {
            let is_node = nodes.iter().any(|(cid, _)| cid.as_cid_ref() == block.cid);
            let expected = !is_node && block.data != b"\x01";
            assert_eq!(prechecked.contains(block.data), expected, "{:?}", block.cid);
        }
    }

    #[test]
    fn a_record_may_be_as_long_as_its_limit() {
        let block = record("text");
        assert!(check_record(&block, block.len()).is_ok());
        assert!(check_record(&block, block.len() - 1).is_err());
    }
}
