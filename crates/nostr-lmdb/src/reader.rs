//! Reading the events of a database.

use std::fmt;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Env, RoTxn, WithoutTls};
use mapping::lmdb;
use nostr::DecodeError;
use nostr::formats::Format;

use crate::error::DatabaseError;
use crate::payload::{self, Payloads};
use crate::tables::{self, Table};

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
/// Until it is dropped, a program with LMDB 0.9 cannot open the database, and one with the LMDB of this crate that writes it
/// keeps the pages of that time.
pub struct Reader {
    program: Program,
    events: Table,
    payloads: Payloads,
    /// The key of the last event.
    last: Option<u64>,
    snapshot: RoTxn<'static, WithoutTls>,
}

/// A value of the table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: u64,
    /// Whether it has the bytes of an event, which are appended then, or why not.
    pub event: Result<(), DecodeError>,
}

impl Reader {
    /// Opens the database in `folder`, by its tables that of strfry or of nostrdb.
    ///
    /// # Errors
    /// If it is no database of these programs, not complete, or open in a program with LMDB 0.9, whose locks are others.
    pub fn open(folder: &Path) -> Result<Self, DatabaseError> {
        let env = lmdb::open_read_only(folder, MAX_TABLES)?;
        refuse_truncated(&env)?;
        let [payloads, dictionaries, notes, versions] =
            open_tables(&env, [tables::PAYLOADS, tables::DICTIONARIES, "note", "ndb_meta"])?;
        let (program, events) = match (payloads, notes, versions) {
            (Some(payloads), ..) => (Program::Strfry, payloads),
            (None, Some(notes), Some(_)) => (Program::Nostrdb, notes),
            _ => return Err(DatabaseError::Tables),
        };
        let payloads = Payloads::new(dictionaries);
        Ok(Self { program, events, payloads, last: None, snapshot: env.static_read_txn()? })
    }

    /// The program whose database this is.
    pub fn program(&self) -> Program {
        self.program
    }

    /// Appends the bytes of the next event to `out`; `None` at the end.
    ///
    /// # Errors
    /// If LMDB cannot read the table, or a key is no number.
    pub fn next_record(&mut self, out: &mut Vec<u8>) -> Result<Option<Record>, DatabaseError> {
        let next = match self.last {
            None => self.events.first(&self.snapshot)?,
            // This key is in the table, so the next one follows it whatever the order.
            Some(last) => self.events.get_greater_than(&self.snapshot, &last.to_ne_bytes())?,
        };
        let Some((key, value)) = next else { return Ok(None) };
        let Ok(key) = key.try_into().map(u64::from_ne_bytes) else {
            let after = self.last.unwrap_or_default();
            return Err(DatabaseError::Key { after, len: key.len() });
        };
        self.last = Some(key);
        let event = match self.program {
            Program::Strfry => self.payloads.read(&self.snapshot, value, out)?,
            Program::Nostrdb => payload::append(value, out),
        };
        Ok(Some(Record { key, event }))
    }
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
const MAX_TABLES: u32 = 4;
