//! A consumer: it receives the events of an outbox from its cursor on, and acknowledges them in any order.

use std::sync::Arc;

use rusqlite::Connection;
use store::sqlite_file;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::database;
use crate::error::{OutboxError, OutboxFault};
use crate::event::Event;
use crate::outbox::Outbox;
use crate::window::AckWindow;

/// A registered consumer that receives events. One exists per name at a time; dropping it leaves the consumer
/// registered, and the next one starts at the first event that is not acknowledged.
#[derive(Debug)]
pub struct Consumer {
    acks: Acks,
    /// The position from which events are read next.
    next: u64,
    committed: watch::Receiver<u64>,
    acknowledged: Arc<Notify>,
    /// The connection, unless a read is under way.
    reader: Option<Connection>,
    /// A read that is under way, so that a wait for events can be dropped.
    reading: Option<Reading>,
}

/// A read of the file, which returns its connection.
type Reading = JoinHandle<(Connection, Result<Vec<Event>, OutboxError>)>;

/// Acknowledges events of a consumer, from any thread.
#[derive(Clone, Debug)]
pub(crate) struct Acks {
    outbox: Outbox,
    name: Box<str>,
}

impl Outbox {
    /// Attaches to a registered consumer, to receive its events.
    ///
    /// # Errors
    /// If there is no such consumer, or it is in use.
    pub fn consumer(&self, name: &str) -> Result<Consumer, OutboxError> {
        let shared = &self.0.shared;
        let (acknowledged, committed) = (Arc::new(Notify::new()), shared.committed.subscribe());
        let mut state = shared.lock();
        let Some(window) = state.consumers.get(name) else {
            return Err(shared.error(OutboxFault::UnknownConsumer(name.to_owned())));
        };
        let next = window.cursor() + 1;
        if state.attached.contains_key(name) {
            return Err(shared.error(OutboxFault::ConsumerInUse(name.to_owned())));
        }
        state.attached.insert(name.into(), acknowledged.clone());
        drop(state);
        let acks = Acks { outbox: self.clone(), name: name.into() };
        Ok(Consumer { acks, next, committed, acknowledged, reader: None, reading: None })
    }
}

impl Consumer {
    /// The name.
    pub fn name(&self) -> &str {
        &self.acks.name
    }

    /// The outbox.
    pub fn outbox(&self) -> &Outbox {
        &self.acks.outbox
    }

    /// The position up to which every event is acknowledged.
    pub fn cursor(&self) -> u64 {
        self.acks.window(|window| window.cursor())
    }

    /// Waits for events that were not received before and are not acknowledged, and returns the events of the next
    /// batch, at least one. Waits also while the last one received is 65,536 positions beyond the cursor, and while the
    /// consumer is paused.
    ///
    /// Cancel-safe: a dropped wait loses no event.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub async fn next_events(&mut self) -> Result<Vec<Event>, OutboxError> {
        loop {
            if self.can_read() {
                let events = self.read(self.end()).await?;
                if !events.is_empty() {
                    return Ok(events);
                }
                continue;
            }
            let is_full = self.next < *self.committed.borrow_and_update();
            if is_full || self.is_paused() {
                self.acknowledged.notified().await;
            } else if self.committed.changed().await.is_err() {
                return Err(self.acks.error(OutboxFault::Closed));
            }
        }
    }

    /// The position after the last one that may be received.
    fn end(&self) -> u64 {
        let window_end = self.acks.window(|window| window.end());
        (*self.committed.borrow()).min(window_end.saturating_add(1))
    }

    /// The unacknowledged events of the batch at the next position, before `end`.
    async fn read(&mut self, end: u64) -> Result<Vec<Event>, OutboxError> {
        let recent = match self.reading {
            Some(_) => None,
            None => self.acks.outbox.0.shared.recent(self.next),
        };
        let mut events = match recent {
            Some(events) => events,
            None => self.read_file().await?,
        };
        events.retain(|event| (self.next..end).contains(&event.position()));
        self.next = events.last().map_or(self.next, |last| last.position() + 1);
        self.acks.window(|window| events.retain(|event| !window.has(event.position())));
        Ok(events)
    }

    /// Reads the batch at the next position from the file, on a thread for blocking work.
    async fn read_file(&mut self) -> Result<Vec<Event>, OutboxError> {
        let reading = match self.reading.take() {
            Some(reading) => reading,
            None => self.start_reading()?,
        };
        // Kept here during the wait: one that is dropped is continued by the next.
        let ended = self.reading.insert(reading).await;
        self.reading = None;
        let (reader, events) = match ended {
            Ok(ended) => ended,
            Err(_) => return Err(self.acks.error(OutboxFault::Closed)),
        };
        self.reader = Some(reader);
        events
    }

    fn start_reading(&mut self) -> Result<Reading, OutboxError> {
        let path = self.acks.outbox.path().to_owned();
        let reader = match self.reader.take() {
            Some(reader) => reader,
            None => sqlite_file::open_reader(&path)?,
        };
        let position = self.next;
        Ok(tokio::task::spawn_blocking(move || {
            let read = || {
                let batch = database::read_batch(&reader, position)?;
                let events = batch.events();
                events.map_err(|rule| OutboxFault::Damaged(format!("{rule} in {}", batch.first)))
            };
            let events = read().map_err(OutboxError::at(&path));
            (reader, events)
        }))
    }

    /// Acknowledges events that were received, in any order; the cursor moves over events that leave no gap. They are
    /// in the file within [`Options::ack_interval`](crate::Options::ack_interval).
    ///
    /// # Errors
    /// If one of them was not received: none is acknowledged.
    pub fn acknowledge(
        &self,
        positions: impl IntoIterator<Item = u64, IntoIter: Clone>,
    ) -> Result<(), OutboxError> {
        let positions = positions.into_iter();
        match positions.clone().find(|position| *position >= self.next || *position == 0) {
            Some(position) => Err(self.acks.error(OutboxFault::NotDelivered(position))),
            None => {
                self.acks.acknowledge(positions);
                Ok(())
            }
        }
    }

    /// Acknowledges every event up to a position that the receiver has stored itself, and continues after it.
    ///
    /// # Errors
    /// If the outbox has no such event, or a later one is acknowledged: the receiver has lost stored events.
    pub fn skip_through(&mut self, position: u64) -> Result<(), OutboxError> {
        let (cursor, last) = (self.cursor(), *self.committed.borrow() - 1);
        if position > last {
            return Err(self.acks.error(OutboxFault::SinkAhead { stored: position, last }));
        }
        if position < cursor {
            return Err(self.acks.error(OutboxFault::SinkBehind { stored: position, cursor }));
        }
        self.acks.change(|window| window.acknowledge_through(position));
        self.next = self.next.max(position + 1);
        Ok(())
    }

    /// Whether [`next_events`](Self::next_events) need not wait for the source or for acknowledgements.
    pub fn has_next(&self) -> bool {
        let end = self.end();
        let is_left = |window: &AckWindow| (self.next..end).any(|position| !window.has(position));
        !self.is_paused() && self.acks.window(is_left)
    }

    /// Whether there are positions to read, although all of them may be acknowledged.
    fn can_read(&self) -> bool {
        !self.is_paused() && (self.next < self.end() || self.reading.is_some())
    }

    fn is_paused(&self) -> bool {
        self.acks.outbox.0.shared.lock().paused.contains(&self.acks.name)
    }

    pub(crate) fn acks(&self) -> Acks {
        self.acks.clone()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let name = &self.acks.name;
        self.acks.outbox.0.shared.lock().attached.remove(name);
    }
}

impl Acks {
    /// Acknowledges events that were received.
    pub(crate) fn acknowledge(&self, positions: impl IntoIterator<Item = u64>) {
        self.change(|window| {
            for position in positions {
                window.acknowledge(position);
            }
        });
    }

    /// Waits until the acknowledgements are on disk.
    pub(crate) async fn flush(&self) -> Result<(), OutboxError> {
        let outbox = self.outbox.clone();
        let flushed = tokio::task::spawn_blocking(move || outbox.flush()).await;
        flushed.unwrap_or_else(|_| Err(self.error(OutboxFault::Closed)))
    }

    fn change(&self, change: impl FnOnce(&mut AckWindow)) {
        let attached = self.outbox.0.shared.change(|state| {
            if let Some(window) = state.consumers.get_mut(&self.name) {
                change(window);
            }
            state.attached.get(&self.name).cloned()
        });
        if let Some(acknowledged) = attached {
            acknowledged.notify_one();
        }
    }

    fn window<T: Default>(&self, read: impl FnOnce(&AckWindow) -> T) -> T {
        self.outbox.0.shared.lock().consumers.get(&self.name).map(read).unwrap_or_default()
    }

    pub(crate) fn error(&self, fault: OutboxFault) -> OutboxError {
        self.outbox.0.shared.error(fault)
    }
}
