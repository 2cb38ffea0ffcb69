//! The last stage: is every record a map in canonical DAG-CBOR, and not too long?

use std::hint::black_box;

use atproto::mst::Tree;
use atproto::mst::canonical::Step;
use atproto::repo::Repository;
use codec::{AnyCid, cbor};

use super::tree::{Note, Walked, in_tree};
use super::{Options, RepositoryFault, RepositoryRejection, WholeRepository};
use crate::Verified;

impl<'a> Walked<'a> {
    /// The last stage: reads every record.
    ///
    /// # Errors
    /// At the first record, in key order, that is no map, not canonical or too long.
    pub fn verify_records(self) -> Result<Verified<WholeRepository<'a>>, RepositoryRejection> {
        check(&self.repository, &self.found.records, &self.options, &mut Err)?;
        let Self { repository, signature, found, .. } = self;
        let (tree, extra) = (found.tree, found.extra);
        Ok(Verified::vouch(WholeRepository { repository, signature, tree, extra }))
    }

    /// A stage of its own for who wants the proof a second time: makes the tree of these records anew
    /// and compares the roots. The walk has checked every rule that makes a tree canonical, so that
    /// it can only agree.
    ///
    /// # Errors
    /// If the roots differ.
    pub fn rebuild(&self) -> Result<(), RepositoryRejection> {
        let mut walk = self.repository.walk(&self.options.tree);
        let records = std::iter::from_fn(|| {
            loop {
                if let Ok(Step::Record { key, value }) = walk.next()? {
                    return Some((key.to_vec(), AnyCid::from(value)));
                }
            }
        });
        let tree = Tree::from_sorted(records);
        let root = tree.map_err(|error| in_tree(error, self.repository.archive()))?.root();
        if root == self.repository.commit().data {
            return Ok(());
        }
        Err(RepositoryRejection::of(RepositoryFault::Rebuilt(root)))
    }
}

pub(super) fn check(
    repository: &Repository<'_>,
    records: &[(u32, u32)],
    options: &Options,
    note: Note<'_>,
) -> Result<(), RepositoryRejection> {
    let archive = repository.archive().as_bytes();
    let block_of = |(at, len): (u32, u32)| &archive[at as usize..][..len as usize];
    for records in records.chunks(TOGETHER) {
        records.iter().for_each(|record| touch(block_of(*record)));
        for record in records {
            let (at, block) = (u64::from(record.0), block_of(*record));
            if let Err(rejection) = check_record(block, at, options.max_record_bytes) {
                note(name(rejection, repository, block))?;
            }
        }
    }
    Ok(())
}

/// Reads a byte of each line of a record that comes soon, so that those of a batch are waited for
/// together. Where the archive is in no order, 192,000 records take 20 ms so, and 53 ms without (Zen 5,
/// two busy cores).
#[inline]
fn touch(block: &[u8]) {
    let lines = block.iter().take(TOUCHED_BYTES).step_by(LINE_BYTES);
    black_box(lines.fold(0, |all, byte| all ^ byte));
}

/// Checks the block of one record, which starts at `at` in the archive.
#[inline]
pub(crate) fn check_record(
    block: &[u8],
    at: u64,
    max_bytes: usize,
) -> Result<(), RepositoryRejection> {
    if block.len() > max_bytes {
        return refuse(RepositoryFault::RecordSize(max_bytes), at);
    }
    match cbor::validate(block) {
        Ok(()) if block[0] >> 5 == MAP => Ok(()),
        Ok(()) => refuse(RepositoryFault::RecordShape, at),
        Err(error) => Err(RepositoryRejection::in_record(error, at)),
    }
}

#[cold]
fn refuse(fault: RepositoryFault, at: u64) -> Result<(), RepositoryRejection> {
    Err(RepositoryRejection::of(fault).at(at))
}

/// Tells of which record the fault is: the first path that leads to `block`. The walk did not keep
/// the paths, which would take more memory than everything else.
#[cold]
fn name(
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

/// Records that are waited for together; what they hold stays in the first-level cache.
const TOGETHER: usize = 64;

/// How much of a record is touched: most are shorter, and of longer ones the rest follows in order.
const TOUCHED_BYTES: usize = 512;

/// The length of a line of the cache.
const LINE_BYTES: usize = 64;

/// The kind of a map, in the top three bits of its first byte.
const MAP: u8 = 5;
