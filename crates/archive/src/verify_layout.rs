//! Checks the layout of an archive: its logs, their checkpoints, links, and files that no log names.

use crate::archive::Archive;
use crate::delta::Snapshot;
use crate::error::{ArchiveError, ArchiveFault};
use crate::rule::Rule;
use crate::table::Table;
use crate::verification::{Finding, Verification};

impl Archive {
    pub(crate) async fn check_layout(
        &self,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        for link in self.storage().walk("").await?.links {
            verification.refuse(finding(link, Rule::Link, ArchiveFault::Link.to_string()));
        }
        for table in Table::ALL {
            verification.report.versions += self.version(table).await?;
            verification.report.unnamed_files +=
                self.other_files(table).await?.unnamed.len() as u64;
            if let Some(message) = self.compare_checkpoint(table).await? {
                let file = format!("{}/_delta_log", table.name());
                verification.refuse(finding(file, Rule::Checkpoint, message));
            }
        }
        Ok(())
    }

    /// Compares a table as it was read from the newest checkpoint with all entries, while they exist. Returns the first
    /// difference.
    async fn compare_checkpoint(&self, table: Table) -> Result<Option<String>, ArchiveError> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(replayed) = self.log(table).replay_entries().await? else { return Ok(None) };
            let snapshot = self.snapshot(table).await?;
            // Else another writer has committed meanwhile.
            if snapshot.next_version == replayed.next_version {
                return Ok(difference(&snapshot, &replayed));
            }
        }
        Ok(None)
    }
}

fn difference(read: &Snapshot, replayed: &Snapshot) -> Option<String> {
    let extra = read.files.keys().find(|path| !replayed.files.contains_key(*path));
    let missing = replayed.files.keys().find(|path| !read.files.contains_key(*path));
    let size = |snapshot: &Snapshot, path: &str| snapshot.files.get(path).map(|add| add.size);
    let other = read.files.keys().find(|path| size(read, path) != size(replayed, path));
    let id = |snapshot: &Snapshot| snapshot.metadata.as_ref().map(|metadata| metadata.id.clone());
    match (extra, missing, other) {
        (Some(path), ..) => Some(format!("the checkpoint names {path}, the entries do not")),
        (_, Some(path), _) => Some(format!("the entries name {path}, the checkpoint does not")),
        (.., Some(path)) => Some(format!("the checkpoint has another size of {path}")),
        _ if id(read) != id(replayed) => Some("the checkpoint is of another table".to_owned()),
        _ if read.txns != replayed.txns => {
            Some("the checkpoint has other numbers of work than the entries".to_owned())
        }
        _ => None,
    }
}

fn finding(file: String, rule: Rule, message: String) -> Finding {
    Finding { file, row: None, did: None, code: rule.code(), message }
}

/// Attempts while other writers commit.
const MAX_ATTEMPTS: u32 = 3;
