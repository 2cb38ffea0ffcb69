//! The open segment: events are gathered into groups, and one thread writes and syncs the groups.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::crash_point;
use base::{Lock, LockError, LockFault};
use mapping::MappedFile;
use tokio::sync::{oneshot, watch};

use super::catalogue::Catalogue;
use super::record::{self, SEGMENT_HEADER_LEN, Salt, SegmentHeader};
use super::segment::{Segment, segment_path, segments};
use crate::delta::now_ms;
use crate::error::{ArchiveError, ArchiveFault};
use crate::event::ArchivedEvent;
use crate::ids::uuid;
use crate::staged_file::temporary_file;
use crate::storage::refuse_link;

/// Options of a [`Wal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WalOptions {
    /// Size in bytes at which a segment is closed, and about the memory that sealing it takes. Default: 192 MiB.
    pub max_segment_bytes: u64,
    /// Age at which a segment is closed. Default: an hour.
    pub max_segment_age: Duration,
    /// Maximum time for which events are gathered before they are synced. Default: 20 ms.
    pub max_gather: Duration,
    /// Maximum size in bytes of events that are not synced yet: the source waits at it. Default: 64 MiB.
    pub max_pending_bytes: usize,
    /// Maximum size in bytes of the events that are not sealed, but at least four segments: the source waits at it.
    /// Default: 16 GiB.
    pub max_unsealed_bytes: u64,
    /// Maximum number of successive arrivals that one event takes. Default: 1.
    pub max_numbers: u16,
    /// Whether a sealed segment stays in the folder, for [readers](super::WalReader), until it is
    /// [forgotten](Wal::forget_kept). Default: no.
    pub keeps_segments: bool,
    /// Time after which a failed write is tried again; meanwhile the source waits. Otherwise later events are refused.
    /// Default: none.
    pub retry_interval: Option<Duration>,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            max_segment_bytes: 192 << 20,
            max_segment_age: Duration::from_secs(3_600),
            max_gather: Duration::from_millis(20),
            max_pending_bytes: 64 << 20,
            max_unsealed_bytes: 16 << 30,
            max_numbers: 1,
            keeps_segments: false,
            retry_interval: None,
        }
    }
}

/// Why events were not stored: earlier events were stored.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct WalError {
    path: Arc<Path>,
    error: Arc<io::Error>,
}

/// The arrival of an event that is on the disk.
pub type StoredResult = Result<i64, WalError>;

type OnStored = Box<dyn FnOnce(StoredResult) + Send>;

/// A write-ahead log, in a folder of this machine. One process at a time writes to it.
#[derive(Debug)]
pub struct Wal {
    shared: Arc<Shared>,
    folder: PathBuf,
    name: String,
    thread: Option<JoinHandle<()>>,
    current: watch::Receiver<u64>,
    options: WalOptions,
    _lock: Lock,
}

/// State that the thread shares with the callers.
#[derive(Debug)]
pub(super) struct Shared {
    pending: Mutex<Pending>,
    /// Notified when events are added, or something is requested.
    added: Condvar,
    /// Notified when events were taken.
    taken: Condvar,
    last_arrival: AtomicI64,
    max_pending_bytes: usize,
    /// Size in bytes of all segments.
    unsealed_bytes: AtomicU64,
    max_unsealed_bytes: u64,
    /// The events by segment.
    segments: Mutex<BTreeMap<u64, SegmentEvents>>,
    catalogue: Mutex<Catalogue>,
    /// The last arrival that a stored event takes.
    stored: watch::Sender<i64>,
}

/// The events of a segment.
#[derive(Clone, Copy, Debug, Default)]
struct SegmentEvents {
    count: u64,
    /// When the oldest one was received or written, in microseconds since 1970.
    oldest: Option<i64>,
}

/// The events in the log that are not sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsealed {
    /// Number of events.
    pub events: u64,
    /// Size of the segments in bytes.
    pub bytes: u64,
    /// When the oldest event was received, in microseconds since 1970; `None` without one.
    pub oldest: Option<i64>,
}

/// The events that are not written yet.
#[derive(Default)]
struct Pending {
    records: Vec<u8>,
    on_stored: Vec<(i64, OnStored)>,
    /// The last arrival that these events take.
    end: i64,
    /// Callers that wait for the segment to be closed after these events.
    closing: Vec<oneshot::Sender<()>>,
    is_stopped: bool,
    /// Whether no write is tried again.
    gives_up: bool,
    /// Why events wait to be written.
    obstacle: Option<String>,
    failure: Option<WalError>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pending").field("events", &self.on_stored.len()).finish_non_exhaustive()
    }
}

impl Wal {
    /// Opens the log in this folder, creates it if missing, and goes on after the last whole group. The second value is the
    /// number of bytes of an incomplete group that a crash left, whose events were never reported as stored.
    ///
    /// # Errors
    /// If another process has the log, a segment is damaged, or the folder cannot be written.
    pub fn open(folder: &Path, options: WalOptions) -> Result<(Self, u64), ArchiveError> {
        let address = folder.display().to_string();
        fs::create_dir_all(folder).map_err(ArchiveError::at::<io::Error>(&address))?;
        refuse_link(&folder.join("wal.lock")).map_err(ArchiveError::at::<io::Error>(&address))?;
        let lock = Lock::take(&folder.join("wal")).map_err(|error| not_locked(&address, error))?;
        let name = writer_name(folder).map_err(ArchiveError::at(&address))?;
        let (segment, last_arrival, dropped) = OpenSegment::recover(folder, options.max_numbers)?;
        let mut catalogue = Catalogue::read(folder).map_err(ArchiveError::at(&address))?;
        catalogue.set_len(segment.number, segment.len);
        let sizes = segments(folder).and_then(|segments| segments.iter().map(Segment::len).sum());
        let unsealed_bytes: u64 = sizes.map_err(ArchiveError::at::<io::Error>(&address))?;
        let shared = Arc::new(Shared {
            pending: Mutex::default(),
            added: Condvar::new(),
            taken: Condvar::new(),
            last_arrival: AtomicI64::new(last_arrival),
            max_pending_bytes: options.max_pending_bytes,
            unsealed_bytes: AtomicU64::new(unsealed_bytes),
            max_unsealed_bytes: options.max_unsealed_bytes.max(4 * options.max_segment_bytes),
            segments: Mutex::new(segment_events(folder)?),
            catalogue: Mutex::new(catalogue),
            stored: watch::Sender::new(last_arrival),
        });
        let (sender, current) = watch::channel(segment.number);
        let writer = Writer { shared: shared.clone(), segment, options, current: sender };
        let thread = std::thread::Builder::new().name("archive-wal".to_owned());
        let thread = thread.spawn(move || writer.run()).map_err(ArchiveError::at(&address))?;
        let folder = folder.to_owned();
        let thread = Some(thread);
        Ok((Self { shared, folder, name, thread, current, options, _lock: lock }, dropped))
    }

    /// Appends an event, whose [`arrival`](ArchivedEvent::arrival) is assigned here, and calls `on_stored` once it is on the
    /// disk or could not be written. Events of one caller keep their order. Waits while too many bytes are not written, or not
    /// sealed.
    pub fn append(
        &self,
        event: &ArchivedEvent<'_>,
        on_stored: impl FnOnce(StoredResult) + Send + 'static,
    ) {
        self.append_with_numbers(event, 1, on_stored);
    }

    /// Appends an event as [`append`](Self::append) that takes `numbers` successive arrivals, at most
    /// [`max_numbers`](WalOptions::max_numbers): no later event has one of them.
    pub fn append_with_numbers(
        &self,
        event: &ArchivedEvent<'_>,
        numbers: u16,
        on_stored: impl FnOnce(StoredResult) + Send + 'static,
    ) {
        let numbers = numbers.clamp(1, self.options.max_numbers.max(1));
        let mut pending = self.shared.lock();
        while pending.failure.is_none() && self.shared.is_full(&pending) {
            pending = self.shared.taken.wait(pending).expect(UNPOISONED);
        }
        if let Some(failure) = pending.failure.clone() {
            drop(pending);
            return on_stored(Err(failure));
        }
        let arrival = event.received.max(self.shared.last_arrival.load(Relaxed) + 1);
        pending.end = arrival + i64::from(numbers) - 1;
        self.shared.last_arrival.store(pending.end, Relaxed);
        record::push(&mut pending.records, &ArchivedEvent { arrival, ..*event });
        pending.on_stored.push((arrival, Box::new(on_stored)));
        self.shared.added.notify_one();
    }

    /// Why events wait to be written, if they do: see [`retry_interval`](WalOptions::retry_interval).
    pub fn obstacle(&self) -> Option<String> {
        self.shared.lock().obstacle.clone()
    }

    /// Tries no write again: events that cannot be written are refused.
    pub fn give_up(&self) {
        self.shared.lock().gives_up = true;
        self.shared.added.notify_one();
    }

    /// Closes the open segment, if it has events, so that it can be sealed.
    pub async fn close_segment(&self) {
        let (closed, is_closed) = oneshot::channel();
        self.shared.lock().closing.push(closed);
        self.shared.added.notify_one();
        // The sender is dropped when the thread has failed: then nothing is closed any more.
        let _ = is_closed.await;
    }

    /// The closed segments, oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn closed_segments(&self) -> Result<Vec<Segment>, ArchiveError> {
        let current = *self.current.borrow();
        let mut segments = segments(&self.folder)
            .map_err(|error| ArchiveError::new(self.folder.display().to_string(), error))?;
        segments.retain(|segment| segment.number < current);
        Ok(segments)
    }

    /// The last arrival that a stored event takes. It changes after the calls of `on_stored` for a group of events.
    pub fn stored(&self) -> watch::Receiver<i64> {
        self.shared.stored.subscribe()
    }

    /// Waits until a segment is closed. Cancel-safe.
    pub async fn segment_closed(&self) {
        // The sender is dropped when the thread has ended: then nothing is closed any more.
        let _ = self.current.clone().changed().await;
    }

    /// Records that a segment of this size was sealed and deleted.
    pub(super) fn release(&self, segment: u64, bytes: u64) {
        self.shared.segments.lock().expect(UNPOISONED).remove(&segment);
        let _pending = self.shared.lock();
        let left = |unsealed: u64| Some(unsealed.saturating_sub(bytes));
        let _ = self.shared.unsealed_bytes.fetch_update(Relaxed, Relaxed, left);
        self.shared.taken.notify_all();
    }

    /// Size in bytes of the events that are not sealed.
    pub fn unsealed_bytes(&self) -> u64 {
        self.shared.unsealed_bytes.load(Relaxed)
    }

    /// The events that are not sealed.
    pub fn unsealed(&self) -> Unsealed {
        let mut unsealed = Unsealed { bytes: self.unsealed_bytes(), ..Unsealed::default() };
        for segment in self.shared.segments.lock().expect(UNPOISONED).values() {
            unsealed.events += segment.count;
            unsealed.oldest = unsealed.oldest.into_iter().chain(segment.oldest).min();
        }
        unsealed
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn keeps_segments(&self) -> bool {
        self.options.keeps_segments
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name of this writer in the tables' logs.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Wal {
    /// Writes the appended events.
    fn drop(&mut self) {
        self.shared.lock().is_stopped = true;
        self.shared.added.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn is_full(&self, pending: &Pending) -> bool {
        pending.records.len() >= self.max_pending_bytes
            || self.unsealed_bytes.load(Relaxed) >= self.max_unsealed_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().expect(UNPOISONED)
    }

    /// Waits until a write is tried again after this error; `false` if it is not.
    fn waits(&self, error: &io::Error, interval: Duration) -> bool {
        let mut pending = self.lock();
        pending.obstacle = Some(error.to_string());
        let is_waiting = |pending: &mut Pending| !pending.is_stopped && !pending.gives_up;
        let waited = self.added.wait_timeout_while(pending, interval, is_waiting);
        is_waiting(&mut waited.expect(UNPOISONED).0)
    }

    pub(super) fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue.lock().expect(UNPOISONED)
    }
}

/// The thread that writes.
struct Writer {
    shared: Arc<Shared>,
    segment: OpenSegment,
    options: WalOptions,
    current: watch::Sender<u64>,
}

impl Writer {
    fn run(mut self) {
        loop {
            let (mut group, is_last) = self.next_group();
            let (closing, end) = (std::mem::take(&mut group.closing), group.end);
            let result = self.store(&group, !closing.is_empty()).map_err(|error| {
                let failure =
                    WalError { path: self.segment.path.as_path().into(), error: error.into() };
                self.shared.lock().failure.get_or_insert(failure).clone()
            });
            self.shared.taken.notify_all();
            for closed in closing {
                // Who no longer waits has dropped the receiver.
                let _ = closed.send(());
            }
            let is_failed = result.is_err();
            for (arrival, on_stored) in group.on_stored {
                on_stored(result.clone().map(|()| arrival));
            }
            if !is_failed && end > 0 {
                self.shared.stored.send_replace(end);
            }
            if is_last || is_failed {
                break;
            }
        }
        // After a failure, events may have come meanwhile.
        let late = std::mem::take(&mut *self.shared.lock());
        if let Some(failure) = late.failure.clone() {
            self.shared.lock().failure = late.failure;
            late.on_stored.into_iter().for_each(|(_, on_stored)| on_stored(Err(failure.clone())));
        }
    }

    /// Writes a group, and a new segment if it is due; again after a failure, if the options say so.
    fn store(&mut self, group: &Pending, closes: bool) -> io::Result<()> {
        let mut is_stored = group.records.is_empty();
        loop {
            let result = match is_stored {
                true => self.rotate(closes),
                false => self.append(&group.records, group.on_stored.len() as u64),
            };
            match (result, self.options.retry_interval) {
                (Ok(()), _) if is_stored => return Ok(()),
                (Ok(()), _) => is_stored = true,
                (Err(error), Some(interval)) if self.shared.waits(&error, interval) => {}
                (Err(error), _) => return Err(error),
            }
            if is_stored {
                self.shared.lock().obstacle = None;
            }
        }
    }

    fn append(&mut self, records: &[u8], events: u64) -> io::Result<()> {
        let len = self.segment.len;
        self.segment.append(records)?;
        self.shared.catalogue().append(self.segment.number, self.segment.len, records);
        let mut segments = self.shared.segments.lock().expect(UNPOISONED);
        let segment = segments.entry(self.segment.number).or_default();
        segment.count += events;
        segment.oldest.get_or_insert_with(|| now_ms().saturating_mul(1_000));
        drop(segments);
        self.shared.unsealed_bytes.fetch_add(self.segment.len - len, Relaxed);
        Ok(())
    }

    /// Waits for events, or until the segment is too old, and gathers the events of a moment. The flag is whether it is
    /// the last group.
    fn next_group(&self) -> (Pending, bool) {
        let mut pending = self.shared.lock();
        let deadline = self.segment.opened + self.options.max_segment_age;
        while pending.records.is_empty() && !pending.is_stopped && pending.closing.is_empty() {
            let Some(remaining) = deadline
                .checked_duration_since(Instant::now())
                .filter(|_| self.segment.has_events())
            else {
                if self.segment.has_events() {
                    break;
                }
                pending = self.shared.added.wait(pending).expect(UNPOISONED);
                continue;
            };
            pending = self.shared.added.wait_timeout(pending, remaining).expect(UNPOISONED).0;
        }
        if !pending.records.is_empty() && !pending.is_stopped && !self.options.max_gather.is_zero()
        {
            drop(pending);
            std::thread::sleep(self.options.max_gather);
            pending = self.shared.lock();
        }
        let is_last = pending.is_stopped;
        let rest = Pending {
            gives_up: pending.gives_up,
            obstacle: pending.obstacle.take(),
            ..Pending::default()
        };
        (std::mem::replace(&mut *pending, rest), is_last)
    }

    /// Begins the next segment, if this one is to be closed.
    fn rotate(&mut self, closes: bool) -> io::Result<()> {
        let is_due = closes
            || self.segment.len >= self.options.max_segment_bytes
            || self.segment.opened.elapsed() >= self.options.max_segment_age;
        if is_due && self.segment.has_events() {
            let folder = self.segment.path.parent().expect("a file of the folder").to_owned();
            let last_arrival = self.shared.last_arrival.load(Relaxed);
            self.segment = OpenSegment::create(&folder, self.segment.number + 1, last_arrival)?;
            self.shared.catalogue().begin(self.segment.number, last_arrival);
            self.current.send_replace(self.segment.number);
        }
        Ok(())
    }
}

/// The segment that is written.
struct OpenSegment {
    number: u64,
    path: PathBuf,
    file: File,
    salt: Salt,
    /// Bytes of whole groups.
    len: u64,
    opened: Instant,
}

impl OpenSegment {
    /// The last segment of the folder without an incomplete group, or a new one; the arrival of the last event; and the bytes
    /// of the incomplete group.
    fn recover(folder: &Path, max_numbers: u16) -> Result<(Self, i64, u64), ArchiveError> {
        let address = folder.display().to_string();
        let failed = |error: io::Error| ArchiveError::new(&*address, error);
        let mut segments = segments(folder).map_err(failed)?;
        let next_number = segments.last().map_or(0, |last| last.number + 1);
        while let Some(Segment { number, path }) = segments.pop() {
            let name = path.display().to_string();
            let bytes = MappedFile::open(&path).map_err(ArchiveError::at(&name))?;
            let segment = record::read(&bytes).map_err(ArchiveError::at(&name))?;
            let Some(SegmentHeader { salt, last_arrival }) = segment.header else {
                // Nothing was stored in it.
                drop(bytes);
                fs::remove_file(&path).map_err(ArchiveError::at::<io::Error>(&name))?;
                continue;
            };
            let ends =
                segment.events.iter().map(|event| event.arrival + i64::from(max_numbers) - 1);
            let last_arrival = ends.fold(last_arrival, i64::max);
            let len = segment.len;
            let dropped = bytes.len() as u64 - segment.len;
            drop(bytes);
            let reopened = Self::reopen(number, path, salt, len).map_err(failed)?;
            return Ok((reopened, last_arrival, dropped));
        }
        Ok((Self::create(folder, next_number, 0).map_err(failed)?, 0, 0))
    }

    fn create(folder: &Path, number: u64, last_arrival: i64) -> io::Result<Self> {
        let path = segment_path(folder, number);
        let salt: Salt = *::uuid::Uuid::new_v4().as_bytes().last_chunk().expect("16 bytes");
        let mut file = File::create(&path)?;
        file.write_all(&SegmentHeader { salt, last_arrival }.to_bytes())?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(Self { number, path, file, salt, len: HEADER_LEN, opened: Instant::now() })
    }

    fn reopen(number: u64, path: PathBuf, salt: Salt, len: u64) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(&path)?;
        file.set_len(len)?;
        file.seek(SeekFrom::Start(len))?;
        Ok(Self { number, path, file, salt, len, opened: Instant::now() })
    }

    fn has_events(&self) -> bool {
        self.len > HEADER_LEN
    }

    /// Writes a group and syncs it. After an error nothing of it is in the segment.
    fn append(&mut self, records: &[u8]) -> io::Result<()> {
        let written =
            self.file.write_all(&record::group_header(self.salt, records)).and_then(|()| {
                self.file.write_all(records)?;
                crash_point("archive/wal-written");
                self.file.sync_data()
            });
        if let Err(error) = written {
            let _ = self.file.set_len(self.len);
            let _ = self.file.seek(SeekFrom::Start(self.len));
            return Err(error);
        }
        crash_point("archive/wal-synced");
        self.len += (records.len() + record::GROUP_HEADER_LEN) as u64;
        Ok(())
    }
}

/// The events of the segments of a folder.
fn segment_events(folder: &Path) -> Result<BTreeMap<u64, SegmentEvents>, ArchiveError> {
    let address = folder.display().to_string();
    let mut events = BTreeMap::new();
    for Segment { number, path } in
        segments(folder).map_err(ArchiveError::at::<io::Error>(&address))?
    {
        let name = path.display().to_string();
        let bytes = MappedFile::open(&path).map_err(ArchiveError::at(&name))?;
        // A damaged one is reported when it is sealed.
        let Ok(segment) = record::read(&bytes) else { continue };
        let count = segment.events.len() as u64;
        let oldest = segment.events.iter().map(|event| event.received).min();
        events.insert(number, SegmentEvents { count, oldest });
    }
    Ok(events)
}

/// The name of the writer, which is made when the log is.
fn writer_name(folder: &Path) -> io::Result<String> {
    let path = folder.join("writer");
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = format!("wireproof-{}", uuid());
            write_file(&path, name.as_bytes())?;
            Ok(name)
        }
        read => read,
    }
}

/// Writes a file that appears whole, durably.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = temporary_file(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    File::open(folder)?.sync_all()
}

const HEADER_LEN: u64 = SEGMENT_HEADER_LEN as u64;

const UNPOISONED: &str = "no panic while the lock is held";

fn not_locked(address: &str, error: LockError) -> ArchiveError {
    match error.fault {
        LockFault::Io(error) => ArchiveError::at(address)(error),
        _ => ArchiveError::new(address, ArchiveFault::InUse),
    }
}
