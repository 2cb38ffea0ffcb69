//! The outbox: events on disk between a source and its consumers.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use base::Lock;
use store::StoreError;
use store::files::StateFiles;

use crate::database::{self, OutboxIdentity};
use crate::error::{OutboxError, OutboxFault};
use crate::event::NewEvent;
use crate::outbox_options::{Bound, Options};
use crate::state::Shared;
use crate::undelivered::{self, Undelivered};
use crate::window::AckWindow;
use crate::writer::Writer;

/// Where a new consumer starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartAt {
    /// The oldest event in the outbox.
    #[default]
    Oldest,
    /// The next event that is stored.
    Next,
}

/// The state of an outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Number of events.
    pub events: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Age of the oldest event.
    pub age: Duration,
    /// Position of the next event.
    pub next: u64,
    /// The bound at which the source waits now.
    pub reached: Option<Bound>,
    /// The consumers, in the order of their names. The one with the lowest cursor holds the oldest event.
    pub consumers: Vec<ConsumerStatus>,
    /// The error of the last transaction, if it failed.
    pub last_error: Option<OutboxError>,
}

/// The state of a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerStatus {
    /// The name.
    pub name: String,
    /// The position up to which every event is acknowledged.
    pub cursor: u64,
    /// Number of acknowledged events beyond the cursor.
    pub ahead: usize,
    /// Number of events that are not acknowledged.
    pub behind: u64,
    /// Whether a task receives its events.
    pub is_in_use: bool,
    /// Whether it is paused.
    pub is_paused: bool,
}

/// An outbox. Clones share it; it is closed when the last clone and the last [`Consumer`](crate::Consumer) are dropped.
#[derive(Clone)]
pub struct Outbox(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    identity: OutboxIdentity,
    thread: Option<JoinHandle<()>>,
    // Dropped last, with the lock: the next process waits until all is written.
    _files: Arc<StateFiles>,
}

impl Outbox {
    /// Opens the outbox at `path`, and creates it and its folder if missing.
    ///
    /// # Errors
    /// If another process uses it, if it is damaged or of another version, or if it cannot be read or written.
    pub fn open(path: &Path, options: Options) -> Result<Self, OutboxError> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(OutboxError::at(folder))?;
        }
        let lock = Lock::take(path).map_err(StoreError::from)?;
        database::create_if_missing(path)?;
        let (connection, contents) = database::open_writer(path, options.max_file_bytes)?;
        let (identity, consumers) = (contents.identity, contents.consumers.clone());
        let files = Arc::new(StateFiles::new(path, lock)?);
        let writer = Writer::new(connection, files.clone(), contents, options.max_records);
        let slowest = consumers.values().map(AckWindow::cursor).min();
        let extent = writer.extent();
        if slowest.is_some_and(|cursor| cursor + 1 < extent.oldest) {
            let missing = format!("the events before {} are missing", extent.oldest);
            return Err(OutboxError::new(path, OutboxFault::Damaged(missing)));
        }
        let shared = Shared::new(path.to_owned(), options, extent, consumers);
        shared.set_has_histories(writer.has_histories());
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().name("outbox".to_owned());
        let thread = thread.spawn(move || writer.run(&of_thread)).map_err(OutboxError::at(path))?;
        Ok(Self(Arc::new(Inner { shared, identity, thread: Some(thread), _files: files })))
    }

    /// The identity of the outbox, which another file at the same path does not have.
    pub fn identity(&self) -> OutboxIdentity {
        self.0.identity
    }

    /// Registers a consumer, unless it is registered; returns when that is in the file.
    ///
    /// # Errors
    /// If the name is not valid, there are too many consumers, or the file cannot be written.
    pub fn register(&self, name: &str, start: StartAt) -> Result<(), OutboxError> {
        check_name(name).map_err(|fault| self.0.shared.error(fault))?;
        let is_new = self.0.shared.change(|state| {
            if state.consumers.contains_key(name) {
                return Ok(false);
            }
            if state.consumers.len() >= MAX_CONSUMERS {
                return Err(OutboxFault::TooManyConsumers(MAX_CONSUMERS));
            }
            let cursor = match start {
                StartAt::Oldest => state.extent.oldest - 1,
                StartAt::Next => *self.0.shared.committed.borrow() - 1,
            };
            state.consumers.insert(name.into(), AckWindow::new(cursor));
            Ok(true)
        });
        let is_new = is_new.map_err(|fault| self.0.shared.error(fault))?;
        let stored = self.0.shared.flush();
        if stored.is_err() && is_new {
            self.0.shared.change(|state| state.consumers.remove(name));
        }
        stored
    }

    /// Removes a consumer, and the events that no other one needs; returns when that is in the file.
    ///
    /// # Errors
    /// If there is no such consumer, it is in use, or the file cannot be written.
    pub fn remove(&self, name: &str) -> Result<(), OutboxError> {
        let removed = self.0.shared.change(|state| {
            if state.attached.contains_key(name) {
                return Err(OutboxFault::ConsumerInUse(name.to_owned()));
            }
            let removed = state.consumers.remove(name);
            state.paused.remove(name);
            removed.ok_or_else(|| OutboxFault::UnknownConsumer(name.to_owned()))
        });
        let window = removed.map_err(|fault| self.0.shared.error(fault))?;
        let stored = self.0.shared.flush();
        if stored.is_err() {
            self.0.shared.change(|state| drop(state.consumers.insert(name.into(), window)));
        }
        stored
    }

    /// Pauses or resumes a consumer: while it is paused, [`Consumer::next_events`](crate::Consumer::next_events) waits. Events that it has received can be
    /// acknowledged. A pause ends with the process.
    ///
    /// # Errors
    /// If there is no such consumer.
    pub fn set_paused(&self, name: &str, is_paused: bool) -> Result<(), OutboxError> {
        let mut state = self.0.shared.lock();
        if !state.consumers.contains_key(name) {
            return Err(self.0.shared.error(OutboxFault::UnknownConsumer(name.to_owned())));
        }
        if is_paused {
            state.paused.insert(name.into());
        } else {
            state.paused.remove(name);
        }
        if let Some(waiting) = state.attached.get(name) {
            waiting.notify_one();
        }
        Ok(())
    }

    /// The events of an account that consumers have not acknowledged, in the order of the consumers' names. Reads at
    /// most `max_bytes` of the oldest events; blocks for that.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn undelivered_of(
        &self,
        account: &str,
        max_bytes: u64,
    ) -> Result<Vec<Undelivered>, OutboxError> {
        undelivered::of_account(&self.0.shared, account, max_bytes)
    }

    /// Stores an event. Blocks while a bound is reached, until consumers acknowledge: call it on a thread of the
    /// source. `stored` is called on another thread when the event is on disk, or with the error; the source may
    /// then acknowledge it. Events of one account must be appended in order.
    ///
    /// An event that equals one of the last 65,536, with its id, is not stored again: the source did not learn that it
    /// was. So is no event lost or repeated by an end between this call and the source's own checkpoint.
    pub fn append(
        &self,
        event: NewEvent,
        stored: impl FnOnce(Result<(), OutboxError>) + Send + 'static,
    ) {
        self.0.shared.append(event, Box::new(stored));
    }

    /// Stores events, and returns when all are on disk.
    ///
    /// # Errors
    /// If one of them could not be stored.
    pub fn append_all(
        &self,
        events: impl IntoIterator<Item = NewEvent>,
    ) -> Result<(), OutboxError> {
        let mut pending: Vec<Receiver<Result<(), OutboxError>>> = Vec::new();
        for event in events {
            let (done, stored) = sync_channel(1);
            // The receiver lives until the end of this function.
            self.append(event, move |result| drop(done.send(result)));
            pending.push(stored);
        }
        let closed = || self.0.shared.error(OutboxFault::Closed);
        pending.iter().try_for_each(|stored| stored.recv().map_err(|_| closed())?)
    }

    /// Stores no further events: callers of [`append`](Self::append) that wait get an error. Consumers continue.
    pub fn stop_appends(&self) {
        self.0.shared.close();
    }

    /// Whether there is an account with a history, on whose records events have effects.
    pub fn has_histories(&self) -> bool {
        self.0.shared.has_histories()
    }

    pub(crate) fn set_has_histories(&self, has_histories: bool) {
        self.0.shared.set_has_histories(has_histories);
    }

    /// Waits until all events and acknowledgements so far are on disk.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn flush(&self) -> Result<(), OutboxError> {
        self.0.shared.flush()
    }

    /// The state. An event counts once it is appended, before it is on disk; a repetition counts until the writer recognizes it.
    pub fn status(&self) -> Status {
        let state = self.0.shared.lock();
        let extent = state.extent_with_queue();
        let consumer = |name: &str, window: &AckWindow| ConsumerStatus {
            name: name.to_owned(),
            cursor: window.cursor(),
            ahead: window.ahead(),
            behind: extent.next.saturating_sub(window.cursor() + 1 + window.ahead() as u64),
            is_in_use: state.attached.contains_key(name),
            is_paused: state.paused.contains(name),
        };
        Status {
            events: extent.next - extent.oldest,
            bytes: extent.bytes,
            age: state.age(),
            next: extent.next,
            reached: state.reached_bound(&self.0.shared.options),
            consumers: state.consumers.iter().map(|(name, at)| consumer(name, at)).collect(),
            last_error: state.last_error.clone(),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.shared.path
    }
}

impl std::fmt::Debug for Outbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbox").field("path", &self.0.shared.path).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    /// Waits until everything is written and the file is closed.
    fn drop(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // After a panic all waiting callers have received `Closed`.
            let _ = thread.join();
        }
    }
}

fn check_name(name: &str) -> Result<(), OutboxFault> {
    let is_allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    if (1..=MAX_NAME_LEN).contains(&name.len()) && name.bytes().all(is_allowed) {
        Ok(())
    } else {
        Err(OutboxFault::ConsumerName(name.chars().take(MAX_NAME_LEN).collect()))
    }
}

/// Maximum number of consumers.
const MAX_CONSUMERS: usize = 64;

const MAX_NAME_LEN: usize = 64;

#[cfg(test)]
mod tests;
