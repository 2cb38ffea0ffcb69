//! Checkpoints of scripted acknowledgements.

use super::super::ack::{Ack, AckTracker, InFlightLimit};
use super::*;
use crate::hosts::HostId;

/// The cursors of a checkpoint, and its number of accounts.
type CheckpointSummary = (Vec<(String, u64)>, usize);

/// A journal in memory, which may be full.
#[derive(Debug, Default)]
struct TestJournal {
    checkpoints: Mutex<Vec<CheckpointSummary>>,
    is_full: bool,
}

impl Journal for Arc<TestJournal> {
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
        self.checkpoints.lock().unwrap().push((cursors.collect(), accounts.len()));
        Ok(())
    }
}

fn checkpointer(journal: &Arc<TestJournal>, interval: Duration) -> Checkpointer<Arc<TestJournal>> {
    let tracker = AckTracker::new([Some(5), None]);
    let in_flight = InFlightLimit::new(100, 100, None);
    let run = RunState::new(vec!["a".into(), "b".into()], tracker, in_flight);
    run.tracker().start(HostId(1), 1);
    let (pending_states, metrics) = (vec![Arc::default()], Arc::default());
    let (journal, written) = (journal.clone(), vec![None, Some(0)]);
    Checkpointer { journal, written, run, pending_states, metrics, interval, max_events: 2 }
}

/// An event of the second host, delivered, with its acknowledgement.
fn event(checkpointer: &Checkpointer<Arc<TestJournal>>, seq: u64) -> Ack {
    let ticket = checkpointer.run.tracker().track(HostId(1), Some(seq));
    assert!(checkpointer.run.in_flight.try_acquire(0));
    let batch = Batch::open(&checkpointer.run, [ticket].into(), 0, [7].into());
    checkpointer.pending_states[0].add(batch.clone());
    let ack = batch.ack(Some(0));
    batch.close(vec![(7, "did:x:y".into(), AccountState::UNKNOWN)]);
    ack
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn only_acknowledged_and_changed_values_are_written() {
    let journal = Arc::default();
    let mut checkpointer = checkpointer(&journal, LONG);
    let (first, second) = (event(&checkpointer, 8), event(&checkpointer, 9));
    checkpointer.write().unwrap();
    first.done();
    checkpointer.write().unwrap();
    checkpointer.write().unwrap();
    second.done();
    checkpointer.write().unwrap();
    let expected = |cursor| (vec![("b".to_owned(), cursor)], 1);
    let checked = (Vec::new(), 0);
    let expected = [checked.clone(), expected(8), checked, expected(9)];
    assert_eq!(*journal.checkpoints.lock().unwrap(), expected);
}

#[test]
fn a_checkpoint_is_written_after_enough_acknowledgements_and_at_the_end() {
    let journal = Arc::default();
    let checkpointer = checkpointer(&journal, LONG);
    let run = checkpointer.run.clone();
    let acks: Vec<Ack> = (1..=3).map(|seq| event(&checkpointer, seq)).collect();
    acks.into_iter().for_each(Ack::done);
    let thread = std::thread::spawn(move || checkpointer.run());
    while journal.checkpoints.lock().unwrap().is_empty() {
        run.checkpoint.acked(run.acked());
        std::thread::yield_now();
    }
    run.checkpoint.request_final();
    thread.join().unwrap();
    let at_the_end = (Vec::new(), 0);
    let expected = [(vec![("b".to_owned(), 3)], 1), at_the_end];
    assert_eq!(*journal.checkpoints.lock().unwrap(), expected);
}

#[test]
fn fewer_acknowledgements_since_the_last_checkpoint_wait_for_the_interval() {
    let mut checkpointer = checkpointer(&Arc::default(), LONG);
    assert!(checkpointer.step(Duration::ZERO));
    event(&checkpointer, 8).done();
    let (started, interval) = (Instant::now(), Duration::from_millis(20));
    assert!(checkpointer.step(interval) && started.elapsed() >= interval);
}

#[test]
fn a_full_journal_fails_the_run() {
    let journal = Arc::new(TestJournal { is_full: true, ..TestJournal::default() });
    let checkpointer = checkpointer(&journal, Duration::ZERO);
    let run = checkpointer.run.clone();
    event(&checkpointer, 8).done();
    checkpointer.run();
    assert!(matches!(run.failure.take(), Some(RunError::Journal(_))));
}

/// Batches of events of accounts named by their hashes; `is_active` tells two states apart.
struct PendingBench {
    run: Arc<RunState>,
    pending_states: PendingStates,
}

impl PendingBench {
    fn new() -> Self {
        let in_flight = InFlightLimit::new(100, 100, None);
        let run = RunState::new(vec![], AckTracker::new([None]), in_flight);
        Self { run, pending_states: PendingStates::default() }
    }

    /// A delivered batch with an event of every account, and the acknowledgements.
    fn batch(&self, accounts: &[u64], is_active: bool) -> Vec<Ack> {
        let track = |_| self.run.tracker().track(HostId(0), Some(1));
        let tickets = accounts.iter().map(track).collect();
        accounts.iter().for_each(|_| assert!(self.run.in_flight.try_acquire(0)));
        let batch = Batch::open(&self.run, tickets, 0, accounts.into());
        let acks = (0..accounts.len()).map(|at| batch.ack(Some(at))).collect();
        let known = AccountState { is_active, ..AccountState::UNKNOWN };
        let state = |account: &u64| (*account, account.to_string().into(), known);
        batch.close(accounts.iter().map(state).collect());
        self.pending_states.add(batch);
        acks
    }

    fn take(&self) -> Vec<(String, bool)> {
        let taken = self.pending_states.take().into_iter();
        let mut taken: Vec<_> = taken.map(|(did, state)| (did.into(), state.is_active)).collect();
        taken.sort();
        taken
    }

    fn entries(&self) -> usize {
        self.pending_states.lock().entries.len()
    }
}

fn done(acks: Vec<Ack>) {
    acks.into_iter().for_each(Ack::done);
}

fn states(states: &[(&str, bool)]) -> Vec<(String, bool)> {
    states.iter().map(|(did, is_active)| ((*did).to_owned(), *is_active)).collect()
}

#[test]
fn a_state_is_ready_when_its_batch_is_complete_and_only_once() {
    let bench = PendingBench::new();
    let acks = bench.batch(&[1, 2], true);
    assert_eq!(bench.take(), []);
    done(acks);
    assert_eq!(bench.take(), states(&[("1", true), ("2", true)]));
    assert_eq!((bench.take(), bench.entries()), (vec![], 0));
}

#[test]
fn a_state_after_an_open_event_of_the_same_account_waits_and_other_accounts_do_not() {
    let bench = PendingBench::new();
    let first = bench.batch(&[1, 2], true);
    done(bench.batch(&[2, 3], false));
    assert_eq!(bench.take(), states(&[("3", false)]));
    done(bench.batch(&[4], false));
    assert_eq!(bench.take(), states(&[("4", false)]));
    done(first);
    assert_eq!(bench.take(), states(&[("1", true), ("2", false)]));
}

#[test]
fn of_two_ready_states_the_later_is_taken() {
    let bench = PendingBench::new();
    done(bench.batch(&[1], true));
    done(bench.batch(&[1], false));
    assert_eq!(bench.take(), states(&[("1", false)]));
}

#[test]
fn a_state_between_two_open_events_is_ready_when_the_first_is_acknowledged() {
    let bench = PendingBench::new();
    let first = bench.batch(&[1], true);
    done(bench.batch(&[1], false));
    let last = bench.batch(&[1], true);
    assert_eq!(bench.take(), []);
    done(first);
    assert_eq!(bench.take(), states(&[("1", false)]));
    done(last);
    assert_eq!(bench.take(), states(&[("1", true)]));
}

#[test]
fn memory_stays_bounded_behind_one_open_event() {
    let bench = PendingBench::new();
    let _stuck = std::mem::ManuallyDrop::new(bench.batch(&[1], true));
    for round in 0..5_000 {
        done(bench.batch(&[1, 2], round % 2 == 0));
    }
    assert!(bench.entries() <= MAX_UNSORTED, "{}", bench.entries());
    assert_eq!(bench.take(), states(&[("2", false)]));
    assert_eq!(bench.entries(), 2);
}
