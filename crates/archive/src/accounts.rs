//! The accounts of an archive with records, in the order of their DIDs.

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::op_rows::OpColumns;
use crate::repository_rows::SnapshotColumns;
use crate::scan::Scan;
use crate::table_rows::Key;
use crate::table_scan::Selection;

/// The accounts that have a row in `snapshots` or in `ops`.
pub struct Accounts {
    snapshots: Scan<SnapshotColumns>,
    ops: Scan<OpColumns>,
    /// The next account of `snapshots`, and of `ops`.
    next: [Option<String>; 2],
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Archive {
    /// The accounts with records, hidden ones too, as of now.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn accounts(&self) -> Result<Accounts, ArchiveError> {
        let selection = Selection::default();
        let (snapshots, ops) = (self.scan(&selection).await?, self.scan(&selection).await?);
        let mut accounts = Accounts { snapshots, ops, next: [None, None] };
        accounts.read_snapshot(None).await?;
        accounts.read_op(None).await?;
        Ok(accounts)
    }
}

impl Accounts {
    /// The next account; `None` at the end.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn next(&mut self) -> Result<Option<String>, ArchiveError> {
        let Some(did) = self.next.iter().flatten().min().cloned() else { return Ok(None) };
        if self.next[0].as_ref() == Some(&did) {
            self.read_snapshot(Some(&did)).await?;
        }
        if self.next[1].as_ref() == Some(&did) {
            self.read_op(Some(&did)).await?;
        }
        Ok(Some(did))
    }

    async fn read_snapshot(&mut self, after: Option<&str>) -> Result<(), ArchiveError> {
        if let Some(did) = after {
            self.snapshots.skip_to(&behind(did)).await?;
        }
        let row = self.snapshots.next().await?;
        self.next[0] = row.map(|row| row.revision().0.to_owned());
        Ok(())
    }

    async fn read_op(&mut self, after: Option<&str>) -> Result<(), ArchiveError> {
        if let Some(did) = after {
            self.ops.skip_to(&behind(did)).await?;
        }
        let row = self.ops.next().await?;
        self.next[1] = row.map(|row| row.did().to_owned());
        Ok(())
    }
}

/// The first place behind all rows of an account.
fn behind(did: &str) -> Key {
    Key { did: Some(format!("{did}\0").into()), number: i64::MIN, text: None }
}
