//! The log of one table: entries under `_delta_log`, each created once by the writer that comes first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::action::{Action, Add, CommitInfo, MetaData, Protocol, Remove, Txn};
use super::entry_hash;
use crate::error::{ArchiveError, ArchiveFault};
use crate::storage::Storage;

/// The log of a table.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    storage: Storage,
    /// The table's folder within the archive.
    table: String,
}

/// A table as of a version of its log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Number of entries: the next version.
    pub(crate) next_version: u64,
    pub(crate) metadata: Option<MetaData>,
    /// The files, by path within the table's folder.
    pub(crate) files: BTreeMap<String, Add>,
    /// The files that were removed, by path within the table's folder.
    pub(crate) removed: BTreeSet<String>,
    /// The last version of each application.
    pub(crate) txns: BTreeMap<String, i64>,
}

/// What a commit changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) operation: &'static str,
    pub(crate) add: Vec<Add>,
    pub(crate) remove: Vec<Remove>,
    /// The application and the version of its work: a version that the log has already is not committed again.
    pub(crate) txn: Option<(String, i64)>,
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// As this version of the log.
    Version(u64),
    /// The log had this version of the application's work.
    Before,
    /// A file that was to be removed is no longer of the table.
    Superseded,
}

impl Log {
    pub(crate) fn new(storage: Storage, table: &str) -> Self {
        Self { storage, table: table.to_owned() }
    }

    /// Reads the entries that follow those of the snapshot, the more at a time the more there are: an object store answers
    /// each after some time.
    pub(crate) async fn update(&self, snapshot: &mut Snapshot) -> Result<(), ArchiveError> {
        let mut ahead = 1;
        loop {
            let versions = snapshot.next_version..snapshot.next_version + ahead as u64;
            let entries = stream::iter(versions.map(|version| self.entry_path(version)));
            let entries = entries.map(|path| {
                let storage = self.storage.clone();
                async move { storage.get(&path).await }
            });
            let entries = entries.buffered(ahead);
            let mut entries = std::pin::pin!(entries);
            while let Some(entry) = entries.try_next().await? {
                let Some(entry) = entry else { return Ok(()) };
                self.apply(snapshot, &entry)?;
            }
            ahead = MAX_AHEAD.min(2 * ahead);
        }
    }

    fn apply(&self, snapshot: &mut Snapshot, entry: &[u8]) -> Result<(), ArchiveError> {
        let path = self.entry_path(snapshot.next_version);
        if !entry_hash::is_right(entry) {
            return Err(ArchiveError::new(path, ArchiveFault::ChangedEntry));
        }
        for action in read_entry(entry) {
            match action.map_err(ArchiveError::at(&path))? {
                Action::Protocol(protocol) => {
                    check_protocol(protocol).map_err(ArchiveError::at(&path))?
                }
                Action::MetaData(metadata) => snapshot.metadata = Some(*metadata),
                Action::Add(add) => {
                    snapshot.removed.remove(&add.path);
                    snapshot.files.insert(add.path.clone(), *add);
                }
                Action::Remove(remove) => {
                    snapshot.files.remove(&remove.path);
                    snapshot.removed.insert(remove.path);
                }
                Action::Txn(txn) => drop(snapshot.txns.insert(txn.app_id, txn.version)),
                Action::CommitInfo(_) => {}
            }
        }
        snapshot.next_version += 1;
        Ok(())
    }

    /// Commits a change after the last entry, whoever wrote that, and brings the snapshot up to date. `create` makes the
    /// table's metadata if it has none.
    pub(crate) async fn commit(
        &self,
        snapshot: &mut Snapshot,
        change: &Change,
        create: impl Fn() -> MetaData,
    ) -> Result<Committed, ArchiveError> {
        for _ in 0..MAX_ATTEMPTS {
            self.update(snapshot).await?;
            if let Some(outcome) = change.is_needless(snapshot) {
                return Ok(outcome);
            }
            let created = snapshot.metadata.is_none().then(&create);
            let entry = entry(change, created);
            let version = snapshot.next_version;
            let path = self.entry_path(version);
            let is_ours = self.storage.put_new(&path, entry.clone()).await?
                // A put whose answer was lost is repeated by the client, and then finds itself.
                || self.storage.get(&path).await?.is_some_and(|found| found == entry);
            if is_ours {
                self.apply(snapshot, &entry)?;
                return Ok(Committed::Version(version));
            }
        }
        Err(ArchiveError::new(&*self.table, ArchiveFault::Contention(MAX_ATTEMPTS)))
    }

    fn entry_path(&self, version: u64) -> String {
        format!("{}/_delta_log/{version:020}.json", self.table)
    }
}

impl Change {
    /// Why the change must not be committed after this snapshot.
    fn is_needless(&self, snapshot: &Snapshot) -> Option<Committed> {
        let is_before = |(app, version): &(String, i64)| {
            snapshot.txns.get(app).is_some_and(|last| last >= version)
        };
        if self.txn.as_ref().is_some_and(is_before) {
            return Some(Committed::Before);
        }
        let is_gone = |remove: &Remove| !snapshot.files.contains_key(&remove.path);
        self.remove.iter().any(is_gone).then_some(Committed::Superseded)
    }
}

/// The lines of an entry.
fn entry(change: &Change, created: Option<MetaData>) -> Bytes {
    let now = now_ms();
    let info = CommitInfo {
        timestamp: now,
        operation: change.operation.to_owned(),
        engine_info: concat!("wireproof/", env!("CARGO_PKG_VERSION")).to_owned(),
        txn_id: uuid(),
        entry_sha256: entry_hash::NONE.to_owned(),
    };
    let mut actions = vec![Action::CommitInfo(info)];
    if let Some(metadata) = created {
        actions.push(Action::Protocol(PROTOCOL));
        actions.push(Action::MetaData(Box::new(metadata)));
    }
    let txn = change.txn.clone().map(|(app_id, version)| Txn {
        app_id,
        version,
        last_updated: Some(now),
    });
    actions.extend(txn.map(Action::Txn));
    actions.extend(change.remove.iter().cloned().map(|remove| Action::Remove(Box::new(remove))));
    actions.extend(change.add.iter().cloned().map(|add| Action::Add(Box::new(add))));
    let mut lines = Vec::new();
    for action in &actions {
        serde_json::to_writer(&mut lines, action).expect("actions have string keys");
        lines.push(b'\n');
    }
    entry_hash::set(&mut lines);
    lines.into()
}

/// Reads the lines of an entry; those of unknown actions are left out.
fn read_entry(entry: &[u8]) -> impl Iterator<Item = Result<Action, ArchiveFault>> {
    let lines = entry.split(|byte| *byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.is_empty())
        .filter_map(|(index, line)| read_action(index + 1, line).transpose())
}

fn read_action(line: usize, json: &[u8]) -> Result<Option<Action>, ArchiveFault> {
    let failed =
        |error: serde_json::Error| ArchiveFault::LogLine { line, reason: error.to_string() };
    let value: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(json).map_err(failed)?;
    if !value.keys().any(|key| KNOWN.contains(&&**key)) {
        return Ok(None);
    }
    serde_json::from_value(value.into()).map(Some).map_err(failed)
}

fn check_protocol(protocol: Protocol) -> Result<(), ArchiveFault> {
    let Protocol { min_reader_version: reader, min_writer_version: writer } = protocol;
    let checks = [(reader, PROTOCOL.min_reader_version), (writer, PROTOCOL.min_writer_version)];
    match checks.into_iter().find(|(demanded, known)| demanded > known) {
        Some((demanded, known)) => Err(ArchiveFault::Protocol { demanded, known }),
        None => Ok(()),
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64
}

/// A random UUID.
pub(crate) fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The versions of the protocol that this program writes and reads.
const PROTOCOL: Protocol = Protocol { min_reader_version: 1, min_writer_version: 2 };

const KNOWN: [&str; 6] = ["protocol", "metaData", "add", "remove", "txn", "commitInfo"];

/// Entries that are read at a time.
const MAX_AHEAD: usize = 32;

/// Attempts at a commit while other writers come first.
const MAX_ATTEMPTS: u32 = 1_000;
