//! The sink of SQLite: the records of accounts as tables, and the position in the same transaction.
//!
//! The payloads are lines of `wireproof follow`. The file has these tables and nothing else:
//!
//! | table | row |
//! |---|---|
//! | `record` | a record that an account has: `did`, `collection`, `rkey`; `cid`; `rev`, the revision that brought it; `live`, whether that was an event of the stream; `record` as JSON, or `invalid` for bytes that are no valid record |
//! | `account` | an account with a verified commit: `did`, `rev`, `claimed_handle`, `active`, `status`, and `complete`, whether `record` has all of its selected records |
//! | `event` | the last events in the order in which they came: `number`, `id`, `did`, `kind`, `rev`, `verdict`, `code`, `live`, and the whole `line`, except of a repository |
//! | `cursor` | an outbox, and the position of its last event in these tables |
//!
//! The view `active_record` has the columns of `record`, for accounts that are active.
//!
//! Only verified events change `record`, and events that were not verified by request (`follow --verify-against none`):
//! the column `code` and the key `verified_against` of `line` tell, and `complete` is false after such an event.
//! `claimed_handle`, `active` and `status` come from the stream, which does not sign them; a verified commit shows that
//! its account is active, and a line of kind `status` that its own server has deleted it, and so its records. The
//! pieces of a repository replace the records of their account: a record that is not among them is deleted with the
//! last piece, so that a reader never misses one that exists.
//!
//! With [`TableContent::NostrEvents`] the payloads are Nostr events, and the file has `cursor` and this table:
//!
//! | table | row |
//! |---|---|
//! | `event` | an event, once: `number`, in the order in which they came; `id`, `pubkey`, `created_at`, `kind`, `tags` as JSON, `content`, `sig` |
//!
//! With [`TableContent::Labels`] the payloads are lines of `wireproof labels follow`, and the file has `cursor` and this table:
//!
//! | table | row |
//! |---|---|
//! | `label_state` | the last label of a source, subject and value: `src`, `uri`, `val`, `cid`, `neg`, `cts`, `exp`; `created` and `expires` in microseconds since 1970; `service` and `seq`, where it came from; `sig` and `key`, its proof |
//!
//! The view `label` has the labels in force now: no negations, and no expired ones.

mod labels;
mod nostr_events;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Lock, crash_point};
use rusqlite::{Connection, TransactionBehavior};
use store::files::StateFiles;
use store::sqlite_file::{self, FileFormat, MAX_CHECKED_BYTES};
use store::{StoreError, StoreFault};

use crate::database::OutboxIdentity;
use crate::event::Event;
use crate::label_rows::{last_rows, parse_labels};
use crate::sink::{FailureKind, SendFailure, Sink, SinkLimits};
use crate::sink_address::{OpenFailure, SinkAddress, local_path, path_consumer};
use crate::sink_options::SinkOptions;
use crate::tables::{TableContent, parse_lines, parse_nostr_events};

/// The file of a SQLite database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteAddress(PathBuf);

impl SinkAddress for SqliteAddress {
    const SCHEMES: &'static [&'static str] = &["sqlite"];
    const FORM: &'static str = "sqlite:///FILE";
    const STORES_POSITIONS: bool = true;
    type Sink = SqliteSink;

    fn from_uri(uri: &str) -> Result<Self, String> {
        local_path(uri).map(Self)
    }

    fn consumer(&self) -> String {
        path_consumer("sqlite", &self.0)
    }

    async fn open(&self, options: &SinkOptions) -> Result<SqliteSink, OpenFailure> {
        let tables = SqliteOptions { content: options.content, ..SqliteOptions::default() };
        SqliteSink::open(&self.0, options.outbox, tables).map_err(OpenFailure::local)
    }
}

/// Options of a [`SqliteSink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqliteOptions {
    /// Number of rows of `event` that are kept in addition to records; Nostr events are all kept. Default: 100,000.
    pub max_events: u64,
    /// The kind of events. Default: records.
    pub content: TableContent,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { max_events: 100_000, content: TableContent::default() }
    }
}

/// Writes the records of accounts, or Nostr events, to a SQLite file. Every event has its effect exactly once.
#[derive(Debug)]
pub struct SqliteSink {
    tables: Arc<Mutex<Tables>>,
    /// Number of written rows.
    rows: Arc<AtomicU64>,
}

/// The open file.
#[derive(Debug)]
struct Tables {
    connection: Connection,
    path: PathBuf,
    /// The outbox from which events come.
    outbox: OutboxIdentity,
    options: SqliteOptions,
    rows: Arc<AtomicU64>,
    // Dropped last, with the lock.
    files: StateFiles,
}

impl SqliteSink {
    /// Opens the file, and creates it and its folder if missing. `outbox` is the one from which the events will come.
    ///
    /// # Errors
    /// If another process writes to the file, it has other tables or tables of a later version, or it cannot be
    /// written.
    pub fn open(
        path: &Path,
        outbox: OutboxIdentity,
        options: SqliteOptions,
    ) -> Result<Self, SendFailure> {
        let failed = |error: StoreError| failure(&error.path, options.content, error.fault);
        let tables = Tables::open(path, outbox, options).map_err(failed)?;
        let rows = tables.rows.clone();
        Ok(Self { tables: Arc::new(Mutex::new(tables)), rows })
    }

    /// The position that is stored for the outbox; `None` for one of which the tables have no event.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn position(&self) -> Result<Option<u64>, SendFailure> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let position = tables::position(&tables.connection, tables.outbox);
        position.map_err(|fault| tables.failure(fault))
    }

    /// Runs on a thread for blocking work.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tables) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, SendFailure> {
        let tables = self.tables.clone();
        let run = move || {
            let mut tables = tables.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut tables).map_err(|fault| tables.failure(fault))
        };
        tokio::task::spawn_blocking(run)
            .await
            .unwrap_or_else(|error| Err(SendFailure::temporary(error)))
    }
}

impl Sink for SqliteSink {
    fn limits(&self) -> SinkLimits {
        SinkLimits::new(4096, 4 << 20)
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        let events = events.to_vec();
        self.run(move |tables| tables.apply(&events)).await?.map_or(Ok(()), Err)
    }

    async fn skip(&self, event: &Event) -> Result<(), SendFailure> {
        let event = event.clone();
        self.run(move |tables| tables.skip(&event)).await
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows.load(Relaxed))
    }

    async fn stored(&self, outbox: OutboxIdentity) -> Result<Option<u64>, SendFailure> {
        self.run(move |tables| tables::position(&tables.connection, outbox)).await
    }
}

impl Tables {
    fn open(
        path: &Path,
        outbox: OutboxIdentity,
        options: SqliteOptions,
    ) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
        }
        let lock = Lock::take(path)?;
        create_if_missing(path, format_of(options.content))?;
        let mut connection = sqlite_file::open_writer(path)?;
        prepare(&mut connection, path, options.content).map_err(StoreError::at(path))?;
        let files = StateFiles::new(path, lock)?;
        let rows = Arc::default();
        Ok(Self { connection, path: path.to_owned(), outbox, options, rows, files })
    }

    /// Applies the events that are not applied yet, all or none. If one is malformed, those before it are applied, and its
    /// refusal is returned.
    fn apply(&mut self, events: &[Event]) -> Result<Option<SendFailure>, StoreFault> {
        // A file that was deleted or replaced would lose the events.
        self.files.check().map_err(|error| error.fault)?;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let applied = tables::position(&transaction, self.outbox)?.unwrap_or(0);
        // Positions rise.
        let new = &events[events.partition_point(|event| event.position() <= applied)..];
        let (count, rows, malformed) = match self.options.content {
            TableContent::Records => {
                let batch = parse_lines(new);
                let rows = tables::apply(&transaction, &batch.events)?;
                tables::delete_old_events(&transaction, self.options.max_events)?;
                (batch.events.len(), rows, batch.malformed)
            }
            TableContent::NostrEvents => {
                let batch = parse_nostr_events(new);
                let rows = nostr_events::apply(&transaction, &batch.events)?;
                (batch.events.len(), rows, batch.malformed)
            }
            TableContent::Labels => {
                let batch = parse_labels(new);
                let rows = labels::apply(&transaction, &last_rows(&batch.events))?;
                (batch.events.len(), rows, batch.malformed)
            }
        };
        if let Some(last) = new[..count].last() {
            tables::set_position(&transaction, self.outbox, last.position())?;
        }
        crash_point("sqlite/written");
        transaction.commit()?;
        self.rows.fetch_add(rows, Relaxed);
        crash_point("sqlite/committed");
        Ok(malformed.map(|malformed| malformed.after(events)))
    }

    /// Stores the position of an event without its effect. Its account then lacks something.
    fn skip(&mut self, event: &Event) -> Result<(), StoreFault> {
        self.files.check().map_err(|error| error.fault)?;
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if self.options.content == TableContent::Records {
            tables::mark_incomplete(&transaction, event.account())?;
        }
        if tables::position(&transaction, self.outbox)?.unwrap_or(0) < event.position() {
            tables::set_position(&transaction, self.outbox, event.position())?;
        }
        Ok(transaction.commit()?)
    }

    #[cold]
    fn failure(&self, fault: StoreFault) -> SendFailure {
        failure(&self.path, self.options.content, fault)
    }
}

fn format_of(content: TableContent) -> &'static FileFormat {
    match content {
        TableContent::Records => &tables::FORMAT,
        TableContent::NostrEvents => &nostr_events::FORMAT,
        TableContent::Labels => &labels::FORMAT,
    }
}

fn create_if_missing(path: &Path, format: &FileFormat) -> Result<(), StoreError> {
    if path.try_exists().map_err(StoreError::at(path))? {
        return Ok(());
    }
    let temporary = format.create_temporary(path, |_| Ok(()))?;
    crash_point("sqlite/created");
    fs::rename(&temporary, path).map_err(StoreError::at(path))?;
    crash_point("sqlite/named");
    Ok(())
}

/// Checks the file, and lets other programs read it while it is written.
fn prepare(
    connection: &mut Connection,
    path: &Path,
    content: TableContent,
) -> Result<(), StoreFault> {
    let version = format_of(content).version_of(connection)?;
    if fs::metadata(path)?.len() <= MAX_CHECKED_BYTES {
        sqlite_file::check_pages(connection)?;
    }
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    sqlite_file::sync_commits(connection, None)?;
    if content == TableContent::Records && version < tables::FORMAT.version {
        tables::migrate(connection)?;
    }
    sqlite_file::use_log(connection)
}

/// The consequence of a fault: only faults that do not concern the content of the file pass by themselves.
#[cold]
fn failure(path: &Path, content: TableContent, fault: StoreFault) -> SendFailure {
    let start_anew = format!("name a new file and {}", content.fix());
    let (kind, reason) = match fault {
        StoreFault::InUse => (FailureKind::Fatal, IN_USE.to_owned()),
        StoreFault::NotOurs => (FailureKind::Fatal, NOT_OURS.to_owned()),
        StoreFault::OtherVersion { found, known } => (
            FailureKind::Fatal,
            format!(
                "tables of version {found}; this program writes version {known}: use the program that wrote them, or \
                 {start_anew}"
            ),
        ),
        StoreFault::Replaced => {
            (FailureKind::Fatal, format!("the file was deleted or replaced: {start_anew}"))
        }
        StoreFault::Emptied => (FailureKind::Fatal, format!("the file has 0 bytes: {start_anew}")),
        StoreFault::Damaged(what) => (
            FailureKind::Fatal,
            format!(
                "the file is damaged ({what}): restore a copy and the outbox of the same time, or {start_anew}"
            ),
        ),
        other => (FailureKind::Temporary(std::time::Duration::ZERO), other.to_string()),
    };
    SendFailure::new(kind, format!("{}: {reason}", path.display()))
}

const IN_USE: &str = "another process writes to this database: stop it, or name another file";
const NOT_OURS: &str = "not a database of wireproof for these events: name a new file, which is created with the tables";

/// Number of prepared statements that are kept.
const STATEMENTS: usize = 32;

#[cfg(test)]
mod tests;
