//! Which blocks does this archive hold, each found by its CID?
//!
//! Splitting, hashing and indexing are one pass: while a batch of blocks is hashed it is still in the
//! cache that splitting it filled.

use std::ops::{AddAssign, Sub};

use codec::Cid;
use codec::car::{self, Block, CarError, HashProof, Options, Roots, Sections};

use super::index::{self, Index};
use super::locality::SequentialBlocks;
use super::prefetch::Prefetcher;

/// The blocks of a CAR by CID: hashed, indexed, and not copied.
///
/// Blocks may stand in any order and more than once. Those whose CID is not a blessed one (version
/// 1, DAG-CBOR or raw, SHA-256) are counted and not found: nothing in a repository's tree can link
/// to them. Beside the archive itself this takes some nine bytes a block.
#[derive(Clone, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
    roots: Roots<'a>,
    index: Index,
    blocks: u64,
    unique: BlockTotals,
}

/// How many blocks, and how many bytes of data in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockTotals {
    /// Blocks.
    pub blocks: u64,
    /// Bytes in them, without lengths and CIDs.
    pub bytes: u64,
}

impl<'a> Archive<'a> {
    /// Reads an archive with any number of roots, none among them, as `getBlocks` answers.
    ///
    /// # Errors
    /// At the first part that breaks a rule or a bound of `options`, or whose hash is wrong; and if
    /// the archive is over 4 GiB, whatever the options say, because offsets are kept in four bytes.
    pub fn read(bytes: &'a [u8], options: &Options) -> Result<Self, CarError> {
        Self::read_with(bytes, options, &mut Err)
    }

    /// Reads what is sound of an archive, and gives the faults to `note`: a block whose hash is wrong
    /// is left out, and behind a part that cannot be read nothing is. If `note` answers an error,
    /// that ends the reading.
    ///
    /// # Errors
    /// If the header cannot be read, or with what `note` answers.
    pub fn read_with(
        bytes: &'a [u8],
        options: &Options,
        note: &mut dyn FnMut(CarError) -> Result<(), CarError>,
    ) -> Result<Self, CarError> {
        Self::read_visiting(bytes, options, &mut |_| (), note)
    }

    /// As [`Archive::read_with`], and shows every sound block to `see` while it is in the cache: each
    /// copy of a repeated one, in the order in which they stand.
    ///
    /// # Errors
    /// As [`Archive::read_with`].
    pub fn read_visiting(
        bytes: &'a [u8],
        options: &Options,
        see: &mut impl FnMut(&Block<'a>),
        note: &mut dyn FnMut(CarError) -> Result<(), CarError>,
    ) -> Result<Self, CarError> {
        let max_total_bytes = options.max_total_bytes.min(MAX_BYTES);
        let sections = Sections::new(bytes, &Options { max_total_bytes, ..*options })?;
        let roots = sections.roots();
        let mut collector = Collector::new(bytes.len(), options.trust_hashes, see);
        let mut prefetcher = Prefetcher::default();
        for section in sections {
            match section {
                Ok(block) => {
                    prefetcher.advance(bytes, block.offset as usize);
                    collector.add(block, note)?;
                }
                Err(error) => {
                    // What stands before is told before.
                    collector.flush(note)?;
                    note(error)?;
                }
            }
        }
        collector.flush(note)?;
        let Collector { entries, blocks, mut unique, .. } = collector;
        let index = Index::new(bytes, entries, |again| unique = unique - BlockTotals::of(again));
        Ok(Self { bytes, roots, index, blocks, unique })
    }

    /// The archive itself.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The roots that the header names.
    pub fn roots(&self) -> Roots<'a> {
        self.roots
    }

    /// How many blocks stand in the archive, repeated and foreign ones too.
    pub fn block_count(&self) -> u64 {
        self.blocks
    }

    /// The distinct blocks: repeated ones once, and those under foreign CIDs each.
    pub fn distinct(&self) -> BlockTotals {
        self.unique
    }

    /// The data of the block that `cid` names.
    #[inline]
    pub fn block(&self, cid: &Cid) -> Option<&'a [u8]> {
        self.index.get(self.bytes, cid)
    }

    /// Whether every block that stands in the archive is found by its CID, and stands there once.
    pub(super) fn is_plain(&self) -> bool {
        self.index.len() as u64 == self.blocks
    }

    /// Hears that these blocks will be asked for next, and waits for memory for all of them together.
    pub fn prefetch(&self, cids: &[Cid]) {
        self.index.prefetch(self.bytes, cids);
    }

    /// The blocks for who asks for them in the order of a walk over the tree, which is quicker where
    /// they stand in that order.
    pub fn sequential(&self) -> SequentialBlocks<'_, 'a> {
        SequentialBlocks::new(self)
    }

    /// Bytes from the start of the archive to `data`, a block of it.
    ///
    /// # Panics
    /// If `data` is no part of this archive.
    pub fn offset_of(&self, data: &[u8]) -> u64 {
        let at = (data.as_ptr() as usize).wrapping_sub(self.bytes.as_ptr() as usize);
        assert!(at <= self.bytes.len(), "a block of this archive");
        at as u64
    }
}

impl AddAssign for BlockTotals {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

impl Sub for BlockTotals {
    type Output = Self;

    /// What is left without `other`, which is a part of this.
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self { blocks: self.blocks - other.blocks, bytes: self.bytes - other.bytes }
    }
}

impl BlockTotals {
    /// One block.
    #[inline]
    pub fn of(data: &[u8]) -> Self {
        Self { blocks: 1, bytes: data.len() as u64 }
    }
}

/// Gathers blocks until enough are together to be hashed.
struct Collector<'a, 's, F> {
    see: &'s mut F,
    batch: Vec<Block<'a>>,
    trust_hashes: bool,
    entries: Vec<u64>,
    blocks: u64,
    unique: BlockTotals,
}

type Note<'n> = &'n mut dyn FnMut(CarError) -> Result<(), CarError>;

impl<'a, 's, F: FnMut(&Block<'a>)> Collector<'a, 's, F> {
    /// For an archive of `len` bytes.
    fn new(len: usize, trust_hashes: bool, see: &'s mut F) -> Self {
        Self {
            see,
            batch: Vec::with_capacity(BATCH),
            trust_hashes,
            entries: Vec::with_capacity(len / USUAL_BLOCK_BYTES),
            blocks: 0,
            unique: BlockTotals::default(),
        }
    }

    #[inline]
    fn add(&mut self, block: Block<'a>, note: Note<'_>) -> Result<(), CarError> {
        self.batch.push(block);
        if self.batch.len() == BATCH { self.flush(note) } else { Ok(()) }
    }

    fn flush(&mut self, note: Note<'_>) -> Result<(), CarError> {
        if !self.trust_hashes {
            check(&mut self.batch, note)?;
        }
        for block in self.batch.drain(..) {
            self.blocks += 1;
            // A block that was noted to be wrong is left without a proof.
            if block.proof == HashProof::Trusted && !self.trust_hashes {
                continue;
            }
            (self.see)(&block);
            self.unique += BlockTotals::of(block.data);
            if let Some(cid) = block.cid.to_cid() {
                self.entries.push(index::entry(&cid, block.offset));
            }
        }
        Ok(())
    }
}

/// Checks the hashes of a batch, past the faults that `note` bears with.
fn check(mut batch: &mut [Block<'_>], note: Note<'_>) -> Result<(), CarError> {
    while let Err(error) = car::check_hashes(batch) {
        note(error)?;
        let wrong = batch.iter().position(|block| block.offset == error.offset);
        batch = &mut batch[wrong.expect("the fault is of this batch") + 1..];
    }
    Ok(())
}

/// Blocks that share the lanes of the hash; what they hold stays in the second-level cache.
const BATCH: usize = 256;

/// Room is made at first for blocks of this length: exports have a few more bytes a block.
const USUAL_BLOCK_BYTES: usize = 288;

/// The longest archive: offsets are kept in four bytes.
const MAX_BYTES: u64 = 1 << 32;
