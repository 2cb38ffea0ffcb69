//! The nodes of a walk by CID, and the set of nodes that it has reached.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Deref;

use codec::Cid;

use crate::mst::BlockSource;

/// The nodes of a tree, which a walk asks for in its order, a node before the nodes below it. As a [`BlockSource`], an
/// implementation vouches for the hashes.
pub trait NodeSource {
    /// The block of a node: borrowed, or owned and cheap to clone. The walk drops it when it has left the node.
    type Block: Clone + Debug + Deref<Target = [u8]>;

    /// The block named `cid`, if there is one.
    fn node(&mut self, cid: &Cid) -> Option<Self::Block>;

    /// Marks a node as reached; returns whether it is reached for the first time.
    fn reach(&mut self, cid: &Cid, block: &Self::Block) -> bool;

    /// As [`BlockSource::prefetch`].
    #[inline]
    fn prefetch(&mut self, _cids: &mut dyn Iterator<Item = Cid>) {}
}

/// Nodes whose blocks stay in memory.
#[derive(Clone, Debug)]
pub struct BlockNodes<'a, S> {
    blocks: S,
    reached: BlockSet,
    /// The lifetime of the blocks.
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a, S: BlockSource<'a>> BlockNodes<'a, S> {
    /// The nodes among `blocks`, which are in `archive` or elsewhere.
    pub(super) fn new(blocks: S, archive: &[u8]) -> Self {
        Self { blocks, reached: BlockSet::for_archive(archive), lifetime: PhantomData }
    }

    pub(super) fn blocks(&self) -> &S {
        &self.blocks
    }
}

impl<'a, S: BlockSource<'a>> NodeSource for BlockNodes<'a, S> {
    type Block = &'a [u8];

    #[inline]
    fn node(&mut self, cid: &Cid) -> Option<&'a [u8]> {
        self.blocks.block(cid)
    }

    #[inline]
    fn reach(&mut self, _cid: &Cid, block: &&'a [u8]) -> bool {
        self.reached.insert(block)
    }

    #[inline]
    fn prefetch(&mut self, cids: &mut dyn Iterator<Item = Cid>) {
        self.blocks.prefetch(cids);
    }
}

/// A set of blocks that [`Cid`]s name, identified by their addresses. Two such blocks of an archive start more than 32
/// bytes apart, because the 36 bytes of a CID are before a block. Blocks under shorter CIDs may be nearer: nothing links
/// to them, and they must not be added.
#[derive(Clone, Debug)]
pub struct BlockSet {
    /// Address of the archive.
    start: usize,
    /// One bit for every [`BYTES_PER_BIT`] bytes of the archive.
    bits: Vec<u64>,
    /// Addresses of blocks outside the archive.
    others: BTreeSet<usize>,
}

impl BlockSet {
    /// The empty set. Blocks of `archive`, a CAR, cost a 256th of its length whatever their number; another block costs an
    /// entry in a set.
    pub fn for_archive(archive: &[u8]) -> Self {
        let bits = vec![0; archive.len().div_ceil(64 * BYTES_PER_BIT)];
        Self { start: archive.as_ptr() as usize, bits, others: BTreeSet::new() }
    }

    /// Whether the set has a block.
    #[inline]
    pub fn contains(&self, block: &[u8]) -> bool {
        let address = block.as_ptr() as usize;
        let bit = address.wrapping_sub(self.start) / BYTES_PER_BIT;
        match self.bits.get(bit / 64) {
            Some(word) => *word >> (bit % 64) & 1 != 0,
            None => self.others.contains(&address),
        }
    }

    /// Adds a block that a [`Cid`] names; returns whether it is new. Only the address counts, even of an empty block.
    #[inline]
    pub fn insert(&mut self, block: &[u8]) -> bool {
        let address = block.as_ptr() as usize;
        let bit = address.wrapping_sub(self.start) / BYTES_PER_BIT;
        match self.bits.get_mut(bit / 64) {
            Some(word) => {
                let mask = 1 << (bit % 64);
                let is_new = *word & mask == 0;
                *word |= mask;
                is_new
            }
            None => self.others.insert(address),
        }
    }
}

/// Blocks that a [`Cid`] names start farther apart than this: a block has the 36 bytes of its CID before it.
const BYTES_PER_BIT: usize = 32;
