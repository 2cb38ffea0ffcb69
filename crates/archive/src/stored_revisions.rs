//! The newest revision of every account of which an archive has the wanted records: the whole repository, or the selected collections.
//! An account takes 40 bytes, and the overhead of the map.
//!
//! Several writers can fetch one repository at a time. Each commits the rows of new revisions as the version of the log that follows
//! the last one it has read: so no revision is stored twice.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use atproto::syntax::Tid;
use kernels::sha256;

use crate::archive::Archive;
use crate::collections::Collections;
use crate::delta::{Add, Change, Committed};
use crate::error::{ArchiveError, ArchiveFault};
use crate::repository::txns;
use crate::row_scan::RowSelection;
use crate::sealed::{Sealed, WorkId};
use crate::table::Table;

/// Revisions by the first half of the SHA-256 of the DID.
#[derive(Debug, Default)]
pub struct StoredRevisions {
    /// The wanted collections; `None` for whole repositories.
    wanted: Option<Collections>,
    /// `None` for an account of which only other collections are stored.
    newest: Mutex<HashMap<[u8; 16], Option<Tid>>>,
    snapshots: ReadFiles,
    parts: ReadFiles,
}

/// The files of a table that were read.
type ReadFiles = tokio::sync::Mutex<BTreeSet<String>>;

/// A table with a row for every repository, or part, to which new ones are added.
#[derive(Clone, Copy)]
pub(crate) struct NewHeads<'a> {
    pub(crate) table: Table,
    pub(crate) work: &'a WorkId,
    pub(crate) stored: &'a StoredRevisions,
}

impl StoredRevisions {
    /// Revisions of whole repositories (`None`), or of everything that has these collections.
    pub fn new(wanted: Option<Collections>) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Reads the rows of `snapshots` and `parts` that were stored since the last call. Hidden accounts are left out.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn update(&self, archive: &Archive) -> Result<(), ArchiveError> {
        self.read(archive, Table::Snapshots).await?;
        self.read(archive, Table::Parts).await?;
        Ok(())
    }

    /// Reads the new files of a table; returns the version of the next entry of its log.
    async fn read(&self, archive: &Archive, table: Table) -> Result<u64, ArchiveError> {
        let files = if table == Table::Snapshots { &self.snapshots } else { &self.parts };
        let mut read = files.lock().await;
        for _ in 0..MAX_ATTEMPTS {
            let snapshot = archive.snapshot(table).await?;
            let is_new = |path: &&String| !read.contains(*path);
            let new: Vec<String> = snapshot.files.keys().filter(is_new).cloned().collect();
            match self.add_rows(archive, table, new).await {
                Ok(()) => {
                    *read = snapshot.files.keys().cloned().collect();
                    return Ok(snapshot.next_version);
                }
                // Another process has replaced a file meanwhile.
                Err(error)
                    if error.is_missing_file()
                        && archive.version(table).await? > snapshot.next_version => {}
                Err(error) => return Err(error),
            }
        }
        Err(ArchiveError::new(table.name(), ArchiveFault::Contention(MAX_ATTEMPTS)))
    }

    async fn add_rows(
        &self,
        archive: &Archive,
        table: Table,
        files: Vec<String>,
    ) -> Result<(), ArchiveError> {
        if files.is_empty() {
            return Ok(());
        }
        let selection = RowSelection { files: Some(files), ..RowSelection::default() };
        if table == Table::Snapshots {
            let mut add = |did: &str, rev: &str| self.add_row(did, rev, true);
            return archive.visit_revisions(&selection, &mut add).await;
        }
        let mut add = |did: &str, rev: &str, collections: &str| {
            self.add_row(did, rev, self.is_enough(collections));
        };
        archive.visit_parts(&selection, &mut add).await
    }

    fn add_row(&self, did: &str, rev: &str, is_enough: bool) {
        if let Ok(rev) = Tid::parse(rev) {
            self.add(did, is_enough.then_some(rev));
        }
    }

    /// Whether a part with these collections has the wanted ones.
    fn is_enough(&self, stored: &str) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| {
            stored.parse().is_ok_and(|stored: Collections| stored.include(wanted))
        })
    }

    /// Adds a stored revision of an account, unless a newer one is there; `None` if it is not enough.
    pub fn add(&self, did: &str, rev: Option<Tid>) {
        let mut newest = self.lock();
        let newest = newest.entry(account_key(did)).or_insert(rev);
        *newest = rev.max(*newest);
    }

    /// Whether anything of an account is stored.
    pub fn has(&self, did: &str) -> bool {
        self.lock().contains_key(&account_key(did))
    }

    /// The newest stored revision of an account that is enough.
    pub fn get(&self, did: &str) -> Option<Tid> {
        self.lock().get(&account_key(did)).copied().flatten()
    }

    /// Removes an account that is hidden now.
    pub fn remove(&self, did: &str) {
        self.lock().remove(&account_key(did));
    }

    /// Keeps the items whose revision is newer than the stored one of the account. Returns the version of the next entry of the
    /// table's log.
    pub(crate) async fn retain_new<T>(
        &self,
        archive: &Archive,
        table: Table,
        items: &mut Vec<T>,
        place: impl Fn(&T) -> (&str, &str),
    ) -> Result<u64, ArchiveError> {
        let version = self.read(archive, table).await?;
        items.retain(|item| {
            let (did, rev) = place(item);
            let stored = self.get(did);
            stored.is_none_or(|stored| Tid::parse(rev).is_ok_and(|rev| stored < rev))
        });
        Ok(version)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<[u8; 16], Option<Tid>>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Archive {
    /// Commits rows for the items that are not stored yet; `write` makes their file. If another process commits first, its files are
    /// read and the rest is tried again.
    pub(crate) async fn commit_new<T>(
        &self,
        heads: NewHeads<'_>,
        mut new: Vec<T>,
        place: impl Fn(&T) -> (&str, &str),
        write: impl AsyncFn(&[T]) -> Result<Option<Vec<Add>>, ArchiveError>,
        sealed: &mut Sealed,
    ) -> Result<(), ArchiveError> {
        let NewHeads { table, work, stored } = heads;
        let mut change = Change { operation: "WRITE", txns: txns(Some(work)), ..Change::default() };
        let mut written = 0;
        for _ in 0..MAX_ATTEMPTS {
            change.version = Some(stored.retain_new(self, table, &mut new, &place).await?);
            if new.is_empty() {
                return Ok(());
            }
            if new.len() != written {
                change.add = write(&new).await?.unwrap_or_default();
                written = new.len();
            }
            match self.commit(table, &change).await? {
                Committed::Superseded => {}
                Committed::Before => return Ok(()),
                Committed::Version(_) => {
                    sealed.add_files(&change.add);
                    return Ok(());
                }
            }
        }
        Err(ArchiveError::new(table.name(), ArchiveFault::Contention(MAX_ATTEMPTS)))
    }
}

/// The key of an account in tables of accounts.
pub fn account_key(did: &str) -> [u8; 16] {
    let digest = sha256::digest(did.as_bytes());
    std::array::from_fn(|at| digest[at])
}

/// Attempts while other processes commit to the table.
const MAX_ATTEMPTS: u32 = 1_000;
