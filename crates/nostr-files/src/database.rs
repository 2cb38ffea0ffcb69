//! Reads the events of an LMDB database in groups.

use std::path::Path;

use nostr::Event;
use nostr_lmdb::{DatabaseError, IsolatedReader, Program, Record, RecordFault};

use crate::fault::{EntryFault, FileFault};
use crate::group::{GROUP_BYTES, GROUP_EVENTS, RawGroup, RawRecord};
use crate::input::ReaderProcess;

/// Reads the events of a database of strfry or nostrdb.
pub(crate) struct DatabaseReader {
    records: Records,
    /// Records read so far.
    taken: u64,
    /// Ends the reading after the group that was returned.
    fault: Option<DatabaseError>,
}

impl DatabaseReader {
    /// Opens a database in this process, or in one that `reader` starts.
    pub(crate) fn open(folder: &Path, reader: Option<&ReaderProcess>) -> Result<Self, FileFault> {
        let records = match reader {
            None => nostr_lmdb::Reader::open(folder).map(|reader| Records::Own(Box::new(reader))),
            Some(reader) => {
                IsolatedReader::start(&mut reader.command(folder)).map(Records::Isolated)
            }
        };
        let records = records.map_err(FileFault::Database)?;
        Ok(Self { records, taken: 0, fault: None })
    }

    /// Records read so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The next records, at most `limit`; `None` at the end.
    pub(crate) fn next_group(&mut self, limit: u64) -> Result<Option<RawGroup>, FileFault> {
        let first = self.taken;
        let max = usize::try_from(limit).unwrap_or(usize::MAX).min(GROUP_EVENTS);
        let (mut bytes, mut records) = (Vec::new(), Vec::new());
        while bytes.len() < GROUP_BYTES && records.len() < max && self.fault.is_none() {
            match self.records.next_record(&mut bytes) {
                Ok(Some(record)) => {
                    let end = bytes.len() - record.summary_len;
                    let (key, fault) = (record.key, record.fault.map(entry_fault));
                    records.push(RawRecord { end, summary_len: record.summary_len, key, fault });
                    self.taken += 1;
                }
                Ok(None) => break,
                Err(fault) => self.fault = Some(fault),
            }
        }
        if !records.is_empty() {
            let format = self.records.program().format();
            return Ok(Some(RawGroup::of_records(first, format, bytes, records)));
        }
        self.fault.take().map_or(Ok(None), |fault| Err(FileFault::Database(fault)))
    }
}

/// The records of a database.
enum Records {
    Own(Box<nostr_lmdb::Reader>),
    Isolated(IsolatedReader),
}

impl Records {
    fn next_record(&mut self, out: &mut Vec<u8>) -> Result<Option<Record>, DatabaseError> {
        match self {
            Self::Own(reader) => reader.next_record(out),
            Self::Isolated(reader) => reader.next_record(out),
        }
    }

    fn program(&self) -> Program {
        match self {
            Self::Own(reader) => reader.program(),
            Self::Isolated(reader) => reader.program(),
        }
    }
}

/// Why an event is not the one of its row in a database of strfry.
pub(crate) fn difference(event: &Event<'_>, summary: &[u8]) -> Option<EntryFault> {
    nostr_lmdb::difference(event, summary).map(EntryFault::OtherEvent)
}

fn entry_fault(fault: RecordFault) -> EntryFault {
    match fault {
        RecordFault::Value(fault) => EntryFault::Unreadable(fault),
        RecordFault::NoPayload(id) => EntryFault::NoPayload(id),
        RecordFault::NoRow => EntryFault::NoRow,
        _ => EntryFault::MalformedRow,
    }
}
