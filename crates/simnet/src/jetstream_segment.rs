//! Writes sealed segments of a hosted Jetstream archive, without filters of accounts.
//!
//! It shares no code with the reader of segments, so that the tests of both compare two readings of the format.

use std::collections::BTreeSet;
use std::hash::Hasher as _;
use std::io::{self, Write as _};

use twox_hash::XxHash3_64;
use zstd::stream::write::Encoder;

/// An event of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentEvent {
    /// The sequence number.
    pub seq: u64,
    /// When the server saw it, in microseconds since 1970.
    pub witnessed: i64,
    /// The time that the operator imported, in microseconds since 1970; 0 for none.
    pub indexed: i64,
    /// The kind: 1 to 3 are the operations create, update and delete, 4 to 6 are identity, account and sync, 7 is a record of a
    /// repository that was fetched again.
    pub kind: u8,
    /// The account.
    pub did: String,
    /// The collection of an operation.
    pub collection: String,
    /// The record key of an operation.
    pub rkey: String,
    /// The revision.
    pub rev: String,
    /// The record or event, as DAG-CBOR.
    pub payload: Vec<u8>,
}

/// A sealed segment, and what its index says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedSegment {
    /// The file.
    pub bytes: Vec<u8>,
    /// The blocks.
    pub blocks: Vec<SealedBlock>,
}

/// A block of a sealed segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedBlock {
    /// The offset of its frame, after the length.
    pub start: usize,
    /// The bytes of its frame.
    pub len: usize,
    /// The least and the greatest sequence number.
    pub seqs: (u64, u64),
    /// The collections of its operations, and a name for every kind of other events.
    pub collections: BTreeSet<String>,
    /// The accounts.
    pub dids: BTreeSet<String>,
}

impl SealedSegment {
    /// Writes events, whose sequence numbers increase, in blocks of `per_block`.
    ///
    /// # Panics
    /// If a text is too long for its column.
    pub fn write(events: &[SegmentEvent], per_block: usize) -> Self {
        let blocks: Vec<&[SegmentEvent]> = events.chunks(per_block.max(1)).collect();
        Self::of_blocks(&blocks)
    }

    /// Writes blocks. One without events is a block whose events were all removed.
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn of_blocks(blocks: &[&[SegmentEvent]]) -> Self {
        let mut bytes = vec![0; HEADER_LEN];
        let (mut sealed, mut index) = (Vec::new(), Vec::new());
        for events in blocks {
            let columns = columns(events);
            let frame = compress(&columns);
            let offset = bytes.len();
            bytes.extend((frame.len() as u64).to_le_bytes());
            bytes.extend(&frame);
            let (seqs, times) = ranges(events);
            index.extend((offset as u64).to_le_bytes());
            for number in [frame.len(), columns.len(), events.len()] {
                index.extend((number as u32).to_le_bytes());
            }
            index.extend([seqs.0, seqs.1].map(u64::to_le_bytes).concat());
            index.extend([times.0, times.1].map(i64::to_le_bytes).concat());
            sealed.push(SealedBlock {
                start: offset + 8,
                len: frame.len(),
                seqs,
                collections: events.iter().map(|event| event.indexed_collection()).collect(),
                dids: events.iter().map(|event| event.did.clone()).collect(),
            });
        }
        let all: Vec<SegmentEvent> = blocks.concat();
        let footer = bytes.len();
        let filter = footer + index.len();
        // The filter of the segment is empty; the filters of the blocks are their number and length, and no bytes.
        let collections = filter + 8;
        bytes.extend(index);
        bytes.extend((blocks.len() as u32).to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(collection_index(&all, &sealed));
        let dids: BTreeSet<&str> = all.iter().map(|event| &*event.did).collect();
        let (seqs, times) = ranges(&all);
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.extend(b"jss0");
        header.extend([0; 8]);
        header.extend(1u16.to_le_bytes());
        for number in [blocks.len(), all.len(), dids.len()] {
            header.extend((number as u32).to_le_bytes());
        }
        header.extend([seqs.0, seqs.1].map(u64::to_le_bytes).concat());
        header.extend([times.0, times.1].map(i64::to_le_bytes).concat());
        for offset in [footer, filter, filter, collections, footer] {
            header.extend((offset as u64).to_le_bytes());
        }
        bytes[..header.len()].copy_from_slice(&header);
        let mut segment = Self { bytes, blocks: sealed };
        segment.seal();
        segment
    }

    /// Writes the checksum of header and footer again.
    ///
    /// # Panics
    /// If the bytes are no segment.
    pub fn seal(&mut self) {
        let footer = u64::from_le_bytes(self.bytes[58..66].try_into().expect("eight bytes"));
        let mut hasher = XxHash3_64::new();
        hasher.write(&self.bytes[12..HEADER_LEN]);
        hasher.write(&self.bytes[usize::try_from(footer).expect("an offset")..]);
        self.bytes[4..12].copy_from_slice(&hasher.finish().to_le_bytes());
    }

    /// The checksum of header and footer, as lists and plans state it.
    pub fn checksum(&self) -> String {
        self.bytes[4..12].iter().rev().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The compressed bytes of a block.
    pub fn frame(&self, number: usize) -> Option<&[u8]> {
        let SealedBlock { start, len, .. } = self.blocks.get(number)?;
        Some(&self.bytes[*start..start + len])
    }
}

impl SegmentEvent {
    /// The name under which the index of collections lists it.
    fn indexed_collection(&self) -> String {
        match self.kind {
            4 => "$identity".to_owned(),
            5 => "$account".to_owned(),
            6 => "$sync".to_owned(),
            _ => self.collection.clone(),
        }
    }
}

/// The least and greatest sequence numbers and times; zeros without events.
fn ranges(events: &[SegmentEvent]) -> ((u64, u64), (i64, i64)) {
    let (first, last) = (events.first(), events.last());
    let seq = |event: Option<&SegmentEvent>| event.map_or(0, |event| event.seq);
    let times = || events.iter().map(|event| event.witnessed);
    ((seq(first), seq(last)), (times().min().unwrap_or(0), times().max().unwrap_or(0)))
}

/// The columns of a block.
fn columns(events: &[SegmentEvent]) -> Vec<u8> {
    fn fits<T: TryFrom<usize>>(len: usize) -> T {
        T::try_from(len).unwrap_or_else(|_| panic!("{len} bytes are too long for the column"))
    }
    let mut out = (events.len() as u32).to_le_bytes().to_vec();
    events.iter().for_each(|event| out.extend(event.seq.to_le_bytes()));
    events.iter().for_each(|event| out.extend(event.witnessed.to_le_bytes()));
    events.iter().for_each(|event| out.extend(event.indexed.to_le_bytes()));
    events.iter().for_each(|event| out.push(event.kind));
    events.iter().for_each(|event| out.push(fits(event.collection.len())));
    events.iter().for_each(|event| out.extend(fits::<u16>(event.did.len()).to_le_bytes()));
    events.iter().for_each(|event| out.push(fits(event.rkey.len())));
    events.iter().for_each(|event| out.push(fits(event.rev.len())));
    events.iter().for_each(|event| out.extend(fits::<u32>(event.payload.len()).to_le_bytes()));
    events.iter().for_each(|event| out.extend(event.collection.as_bytes()));
    events.iter().for_each(|event| out.extend(event.did.as_bytes()));
    events.iter().for_each(|event| out.extend(event.rkey.as_bytes()));
    events.iter().for_each(|event| out.extend(event.rev.as_bytes()));
    events.iter().for_each(|event| out.extend(&event.payload));
    out
}

fn collection_index(events: &[SegmentEvent], blocks: &[SealedBlock]) -> Vec<u8> {
    let names: BTreeSet<&String> = blocks.iter().flat_map(|block| &block.collections).collect();
    let names: Vec<&String> = names.into_iter().collect();
    let mask = names.len().div_ceil(8);
    let mut body = Vec::new();
    for name in &names {
        let count = events.iter().filter(|event| event.collection == **name).count();
        body.push(name.len() as u8);
        body.extend((count as u32).to_le_bytes());
        body.extend(name.as_bytes());
    }
    for block in blocks {
        let mut bits = vec![0u8; mask];
        for (number, name) in names.iter().enumerate() {
            bits[number / 8] |= u8::from(block.collections.contains(*name)) << (number % 8);
        }
        body.extend(bits);
    }
    let counts = [names.len(), blocks.len(), mask, body.len()];
    let mut out: Vec<u8> = counts.iter().flat_map(|count| (*count as u32).to_le_bytes()).collect();
    out.extend(compress(&body));
    out
}

/// One frame with a checksum of its content and, as servers write it, the length of longer content.
pub fn compress(content: &[u8]) -> Vec<u8> {
    let len = (content.len() >= MIN_STATED).then_some(content.len() as u64);
    compress_with(content, true, len).expect("memory takes all bytes")
}

/// One frame, with a checksum of its content or without, and with this length or without one.
///
/// # Errors
/// If the content has another length.
pub fn compress_with(content: &[u8], has_checksum: bool, len: Option<u64>) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
    encoder.include_checksum(has_checksum)?;
    encoder.include_contentsize(len.is_some())?;
    encoder.set_pledged_src_size(len)?;
    encoder.write_all(content)?;
    encoder.finish()
}

/// The least length of content in bytes that a frame states.
const MIN_STATED: usize = 256;

const HEADER_LEN: usize = 256;

const LEVEL: i32 = 3;
