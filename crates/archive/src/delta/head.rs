//! The newest version that was committed here, remembered outside the log: `_heads/TABLE/VERSION.json`.
//!
//! A log that lost its last entries, or all of them, looks like a shorter one. The remembered version tells them apart.
//! It is a lower bound: other programs commit without it, and a crash right after a commit leaves the one before.

use serde::{Deserialize, Serialize};

use super::entry_hash::{ENTRY, NONE};
use crate::error::{ArchiveError, ArchiveFault};
use crate::storage::Storage;

/// A version of a table that was committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head {
    /// The program that committed it.
    engine_info: String,
    /// The version.
    pub(super) version: u64,
    /// The identity of the table.
    pub(super) id: String,
    /// The SHA-256 of the entry.
    pub(super) sha256: String,
    /// The hash of this object.
    entry_sha256: String,
}

impl Head {
    pub(super) fn new(version: u64, id: String, sha256: String) -> Self {
        let engine_info = concat!("wireproof/", env!("CARGO_PKG_VERSION")).to_owned();
        Self { engine_info, version, id, sha256, entry_sha256: NONE.to_owned() }
    }

    /// The newest one of a table; `None` if nothing was remembered.
    pub(super) async fn read(storage: &Storage, table: &str) -> Result<Option<Self>, ArchiveError> {
        let Some(version) = versions(storage, table).await?.pop() else { return Ok(None) };
        let path = path(table, version);
        // One that was deleted meanwhile has a successor, and is looked for again.
        let json = storage.get(&path).await?;
        let json =
            json.ok_or_else(|| ArchiveError::new(&*path, ArchiveFault::MissingVersion(version)))?;
        let read =
            if ENTRY.is_right(&json) { serde_json::from_slice::<Self>(&json).ok() } else { None };
        let read = read.filter(|head| head.version == version);
        read.map(Some).ok_or_else(|| ArchiveError::new(path, ArchiveFault::ChangedEntry))
    }

    /// Remembers this version, and forgets the earlier ones.
    pub(super) async fn write(&self, storage: &Storage, table: &str) -> Result<(), ArchiveError> {
        let mut json = serde_json::to_vec(self).expect("numbers and text");
        ENTRY.set(&mut json);
        storage.put_new(&path(table, self.version), json).await?;
        for earlier in versions(storage, table).await? {
            if earlier < self.version {
                storage.delete(&path(table, earlier)).await?;
            }
        }
        Ok(())
    }
}

/// The remembered versions of a table, in their order.
async fn versions(storage: &Storage, table: &str) -> Result<Vec<u64>, ArchiveError> {
    let folder = format!("{HEADS}/{table}/");
    let version = |path: &str| {
        let digits = path.strip_prefix(&*folder)?.strip_suffix(".json")?;
        (digits.len() == 20).then(|| digits.parse().ok())?
    };
    let listed = storage.list(&format!("{HEADS}/{table}")).await?;
    let mut versions: Vec<u64> = listed.iter().filter_map(|object| version(&object.path)).collect();
    versions.sort_unstable();
    Ok(versions)
}

fn path(table: &str, version: u64) -> String {
    format!("{HEADS}/{table}/{version:020}.json")
}

/// The folder within the archive. A program that copies files in the order of their names copies it before the tables, so that a
/// copy of an archive at work remembers no version that it has not.
const HEADS: &str = "_heads";
