//! The third stage: is the tree canonical, and is everything there that it names?

use atproto::mst::canonical::{BlockSet, Step, Summary, Walk};
use atproto::mst::{BlockSource, TreeError, canonical};
use atproto::repo::{Archive, BlockTotals, RepoError, Repository};
use atproto::syntax::{RecordKey, RepoPath};
use codec::{Cid, CidRef};

use super::records::SoundRecords;
use super::{Options, RepositoryFault, RepositoryRejection, SignatureProof, SignedRepository};

/// A repository whose tree is canonical and whole.
#[derive(Clone, Debug)]
pub struct WalkedRepository<'a> {
    pub(super) repository: Repository<'a>,
    pub(super) options: Options,
    pub(super) signature: SignatureProof,
    pub(super) found: Found,
}

/// What a walk has found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) tree: Summary,
    /// The records that were not found sound before: where each starts in the archive, and how long it
    /// is, in key order.
    pub(super) doubtful: Vec<(u32, u32)>,
    pub(super) extra: BlockTotals,
}

/// What becomes of a fault: an error ends the work, otherwise it goes on beside the fault.
pub(super) type Note<'n> =
    &'n mut dyn FnMut(RepositoryRejection) -> Result<(), RepositoryRejection>;

impl<'a> SignedRepository<'a> {
    /// The third stage: walks the tree under all rules, finds the block of every record, and holds
    /// every key against the syntax of paths.
    ///
    /// # Errors
    /// At the first fault in key order, or if there is more beside the repository than allowed.
    pub fn walk(self) -> Result<WalkedRepository<'a>, RepositoryRejection> {
        let Self { repository, options, sound, signature } = self;
        let found = walk(&repository, &sound, &options, &mut Err)?;
        Ok(WalkedRepository { repository, options, signature, found })
    }
}

impl<'a> WalkedRepository<'a> {
    /// The repository, of whose records nothing is proved yet but that they are there.
    pub fn repository(&self) -> &Repository<'a> {
        &self.repository
    }

    /// How many nodes and records the tree has.
    pub fn tree(&self) -> Summary {
        self.found.tree
    }
}

pub(super) fn walk(
    repository: &Repository<'_>,
    sound: &SoundRecords,
    options: &Options,
    note: Note<'_>,
) -> Result<Found, RepositoryRejection> {
    let archive = repository.archive();
    let (root, blocks) = (repository.commit().data, archive.sequential());
    let mut reached = Reached::new(archive, sound, repository.commit_block());
    let mut waiting = Waiting::default();
    let mut paths = Paths::default();
    let mut walk = Walk::in_archive(root, &blocks, archive.as_bytes(), &options.tree);
    while let Some(step) = walk.next() {
        match step {
            Ok(Step::Node { block, .. }) => drop(reached.meet(block)),
            Ok(Step::Record { key, value }) => {
                if !options.allow_any_key
                    && let Err(rejection) = paths.check(key)
                {
                    waiting.find(&mut reached, note)?;
                    note(rejection)?;
                }
                if blocks.is_sequential() {
                    reached.record(&blocks, key, value, note)?;
                } else if waiting.push(key, value) {
                    waiting.find(&mut reached, note)?;
                }
            }
            Err(error) => {
                waiting.find(&mut reached, note)?;
                note(in_tree(error, archive))?;
            }
        }
    }
    waiting.find(&mut reached, note)?;
    let found = Found {
        tree: walk.summary(),
        doubtful: reached.doubtful,
        extra: archive.distinct() - reached.extent,
    };
    check_extra(found.extra, options, note)?;
    Ok(found)
}

/// Records of an archive in no order, to be looked up together.
#[derive(Default)]
struct Waiting<'a> {
    keys: Vec<u8>,
    records: Vec<(usize, CidRef<'a>)>,
}

impl<'a> Waiting<'a> {
    /// Takes a record, and answers whether so many wait that they should be found.
    #[inline]
    fn push(&mut self, key: &[u8], value: CidRef<'a>) -> bool {
        self.keys.extend_from_slice(key);
        self.records.push((self.keys.len(), value));
        self.records.len() == TOGETHER
    }

    fn find(
        &mut self,
        reached: &mut Reached<'_, '_>,
        note: Note<'_>,
    ) -> Result<(), RepositoryRejection> {
        let cids: Vec<Cid> = self.records.iter().filter_map(|(_, cid)| cid.to_cid()).collect();
        reached.archive.prefetch(&cids);
        let mut start = 0;
        for (end, value) in self.records.drain(..) {
            reached.record(reached.archive, &self.keys[start..end], value, note)?;
            start = end;
        }
        self.keys.clear();
        Ok(())
    }
}

/// The fault of a node, with the key that it is about.
#[cold]
pub(crate) fn in_tree(error: TreeError, archive: &Archive<'_>) -> RepositoryRejection {
    let block = error.cid.and_then(|cid| BlockSource::block(archive, &cid));
    let key = block.and_then(|block| canonical::key_of(block, error.offset));
    let rejection = RepositoryRejection::from(RepoError::in_tree(error, archive));
    match key {
        Some(key) => rejection.with_key(&key),
        None => rejection,
    }
}

/// The block of a record that the tree names.
#[inline]
pub(crate) fn record_block<'a>(
    blocks: &impl BlockSource<'a>,
    value: CidRef<'_>,
) -> Result<&'a [u8], RepositoryRejection> {
    let cid = match value.to_cid() {
        Some(cid) if value.is_dag_cbor() => cid,
        cid => return Err(RepositoryRejection::of(RepositoryFault::RecordLink).with_cid(cid)),
    };
    match blocks.block(&cid) {
        Some(block) => Ok(block),
        None => Err(RepositoryRejection::of(RepositoryFault::RecordMissing).with_cid(cid)),
    }
}

fn check_extra(
    extra: BlockTotals,
    options: &Options,
    note: Note<'_>,
) -> Result<(), RepositoryRejection> {
    if extra.blocks > options.max_extra_blocks {
        note(RepositoryRejection::of(RepositoryFault::ExtraBlocks(options.max_extra_blocks)))?;
    }
    if extra.bytes > options.max_extra_bytes {
        note(RepositoryRejection::of(RepositoryFault::ExtraBytes(options.max_extra_bytes)))?;
    }
    Ok(())
}

/// The blocks that the commit leads to, each once.
struct Reached<'r, 'a> {
    archive: &'r Archive<'a>,
    sound: &'r SoundRecords,
    marks: BlockSet,
    extent: BlockTotals,
    doubtful: Vec<(u32, u32)>,
}

impl<'r, 'a> Reached<'r, 'a> {
    fn new(archive: &'r Archive<'a>, sound: &'r SoundRecords, commit: &[u8]) -> Self {
        let marks = BlockSet::for_archive(archive.as_bytes());
        let (extent, doubtful) = (BlockTotals::default(), Vec::new());
        let mut reached = Self { archive, sound, marks, extent, doubtful };
        reached.meet(commit);
        reached
    }

    #[inline]
    fn meet(&mut self, block: &[u8]) -> bool {
        let is_new = self.marks.insert(block);
        if is_new {
            self.extent += BlockTotals::of(block);
        }
        is_new
    }

    /// Finds the block of a record. Those that several paths share are looked at once, so that the
    /// cost stays linear.
    #[inline]
    fn record<'b>(
        &mut self,
        blocks: &impl BlockSource<'b>,
        key: &[u8],
        value: CidRef<'_>,
        note: Note<'_>,
    ) -> Result<(), RepositoryRejection> {
        match record_block(blocks, value) {
            Ok(block) if self.meet(block) && !self.sound.has(block) => {
                let at = self.archive.offset_of(block);
                self.doubtful.push((at as u32, block.len() as u32));
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(rejection) => note(rejection.with_key(key)),
        }
    }
}

/// Holds keys against the syntax of paths. Keys come in order, so that most are in the collection of
/// the key before, which then need not be looked at again.
#[derive(Default)]
pub(crate) struct Paths {
    /// A collection and its slash.
    collection: Vec<u8>,
}

impl Paths {
    #[inline]
    pub(crate) fn check(&mut self, key: &[u8]) -> Result<(), RepositoryRejection> {
        if let Some(rest) = key.strip_prefix(self.collection.as_slice())
            && !self.collection.is_empty()
            && let Ok(rest) = str::from_utf8(rest)
            && RecordKey::parse(rest).is_ok()
        {
            return Ok(());
        }
        self.check_whole(key)
    }

    #[cold]
    fn check_whole(&mut self, key: &[u8]) -> Result<(), RepositoryRejection> {
        let path = RepoPath::from_bytes(key)
            .map_err(|error| RepositoryRejection::of(RepositoryFault::Path(error)).with_key(key))?;
        self.collection.clear();
        self.collection.extend_from_slice(path.collection().as_str().as_bytes());
        self.collection.push(b'/');
        Ok(())
    }
}

/// Records that are looked up together.
const TOGETHER: usize = 64;
