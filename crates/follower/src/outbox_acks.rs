//! Acknowledgements of events whose lines go to the outbox.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use delivery::{OutboxError, OutboxFault};
use net::firehose::{Ack, StopSignal};

use super::taken::Acknowledge;

/// Failed writes: the first error, which stops the run, and the acknowledgements, which are never given.
#[derive(Debug)]
pub struct Unstored<A = Ack> {
    state: Mutex<State<A>>,
    stop: StopSignal,
}

#[derive(Debug)]
struct State<A> {
    error: Option<String>,
    acks: Vec<A>,
}

impl<A: Acknowledge> Unstored<A> {
    /// Nothing has failed yet; a failure requests this stop.
    pub fn new(stop: StopSignal) -> Arc<Self> {
        let state = Mutex::new(State { error: None, acks: Vec::new() });
        Arc::new(Self { state, stop })
    }

    /// Acknowledges an event whose line is stored. Otherwise the acknowledgement is kept, and the run stops.
    pub(super) fn settle(&self, ack: A, result: Result<(), OutboxError>) {
        match result {
            Ok(()) => ack.done(),
            Err(error) => {
                self.keep(ack);
                self.stop_for(&error);
            }
        }
    }

    /// Keeps the acknowledgement of an event that could not be stored, and stops the run for this reason.
    pub fn refuse(&self, ack: A, reason: String) {
        self.keep(ack);
        self.fail(reason);
    }

    /// Stops the run for this reason, unless there is an earlier one.
    pub fn fail(&self, reason: String) {
        self.lock().error.get_or_insert(reason);
        self.stop.request();
    }

    /// Whether the run stops, for whatever reason.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_requested()
    }

    /// The first error.
    pub fn error(&self) -> Option<String> {
        self.lock().error.clone()
    }

    /// Stops the run, unless the stop itself has closed the outbox.
    fn stop_for(&self, error: &OutboxError) {
        if error.fault != OutboxFault::Closed || !self.stop.is_requested() {
            self.fail(error.to_string());
        }
    }

    fn keep(&self, ack: A) {
        self.lock().acks.push(ack);
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The acknowledgement of an event or a repository with several lines: it is given when all of them are stored.
#[derive(Debug)]
pub struct SharedAck<A: Acknowledge = Ack> {
    ack: Option<A>,
    unstored: Arc<Unstored<A>>,
    has_failed: AtomicBool,
    /// Whether no further line follows.
    is_complete: AtomicBool,
}

impl<A: Acknowledge> SharedAck<A> {
    /// An acknowledgement for the events that share it.
    pub fn new(ack: A, unstored: Arc<Unstored<A>>) -> Arc<Self> {
        let (has_failed, is_complete) = Default::default();
        Arc::new(Self { ack: Some(ack), unstored, has_failed, is_complete })
    }

    /// Records the result of storing a line.
    pub fn record(&self, result: Result<(), OutboxError>) {
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
    pub fn complete(&self) {
        self.is_complete.store(true, Relaxed);
    }
}

impl<A: Acknowledge> Drop for SharedAck<A> {
    /// Gives the acknowledgement if all lines are stored, and acknowledgements of events before it. A repository that
    /// could not be read to its end drops it, which ends the run: its account would miss records.
    fn drop(&mut self) {
        let Some(ack) = self.ack.take() else { return };
        let has_failed = *self.has_failed.get_mut() || self.unstored.error().is_some();
        match (has_failed, *self.is_complete.get_mut()) {
            (true, _) => self.unstored.keep(ack),
            (false, true) => ack.done(),
            (false, false) => drop(ack),
        }
    }
}
