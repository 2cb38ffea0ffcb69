//! Reads the events of an archive in order of arrival.
//!
//! Files are sorted by account. Files that overlap in time are open together, in order of arrival
//! ([`spill`](crate::spill)), and merged. An event's number is its arrival, moved on where several writers gave the same
//! one. The number depends on the events before it alone, so it is the same in every replay, wherever that begins.

use std::collections::{HashSet, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::hidden::HideList;
use crate::spill::spilled;
use crate::spilled_file::{SpilledFile, compare};
use crate::table::Table;

/// A frame of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed<'a> {
    /// The archive's number of the event.
    pub arrival: i64,
    /// The frame as it came.
    pub frame: &'a [u8],
}

/// An event of an archive, in full form. Clones share the bytes.
#[derive(Clone, Debug)]
pub struct ReplayedEvent {
    file: Arc<SpilledFile>,
    index: usize,
    number: i64,
}

impl ReplayedEvent {
    /// The event.
    pub fn event(&self) -> ArchivedEvent<'_> {
        self.file.event(self.index)
    }

    /// The number in the order of replay: greater than the number of the event before. It is the arrival, unless
    /// several writers have events of the same one.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// The frame with this number as its sequence number. The signed part stays as it is: a commit is signed, the
    /// message around it is not. `None` for a message without a sequence number.
    pub fn renumbered_frame(&self) -> Option<Vec<u8>> {
        atproto::event::renumbered(self.event().frame, self.number)
    }
}

/// The verified and unsigned events of an archive that are not hidden, in order of arrival.
#[derive(Debug)]
pub struct Replay {
    archive: Archive,
    view: Arc<ReplayView>,
    arrivals: RangeInclusive<i64>,
    /// Events up to this number are left out.
    after: i64,
    open: Vec<OpenFile>,
    /// The files that are not open yet, by their first arrival.
    pending: VecDeque<FileRange>,
    /// The files that were read to their end.
    finished: HashSet<String>,
    /// The last event that was read.
    last: Option<ReplayedEvent>,
    left_out: u64,
    /// When the view was last compared with the archive; `None` if another one does so.
    looked: Option<Instant>,
}

/// The content of an archive as of a moment.
#[derive(Debug)]
pub(crate) struct ReplayView {
    /// The files of events, by their first arrival.
    pub(crate) files: Vec<FileRange>,
    pub(crate) hidden: HideList,
    /// The versions of the two tables.
    versions: [u64; 2],
}

/// A file of events.
#[derive(Clone, Debug)]
pub(crate) struct FileRange {
    pub(crate) path: String,
    pub(crate) arrivals: RangeInclusive<i64>,
    pub(crate) rows: u64,
}

/// A file that is being read.
#[derive(Debug)]
struct OpenFile {
    path: String,
    file: Arc<SpilledFile>,
    /// The next event, which is there.
    next: usize,
}

impl Archive {
    /// The events that arrived within `arrivals`, in order.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn replay_events(
        &self,
        arrivals: RangeInclusive<i64>,
    ) -> Result<Replay, ArchiveError> {
        let view = self.replay_view(None).await?;
        let looked = Some(Instant::now());
        Ok(Replay { looked, ..Replay::new(self.clone(), view, arrivals) })
    }

    /// Passes the frames of verified and unsigned events that are not hidden, from `since` on, to `on_frame`, in order of arrival, until that
    /// returns an error. Events without a frame are left out.
    ///
    /// # Errors
    /// If the archive cannot be read, or the error of `on_frame`.
    pub async fn replay<E: From<ArchiveError>>(
        &self,
        since: i64,
        mut on_frame: impl FnMut(Replayed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut replay = self.replay_events(since..=i64::MAX).await?;
        while let Some(replayed) = replay.next().await? {
            let event = replayed.event();
            on_frame(Replayed { arrival: event.arrival, frame: event.frame })?;
        }
        Ok(())
    }

    /// The content of the archive as of now: `before`, if nothing has changed.
    pub(crate) async fn replay_view(
        &self,
        before: Option<&Arc<ReplayView>>,
    ) -> Result<Arc<ReplayView>, ArchiveError> {
        // The hide list first: an account erased meanwhile is hidden before its files are gone.
        let hidden = self.version(Table::Hidden).await?;
        let versions = [hidden, self.version(Table::Events).await?];
        if let Some(before) = before.filter(|before| before.versions == versions) {
            return Ok(before.clone());
        }
        let hidden = self.hide_list().await?;
        let snapshot = self.snapshot(Table::Events).await?;
        let mut files: Vec<FileRange> = snapshot
            .files
            .values()
            .map(|add| {
                let stats = add.stats();
                let bound = |values: &serde_json::Map<String, serde_json::Value>| {
                    values.get("arrival")?.as_i64()
                };
                // A file without stats can have any event.
                let first = bound(&stats.min_values).unwrap_or(i64::MIN);
                let last = bound(&stats.max_values).unwrap_or(i64::MAX);
                FileRange {
                    path: add.path.clone(),
                    arrivals: first..=last,
                    rows: stats.num_records,
                }
            })
            .collect();
        files.sort_by_key(|file| *file.arrivals.start());
        // Replaced files can have events of an erased account.
        self.spilled().retain(|path| snapshot.files.contains_key(path));
        Ok(Arc::new(ReplayView { files, hidden, versions }))
    }
}

impl ReplayView {
    /// The first arrival, and the last one.
    #[cfg(feature = "serve")]
    pub(crate) fn bounds(&self) -> Option<(i64, i64)> {
        let first = *self.files.first()?.arrivals.start();
        Some((first, self.files.iter().map(|file| *file.arrivals.end()).max()?))
    }

    /// The arrival from which events must be read to know the numbers of the events after `number`.
    ///
    /// A number differs from its arrival only within a run of successive numbers that begins with an arrival. From that on,
    /// the run has as many events as numbers. So a run that has `number` cannot begin before there are as many rows in the files as
    /// microseconds.
    fn run_start(&self, number: i64) -> i64 {
        let mut files: Vec<&FileRange> = self.files.iter().collect();
        files.sort_by_key(|file| std::cmp::Reverse(*file.arrivals.end()));
        let mut start = number;
        let mut rows = 0_i64;
        for file in files {
            // Later files have no part in it.
            if *file.arrivals.start() > number {
                continue;
            }
            rows = rows.saturating_add(i64::try_from(file.rows).unwrap_or(i64::MAX));
            let end = (*file.arrivals.end()).min(number);
            if number.saturating_sub(rows) <= end {
                start = start.min(number.saturating_sub(rows));
            }
        }
        start
    }
}

impl Replay {
    pub(crate) fn new(
        archive: Archive,
        view: Arc<ReplayView>,
        arrivals: RangeInclusive<i64>,
    ) -> Self {
        let mut replay = Self {
            archive,
            view: view.clone(),
            arrivals,
            after: i64::MIN,
            open: Vec::new(),
            pending: VecDeque::new(),
            finished: HashSet::new(),
            last: None,
            left_out: 0,
            looked: None,
        };
        replay.set_view(view);
        replay
    }

    /// Begins after the event with this [number](ReplayedEvent::number), or where it would be. Before the first event is read.
    #[must_use]
    pub fn after_number(mut self, number: i64) -> Self {
        let start = self.view.run_start(number).max(*self.arrivals.start());
        self.arrivals = start..=*self.arrivals.end();
        self.after = number;
        self.set_view(self.view.clone());
        self
    }

    /// The next event; `None` at the end of the sealed events, until the next [`refresh`](Self::refresh). Accounts and
    /// records hidden or erased meanwhile are left out after a second.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn next(&mut self) -> Result<Option<ReplayedEvent>, ArchiveError> {
        loop {
            if self.looked.is_some_and(|looked| looked.elapsed() >= LOOK_INTERVAL) {
                self.refresh().await?;
            }
            self.open_due().await?;
            let Some(event) = self.take_earliest() else { return Ok(None) };
            if event.number <= self.after || self.view.hidden.hides(&event.event()) {
                continue;
            }
            if event.event().frame.is_empty() {
                self.left_out += 1;
                continue;
            }
            return Ok(Some(event));
        }
    }

    /// Learns of rows that were sealed, hidden or erased meanwhile.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub async fn refresh(&mut self) -> Result<(), ArchiveError> {
        let view = self.archive.replay_view(Some(&self.view)).await?;
        if let Some(looked) = &mut self.looked {
            *looked = Instant::now();
        }
        if !Arc::ptr_eq(&view, &self.view) {
            self.set_view(view);
        }
        Ok(())
    }

    /// Number of events that were left out so far as they are stored without their frame.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The number of the last event that was read, shown or not.
    #[cfg(feature = "serve")]
    pub(crate) fn last_number(&self) -> Option<i64> {
        self.last.as_ref().map(|last| last.number)
    }

    /// Reads up to the events of this arrival.
    #[cfg(feature = "serve")]
    pub(crate) fn set_end(&mut self, end: i64) {
        if end != *self.arrivals.end() {
            self.arrivals = *self.arrivals.start()..=end;
            self.set_view(self.view.clone());
        }
    }

    /// Continues with the current content of the archive.
    pub(crate) fn set_view(&mut self, view: Arc<ReplayView>) {
        self.view = view;
        let last = self.last.as_ref().map(|last| last.event().arrival);
        let resume = last.unwrap_or(*self.arrivals.start()).max(*self.arrivals.start());
        let files = &self.view.files;
        let names: HashSet<&str> = files.iter().map(|file| &*file.path).collect();
        self.open.retain(|open| names.contains(&*open.path));
        self.finished.retain(|path| names.contains(&**path));
        let is_pending = |file: &&FileRange| {
            *file.arrivals.end() >= resume
                && *file.arrivals.start() <= *self.arrivals.end()
                && !self.finished.contains(&file.path)
                && self.open.iter().all(|open| open.path != file.path)
        };
        self.pending = files.iter().filter(is_pending).cloned().collect();
    }

    /// Opens the files that can have the next event.
    async fn open_due(&mut self) -> Result<(), ArchiveError> {
        while let Some(next) = self.pending.front() {
            let head = self.open.iter().map(|open| open.file.arrival(open.next)).min();
            if head.is_some_and(|head| head < *next.arrivals.start()) {
                break;
            }
            let path = next.path.clone();
            // The file may have been replaced since then, or its account erased.
            self.refresh().await?;
            if self.pending.front().is_none_or(|next| next.path != path) {
                continue;
            }
            match spilled(&self.archive, &path).await {
                Ok(file) => self.add(path, file),
                Err(error) => {
                    self.refresh().await?;
                    if self.pending.front().is_some_and(|next| next.path == path) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a file at its first event that is not read yet.
    fn add(&mut self, path: String, file: Arc<SpilledFile>) {
        self.pending.pop_front();
        let start = *self.arrivals.start();
        let last = self.last.as_ref().map(ReplayedEvent::event);
        let mut next = file.position_of(last.map_or(start, |last| last.arrival.max(start)));
        while next < file.len()
            && last.is_some_and(|last| compare(&file.event(next), &last).is_le())
        {
            next += 1;
        }
        if next < file.len() {
            self.open.push(OpenFile { path, file, next });
        } else {
            self.finished.insert(path);
        }
    }

    fn take_earliest(&mut self) -> Option<ReplayedEvent> {
        let event = |open: &OpenFile| open.file.arrival(open.next);
        let first = self.open.iter().map(event).min()?;
        if first > *self.arrivals.end() {
            return None;
        }
        let ties = self.open.iter().enumerate().filter(|(_, open)| event(open) == first);
        let (at, _) = ties.min_by(|(_, one), (_, other)| {
            compare(&one.file.event(one.next), &other.file.event(other.next))
        })?;
        let open = &mut self.open[at];
        let number =
            self.last.as_ref().map_or(first, |last| first.max(last.number.saturating_add(1)));
        let event = ReplayedEvent { file: open.file.clone(), index: open.next, number };
        open.next += 1;
        if open.next == open.file.len() {
            self.finished.insert(self.open.swap_remove(at).path);
        }
        self.last = Some(event.clone());
        Some(event)
    }
}

/// Interval at which a replay looks at the archive.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
