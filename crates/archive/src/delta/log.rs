//! The log of one table: entries under `_delta_log`, created once by the first writer.
//!
//! It is listed, and read whole or not at all: an entry that is missing between others, or that was there before, is an error and
//! never the end of the log.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::action::{Action, Add, CommitInfo, KNOWN, MetaData, Protocol, Remove, Txn};
use super::checkpoint;
use super::entry_hash::{self, ENTRY};
use super::head::Head;
use super::listing::{LAST_CHECKPOINT, Listing};
use super::snapshot::Snapshot;
use crate::error::{ArchiveError, ArchiveFault};
use crate::ids::uuid;
use crate::storage::Storage;

/// The log of a table.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    storage: Storage,
    /// The table's folder within the archive.
    table: String,
}

/// The changes of a commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) operation: &'static str,
    pub(crate) add: Vec<Add>,
    pub(crate) remove: Vec<Remove>,
    /// The applications and the versions of their work: a version that the log has already is not committed again.
    pub(crate) txns: Vec<(String, i64)>,
    /// The versions of applications' work after which the change is meant. If one of them is another, the change is not committed;
    /// if there are any, versions may also decrease.
    pub(crate) after: Vec<(String, Option<i64>)>,
    /// The version as which alone the change is meant.
    pub(crate) version: Option<u64>,
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// As this version of the log.
    Version(u64),
    /// The log had this version of an application's work.
    Before,
    /// A file that was to be removed is no longer of the table, or the log or an application's work has another version.
    Superseded,
}

impl Log {
    pub(crate) fn new(storage: Storage, table: &str) -> Self {
        Self { storage, table: table.to_owned() }
    }

    /// Brings the snapshot to the newest version.
    ///
    /// # Errors
    /// If the log cannot be read whole, or is shorter than it was. The snapshot is then empty.
    pub(crate) async fn update(&self, snapshot: &mut Arc<Snapshot>) -> Result<(), ArchiveError> {
        self.update_to(snapshot, 0).await
    }

    /// As [`update`](Self::update), of a log that has at least so many versions. A store that does not list or serve an entry for
    /// a moment is asked again.
    async fn update_to(
        &self,
        snapshot: &mut Arc<Snapshot>,
        at_least: u64,
    ) -> Result<(), ArchiveError> {
        let at_least = at_least.max(snapshot.next_version);
        let mut delay = FIRST_DELAY;
        loop {
            let error = match self.try_update(snapshot, at_least).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            *snapshot = Arc::default();
            if !may_pass(&error.fault) || delay > LAST_DELAY {
                return Err(error);
            }
            tokio::time::sleep(delay).await;
            delay *= 2;
        }
    }

    async fn try_update(
        &self,
        snapshot: &mut Arc<Snapshot>,
        at_least: u64,
    ) -> Result<(), ArchiveError> {
        let known = snapshot.next_version;
        let folder = self.folder();
        let listing = match known.checked_sub(1) {
            // The last known entry is listed too: one that is gone must be noticed.
            Some(last) => self.storage.list_after(&folder, &format!("{last:020}.")).await?,
            None => self.storage.list(&folder).await?,
        };
        let listing = Listing::of(&listing, &folder);
        let head = if known == 0 { Head::read(&self.storage, &self.table).await? } else { None };
        let at_least = at_least.max(head.as_ref().map_or(0, |head| head.version.saturating_add(1)));
        let failed = |fault| ArchiveError::new(&*folder, fault);
        if known == 0 && listing.has_last_checkpoint {
            self.check_last_checkpoint(&listing).await?;
        }
        if listing.versions() < at_least {
            let found = listing.versions();
            return Err(failed(ArchiveFault::ShorterLog { found, known: at_least }));
        }
        if listing.versions() == known {
            return Ok(());
        }
        let plan = listing.plan(known).map_err(failed)?;
        let mut next = match &plan.checkpoint {
            Some((version, names)) => self.read_checkpoint(*version, names).await?,
            None => std::mem::take(snapshot),
        };
        let found = Arc::make_mut(&mut next);
        self.read_entries(found, &listing, plan.commits).await?;
        found.check().map_err(failed)?;
        if let Some(head) = head {
            self.check_head(&head, found, &listing).await?;
        }
        *snapshot = next;
        Ok(())
    }

    /// Checks that a checkpoint is there as new as the one that `_last_checkpoint` names.
    async fn check_last_checkpoint(&self, listing: &Listing) -> Result<(), ArchiveError> {
        #[derive(Deserialize)]
        struct LastCheckpoint {
            version: u64,
        }
        let path = format!("{}/{LAST_CHECKPOINT}", self.folder());
        // Every checkpoint replaces it: while it is missing, a newer checkpoint exists.
        let Some(json) = self.storage.get(&path).await? else { return Ok(()) };
        let last: LastCheckpoint = serde_json::from_slice(&json).map_err(|error| {
            ArchiveError::new(&*path, ArchiveFault::Log(format!("names no checkpoint: {error}")))
        })?;
        if listing.newest_checkpoint().is_some_and(|newest| newest >= last.version) {
            return Ok(());
        }
        Err(ArchiveError::new(path, ArchiveFault::MissingVersion(last.version)))
    }

    /// Reads entries, several at a time: an object store answers slowly.
    async fn read_entries(
        &self,
        snapshot: &mut Snapshot,
        listing: &Listing,
        versions: std::ops::Range<u64>,
    ) -> Result<(), ArchiveError> {
        let entries = versions.map(|version| {
            let size = listing.commits.get(&version).copied().unwrap_or_default();
            self.read_entry(version, size)
        });
        let mut entries = std::pin::pin!(stream::iter(entries).buffered(MAX_AHEAD));
        while let Some(entry) = entries.try_next().await? {
            self.apply(snapshot, &entry)?;
        }
        Ok(())
    }

    /// The bytes of an entry that is listed.
    async fn read_entry(&self, version: u64, size: u64) -> Result<Bytes, ArchiveError> {
        let path = self.entry_path(version);
        if size > MAX_ENTRY_BYTES {
            let fault = ArchiveFault::Log(format!("an entry of {size} bytes"));
            return Err(ArchiveError::new(path, fault));
        }
        let entry = self.storage.get(&path).await?;
        entry.ok_or_else(|| ArchiveError::new(path, ArchiveFault::MissingVersion(version)))
    }

    fn apply(&self, snapshot: &mut Snapshot, entry: &[u8]) -> Result<(), ArchiveError> {
        let path = self.entry_path(snapshot.next_version);
        apply_entry(snapshot, entry).map_err(ArchiveError::at(&path))?;
        snapshot.next_version += 1;
        Ok(())
    }

    /// The table as of a checkpoint.
    async fn read_checkpoint(
        &self,
        version: u64,
        names: &[String],
    ) -> Result<Arc<Snapshot>, ArchiveError> {
        let mut snapshot = Snapshot { next_version: version + 1, ..Snapshot::default() };
        let mut sidecars = Vec::new();
        for name in names {
            let found = self.read_checkpoint_file(name, version, &mut snapshot).await?;
            sidecars.extend(found);
        }
        for sidecar in sidecars {
            // A URI, or a name alone: sidecars are in one folder.
            let name = sidecar.rsplit('/').next().unwrap_or_default();
            let name = format!("{SIDECARS}/{name}");
            self.read_checkpoint_file(&name, version, &mut snapshot).await?;
        }
        let failed = ArchiveError::at(&names[0]);
        snapshot.check().map_err(failed)?;
        Ok(Arc::new(snapshot))
    }

    /// Reads a file of a checkpoint. Returns the names of sidecars.
    async fn read_checkpoint_file(
        &self,
        name: &str,
        version: u64,
        snapshot: &mut Snapshot,
    ) -> Result<Vec<String>, ArchiveError> {
        let path = format!("{}/{name}", self.folder());
        let file = self.storage.fetch(&path, MAX_CHECKPOINT_BYTES).await?;
        let missing = || ArchiveError::new(&*path, ArchiveFault::MissingVersion(version));
        let file = file.ok_or_else(missing)?;
        let mut sidecars = Vec::new();
        let mut visit = |action: Action| {
            if let Action::Sidecar(sidecar) = &action {
                sidecars.push(sidecar.path.clone());
            }
            snapshot.apply(action, None)
        };
        let read = if name.ends_with(".json") {
            read_actions(&file).and_then(|actions| actions.into_iter().try_for_each(visit))
        } else {
            checkpoint::read(file, &mut visit)
        };
        read.map_err(ArchiveError::at(&path))?;
        Ok(sidecars)
    }

    /// Checks that the log is the one of which a version is remembered.
    async fn check_head(
        &self,
        head: &Head,
        snapshot: &Snapshot,
        listing: &Listing,
    ) -> Result<(), ArchiveError> {
        let other = || ArchiveError::new(self.folder(), ArchiveFault::OtherLog(head.version));
        if snapshot.metadata.as_ref().is_none_or(|metadata| metadata.id != head.id) {
            return Err(other());
        }
        let Some(size) = listing.commits.get(&head.version) else { return Ok(()) };
        let entry = self.read_entry(head.version, *size).await?;
        if head.sha256 == sha256(&entry) { Ok(()) } else { Err(other()) }
    }

    /// The table as its entries alone give it, without a checkpoint; `None` if the first ones are gone.
    pub(crate) async fn replay_entries(&self) -> Result<Option<Snapshot>, ArchiveError> {
        let folder = self.folder();
        let listing = Listing::of(&self.storage.list(&folder).await?, &folder);
        let mut snapshot = Snapshot::default();
        let versions = listing.versions();
        if listing.newest_checkpoint().is_none()
            || !(0..versions).all(|version| listing.commits.contains_key(&version))
        {
            return Ok(None);
        }
        self.read_entries(&mut snapshot, &listing, 0..versions).await?;
        Ok(Some(snapshot))
    }

    /// Commits a change after the last entry, by any writer, and brings the snapshot up to date. `create` makes the
    /// table's metadata if it has none.
    pub(crate) async fn commit(
        &self,
        snapshot: &mut Arc<Snapshot>,
        change: &Change,
        create: impl Fn() -> MetaData,
    ) -> Result<Committed, ArchiveError> {
        let mut at_least = 0;
        for _ in 0..MAX_ATTEMPTS {
            self.update_to(snapshot, at_least).await?;
            if let Some(outcome) = change.is_needless(snapshot) {
                return Ok(outcome);
            }
            if snapshot.is_append_only() && change.deletes_rows() {
                return Err(ArchiveError::new(&*self.table, ArchiveFault::AppendOnly));
            }
            let created = (snapshot.next_version == 0).then(&create);
            let entry = entry(change, created);
            let version = snapshot.next_version;
            let path = self.entry_path(version);
            let is_ours = self.storage.put_new(&path, entry.clone()).await?
                // The client repeats a put whose answer was lost, and the repeated put finds the first.
                || self.storage.get(&path).await?.is_some_and(|found| found == entry);
            if is_ours {
                self.apply(Arc::make_mut(snapshot), &entry)?;
                self.remember(snapshot, &entry).await?;
                return Ok(Committed::Version(version));
            }
            at_least = version + 1;
        }
        Err(ArchiveError::new(&*self.table, ArchiveFault::Contention(MAX_ATTEMPTS)))
    }

    /// Remembers the version that was committed, and writes a checkpoint of every fiftieth one.
    async fn remember(&self, snapshot: &Snapshot, entry: &[u8]) -> Result<(), ArchiveError> {
        let version = snapshot.next_version - 1;
        let id = snapshot.metadata.as_ref().map(|metadata| metadata.id.clone());
        let head = Head::new(version, id.unwrap_or_default(), sha256(entry));
        head.write(&self.storage, &self.table).await?;
        if version > 0 && version.is_multiple_of(CHECKPOINT_VERSIONS) {
            // The version is committed: without a checkpoint, more entries are read until the next one.
            match self.write_checkpoint(version, snapshot).await {
                Err(error) if !error.is_temporary() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn write_checkpoint(
        &self,
        version: u64,
        snapshot: &Snapshot,
    ) -> Result<(), ArchiveError> {
        let name = format!("{version:020}.checkpoint.parquet");
        let actions = snapshot.actions(now_ms());
        let file = checkpoint::write(&actions).map_err(ArchiveError::at(&name))?;
        let bytes = file.len();
        // Another program may have written it already.
        if self.storage.put_new(&format!("{}/{name}", self.folder()), file).await? {
            let last = serde_json::json!({
                "version": version, "size": actions.len(), "sizeInBytes": bytes,
                "numOfAddFiles": snapshot.files.len(),
            });
            let path = format!("{}/{LAST_CHECKPOINT}", self.folder());
            self.storage.put(&path, last.to_string().into()).await?;
        }
        Ok(())
    }

    fn folder(&self) -> String {
        format!("{}/_delta_log", self.table)
    }

    fn entry_path(&self, version: u64) -> String {
        format!("{}/{version:020}.json", self.folder())
    }
}

impl Change {
    /// Why the change must not be committed after this snapshot.
    fn is_needless(&self, snapshot: &Snapshot) -> Option<Committed> {
        let is_before = |(app, version): &(String, i64)| {
            snapshot.txns.get(app).is_some_and(|last| last >= version)
        };
        if self.after.is_empty() && self.txns.iter().any(is_before) {
            return Some(Committed::Before);
        }
        let is_other =
            |(app, version): &(String, Option<i64>)| snapshot.txns.get(app).copied() != *version;
        let is_gone = |remove: &Remove| !snapshot.files.contains_key(&remove.path);
        let is_later = self.version.is_some_and(|version| version != snapshot.next_version);
        let is_superseded =
            is_later || self.after.iter().any(is_other) || self.remove.iter().any(is_gone);
        is_superseded.then_some(Committed::Superseded)
    }

    /// Whether rows are deleted, and not only moved to other files.
    fn deletes_rows(&self) -> bool {
        self.remove.iter().any(|remove| remove.data_change)
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
    let txns = change.txns.iter().map(|(app_id, version)| Txn {
        app_id: app_id.clone(),
        version: *version,
        last_updated: Some(now),
    });
    actions.extend(txns.map(Action::Txn));
    actions.extend(change.remove.iter().cloned().map(|remove| Action::Remove(Box::new(remove))));
    actions.extend(change.add.iter().cloned().map(|add| Action::Add(Box::new(add))));
    let mut lines = Vec::new();
    for action in &actions {
        serde_json::to_writer(&mut lines, action).expect("actions have string keys");
        lines.push(b'\n');
    }
    ENTRY.set(&mut lines);
    lines.into()
}

/// Applies the actions of an entry.
fn apply_entry(snapshot: &mut Snapshot, entry: &[u8]) -> Result<(), ArchiveFault> {
    if !ENTRY.is_right(entry) {
        return Err(ArchiveFault::ChangedEntry);
    }
    let actions = read_actions(entry)?;
    let info = actions.iter().find_map(|action| match action {
        Action::CommitInfo(info) => Some(info),
        _ => None,
    });
    let writer = writer(info);
    actions.into_iter().try_for_each(|action| snapshot.apply(action, writer.as_deref()))
}

/// The program that committed an entry, and the operation; `None` if it is this one.
fn writer(info: Option<&CommitInfo>) -> Option<String> {
    let Some(CommitInfo { engine_info: engine, operation, .. }) = info else {
        return Some("a program that does not state its name".to_owned());
    };
    match (engine.starts_with("wireproof/"), engine.is_empty()) {
        (true, _) => None,
        (_, true) => Some(format!("a program that does not state its name, by {operation}")),
        _ => Some(format!("{engine}, by {operation}")),
    }
}

/// Reads the lines of an entry; lines of unknown actions are left out.
fn read_actions(entry: &[u8]) -> Result<Vec<Action>, ArchiveFault> {
    let lines = entry.split(|byte| *byte == b'\n').enumerate();
    let mut lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty()).peekable();
    if lines.peek().is_none() {
        return Err(ArchiveFault::Log("the entry is empty".to_owned()));
    }
    lines.filter_map(|(index, line)| read_action(index + 1, line).transpose()).collect()
}

fn read_action(line: usize, json: &[u8]) -> Result<Option<Action>, ArchiveFault> {
    let failed =
        |error: serde_json::Error| ArchiveFault::LogLine { line, reason: error.to_string() };
    let value: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(json).map_err(failed)?;
    if !value.keys().any(|key| KNOWN.contains(&&**key)) {
        return Ok(None);
    }
    let is_info = value.contains_key("commitInfo");
    match serde_json::from_value(value.into()) {
        // Programs put any fields in it.
        Err(_) if is_info => Ok(Some(Action::CommitInfo(CommitInfo::default()))),
        action => action.map(Some).map_err(failed),
    }
}

/// Whether a fault may be one of a moment: a store that does not list or serve an entry yet, or a log that is being changed.
fn may_pass(fault: &ArchiveFault) -> bool {
    matches!(fault, ArchiveFault::MissingVersion(_) | ArchiveFault::ShorterLog { .. })
}

fn sha256(entry: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(entry))
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as i64
}

/// The protocol of a new table: every reader and writer knows it.
const PROTOCOL: Protocol = Protocol {
    min_reader_version: 1,
    min_writer_version: 2,
    reader_features: None,
    writer_features: None,
};

/// The folder of sidecars within the log's folder.
const SIDECARS: &str = "_sidecars";

/// Versions from one checkpoint to the next.
const CHECKPOINT_VERSIONS: u64 = 50;

/// Entries that are read at a time.
const MAX_AHEAD: usize = 32;

/// Size of an entry in bytes: some million files.
const MAX_ENTRY_BYTES: u64 = 512 << 20;

/// Size of a file of a checkpoint in bytes.
const MAX_CHECKPOINT_BYTES: u64 = 1 << 30;

/// Delays before a log that seems to have a hole is read again: 50, 100, 200, 400 and 800 ms.
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LAST_DELAY: Duration = Duration::from_millis(800);

/// Attempts at a commit while other writers come first.
const MAX_ATTEMPTS: u32 = 1_000;
