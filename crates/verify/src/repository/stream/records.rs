//! The records of a stream: a record is checked when its block is there, and remembered by its CID.

use std::collections::HashMap;

use atproto::data_model::CheckedRecord;
use codec::Cid;
use codec::cid::Codec;

use super::held::HeldBlocks;
use super::tables::TableState;

use crate::flagged::{FlaggedRecord, RecordFlag};
use crate::invalid::check_record;
use crate::repository::records::NODE_START;
use crate::repository::rejection::RepositoryRejection;
use crate::{Flagged, InvalidRecord, InvalidRecords, RecordError};

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
pub(super) struct WantedRecords {
    records: HashMap<Cid, Vec<References<Box<[u8]>>>, TableState>,
    /// Total length of the paths.
    path_bytes: u64,
}

impl WantedRecords {
    pub(super) fn new(tables: TableState) -> Self {
        Self { records: HashMap::with_hasher(tables), path_bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn contains(&self, cid: &Cid) -> bool {
        self.records.contains_key(cid)
    }

    /// Total length of the paths in bytes: in the tree they are compressed, and can be a twentieth of that.
    pub(super) fn path_bytes(&self) -> u64 {
        self.path_bytes
    }

    /// Adds a reference. References come in the order of paths, so a collection's references come together.
    pub(super) fn insert(
        &mut self,
        cid: Cid,
        References { first, path, count }: References<&[u8]>,
    ) {
        let known = self.records.entry(cid).or_default();
        match known.last_mut() {
            Some(last) if collection_of(&last.path) == collection_of(path) => last.count += count,
            _ => {
                self.path_bytes += path.len() as u64;
                known.push(References { first, path: path.into(), count });
            }
        }
    }

    /// Removes a record that has arrived, with its references.
    pub(super) fn remove(&mut self, cid: &Cid) -> Vec<References<Box<[u8]>>> {
        if self.records.is_empty() {
            return Vec::new();
        }
        let known = self.records.remove(cid).unwrap_or_default();
        self.path_bytes -= known.iter().map(|known| known.path.len() as u64).sum::<u64>();
        known
    }

    /// The record that the tree names first.
    pub(super) fn first(&self) -> Option<(&Cid, &References<Box<[u8]>>)> {
        let firsts = self.records.iter().filter_map(|(cid, known)| Some((cid, known.first()?)));
        firsts.min_by_key(|(_, references)| references.first)
    }
}

impl References<Box<[u8]>> {
    pub(super) fn borrowed(&self) -> References<&[u8]> {
        References { first: self.first, path: &self.path, count: self.count }
    }
}

/// A record whose block was read.
pub(super) struct RecordOutcome {
    /// Where its data starts in the archive.
    offset: u64,
    /// The rule of records that it breaks.
    error: Option<RecordError>,
    /// The verdict of the data model on it, if that is wanted.
    model: Option<CheckedRecord>,
}

/// The findings on the records whose blocks have arrived.
pub(super) struct RecordChecks {
    max_bytes: usize,
    /// Whether records are checked against the data model.
    flags: bool,
    log: RecordLog,
    collections: Collections,
    /// Records of which every further reference counts, or whose block must be kept.
    outcomes: HashMap<Cid, RecordOutcome, TableState>,
    findings: Findings,
}

/// Invalid and flagged records, by their references so far.
struct Findings {
    invalid: InvalidRecords,
    /// The number of the first reference to an invalid record, and where its data starts.
    first_invalid: (u64, u64),
    flagged: Flagged,
    /// The number of the first reference to a flagged record.
    first_flagged: u64,
}

impl RecordChecks {
    pub(super) fn new(max_bytes: usize, flags: bool, tables: &TableState) -> Self {
        Self {
            max_bytes,
            flags,
            log: RecordLog::default(),
            collections: Collections::new(tables.clone()),
            outcomes: HashMap::with_hasher(tables.clone()),
            findings: Findings {
                invalid: InvalidRecords::default(),
                first_invalid: (u64::MAX, 0),
                flagged: Flagged::default(),
                first_flagged: u64::MAX,
            },
        }
    }

    /// Reads the block of a record, whose data starts at `offset` of the archive, once for all `references`. Returns
    /// whether the block must be kept, as the tree may also name it as a node: if it looks like one, or is invalid.
    #[inline]
    pub(super) fn add<'r>(
        &mut self,
        cid: &Cid,
        offset: u64,
        data: &[u8],
        references: impl Iterator<Item = References<&'r [u8]>>,
    ) -> bool {
        let error = check_record(data, self.max_bytes).err();
        let model = self.flags.then(|| CheckedRecord::of_block(data));
        let outcome = RecordOutcome { offset, error, model };
        let (mut is_flagged, mut collection) = (false, None);
        for references in references {
            is_flagged |= self.findings.count(cid, &outcome, &references);
            collection = Some(collection_of(references.path));
        }
        let is_kept = outcome.error.is_some() || data.starts_with(NODE_START);
        if is_kept || is_flagged {
            self.outcomes.entry(*cid).or_insert(outcome);
        } else if self.flags
            && let Some(collection) = collection
        {
            self.collections.set(self.log.len(), collection);
        }
        self.log.push(cid, offset, data);
        is_kept
    }

    /// Counts a further reference to a record, if every reference counts; returns whether it counts.
    pub(super) fn count_again(&mut self, cid: &Cid, references: &References<&[u8]>) -> bool {
        let outcome = self.outcomes.get(cid);
        let counted = outcome.map(|outcome| self.findings.count(cid, outcome, references));
        counted.is_some()
    }

    /// Counts references to a commit or a tree node as those to a record without a type.
    pub(super) fn flag_untyped(&mut self, references: &References<&[u8]>) {
        if self.flags {
            self.findings.flag(&CheckedRecord::of_block(UNTYPED), references);
        }
    }

    /// Removes the arrived records from the wanted records and from the held blocks.
    pub(super) fn settle(&mut self, wanted: &mut WantedRecords, held: &mut HeldBlocks) {
        let mut shared = Vec::new();
        for (index, entry) in self.log.entries().enumerate() {
            let cid = Cid::from_digest(Codec::DagCbor, &entry.digest);
            held.remove(&cid);
            shared.extend(wanted.remove(&cid).into_iter().map(|references| (index, references)));
        }
        for (index, references) in shared {
            // The collection that the record was not flagged for, which is its type.
            let Some(collection) = self.collections.at(index) else { continue };
            if collection_of(&references.path) != collection {
                let model = CheckedRecord::of_type(&String::from_utf8_lossy(collection));
                self.findings.flag(&model, &references.borrowed());
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
        let first = self.findings.invalid.first.clone()?;
        Some(RepositoryRejection::in_record(first, self.findings.first_invalid.1))
    }

    pub(super) fn into_findings(self) -> (InvalidRecords, Flagged) {
        (self.findings.invalid, self.findings.flagged)
    }
}

impl Findings {
    /// Counts references to a record; returns whether it is flagged for them.
    #[inline]
    fn count(
        &mut self,
        cid: &Cid,
        outcome: &RecordOutcome,
        references: &References<&[u8]>,
    ) -> bool {
        if let Some(error) = outcome.error {
            self.add_invalid(*cid, error, outcome.offset, references);
        }
        outcome.model.as_ref().is_some_and(|model| self.flag(model, references))
    }

    #[cold]
    fn add_invalid(
        &mut self,
        cid: Cid,
        error: RecordError,
        offset: u64,
        references: &References<&[u8]>,
    ) {
        self.invalid.records += references.count;
        if references.first < self.first_invalid.0 {
            let path = String::from_utf8_lossy(references.path).into();
            self.first_invalid = (references.first, offset);
            self.invalid.first = Some(InvalidRecord { path, cid, error });
        }
    }

    /// Counts references to a record if it is flagged for them; returns whether it is.
    fn flag(&mut self, model: &CheckedRecord, references: &References<&[u8]>) -> bool {
        let collection = String::from_utf8_lossy(collection_of(references.path));
        let checked = model.in_collection(&collection);
        let Some(flag) = checked.err().and_then(RecordFlag::of) else { return false };
        self.flagged.records += references.count;
        if references.first < self.first_flagged {
            let path = String::from_utf8_lossy(references.path).into();
            self.first_flagged = references.first;
            self.flagged.first = Some(FlaggedRecord { path, flag });
        }
        true
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

/// The collections of those records in a log that have no outcome, whose neighbors mostly have the same.
struct Collections {
    names: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32, TableState>,
    /// Indices in the log from which on the collection is another one, and the index of its name.
    changes: Vec<(u32, u32)>,
}

impl Collections {
    fn new(tables: TableState) -> Self {
        let (names, changes) = (Vec::new(), Vec::new());
        Self { names, numbers: HashMap::with_hasher(tables), changes }
    }

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

/// A record with the flags that a node or a commit gets if the tree names it as a record: a map without a type.
const UNTYPED: &[u8] = b"\xa0";

/// A map of two fields that is no tree node because of the name of the first.
const TWO_FIELDS: &[u8] = b"\xa2\x61a\xf6\x61b\xf6";

/// A map that is no tree node because of the number of its fields.
const OTHER: &[u8] = b"\xa0";

const OFFSET_MASK: u64 = (1 << 39) - 1;

/// Entries of a chunk, which is allocated as they come.
const CHUNK: usize = 4_096;
