//! Files of tables that are written and not committed yet: each is named under `uploads/` before it gets its place.
//!
//! What a process leaves that ends before the commit is found by these names, and deleted a day later. A file that nobody named
//! here is never deleted, even if no log names it: the log may be what is missing.

use std::time::Duration;

use futures_util::TryStreamExt;
use sha2::{Digest, Sha256};

use crate::archive::Archive;
use crate::delta::now_ms;
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

impl Archive {
    /// Deletes the files of a table that were named a day ago and never committed.
    pub(crate) async fn sweep_uploads(&self, table: Table) -> Result<(), ArchiveError> {
        let folder = format!("{UPLOADS}/{}", table.name());
        let announced = self.storage().list(&folder).await?;
        // After the list: a file that is committed meanwhile is named.
        let snapshot = self.snapshot(table).await?;
        for object in announced {
            let path = object.path.strip_prefix(&*folder).and_then(|path| path.strip_prefix('/'));
            let Some(path) = path.and_then(|path| path.strip_suffix(SUFFIX)) else { continue };
            let Some(hash) = content_hash(path) else { continue };
            let age_ms = now_ms().saturating_sub(object.modified_ms);
            let is_committed = snapshot.files.contains_key(path);
            if !is_committed && age_ms <= MAX_UPLOAD.as_millis() as i64 {
                continue;
            }
            let file = format!("{}/{path}", table.name());
            if !is_committed && self.has_content(&file, hash).await? {
                self.storage().delete(&file).await?;
            }
            settle(self.storage(), table, path).await?;
        }
        Ok(())
    }

    /// Whether a file is there and has the content that its name says.
    async fn has_content(&self, file: &str, hash: &str) -> Result<bool, ArchiveError> {
        match self.hash(file).await {
            Ok(found) => Ok(found == hash),
            Err(error) if error.is_missing_file() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The SHA-256 of a file, by its path within the archive.
    pub(crate) async fn hash(&self, file: &str) -> Result<String, ArchiveError> {
        let (mut parts, mut hash) = (std::pin::pin!(self.storage().read(file)), Sha256::new());
        while let Some(bytes) = parts.try_next().await? {
            hash.update(&bytes);
        }
        Ok(data_encoding::HEXLOWER.encode(&hash.finalize()))
    }
}

/// The SHA-256 in the name of a file that this program wrote, by its path in the table's folder; `None` for other names.
pub(crate) fn content_hash(path: &str) -> Option<&str> {
    let (_, hash) = path.strip_suffix(".parquet")?.strip_prefix("day=")?.split_once('/')?;
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (hash.len() == 64 && hash.bytes().all(is_hex)).then_some(hash)
}

fn announcement(table: Table, path: &str) -> String {
    format!("{UPLOADS}/{}/{path}{SUFFIX}", table.name())
}

/// The folder within the archive.
const UPLOADS: &str = "uploads";

const SUFFIX: &str = ".upload";

/// Time within which a file is committed that a writer has written.
pub(crate) const MAX_UPLOAD: Duration = Duration::from_secs(24 * 3_600);
