//! The last stage: is every record a map in canonical DAG-CBOR, and not too long?
//!
//! Asked of every block that may be a record when its hash was checked, because then it is in the
//! cache; which blocks are records only the walk tells. What was not found sound is looked at again in
//! the last stage, which says what is wrong with it.

use atproto::mst::Tree;
use atproto::mst::canonical::{BlockSet, Step};
use atproto::repo::Repository;
use codec::car::Block;
use codec::{AnyCid, cbor};

use super::tree::{Note, WalkedRepository, in_tree};
use super::{Options, RepositoryFault, RepositoryRejection, WholeRepository};
use crate::Verified;

impl<'a> WalkedRepository<'a> {
    /// The last stage: reads every record.
    ///
    /// # Errors
    /// At the first record, in key order, that is no map, not canonical or too long.
    pub fn verify_records(self) -> Result<Verified<WholeRepository<'a>>, RepositoryRejection> {
        check(&self.repository, &self.found.doubtful, &self.options, &mut Err)?;
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

/// The blocks of an archive that are sound if they are records: what the last stage need not look at.
///
/// As a stage of its own, reading 192,000 records took 14 ms of 77 (Zen 5, two busy cores).
#[derive(Clone, Debug)]
pub(super) struct SoundRecords {
    marks: BlockSet,
    max_bytes: usize,
}

impl SoundRecords {
    /// None yet of this archive.
    pub(super) fn new(archive: &[u8], options: &Options) -> Self {
        Self { marks: BlockSet::for_archive(archive), max_bytes: options.max_record_bytes }
    }

    /// Looks at a block. Those that look like nodes of the tree are left out: hardly one is a record.
    #[inline]
    pub(super) fn see(&mut self, block: &Block<'_>) {
        if !block.data.starts_with(b"\xa2\x61e")
            && check_record(block.data, 0, self.max_bytes).is_ok()
        {
            self.marks.insert(block.data);
        }
    }

    #[inline]
    pub(super) fn has(&self, block: &[u8]) -> bool {
        self.marks.contains(block)
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
    for record in records {
        let (at, block) = (u64::from(record.0), block_of(*record));
        if let Err(rejection) = check_record(block, at, options.max_record_bytes) {
            note(name(rejection, repository, block))?;
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

/// The kind of a map, in the top three bits of its first byte.
const MAP: u8 = 5;
