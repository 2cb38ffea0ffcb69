//! The third stage in the pass of the first: where an archive is in streamable order, the walk takes every block right
//! after its hash, so that the archive is read once from memory.
//!
//! It is given up at the first block in another order and at the first fault: then the stages run one after the other,
//! and find the faults.

use std::cell::RefCell;

use atproto::commit::Commit;
use atproto::mst::canonical::{BlockSet, NodeSource, Step, Summary, Walker};
use atproto::repo::{
    Archive, ArchiveBuilder, ArchiveSplitter, BlockTotals, HashedBatch, NextBatch,
};
use atproto::syntax::RepoPathChecker;
use codec::Cid;
use codec::car::{Block, CarError};

use super::options::Options;
use super::records::{NODE_START, PrecheckedRecords, is_prechecked};
use super::tree::{WalkResult, record_cid};

/// An archive that was read, and the result of the walk if it was in streamable order and free of faults.
pub(super) struct ReadArchive<'a> {
    pub(super) archive: Archive<'a>,
    pub(super) prechecked: PrecheckedRecords,
    pub(super) walked: Option<WalkResult>,
}

/// Reads an archive, and walks the tree of its first root meanwhile.
pub(super) fn read<'a>(export: &'a [u8], options: &Options) -> Result<ReadArchive<'a>, CarError> {
    let splitter = ArchiveSplitter::new(export, &options.checked_archive())?;
    let root = splitter.roots().first().and_then(|root| root.to_cid());
    let builder = ArchiveBuilder::new(&splitter);
    let max_bytes = options.max_record_bytes;
    let check = |block: &Block<'a>| is_prechecked(block, max_bytes);
    splitter.with_hashed(options.threads, check, |next| {
        let blocks = RefCell::new(FollowedBlocks::new(export, next, builder, options));
        let tree = root.and_then(|root| walk(&blocks, root, options));
        blocks.into_inner().finish(tree)
    })
}

/// The blocks of an archive as it is read.
struct FollowedBlocks<'n, 'a> {
    next_batch: NextBatch<'n, 'a>,
    builder: ArchiveBuilder<'a>,
    batch: HashedBatch<'a>,
    /// The index in the batch of the first block that the walk has not taken.
    next: usize,
    prechecked: PrecheckedRecords,
    reached: ReachedBlocks,
    /// Records that are not the next block, probably because an earlier path shares them.
    shared: Vec<Cid>,
}

/// The blocks that the commit leads to.
struct ReachedBlocks {
    /// Address of the archive.
    start: usize,
    blocks: BlockSet,
    totals: BlockTotals,
    /// Records that are not prechecked: offset in the archive, and length.
    unchecked: Vec<(u32, u32)>,
}

impl<'n, 'a> FollowedBlocks<'n, 'a> {
    fn new(
        export: &'a [u8],
        next_batch: NextBatch<'n, 'a>,
        builder: ArchiveBuilder<'a>,
        options: &Options,
    ) -> Self {
        Self {
            next_batch,
            builder,
            batch: HashedBatch::default(),
            next: 0,
            prechecked: PrecheckedRecords::new(export, options.max_record_bytes),
            reached: ReachedBlocks {
                start: export.as_ptr() as usize,
                blocks: BlockSet::for_archive(export),
                totals: BlockTotals::default(),
                unchecked: Vec::new(),
            },
            shared: Vec::new(),
        }
    }

    /// Takes the next block, if it is `cid`.
    #[inline]
    fn take(&mut self, cid: &Cid) -> Option<&'a [u8]> {
        while self.next == self.batch.blocks.len() && self.read_batch() {}
        let block = self.batch.blocks.get(self.next)?;
        if block.cid.as_bytes() != cid.as_bytes() {
            return None;
        }
        self.next += 1;
        Some(block.data)
    }

    /// Takes a node or the commit.
    #[inline]
    fn node(&mut self, cid: &Cid) -> Option<&'a [u8]> {
        let data = self.take(cid)?;
        self.reached.insert(data);
        Some(data)
    }

    /// Takes the record `cid`; returns whether it may be there.
    #[inline]
    fn record(&mut self, cid: Cid) -> bool {
        match self.take(&cid) {
            Some(data) => self.reached.insert_record(data, &self.prechecked),
            None if self.shared.len() == MAX_SHARED => return false,
            None => self.shared.push(cid),
        }
        true
    }

    /// Reads the next batch; returns whether there was one.
    fn read_batch(&mut self) -> bool {
        if self.batch.end.is_some() {
            return false;
        }
        self.next = 0;
        (self.next_batch)(&mut self.batch);
        let HashedBatch { blocks, passed, .. } = &self.batch;
        let passed = blocks.iter().zip(passed).filter(|(_, passed)| **passed);
        passed.for_each(|(block, _)| self.prechecked.insert(block.data));
        self.builder.add(blocks);
        true
    }

    /// Reads the rest of the archive, and completes the result of a walk.
    fn finish(mut self, tree: Option<Summary>) -> Result<ReadArchive<'a>, CarError> {
        while self.read_batch() {}
        let Self { builder, batch, prechecked, mut reached, shared, .. } = self;
        batch.end.unwrap_or(Ok(()))?;
        let archive = builder.finish();
        let distinct = archive.distinct();
        // Of a repeated block both copies could have been taken.
        let is_plain = distinct.blocks == archive.block_count();
        let tree =
            tree.filter(|_| is_plain && reached.insert_shared(&shared, &archive, &prechecked));
        let ReachedBlocks { totals, unchecked, .. } = reached;
        let walked = tree.map(|tree| WalkResult { tree, unchecked, extra: distinct - totals });
        Ok(ReadArchive { archive, prechecked, walked })
    }
}

impl ReachedBlocks {
    /// Adds a block; returns whether it is new.
    #[inline]
    fn insert(&mut self, data: &[u8]) -> bool {
        let is_new = self.blocks.insert(data);
        if is_new {
            self.totals += BlockTotals::of(data);
        }
        is_new
    }

    #[inline]
    fn insert_record(&mut self, data: &[u8], prechecked: &PrecheckedRecords) {
        if self.insert(data) && !prechecked.contains(data) {
            let at = data.as_ptr() as usize - self.start;
            self.unchecked.push((at as u32, data.len() as u32));
        }
    }

    /// Adds records that were not in their order; returns whether all are in the archive.
    fn insert_shared(
        &mut self,
        shared: &[Cid],
        archive: &Archive<'_>,
        prechecked: &PrecheckedRecords,
    ) -> bool {
        shared.iter().all(|cid| match archive.block(cid) {
            // Whether such a record is checked depends on the order.
            Some(data) if !data.starts_with(NODE_START) => {
                self.insert_record(data, prechecked);
                true
            }
            _ => false,
        })
    }
}

/// The nodes among the blocks.
struct FollowedNodes<'b, 'n, 'a>(&'b RefCell<FollowedBlocks<'n, 'a>>);

impl<'a> NodeSource for FollowedNodes<'_, '_, 'a> {
    type Block = &'a [u8];

    #[inline]
    fn node(&mut self, cid: &Cid) -> Option<&'a [u8]> {
        self.0.borrow_mut().node(cid)
    }

    #[inline]
    fn reach(&mut self, _cid: &Cid, _block: &&'a [u8]) -> bool {
        // A block is taken once.
        true
    }
}

/// Walks the tree; `None` if it is given up.
fn walk(blocks: &RefCell<FollowedBlocks<'_, '_>>, root: Cid, options: &Options) -> Option<Summary> {
    let commit = blocks.borrow_mut().node(&root)?;
    let root = Commit::parse(commit).ok()?.data;
    let mut walk = Walker::over(root, FollowedNodes(blocks), &options.tree);
    let mut paths = RepoPathChecker::default();
    while let Some(step) = walk.next() {
        if let Step::Record { key, value } = step.ok()? {
            if !options.allow_any_key {
                paths.check(key).ok()?;
            }
            if !blocks.borrow_mut().record(record_cid(value).ok()?) {
                return None;
            }
        }
    }
    Some(walk.summary())
}

/// Maximum number of records that are looked up when the archive was read: with more the order is another one.
const MAX_SHARED: usize = 4_096;

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use codec::car;

    use super::*;
    use crate::repository::RepositoryRejection;
    use crate::repository::tests::{Parts, path, record};
    use crate::repository::{tree, verify_without_signature};

    type Blocks = Vec<(Cid, Vec<u8>)>;

    /// The export of some records in streamable order, two of them the same, with its blocks changed.
    fn export(change: impl FnOnce(&mut Blocks)) -> Vec<u8> {
        let mut parts = Parts::of(300);
        parts.put(&path(1_000), record("number 7"));
        parts.put(&path(1_001), b"\x80".to_vec());
        let whole = parts.export();
        let whole = verify_without_signature(&whole, &Options::default()).unwrap();
        let whole = whole.export(Vec::new()).unwrap();
        let blocks = car::read(&whole, &car::Options::default()).unwrap().blocks;
        let owned = blocks.iter().map(|block| (block.cid.to_cid().unwrap(), block.data.to_vec()));
        let mut blocks: Blocks = owned.collect();
        let root = blocks[0].0;
        change(&mut blocks);
        let mut writer = car::Writer::new(Vec::new(), &[root]).unwrap();
        blocks.iter().for_each(|(cid, data)| writer.block(cid, data).unwrap());
        writer.into_inner()
    }

    #[test]
    fn an_archive_in_streamable_order_is_walked_while_it_is_read_with_the_same_result() {
        let extra = record("extra");
        let extra = (Cid::of(codec::cid::Codec::DagCbor, &extra), extra);
        for export in [export(|_| ()), export(|blocks| blocks.push(extra))] {
            let options = Options::default();
            let ReadArchive { archive, prechecked, walked } = read(&export, &options).unwrap();
            let repository = atproto::repo::Repository::at_first_root(archive).unwrap();
            let expected = tree::walk(&repository, &prechecked, &options, &mut Err).unwrap();
            let walked = walked.expect("in streamable order");
            assert_eq!((walked.tree, walked.extra), (expected.tree, expected.extra));
            assert_eq!(walked.unchecked, expected.unchecked);
        }
    }

    #[test]
    fn a_large_archive_has_the_same_proof_on_any_number_of_threads() {
        let mut parts = Parts::of(300);
        for number in 0..300 {
            parts.put(&path(2_000 + number), record(&format!("{number} {}", "long".repeat(5_000))));
        }
        parts.put(&path(3_000), b"\x80".to_vec());
        let sound = parts.export();
        let ordered = verify_without_signature(&sound, &Options::default()).unwrap();
        let ordered = ordered.export(Vec::new()).unwrap();
        let mut wrong = ordered.clone();
        wrong[ordered.len() / 3] ^= 1;
        for export in [sound, ordered, wrong] {
            let proof = |threads: usize| {
                let threads = NonZeroUsize::new(threads).unwrap();
                let options = Options { threads, ..Options::default() };
                let whole = verify_without_signature(&export, &options)?;
                Ok((whole.tree(), whole.extra(), whole.invalid_records().clone()))
            };
            let alone: Result<_, RepositoryRejection> = proof(1);
            assert_eq!([proof(2), proof(5)], [alone.clone(), alone]);
        }
    }

    #[test]
    fn the_walk_is_given_up_at_another_order_a_repeated_block_and_a_fault() {
        let changed: [fn(&mut Blocks); 4] = [
            |blocks| blocks.reverse(),
            |blocks| blocks[1..].rotate_left(1),
            |blocks| blocks.push(blocks[5].clone()),
            |blocks| drop(blocks.pop()),
        ];
        for change in changed {
            assert!(!is_walked(&export(change)));
        }
    }

    fn is_walked(export: &[u8]) -> bool {
        read(export, &Options::default()).unwrap().walked.is_some()
    }

    /// The export of a repository whose `paths` paths all have this record.
    fn export_of_one(record: &[u8], paths: usize) -> Vec<u8> {
        let mut parts = Parts::of(0);
        for at in 0..paths {
            parts.put(&path(at), record.to_vec());
        }
        let whole = parts.export();
        let whole = verify_without_signature(&whole, &Options::default()).unwrap();
        whole.export(Vec::new()).unwrap()
    }

    #[test]
    fn the_walk_is_given_up_at_more_shared_records_than_are_kept() {
        let shared = record("shared");
        assert!(is_walked(&export_of_one(&shared, MAX_SHARED + 1)));
        assert!(!is_walked(&export_of_one(&shared, MAX_SHARED + 2)));
    }

    #[test]
    fn the_walk_is_given_up_at_a_shared_record_that_looks_like_a_node() {
        let node = b"\xa2\x61e\x80\x61l\xf6";
        assert!(node.starts_with(NODE_START));
        assert!(is_walked(&export_of_one(node, 1)));
        assert!(!is_walked(&export_of_one(node, 2)));
    }
}
