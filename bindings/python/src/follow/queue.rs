//! The bounded queue between the workers of a run and the program that takes its events.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use net::firehose::{Ack, RunError};
use net::identity::IdentityError;
use pyo3::prelude::*;

use crate::judged::Judged;
use crate::logging::LogLines;

/// Events that were delivered and are not taken, and acknowledgements that are not used.
///
/// No lock is held while Python is called.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    /// Notified when there is an event, or the run has ended.
    ready: Condvar,
    /// Notified when there is space, or the queue is closed.
    space: Condvar,
    /// Maximum number of events.
    capacity: usize,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<QueuedEvent>,
    /// The acknowledgements of delivered events, by ticket.
    unused: HashMap<u64, Ack>,
    next_ticket: u64,
    lines: LogLines,
    /// Called once, when there is an event or a line, or the run has ended.
    wakers: Vec<Py<PyAny>>,
    /// Whether no more events are taken.
    is_closed: bool,
    end: End,
}

/// An event that can be taken.
pub(crate) struct QueuedEvent {
    pub(crate) judged: Arc<Judged>,
    pub(crate) host: Arc<str>,
    pub(crate) received: SystemTime,
    pub(crate) ticket: u64,
}

/// How far a run has come.
#[derive(Default)]
enum End {
    #[default]
    Running,
    /// It has ended, with a failure that was not reported yet.
    Ended(Option<Failure>),
}

/// Why a run has ended.
#[derive(Debug)]
pub(crate) enum Failure {
    Run(RunError),
    /// An account that was selected by its handle cannot be resolved.
    Identity(IdentityError),
    Runtime(std::io::Error),
}

/// The answer of the queue to a request for an event.
pub(crate) enum Taken {
    Event(QueuedEvent),
    /// There is none yet.
    Nothing,
    /// There will be none.
    Ended(Option<Failure>),
}

impl Queue {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), ..Self::default() }
    }

    /// Adds an event when there is space for it. After the queue is closed nothing is added, and the acknowledgement is
    /// dropped, which ends the run.
    pub(crate) fn push(&self, judged: Judged, host: &Arc<str>, received: SystemTime, ack: Ack) {
        let mut state = self.lock();
        while state.events.len() >= self.capacity && !state.is_closed {
            drop(state);
            self.wake();
            let full =
                |state: &mut QueueState| state.events.len() >= self.capacity && !state.is_closed;
            state =
                self.space.wait_while(self.lock(), full).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            drop(state);
            return drop(ack);
        }
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.unused.insert(ticket, ack);
        let (judged, host) = (Arc::new(judged), host.clone());
        state.events.push_back(QueuedEvent { judged, host, received, ticket });
    }

    /// Wakes those who wait for an event or the end, if there is one.
    pub(crate) fn wake(&self) {
        let mut state = self.lock();
        if state.events.is_empty() && matches!(state.end, End::Running) {
            return;
        }
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.ready.notify_all();
        call_all(&wakers);
    }

    /// Takes the next event, after waiting up to `timeout`.
    pub(crate) fn take(&self, timeout: Duration) -> Taken {
        let mut state = self.lock();
        if state.events.is_empty() && !timeout.is_zero() {
            let is_waiting = |state: &mut QueueState| {
                state.events.is_empty() && matches!(state.end, End::Running)
            };
            let waited = self.ready.wait_timeout_while(state, timeout, is_waiting);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if let Some(event) = state.events.pop_front() {
            drop(state);
            self.space.notify_all();
            return Taken::Event(event);
        }
        match &mut state.end {
            End::Running => Taken::Nothing,
            End::Ended(failure) => Taken::Ended(failure.take()),
        }
    }

    /// Calls `waker` as soon as there is an event, or the run has ended.
    pub(crate) fn notify(&self, py: Python<'_>, waker: Py<PyAny>) {
        let mut state = self.lock();
        if state.events.is_empty() && matches!(state.end, End::Running) {
            return state.wakers.push(waker);
        }
        drop(state);
        call(py, &waker);
    }

    /// Acknowledges an event. Whether the run goes on, so that its cursor can move.
    pub(crate) fn ack(&self, ticket: u64) -> bool {
        let mut state = self.lock();
        let ack = state.unused.remove(&ticket);
        let is_open = !state.is_closed && matches!(state.end, End::Running);
        drop(state);
        if let Some(ack) = ack {
            ack.done();
        }
        is_open
    }

    /// Number of events that can be taken, and of events that are delivered and not acknowledged.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let state = self.lock();
        (state.events.len(), state.unused.len())
    }

    /// Ends the deliveries: events that are not taken are dropped, and unacknowledged events stay so.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let dropped = (std::mem::take(&mut state.events), std::mem::take(&mut state.unused));
        drop(state);
        self.space.notify_all();
        // A dropped acknowledgement ends the run at once; otherwise it would wait for it.
        drop(dropped);
    }

    /// Records the end of the run.
    pub(crate) fn end(&self, failure: Option<Failure>) {
        let mut state = self.lock();
        let failure = match failure {
            // Closing drops acknowledgements.
            Some(Failure::Run(RunError::Unacknowledged { .. })) if state.is_closed => None,
            failure => failure,
        };
        state.end = End::Ended(failure);
        drop(state);
        self.wake();
    }

    /// Waits for the end of the run up to `timeout`. Whether it has ended.
    pub(crate) fn wait_end(&self, timeout: Duration) -> bool {
        let is_running = |state: &mut QueueState| matches!(state.end, End::Running);
        let waited = self.ready.wait_timeout_while(self.lock(), timeout, is_running);
        !is_running(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Takes the failure of the run, if it was not reported yet.
    pub(crate) fn take_failure(&self) -> Option<Failure> {
        match &mut self.lock().end {
            End::Running => None,
            End::Ended(failure) => failure.take(),
        }
    }

    /// Adds a line for the log, and wakes those who wait for an event, as they write it.
    pub(crate) fn log(&self, level: u8, text: String) {
        let mut state = self.lock();
        state.lines.add(level, text);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        call_all(&wakers);
    }

    /// Takes the lines for the log.
    pub(crate) fn take_log(&self) -> LogLines {
        std::mem::take(&mut self.lock().lines)
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls wakers from a thread of the run.
fn call_all(wakers: &[Py<PyAny>]) {
    if !wakers.is_empty() {
        // An interpreter that is ending waits for nothing.
        Python::try_attach(|py| wakers.iter().for_each(|waker| call(py, waker)));
    }
}

/// Calls a waker, which fails only if its loop is closed.
fn call(py: Python<'_>, waker: &Py<PyAny>) {
    let _ = waker.call0(py);
}
