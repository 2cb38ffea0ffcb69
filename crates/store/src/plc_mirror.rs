//! A mirror of a did:plc directory: the operations of its export, verified in order for every account.
//!
//! | table | row |
//! |---|---|
//! | `mirror` | one: the directory, the number of the last operation that was read, how many were accepted and refused |
//! | `operation` | an accepted operation: its DID, its place in the history of the account, its number in the directory, when the directory accepted it, the rotation key that signed it, whether it was nullified, its CID, its JSON |
//! | `refused` | an operation that breaks a rule: its number, its DID, the code of the rule, and a message |
//!
//! The operations of a page and its last number are stored in one transaction. So after any end of the process the
//! mirror continues after the last page that was stored: without a gap, and without a repetition. Every row of
//! `operation` has a checksum, as SQLite has none.
//!
//! Rows of version 1 have no CID and no indexes by number and time; the next process that opens the file for writing adds
//! them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use atproto::plc::{AuditEntry, ExportLine, Limits, Operation};
use atproto::syntax::{DatetimeBuf, Did, DidBuf};
use base::Lock;
use rusqlite::{Connection, OptionalExtension, Row, params};
use verify::Verified;
use verify::plc::{
    AcceptedOperation, GrowingHistory, History, Options, PlcFault, PlcRejection, verify_audit_log,
};

use crate::checksum::{Checksum, CoveredBytes};
use crate::database::{StoreError, StoreFault};
use crate::files::{self, StateFiles};
use crate::sqlite_file::{self, FileFormat, MAX_CHECKED_BYTES};

/// A mirror that is written. One process at a time writes it; others read it with [`PlcMirrorReader`].
#[derive(Debug)]
pub struct PlcMirror {
    connection: Connection,
    files: StateFiles,
    limits: Limits,
    totals: MirrorTotals,
}

/// The content of a mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorTotals {
    /// The origin of the directory.
    pub directory: String,
    /// The number of the last operation that was read; 0 before the first.
    pub cursor: u64,
    /// Number of accepted operations.
    pub operations: u64,
    /// Number of refused operations.
    pub refused: u64,
}

/// The additions of a page of the export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedPage {
    /// Number of accepted operations.
    pub accepted: u64,
    /// The refused operations, in the order of their numbers.
    pub refused: Vec<RefusedOperation>,
}

/// An operation that breaks a rule. Its account goes on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedOperation {
    /// Its number in the directory.
    pub seq: u64,
    /// The account.
    pub did: String,
    /// The code of the broken rule.
    pub code: String,
    /// The broken rule, and the place in the history of the account.
    pub message: String,
}

impl PlcMirror {
    /// Opens the mirror of the directory of this origin at `path`; it is created if there is none.
    ///
    /// # Errors
    /// If the file is of something else or of another directory, is in use, or cannot be written.
    pub fn open(path: &Path, directory: &str) -> Result<Self, StoreError> {
        let lock = Lock::take(path)?;
        create_if_missing(path, directory)?;
        let connection = sqlite_file::open_writer(path)?;
        let prepare = || {
            let version = FORMAT.version_of(&connection)?;
            if fs::metadata(path)?.len() <= MAX_CHECKED_BYTES {
                sqlite_file::check_pages(&connection)?;
            }
            sqlite_file::sync_commits(&connection, None)?;
            sqlite_file::use_log(&connection)?;
            if version < FORMAT.version {
                upgrade(&connection)?;
            }
            let totals = read_totals(&connection)?;
            if totals.directory == directory {
                Ok(totals)
            } else {
                Err(StoreFault::OtherDirectory(totals.directory))
            }
        };
        let totals = prepare().map_err(StoreError::at(path))?;
        let files = StateFiles::new(path, lock)?;
        Ok(Self { connection, files, limits: Limits::default(), totals })
    }

    /// The content of the mirror.
    pub fn totals(&self) -> &MirrorTotals {
        &self.totals
    }

    /// Verifies and stores the operations of a page that follows the stored ones, and its last number. Lines up to the
    /// stored number are skipped.
    ///
    /// # Errors
    /// If the file cannot be written; then nothing of the page is stored.
    pub fn apply(&mut self, lines: &[ExportLine]) -> Result<AppliedPage, StoreError> {
        self.files.check()?;
        let cursor = self.totals.cursor;
        let new: Vec<&ExportLine> = lines.iter().filter(|line| line.seq > cursor).collect();
        let stored = self.store(&new).map_err(StoreError::at(self.files.path()))?;
        self.totals.cursor = new.last().map_or(cursor, |line| line.seq);
        self.totals.operations += stored.accepted;
        self.totals.refused += stored.refused.len() as u64;
        Ok(stored)
    }

    fn store(&mut self, lines: &[&ExportLine]) -> Result<AppliedPage, StoreFault> {
        let mut by_account: BTreeMap<Did<'_>, Vec<&ExportLine>> = BTreeMap::new();
        for line in lines {
            by_account.entry(line.did.as_did()).or_default().push(line);
        }
        let Some(last) = lines.last() else { return Ok(AppliedPage::default()) };
        let transaction = self.connection.transaction()?;
        let mut page = AppliedPage::default();
        for lines in by_account.values() {
            apply_account(&transaction, &self.limits, lines, &mut page)?;
        }
        page.refused.sort_by_key(|refused| refused.seq);
        for refused in &page.refused {
            insert_refused(&transaction, refused)?;
        }
        let (accepted, refused) = (page.accepted.cast_signed(), page.refused.len() as i64);
        transaction.execute(UPDATE_TOTALS, params![last.seq.cast_signed(), accepted, refused])?;
        transaction.commit()?;
        Ok(page)
    }
}

/// Verifies and stores operations of one account, which follow the stored ones.
fn apply_account(
    transaction: &Connection,
    limits: &Limits,
    lines: &[&ExportLine],
    page: &mut AppliedPage,
) -> Result<(), StoreFault> {
    let Some(did) = lines.first().map(|line| &line.did) else { return Ok(()) };
    let stored = read_operations(transaction, did)?;
    let mut seqs: Vec<u64> = stored.iter().map(|stored| stored.seq).collect();
    let accepted = stored.into_iter().map(|stored| stored.accepted).collect();
    let mut history = GrowingHistory::resume_unchecked(limits, did.clone(), accepted);
    for line in lines {
        match append(&mut history, line) {
            Ok(nullified) => {
                page.accepted += 1;
                seqs.push(line.seq);
                let changed = nullified.into_iter().chain([seqs.len() - 1]);
                for number in changed {
                    let accepted = &history.operations()[number];
                    write_operation(transaction, did.as_str(), number, seqs[number], accepted)?;
                }
            }
            Err(rejection) => page.refused.push(RefusedOperation {
                seq: line.seq,
                did: did.to_string(),
                code: rejection.code().to_owned(),
                message: rejection.to_string(),
            }),
        }
    }
    Ok(())
}

fn append(history: &mut GrowingHistory<'_>, line: &ExportLine) -> Result<Vec<usize>, PlcRejection> {
    match &line.stated {
        Ok(stated) => history.append(stated.clone()),
        Err(fault) => {
            Err(PlcRejection { index: history.operations().len(), fault: PlcFault::Form(*fault) })
        }
    }
}

/// A mirror that is read, even while another process writes it.
#[derive(Debug)]
pub struct PlcMirrorReader {
    pub(crate) path: Box<Path>,
    pub(crate) connection: Connection,
}

/// Refuses a file of an earlier version, which lacks what readers need.
fn check_version(connection: &Connection) -> Result<(), StoreFault> {
    let (found, known) = (FORMAT.version_of(connection)?, FORMAT.version);
    if found == known { Ok(()) } else { Err(StoreFault::EarlierMirror { found, known }) }
}

/// Brings a file of version 1 to the current one, in one transaction.
fn upgrade(connection: &Connection) -> Result<(), StoreFault> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch("ALTER TABLE operation RENAME TO earlier")?;
    transaction.execute_batch(CREATE_OPERATION)?;
    {
        let mut select = transaction.prepare(SELECT_EARLIER)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let (did, number): (String, i64) = (row.get(0)?, row.get(1)?);
            let damaged = || StoreFault::Damaged(format!("operation {number} of {did}"));
            let (stored, json) = read_earlier(row).ok_or_else(damaged)?;
            let sum = earlier_checksum(&did, number.cast_unsigned(), &stored, &json);
            if sum != row.get::<_, i64>(7)? {
                return Err(damaged());
            }
            write_operation(&transaction, &did, number as usize, stored.seq, &stored.accepted)?;
        }
    }
    transaction.execute_batch("DROP TABLE earlier")?;
    transaction.pragma_update(None, "user_version", FORMAT.version)?;
    Ok(transaction.commit()?)
}

/// A row of version 1, and its JSON; `None` if it is damaged.
fn read_earlier(row: &Row<'_>) -> Option<(StoredOperation, String)> {
    let json: String = row.get(6).ok()?;
    let operation = Operation::parse(json.as_bytes()).ok()?;
    let accepted = AcceptedOperation {
        cid: operation.cid(),
        operation,
        signer: row.get::<_, u32>(4).ok()? as usize,
        created_at_micros: Some(row.get(3).ok()?),
        nullified: row.get(5).ok()?,
    };
    Some((StoredOperation { seq: row.get::<_, i64>(2).ok()?.cast_unsigned(), accepted }, json))
}

fn earlier_checksum(did: &str, number: u64, stored: &StoredOperation, json: &str) -> i64 {
    let StoredOperation { seq, accepted } = stored;
    Checksum::of("operation")
        .bytes(Some(did.as_bytes()))
        .number(number)
        .number(*seq)
        .number(accepted.created_at_micros.unwrap_or_default().cast_unsigned())
        .number(accepted.signer as u64)
        .number(u64::from(accepted.nullified))
        .bytes(Some(json.as_bytes()))
        .to_integer()
}

impl PlcMirrorReader {
    /// Opens the mirror at `path`, which must exist.
    ///
    /// # Errors
    /// If it is not a mirror of this version, or cannot be read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        files::check_not_empty(path)?;
        let connection = sqlite_file::open_reader(path)?;
        check_version(&connection).map_err(StoreError::at(path))?;
        Ok(Self { path: path.into(), connection })
    }

    /// The content of the mirror.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn totals(&self) -> Result<MirrorTotals, StoreError> {
        read_totals(&self.connection).map_err(StoreError::at(&self.path))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The history of an account, verified as a whole again; `None` if the mirror has no operation of it.
    ///
    /// # Errors
    /// If it cannot be read, or the stored operations are damaged.
    pub fn history(&self, did: Did<'_>) -> Result<Option<Verified<History>>, StoreError> {
        self.try_history(&did.to_buf()).map_err(StoreError::at(&self.path))
    }

    fn try_history(&self, did: &DidBuf) -> Result<Option<Verified<History>>, StoreFault> {
        let stored = read_operations(&self.connection, did)?;
        if stored.is_empty() {
            return Ok(None);
        }
        let entries: Result<Vec<AuditEntry>, StoreFault> =
            stored.into_iter().map(|stored| stored.into_entry(did)).collect();
        let mut options = Options::default();
        options.did = Some(did.clone());
        let history = verify_audit_log(entries?, &options);
        history.map(Some).map_err(|rejection| StoreFault::Damaged(format!("{did}: {rejection}")))
    }

    /// The refused operations of an account, in the order of their numbers.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn refused(&self, did: Did<'_>) -> Result<Vec<RefusedOperation>, StoreError> {
        read_refused(&self.connection, did.as_str()).map_err(StoreError::at(&self.path))
    }
}

/// A row of `operation`.
struct StoredOperation {
    seq: u64,
    accepted: AcceptedOperation,
}

impl StoredOperation {
    /// The entry of an audit log.
    fn into_entry(self, did: &DidBuf) -> Result<AuditEntry, StoreFault> {
        let AcceptedOperation { operation, cid, created_at_micros, nullified, .. } = self.accepted;
        let created_at = created_at_micros.and_then(datetime);
        let created_at =
            created_at.ok_or_else(|| StoreFault::Damaged(format!("created of {did}")))?;
        Ok(AuditEntry { did: did.clone(), operation, cid, nullified, created_at })
    }
}

/// A moment with its microseconds, which decide about the order of operations.
fn datetime(micros: i64) -> Option<DatetimeBuf> {
    let millis = DatetimeBuf::from_unix_micros(micros)?;
    let rest = micros.rem_euclid(1000);
    format!("{}{rest:03}Z", millis.as_str().trim_end_matches('Z')).parse().ok()
}

/// The stored operations of an account, in the order of its history.
fn read_operations(
    connection: &Connection,
    did: &DidBuf,
) -> Result<Vec<StoredOperation>, StoreFault> {
    let mut select = connection.prepare_cached(SELECT_OPERATIONS)?;
    let (mut rows, mut stored) = (select.query([did.as_str()])?, Vec::new());
    while let Some(row) = rows.next()? {
        let number = stored.len();
        let operation = read_operation(row, did.as_str(), number)?;
        let damaged = || StoreFault::Damaged(format!("operation {number} of {did}"));
        stored.push(operation.ok_or_else(damaged)?);
    }
    Ok(stored)
}

/// A row; `None` if it is damaged.
fn read_operation(
    row: &Row<'_>,
    did: &str,
    number: usize,
) -> Result<Option<StoredOperation>, StoreFault> {
    let raw = RawOperation::read(row)?;
    let is_next = usize::try_from(raw.number) == Ok(number) && raw.did == did;
    if !is_next || !raw.is_intact() {
        return Ok(None);
    }
    let Ok(operation) = Operation::parse(raw.json.as_bytes()) else { return Ok(None) };
    let accepted = AcceptedOperation {
        cid: operation.cid(),
        operation,
        signer: raw.signer as usize,
        created_at_micros: Some(raw.created_at_micros),
        nullified: raw.nullified,
    };
    Ok((accepted.cid.to_string() == raw.cid).then_some(StoredOperation { seq: raw.seq, accepted }))
}

fn write_operation(
    transaction: &Connection,
    did: &str,
    number: usize,
    seq: u64,
    accepted: &AcceptedOperation,
) -> Result<(), StoreFault> {
    let (json, cid) = (accepted.operation.to_json(), accepted.cid.to_string());
    let raw = RawOperation {
        did,
        number: number as u64,
        seq,
        created_at_micros: accepted.created_at_micros.unwrap_or_default(),
        signer: accepted.signer as u32,
        nullified: accepted.nullified,
        cid: &cid,
        json: &json,
        checksum: 0,
    };
    let mut upsert = transaction.prepare_cached(UPSERT_OPERATION)?;
    upsert.execute(params![
        raw.did,
        raw.number.cast_signed(),
        raw.seq.cast_signed(),
        raw.created_at_micros,
        raw.signer,
        raw.nullified,
        raw.cid,
        raw.json,
        raw.sum()
    ])?;
    Ok(())
}

/// The columns of a row of `operation`, in the order of [`COLUMNS`].
pub(crate) struct RawOperation<'r> {
    pub(crate) did: &'r str,
    pub(crate) number: u64,
    pub(crate) seq: u64,
    pub(crate) created_at_micros: i64,
    pub(crate) signer: u32,
    pub(crate) nullified: bool,
    pub(crate) cid: &'r str,
    pub(crate) json: &'r str,
    checksum: i64,
}

impl<'r> RawOperation<'r> {
    /// A row as it is stored, which may be damaged.
    pub(crate) fn read(row: &'r Row<'_>) -> Result<Self, StoreFault> {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        Ok(Self {
            did: text(0)?,
            number: row.get::<_, i64>(1)?.cast_unsigned(),
            seq: row.get::<_, i64>(2)?.cast_unsigned(),
            created_at_micros: row.get(3)?,
            signer: row.get(4)?,
            nullified: row.get(5)?,
            cid: text(6)?,
            json: text(7)?,
            checksum: row.get(8)?,
        })
    }

    /// Whether the row is as it was written.
    pub(crate) fn is_intact(&self) -> bool {
        self.sum() == self.checksum
    }

    /// The stored checksum.
    pub(crate) fn checksum(&self) -> i64 {
        self.checksum
    }

    /// Begins a checksum of the row.
    pub(crate) fn cover(&self, covered: &mut CoveredBytes) {
        let covered = covered.begin("operation").bytes(self.did.as_bytes());
        covered.number(self.number).number(self.seq);
        covered.number(self.created_at_micros.cast_unsigned());
        covered.number(u64::from(self.signer)).number(u64::from(self.nullified));
        covered.bytes(self.cid.as_bytes()).bytes(self.json.as_bytes());
    }

    fn sum(&self) -> i64 {
        let mut covered = CoveredBytes::default();
        self.cover(&mut covered);
        covered.checksum()
    }
}

fn insert_refused(transaction: &Connection, refused: &RefusedOperation) -> Result<(), StoreFault> {
    let RefusedOperation { seq, did, code, message } = refused;
    let mut insert = transaction.prepare_cached(INSERT_REFUSED)?;
    insert.execute(params![seq.cast_signed(), did, code, message])?;
    Ok(())
}

fn read_refused(connection: &Connection, did: &str) -> Result<Vec<RefusedOperation>, StoreFault> {
    let mut select = connection.prepare_cached(SELECT_REFUSED)?;
    let rows = select.query_map([did], |row| {
        Ok(RefusedOperation {
            seq: row.get::<_, i64>(0)?.cast_unsigned(),
            did: did.to_owned(),
            code: row.get(1)?,
            message: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read_totals(connection: &Connection) -> Result<MirrorTotals, StoreFault> {
    let row = |row: &Row<'_>| {
        Ok(MirrorTotals {
            directory: row.get(0)?,
            cursor: row.get::<_, i64>(1)?.cast_unsigned(),
            operations: row.get::<_, i64>(2)?.cast_unsigned(),
            refused: row.get::<_, i64>(3)?.cast_unsigned(),
        })
    };
    let totals = connection.query_row(SELECT_TOTALS, [], row).optional()?;
    totals.ok_or_else(|| StoreFault::Damaged("the row of the mirror is missing".to_owned()))
}

fn create_if_missing(path: &Path, directory: &str) -> Result<(), StoreError> {
    if path.try_exists().map_err(StoreError::at(path))? {
        return Ok(());
    }
    let fill = |transaction: &Connection| -> Result<(), StoreFault> {
        transaction.execute(INSERT_TOTALS, [directory])?;
        Ok(())
    };
    let temporary = FORMAT.create_temporary(path, fill)?;
    fs::rename(&temporary, path).map_err(StoreError::at(path))
}

macro_rules! operation_table {
    () => {
        "
CREATE TABLE operation (
    did TEXT NOT NULL,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    created INTEGER NOT NULL,
    signer INTEGER NOT NULL,
    nullified INTEGER NOT NULL,
    cid TEXT NOT NULL,
    json TEXT NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (did, number)
) STRICT;

CREATE UNIQUE INDEX operation_seq ON operation (seq);

CREATE INDEX operation_created ON operation (created);
"
    };
}

const CREATE_OPERATION: &str = operation_table!();

const SCHEMA: &str = concat!(
    "
CREATE TABLE mirror (
    id INTEGER PRIMARY KEY NOT NULL,
    directory TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    refused INTEGER NOT NULL
) STRICT;
",
    operation_table!(),
    "
CREATE TABLE refused (
    seq INTEGER PRIMARY KEY NOT NULL,
    did TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL
) STRICT;

CREATE INDEX refused_did ON refused (did);
"
);

/// Application id: `WPpl`.
const FORMAT: FileFormat = FileFormat { application_id: 0x5750_706c, version: 2, schema: SCHEMA };

const SELECT_EARLIER: &str = "
SELECT did, number, seq, created, signer, nullified, json, checksum FROM earlier";

const SELECT_TOTALS: &str =
    "SELECT directory, cursor, operations, refused FROM mirror WHERE id = 0";

const INSERT_TOTALS: &str =
    "INSERT INTO mirror (id, directory, cursor, operations, refused) VALUES (0, ?1, 0, 0, 0)";

const UPDATE_TOTALS: &str = "
UPDATE mirror SET cursor = ?1, operations = operations + ?2, refused = refused + ?3 WHERE id = 0";

const SELECT_OPERATIONS: &str = "
SELECT did, number, seq, created, signer, nullified, cid, json, checksum FROM operation WHERE did = ?1
ORDER BY number";

const UPSERT_OPERATION: &str = "
INSERT INTO operation (did, number, seq, created, signer, nullified, cid, json, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (did, number)
DO UPDATE SET seq = ?3, created = ?4, signer = ?5, nullified = ?6, cid = ?7, json = ?8, checksum = ?9";

const INSERT_REFUSED: &str =
    "INSERT OR REPLACE INTO refused (seq, did, code, message) VALUES (?1, ?2, ?3, ?4)";

const SELECT_REFUSED: &str = "SELECT seq, code, message FROM refused WHERE did = ?1 ORDER BY seq";

#[cfg(test)]
mod tests {
    use atproto::plc::{AccountData, UnsignedOperation, Update};

    use super::*;

    /// A mirror of version 1 with one row, whose JSON has the order of keys of that version.
    fn earlier(path: &Path) -> (DidBuf, Operation) {
        let genesis =
            UnsignedOperation::Update(Update { data: AccountData::default(), prev: None });
        let operation = genesis.with_signature([7; 64]);
        let did = operation.did().unwrap();
        let json =
            operation.to_json().replacen("{\"sig\":", "{\"type\":\"plc_operation\",\"sig\":", 1);
        let json = json.replacen(",\"type\":\"plc_operation\"", "", 1);
        let accepted = AcceptedOperation {
            cid: operation.cid(),
            operation: operation.clone(),
            signer: 0,
            created_at_micros: Some(5),
            nullified: false,
        };
        let stored = StoredOperation { seq: 9, accepted };
        let sum = earlier_checksum(did.as_str(), 0, &stored, &json);
        let fill = |connection: &Connection| {
            connection.execute(INSERT_TOTALS, ["https://plc.directory"])?;
            connection.execute_batch(
                "DROP TABLE operation; CREATE TABLE operation (did TEXT NOT NULL, number INTEGER NOT NULL, seq INTEGER \
                 NOT NULL, created INTEGER NOT NULL, signer INTEGER NOT NULL, nullified INTEGER NOT NULL, json TEXT NOT \
                 NULL, checksum INTEGER NOT NULL, PRIMARY KEY (did, number)) STRICT",
            )?;
            connection.execute(
                "INSERT INTO operation VALUES (?1, 0, 9, 5, 0, 0, ?2, ?3)",
                params![did.as_str(), json, sum],
            )?;
            Ok(())
        };
        let temporary = FileFormat { version: 1, ..FORMAT }.create_temporary(path, fill).unwrap();
        fs::rename(temporary, path).unwrap();
        (did, operation)
    }

    #[test]
    fn a_mirror_of_version_1_is_brought_to_the_current_one_by_a_writer_and_refused_to_readers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plc.sqlite");
        let (did, operation) = earlier(&path);
        let fault = PlcMirrorReader::open(&path).unwrap_err().fault;
        assert_eq!(fault, StoreFault::EarlierMirror { found: 1, known: 2 });
        drop(PlcMirror::open(&path, "https://plc.directory").unwrap());
        let reader = PlcMirrorReader::open(&path).unwrap();
        let [row] = &reader.operations(did.as_str()).unwrap()[..] else { panic!("one row") };
        assert_eq!((row.seq, &row.cid), (9, &operation.cid().to_string()));
        assert_eq!(row.json, operation.to_json());
        assert_eq!(reader.operations_after_time(4, 9).unwrap(), std::slice::from_ref(row));
        assert_eq!(reader.operations_after_place("", 0, 9).unwrap(), std::slice::from_ref(row));
    }

    #[test]
    fn a_damaged_row_of_version_1_stops_the_upgrade_which_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plc.sqlite");
        earlier(&path);
        let damage = sqlite_file::open_writer(&path).unwrap();
        damage.execute("UPDATE operation SET created = 6", []).unwrap();
        drop(damage);
        for _ in 0..2 {
            let fault = PlcMirror::open(&path, "https://plc.directory").unwrap_err().fault;
            assert!(matches!(fault, StoreFault::Damaged(_)), "{fault}");
        }
    }
}
