//! The files of a table, for engines that read them on their own.

use std::ops::RangeInclusive;

use object_store::path::Path;

use crate::archive::Archive;
use crate::delta::Add;
use crate::error::ArchiveError;
use crate::table::{DAY, Table};

/// A file of a table, as its log states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredFile {
    /// The path in [`Storage::objects`](crate::Storage::objects).
    pub path: Path,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of rows.
    pub rows: u64,
    /// The day of its rows, `YYYY-MM-DD`.
    pub day: Option<String>,
    /// Bounds of its accounts; `None` if the log does not state them, or the table has none.
    pub dids: Option<RangeInclusive<String>>,
}

impl Archive {
    /// The files of a table as of now. They never change, but others can replace them at any time: then a file of the list is
    /// gone.
    ///
    /// # Errors
    /// If the log of the table cannot be read.
    pub async fn stored_files(&self, table: Table) -> Result<Vec<StoredFile>, ArchiveError> {
        let snapshot = self.snapshot(table).await?;
        Ok(snapshot.files.values().map(|add| self.stored_file(table, add)).collect())
    }

    fn stored_file(&self, table: Table, add: &Add) -> StoredFile {
        let stats = add.stats();
        StoredFile {
            path: self.storage().object(&format!("{}/{}", table.name(), add.path)),
            bytes: add.size,
            rows: stats.num_records,
            day: add.partition_values.get(DAY).cloned().flatten(),
            dids: stats.dids().map(|(first, last)| first.to_owned()..=last.to_owned()),
        }
    }
}
