//! Checkpoints: acknowledged cursors and account states, written to the journal at intervals.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use verify::sync::AccountState;

use super::ack::{Batch, RunState};
use super::error::{PanicGuard, RunError};
use super::journal::{Journal, JournalError};
use super::metrics::RunMetrics;
use super::options::Options;

/// Writes checkpoints on a thread of its own.
#[derive(Debug)]
pub(super) struct Checkpointer<J> {
    journal: J,
    /// The cursors that this run has written.
    written: Vec<Option<u64>>,
    run: Arc<RunState>,
    /// The pending states by worker.
    pending_states: Vec<Arc<PendingStates>>,
    metrics: Arc<RunMetrics>,
    interval: Duration,
    /// Number of acknowledged events after which a checkpoint is written before the interval ends.
    max_events: usize,
}

impl<J: Journal> Checkpointer<J> {
    pub(super) fn new(
        journal: J,
        run: &Arc<RunState>,
        pending_states: Vec<Arc<PendingStates>>,
        metrics: &Arc<RunMetrics>,
        options: &Options,
    ) -> Self {
        let written = vec![None; run.streams().len()];
        let (interval, max_events) = (options.checkpoint_interval, options.checkpoint_events);
        let (run, metrics) = (run.clone(), metrics.clone());
        Self { journal, written, run, pending_states, metrics, interval, max_events }
    }

    /// Writes checkpoints until the final one is written or the journal fails.
    pub(super) fn run(mut self) {
        let run = self.run.clone();
        let _guard = PanicGuard(&run.failure);
        while self.step(self.interval) {}
    }

    /// Writes the next checkpoint, after at most `interval`. Whether more will follow.
    pub(super) fn step(&mut self, interval: Duration) -> bool {
        let run = self.run.clone();
        let request = run.checkpoint.wait(run.acked() + self.max_events, interval);
        if let Err(error) = self.write() {
            run.failure.set(RunError::Journal(error));
            return false;
        }
        run.checkpoint.written(request);
        !request.is_final
    }

    /// Writes all changes; if there are none, the journal only checks that it is still in place. Cursors are read
    /// before account states, so no cursor is ahead of a state.
    fn write(&mut self) -> Result<(), JournalError> {
        let cursors: Vec<Option<u64>> = self.run.tracker().started_cursors().collect();
        let states = self.pending_states.iter().flat_map(|pending| pending.take());
        let accounts: Vec<(Box<str>, AccountState)> = states.collect();
        self.written.resize(cursors.len(), None);
        let streams = self.run.streams().clone();
        let names = streams.iter().map(|stream| &*stream.name);
        let cursor_pairs = names.zip(cursors.iter().zip(&self.written));
        let changed: Vec<(&str, u64)> = cursor_pairs
            .filter(|(_, (now, before))| now != before)
            .filter_map(|(stream, (now, _))| Some((stream, (*now)?)))
            .collect();
        let started = Instant::now();
        self.journal.checkpoint(&changed, &accounts)?;
        self.metrics.checkpoint_time.count(started.elapsed());
        self.written = cursors;
        Ok(())
    }
}

/// The account states of one worker that are not journaled yet, and which of them may be.
///
/// A state may be journaled when every event up to it is acknowledged. Otherwise, after a crash, an
/// unhandled event would be received again and ignored as old. So batches are kept in order: the states of
/// an open batch wait, and so do later states of the same accounts.
#[derive(Debug, Default)]
pub(super) struct PendingStates(Mutex<Pending>);

#[derive(Debug, Default)]
struct Pending {
    /// The oldest first.
    // No two `Deferred` in a row, and none first: deferred states wait for a batch before them.
    entries: VecDeque<Entry>,
    ready: HashMap<Box<str>, AccountState>,
}

#[derive(Debug)]
enum Entry {
    /// A batch that was open when last examined.
    Open(Arc<Batch>),
    /// States of complete batches, by hashed account, whose accounts have events in an open batch.
    Deferred(HashMap<u64, (Box<str>, AccountState)>),
}

impl PendingStates {
    /// Adds the next batch.
    pub(super) fn add(&self, batch: Arc<Batch>) {
        let mut pending = self.lock();
        pending.entries.push_back(Entry::Open(batch));
        if pending.entries.len().is_multiple_of(MAX_UNSORTED) {
            pending.sort();
        }
    }

    /// Takes out the states that may be journaled.
    pub(super) fn take(&self) -> HashMap<Box<str>, AccountState> {
        let mut pending = self.lock();
        pending.sort();
        std::mem::take(&mut pending.ready)
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pending {
    /// Moves states that no longer wait to `ready`.
    fn sort(&mut self) {
        let mut open = HashSet::new();
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                Entry::Open(batch) if !batch.is_complete() => {
                    open.extend(batch.accounts());
                    self.entries.push_back(Entry::Open(batch));
                }
                Entry::Open(batch) => self.place(batch.take_states(), &open),
                Entry::Deferred(deferred) => {
                    let states =
                        deferred.into_iter().map(|(account, (did, state))| (account, did, state));
                    self.place(states, &open);
                }
            }
        }
    }

    fn place(
        &mut self,
        states: impl IntoIterator<Item = (u64, Box<str>, AccountState)>,
        open: &HashSet<u64>,
    ) {
        for (account, did, state) in states {
            match open.contains(&account) {
                false => drop(self.ready.insert(did, state)),
                true => drop(self.deferred().insert(account, (did, state))),
            }
        }
    }

    /// The deferred states at the end of the entries.
    fn deferred(&mut self) -> &mut HashMap<u64, (Box<str>, AccountState)> {
        if !matches!(self.entries.back(), Some(Entry::Deferred(_))) {
            self.entries.push_back(Entry::Deferred(HashMap::new()));
        }
        match self.entries.back_mut() {
            Some(Entry::Deferred(deferred)) => deferred,
            _ => unreachable!("the lines above put it there"),
        }
    }
}

/// Batches are sorted at least once in this many, even if no state is taken.
const MAX_UNSORTED: usize = 256;

#[cfg(test)]
mod tests;
