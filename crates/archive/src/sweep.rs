//! Deletes the leftovers of processes that ended early.
//!
//! A file is deleted by its name: one that a `remove` of the log names, or that was announced and never committed. Other files in
//! the folders stay.

use std::io;

use crate::archive::Archive;
use crate::content_hash::{content_hash, has_content};
use crate::delta::{is_table_file, now_ms};
use crate::error::ArchiveError;
use crate::staged_file::delete_abandoned;
use crate::storage::{STAGING, refuse_link};
use crate::table::Table;
use crate::uploads::{self, MAX_UPLOAD};

/// Files in the folder of a table, by path in that folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherFiles {
    /// Files that the log has removed.
    pub(crate) removed: Vec<String>,
    /// Files that it does not name: from a writer that is at work or has ended, or put there by someone else.
    pub(crate) unnamed: Vec<String>,
}

impl Archive {
    /// Deletes the leftovers of processes that ended early: files that the logs have removed, and files that were
    /// announced a day ago and never committed. Returns the number of files in the tables' folders that no log names, and
    /// of blobs that no row names, which stay.
    pub(crate) async fn sweep(&self) -> Result<u64, ArchiveError> {
        let mut unnamed = 0;
        for table in Table::ALL {
            self.sweep_uploads(table).await?;
            let others = self.other_files(table).await?;
            for path in &others.removed {
                self.delete_removed(table, path).await?;
            }
            unnamed += others.unnamed.len() as u64;
        }
        unnamed += self.sweep_blobs().await?;
        match self.storage().staging() {
            Some(_) => self.sweep_temporary_files()?,
            None => self.sweep_staging(now_ms()).await?,
        }
        Ok(unnamed)
    }

    /// Deletes the temporary files in the folder of a local archive whose processes have ended.
    ///
    /// # Errors
    /// If one cannot be deleted, or their folder is a symbolic link.
    pub fn sweep_temporary_files(&self) -> Result<(), ArchiveError> {
        let Some(folder) = self.storage().staging() else { return Ok(()) };
        let swept = refuse_link(&folder).and_then(|()| delete_abandoned(&folder));
        swept.map_err(ArchiveError::at::<io::Error>(self.storage().address()))
    }

    /// Deletes the files of a table that were named a day ago and never committed.
    async fn sweep_uploads(&self, table: Table) -> Result<(), ArchiveError> {
        let announced = uploads::announced(self.storage(), table).await?;
        // After the list: a file that is committed meanwhile is named.
        let snapshot = self.snapshot(table).await?;
        for (path, announced_ms) in announced {
            let Some(hash) = content_hash(&path) else { continue };
            let age_ms = now_ms().saturating_sub(announced_ms);
            let is_committed = snapshot.files.contains_key(&path);
            if !is_committed && age_ms <= MAX_UPLOAD.as_millis() as i64 {
                continue;
            }
            let file = format!("{}/{path}", table.name());
            if !is_committed && has_content(self.storage(), &file, hash).await? {
                self.storage().delete(&file).await?;
            }
            uploads::settle(self.storage(), table, &path).await?;
        }
        Ok(())
    }

    /// The Parquet files in the folder of a table that are not of it as of now.
    pub(crate) async fn other_files(&self, table: Table) -> Result<OtherFiles, ArchiveError> {
        let folder = format!("{}/", table.name());
        let walked = self.storage().walk(table.name()).await?;
        // After the list: a file that is committed meanwhile is named.
        let snapshot = self.snapshot(table).await?;
        let paths = walked.files.iter().filter_map(|file| file.path.strip_prefix(&*folder));
        let others =
            paths.filter(|path| is_table_file(path) && !snapshot.files.contains_key(*path));
        let (removed, unnamed) =
            others.map(str::to_owned).partition(|path| snapshot.removed.contains_key(path));
        Ok(OtherFiles { removed, unnamed })
    }

    /// Deletes the objects with which processes of earlier versions checked conditional puts, a day later.
    async fn sweep_staging(&self, now: i64) -> Result<(), ArchiveError> {
        for object in self.storage().list(STAGING).await? {
            let age_ms = now.saturating_sub(object.modified_ms);
            let name = object.path.strip_prefix(STAGING).and_then(|name| name.strip_prefix('/'));
            let is_ours = name.is_some_and(|name| uuid::Uuid::parse_str(name).is_ok());
            if is_ours && age_ms > MAX_UPLOAD.as_millis() as i64 {
                self.storage().delete(&object.path).await?;
            }
        }
        Ok(())
    }
}
