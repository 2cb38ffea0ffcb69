//! Which blocks were met before?
//!
//! A bit a block, found by where the block lies: two blocks of an archive start more than 32 bytes
//! apart, because each stands behind the CID of its own.

use std::collections::BTreeSet;

/// Blocks that were met, told apart by where they lie in memory.
#[derive(Clone, Debug)]
pub struct BlockSet {
    /// Where the archive begins.
    start: usize,
    /// A bit for every [`BYTES_EACH`] bytes of it.
    bits: Vec<u64>,
    /// The blocks outside it.
    elsewhere: BTreeSet<usize>,
}

impl BlockSet {
    /// Nothing met yet. Blocks of `archive`, a CAR, cost a 256th of its length whatever their number;
    /// those that lie elsewhere an entry in a set each.
    pub fn for_archive(archive: &[u8]) -> Self {
        let bits = vec![0; archive.len().div_ceil(64 * BYTES_EACH)];
        Self { start: archive.as_ptr() as usize, bits, elsewhere: BTreeSet::new() }
    }

    /// Whether a block is marked.
    #[inline]
    pub fn contains(&self, block: &[u8]) -> bool {
        let address = block.as_ptr() as usize;
        let bit = address.wrapping_sub(self.start) / BYTES_EACH;
        match self.bits.get(bit / 64) {
            Some(word) => *word >> (bit % 64) & 1 != 0,
            None => self.elsewhere.contains(&address),
        }
    }

    /// Marks a block, and answers whether it was not yet marked.
    ///
    /// The length of the block has no say: an empty one is told by where it starts, as any other.
    #[inline]
    pub fn insert(&mut self, block: &[u8]) -> bool {
        let address = block.as_ptr() as usize;
        let bit = address.wrapping_sub(self.start) / BYTES_EACH;
        match self.bits.get_mut(bit / 64) {
            Some(word) => {
                let mask = 1 << (bit % 64);
                let is_new = *word & mask == 0;
                *word |= mask;
                is_new
            }
            None => self.elsewhere.insert(address),
        }
    }
}

/// Blocks start farther apart than this: each has 36 bytes of CID before it.
const BYTES_EACH: usize = 32;
