//! The records of a stream: each is checked when its block is there, and remembered by its CID.

use std::collections::HashMap;

use codec::Cid;
use codec::cid::Codec;

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

/// What is known of the records whose blocks have arrived.
pub(super) struct RecordChecks {
    max_bytes: usize,
    /// Whether records are checked against the data model.
    flags: bool,
    log: RecordLog,
    /// Records that are not valid, or flagged: rare ones.
    findings: HashMap<Cid, Finding>,
    invalid: InvalidRecords,
    /// The number of the first reference to an invalid record, and where its data starts.
    first_invalid: (u64, u64),
    flagged: Flagged,
    /// The number of the first reference to a flagged record.
    first_flagged: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Finding {
    Invalid,
    Flagged,
}

impl RecordChecks {
    pub(super) fn new(max_bytes: usize, flags: bool) -> Self {
        Self {
            max_bytes,
            flags,
            log: RecordLog::default(),
            findings: HashMap::new(),
            invalid: InvalidRecords::default(),
            first_invalid: (u64::MAX, 0),
            flagged: Flagged::default(),
            first_flagged: u64::MAX,
        }
    }

    /// Checks the block of a record, whose data starts at `offset` of the archive. Returns whether the block must be
    /// kept: if it looks like a tree node or is invalid, the tree may name it again as a node.
    #[inline]
    pub(super) fn check(
        &mut self,
        references: &References<&[u8]>,
        cid: &Cid,
        offset: u64,
        data: &[u8],
    ) -> bool {
        self.log.push(cid, offset, data);
        if check_record(data, self.max_bytes).is_err() {
            self.add_invalid(references, cid, offset, data);
            return true;
        }
        if self.flags {
            self.flag(references, cid, data);
        }
        data.starts_with(NODE_START)
    }

    #[cold]
    fn add_invalid(&mut self, references: &References<&[u8]>, cid: &Cid, offset: u64, data: &[u8]) {
        self.findings.insert(*cid, Finding::Invalid);
        self.invalid.records += references.count;
        if references.first < self.first_invalid.0 {
            let path = String::from_utf8_lossy(references.path);
            self.first_invalid = (references.first, offset);
            self.invalid.first = InvalidRecord::find(&path, *cid, data, self.max_bytes);
        }
    }

    fn flag(&mut self, references: &References<&[u8]>, cid: &Cid, data: &[u8]) {
        let path = String::from_utf8_lossy(references.path);
        let Some(found) = Flagged::of_record(&path, data).first else { return };
        self.findings.insert(*cid, Finding::Flagged);
        self.flagged.records += references.count;
        if references.first < self.first_flagged {
            self.first_flagged = references.first;
            self.flagged.first = Some(found);
        }
    }

    /// Counts a further reference to a record that was found invalid or flagged; returns whether it was.
    #[inline]
    pub(super) fn count_again(&mut self, cid: &Cid) -> bool {
        if self.findings.is_empty() {
            return false;
        }
        match self.findings.get(cid) {
            None => return false,
            Some(Finding::Invalid) => self.invalid.records += 1,
            Some(Finding::Flagged) => self.flagged.records += 1,
        }
        true
    }

    /// The CIDs of all records whose blocks have arrived.
    pub(super) fn cids(&self) -> impl Iterator<Item = Cid> {
        self.log.entries().map(|entry| Cid::from_digest(Codec::DagCbor, &entry.digest))
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
