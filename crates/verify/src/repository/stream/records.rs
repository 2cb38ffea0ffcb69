//! The records of a stream: each is checked when its block is there, and remembered by its CID.

use std::collections::HashMap;

use codec::Cid;
use codec::cbor::Encoder;
use codec::cid::Codec;

use super::held::HeldBlocks;

use crate::invalid::check_record;
use crate::repository::records::NODE_START;
use crate::repository::rejection::RepositoryRejection;
use crate::{Flagged, InvalidRecord, InvalidRecords};

/// One or more references of the tree to a record.
#[derive(Clone, Debug)]
pub(super) struct References<P> {
    /// Number of the first in the order of the walk.
    pub(super) first: u64,
    /// The path of the first.
    pub(super) path: P,
    pub(super) count: u64,
}

/// Records that the tree names and that have not arrived since, with their references by collection.
#[derive(Default)]
pub(super) struct WantedRecords(HashMap<Cid, Vec<References<Box<[u8]>>>>);

impl WantedRecords {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, cid: &Cid) -> bool {
        self.0.contains_key(cid)
    }

    /// Adds a reference.
    pub(super) fn insert(&mut self, cid: Cid, references: &References<&[u8]>) {
        let known = self.0.entry(cid).or_default();
        let collection = collection_of(references.path);
        match known.iter_mut().find(|known| collection_of(&known.path) == collection) {
            Some(known) => known.count += references.count,
            None => {
                let path = references.path.into();
                known.push(References { path, first: references.first, count: references.count });
            }
        }
    }

    /// Removes a record that has arrived, with its references.
    pub(super) fn remove(&mut self, cid: &Cid) -> Vec<References<Box<[u8]>>> {
        if self.0.is_empty() { Vec::new() } else { self.0.remove(cid).unwrap_or_default() }
    }

    /// The record that the tree names first.
    pub(super) fn first(&self) -> Option<(&Cid, &References<Box<[u8]>>)> {
        let firsts = self.0.iter().filter_map(|(cid, known)| Some((cid, known.first()?)));
        firsts.min_by_key(|(_, references)| references.first)
    }
}

impl References<Box<[u8]>> {
    pub(super) fn borrowed(&self) -> References<&[u8]> {
        References { first: self.first, path: &self.path, count: self.count }
    }
}

/// What is known of the records whose blocks have arrived.
pub(super) struct RecordChecks {
    max_bytes: usize,
    /// Whether records are checked against the data model.
    flags: bool,
    log: RecordLog,
    collections: Collections,
    invalid: InvalidRecords,
    /// The number of the first reference to an invalid record, and where its data starts.
    first_invalid: (u64, u64),
    flagged: Flagged,
    /// The number of the first reference to a flagged record.
    first_flagged: u64,
}

impl RecordChecks {
    pub(super) fn new(max_bytes: usize, flags: bool) -> Self {
        Self {
            max_bytes,
            flags,
            log: RecordLog::default(),
            collections: Collections::default(),
            invalid: InvalidRecords::default(),
            first_invalid: (u64::MAX, 0),
            flagged: Flagged::default(),
            first_flagged: u64::MAX,
        }
    }

    /// Checks the block of a record, whose data starts at `offset` of the archive. Returns whether the block must be
    /// kept: if it looks like a tree node the tree may name it again as one, and if it is invalid or flagged each
    /// reference to it counts.
    #[inline]
    pub(super) fn check(
        &mut self,
        references: &References<&[u8]>,
        cid: &Cid,
        offset: u64,
        data: &[u8],
    ) -> bool {
        if self.flags {
            self.collections.set(self.log.len(), collection_of(references.path));
        }
        self.log.push(cid, offset, data);
        let is_invalid = check_record(data, self.max_bytes).is_err();
        if is_invalid {
            self.add_invalid(references, cid, offset, data);
        }
        self.flag(references, data) || is_invalid || data.starts_with(NODE_START)
    }

    #[cold]
    fn add_invalid(&mut self, references: &References<&[u8]>, cid: &Cid, offset: u64, data: &[u8]) {
        self.invalid.records += references.count;
        if references.first < self.first_invalid.0 {
            let path = String::from_utf8_lossy(references.path);
            self.first_invalid = (references.first, offset);
            self.invalid.first = InvalidRecord::find(&path, *cid, data, self.max_bytes);
        }
    }

    /// Checks a record against the data model, if that is wanted; returns whether it is flagged.
    pub(super) fn flag(&mut self, references: &References<&[u8]>, data: &[u8]) -> bool {
        if !self.flags {
            return false;
        }
        let path = String::from_utf8_lossy(references.path);
        let Some(found) = Flagged::of_record(&path, data).first else { return false };
        self.flagged.records += references.count;
        if references.first < self.first_flagged {
            self.first_flagged = references.first;
            self.flagged.first = Some(found);
        }
        true
    }

    /// Removes what has arrived from the wanted records, and from the held blocks.
    pub(super) fn settle(&mut self, wanted: &mut WantedRecords, held: &mut HeldBlocks) {
        let mut shared = Vec::new();
        for (index, entry) in self.log.entries().enumerate() {
            let cid = Cid::from_digest(Codec::DagCbor, &entry.digest);
            held.remove(&cid);
            shared.extend(wanted.remove(&cid).into_iter().map(|references| (index, references)));
        }
        for (index, references) in shared {
            let Some(collection) = self.collections.at(index) else { continue };
            // It was not flagged for its first collection, which then is its type.
            if collection_of(&references.path) != collection {
                let record = of_type(collection);
                self.flag(&references.borrowed(), &record);
            }
        }
    }

    /// Where the data of a record starts, and a block that is no tree node for the same reason.
    #[cold]
    pub(super) fn find(&self, cid: &Cid) -> Option<(u64, &'static [u8])> {
        let entry = self.log.entries().find(|entry| entry.digest == *cid.digest())?;
        Some((entry.offset(), if entry.has_two_fields() { TWO_FIELDS } else { OTHER }))
    }

    /// The rejection of the first invalid record.
    pub(super) fn rejection(&self) -> Option<RepositoryRejection> {
        let first = self.invalid.first.clone()?;
        Some(RepositoryRejection::in_record(first, self.first_invalid.1))
    }

    pub(super) fn into_findings(self) -> (InvalidRecords, Flagged) {
        (self.invalid, self.flagged)
    }
}

/// Every record whose block has arrived, in 37 bytes.
#[derive(Default)]
struct RecordLog {
    /// All but the last are full.
    chunks: Vec<Vec<LogEntry>>,
}

/// A record.
#[derive(Clone, Copy)]
struct LogEntry {
    digest: [u8; 32],
    /// Where its data starts in the archive in 39 bits, which is more than an archive may have; then, in the top bit,
    /// whether it begins as a map of two fields does, as a tree node is one.
    place: [u8; 5],
}

impl RecordLog {
    #[inline]
    fn push(&mut self, cid: &Cid, offset: u64, data: &[u8]) {
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::new());
        }
        let two_fields = u64::from(data.first() == Some(&0xa2)) << 39;
        let place = (offset & OFFSET_MASK | two_fields).to_le_bytes();
        let place = *place.first_chunk().expect("eight bytes");
        let chunk = self.chunks.last_mut().expect("one was pushed");
        chunk.push(LogEntry { digest: *cid.digest(), place });
    }

    fn entries(&self) -> impl Iterator<Item = &LogEntry> {
        self.chunks.iter().flatten()
    }

    fn len(&self) -> usize {
        match self.chunks.split_last() {
            Some((last, full)) => full.len() * CHUNK + last.len(),
            None => 0,
        }
    }
}

/// The collections of the records in a log, whose neighbors mostly have the same.
#[derive(Default)]
struct Collections {
    names: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
    /// Indices in the log from which on the collection is another one, and the index of its name.
    changes: Vec<(u32, u32)>,
}

impl Collections {
    /// The record at `index`, which is after all others, is in `collection`.
    #[inline]
    fn set(&mut self, index: usize, collection: &[u8]) {
        let last = self.changes.last().map(|(_, number)| &*self.names[*number as usize]);
        if last != Some(collection) {
            self.change(index, collection);
        }
    }

    fn change(&mut self, index: usize, collection: &[u8]) {
        let number = match self.numbers.get(collection) {
            Some(number) => *number,
            None => {
                let number = self.names.len() as u32;
                self.names.push(collection.into());
                self.numbers.insert(collection.into(), number);
                number
            }
        };
        self.changes.push((index as u32, number));
    }

    /// The collection of the record at `index`.
    fn at(&self, index: usize) -> Option<&[u8]> {
        let after = self.changes.partition_point(|(first, _)| *first as usize <= index);
        let (_, number) = self.changes.get(after.checked_sub(1)?)?;
        Some(&self.names[*number as usize])
    }
}

/// The part of a path before its slash.
#[inline]
fn collection_of(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'/').next().unwrap_or_default()
}

/// A record of this type that is valid otherwise.
#[cold]
fn of_type(collection: &[u8]) -> Vec<u8> {
    let mut record = Encoder::new();
    record.map(1).text("$type").text(&String::from_utf8_lossy(collection));
    record.into_bytes()
}

impl LogEntry {
    fn number(&self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..5].copy_from_slice(&self.place);
        u64::from_le_bytes(bytes)
    }

    fn offset(&self) -> u64 {
        self.number() & OFFSET_MASK
    }

    fn has_two_fields(&self) -> bool {
        self.number() > OFFSET_MASK
    }
}

/// A map of two fields that is no tree node because of the name of the first.
const TWO_FIELDS: &[u8] = b"\xa2\x61a\xf6\x61b\xf6";

/// A map that is no tree node because of the number of its fields.
const OTHER: &[u8] = b"\xa0";

const OFFSET_MASK: u64 = (1 << 39) - 1;

/// Entries of a chunk, which is allocated as they come.
const CHUNK: usize = 4_096;
