//! The last stage: every record is a map in canonical DAG-CBOR, within the size limit.
//!
//! Every block that may be a record is checked right after its hash, while it is in the CPU cache; only
//! the walk tells which blocks are records. The last stage checks the remaining ones, and reports their
//! faults.

use atproto::mst::canonical::{BlockSet, Step};
use atproto::repo::Repository;
use codec::car::Block;
use codec::cbor;

use super::rejection::{FaultSink, RepositoryFault, RepositoryRejection};

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

    /// Checks a block, unless it looks like a tree node, which records hardly ever do.
    #[inline]
    pub(super) fn visit(&mut self, block: &Block<'_>) {
        if !block.data.starts_with(b"\xa2\x61e")
            && check_record(block.data, 0, self.max_bytes).is_ok()
        {
            self.valid.insert(block.data);
        }
    }

    #[inline]
    pub(super) fn contains(&self, block: &[u8]) -> bool {
        self.valid.contains(block)
    }
}

/// Checks the records at these offsets of the archive, with these lengths.
pub(super) fn check(
    repository: &Repository<'_>,
    records: &[(u32, u32)],
    max_bytes: usize,
    sink: FaultSink<'_>,
) -> Result<(), RepositoryRejection> {
    let archive = repository.archive().as_bytes();
    let block_of = |(at, len): (u32, u32)| &archive[at as usize..][..len as usize];
    for record in records {
        let (at, block) = (u64::from(record.0), block_of(*record));
        if let Err(rejection) = check_record(block, at, max_bytes) {
            sink(with_path(rejection, repository, block))?;
        }
    }
    Ok(())
}

/// Checks the block of one record, which starts at `at` in the archive.
#[inline]
pub(crate) fn check_record(
    block: &[u8],
    at: u64,
    max_bytes: usize,
) -> Result<(), RepositoryRejection> {
    if block.len() > max_bytes {
        return reject(RepositoryFault::RecordSize(max_bytes), at);
    }
    match cbor::validate(block) {
        Ok(()) if block[0] >> 5 == MAP => Ok(()),
        Ok(()) => reject(RepositoryFault::RecordShape, at),
        Err(error) => Err(RepositoryRejection::in_record(error, at)),
    }
}

#[cold]
fn reject(fault: RepositoryFault, at: u64) -> Result<(), RepositoryRejection> {
    Err(RepositoryRejection::of(fault).at(at))
}

/// Adds the first path that leads to `block`, found by a second walk: keeping all paths would take more
/// memory than everything else.
#[cold]
fn with_path(
    rejection: RepositoryRejection,
    repository: &Repository<'_>,
    block: &[u8],
) -> RepositoryRejection {
    let mut walk = repository.walk(&Default::default());
    while let Some(step) = walk.next() {
        if let Ok(Step::Record { key, value }) = step
            && let Some(cid) = value.to_cid()
            && repository.block(&cid).is_some_and(|found| found.as_ptr() == block.as_ptr())
        {
            return rejection.with_cid(cid).with_key(key);
        }
    }
    rejection
}

/// CBOR major type of a map, in the top three bits of its first byte.
const MAP: u8 = 5;

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
        assert!(check_record(&block, 0, block.len()).is_ok());
        assert!(check_record(&block, 0, block.len() - 1).is_err());
    }
}
