//! Replaces files of a table by others, and deletes them; and deletes what no log names.
//!
//! Deleted files are gone at once: a program that reads one of them at that moment fails, and succeeds when it reads the table
//! again.

use std::path::Path as FilePath;
use std::time::Duration;
use std::{fs, io};

use jiff::civil::Date;
use store::crash_point;

use crate::archive::Archive;
use crate::delta::{Add, Change, Committed, Remove, Snapshot, now_ms};
use crate::error::ArchiveError;
use crate::scan::Selection;
use crate::storage::STAGING;
use crate::table::Table;

/// Files of a table, and those in their place.
#[derive(Clone, Debug)]
pub(crate) struct Replacement {
    pub(crate) old: Vec<Add>,
    pub(crate) new: Vec<Add>,
    /// Whether rows change, and not only the files in which they are.
    pub(crate) changes_data: bool,
}

impl Archive {
    /// Replaces files; `false` if another writer has replaced one of them.
    pub(crate) async fn replace(
        &self,
        table: Table,
        files: &Replacement,
    ) -> Result<bool, ArchiveError> {
        let Replacement { old, new, changes_data } = files;
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
        let change = Change { operation, add, remove, txn: None };
        if self.commit(table, &change).await? == Committed::Superseded {
            return Ok(false);
        }
        crash_point("archive/replaced");
        for file in &change.remove {
            self.storage().delete(&format!("{}/{}", table.name(), file.path)).await?;
        }
        Ok(true)
    }

    /// Deletes files that no log names: those that were replaced, of a process that ended before it deleted them, and those
    /// that were written a day ago and never committed. Returns the number of younger ones, which a writer may yet commit.
    pub(crate) async fn sweep(&self) -> Result<u64, ArchiveError> {
        let (now, mut young) = (now_ms(), 0);
        for table in Table::ALL {
            let folder = self.storage().object(table.name());
            let files = self.storage().list(table.name()).await?;
            // After the list: a file that is committed meanwhile is named.
            let snapshot = self.snapshot(table).await?;
            for file in files {
                let Some(path) = path_in(&file.location, &folder) else { continue };
                if path.starts_with(LOG) || snapshot.files.contains_key(&path) {
                    continue;
                }
                let age_ms = now.saturating_sub(file.last_modified.timestamp_millis());
                match snapshot.removed.contains(&path) || age_ms > MAX_UPLOAD.as_millis() as i64 {
                    true => self.storage().delete(&format!("{}/{path}", table.name())).await?,
                    false => young += 1,
                }
            }
        }
        match self.storage().staging() {
            Some(folder) => sweep_folder(&folder)
                .map_err(ArchiveError::at::<io::Error>(self.storage().address()))?,
            None => self.sweep_staging(now).await?,
        }
        Ok(young)
    }

    /// Deletes the objects that check conditional puts of a process that ended a day ago.
    async fn sweep_staging(&self, now: i64) -> Result<(), ArchiveError> {
        let folder = self.storage().object(STAGING);
        for object in self.storage().list(STAGING).await? {
            let age_ms = now.saturating_sub(object.last_modified.timestamp_millis());
            let path = path_in(&object.location, &folder);
            if let Some(path) = path.filter(|_| age_ms > MAX_UPLOAD.as_millis() as i64) {
                self.storage().delete(&format!("{STAGING}/{path}")).await?;
            }
        }
        Ok(())
    }
}

/// Deletes files without a name that a process has left a day ago.
fn sweep_folder(folder: &FilePath) -> io::Result<()> {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry?;
        let age = entry.metadata().and_then(|file| file.modified()).map(|time| time.elapsed());
        if age.is_ok_and(|age| age.is_ok_and(|age| age > MAX_UPLOAD)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The path of an object within a folder.
pub(crate) fn path_in(
    object: &object_store::path::Path,
    folder: &object_store::path::Path,
) -> Option<String> {
    let parts = object.prefix_match(folder)?;
    Some(parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"))
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

/// The folder of a log within its table.
const LOG: &str = "_delta_log/";

/// Time within which a file is committed that a writer has written.
const MAX_UPLOAD: Duration = Duration::from_secs(24 * 3_600);
