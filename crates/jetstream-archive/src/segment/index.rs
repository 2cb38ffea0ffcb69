//! The footer: the index of blocks, and the index of collections.

use super::compression::decompress;
use super::{
    HEADER_LEN, Header, Limit, MAX_COLLECTIONS, Place, SegmentError, SegmentFault, u32_at, u64_at,
};

/// An entry of the index of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockEntry {
    /// Offset of the length before the compressed block.
    pub offset: u64,
    /// Bytes of the compressed block.
    pub compressed: u32,
    /// Bytes of the block, decompressed.
    pub uncompressed: u32,
    /// Number of events.
    pub events: u32,
    /// The least sequence number that the block had.
    pub min_seq: u64,
    /// The greatest sequence number that the block had.
    pub max_seq: u64,
}

impl BlockEntry {
    fn read(bytes: &[u8]) -> Self {
        Self {
            offset: u64_at(bytes, 0),
            compressed: u32_at(bytes, 8),
            uncompressed: u32_at(bytes, 12),
            events: u32_at(bytes, 16),
            min_seq: u64_at(bytes, 20),
            max_seq: u64_at(bytes, 28),
        }
    }

    /// The compressed block in a segment whose index was checked.
    pub(super) fn frame<'s>(&self, segment: &'s [u8]) -> &'s [u8] {
        let start = self.offset as usize + LEN_LEN;
        &segment[start..start + self.compressed as usize]
    }

    fn end(&self) -> Option<u64> {
        self.offset.checked_add(LEN_LEN as u64)?.checked_add(self.compressed.into())
    }
}

/// The index of blocks: they follow each other from the header to the footer, and their sequence numbers increase.
pub(super) fn read_blocks(
    segment: &[u8],
    header: &Header,
) -> Result<Vec<BlockEntry>, SegmentError> {
    let index = &segment[header.footer as usize..header.account_filter as usize];
    let blocks: Vec<BlockEntry> = index.chunks_exact(ENTRY_LEN).map(BlockEntry::read).collect();
    let (mut end, mut last_seq, mut events) = (HEADER_LEN as u64, 0, 0u64);
    for (number, block) in blocks.iter().enumerate() {
        let place = Place::File(header.footer + (number * ENTRY_LEN) as u64);
        let reject = || SegmentError::at(place, SegmentFault::BlockIndex(number as u32));
        let next = block.end().filter(|next| block.offset == end && *next <= header.footer);
        end = next.ok_or_else(reject)?;
        let length = u64_at(segment, block.offset as usize);
        // A block that never had events has no range.
        let is_in_order = block.min_seq > last_seq && block.max_seq >= block.min_seq;
        if length != u64::from(block.compressed) || (block.events > 0 && !is_in_order) {
            return Err(reject());
        }
        last_seq = last_seq.max(block.max_seq);
        events += u64::from(block.events);
    }
    if end != header.footer || events != u64::from(header.events) {
        return Err(SegmentError::at(Place::File(18), SegmentFault::Offsets));
    }
    Ok(blocks)
}

/// Checks the index of collections: a table of names, and for every block the bits of its collections.
pub(super) fn check_collections(segment: &[u8], header: &Header) -> Result<(), SegmentError> {
    let place = Place::File(header.collections);
    let reject = || SegmentError::at(place, SegmentFault::CollectionIndex);
    let part = &segment[header.collections as usize..];
    let (counts, body) = part.split_at_checked(COUNTS_LEN).ok_or_else(reject)?;
    let [collections, blocks, mask, stated] = [0, 4, 8, 12].map(|at| u32_at(counts, at));
    if collections > MAX_COLLECTIONS {
        return Err(SegmentError::at(place, SegmentFault::Limit(Limit::Collections)));
    }
    if blocks != header.blocks || mask != collections.div_ceil(8) {
        return Err(reject());
    }
    let body = decompress(body, Some(stated), place)?;
    let mut rest = &body[..];
    for _ in 0..collections {
        let (len, after) = rest.split_first().ok_or_else(reject)?;
        rest = after.get(NAME_COUNT_LEN + usize::from(*len)..).ok_or_else(reject)?;
    }
    if rest.len() as u64 == u64::from(blocks) * u64::from(mask) { Ok(()) } else { Err(reject()) }
}

/// Bytes of an entry of the index of blocks.
pub(super) const ENTRY_LEN: usize = 52;

/// Bytes of the length before a block.
const LEN_LEN: usize = 8;

/// Bytes of the numbers before the index of collections.
const COUNTS_LEN: usize = 16;

/// Bytes of the number of events of a collection.
const NAME_COUNT_LEN: usize = 4;
