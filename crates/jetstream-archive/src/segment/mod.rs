//! Sealed segments (`.jss`): a header, compressed blocks of events, and a footer with indexes.
//!
//! | offset | header field |
//! |---|---|
//! | 0 | `jss0` |
//! | 4 | XXH3 of the header from offset 12 on and of the footer; 0 while the segment is written |
//! | 12 | version: 1 |
//! | 14, 18, 22 | number of blocks, of events, of accounts |
//! | 26, 34 | first and last sequence number |
//! | 42, 50 | first and last time in microseconds since 1970 |
//! | 58, 66, 74, 82, 90 | offsets of the footer, of the filters of accounts, of the index of collections, of the index of blocks |
//! | 98 | zeros up to offset 256 |
//!
//! A block is its length in eight bytes, and a frame of Zstandard. The index of blocks is the first part of the footer. The checksum
//! does not cover the blocks: they have checksums of their own, of four bytes, and nothing in a segment is signed. The filters
//! of accounts only save a server work, so they are skipped.

mod block;
mod compression;
mod fault;
mod index;
#[cfg(test)]
mod tests;

use std::hash::Hasher as _;

use twox_hash::XxHash3_64;

pub use block::{Block, Row, RowKind, Rows};
pub use fault::{Limit, Place, SegmentError, SegmentFault};
pub use index::BlockEntry;
use index::{check_collections, read_blocks};

/// A sealed segment, whose header and footer are checked.
#[derive(Clone, Debug)]
pub struct Segment<'s> {
    bytes: &'s [u8],
    header: Header,
    blocks: Vec<BlockEntry>,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The checksum of header and footer.
    pub checksum: u64,
    /// Number of blocks.
    pub blocks: u32,
    /// Number of events.
    pub events: u32,
    /// Number of accounts.
    pub accounts: u32,
    /// The least sequence number that the segment had.
    pub min_seq: u64,
    /// The greatest sequence number that the segment had.
    pub max_seq: u64,
    footer: u64,
    account_filter: u64,
    block_filters: u64,
    collections: u64,
}

impl<'s> Segment<'s> {
    /// Reads header and footer.
    ///
    /// # Errors
    /// If they break a rule of the format.
    pub fn read(bytes: &'s [u8]) -> Result<Self, SegmentError> {
        let header = Header::read(bytes)?;
        header.check_offsets(bytes.len() as u64)?;
        header.check_checksum(bytes)?;
        let blocks = read_blocks(bytes, &header)?;
        check_collections(bytes, &header)?;
        Ok(Self { bytes, header, blocks })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The entries of the index of blocks.
    pub fn blocks(&self) -> &[BlockEntry] {
        &self.blocks
    }

    /// The block of this number, and its events within the range that the index states.
    ///
    /// # Errors
    /// If it breaks a rule of the format, or contradicts the index.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn block(&self, number: usize) -> Result<Block, SegmentError> {
        let entry = &self.blocks[number];
        let place = Place::File(entry.offset);
        let block = Block::read_at(entry.frame(self.bytes), Some(entry.uncompressed), place)?;
        let is_within = |row: Result<Row<'_>, SegmentError>| {
            row.map(|row| (entry.min_seq..=entry.max_seq).contains(&row.seq))
        };
        for row in block.rows() {
            if !is_within(row)? {
                return Err(SegmentError::at(place, SegmentFault::BlockIndex(number as u32)));
            }
        }
        if block.len() != entry.events as usize {
            return Err(SegmentError::at(place, SegmentFault::BlockIndex(number as u32)));
        }
        Ok(block)
    }
}

impl Header {
    /// Reads the header of a sealed segment.
    ///
    /// # Errors
    /// If it is too short, of another format or version, or of a segment that is still written.
    pub fn read(bytes: &[u8]) -> Result<Self, SegmentError> {
        let at = |offset, fault| Err(SegmentError::at(Place::File(offset), fault));
        if !bytes.starts_with(MAGIC) {
            return at(0, SegmentFault::Magic);
        }
        let Some(header) = bytes.first_chunk::<HEADER_LEN>() else {
            return at(bytes.len() as u64, SegmentFault::Truncated);
        };
        let checksum = u64_at(header, 4);
        if checksum == 0 {
            return at(4, SegmentFault::Unsealed);
        }
        let version = u16::from_le_bytes([header[12], header[13]]);
        if version != VERSION {
            return at(12, SegmentFault::Version(version));
        }
        let header = Self {
            checksum,
            blocks: u32_at(header, 14),
            events: u32_at(header, 18),
            accounts: u32_at(header, 22),
            min_seq: u64_at(header, 26),
            max_seq: u64_at(header, 34),
            footer: u64_at(header, 58),
            account_filter: u64_at(header, 66),
            block_filters: u64_at(header, 74),
            collections: u64_at(header, 82),
        };
        if header.footer != u64_at(bytes, 90) {
            return at(90, SegmentFault::Offsets);
        }
        if header.blocks > MAX_BLOCKS {
            return at(14, SegmentFault::Limit(Limit::Blocks));
        }
        Ok(header)
    }

    /// The parts of the footer follow each other, and the index of blocks has its length.
    fn check_offsets(&self, len: u64) -> Result<(), SegmentError> {
        let starts = [HEADER_LEN as u64, self.footer, self.account_filter];
        let ends = [self.block_filters, self.collections, len];
        let all: Vec<u64> = starts.into_iter().chain(ends).collect();
        let index_len = u64::from(self.blocks) * index::ENTRY_LEN as u64;
        if all.is_sorted() && self.account_filter - self.footer == index_len {
            return Ok(());
        }
        Err(SegmentError::at(Place::File(58), SegmentFault::Offsets))
    }

    fn check_checksum(&self, bytes: &[u8]) -> Result<(), SegmentError> {
        let mut hasher = XxHash3_64::new();
        hasher.write(&bytes[12..HEADER_LEN]);
        hasher.write(&bytes[self.footer as usize..]);
        let computed = hasher.finish();
        if computed == self.checksum {
            return Ok(());
        }
        let fault = SegmentFault::Checksum { stated: self.checksum, computed };
        Err(SegmentError::at(Place::File(4), fault))
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

const MAGIC: &[u8] = b"jss0";

/// The only version of segments.
const VERSION: u16 = 1;

const HEADER_LEN: usize = 256;

/// Maximum number of blocks in a segment. Segments of 256 MiB have some hundreds.
pub const MAX_BLOCKS: u32 = 1 << 20;

/// Maximum number of collections in a segment.
pub const MAX_COLLECTIONS: u32 = 1 << 20;

/// Maximum number of events in a block. By default, servers write 4,096.
pub const MAX_EVENTS: u32 = 1 << 18;

/// Maximum bytes of a block, decompressed.
pub const MAX_BLOCK_BYTES: u64 = 256 << 20;
