//! Applies the events of the log to the directory.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use atproto::event::Action;
use base::StopSignal;
use rusqlite::{Connection, Transaction};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::database;
use crate::content::Content;
use crate::event::ServedEvent;
use crate::reader::{EventReader, Ready};
use crate::shared::Shared;

/// Applies stored events until a stop is requested.
///
/// # Errors
/// If the file cannot be written, or the log cannot be read.
pub(crate) async fn keep_up(
    shared: Arc<Shared>,
    folder: &Path,
    stop: &StopSignal,
) -> Result<(), String> {
    let after = shared.directory.applied().max(shared.log.wal.floor());
    let mut reader = EventReader::new(shared.log.clone(), after);
    let writer = database::open_writer(folder).map_err(|error| error.to_string())?;
    let mut writer =
        Some(DirectoryWriter { writer, known: HashSet::new(), hasher: RandomState::new() });
    let mut stored = shared.log.stored();
    loop {
        stored.mark_unchanged();
        let gathered = gather(&mut reader, &shared, stop).await?;
        if gathered.is_empty() {
            tokio::select! {
                () = stop.requested() => return Ok(()),
                changed = stored.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                }
            }
            tokio::select! {
                () = stop.requested() => return Ok(()),
                () = wait_for_more(&shared) => {}
            }
            continue;
        }
        let Some(mut of_batch) = writer.take() else { return Ok(()) };
        let until = reader.position();
        let applied = spawn_blocking(move || {
            let result = of_batch.apply(&gathered, until);
            (of_batch, result)
        });
        let Ok((of_batch, result)) = applied.await else { return Ok(()) };
        result.map_err(|error| error.to_string())?;
        writer = Some(of_batch);
        shared.directory.applied.store(until, Relaxed);
        if stop.is_requested() {
            return Ok(());
        }
    }
}

/// Waits until there are enough events for a transaction, or they have waited long enough.
async fn wait_for_more(shared: &Shared) {
    let (until, enough) = (Instant::now() + GATHER, shared.log.tail.count() + ENOUGH_EVENTS);
    while shared.log.tail.count() < enough && Instant::now() < until {
        sleep(GATHER / 10).await;
    }
}

/// The events that are stored by now, as many as one transaction takes; fewer after a request to stop.
async fn gather(
    reader: &mut EventReader,
    shared: &Shared,
    stop: &StopSignal,
) -> Result<Vec<Arc<ServedEvent>>, String> {
    let mut gathered = Vec::new();
    while gathered.len() < MAX_EVENTS {
        let events = match reader.ready() {
            Ready::Events(events) => events,
            Ready::Stored => reader.stored().await.map_err(|error| error.to_string())?,
            Ready::Deleted => {
                *reader = EventReader::new(shared.log.clone(), shared.log.wal.floor());
                continue;
            }
            Ready::UpToDate => break,
        };
        gathered.extend(events);
        if stop.is_requested() {
            break;
        }
    }
    Ok(gathered)
}

struct DirectoryWriter {
    writer: Connection,
    /// Hashes of collections and accounts that are in the file.
    known: HashSet<u64>,
    hasher: RandomState,
}

impl DirectoryWriter {
    /// Applies events, and records that all up to an arrival are applied.
    fn apply(&mut self, events: &[Arc<ServedEvent>], until: i64) -> Result<(), rusqlite::Error> {
        if self.known.len() > MAX_KNOWN {
            self.known.clear();
        }
        let transaction = self.writer.transaction()?;
        for event in events {
            apply_event(&transaction, event, &mut self.known, &self.hasher)?;
        }
        database::set_applied(&transaction, until)?;
        transaction.commit()
    }
}

fn apply_event(
    transaction: &Transaction<'_>,
    event: &ServedEvent,
    known: &mut HashSet<u64>,
    hasher: &RandomState,
) -> Result<(), rusqlite::Error> {
    match event.content() {
        Content::Commit(commit) => {
            database::put_head(transaction, &event.did, &commit.head)?;
            for op in commit.ops.iter().filter(|op| op.action != Action::Delete) {
                if known.insert(hasher.hash_one((&op.collection, &event.did))) {
                    database::put_collection(transaction, &op.collection, &event.did)?;
                }
            }
            Ok(())
        }
        Content::Sync { head, .. } => database::put_head(transaction, &event.did, head),
        Content::Account { active, status, .. } => {
            let status = status.as_deref();
            if status == Some("deleted") {
                known.clear();
            }
            database::put_status(transaction, &event.did, *active, status)
        }
        Content::Identity { .. } | Content::Unreadable => Ok(()),
    }
}

/// Time for which events are gathered into a transaction: a page of the file has forty accounts, and is written once for all.
const GATHER: Duration = Duration::from_secs(1);

/// Events that are not worth waiting longer: they are still in memory.
const ENOUGH_EVENTS: u64 = 1_024;

/// Events after which a transaction takes no more.
const MAX_EVENTS: usize = 4_096;

/// Maximum number of hashes.
const MAX_KNOWN: usize = 1_000_000;
