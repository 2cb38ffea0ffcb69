//! Histories of the keys of did:plc accounts: their signed operations, and the key of an account at a given time.
//!
//! A history is stored as the directory served it, and verified as a chain every time it is read. The times of its operations
//! are statements of the directory: they are not signed.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use atproto::plc::{AuditEntry, Limits, Operation};
use atproto::syntax::Tid;
use codec::cbor::{Arena, Value, decode};
use codec::{Cid, json};
use crypto::PublicKey;
use verify::Verified;
use verify::plc::{AcceptedOperation, History, Options, verify_audit_log};

use crate::archive::Archive;
use crate::delta::Change;
use crate::error::ArchiveError;
use crate::event_rows::EventRow;
use crate::plc_rows::PlcColumns;
use crate::rule::{BrokenRule, Rule};
use crate::scan::Scan;
use crate::sealed::{Sealed, WorkId};
use crate::table::{Table, day_of};
use crate::table_file::TableFile;
use crate::table_rows::{Key, Row};
use crate::table_scan::Selection;
use crate::verification::{Finding, Verification, VerifyReport};

impl Archive {
    /// Proves the histories of keys again: a history is a chain of signed operations that begins with the hash in its DID.
    pub(crate) async fn prove_key_histories(
        &self,
        selection: &Selection,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let mut histories = KeyHistories::open(self, selection).await?;
        loop {
            histories.read_next().await?;
            let Some(StoredHistory { did, first, keys }) = &histories.current else { break };
            if !verification.has_account(did) {
                continue;
            }
            verification.report.key_histories += 1;
            if let Err(message) = keys {
                let ((file, row), code) = (first.place(), Rule::History.code());
                let file = file.to_owned();
                let did = did.to_string();
                let message = message.clone();
                let did = Some(did);
                verification.refuse(Finding { file, row: Some(row), did, code, message });
            }
        }
        Ok(())
    }

    /// Stores the histories of did:plc accounts as they were at a time, in microseconds since 1970; histories of erased
    /// accounts, and histories without the directory's times, are left out. An account's last history
    /// counts. The same work, done again, adds nothing.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn seal_key_histories(
        &self,
        mut histories: Vec<Verified<History>>,
        fetched: i64,
        work: &WorkId,
    ) -> Result<Sealed, ArchiveError> {
        if self.has_committed(Table::PlcOps, work).await? {
            return Ok(Sealed::default());
        }
        let list = self.hide_list().await?;
        list.check_erasure_keys()?;
        histories.retain(|history| !list.is_erased(history.did().as_str()));
        histories.sort_by(|a, b| a.did().as_str().cmp(b.did().as_str()));
        let mut file = TableFile::create(self.storage(), Table::PlcOps, day_of(fetched))?;
        for history in &histories {
            file.write(&rows(history, fetched))?;
        }
        let add = file.finish(self.storage()).await?;
        let sealed = Sealed {
            events: 0,
            files: u64::from(add.is_some()),
            bytes: add.as_ref().map_or(0, |add| add.size),
        };
        let txns = vec![(work.writer.clone(), work.number)];
        let add = add.into_iter().collect();
        self.commit(Table::PlcOps, &Change { operation: "WRITE", add, txns, ..Change::default() })
            .await?;
        Ok(sealed)
    }
}

fn rows(history: &History, fetched: i64) -> RecordBatch {
    let mut did = StringBuilder::new();
    let mut at = TimestampMicrosecondBuilder::new();
    let mut seq = Int64Builder::new();
    let mut cid = BinaryBuilder::new();
    let mut created = TimestampMicrosecondBuilder::new();
    let mut nullified = BooleanBuilder::new();
    let mut op = BinaryBuilder::new();
    for (number, accepted) in (0..).zip(history.operations()) {
        let Some(created_at) = accepted.created_at_micros else { continue };
        did.append_value(history.did().as_str());
        at.append_value(fetched);
        seq.append_value(number);
        cid.append_value(accepted.cid.as_bytes());
        created.append_value(created_at);
        nullified.append_value(accepted.nullified);
        op.append_value(accepted.operation.to_bytes());
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(did.finish()),
        Arc::new(at.finish().with_timezone("UTC")),
        Arc::new(seq.finish()),
        Arc::new(cid.finish()),
        Arc::new(created.finish().with_timezone("UTC")),
        Arc::new(nullified.finish()),
        Arc::new(op.finish()),
    ];
    RecordBatch::try_new(Table::PlcOps.schema(), columns).expect("the columns of the table")
}

/// The stored histories, in the order of their accounts.
pub(crate) struct KeyHistories {
    rows: Scan<PlcColumns>,
    next: Option<Row<PlcColumns>>,
    current: Option<StoredHistory>,
}

/// The last history of an account.
pub(crate) struct StoredHistory {
    did: Box<str>,
    /// Its first row.
    first: Row<PlcColumns>,
    keys: Result<KeyHistory, String>,
}

impl KeyHistories {
    pub(crate) async fn open(
        archive: &Archive,
        selection: &Selection,
    ) -> Result<Self, ArchiveError> {
        let mut rows = archive.scan(selection).await?;
        Ok(Self { next: rows.next().await?, rows, current: None })
    }

    /// Checks the key of an event, if it is verified and there is a history of its account; `false` if it is refused. No
    /// account may come before one that was asked for.
    pub(crate) async fn admit(
        &mut self,
        row: &EventRow,
        verification: &mut Verification<'_>,
    ) -> Result<bool, ArchiveError> {
        let event = row.event();
        let (Some(did), Some(key), true) = (event.did, event.key, event.is_verified()) else {
            return Ok(true);
        };
        let signed = SignedAt { rev: row.rev(), received: event.received };
        let checked = self.check(did, key, signed, &mut verification.report).await?;
        Ok(checked
            .map_err(|(code, message)| verification.refuse(Finding::of(row, code, message)))
            .is_ok())
    }

    /// Checks that an account had a key at a time. No account may come before one that was asked for.
    pub(crate) async fn check(
        &mut self,
        did: &str,
        key: &str,
        signed: SignedAt<'_>,
        report: &mut VerifyReport,
    ) -> Result<Result<(), BrokenRule>, ArchiveError> {
        self.skip_to(did).await?;
        // A history that is refused is a finding of its own.
        let history = self.current.as_ref().filter(|current| *current.did == *did);
        let Some(Ok(keys)) = history.map(|history| &history.keys) else { return Ok(Ok(())) };
        report.compared_keys += 1;
        Ok(keys.check_commit(key, signed))
    }

    /// The keys of one account, if there is a history of it that is not refused.
    pub(crate) async fn of_account(
        archive: &Archive,
        did: &str,
        without: &Arc<BTreeSet<String>>,
    ) -> Result<Option<KeyHistory>, ArchiveError> {
        let did_only = Some(did.to_owned());
        let selection =
            Selection { did: did_only, without: without.clone(), ..Selection::default() };
        let mut histories = Self::open(archive, &selection).await?;
        histories.skip_to(did).await?;
        let history = histories.current.filter(|current| *current.did == *did);
        Ok(history.and_then(|history| history.keys.ok()))
    }

    /// Reads on to the history of an account, or to the one after its place.
    async fn skip_to(&mut self, did: &str) -> Result<(), ArchiveError> {
        if self.current.as_ref().is_some_and(|current| *current.did >= *did) {
            return Ok(());
        }
        if self.next.as_ref().is_some_and(|row| row.did() < did) {
            let place = Key { did: Some(did.into()), number: i64::MIN, text: None };
            self.rows.skip_to(&place).await?;
            self.next = self.rows.next().await?;
        }
        self.read_next().await
    }

    /// Reads the next history: the rows of an account that were fetched last.
    async fn read_next(&mut self) -> Result<(), ArchiveError> {
        self.current = None;
        let mut rows: Vec<Row<PlcColumns>> = Vec::new();
        while let Some(row) = self.next.take() {
            match rows.first() {
                Some(first) if first.did() != row.did() => {
                    self.next = Some(row);
                    break;
                }
                Some(first) if first.fetched() < row.fetched() => rows.clear(),
                _ => {}
            }
            // One row over the limit is enough to refuse the history.
            if rows.len() <= Limits::default().operations {
                rows.push(row);
            }
            self.next = self.rows.next().await?;
        }
        self.current = rows.first().cloned().map(|first| StoredHistory {
            did: first.did().into(),
            keys: KeyHistory::of(&rows),
            first,
        });
        Ok(())
    }
}

/// When something was signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignedAt<'a> {
    /// The revision, if there is one. The account states it.
    pub(crate) rev: Option<&'a str>,
    /// When it was received, in microseconds since 1970.
    pub(crate) received: i64,
}

impl SignedAt<'_> {
    /// The times within which the key must have been the account's: from a day before the revision, since a looked-up key is
    /// used that long, to a few minutes after the arrival, since the key can be looked up then.
    fn span(self) -> (i64, i64) {
        let rev = self.rev.and_then(|rev| rev.parse::<Tid>().ok());
        let signed = rev.map_or(self.received, |rev| rev.micros() as i64);
        let first = signed.min(self.received).saturating_sub(MAX_KEY_AGE_MICROS);
        (first, self.received.saturating_add(MAX_LOOKUP_MICROS))
    }
}

/// The keys of an account over time.
pub(crate) struct KeyHistory(Vec<KeyPeriod>);

/// A time in which an account had a key.
struct KeyPeriod {
    /// Its start, in microseconds since 1970; it ends where the next one begins.
    created: i64,
    /// The did:key that signs commits, if there is one of a curve of the AT Protocol.
    commit_key: Option<String>,
    /// The did:key that signs labels, if there is one of such a curve.
    label_key: Option<String>,
    /// Whether the operation was nullified afterwards.
    nullified: bool,
}

impl KeyHistory {
    /// Verifies the operations.
    fn of(rows: &[Row<PlcColumns>]) -> Result<Self, String> {
        let mut options = Options::default();
        let max = options.limits.operations;
        if rows.len() > max {
            return Err(format!("the stored history has more than {max} operations"));
        }
        let entries: Result<Vec<AuditEntry>, String> = rows.iter().map(entry).collect();
        options.did = rows.first().and_then(|row| row.did().parse().ok());
        let history = verify_audit_log(entries?, &options).map_err(|rejection| {
            format!("the stored history is refused ({}): {rejection}", rejection.code())
        })?;
        Ok(Self(history.operations().iter().map(KeyPeriod::of).collect()))
    }

    /// Checks that the account had a key of commits within the span of a signature.
    fn check_commit(&self, key: &str, signed: SignedAt<'_>) -> Result<(), BrokenRule> {
        self.check(key, |period| period.commit_key.as_deref(), signed)
    }

    /// Checks that the account had a key of labels when one was received, in microseconds since 1970.
    pub(crate) fn check_label(&self, key: &str, received: i64) -> Result<(), BrokenRule> {
        let signed = SignedAt { rev: None, received };
        self.check(key, |period| period.label_key.as_deref(), signed)
    }

    fn check(
        &self,
        key: &str,
        key_of: impl Fn(&KeyPeriod) -> Option<&str>,
        signed: SignedAt<'_>,
    ) -> Result<(), BrokenRule> {
        let (from, to) = signed.span();
        let ends = self.0.iter().skip(1).map(|next| next.created).chain([i64::MAX]);
        let mut held = self.0.iter().zip(ends).filter(|(period, end)| {
            period.created <= to && *end > from && key_of(period) == Some(key)
        });
        if held.clone().any(|(period, _)| !period.nullified) {
            return Ok(());
        }
        if held.next().is_some() {
            let message =
                format!("the operation that gave the account the key {key} was nullified");
            return Err((Rule::NullifiedKey.code(), message));
        }
        let message = format!("the account did not have the key {key} then, by its history");
        Err((Rule::Key.code(), message))
    }
}

impl KeyPeriod {
    fn of(accepted: &AcceptedOperation) -> Self {
        let data = accepted.operation.unsigned().to_data();
        let read = |key: Option<&str>| Some(PublicKey::from_did_key(key?).ok()?.to_did_key());
        Self {
            created: accepted.created_at_micros.unwrap_or(i64::MIN),
            commit_key: data.as_ref().and_then(|data| read(data.signing_key())),
            label_key: data.as_ref().and_then(|data| read(data.label_key())),
            nullified: accepted.nullified,
        }
    }
}

/// An operation of a row, with the directory's statements about it.
fn entry(row: &Row<PlcColumns>) -> Result<AuditEntry, String> {
    let fault = |what: &str| format!("operation {} of the stored history: {what}", row.seq());
    let created_at = jiff::Timestamp::from_microsecond(row.created())
        .ok()
        .and_then(|time| time.to_string().parse().ok());
    Ok(AuditEntry {
        did: row.did().parse().map_err(|_| fault("did is no DID"))?,
        operation: operation(row.op()).ok_or_else(|| fault("op is no operation"))?,
        cid: Cid::from_bytes(row.cid()).ok_or_else(|| fault("cid is no CID"))?,
        nullified: row.is_nullified(),
        created_at: created_at.ok_or_else(|| fault("created is no time"))?,
    })
}

/// An operation in DAG-CBOR; the row states the CID of these bytes.
fn operation(bytes: &[u8]) -> Option<Operation> {
    let arena = Arena::new();
    let value: Value<'_> = decode(bytes, &arena).ok()?;
    Operation::parse(json::encode(&value).ok()?.as_bytes()).ok()
}

/// How long a key is used after it was looked up: as long as `follow` does.
const MAX_KEY_AGE_MICROS: i64 = 24 * 3600 * 1_000_000;

/// How long after the arrival a key is looked up, with the difference between two clocks.
const MAX_LOOKUP_MICROS: i64 = 10 * 60 * 1_000_000;
