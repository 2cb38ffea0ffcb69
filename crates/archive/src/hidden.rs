//! Content that readers must not show: hidden accounts and records, and accounts that were erased.
//!
//! Every change is a row of the table `hidden`; the last one about an account or a record counts. An erased account is named
//! by a keyed hash alone, so that its events are dropped if they come again, until its own server says that it is active
//! again.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{
    Array, ArrayRef, BinaryArray, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use atproto::event::{Decoder, Event, Options};
use futures_util::TryStreamExt;

use crate::archive::Archive;
use crate::delta::Change;
use crate::erasures::{AccountHash, Erasure, Erasures};
use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::rows::timestamps;
use crate::table::{Table, day_of};
use crate::table_file::TableFile;
use crate::table_rows::{Columns, Key, times};

/// An account or a record that is hidden or shown again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// All of an account.
    Account(String),
    /// One record.
    Record {
        /// The account.
        did: String,
        /// The collection.
        collection: String,
        /// The record key.
        rkey: String,
    },
}

impl Subject {
    /// The account.
    pub fn did(&self) -> &str {
        match self {
            Self::Account(did) | Self::Record { did, .. } => did,
        }
    }
}

/// The accounts and records that readers leave out.
#[derive(Clone, Debug, Default)]
pub struct HideList {
    accounts: HashSet<String>,
    /// The hidden records by account: collection and record key.
    records: HashMap<String, BTreeSet<(String, String)>>,
    erasures: Erasures,
    /// The time of the last change.
    last_at: i64,
}

impl HideList {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.records.is_empty() && self.erasures.is_empty()
    }

    /// Whether nothing of an account is shown.
    pub fn has_account(&self, did: &str) -> bool {
        self.accounts.contains(did) || self.is_erased(did)
    }

    /// Whether a record is not shown.
    pub fn has_record(&self, did: &str, collection: &str, rkey: &str) -> bool {
        self.has_account(did) || self.names_record(did, collection, rkey)
    }

    /// Whether a record is hidden by its path.
    pub(crate) fn names_record(&self, did: &str, collection: &str, rkey: &str) -> bool {
        let is_named = |records: &BTreeSet<(String, String)>| {
            records.contains(&(collection.to_owned(), rkey.to_owned()))
        };
        self.records.get(did).is_some_and(is_named)
    }

    /// Whether single records of an account are hidden.
    pub fn has_records_of(&self, did: &str) -> bool {
        self.records.get(did).is_some_and(|records| !records.is_empty())
    }

    /// Whether single records are hidden.
    pub(crate) fn has_records(&self) -> bool {
        !self.records.is_empty()
    }

    /// Whether an event is not shown: as its account, or with one of its records, since a frame cannot be shown in part.
    pub(crate) fn hides(&self, event: &ArchivedEvent<'_>) -> bool {
        let did = event.did.filter(|_| !self.is_empty());
        did.is_some_and(|did| self.has_account(did) || self.hides_frame(did, event.frame))
    }

    /// Whether a frame of an account has an operation on a hidden record.
    pub fn hides_frame(&self, did: &str, frame: &[u8]) -> bool {
        let Some(records) = self.records.get(did) else { return false };
        let is_hidden = |path: &str| {
            let (collection, rkey) = path.split_once('/').unwrap_or((path, ""));
            records.contains(&(collection.to_owned(), rkey.to_owned()))
        };
        match Decoder::new(Options::default()).decode(frame) {
            Ok(Event::Commit(commit)) => commit.ops.iter().any(|op| is_hidden(op.path)),
            _ => false,
        }
    }

    /// Whether an account was erased and has not been active since, as far as its hash can be recognized.
    pub fn is_erased(&self, did: &str) -> bool {
        self.erasure(did).is_some_and(|erasure| erasure.restored.is_none())
    }

    /// The keys under which accounts were erased, with the HMAC-SHA-256 of the DIDs.
    pub fn erased_hashes(&self) -> Vec<(&[u8], Vec<&[u8; 32]>)> {
        self.erasures.by_key()
    }

    /// Refuses to store events where an account may be erased and cannot be recognized.
    ///
    /// # Errors
    /// If accounts were erased under a secret that the archive was opened without.
    pub fn check_erasure_keys(&self) -> Result<(), ArchiveError> {
        self.erasures.check_keys().map_err(ArchiveError::at(Table::Hidden.name()))
    }

    /// Whether no account was ever erased.
    pub(crate) fn has_no_erasure(&self) -> bool {
        self.erasures.is_empty()
    }

    /// Number of erased accounts.
    pub fn erased_accounts(&self) -> usize {
        self.erasures.count()
    }

    /// The last erasure of an account.
    pub(crate) fn erasure(&self, did: &str) -> Option<Erasure> {
        self.erasures.find(did).map(|(_, erasure)| erasure)
    }

    /// Applies the row of a change.
    fn apply(&mut self, row: &HiddenRow) {
        match (row.action.as_str(), &row.account, &row.subject) {
            (ERASE, Some(account), _) => self.erasures.erase(*account, row.at),
            (RESTORE, Some(account), _) => self.erasures.restore(*account, row.at),
            (HIDE, _, Some(Subject::Account(did))) => drop(self.accounts.insert(did.clone())),
            (UNHIDE, _, Some(Subject::Account(did))) => drop(self.accounts.remove(did)),
            (HIDE, _, Some(Subject::Record { did, collection, rkey })) => {
                let records = self.records.entry(did.clone()).or_default();
                records.insert((collection.clone(), rkey.clone()));
            }
            (UNHIDE, _, Some(Subject::Record { did, collection, rkey })) => {
                let Some(records) = self.records.get_mut(did) else { return };
                records.remove(&(collection.clone(), rkey.clone()));
                if records.is_empty() {
                    self.records.remove(did);
                }
            }
            _ => {}
        }
    }
}

/// The columns of `hidden` by which it is sorted.
#[derive(Debug)]
pub(crate) struct HiddenColumns {
    at: TimestampMicrosecondArray,
}

impl Columns for HiddenColumns {
    const TABLE: Table = Table::Hidden;

    fn new(rows: &RecordBatch) -> Self {
        Self { at: times(rows, "at") }
    }

    fn key(&self, row: usize) -> Key {
        Key { did: None, number: self.at.value(row), text: None }
    }
}

/// A row of the table.
struct HiddenRow {
    at: i64,
    action: String,
    account: Option<AccountHash>,
    subject: Option<Subject>,
}

impl Archive {
    /// The accounts and records that readers leave out, as of now.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn hide_list(&self) -> Result<HideList, ArchiveError> {
        self.hide_list_without(&BTreeSet::new()).await
    }

    /// The accounts and records that readers leave out, by files of the table other than these paths within the
    /// archive.
    pub(crate) async fn hide_list_without(
        &self,
        without: &BTreeSet<String>,
    ) -> Result<HideList, ArchiveError> {
        let snapshot = self.snapshot(Table::Hidden).await?;
        let key =
            snapshot.metadata.as_ref().map(|metadata| metadata.id.clone()).unwrap_or_default();
        let erasures = Erasures::of(&key, self.erasure_key());
        let mut list = HideList { erasures, ..HideList::default() };
        let mut rows = Vec::new();
        let is_read = |path: &&String| {
            without.is_empty() || !without.contains(&format!("{}/{path}", Table::Hidden.name()))
        };
        for path in snapshot.files.keys().filter(is_read) {
            let mut batches = self.batches(Table::Hidden, path).await?;
            while let Some(batch) = batches.try_next().await? {
                rows.extend((0..batch.num_rows()).map(|row| hidden_row(&batch, row)));
            }
        }
        rows.sort_by_key(|row| row.at);
        list.last_at = rows.last().map_or(i64::MIN, |row| row.at);
        rows.iter().for_each(|row| list.apply(row));
        Ok(list)
    }

    /// Hides an account or a record from readers. Its bytes stay, and are proved again by `verify`.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn hide(
        &self,
        subject: &Subject,
        reason: &str,
        now_micros: i64,
    ) -> Result<(), ArchiveError> {
        self.change_hidden(HIDE, Some(subject), None, reason, now_micros).await
    }

    /// Shows an account or a record again.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn unhide(
        &self,
        subject: &Subject,
        reason: &str,
        now_micros: i64,
    ) -> Result<(), ArchiveError> {
        self.change_hidden(UNHIDE, Some(subject), None, reason, now_micros).await
    }

    /// Records that an account was erased.
    pub(crate) async fn mark_erased(
        &self,
        did: &str,
        reason: &str,
        now_micros: i64,
    ) -> Result<(), ArchiveError> {
        if self.snapshot(Table::Hidden).await?.metadata.is_none() {
            // The table has an identity from its first entry on.
            let change = Change { operation: "CREATE TABLE", ..Change::default() };
            self.commit(Table::Hidden, &change).await?;
        }
        let account = self.hide_list().await?.erasures.hash(did);
        let account = account.map_err(ArchiveError::at(Table::Hidden.name()))?;
        self.change_hidden(ERASE, None, Some(account), reason, now_micros).await
    }

    /// Records that an erased account is active again, from `received` on: earlier events stay dropped.
    pub(crate) async fn mark_restored(
        &self,
        did: &str,
        list: &HideList,
        received: i64,
    ) -> Result<(), ArchiveError> {
        let Some((account, _)) = list.erasures.find(did) else { return Ok(()) };
        self.change_hidden(RESTORE, None, Some(account), "active again", received).await
    }

    async fn change_hidden(
        &self,
        action: &str,
        subject: Option<&Subject>,
        account: Option<AccountHash>,
        reason: &str,
        now_micros: i64,
    ) -> Result<(), ArchiveError> {
        let at = match action {
            // It is later than the erasure, and says from when on events are stored again.
            RESTORE => now_micros,
            // Changes are in the order of their times, whatever the clock does.
            _ => now_micros.max(self.hide_list().await?.last_at.saturating_add(1)),
        };
        let path = match subject {
            Some(Subject::Record { collection, rkey, .. }) => (Some(&**collection), Some(&**rkey)),
            _ => (None, None),
        };
        let text = |text: Option<&str>| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(timestamps(at)),
            text(Some(action)),
            text(subject.map(Subject::did)),
            text(path.0),
            text(path.1),
            Arc::new(BinaryArray::from_iter([account.map(AccountHash::to_bytes)])),
            text(Some(reason)),
        ];
        let row = RecordBatch::try_new(Table::Hidden.schema(), columns)
            .expect("the columns of the table");
        let mut file = TableFile::create(self.storage(), Table::Hidden, day_of(at))?;
        file.write(&row)?;
        let add = file.finish(self.storage()).await?.into_iter().collect();
        self.commit(Table::Hidden, &Change { operation: "WRITE", add, ..Change::default() })
            .await?;
        Ok(())
    }
}

fn hidden_row(batch: &RecordBatch, row: usize) -> HiddenRow {
    let column =
        |name: &str| batch.column_by_name(name).expect("the file has the columns of its table");
    let text = |name: &str| {
        let column = column(name).as_string::<i32>();
        column.is_valid(row).then(|| column.value(row).to_owned())
    };
    let account = column("account").as_binary::<i32>();
    let subject = match (text("did"), text("collection"), text("rkey")) {
        (Some(did), Some(collection), Some(rkey)) => {
            Some(Subject::Record { did, collection, rkey })
        }
        (Some(did), ..) => Some(Subject::Account(did)),
        _ => None,
    };
    HiddenRow {
        at: column("at").as_primitive::<TimestampMicrosecondType>().value(row),
        action: text("action").unwrap_or_default(),
        account: account.is_valid(row).then(|| AccountHash::read(account.value(row))).flatten(),
        subject,
    }
}

const HIDE: &str = "hide";
const UNHIDE: &str = "unhide";
const ERASE: &str = "erase";
const RESTORE: &str = "restore";
