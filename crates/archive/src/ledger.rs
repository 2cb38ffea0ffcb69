//! The ledger of a backfill: which pages of which lists are in the archive, as objects next to its tables.
//!
//! | object under `backfill/NAME/` | content |
//! |---|---|
//! | `LIST/list.json` | a list of accounts: [`HostRow`] |
//! | `LIST/pages/SWEEP-PAGE.json` | a page whose repositories are in the tables: [`PageRow`] |
//! | `LIST/stops/NUMBER.json` | why a run gave the list up: [`StopRow`] |
//! | `LIST/leases/NUMBER.json` | which process works on the list: [`LeaseRow`](crate::LeaseRow) |
//!
//! `LIST` is half of the SHA-256 of the name of the list. An object is created once and never changed; leases are
//! deleted when they have ended. A page is written after its repositories, so a run that ends before repeats the page,
//! and finds the repositories that are in the tables already.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use kernels::{hex, sha256};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::archive::Archive;
use crate::error::{ArchiveError, ArchiveFault};
use crate::storage::Storage;

/// The ledger of one backfill. Clones share it.
#[derive(Clone, Debug)]
pub struct Ledger {
    storage: Storage,
    /// The folder within the archive.
    folder: String,
}

/// A list of accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRow {
    /// The name of the list: the origin of a host, or the origin of a relay and a collection; then, if only parts of repositories are
    /// fetched, `parts` and their collections.
    pub list: String,
    /// Number of accounts that a relay states.
    pub stated_accounts: Option<u64>,
}

/// A page of a list whose accounts were processed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRow {
    /// The sweep over the list, from 1.
    pub sweep: u32,
    /// The page of the sweep, from 0.
    pub page: u64,
    /// The cursor of the page; `None` for the first.
    pub cursor: Option<String>,
    /// The cursor of the next page; `None` after the last.
    pub next: Option<String>,
    /// When the page was requested, in microseconds since 1970.
    pub started: i64,
    /// When its repositories were in the archive, in microseconds since 1970.
    pub finished: i64,
    /// Number of accounts of the page.
    pub listed: u64,
    /// Number of repositories that were added.
    pub stored: u64,
    /// Number of records in them.
    pub records: u64,
    /// Size of the downloads in bytes, decoded.
    pub bytes: u64,
    /// Size of the downloads in bytes as they were received: less where hosts compress them. 0 in rows of versions that did not
    /// count them.
    #[serde(default)]
    pub wire_bytes: u64,
    /// Number of accounts whose listed revision, or a later one, was in the archive.
    pub present: u64,
    /// Number of accounts that were not selected, or are excluded.
    pub excluded: u64,
    /// Number of accounts that another server hosts than the one that lists them.
    pub elsewhere: u64,
    /// Number of accounts by the status that their server states, such as `takendown`.
    pub inactive: BTreeMap<String, u64>,
    /// The accounts that failed.
    pub failures: Vec<FailedAccount>,
}

/// An account whose repository could not be fetched, or was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAccount {
    /// The account.
    pub did: String,
    /// The host that was asked, if one was.
    pub host: Option<String>,
    /// The code of the broken rule of a refused repository, or the class of the failure.
    pub class: String,
    /// The fault.
    pub message: String,
    /// Whether another attempt may succeed.
    pub is_temporary: bool,
}

/// Why a run gave a list up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRow {
    /// When, in microseconds since 1970.
    pub at: i64,
    /// The sweep.
    pub sweep: u32,
    /// The page that could not be read.
    pub page: u64,
    /// The fault.
    pub message: String,
}

impl Ledger {
    /// The ledger of this name.
    ///
    /// # Errors
    /// If the name is not 1 to 64 letters, digits, dots, hyphens and underscores, or begins with a dot.
    pub fn new(archive: &Archive, name: &str) -> Result<Self, ArchiveError> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let is_name = (1..=64).contains(&name.len()) && name.bytes().all(is_part);
        if is_name && !name.starts_with('.') {
            Ok(Self { storage: archive.storage().clone(), folder: format!("{FOLDER}/{name}") })
        } else {
            Err(ArchiveError::new(name, ArchiveFault::LedgerName))
        }
    }

    /// Adds a list, unless it is there.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn add_list(&self, row: &HostRow) -> Result<(), ArchiveError> {
        self.put(&format!("{}/{LIST}", self.folder_of(&row.list)), row).await.map(drop)
    }

    /// All lists, by name.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn lists(&self) -> Result<Vec<HostRow>, ArchiveError> {
        let suffix = format!("/{LIST}");
        let mut rows: Vec<HostRow> =
            self.read(&self.folder, |path| path.ends_with(&suffix)).await?;
        rows.sort_by(|a, b| a.list.cmp(&b.list));
        Ok(rows)
    }

    /// Adds a page of a list; `false` if it is there, as when another process works on the list.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn add_page(&self, list: &str, row: &PageRow) -> Result<bool, ArchiveError> {
        let path =
            format!("{}/{PAGES}/{:02}-{:010}.json", self.folder_of(list), row.sweep, row.page);
        self.put(&path, row).await
    }

    /// The pages of a list, in their order.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn pages(&self, list: &str) -> Result<Vec<PageRow>, ArchiveError> {
        let folder = format!("{}/{PAGES}", self.folder_of(list));
        let mut rows: Vec<PageRow> = self.read(&folder, |_| true).await?;
        rows.sort_by_key(|row| (row.sweep, row.page));
        Ok(rows)
    }

    /// Adds why a list was given up.
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub async fn add_stop(&self, list: &str, row: &StopRow) -> Result<(), ArchiveError> {
        let path = format!("{}/{STOPS}/{:020}.json", self.folder_of(list), row.at.max(0));
        self.put(&path, row).await.map(drop)
    }

    /// Why a list was given up last, if it was.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn last_stop(&self, list: &str) -> Result<Option<StopRow>, ArchiveError> {
        let folder = format!("{}/{STOPS}", self.folder_of(list));
        let rows: Vec<StopRow> = self.read(&folder, |_| true).await?;
        Ok(rows.into_iter().max_by_key(|row| row.at))
    }

    pub(crate) fn folder_of(&self, list: &str) -> String {
        let digest = sha256::digest(list.as_bytes());
        format!("{}/{}", self.folder, hex::encode(&digest[..16]))
    }

    pub(crate) async fn put(&self, path: &str, row: &impl Serialize) -> Result<bool, ArchiveError> {
        let json = serde_json::to_vec(row).expect("text, numbers, lists and maps of text");
        let json = Bytes::from(json);
        Ok(self.storage.put_new(path, json.clone()).await?
            // The client repeats a put whose answer was lost, and the repeated put finds the first.
            || self.storage.get(path).await?.is_some_and(|found| found == json))
    }

    /// The rows of the objects under a folder whose paths are selected.
    async fn read<T: DeserializeOwned>(
        &self,
        folder: &str,
        is_selected: impl Fn(&str) -> bool,
    ) -> Result<Vec<T>, ArchiveError> {
        let names = self.names(folder).await?.into_iter().filter(|name| is_selected(name));
        let paths: Vec<String> = names.map(|name| format!("{folder}/{name}")).collect();
        let rows = stream::iter(paths).map(|path| async move { self.row(&path).await });
        rows.buffered(MAX_AHEAD).try_collect().await
    }

    /// The paths of the objects under a folder, within it.
    pub(crate) async fn names(&self, folder: &str) -> Result<Vec<String>, ArchiveError> {
        let objects = self.storage.list(folder).await?;
        let name = |path: &str| path.strip_prefix(folder)?.strip_prefix('/').map(str::to_owned);
        Ok(objects.iter().filter_map(|object| name(&object.path)).collect())
    }

    /// A row; `None` if it was deleted.
    pub(crate) async fn find<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, ArchiveError> {
        let json = self.storage.get(path).await?;
        let row = json.map(|json| serde_json::from_slice(&json)).transpose();
        row.map_err(|error| ArchiveError::new(path, ArchiveFault::LedgerRow(error.to_string())))
    }

    pub(crate) async fn delete(&self, path: &str) -> Result<(), ArchiveError> {
        self.storage.delete(path).await
    }

    async fn row<T: DeserializeOwned>(&self, path: &str) -> Result<T, ArchiveError> {
        let missing = || ArchiveFault::LedgerRow("it is missing".to_owned());
        self.find(path).await?.ok_or_else(|| ArchiveError::new(path, missing()))
    }
}

/// The folder of all ledgers within the archive.
pub(crate) const FOLDER: &str = "backfill";

const LIST: &str = "list.json";
const PAGES: &str = "pages";
const STOPS: &str = "stops";

/// Objects that are read at a time.
const MAX_AHEAD: usize = 16;
