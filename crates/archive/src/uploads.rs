//! Files of tables that are written and not committed yet: a file is named under `uploads/` before it gets its place.
//!
//! Files of a process that ends before the commit are found by these names, and deleted a day later. A file that is not
//! named here is never deleted, even if no log names it: the log may be missing.

use std::time::Duration;

use crate::error::ArchiveError;
use crate::storage::Storage;
use crate::table::Table;

/// Names a file that is about to be stored, by its path in the table's folder.
pub(crate) async fn announce(
    storage: &Storage,
    table: Table,
    path: &str,
) -> Result<(), ArchiveError> {
    // One that is there is of an earlier attempt at the same file.
    storage.mark(&announcement(table, path)).await
}

/// Forgets a file that was committed.
pub(crate) async fn settle(
    storage: &Storage,
    table: Table,
    path: &str,
) -> Result<(), ArchiveError> {
    storage.delete(&announcement(table, path)).await
}

/// Whether a file is about to be committed.
pub(crate) async fn is_announced(
    storage: &Storage,
    table: Table,
    path: &str,
) -> Result<bool, ArchiveError> {
    Ok(storage.get(&announcement(table, path)).await?.is_some())
}

fn announcement(table: Table, path: &str) -> String {
    format!("{UPLOADS}/{}/{path}{SUFFIX}", table.name())
}

/// The files of a table, by their paths in the table's folder, and when they were announced, in milliseconds since
/// 1970.
pub(crate) async fn announced(
    storage: &Storage,
    table: Table,
) -> Result<Vec<(String, i64)>, ArchiveError> {
    let folder = format!("{UPLOADS}/{}", table.name());
    let path_of = |path: &str| {
        let path = path.strip_prefix(&*folder)?.strip_prefix('/')?.strip_suffix(SUFFIX)?;
        Some(path.to_owned())
    };
    let objects = storage.list(&folder).await?;
    let paths = objects.iter().filter_map(|of| Some((path_of(&of.path)?, of.modified_ms)));
    Ok(paths.collect())
}

/// The folder within the archive.
const UPLOADS: &str = "uploads";

const SUFFIX: &str = ".upload";

/// Time within which a file is committed that a writer has written.
pub(crate) const MAX_UPLOAD: Duration = Duration::from_secs(24 * 3_600);
