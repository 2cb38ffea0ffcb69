//! The SQLite file of an outbox: its schema and rows.
//!
//! | table | row |
//! |---|---|
//! | `outbox` | one: the identity of the outbox, the next position, and the checksum of both and of all consumers |
//! | `batch` | the events that one transaction stored, up to [`MAX_BATCH_BYTES`]: first position, time, bytes |
//! | `digest` | the digests of the events of a batch, and the keys of their repetitions: kept longer than their bytes |
//! | `consumer` | a name, its cursor, and a bit per position after it that may be acknowledged |
//! | `account`, `record`, `record_count` | the records that events have brought: `known_records.rs` |
//!
//! SQLite's main file has no checksums. The digests are compared whenever a batch is read, and the one checksum of the
//! small tables when the file is opened, so that a lost or changed row is an error.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base::crash_point;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};
use store::StoreFault;
use store::checksum::Checksum;
use store::sqlite_file::{self, FileFormat, MAX_CHECKED_BYTES};

use crate::error::{OutboxError, OutboxFault};
use crate::event::{self, Batch, Digest};
use crate::known_records;
use crate::window::AckWindow;

/// The content of a file, without the bytes of its events.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) identity: OutboxIdentity,
    /// Position of the next event.
    pub(crate) next: u64,
    pub(crate) consumers: Consumers,
    pub(crate) stored: VecDeque<StoredBatch>,
    /// The keys of repetitions of the last events, in their order.
    pub(crate) keys: Vec<Digest>,
    /// Whether there is an account with a history.
    pub(crate) has_histories: bool,
}

/// The acknowledgements of all consumers, by name.
pub(crate) type Consumers = BTreeMap<Box<str>, AckWindow>;

/// A batch in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredBatch {
    pub(crate) first: u64,
    pub(crate) appended_micros: u64,
    pub(crate) bytes: u64,
}

/// Identifies an outbox: a new file, whose positions start over, has another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutboxIdentity(pub [u8; 16]);

impl OutboxIdentity {
    /// An identity that no other outbox has: half a hash of the time, the process and random keys of the system.
    fn new() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let random = [0, 1].map(|number| RandomState::new().hash_one(number).to_le_bytes());
        let parts: [&[u8]; 3] = [&time.to_le_bytes(), &random[0], &random[1]];
        Self(event::truncated(&kernels::sha256::digest_parts(&parts)))
    }
}

impl std::fmt::Display for OutboxIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Creates the file if there is none.
pub(crate) fn create_if_missing(path: &Path) -> Result<(), OutboxError> {
    if path.try_exists().map_err(OutboxError::at(path))? {
        return Ok(());
    }
    let fill = |transaction: &Connection| {
        let insert = "INSERT INTO outbox (id, identity, next, checksum) VALUES (0, ?1, 1, 0)";
        let identity = OutboxIdentity::new();
        transaction.execute(insert, [identity.0])?;
        transaction.execute_batch(known_records::SCHEMA)?;
        seal(transaction, identity, 1, &Consumers::new())
    };
    let temporary = FORMAT.create_temporary(path, fill)?;
    crash_point("outbox/created");
    fs::rename(&temporary, path).map_err(OutboxError::at(path))?;
    crash_point("outbox/named");
    Ok(())
}

/// Opens the writing connection of a file that exists, and reads its content.
pub(crate) fn open_writer(
    path: &Path,
    max_file_bytes: Option<u64>,
) -> Result<(Connection, Contents), OutboxError> {
    let mut writer = sqlite_file::open_writer(path)?;
    let prepare = || -> Result<_, OutboxFault> {
        let version = FORMAT.version_of(&writer)?;
        if fs::metadata(path)?.len() <= MAX_CHECKED_BYTES {
            sqlite_file::check_pages(&writer)?;
        }
        sqlite_file::sync_commits(&writer, max_file_bytes)?;
        if version < FORMAT.version {
            migrate(&mut writer, version)?;
        }
        let contents = read_contents(&writer)?;
        sqlite_file::use_log(&writer)?;
        if sqlite_file::is_mostly_free(&writer)? {
            // Best effort: without space for the copy, the free pages are reused.
            let _ = writer.execute_batch("VACUUM");
        }
        Ok((writer, contents))
    };
    prepare().map_err(OutboxError::at(path))
}

/// Brings a file of an earlier version to the current one: version 1 has no records, version 2 has their number per
/// account, version 3 has digests alone, version 4 no selection.
fn migrate(writer: &mut Connection, version: i64) -> Result<(), OutboxFault> {
    let transaction = writer.transaction()?;
    match version {
        1 => transaction.execute_batch(known_records::SCHEMA)?,
        2 => transaction.execute_batch(known_records::COUNT_TOGETHER)?,
        _ => {}
    }
    if version < 4 {
        transaction.execute_batch(ADD_KEYS)?;
    }
    if version > 1 {
        transaction.execute_batch(known_records::ADD_SELECTION)?;
    }
    transaction.pragma_update(None, "user_version", FORMAT.version)?;
    Ok(transaction.commit()?)
}

fn read_contents(connection: &Connection) -> Result<Contents, OutboxFault> {
    let reading = connection.unchecked_transaction()?;
    let select = "SELECT identity, next, checksum FROM outbox WHERE id = 0";
    let row = |row: &rusqlite::Row<'_>| {
        Ok((
            row.get::<_, [u8; 16]>(0)?,
            row.get::<_, i64>(1)?.cast_unsigned(),
            row.get::<_, i64>(2)?,
        ))
    };
    let found = reading.query_row(select, [], row).optional()?;
    let (identity, next, stored_checksum) = found.ok_or_else(|| damaged("the outbox row"))?;
    let (identity, consumers) = (OutboxIdentity(identity), read_consumers(&reading)?);
    if checksum(identity, next, &consumers) != stored_checksum {
        return Err(damaged("the checksum of the cursors is wrong"));
    }
    if consumers.values().any(|window| window.cursor() >= next) {
        return Err(damaged("a cursor beyond the last event"));
    }
    let (stored, keys) = (read_stored(&reading, next)?, read_keys(&reading, next)?);
    let has_histories = known_records::has_accounts(&reading)?;
    Ok(Contents { identity, next, consumers, stored, keys, has_histories })
}

fn read_consumers(connection: &Connection) -> Result<Consumers, OutboxFault> {
    let mut select = connection.prepare("SELECT name, cursor, ahead FROM consumer")?;
    let (mut rows, mut consumers) = (select.query([])?, Consumers::new());
    while let Some(row) = rows.next()? {
        let (name, cursor): (String, i64) = (row.get(0)?, row.get(1)?);
        let window = AckWindow::from_bits(cursor.cast_unsigned(), &row.get::<_, Vec<u8>>(2)?);
        consumers.insert(name.into(), window.ok_or_else(|| damaged("a window of a consumer"))?);
    }
    Ok(consumers)
}

fn read_stored(connection: &Connection, next: u64) -> Result<VecDeque<StoredBatch>, OutboxFault> {
    let mut select =
        connection.prepare("SELECT first, appended, length(data) FROM batch ORDER BY first")?;
    let row = |row: &rusqlite::Row<'_>| {
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        Ok(StoredBatch { first: number(0)?, appended_micros: number(1)?, bytes: number(2)? })
    };
    let stored = select.query_map([], row)?.collect::<Result<VecDeque<_>, _>>()?;
    if stored.back().is_some_and(|last| last.first >= next) {
        Err(damaged("a batch beyond the last event"))
    } else {
        Ok(stored)
    }
}

fn read_keys(connection: &Connection, next: u64) -> Result<Vec<Digest>, OutboxFault> {
    let mut select =
        connection.prepare("SELECT keys FROM digest WHERE first >= ?1 ORDER BY first")?;
    let oldest = next.saturating_sub(MAX_REMEMBERED).cast_signed();
    let rows = select.query_map([oldest], |row| row.get::<_, Vec<u8>>(0))?;
    let mut keys = Vec::new();
    for row in rows {
        keys.extend(row?.as_chunks::<16>().0);
    }
    Ok(keys)
}

/// Appends a batch.
pub(crate) fn insert_batch(
    transaction: &Connection,
    batch: &Batch,
    digests: &[Digest],
    keys: &[Digest],
) -> Result<(), OutboxFault> {
    let (first, appended) = (batch.first.cast_signed(), batch.appended_micros.cast_signed());
    let insert = "INSERT INTO batch (first, appended, data) VALUES (?1, ?2, ?3)";
    transaction.prepare_cached(insert)?.execute(params![first, appended, &batch.data[..]])?;
    let insert = "INSERT INTO digest (first, digests, keys) VALUES (?1, ?2, ?3)";
    let row = params![first, digests.as_flattened(), keys.as_flattened()];
    transaction.prepare_cached(insert)?.execute(row)?;
    Ok(())
}

/// Deletes the batches whose first event is before `first`, and their digests where they are old enough.
pub(crate) fn delete_before(
    transaction: &Connection,
    first: u64,
    next: u64,
) -> Result<(), OutboxFault> {
    let delete = "DELETE FROM batch WHERE first < ?1";
    transaction.prepare_cached(delete)?.execute([first.cast_signed()])?;
    let oldest = first.min(next.saturating_sub(MAX_REMEMBERED));
    let delete = "DELETE FROM digest WHERE first < ?1";
    transaction.prepare_cached(delete)?.execute([oldest.cast_signed()])?;
    Ok(())
}

/// Stores a consumer; `None` deletes it.
pub(crate) fn write_consumer(
    transaction: &Connection,
    name: &str,
    window: Option<&AckWindow>,
) -> Result<(), OutboxFault> {
    let Some(window) = window else {
        transaction.prepare_cached("DELETE FROM consumer WHERE name = ?1")?.execute([name])?;
        return Ok(());
    };
    let upsert = "INSERT INTO consumer (name, cursor, ahead) VALUES (?1, ?2, ?3) \
                  ON CONFLICT (name) DO UPDATE SET cursor = ?2, ahead = ?3";
    let row = params![name, window.cursor().cast_signed(), window.to_bits()];
    transaction.prepare_cached(upsert)?.execute(row)?;
    Ok(())
}

/// Stores the next position, and the checksum of it and of all consumers.
pub(crate) fn seal(
    transaction: &Connection,
    identity: OutboxIdentity,
    next: u64,
    consumers: &Consumers,
) -> Result<(), StoreFault> {
    let update = "UPDATE outbox SET next = ?1, checksum = ?2 WHERE id = 0";
    let row = [next.cast_signed(), checksum(identity, next, consumers)];
    match transaction.prepare_cached(update)?.execute(row)? {
        1 => Ok(()),
        _ => Err(StoreFault::Damaged("the outbox row".to_owned())),
    }
}

fn checksum(identity: OutboxIdentity, next: u64, consumers: &Consumers) -> i64 {
    let sum = Checksum::of("outbox").bytes(Some(&identity.0)).number(next);
    let add = |sum: Checksum, (name, window): (&str, &AckWindow)| {
        sum.bytes(Some(name.as_bytes())).number(window.cursor()).bytes(Some(&window.to_bits()))
    };
    consumers.iter().map(|(name, window)| (&**name, window)).fold(sum, add).to_integer()
}

/// Reads the batch that contains a position, and compares its digests.
pub(crate) fn read_batch(connection: &Connection, position: u64) -> Result<Batch, OutboxFault> {
    let mut select = connection.prepare_cached(SELECT_BATCH)?;
    let row = |row: &rusqlite::Row<'_>| {
        let number = |at| row.get::<_, i64>(at).map(i64::cast_unsigned);
        let (data, digests) = (row.get::<_, Vec<u8>>(2)?, row.get::<_, Vec<u8>>(3)?);
        Ok((Batch { first: number(0)?, appended_micros: number(1)?, data: data.into() }, digests))
    };
    let found = select.query_row([position.cast_signed()], row).optional()?;
    let missing = || damaged(&format!("event {position} is missing"));
    let (batch, stored) = found.ok_or_else(missing)?;
    let digests = event::digests(&batch.data).filter(|digests| digests.as_flattened() == stored);
    let count =
        digests.ok_or_else(|| damaged(&format!("a digest of batch {}", batch.first)))?.len();
    if position - batch.first < count as u64 { Ok(batch) } else { Err(missing()) }
}

/// A batch with these events, from `first` on.
pub(crate) fn new_batch(first: u64, data: Vec<u8>) -> Batch {
    Batch { first, appended_micros: now_micros(), data: Bytes::from(data) }
}

/// The time in microseconds since 1970.
pub(crate) fn now_micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

#[cold]
fn damaged(what: &str) -> OutboxFault {
    OutboxFault::Damaged(what.to_owned())
}

const SCHEMA: &str = "
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY NOT NULL,
    identity BLOB NOT NULL,
    next INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

CREATE TABLE batch (
    first INTEGER PRIMARY KEY NOT NULL,
    appended INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE digest (
    first INTEGER PRIMARY KEY NOT NULL,
    digests BLOB NOT NULL,
    keys BLOB NOT NULL
) STRICT;

CREATE TABLE consumer (
    name TEXT PRIMARY KEY NOT NULL,
    cursor INTEGER NOT NULL,
    ahead BLOB NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Application id: `WPob`.
pub(crate) const FORMAT: FileFormat =
    FileFormat { application_id: 0x5750_6f62, version: 5, schema: SCHEMA };

/// Adds the keys of repetitions to a file that has digests alone.
const ADD_KEYS: &str = "
ALTER TABLE digest ADD COLUMN keys BLOB NOT NULL DEFAULT x'';
UPDATE digest SET keys = digests;
";

const SELECT_BATCH: &str = "
SELECT batch.first, appended, data, digests FROM batch JOIN digest ON digest.first = batch.first
WHERE batch.first <= ?1 ORDER BY batch.first DESC LIMIT 1";

/// Number of events at the end whose repetitions are detected. A source has fewer in flight.
pub(crate) const MAX_REMEMBERED: u64 = 65_536;

/// Size in bytes at which a batch ends.
pub(crate) const MAX_BATCH_BYTES: usize = 1 << 20;

/// Number of events at which a batch ends.
pub(crate) const MAX_BATCH_EVENTS: usize = 4096;
