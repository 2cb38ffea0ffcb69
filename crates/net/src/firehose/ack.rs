//! Has the handler done with an event?
//!
//! Events are handed over in batches, and a batch is settled when all of its events are acknowledged:
//! then their tickets go back to the acks, and their room to those who wait for it. An event that is
//! never acknowledged so holds back the cursor, but nothing that comes after it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use verify::sync::AccountState;

use super::acks::{AckTracker, Ticket};
use super::checkpoint::CheckpointSignal;
use super::error::FirstError;
use super::room::InFlightLimit;
use super::run::RunError;

/// The handler's word that it has done with an event: the cursor may move past it.
///
/// It may be given later and from any thread. Until then the event is under way, and takes the room
/// that [`FlowLimits`](super::FlowLimits) gives; a handler that gathers events acknowledges them every few
/// thousand, or nothing more will come.
///
/// One that is dropped instead ends the run: an event would be lost in silence.
#[must_use = "an event that is not acknowledged ends the run"]
#[derive(Debug)]
pub struct Ack {
    batch: Arc<Batch>,
    /// Of its ticket. None for what came of itself, and has none.
    at: Option<usize>,
    is_done: bool,
    /// Whether nothing takes its place.
    is_narrowing: bool,
}

impl Ack {
    /// The event is done with.
    pub fn done(mut self) {
        self.is_done = true;
    }

    /// The same word, but nothing takes the event's place when it is given: of the events that may be
    /// under way there is one fewer from then on. Who wants so many events and not one more lets no more
    /// be under way, and keeps the places of those that count.
    pub fn narrowing(mut self) -> Self {
        self.is_narrowing = true;
        self
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        if !self.is_done {
            return self.batch.lose(self.at);
        }
        // What came of itself has no place.
        if self.is_narrowing && self.at.is_some() {
            self.batch.narrowing.fetch_add(1, Ordering::Relaxed);
        }
        self.batch.settle_one();
    }
}

/// The run_state of a run: what is under way, and whether it goes on.
#[derive(Debug)]
pub(super) struct RunState {
    /// The names of the hosts' streams.
    pub(super) streams: Vec<String>,
    acks: Mutex<AckTracker>,
    pub(super) in_flight: InFlightLimit,
    pub(super) error: FirstError,
    /// Events that were acknowledged in all.
    settled: AtomicUsize,
    /// Events that will not be handed over any more.
    left: AtomicUsize,
    /// Calls who writes the journal.
    pub(super) checkpoint_signal: CheckpointSignal,
    /// Rings when a batch is settled.
    pub(super) settling: Notify,
}

impl RunState {
    pub(super) fn new(
        streams: Vec<String>,
        acks: AckTracker,
        in_flight: InFlightLimit,
    ) -> Arc<Self> {
        let (error, checkpoint_signal, settling, settled, left) = Default::default();
        let acks = Mutex::new(acks);
        Arc::new(Self {
            streams,
            acks,
            in_flight,
            error,
            settled,
            left,
            checkpoint_signal,
            settling,
        })
    }

    pub(super) fn acks(&self) -> MutexGuard<'_, AckTracker> {
        self.acks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many events will not be handed over any more.
    pub(super) fn leave(&self, events: usize) {
        self.left.fetch_add(events, Ordering::AcqRel);
    }

    /// How many events are not acknowledged, and may yet be.
    pub(super) fn open(&self) -> usize {
        self.acks().out().saturating_sub(self.left.load(Ordering::Acquire))
    }

    /// How many events have been acknowledged, each with all of its batch.
    pub(super) fn settled(&self) -> usize {
        self.settled.load(Ordering::Acquire)
    }
}

/// Events that were handed over together.
#[derive(Debug)]
pub(super) struct Batch {
    run_state: Arc<RunState>,
    tickets: Box<[Ticket]>,
    bytes: usize,
    /// Whose events they are: by number.
    accounts: Box<[u64]>,
    /// What is known of those of them that changed, since these events.
    states: Mutex<States>,
    /// One for each event, and one for who hands them over.
    open: AtomicUsize,
    /// How many of the events leave no place behind.
    narrowing: AtomicUsize,
}

/// What is known of accounts since some of their events, with their numbers.
pub(super) type States = Vec<(u64, Box<str>, AccountState)>;

impl Batch {
    /// Events with these tickets, of so many bytes together. It is open until [`close`](Self::close).
    pub(super) fn open(
        run_state: &Arc<RunState>,
        tickets: Box<[Ticket]>,
        bytes: usize,
        accounts: Box<[u64]>,
    ) -> Arc<Self> {
        let (open, narrowing) = (AtomicUsize::new(1), AtomicUsize::new(0));
        let (run_state, states) = (run_state.clone(), Mutex::default());
        Arc::new(Self { run_state, tickets, bytes, accounts, states, open, narrowing })
    }

    /// The word for the event whose ticket is the one at `at`.
    pub(super) fn ack(self: &Arc<Self>, at: Option<usize>) -> Ack {
        self.open.fetch_add(1, Ordering::Relaxed);
        Ack { batch: self.clone(), at, is_done: false, is_narrowing: false }
    }

    /// All events are handed over, and this is what is known since.
    pub(super) fn close(&self, states: States) {
        *self.states() = states;
        self.settle_one();
    }

    /// Whether all events are acknowledged.
    pub(super) fn is_settled(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    pub(super) fn accounts(&self) -> &[u64] {
        &self.accounts
    }

    /// What is known of accounts since these events; nothing the second time.
    pub(super) fn take_states(&self) -> States {
        std::mem::take(&mut *self.states())
    }

    fn states(&self) -> MutexGuard<'_, States> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle_one(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        let mut acks = self.run_state.acks();
        self.tickets.iter().for_each(|ticket| acks.done(*ticket));
        drop(acks);
        let count = self.tickets.len();
        let before = self.run_state.settled.fetch_add(count, Ordering::AcqRel);
        self.run_state.in_flight.narrow(self.narrowing.load(Ordering::Relaxed));
        self.run_state.in_flight.release(count, self.bytes);
        self.run_state.checkpoint_signal.settle(before + count);
        self.run_state.settling.notify_one();
    }

    /// An event was dropped. What is open stays open, so that the cursor is never past it.
    #[cold]
    fn lose(&self, at: Option<usize>) {
        let ticket = at.and_then(|at| self.tickets.get(at));
        let stream = ticket.and_then(|ticket| self.run_state.streams.get(ticket.host().0));
        let seq = ticket.and_then(|ticket| self.run_state.acks().seq(*ticket));
        let stream = stream.cloned().unwrap_or_default();
        self.run_state.error.set(RunError::Unacknowledged { stream, seq });
        self.run_state.settling.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::HostId;

    fn run_state() -> Arc<RunState> {
        RunState::new(
            vec!["a".to_owned()],
            AckTracker::new([Some(10)]),
            InFlightLimit::new(100, 1_000),
        )
    }

    fn batch(run_state: &Arc<RunState>, seqs: &[u64]) -> Arc<Batch> {
        let begin = |seq: &u64| run_state.acks().begin(HostId(0), Some(*seq));
        let tickets = seqs.iter().map(begin).collect();
        seqs.iter().for_each(|_| assert!(run_state.in_flight.try_acquire(1)));
        Batch::open(run_state, tickets, seqs.len(), Box::default())
    }

    fn cursor(run_state: &RunState) -> Option<u64> {
        run_state.acks().cursors().next().unwrap()
    }

    #[test]
    fn a_batch_is_settled_when_the_last_of_its_events_is() {
        let run_state = run_state();
        let batch = batch(&run_state, &[11, 12, 13]);
        let acks: Vec<Ack> = (0..3).map(|at| batch.ack(Some(at))).collect();
        batch.close(vec![]);
        for ack in acks.into_iter().rev() {
            assert_eq!((cursor(&run_state), run_state.in_flight.events()), (Some(10), 3));
            assert!(!batch.is_settled());
            ack.done();
        }
        assert_eq!((cursor(&run_state), run_state.in_flight.events()), (Some(13), 0));
        assert!(batch.is_settled() && run_state.settled() == 3);
    }

    #[test]
    fn a_batch_that_is_still_being_handed_over_is_open_whatever_is_acknowledged() {
        let run_state = run_state();
        let batch = batch(&run_state, &[11, 12]);
        batch.ack(Some(0)).done();
        assert!(!batch.is_settled());
        batch.ack(Some(1)).done();
        batch.close(vec![]);
        assert_eq!(cursor(&run_state), Some(12));
    }

    #[test]
    fn an_acknowledgement_may_come_from_another_thread() {
        let run_state = run_state();
        let batch = batch(&run_state, &[11]);
        let ack = batch.ack(Some(0));
        batch.close(vec![]);
        std::thread::spawn(move || ack.done()).join().unwrap();
        assert_eq!(cursor(&run_state), Some(11));
    }

    #[test]
    fn one_that_is_narrowing_leaves_no_place_behind() {
        let run_state = RunState::new(
            vec!["a".to_owned()],
            AckTracker::new([None]),
            InFlightLimit::new(3, 1_000),
        );
        let batch = batch(&run_state, &[11, 12, 13]);
        let acks: Vec<Ack> = (0..3).map(|at| batch.ack(Some(at))).collect();
        // What came of itself never had one.
        batch.ack(None).narrowing().done();
        batch.close(vec![]);
        for (number, ack) in acks.into_iter().enumerate() {
            if number > 0 { ack.narrowing().done() } else { ack.done() }
        }
        assert_eq!((cursor(&run_state), run_state.in_flight.events()), (Some(13), 0));
        assert!(
            run_state.in_flight.try_acquire(1) && !run_state.in_flight.try_acquire(1),
            "there is one place"
        );
    }

    #[test]
    fn one_that_is_dropped_seals_the_run_and_the_cursor_stays() {
        let run_state = run_state();
        let batch = batch(&run_state, &[11, 12]);
        let (lost, other) = (batch.ack(Some(1)), batch.ack(Some(0)));
        batch.close(vec![]);
        drop(lost);
        other.done();
        assert_eq!(cursor(&run_state), Some(10));
        let reason = run_state.error.take().unwrap();
        let RunError::Unacknowledged { stream, seq } = reason else { panic!("{reason}") };
        assert_eq!((&*stream, seq), ("a", Some(12)));
    }
}
