//! Files of `events` in order of arrival.
//!
//! A file of the table is sorted by account. Its events go to a temporary file, and an index of them in order of arrival to
//! another one; both are mapped. One file is read at a time, and memory holds 16 bytes for each of its events meanwhile. Those
//! who read the same file share it, and the last ones stay for the next reader.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::io::{self, BufWriter, Seek, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use mapping::MappedFile;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::rows::FULL;
use crate::scan::{EventColumns, EventRow, Scan};
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
struct Entry {
    arrival: i64,
    start: u64,
}

impl SpilledFile {
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
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.arrival(middle) < arrival {
                true => low = middle + 1,
                false => high = middle,
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

/// The order of replay: by arrival. Events of several writers can have the same one; their order is that of their origin.
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
    /// Held by the one who reads a file.
    turn: tokio::sync::Mutex<()>,
}

impl SpilledFiles {
    /// A file of the table, by its path in the table's folder.
    pub(crate) async fn get(
        &self,
        archive: &Archive,
        path: &str,
    ) -> Result<Arc<SpilledFile>, ArchiveError> {
        let _turn = self.turn.lock().await;
        if let Some(file) = lock(&self.files).get(path).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = Arc::new(spill(archive, path).await?);
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
    // What is inside is whole after each call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the verified and unsigned events of a file to temporary ones.
async fn spill(archive: &Archive, path: &str) -> Result<SpilledFile, ArchiveError> {
    let failed = |error: io::Error| ArchiveError::new(archive.storage().address(), error);
    let mut file = BufWriter::new(tempfile::tempfile().map_err(failed)?);
    let (mut index, mut start, mut record) = (Vec::new(), 0, Vec::new());
    let mut scan: Scan<EventColumns> = archive.scan_file(path).await?;
    while let Some(row) = scan.next().await? {
        let row = EventRow(row);
        let event = row.event();
        if !event.is_verified() && event.verdict != "unchecked" {
            continue;
        }
        // Other forms have no frame as it came.
        let frame = if row.form() == FULL { event.frame } else { &[] };
        record.clear();
        record::push(&mut record, &ArchivedEvent { frame, ..event });
        file.write_all(&record).map_err(failed)?;
        index.push(Entry { arrival: event.arrival, start });
        start += record.len() as u64;
    }
    let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.rewind().map_err(failed)?;
    let records = MappedFile::of(&file).map_err(failed)?;
    let event = |entry: &Entry| event_at(&records, entry.start);
    index.sort_by(|one, other| {
        let by_arrival = one.arrival.cmp(&other.arrival);
        by_arrival.then_with(|| compare(&event(one), &event(other)))
    });
    let index = write_index(&index).map_err(failed)?;
    Ok(SpilledFile { records, index })
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
