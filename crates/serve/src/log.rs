//! The durable window: the events that clients can ask for, in files, and the newest of them in memory.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use archive::{ArchiveError, ArchivedEvent, StoredGroup, StoredResult, Wal, WalOptions};
use net::cursors::CursorError;
use net::jetstream::EventKind;
use tokio::sync::watch;

use crate::event::ServedEvent;
use crate::history::{History, ServedArchive};
use crate::repeats::{RecentEvents, earliest};
use crate::seq::MAX_NUMBERS;
use crate::tail::Tail;

/// The size and the age up to which events can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// Maximum size in bytes. Default: 64 GiB.
    pub max_bytes: u64,
    /// Maximum age. Default: 72 hours.
    pub max_age: Duration,
    /// Size in bytes of the newest events, which stay in memory. Default: 4 MiB.
    pub memory_bytes: usize,
}

impl Default for Window {
    fn default() -> Self {
        let max_age = Duration::from_secs(72 * 3_600);
        Self { max_bytes: 64 << 30, max_age, memory_bytes: 4 << 20 }
    }
}

/// The events of a server.
#[derive(Debug)]
pub(crate) struct EventLog {
    pub(crate) wal: Wal,
    pub(crate) tail: Arc<Tail>,
    /// The archive of the events that the window has deleted, if there is one.
    pub(crate) history: Option<History>,
    /// The events of the archive that a source may send again.
    pub(crate) archived: RecentEvents,
    groups: Groups,
    window: Window,
}

impl EventLog {
    /// Opens the log in a folder, or begins it.
    pub(crate) async fn open(
        folder: &Path,
        window: Window,
        archive: Option<ServedArchive>,
    ) -> Result<Self, LogError> {
        let wal = Self::open_wal(&folder.join("window"), window, archive.is_some())?;
        let before = *wal.stored().borrow();
        let history = match archive {
            Some(archive) => Some(History::open(folder, archive, before)?),
            None => {
                History::interrupt(folder)?;
                None
            }
        };
        let archived = match &history {
            Some(history) => history.recent(earliest(before), wal.floor()).await?,
            None => RecentEvents::default(),
        };
        let tail = Arc::new(Tail::new(window.memory_bytes, before));
        Ok(Self { wal, tail, history, archived, groups: Groups::default(), window })
    }

    fn open_wal(folder: &Path, window: Window, is_sealed: bool) -> Result<Wal, ArchiveError> {
        let mut options = WalOptions::default();
        // Sealing takes as much memory as a segment.
        let max_segment = if is_sealed { MAX_SEALED_SEGMENT } else { MAX_SEGMENT };
        options.max_segment_bytes = (window.max_bytes / 16).clamp(MIN_SEGMENT, max_segment);
        options.max_segment_age = (window.max_age / 16).max(Duration::from_secs(1));
        options.max_gather = GATHER;
        options.max_pending_bytes = MAX_GROUP_BYTES;
        options.max_numbers = MAX_NUMBERS;
        options.keeps_segments = true;
        options.retry_interval = Some(RETRY_INTERVAL);
        Wal::open(folder, options).map(|(wal, _)| wal)
    }

    /// Stores an event with as many numbers, and calls `on_stored` once clients can have it.
    pub(crate) fn append(
        &self,
        event: &ArchivedEvent<'_>,
        served: NewEvent,
        on_stored: impl FnOnce(StoredResult) + Send + 'static,
    ) {
        let tail = self.tail.clone();
        self.wal.append_with_numbers(event, served.numbers, move |stored| {
            if let Ok(arrival) = &stored {
                tail.push(ServedEvent::new(*arrival, served.kind, &served.did, served.frame));
            }
            on_stored(stored);
        });
    }

    /// The arrival after which every event can be read; 0 if no event was deleted.
    pub(crate) fn floor(&self) -> i64 {
        let floor = self.wal.floor();
        self.history.as_ref().map_or(floor, |history| history.floor(floor))
    }

    /// The last arrival that an event takes. It changes once the event is in memory.
    pub(crate) fn stored(&self) -> watch::Receiver<i64> {
        self.wal.stored()
    }

    /// The events of a group, which all clients that read it share.
    pub(crate) fn events_of(&self, group: &StoredGroup) -> SharedEvents {
        self.groups.get(group)
    }

    /// Keeps closed segments, and deletes the segments outside of the window. With an archive, segments that are sealed.
    pub(crate) fn maintain(&self) -> Result<(), ArchiveError> {
        let wal = &self.wal;
        if self.history.is_none() {
            for segment in wal.closed_segments()? {
                wal.keep(&segment)?;
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let cutoff = now.saturating_sub(self.window.max_age).as_micros();
        wal.forget_kept(self.window.max_bytes, i64::try_from(cutoff).unwrap_or(i64::MAX))?;
        Ok(())
    }
}

/// Why a log cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The files of the window.
    #[error(transparent)]
    Window(#[from] ArchiveError),
    /// The file that says from when on the archive is complete.
    #[error(transparent)]
    History(#[from] CursorError),
}

/// An event that is being stored, as clients get it.
#[derive(Debug)]
pub(crate) struct NewEvent {
    pub(crate) kind: EventKind,
    pub(crate) did: Box<str>,
    pub(crate) frame: bytes::Bytes,
    /// How many sequence numbers it takes.
    pub(crate) numbers: u16,
}

/// The events of a group, in order of arrival.
pub(crate) type SharedEvents = Arc<[Arc<ServedEvent>]>;

/// The memory of a group of events, without their messages.
fn bytes_of(events: &SharedEvents) -> usize {
    events.iter().map(|event| event.len() + size_of::<ServedEvent>()).sum()
}

/// The groups that were read last, with the messages that clients made of their events.
#[derive(Debug, Default)]
struct Groups(Mutex<Vec<(i64, SharedEvents)>>);

impl Groups {
    fn get(&self, group: &StoredGroup) -> SharedEvents {
        let events = group.events();
        let first = events.first().map_or(0, |event| event.arrival);
        if let Some(known) = self.find(first) {
            return known;
        }
        let served = events.iter().filter_map(|event| ServedEvent::of_log(group, event));
        let served: SharedEvents = served.map(Arc::new).collect();
        let mut groups = self.lock();
        groups.push((first, served.clone()));
        while groups.iter().map(|(_, events)| bytes_of(events)).sum::<usize>() > MAX_GROUPS_BYTES {
            groups.remove(0);
        }
        served
    }

    /// The events of a group that was read before, which becomes the last to be dropped.
    fn find(&self, first: i64) -> Option<SharedEvents> {
        let mut groups = self.lock();
        let at = groups.iter().position(|(known, _)| *known == first)?;
        let found = groups.remove(at);
        groups.push(found.clone());
        Some(found.1)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(i64, SharedEvents)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time for which events are gathered before they are synced together.
const GATHER: Duration = Duration::from_millis(3);

/// Time after which a failed write is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Size in bytes of events that are not synced at which the source waits, and so about that of a group.
const MAX_GROUP_BYTES: usize = 8 << 20;

/// Bounds of the size of a segment in bytes.
const MIN_SEGMENT: u64 = 64 << 10;
const MAX_SEGMENT: u64 = 256 << 20;
const MAX_SEALED_SEGMENT: u64 = 64 << 20;

/// Maximum size in bytes of the groups in memory that clients read from files.
const MAX_GROUPS_BYTES: usize = 8 << 20;
