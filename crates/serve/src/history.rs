//! The archive next to the window: closed segments are sealed into it before the window deletes them, and clients read deleted
//! events from it.
//!
//! The number of an event in the archive is its arrival, as in the window: so the two meet at the window's floor, without a
//! gap or a repetition.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::{ActiveAccounts, Archive, ArchiveError, Replay, ReplayedEvent, Wal};
use base::StopSignal;
use net::cursors::{CursorError, CursorStore, FileCursors};

use crate::event::{ServedEvent, kind_of};
use crate::log::SharedEvents;
use crate::repeats::RecentEvents;

/// An archive for the events of a server, which alone writes to it.
#[derive(Clone)]
pub struct ServedArchive {
    /// The archive.
    pub archive: Archive,
    /// Says whether erased accounts with later events are active.
    pub servers: Arc<dyn ActiveAccounts>,
}

impl std::fmt::Debug for ServedArchive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServedArchive").field("archive", &self.archive).finish_non_exhaustive()
    }
}

/// An archive, and the arrival after which it has every event that the window has deleted.
#[derive(Debug)]
pub(crate) struct History {
    served: ServedArchive,
    after: i64,
}

impl History {
    /// The history of a log whose last event is `last`. An archive that was not there before, or not all the time, is
    /// complete from now on.
    pub(crate) fn open(
        folder: &Path,
        served: ServedArchive,
        last: i64,
    ) -> Result<Self, CursorError> {
        let marker = FileCursors::open(marker_path(folder))?;
        let address = served.archive.storage().address();
        let after = match marker.load(address)? {
            Some(after) => i64::try_from(after).unwrap_or(i64::MAX),
            None => {
                // Another archive has a gap from now on.
                drop(marker);
                Self::interrupt(folder)?;
                let marker = FileCursors::open(marker_path(folder))?;
                marker.store(&[(address, last.unsigned_abs())])?;
                last
            }
        };
        Ok(Self { served, after })
    }

    pub(crate) fn archive(&self) -> &Archive {
        &self.served.archive
    }

    /// Records that the window deletes events that no archive has.
    pub(crate) fn interrupt(folder: &Path) -> Result<(), CursorError> {
        FileCursors::open(marker_path(folder))?.remove()
    }

    /// The arrival after which every event can be read, in the window or here.
    pub(crate) fn floor(&self, of_window: i64) -> i64 {
        of_window.min(self.after)
    }

    /// Seals the closed segments, which the window may delete afterwards; after a request to stop, no further one. The
    /// first is always sealed: an end of the process may have left it in one table of the archive alone.
    pub(crate) async fn seal(&self, wal: &Wal, stop: &StopSignal) -> Result<(), ArchiveError> {
        for segment in wal.closed_segments()? {
            wal.seal_confirmed(&segment, &self.served.archive, &*self.served.servers).await?;
            if stop.is_requested() {
                break;
            }
        }
        Ok(())
    }

    /// The events after one arrival, up to another, which a source may send again.
    pub(crate) async fn recent(
        &self,
        after: i64,
        until: i64,
    ) -> Result<RecentEvents, ArchiveError> {
        let mut recent = RecentEvents::default();
        if after < until {
            let mut replay = self.replay(after, until).await?;
            while let Some(replayed) = replay.next().await? {
                recent.add(&replayed.event());
            }
        }
        Ok(recent)
    }

    /// The events that arrived after one arrival, up to another.
    pub(crate) async fn replay(&self, after: i64, until: i64) -> Result<Replay, ArchiveError> {
        let replay = self.served.archive.replay_events(i64::MIN..=until).await?;
        Ok(replay.after_number(after))
    }
}

/// The next events of a history; `None` at its end.
pub(crate) async fn next_events(replay: &mut Replay) -> Result<Option<SharedEvents>, ArchiveError> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    while events.len() < MAX_EVENTS && bytes < MAX_BYTES {
        let Some(replayed) = replay.next().await? else { break };
        if let Some(event) = served(&replayed) {
            bytes += event.len();
            events.push(Arc::new(event));
        }
    }
    Ok((!events.is_empty()).then(|| events.into()))
}

fn served(replayed: &ReplayedEvent) -> Option<ServedEvent> {
    let event = replayed.event();
    let (kind, did) = (kind_of(event.kind)?, event.did?);
    let frame = bytes::Bytes::copy_from_slice(event.frame);
    Some(ServedEvent::new(replayed.number(), kind, did, frame))
}

/// The file that says from which arrival on an archive is complete.
fn marker_path(folder: &Path) -> PathBuf {
    folder.join("archive.json")
}

/// Maximum number and size of the events that are read at once.
const MAX_EVENTS: usize = 512;
const MAX_BYTES: usize = 1 << 20;
