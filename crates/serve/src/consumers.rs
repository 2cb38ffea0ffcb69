//! Consumers that acknowledge every event: clients of tap at `/channel`, and lines at `/lines`.
//!
//! ```text
//! log ── Feeder, on a thread ── Outbox ── WebSocketConsumers ── clients
//! ```
//!
//! Events wait in the log while the outbox is full, so a consumer that acknowledges nothing delays neither the intake nor other
//! clients. One that the window and the archive have passed misses events, and a warning says so.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use archive::{ArchiveError, ArchivedEvent, WalReader};
use base::StopSignal;
use delivery::{NewEvent, Outbox, OutboxError, StartAt, WebSocketConsumers, WebSocketOptions};
use net::cursors::{CursorError, CursorStore, FileCursors};
use net::identity::Resolver;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::lines::ArchivedLines;
use crate::log::EventLog;

/// Consumers of the events of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Consumers {
    /// Their names. A new one begins with new events.
    pub names: Vec<String>,
    /// Options of the connections.
    pub options: WebSocketOptions,
    /// Looks up the handles of accounts, for clients of tap. Default: none.
    pub resolver: Option<Resolver>,
    /// Number of events in the outbox, at which further ones wait in the log. Default: 100,000.
    pub max_events: u64,
    /// Size of these in bytes. Default: 256 MiB.
    pub max_bytes: u64,
}

impl Consumers {
    /// Consumers of these names.
    pub fn new(names: Vec<String>, options: WebSocketOptions) -> Self {
        Self { names, options, resolver: None, max_events: 100_000, max_bytes: 256 << 20 }
    }
}

/// The outbox of the consumers, and how far it has the events of the log.
#[derive(Debug)]
pub(crate) struct ServedConsumers {
    pub(crate) clients: WebSocketConsumers,
    outbox: Outbox,
    cursor: FileCursors,
    /// The name of the cursor: another outbox begins anew.
    name: String,
}

/// Why consumers cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumersError {
    /// The outbox.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// The file that says how far the outbox has the events.
    #[error(transparent)]
    Cursor(#[from] CursorError),
    /// The log.
    #[error(transparent)]
    Log(#[from] ArchiveError),
}

impl ServedConsumers {
    /// Opens the outbox in a folder. Consumers that are not named any more are removed.
    pub(crate) fn open(
        folder: &Path,
        consumers: Consumers,
        log: &EventLog,
    ) -> Result<Self, ConsumersError> {
        let mut options = delivery::Options::default();
        (options.max_events, options.max_bytes) = (consumers.max_events, consumers.max_bytes);
        let outbox = Outbox::open(&folder.join("outbox.sqlite"), options)?;
        let cursor = FileCursors::open(folder.join("outbox.json"))?;
        let name = outbox.identity().to_string();
        if cursor.load(&name)?.is_none() {
            cursor.store(&[(&name, log.stored().borrow().unsigned_abs())])?;
        }
        for known in outbox.status().consumers {
            if !consumers.names.contains(&known.name) {
                outbox.remove(&known.name)?;
            }
        }
        for consumer in &consumers.names {
            outbox.register(consumer, StartAt::Next)?;
        }
        let clients = WebSocketConsumers::new(outbox.clone(), &consumers.names, consumers.options);
        let clients = match consumers.resolver {
            Some(resolver) => clients.with_resolver(resolver),
            None => clients,
        };
        Ok(Self { clients, outbox, cursor, name })
    }

    /// The state of the outbox and its consumers.
    pub(crate) fn status(&self) -> delivery::Status {
        self.outbox.status()
    }

    /// Feeds the outbox from the log until a stop is requested. On a thread, as it waits while the outbox is full.
    ///
    /// # Errors
    /// If the log cannot be read, or the outbox cannot be written.
    pub(crate) async fn feed(
        self: &Arc<Self>,
        log: Arc<EventLog>,
        stop: &StopSignal,
    ) -> Result<(), ConsumersError> {
        let (consumers, of_feeder, runtime) = (self.clone(), stop.clone(), Handle::current());
        let mut feeding = spawn_blocking(move || {
            let mut feeder = Feeder::new(&consumers, &log)?;
            runtime.block_on(feeder.run(&of_feeder))
        });
        let ended = tokio::select! {
            ended = &mut feeding => ended,
            () = stop.requested() => {
                // One that waits for room returns.
                self.outbox.stop_appends();
                feeding.await
            }
        };
        // The thread ends early only with the process.
        match ended {
            Ok(Err(_)) if stop.is_requested() => Ok(()),
            Ok(result) => result,
            Err(_) => Ok(()),
        }
    }
}

/// Appends the events of the log to the outbox.
struct Feeder<'a> {
    consumers: &'a ServedConsumers,
    log: &'a EventLog,
    reader: WalReader,
    lines: ArchivedLines,
    /// The arrival up to which events are appended.
    position: i64,
    /// Number of events since the cursor was stored.
    unsaved: u64,
    /// Why an event was not stored. The cursor stays before it.
    failure: Failure,
}

/// The first failure of the outbox.
type Failure = Arc<Mutex<Option<OutboxError>>>;

impl<'a> Feeder<'a> {
    fn new(consumers: &'a ServedConsumers, log: &'a EventLog) -> Result<Self, ConsumersError> {
        let position = consumers.cursor.load(&consumers.name)?.unwrap_or_default();
        let position = i64::try_from(position).unwrap_or(i64::MAX);
        let (reader, lines) = (log.wal.reader(position), ArchivedLines::live());
        let failure = Failure::default();
        Ok(Self { consumers, log, reader, lines, position, unsaved: 0, failure })
    }

    async fn run(&mut self, stop: &StopSignal) -> Result<(), ConsumersError> {
        let mut stored = self.log.stored();
        while !stop.is_requested() {
            stored.mark_unchanged();
            if self.position < self.log.wal.floor() {
                self.feed_history(stop).await?;
            } else if !self.feed_group()? {
                self.save()?;
                tokio::select! {
                    () = stop.requested() => {}
                    _ = stored.changed() => {}
                }
            }
        }
        self.save()
    }

    /// Appends the next events of the window; whether there were some.
    fn feed_group(&mut self) -> Result<bool, ConsumersError> {
        let Some(group) = self.reader.next_group()? else { return Ok(false) };
        if self.position < self.log.wal.floor() {
            // Events were deleted meanwhile, which the reader skips.
            return Ok(true);
        }
        group.events().iter().for_each(|event| self.append(event));
        self.save_sometimes()?;
        Ok(true)
    }

    /// Appends events that the window has deleted: from the archive, as far as it has them.
    async fn feed_history(&mut self, stop: &StopSignal) -> Result<(), ConsumersError> {
        let (floor, of_log) = (self.log.wal.floor(), self.log.floor());
        if self.position < of_log {
            tracing::warn!(
                target: "wireproof::serve",
                "consumers miss events, as these were deleted before they were acknowledged: use a larger window"
            );
        }
        if let Some(history) = &self.log.history {
            let mut replay = history.replay(self.position.max(of_log), floor).await?;
            while let Some(replayed) = replay.next().await? {
                if stop.is_requested() {
                    return Ok(());
                }
                self.append(&replayed.event());
                self.save_sometimes()?;
            }
        }
        self.position = self.position.max(floor);
        self.reader = self.log.wal.reader(self.position);
        Ok(())
    }

    /// Appends an event, once there is room. One that has no line is left out with a warning.
    fn append(&mut self, event: &ArchivedEvent<'_>) {
        if event.arrival <= self.position {
            return;
        }
        self.position = event.arrival;
        self.unsaved += 1;
        match self.new_event(event) {
            Ok(new) => {
                let failure = self.failure.clone();
                self.consumers.outbox.append(new, move |stored| {
                    if let Err(error) = stored {
                        let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                        failure.get_or_insert(error);
                    }
                });
            }
            Err(why) => {
                tracing::warn!(target: "wireproof::serve", "consumers do not get an event: {why}");
            }
        }
    }

    fn new_event(&mut self, event: &ArchivedEvent<'_>) -> Result<NewEvent, String> {
        let mut line = Vec::new();
        let id = self.lines.write(event, event.arrival, &mut line)?;
        line.pop();
        let new = NewEvent::new(id, event.did.unwrap_or_default(), line);
        new.map_err(|error| error.to_string())
    }

    /// Stores the cursor before the outbox forgets which events it had last.
    fn save_sometimes(&mut self) -> Result<(), ConsumersError> {
        if self.unsaved < SAVE_EVENTS { Ok(()) } else { self.save() }
    }

    fn save(&mut self) -> Result<(), ConsumersError> {
        if self.unsaved > 0 {
            self.consumers.outbox.flush()?;
            if let Some(error) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
            {
                return Err(error.into());
            }
            let cursor = (&*self.consumers.name, self.position.unsigned_abs());
            self.consumers.cursor.store(&[cursor])?;
            self.unsaved = 0;
        }
        Ok(())
    }
}

/// Number of events after which the cursor is stored. The outbox recognizes more events than these when they come again.
const SAVE_EVENTS: u64 = 8_192;
