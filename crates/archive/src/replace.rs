//! Replaces files of a table by others, and deletes them.
//!
//! Deleted files are gone at once: a program that reads one of them at that moment fails, and succeeds when it reads the table
//! again.

use base::crash_point;
use jiff::civil::Date;

use crate::archive::Archive;
use crate::delta::{Add, Change, Committed, Remove, Snapshot, now_ms};
use crate::error::ArchiveError;
use crate::table::Table;
use crate::table_scan::Selection;
use crate::uploads;

/// Files of a table, and the files in their place.
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
        let change = Change { operation, add, remove, ..Change::default() };
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
    pub(crate) async fn delete_removed(
        &self,
        table: Table,
        path: &str,
    ) -> Result<(), ArchiveError> {
        if uploads::is_announced(self.storage(), table, path).await? {
            return Ok(());
        }
        self.storage().delete(&format!("{}/{path}", table.name())).await
    }
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
