//! Blocks: events in columns.
//!
//! | bytes | column |
//! |---|---|
//! | 4 | number of events |
//! | 8 an event | sequence numbers |
//! | 8 an event | times at which the server saw the events, in microseconds since 1970 |
//! | 8 an event | times that the operator imported; 0 for none |
//! | 1 an event | kinds |
//! | 1, 2, 1, 1, 4 an event | five columns of lengths: collections, DIDs, record keys, revisions, payloads |
//! | the rest | their bytes, in the same order |
//!
//! Numbers are little-endian. A block without events is four zero bytes: the server has removed its events.

use super::compression::decompress;
use super::{Limit, MAX_EVENTS, Place, SegmentError, SegmentFault};

/// An event of a block; its text and bytes are of the decompressed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'b> {
    /// The sequence number.
    pub seq: u64,
    /// When the server saw it, in microseconds since 1970.
    pub witnessed: i64,
    /// The time that the operator imported, in microseconds since 1970; 0 for none.
    pub indexed: i64,
    /// The kind.
    pub kind: RowKind,
    /// The account.
    pub did: &'b str,
    /// The collection of a record; empty for other events.
    pub collection: &'b str,
    /// The key of a record; empty for other events.
    pub rkey: &'b str,
    /// The revision.
    pub rev: &'b str,
    /// The record, or the event as the server received it, as DAG-CBOR; empty for a deletion.
    pub payload: &'b [u8],
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// A record was created.
    Create,
    /// A record was replaced.
    Update,
    /// A record was deleted.
    Delete,
    /// The identity of the account changed.
    Identity,
    /// The status of the account changed.
    Account,
    /// The repository begins anew: earlier records of the account are void.
    Sync,
    /// A record of a repository that the server fetched again. The documentation of the format names only the other six.
    Resync,
}

impl RowKind {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Create,
            2 => Self::Update,
            3 => Self::Delete,
            4 => Self::Identity,
            5 => Self::Account,
            6 => Self::Sync,
            7 => Self::Resync,
            _ => return None,
        })
    }

    /// Whether the event is an operation on a record.
    pub fn is_operation(self) -> bool {
        !matches!(self, Self::Identity | Self::Account | Self::Sync)
    }
}

/// A decompressed block, whose lengths are checked.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Vec<u8>,
    events: usize,
    /// The starts of the columns of bytes: collections, DIDs, record keys, revisions, payloads.
    starts: [usize; 5],
}

impl Block {
    /// Reads a compressed block.
    ///
    /// # Errors
    /// If it breaks a rule of the format, or is too large.
    pub fn read(frame: &[u8]) -> Result<Self, SegmentError> {
        Self::read_at(frame, None, Place::File(0))
    }

    pub(super) fn read_at(
        frame: &[u8],
        stated: Option<u32>,
        place: Place,
    ) -> Result<Self, SegmentError> {
        Self::of_columns(decompress(frame, stated, place)?)
    }

    /// Reads the decompressed columns.
    fn of_columns(bytes: Vec<u8>) -> Result<Self, SegmentError> {
        let short = || SegmentError::at(Place::Columns(0), SegmentFault::Columns);
        let count = bytes.first_chunk().map(|count| u32::from_le_bytes(*count));
        let count = count.ok_or_else(short)?;
        if count > MAX_EVENTS {
            return Err(SegmentError::at(Place::Columns(0), SegmentFault::Limit(Limit::Events)));
        }
        let events = count as usize;
        let fixed = COUNT_LEN + events * FIXED_LEN;
        if bytes.len() < fixed {
            return Err(short());
        }
        let mut block = Self { bytes, events, starts: [0; 5] };
        let mut at = fixed;
        for column in 0..5 {
            block.starts[column] = at;
            let lengths = (0..events).map(|row| block.length(column, row)).sum::<usize>();
            at = at.checked_add(lengths).filter(|end| *end <= block.bytes.len()).ok_or_else(
                || {
                    SegmentError::at(
                        Place::Columns(block.starts[column] as u64),
                        SegmentFault::Columns,
                    )
                },
            )?;
        }
        if at != block.bytes.len() {
            return Err(SegmentError::at(Place::Columns(at as u64), SegmentFault::Columns));
        }
        Ok(block)
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.events
    }

    /// Whether the block has no events.
    pub fn is_empty(&self) -> bool {
        self.events == 0
    }

    /// Number of bytes, decompressed.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The events, in order. Sequence numbers increase; after an error there are no more.
    pub fn rows(&self) -> Rows<'_> {
        Rows { block: self, row: 0, at: self.starts, last_seq: None }
    }

    fn length(&self, column: usize, row: usize) -> usize {
        let (start, width) = LENGTHS[column];
        let at = COUNT_LEN + self.events * start + row * width;
        match self.bytes[at..at + width] {
            [one] => one.into(),
            [low, high] => u16::from_le_bytes([low, high]).into(),
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]) as usize,
            _ => unreachable!("the widths in the table of lengths"),
        }
    }

    fn number(&self, column: usize, row: usize) -> [u8; 8] {
        let at = COUNT_LEN + (self.events * column + row) * 8;
        self.bytes[at..at + 8].try_into().expect("eight bytes")
    }
}

/// The events of a block, in order.
#[derive(Debug)]
pub struct Rows<'b> {
    block: &'b Block,
    row: usize,
    /// The starts of the next values.
    at: [usize; 5],
    last_seq: Option<u64>,
}

impl<'b> Rows<'b> {
    fn bytes(&mut self, column: usize) -> &'b [u8] {
        let start = self.at[column];
        self.at[column] = start + self.block.length(column, self.row);
        &self.block.bytes[start..self.at[column]]
    }

    fn text(&mut self, column: usize) -> Option<&'b str> {
        std::str::from_utf8(self.bytes(column)).ok()
    }

    fn read(&mut self) -> Result<Row<'b>, SegmentFault> {
        let (block, row) = (self.block, self.row);
        let seq = u64::from_le_bytes(block.number(0, row));
        if seq == 0 || seq > MAX_SEQ || self.last_seq.is_some_and(|last| seq <= last) {
            return Err(SegmentFault::Seq(seq));
        }
        self.last_seq = Some(seq);
        let kind = block.bytes[COUNT_LEN + block.events * KINDS + row];
        let kind = RowKind::of(kind).ok_or(SegmentFault::Kind(kind))?;
        let texts = [self.text(0), self.text(1), self.text(2), self.text(3)];
        let [Some(collection), Some(did), Some(rkey), Some(rev)] = texts else {
            return Err(SegmentFault::Text);
        };
        let payload = self.bytes(4);
        let [witnessed, indexed] =
            [1, 2].map(|column| i64::from_le_bytes(block.number(column, row)));
        Ok(Row { seq, witnessed, indexed, kind, did, collection, rkey, rev, payload })
    }
}

impl<'b> Iterator for Rows<'b> {
    type Item = Result<Row<'b>, SegmentError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.row == self.block.events {
            return None;
        }
        let row = self.read();
        let place = Place::Row(self.row as u32);
        self.row = if row.is_ok() { self.row + 1 } else { self.block.events };
        Some(row.map_err(|fault| SegmentError::at(place, fault)))
    }
}

/// Bytes of the number of events.
const COUNT_LEN: usize = 4;

/// Bytes of an event in the columns of fixed width.
const FIXED_LEN: usize = 34;

/// The column of kinds, after three numbers of eight bytes an event.
const KINDS: usize = 24;

/// The columns of lengths: the bytes of an event before the column, and its width.
const LENGTHS: [(usize, usize); 5] = [(25, 1), (26, 2), (28, 1), (29, 1), (30, 4)];

/// The largest sequence number: cursors are JSON integers.
const MAX_SEQ: u64 = (1 << 63) - 1;
