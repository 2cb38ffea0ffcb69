//! Reads the events for one client: from memory while it keeps up, otherwise from the files of the log.

use std::sync::Arc;

use archive::{ArchiveError, Replay, WalReader};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::event::ServedEvent;
use crate::history::next_events;
use crate::log::{EventLog, SharedEvents};
use crate::tail::TailRead;

/// Reads events in order, each once.
#[derive(Debug)]
pub(crate) struct EventReader {
    log: Arc<EventLog>,
    /// The arrival of the last event that was read.
    after: i64,
    files: Files,
}

/// The files of the log, for a reader that is behind the events in memory.
#[derive(Debug)]
enum Files {
    Closed,
    Open(Source),
    Reading(Reading),
}

/// Where events are read from.
#[derive(Debug)]
enum Source {
    Window(WalReader),
    /// Events that the window has deleted, up to this arrival.
    History(Box<Replay>, i64),
}

/// A group that is being read.
#[derive(Debug)]
struct Reading {
    task: JoinHandle<Result<(Source, Option<SharedEvents>), ArchiveError>>,
    /// Events up to this arrival were in files when it began.
    until: i64,
}

/// The events that can be read without waiting.
#[derive(Debug)]
pub(crate) enum Ready {
    Events(Vec<Arc<ServedEvent>>),
    UpToDate,
    /// The next ones are in files.
    Stored,
    /// The next ones were deleted.
    Deleted,
}

impl EventReader {
    /// Reads the events after an arrival.
    pub(crate) fn new(log: Arc<EventLog>, after: i64) -> Self {
        Self { log, after, files: Files::Closed }
    }

    /// The arrival of the last event that was read.
    pub(crate) fn position(&self) -> i64 {
        self.after
    }

    /// The next events in memory.
    pub(crate) fn ready(&mut self) -> Ready {
        match self.log.tail.read(self.after, BATCH) {
            TailRead::Events(events) => {
                self.after = events.last().map_or(self.after, |last| last.arrival);
                self.files = Files::Closed;
                Ready::Events(events)
            }
            TailRead::UpToDate => Ready::UpToDate,
            TailRead::Earlier if self.after < self.log.floor() => Ready::Deleted,
            TailRead::Earlier => Ready::Stored,
        }
    }

    /// The next events in files; none if there are no more. Cancel-safe.
    ///
    /// # Errors
    /// If a file cannot be read, or is damaged.
    pub(crate) async fn stored(&mut self) -> Result<Vec<Arc<ServedEvent>>, ArchiveError> {
        if !matches!(self.files, Files::Reading(_)) {
            self.files = Files::Reading(self.start_reading());
        }
        let Files::Reading(reading) = &mut self.files else { unreachable!("it was just set") };
        let read = (&mut reading.task).await;
        let until = reading.until;
        self.files = Files::Closed;
        // The task ends early only with the process.
        let Ok(read) = read else { return Ok(Vec::new()) };
        let (source, events) = read?;
        if matches!(source, Source::Window(_)) && self.after < self.log.wal.floor() {
            // Events were deleted meanwhile, which the reader skips.
            return Ok(Vec::new());
        }
        let Some(events) = events else {
            self.after = self.after.max(until);
            return Ok(Vec::new());
        };
        self.files = Files::Open(source);
        let after = self.after;
        self.after = events.last().map_or(after, |last| last.arrival.max(after));
        // A group can begin before the first event that is wanted.
        Ok(events.iter().filter(|event| event.arrival > after).cloned().collect())
    }

    fn start_reading(&mut self) -> Reading {
        let floor = self.log.wal.floor();
        let open = match std::mem::replace(&mut self.files, Files::Closed) {
            Files::Open(source) => Some(source),
            Files::Closed | Files::Reading(_) => None,
        };
        let log = self.log.clone();
        match open {
            Some(Source::History(replay, until)) => self.read_history(Some(replay), until),
            _ if self.after < floor && log.history.is_some() => self.read_history(None, floor),
            Some(Source::Window(reader)) => self.read_window(reader),
            None => self.read_window(log.wal.reader(self.after)),
        }
    }

    fn read_window(&self, mut reader: WalReader) -> Reading {
        let (log, until) = (self.log.clone(), self.log.tail.before());
        let task = spawn_blocking(move || {
            let group = reader.next_group()?;
            let events = group.map(|group| log.events_of(&group));
            Ok((Source::Window(reader), events))
        });
        Reading { task, until }
    }

    /// Reads the archive up to an arrival, on a thread, as it takes processor time.
    fn read_history(&self, replay: Option<Box<Replay>>, until: i64) -> Reading {
        let (log, after, runtime) = (self.log.clone(), self.after, Handle::current());
        let task = spawn_blocking(move || {
            runtime.block_on(async {
                let history = log.history.as_ref().expect("it is read only if it is there");
                let mut replay = match replay {
                    Some(replay) => replay,
                    None => Box::new(history.replay(after, until).await?),
                };
                let events = next_events(&mut replay).await?;
                Ok((Source::History(replay, until), events))
            })
        });
        Reading { task, until }
    }
}

/// Maximum number of events that are read from memory at once.
const BATCH: usize = 256;
