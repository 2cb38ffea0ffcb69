//! Events of a file of `events` in order of arrival, in temporary files, and the files that are in use.
//!
//! The events are in one file, and an index of them in order of arrival in another one; both are mapped. Readers of the
//! same file of the table share them, and the last ones stay for the next reader.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufWriter, Seek, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mapping::MappedFile;

use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::wal::record;

/// The replayable events of a file, in order of arrival.
#[derive(Debug)]
pub(crate) struct SpilledFile {
    records: MappedFile,
    /// [`Entry`] after entry, in order.
    index: MappedFile,
}

/// The place of an event in the temporary file.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) arrival: i64,
    /// Offset of its record.
    pub(crate) start: u64,
}

impl SpilledFile {
    /// The events of records, with their arrivals and first bytes.
    pub(crate) fn new(records: MappedFile, entries: &mut [Entry]) -> io::Result<Self> {
        let event = |entry: &Entry| event_at(&records, entry.start);
        entries.sort_by(|one, other| {
            let by_arrival = one.arrival.cmp(&other.arrival);
            by_arrival.then_with(|| compare(&event(one), &event(other)))
        });
        let index = write_index(entries)?;
        Ok(Self { records, index })
    }

    /// Number of events.
    pub(crate) fn len(&self) -> usize {
        self.index.len() / ENTRY_LEN
    }

    /// The arrival of an event.
    pub(crate) fn arrival(&self, at: usize) -> i64 {
        self.entry(at).arrival
    }

    /// An event. One that is stored without its frame has an empty one.
    pub(crate) fn event(&self, at: usize) -> ArchivedEvent<'_> {
        event_at(&self.records, self.entry(at).start)
    }

    /// The first event that arrived at `arrival` or later.
    pub(crate) fn position_of(&self, arrival: i64) -> usize {
        let mut low = 0;
        let mut high = self.len();
        while low < high {
            let middle = low + (high - low) / 2;
            if self.arrival(middle) < arrival {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn entry(&self, at: usize) -> Entry {
        let (entries, _) = self.index.as_chunks::<ENTRY_LEN>();
        Entry::of_bytes(&entries[at])
    }
}

impl Entry {
    fn to_bytes(self) -> [u8; ENTRY_LEN] {
        let mut bytes = [0; ENTRY_LEN];
        bytes[..8].copy_from_slice(&self.arrival.to_le_bytes());
        bytes[8..].copy_from_slice(&self.start.to_le_bytes());
        bytes
    }

    fn of_bytes(bytes: &[u8; ENTRY_LEN]) -> Self {
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[at..at + 8]);
            number
        };
        Self { arrival: i64::from_le_bytes(number(0)), start: u64::from_le_bytes(number(8)) }
    }
}

/// The order of replay: by arrival. Events of several writers can have the same arrival; they are ordered by origin.
pub(crate) fn compare(one: &ArchivedEvent<'_>, other: &ArchivedEvent<'_>) -> Ordering {
    let origin = |event: &ArchivedEvent<'_>| (event.seq, event.received);
    (one.arrival.cmp(&other.arrival))
        .then_with(|| one.host.cmp(other.host))
        .then_with(|| origin(one).cmp(&origin(other)))
        .then_with(|| one.did.cmp(&other.did))
}

/// The files that are in use, and the last ones that were. Clones of an archive share them.
#[derive(Debug, Default)]
pub(crate) struct SpilledFiles {
    files: Mutex<HashMap<String, Weak<SpilledFile>>>,
    /// By their paths.
    recent: Mutex<VecDeque<(String, Arc<SpilledFile>)>>,
    /// Held by the reader of a file.
    turn: tokio::sync::Mutex<()>,
}

impl SpilledFiles {
    /// A file of the table, by its path in the table's folder. If it is not in use, `spill` makes it, one file at a
    /// time.
    pub(crate) async fn get_or_spill(
        &self,
        path: &str,
        spill: impl Future<Output = Result<SpilledFile, ArchiveError>>,
    ) -> Result<Arc<SpilledFile>, ArchiveError> {
        let _turn = self.turn.lock().await;
        if let Some(file) = lock(&self.files).get(path).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = Arc::new(spill.await?);
        let mut files = lock(&self.files);
        files.retain(|_, file| file.strong_count() > 0);
        files.insert(path.to_owned(), Arc::downgrade(&file));
        drop(files);
        let mut recent = lock(&self.recent);
        recent.push_back((path.to_owned(), file.clone()));
        if recent.len() > MAX_RECENT {
            recent.pop_front();
        }
        Ok(file)
    }

    /// Forgets the files whose paths `is_kept` rejects. A reader that has one keeps it to its end.
    pub(crate) fn retain(&self, is_kept: impl Fn(&str) -> bool) {
        lock(&self.recent).retain(|(path, _)| is_kept(path));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // The content is consistent after every call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_index(entries: &[Entry]) -> io::Result<MappedFile> {
    let mut file = BufWriter::new(tempfile::tempfile()?);
    entries.iter().try_for_each(|entry| file.write_all(&entry.to_bytes()))?;
    let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.rewind()?;
    MappedFile::of(&file)
}

/// The event of a record, which is a whole one.
fn event_at(records: &[u8], start: u64) -> ArchivedEvent<'_> {
    let rest = records.get(start as usize..).unwrap_or_default();
    let read = rest.split_first_chunk().and_then(|(len, rest)| {
        record::read_record(rest.get(..u32::from_le_bytes(*len) as usize)?)
    });
    read.expect("a record that was written whole")
}

const ENTRY_LEN: usize = 16;

/// Files that are kept for the next reader: one that connects again begins in the file in which it ended.
const MAX_RECENT: usize = 2;
