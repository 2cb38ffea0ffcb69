//! The third stage: the tree is canonical, and every block that it names is present.

use atproto::mst::BlockSource;
use atproto::mst::canonical::{BlockSet, Step, Summary, Walk};
use atproto::repo::{Archive, BlockTotals, Repository};
use atproto::syntax::RepoPathChecker;
use codec::{Cid, CidRef};

use super::options::Options;
use super::records::PrecheckedRecords;
use super::rejection::{FaultSink, RepositoryFault, RepositoryRejection};

/// The result of a walk.
#[derive(Clone, Debug, Default)]
pub(super) struct WalkResult {
    pub(super) tree: Summary,
    /// The records that are not prechecked, in key order: offset in the archive, and length.
    pub(super) unchecked: Vec<(u32, u32)>,
    pub(super) extra: BlockTotals,
}

/// Walks the tree in key order, looks up every record, and checks every key.
pub(super) fn walk(
    repository: &Repository<'_>,
    prechecked: &PrecheckedRecords,
    options: &Options,
    sink: FaultSink<'_>,
) -> Result<WalkResult, RepositoryRejection> {
    let archive = repository.archive();
    let (root, blocks) = (repository.commit().data, archive.sequential());
    let mut reachable = ReachableBlocks::new(archive, prechecked, repository.commit_block());
    let mut pending = PendingLookups::default();
    let mut paths = RepoPathChecker::default();
    let mut walk = Walk::in_archive(root, &blocks, archive.as_bytes(), &options.tree);
    while let Some(step) = walk.next() {
        match step {
            Ok(Step::Node { block, .. }) => drop(reachable.insert(block)),
            Ok(Step::Record { key, value }) => {
                if !options.allow_any_key
                    && let Err(rejection) = check_path(&mut paths, key)
                {
                    pending.flush(&mut reachable, sink)?;
                    sink(rejection)?;
                }
                match record_cid(value) {
                    Ok(cid) if blocks.is_sequential() => {
                        reachable.record(&blocks, key, &cid, sink)?;
                    }
                    Ok(cid) if !pending.push(key, cid) => {}
                    Ok(_) => pending.flush(&mut reachable, sink)?,
                    Err(rejection) => {
                        pending.flush(&mut reachable, sink)?;
                        sink(rejection.with_key(key))?;
                    }
                }
            }
            Err(error) => {
                pending.flush(&mut reachable, sink)?;
                sink(RepositoryRejection::in_tree(error, archive))?;
            }
        }
    }
    pending.flush(&mut reachable, sink)?;
    let extra = archive.distinct() - reachable.totals;
    check_extra(extra, options, sink)?;
    Ok(WalkResult { tree: walk.summary(), unchecked: reachable.unchecked, extra })
}

/// Records of an archive in arbitrary order, collected to be looked up together.
#[derive(Default)]
struct PendingLookups {
    keys: Vec<u8>,
    /// The ends of the keys, and the CIDs.
    records: Vec<(usize, Cid)>,
}

impl PendingLookups {
    /// Adds a record, and returns whether the batch is full.
    #[inline]
    fn push(&mut self, key: &[u8], cid: Cid) -> bool {
        self.keys.extend_from_slice(key);
        self.records.push((self.keys.len(), cid));
        self.records.len() == LOOKUP_BATCH
    }

    /// Looks up the pending records.
    fn flush(
        &mut self,
        reachable: &mut ReachableBlocks<'_, '_>,
        sink: FaultSink<'_>,
    ) -> Result<(), RepositoryRejection> {
        let cids: Vec<Cid> = self.records.iter().map(|(_, cid)| *cid).collect();
        reachable.archive.prefetch(&cids);
        let mut start = 0;
        for (end, cid) in self.records.drain(..) {
            reachable.record(reachable.archive, &self.keys[start..end], &cid, sink)?;
            start = end;
        }
        self.keys.clear();
        Ok(())
    }
}

/// The block of a record that the tree names.
#[inline]
pub(crate) fn record_block<'a>(
    blocks: &impl BlockSource<'a>,
    value: CidRef<'_>,
) -> Result<&'a [u8], RepositoryRejection> {
    find_record(blocks, &record_cid(value)?)
}

/// The CID of a record that the tree names.
#[inline]
pub(super) fn record_cid(value: CidRef<'_>) -> Result<Cid, RepositoryRejection> {
    match value.to_cid() {
        Some(cid) if value.is_dag_cbor() => Ok(cid),
        cid => Err(RepositoryRejection::of(RepositoryFault::RecordLink).with_cid(cid)),
    }
}

#[inline]
fn find_record<'a>(
    blocks: &impl BlockSource<'a>,
    cid: &Cid,
) -> Result<&'a [u8], RepositoryRejection> {
    match blocks.block(cid) {
        Some(block) => Ok(block),
        None => Err(RepositoryRejection::of(RepositoryFault::RecordMissing).with_cid(*cid)),
    }
}

/// Counts the blocks to which the commit does not lead, against the limits.
pub(super) fn check_extra(
    extra: BlockTotals,
    options: &Options,
    sink: FaultSink<'_>,
) -> Result<(), RepositoryRejection> {
    if extra.blocks > options.max_extra_blocks {
        sink(RepositoryRejection::of(RepositoryFault::ExtraBlocks(options.max_extra_blocks)))?;
    }
    if extra.bytes > options.max_extra_bytes {
        sink(RepositoryRejection::of(RepositoryFault::ExtraBytes(options.max_extra_bytes)))?;
    }
    Ok(())
}

/// The blocks that the commit leads to, counted once.
struct ReachableBlocks<'r, 'a> {
    archive: &'r Archive<'a>,
    prechecked: &'r PrecheckedRecords,
    blocks: BlockSet,
    totals: BlockTotals,
    unchecked: Vec<(u32, u32)>,
}

impl<'r, 'a> ReachableBlocks<'r, 'a> {
    fn new(archive: &'r Archive<'a>, prechecked: &'r PrecheckedRecords, commit: &[u8]) -> Self {
        let blocks = BlockSet::for_archive(archive.as_bytes());
        let (totals, unchecked) = (BlockTotals::default(), Vec::new());
        let mut reachable = Self { archive, prechecked, blocks, totals, unchecked };
        reachable.insert(commit);
        reachable
    }

    /// Adds a block, and returns whether it is new.
    #[inline]
    fn insert(&mut self, block: &[u8]) -> bool {
        let is_new = self.blocks.insert(block);
        if is_new {
            self.totals += BlockTotals::of(block);
        }
        is_new
    }

    /// Looks up the block of a record. A block that several paths share is checked once, so that the
    /// cost stays linear.
    #[inline]
    fn record<'b>(
        &mut self,
        blocks: &impl BlockSource<'b>,
        key: &[u8],
        cid: &Cid,
        sink: FaultSink<'_>,
    ) -> Result<(), RepositoryRejection> {
        match find_record(blocks, cid) {
            Ok(block) if self.insert(block) && !self.prechecked.contains(block) => {
                let at = self.archive.offset_of(block);
                self.unchecked.push((at as u32, block.len() as u32));
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(rejection) => sink(rejection.with_key(key)),
        }
    }
}

/// Checks that a key is a record path.
#[inline]
pub(crate) fn check_path(
    paths: &mut RepoPathChecker,
    key: &[u8],
) -> Result<(), RepositoryRejection> {
    paths
        .check(key)
        .map_err(|error| RepositoryRejection::of(RepositoryFault::Path(error)).with_key(key))
}

/// Records that are looked up together.
const LOOKUP_BATCH: usize = 64;
