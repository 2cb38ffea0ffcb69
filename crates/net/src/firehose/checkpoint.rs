//! When is the journal written, and what stands in it?

use std::sync::Arc;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use verify::sync::AccountState;

use super::ack::RunState;
use super::counters::RunMetrics;
use super::journal::{Journal, JournalError};
use super::options::Options;
use super::pending_states::PendingStates;
use super::run::RunError;

/// Writes a journal from time to time.
#[derive(Debug)]
pub(super) struct Checkpointer<J> {
    journal: J,
    /// The cursor of each host's stream that is in the journal.
    written: Vec<Option<u64>>,
    run_state: Arc<RunState>,
    /// Of each worker.
    pending_states: Vec<Arc<PendingStates>>,
    counters: Arc<RunMetrics>,
    backoff: BackoffOptions,
}

/// How often a journal is written: when so much time has passed, or so many events were acknowledged.
#[derive(Clone, Copy, Debug)]
struct BackoffOptions {
    time: Duration,
    events: usize,
}

impl<J: Journal> Checkpointer<J> {
    /// A checkpointer who finds in the journal what is in the run_state now.
    pub(super) fn new(
        journal: J,
        run_state: &Arc<RunState>,
        pending_states: Vec<Arc<PendingStates>>,
        counters: &Arc<RunMetrics>,
        options: &Options,
    ) -> Self {
        let written = run_state.acks().cursors().collect();
        let backoff =
            BackoffOptions { time: options.checkpoint_interval, events: options.checkpoint_events };
        let (run_state, counters) = (run_state.clone(), counters.clone());
        Self { journal, written, run_state, pending_states, counters, backoff }
    }

    /// Writes until the bell says that this is the last time, or the journal fails.
    pub(super) fn run(mut self) {
        loop {
            self.run_state.checkpoint_signal.set(self.run_state.settled() + self.backoff.events);
            let is_last = self.run_state.checkpoint_signal.wait(self.backoff.time);
            if let Err(error) = self.write() {
                return self.run_state.error.set(RunError::Journal(error));
            }
            if is_last {
                return;
            }
        }
    }

    /// Writes what has changed. The cursors are looked at before the accounts: no cursor is ahead of
    /// an account.
    fn write(&mut self) -> Result<(), JournalError> {
        let cursors: Vec<Option<u64>> = self.run_state.acks().cursors().collect();
        let takes = self.pending_states.iter().flat_map(|pending_states| pending_states.take());
        let accounts: Vec<(Box<str>, AccountState)> = takes.collect();
        let streams = self.run_state.streams.iter().map(String::as_str);
        let known = streams.zip(cursors.iter().zip(&self.written));
        let changed: Vec<(&str, u64)> = known
            .filter(|(_, (now, before))| now != before)
            .filter_map(|(stream, (now, _))| Some((stream, (*now)?)))
            .collect();
        if changed.is_empty() && accounts.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        self.journal.checkpoint(&changed, &accounts)?;
        self.counters.checkpoint_time.count(began.elapsed());
        self.written = cursors;
        Ok(())
    }
}

/// Calls the checkpointer.
#[derive(Debug, Default)]
pub(super) struct CheckpointSignal {
    state: Mutex<BellState>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct BellState {
    is_rung: bool,
    is_last: bool,
    /// It rings when so many events are settled.
    due: usize,
}

impl CheckpointSignal {
    /// From now on, so many are settled.
    pub(super) fn settle(&self, settled: usize) {
        self.change(|state| state.is_rung |= settled >= state.due);
    }

    /// Rings for the last time.
    pub(super) fn request_final(&self) {
        self.change(|state| state.is_last = true);
    }

    fn set(&self, due: usize) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).due = due;
    }

    /// Waits until it rings or this time has passed. Whether that was the last time.
    fn wait(&self, time: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet = |state: &mut BellState| !state.is_rung && !state.is_last;
        let waited = self.rung.wait_timeout_while(state, time, is_quiet);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.is_rung = false;
        state.is_last
    }

    fn change(&self, change: impl FnOnce(&mut BellState)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if state.is_rung || state.is_last {
            self.rung.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::ack::{Ack, Batch};
    use super::super::acks::AckTracker;
    use super::super::room::InFlightLimit;
    use super::*;
    use crate::hosts::HostId;

    /// The cursors of a checkpoint, and how many accounts it had.
    type ReconnectingSocket = (Vec<(String, u64)>, usize);

    /// A journal that remembers what it was given, and may be full.
    #[derive(Debug, Default)]
    struct Paper {
        lines: Mutex<Vec<ReconnectingSocket>>,
        is_full: bool,
    }

    impl Journal for Arc<Paper> {
        fn cursor(&self, _: &str) -> Result<Option<u64>, JournalError> {
            Ok(None)
        }

        fn checkpoint(
            &self,
            cursors: &[(&str, u64)],
            accounts: &[(Box<str>, AccountState)],
        ) -> Result<(), JournalError> {
            if self.is_full {
                return Err(JournalError::new("no space left"));
            }
            let cursors = cursors.iter().map(|(stream, cursor)| ((*stream).to_owned(), *cursor));
            self.lines.lock().unwrap().push((cursors.collect(), accounts.len()));
            Ok(())
        }
    }

    fn checkpointer(paper: &Arc<Paper>, backoff: BackoffOptions) -> Checkpointer<Arc<Paper>> {
        let acks = AckTracker::new([Some(5), None]);
        let run_state =
            RunState::new(vec!["a".into(), "b".into()], acks, InFlightLimit::new(100, 100));
        let (pending_states, counters) = (vec![Arc::default()], Arc::default());
        let written = vec![Some(5), None];
        Checkpointer {
            journal: paper.clone(),
            written,
            run_state,
            pending_states,
            counters,
            backoff,
        }
    }

    /// An event of the second host, closed and with its word.
    fn event(checkpointer: &Checkpointer<Arc<Paper>>, seq: u64) -> Ack {
        let ticket = checkpointer.run_state.acks().begin(HostId(1), Some(seq));
        assert!(checkpointer.run_state.in_flight.try_acquire(0));
        let batch = Batch::open(&checkpointer.run_state, [ticket].into(), 0, [7].into());
        checkpointer.pending_states[0].note(batch.clone());
        let ack = batch.ack(Some(0));
        batch.close(vec![(7, "did:x:y".into(), AccountState::UNKNOWN)]);
        ack
    }

    const SLOW: BackoffOptions = BackoffOptions { time: Duration::from_secs(3600), events: 2 };

    #[test]
    fn only_what_is_acknowledged_is_written_and_only_what_changed() {
        let paper = Arc::default();
        let mut checkpointer = checkpointer(&paper, SLOW);
        let (first, second) = (event(&checkpointer, 8), event(&checkpointer, 9));
        checkpointer.write().unwrap();
        assert_eq!(*paper.lines.lock().unwrap(), []);
        first.done();
        checkpointer.write().unwrap();
        checkpointer.write().unwrap();
        second.done();
        checkpointer.write().unwrap();
        let line = |cursor| (vec![("b".to_owned(), cursor)], 1);
        assert_eq!(*paper.lines.lock().unwrap(), [line(8), line(9)]);
    }

    #[test]
    fn the_scribe_comes_when_enough_is_acknowledged_and_when_it_is_the_last_time() {
        let paper = Arc::default();
        let checkpointer = checkpointer(&paper, SLOW);
        let run_state = checkpointer.run_state.clone();
        let acks: Vec<Ack> = (1..=3).map(|seq| event(&checkpointer, seq)).collect();
        acks.into_iter().for_each(Ack::done);
        let thread = std::thread::spawn(move || checkpointer.run());
        while paper.lines.lock().unwrap().is_empty() {
            run_state.checkpoint_signal.settle(run_state.settled());
            std::thread::yield_now();
        }
        run_state.checkpoint_signal.request_final();
        thread.join().unwrap();
        assert_eq!(*paper.lines.lock().unwrap(), [(vec![("b".to_owned(), 3)], 1)]);
    }

    #[test]
    fn a_full_journal_ends_the_run() {
        let paper = Arc::new(Paper { is_full: true, ..Paper::default() });
        let checkpointer = checkpointer(&paper, BackoffOptions { time: Duration::ZERO, ..SLOW });
        let run_state = checkpointer.run_state.clone();
        event(&checkpointer, 8).done();
        checkpointer.run();
        assert!(matches!(run_state.error.take(), Some(RunError::Journal(_))));
    }
}
