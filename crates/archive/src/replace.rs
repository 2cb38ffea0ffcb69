//! Replaces files of a table by others, and deletes them.
//!
//! A file is deleted by its name: one that a `remove` of the log names, or that was announced and never committed. What else is in
//! the folders stays.
//!
//! Deleted files are gone at once: a program that reads one of them at that moment fails, and succeeds when it reads the table
//! again.

use std::path::Path as FilePath;
use std::{fs, io};

use base::crash_point;
use jiff::civil::Date;

use crate::archive::Archive;
use crate::delta::{Add, Change, Committed, Remove, Snapshot, is_table_file, now_ms};
use crate::error::ArchiveError;
use crate::scan::Selection;
use crate::storage::{STAGING, refuse_link};
use crate::table::Table;
use crate::uploads::{self, MAX_UPLOAD};

/// Files of a table, and those in their place.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    pub(crate) old: Vec<Add>,
    pub(crate) new: Vec<Add>,
    /// Whether rows change, and not only the files in which they are.
    pub(crate) changes_data: bool,
}

/// Files in the folder of a table, by path in that folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherFiles {
    /// Those that the log has removed.
    pub(crate) removed: Vec<String>,
    /// Those that it does not name: of a writer at work, of one that ended, and of whoever put them there.
    pub(crate) unnamed: Vec<String>,
}

impl Archive {
    /// Replaces files; `false` if another writer has replaced one of them.
    pub(crate) async fn replace(
        &self,
        table: Table,
        files: &Replacement,
    ) -> Result<bool, ArchiveError> {
        let Replacement { old, new, changes_data } = files;
        for file in old {
            self.storage().refuse_links(&format!("{}/{}", table.name(), file.path))?;
        }
        // A file with the same rows has the same name.
        let is_in = |files: &[Add], add: &Add| files.iter().any(|file| file.path == add.path);
        let remove: Vec<Remove> = old
            .iter()
            .filter(|add| !is_in(new, add))
            .map(|add| removed(add, *changes_data))
            .collect();
        let mut add: Vec<Add> = new.iter().filter(|add| !is_in(old, add)).cloned().collect();
        if remove.is_empty() && add.is_empty() {
            return Ok(true);
        }
        add.iter_mut().for_each(|add| add.data_change = *changes_data);
        let operation = if *changes_data { "DELETE" } else { "OPTIMIZE" };
        let change = Change { operation, add, remove, txns: Vec::new() };
        if self.commit(table, &change).await? == Committed::Superseded {
            return Ok(false);
        }
        crash_point("archive/replaced");
        for file in &change.remove {
            self.delete_removed(table, &file.path).await?;
        }
        Ok(true)
    }

    /// Deletes a file that the log has removed, unless a writer is about to commit the same one again.
    async fn delete_removed(&self, table: Table, path: &str) -> Result<(), ArchiveError> {
        match uploads::is_announced(self.storage(), table, path).await? {
            true => Ok(()),
            false => self.storage().delete(&format!("{}/{path}", table.name())).await,
        }
    }

    /// Deletes what processes have left that ended early: files that the logs have removed, and files that were announced a day
    /// ago and never committed. Returns the number of files in the tables' folders that no log names, which stay.
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
        match self.storage().staging() {
            Some(folder) => sweep_folder(&folder)
                .map_err(ArchiveError::at::<io::Error>(self.storage().address()))?,
            None => self.sweep_staging(now_ms()).await?,
        }
        Ok(unnamed)
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

    /// Deletes the objects that check conditional puts of a process that ended a day ago.
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

/// Deletes temporary files that a process has left a day ago. Other names, folders and links stay.
fn sweep_folder(folder: &FilePath) -> io::Result<()> {
    refuse_link(folder)?;
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY));
        let Ok(metadata) = entry.metadata() else { continue };
        let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
        if is_ours && metadata.is_file() && age.is_some_and(|age| age > MAX_UPLOAD) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The entry of a log that removes a file.
fn removed(add: &Add, changes_data: bool) -> Remove {
    Remove {
        path: add.path.clone(),
        deletion_timestamp: Some(now_ms()),
        data_change: changes_data,
        extended_file_metadata: Some(true),
        partition_values: Some(add.partition_values.clone()),
        size: Some(add.size),
    }
}

/// The files of a day.
pub(crate) fn files_of_day(snapshot: &Snapshot, day: Date) -> Vec<Add> {
    let selection = Selection { day: Some(day.to_string()), ..Selection::default() };
    snapshot.files.values().filter(|add| selection.has(add)).cloned().collect()
}

/// Size of files in bytes.
pub(crate) fn bytes(files: &[Add]) -> u64 {
    files.iter().map(|file| file.size).sum()
}

/// What the names of temporary files begin with: the default of `tempfile`.
const TEMPORARY: &str = ".tmp";
