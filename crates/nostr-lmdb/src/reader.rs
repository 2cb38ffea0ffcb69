//! Reading the events of a database.

use std::fmt;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Env, RoTxn, WithoutTls};
use mapping::lmdb;
use nostr_formats::Format;
use nostr_formats::container::MAX_EVENT_BYTES;
use nostr_formats::packed_event::PackedEvent;

use crate::error::DatabaseError;
use crate::flat;
use crate::indexes::Expected;
use crate::payload::{self, Payloads};
use crate::record::{self, Record, RecordFault};
use crate::tables::{self, INDEXES, Index, Table, VERSION};

/// Whether a folder has the file of an LMDB database.
pub fn is_database(folder: &Path) -> bool {
    folder.join("data.mdb").is_file()
}

/// A program that stores events in LMDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The relay strfry.
    Strfry,
    /// The library nostrdb.
    Nostrdb,
}

impl Program {
    /// The format of the events that a [`Reader`] appends.
    pub fn format(self) -> Format {
        match self {
            Self::Strfry => Format::Json,
            Self::Nostrdb => Format::NdbNote,
        }
    }
}

/// Reads the events of a database as they were when it was opened.
///
/// Of strfry the tables `Event` and `EventPayload` are read side by side, and its indexes are compared with the events at the end.
///
/// Until it is dropped, a program with LMDB 0.9 cannot open the database, and one with the LMDB of this crate that writes it
/// keeps the pages of that time. LMDB trusts the file: a stranger's database is read by an
/// [`IsolatedReader`](crate::IsolatedReader).
pub struct Reader {
    program: Program,
    events: Table,
    payloads: Payloads,
    rows: Option<Rows>,
    /// The key of the last record.
    last: Option<u64>,
    is_over: bool,
    /// Bytes that the rest of the values can have without sharing pages.
    bytes_left: u64,
    snapshot: RoTxn<'static, WithoutTls>,
}

/// The table `Event` of strfry, and the data derived from it.
struct Rows {
    table: Option<Table>,
    indexes: [Option<Table>; INDEXES.len()],
    /// The entries of the indexes; `None` if the rows are not summaries.
    expected: Option<Expected>,
}

impl Reader {
    /// Opens the database in `folder`, strfry's or nostrdb's by its tables.
    ///
    /// # Errors
    /// If it is no database of these programs, not complete, or open in a program with LMDB 0.9, whose locks are others.
    pub fn open(folder: &Path) -> Result<Self, DatabaseError> {
        let env = lmdb::open_read_only(folder, MAX_TABLES)?;
        refuse_truncated(&env)?;
        let [payloads, dictionaries, notes, versions, meta, rows] = open_tables(
            &env,
            [
                tables::PAYLOADS,
                tables::DICTIONARIES,
                "note",
                "ndb_meta",
                tables::META,
                tables::SUMMARIES,
            ],
        )?;
        let (program, events) = match (payloads, notes, versions) {
            (Some(payloads), ..) => (Program::Strfry, payloads),
            (None, Some(notes), Some(_)) => (Program::Nostrdb, notes),
            _ => return Err(DatabaseError::Tables),
        };
        let bytes_left = env.real_disk_size()?;
        let indexes = open_tables(&env, INDEXES.map(Index::name))?;
        let snapshot = env.static_read_txn()?;
        let rows = match program {
            Program::Nostrdb => None,
            Program::Strfry => Some(Rows {
                table: rows,
                indexes,
                expected: has_summaries(meta, &snapshot)?.then(Expected::new),
            }),
        };
        let payloads = Payloads::new(dictionaries);
        let (last, is_over) = (None, false);
        Ok(Self { program, events, payloads, rows, last, is_over, bytes_left, snapshot })
    }

    /// The program whose database this is.
    pub fn program(&self) -> Program {
        self.program
    }

    /// Appends the bytes of the next event to `out`, and of strfry the summary in its row; `None` at the end.
    ///
    /// # Errors
    /// If LMDB cannot read the tables, a key is no number, or, at the end, indexes do not agree with the events.
    pub fn next_record(&mut self, out: &mut Vec<u8>) -> Result<Option<Record>, DatabaseError> {
        match self.next_row(out)? {
            Some(record) => Ok(Some(record)),
            None => self.compare_indexes(&mut || {}).map(|()| None),
        }
    }

    /// The next record, without a comparison of indexes at the end.
    pub(crate) fn next_row(&mut self, out: &mut Vec<u8>) -> Result<Option<Record>, DatabaseError> {
        let (snapshot, last): (&RoTxn<'_>, _) = (&self.snapshot, self.last);
        let value = next_of(&self.events, snapshot, last)?;
        let rows = self.rows.as_ref().and_then(|rows| rows.table.as_ref());
        let row = rows.map_or(Ok(None), |table| next_of(table, snapshot, last))?;
        let Some(key) = [value, row].iter().flatten().map(|(key, _)| *key).min() else {
            return Ok(None);
        };
        let [value, row] =
            [value, row].map(|entry| entry.filter(|entry| entry.0 == key).map(|entry| entry.1));
        let bytes = [value, row].iter().flatten().map(|value| value.len() as u64).sum();
        let left = self.bytes_left.checked_sub(bytes);
        self.bytes_left = left.ok_or(DatabaseError::Shared { after: last.unwrap_or_default() })?;
        self.last = Some(key);
        let mut record = Record { key, event_len: 0, summary_len: 0, fault: None };
        let Some(value) = value else {
            self.rows.as_mut().map(|rows| rows.add(key, row));
            record.fault = Some(RecordFault::NoPayload(record::id_of(row.unwrap_or_default())));
            return Ok(Some(record));
        };
        let start = out.len();
        let read = match self.program {
            Program::Strfry => self.payloads.read(&self.snapshot, value, out)?,
            Program::Nostrdb => payload::append(value, out),
        };
        record.event_len = out.len() - start;
        let is_right = self.rows.as_mut().map_or(Ok(false), |rows| rows.add(key, row));
        record.fault = read.map_err(RecordFault::Value).and(is_right.map(drop)).err();
        if let (Ok(true), None, Some(row)) = (is_right, record.fault, row) {
            out.extend_from_slice(row);
            record.summary_len = row.len();
        }
        Ok(Some(record))
    }

    /// Compares the indexes of strfry with the rows that were read, once.
    pub(crate) fn compare_indexes(
        &mut self,
        progress: &mut dyn FnMut(),
    ) -> Result<(), DatabaseError> {
        if std::mem::replace(&mut self.is_over, true) {
            return Ok(());
        }
        let Some(Rows { expected: Some(expected), indexes, .. }) = &self.rows else {
            return Ok(());
        };
        match expected.differences(indexes, &self.snapshot, progress)? {
            names if names.is_empty() => Ok(()),
            names => Err(DatabaseError::Indexes(names.join(", "))),
        }
    }
}

#[cfg(test)]
impl Reader {
    pub(crate) fn limit_bytes(&mut self, bytes: u64) {
        self.bytes_left = bytes;
    }
}

impl Rows {
    /// Adds a row; whether it is a summary with which an event is compared.
    fn add(&mut self, key: u64, row: Option<&[u8]>) -> Result<bool, RecordFault> {
        let row = row.ok_or(RecordFault::NoRow)?;
        let Some(expected) = &mut self.expected else { return Ok(false) };
        let summary = PackedEvent::new(row).ok().filter(|_| row.len() <= MAX_EVENT_BYTES);
        expected.add(&summary.ok_or(RecordFault::MalformedRow)?, key);
        Ok(true)
    }
}

/// The entry of a table after a key.
fn next_of<'t>(
    table: &Table,
    snapshot: &'t RoTxn<'_>,
    last: Option<u64>,
) -> Result<Option<(u64, &'t [u8])>, DatabaseError> {
    let next = match last {
        None => table.first(snapshot)?,
        Some(last) => table.get_greater_than(snapshot, &last.to_ne_bytes())?,
    };
    let Some((key, value)) = next else { return Ok(None) };
    let after = last.unwrap_or_default();
    let Ok(key) = key.try_into().map(u64::from_ne_bytes) else {
        return Err(DatabaseError::Key { after, len: key.len() });
    };
    if last.is_none_or(|last| last < key) {
        Ok(Some((key, value)))
    } else {
        Err(DatabaseError::Order { after })
    }
}

/// Whether the rows of strfry are summaries: of version 3, or of a database that does not state one.
fn has_summaries(meta: Option<Table>, snapshot: &RoTxn<'_>) -> Result<bool, DatabaseError> {
    let Some(meta) = meta else { return Ok(true) };
    let record = meta.get(snapshot, &1_u64.to_ne_bytes())?;
    Ok(record.and_then(flat::integer_of).is_none_or(|version| version == VERSION))
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, last, .. } = self;
        f.debug_struct("Reader")
            .field("program", program)
            .field("last", last)
            .finish_non_exhaustive()
    }
}

/// Refuses a file whose last page is beyond its end: reading it would end the process.
fn refuse_truncated(env: &Env<WithoutTls>) -> Result<(), DatabaseError> {
    let page = u64::from(env.unnamed_database_stat().page_size);
    let pages = (env.info().last_page_number as u64).saturating_add(1);
    let (len, end) = (env.real_disk_size()?, pages.saturating_mul(page));
    if len < end { Err(DatabaseError::Truncated { len, end }) } else { Ok(()) }
}

/// The tables with these names.
fn open_tables<const N: usize>(
    env: &Env<WithoutTls>,
    names: [&str; N],
) -> Result<[Option<Table>; N], DatabaseError> {
    let opened = env.open_databases_and_commit(env.read_txn()?, |opener, txn| {
        let mut tables = names.map(|_| None);
        for (table, name) in tables.iter_mut().zip(names) {
            *table = opener.open_database::<Bytes, Bytes>(txn, Some(name))?;
        }
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(tables))
    })?;
    Ok(opened.unwrap_commit())
}

/// Number of tables that are opened.
const MAX_TABLES: u32 = 16;
