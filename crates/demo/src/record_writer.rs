//! The handler of the stream: stores the records of verified commits, then acknowledges the commits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atproto::event::Event;
use net::firehose::{Ack, DeliveredEvent, Handler, StopSignal};

use crate::Failure;
use crate::records::Records;

/// Stores the commits of a batch in one transaction. Clones share the file.
#[derive(Clone)]
pub(crate) struct RecordWriter(Arc<Mutex<State>>);

struct State {
    records: Records,
    /// Verified commits that are stored.
    commits: u64,
    /// Commits of the open transaction, to be acknowledged when it is stored.
    open: Vec<Ack>,
    /// The first failure. Nothing is acknowledged after it, so it also stops the run.
    failure: Option<rusqlite::Error>,
    stop: StopSignal,
}

impl RecordWriter {
    pub(crate) fn new(records: Records, stop: StopSignal) -> Self {
        let state = State { records, commits: 0, open: Vec::new(), failure: None, stop };
        Self(Arc::new(Mutex::new(state)))
    }

    /// The records, and the number of commits.
    pub(crate) fn finish(self) -> Result<(Records, u64), Failure> {
        let state = Arc::into_inner(self.0).ok_or("the run still writes")?;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failure.map_or(Ok((state.records, state.commits)), |error| Err(error.into()))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for RecordWriter {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.lock().store(event, ack);
    }

    fn batch_end(&self) {
        self.lock().commit();
    }
}

impl State {
    fn store(&mut self, event: &DeliveredEvent<'_>, ack: Ack) {
        if self.failure.is_some() {
            return;
        }
        let stored = match event.event {
            Some(Event::Commit(commit)) if event.verdict.is_verified() => {
                self.commits += 1;
                self.records.apply(commit)
            }
            _ => Ok(()),
        };
        match stored {
            Ok(()) => self.open.push(ack),
            Err(error) => self.fail(error),
        }
    }

    fn commit(&mut self) {
        if self.failure.is_some() {
            return;
        }
        match self.records.commit() {
            Ok(()) => self.open.drain(..).for_each(Ack::done),
            Err(error) => self.fail(error),
        }
    }

    fn fail(&mut self, error: rusqlite::Error) {
        self.failure = Some(error);
        self.stop.request();
    }
}
