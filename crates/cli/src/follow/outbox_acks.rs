//! Acknowledgements of events whose lines go to the outbox.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wireproof::delivery::{OutboxError, OutboxFault};
use wireproof::net::firehose::{Ack, StopSignal};

/// What could not be stored: the first error, which stops the run, and the acknowledgements, which are never given.
#[derive(Debug)]
pub(super) struct Unstored {
    state: Mutex<State>,
    stop: StopSignal,
}

#[derive(Debug, Default)]
struct State {
    error: Option<String>,
    acks: Vec<Ack>,
}

impl Unstored {
    pub(super) fn new(stop: StopSignal) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), stop })
    }

    /// Acknowledges an event whose line is stored. Otherwise the acknowledgement is kept, and the run stops.
    pub(super) fn settle(&self, ack: Ack, result: Result<(), OutboxError>) {
        match result {
            Ok(()) => ack.done(),
            Err(error) => {
                self.keep(ack);
                self.stop_for(&error);
            }
        }
    }

    /// Keeps the acknowledgement of an event that could not be stored, and stops the run for this reason.
    pub(super) fn refuse(&self, ack: Ack, reason: String) {
        self.keep(ack);
        self.fail(reason);
    }

    /// Stops the run for this reason, unless there is an earlier one.
    pub(super) fn fail(&self, reason: String) {
        self.lock().error.get_or_insert(reason);
        self.stop.request();
    }

    /// Whether the run stops, for whatever reason.
    pub(super) fn is_stopping(&self) -> bool {
        self.stop.is_requested()
    }

    /// The first error.
    pub(super) fn error(&self) -> Option<String> {
        self.lock().error.clone()
    }

    /// Stops the run, unless the stop itself has closed the outbox.
    fn stop_for(&self, error: &OutboxError) {
        if error.fault != OutboxFault::Closed || !self.stop.is_requested() {
            self.fail(error.to_string());
        }
    }

    fn keep(&self, ack: Ack) {
        self.lock().acks.push(ack);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The acknowledgement of an event or a repository with several lines: it is given when all of them are stored.
#[derive(Debug)]
pub(super) struct SharedAck {
    ack: Option<Ack>,
    unstored: Arc<Unstored>,
    has_failed: AtomicBool,
    /// Whether no further line follows.
    is_complete: AtomicBool,
}

impl SharedAck {
    pub(super) fn new(ack: Ack, unstored: Arc<Unstored>) -> Arc<Self> {
        let (has_failed, is_complete) = Default::default();
        Arc::new(Self { ack: Some(ack), unstored, has_failed, is_complete })
    }

    /// Records the result of storing a line.
    pub(super) fn record(&self, result: Result<(), OutboxError>) {
        if let Err(error) = result {
            self.give_up();
            self.unstored.stop_for(&error);
        }
    }

    /// Leaves the event to the next run.
    pub(super) fn give_up(&self) {
        self.has_failed.store(true, Relaxed);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// Records that no further line follows.
    pub(super) fn complete(&self) {
        self.is_complete.store(true, Relaxed);
    }
}

impl Drop for SharedAck {
    /// Gives the acknowledgement if all lines are stored. A repository that could not be read to its end drops it, which
    /// ends the run: its account would miss records.
    fn drop(&mut self) {
        let Some(ack) = self.ack.take() else { return };
        match (*self.has_failed.get_mut(), *self.is_complete.get_mut()) {
            (true, _) => self.unstored.keep(ack),
            (false, true) => ack.done(),
            (false, false) => drop(ack),
        }
    }
}
