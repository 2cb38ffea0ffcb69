//! Why a segment, or a block of it, is refused.

use std::fmt;

/// A broken rule of a segment, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
pub struct SegmentError {
    /// Where the rule is broken.
    pub place: Place,
    /// The broken rule.
    pub fault: SegmentFault,
}

/// A place in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// An offset in the file, in bytes.
    File(u64),
    /// An offset in the columns of a block, in bytes.
    Columns(u64),
    /// A row of a block, from 0.
    Row(u32),
}

/// A broken rule of a segment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentFault {
    /// The file ends before its structure does.
    #[error("the segment ends too early")]
    Truncated,
    /// The file does not begin with `jss0`.
    #[error("not a segment: its first four bytes are not `jss0`")]
    Magic,
    /// The segment is of another version.
    #[error("version {0} of segments is not known")]
    Version(u16),
    /// The segment is still written: its checksum is 0.
    #[error("the segment is not sealed")]
    Unsealed,
    /// The checksum of header and footer is wrong.
    #[error("the checksum is {computed:016x}, not {stated:016x}")]
    Checksum {
        /// As the header states it.
        stated: u64,
        /// Of the bytes.
        computed: u64,
    },
    /// The parts of the footer do not follow each other.
    #[error("the parts of the footer do not follow each other")]
    Offsets,
    /// An entry of the index contradicts the file or the block.
    #[error("block {0}: the index contradicts the file")]
    BlockIndex(u32),
    /// The index of collections contradicts itself or the rows.
    #[error("the index of collections is malformed")]
    CollectionIndex,
    /// The compressed bytes are no single frame of Zstandard.
    #[error("not one frame of Zstandard: {0}")]
    Compression(Box<str>),
    /// The frame has no checksum of its content.
    #[error("the compressed bytes have no checksum")]
    NoContentChecksum,
    /// The columns end too early, or are followed by other bytes.
    #[error("the lengths of the columns contradict the length of the block")]
    Columns,
    /// The kind of an event is not known.
    #[error("kind {0} of events is not known")]
    Kind(u8),
    /// Text of an event is not UTF-8.
    #[error("a column of text is not UTF-8")]
    Text,
    /// Sequence numbers do not increase, or are outside the stated range.
    #[error("sequence number {0} is out of order or out of range")]
    Seq(u64),
    /// More than allowed.
    #[error("{0}")]
    Limit(Limit),
}

/// A limit on segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// Blocks of a segment.
    Blocks,
    /// Collections of a segment.
    Collections,
    /// Bytes of a decompressed block.
    BlockBytes,
    /// Events of a block.
    Events,
}

impl SegmentError {
    #[cold]
    pub(crate) fn at(place: Place, fault: SegmentFault) -> Self {
        Self { place, fault }
    }

    /// A sequence number that does not follow the numbers of earlier blocks.
    #[cold]
    pub(crate) fn of_seq(seq: u64) -> Self {
        Self::at(Place::Row(0), SegmentFault::Seq(seq))
    }

    /// The stable code of the broken rule.
    pub fn code(&self) -> &'static str {
        match self.fault {
            SegmentFault::Truncated => "jss/truncated",
            SegmentFault::Magic => "jss/magic",
            SegmentFault::Version(_) => "jss/version",
            SegmentFault::Unsealed => "jss/unsealed",
            SegmentFault::Checksum { .. } => "jss/checksum",
            SegmentFault::Offsets => "jss/offsets",
            SegmentFault::BlockIndex(_) => "jss/block-index",
            SegmentFault::CollectionIndex => "jss/collection-index",
            SegmentFault::Compression(_) => "jss/compression",
            SegmentFault::NoContentChecksum => "jss/no-content-checksum",
            SegmentFault::Columns => "jss/columns",
            SegmentFault::Kind(_) => "jss/kind",
            SegmentFault::Text => "jss/text",
            SegmentFault::Seq(_) => "jss/seq",
            SegmentFault::Limit(_) => "jss/limit",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(offset) => write!(f, "at offset {offset} of the segment"),
            Self::Columns(offset) => write!(f, "at offset {offset} of the decompressed block"),
            Self::Row(row) => write!(f, "row {row} of the block"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (max, of) = match self {
            Self::Blocks => (u64::from(super::MAX_BLOCKS), "blocks in a segment"),
            Self::Collections => (u64::from(super::MAX_COLLECTIONS), "collections in a segment"),
            Self::BlockBytes => (super::MAX_BLOCK_BYTES, "bytes in a decompressed block"),
            Self::Events => (u64::from(super::MAX_EVENTS), "events in a block"),
        };
        write!(f, "more than {max} {of}")
    }
}
