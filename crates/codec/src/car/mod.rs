//! CAR v1: an archive of blocks, each beside its CID.
//!
//! | part | bytes |
//! |---|---|
//! | header | varint length, DAG-CBOR `{"roots": [CID, …], "version": 1}` |
//! | block, any number | varint length, CID, data |
//!
//! [`read`] and [`Blocks`] work on a slice and copy nothing; [`StreamReader`] reads from anything with
//! bounded memory; [`Writer`] writes. Every block's SHA-256 is compared with its CID unless the
//! caller says [`trust_hashes`](Options::trust_hashes). A block under another hash function cannot be
//! checked here: it is handed over with [`Block::proof`] saying so, and never under a blessed CID.
//!
//! Blocks may come in any order, more than once, and unreferenced. An archive cut between two blocks
//! is a shorter archive: only who walks the tree can tell.

mod error;
mod header;
mod slice;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

pub use error::{CarError, CarFault};
pub use header::Roots;
pub use slice::{Block, Blocks, Car, HashProof, Sections, check_hashes, read};
pub use stream::{OwnedBlock, StreamError, StreamReader};
pub use writer::Writer;

/// Bounds and trust for reading archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Leaves out the hashing: a block is then whatever its CID claims, and only bytes that were
    /// checked before may be read so.
    pub trust_hashes: bool,
    /// The longest header, in bytes.
    pub max_header_bytes: usize,
    /// The longest block, its CID included, in bytes.
    pub max_block_bytes: usize,
    /// The longest archive, in bytes.
    pub max_total_bytes: u64,
    /// The most blocks.
    pub max_blocks: u64,
}

impl Default for Options {
    /// Hashes checked; header 64 KiB, block 2 MiB, archive 4 GiB, 50 million blocks.
    fn default() -> Self {
        Self {
            trust_hashes: false,
            max_header_bytes: 64 << 10,
            max_block_bytes: 2 << 20,
            max_total_bytes: 4 << 30,
            max_blocks: 50_000_000,
        }
    }
}
