//! Which accounts may be journaled as they are known? Those of which every event that was handed over
//! until then is acknowledged.
//!
//! If more were journaled, then after a crash an event that nobody has handled would come again and be
//! taken for an old one. So each worker notes its batches in their order. What an open batch says of
//! its accounts waits, and so does what later ones say of the same accounts.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use verify::sync::AccountState;

use super::ack::Batch;

/// What is known of one worker's accounts, and may be journaled or has to wait.
#[derive(Debug, Default)]
pub(super) struct PendingStates(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The oldest first.
    // No two `Late` in a row; what is late waits for a batch before it.
    entries: VecDeque<Entry>,
    ready: HashMap<Box<str>, AccountState>,
}

#[derive(Debug)]
enum Entry {
    /// Not all of these events were acknowledged when last looked at.
    Open(Arc<Batch>),
    /// What settled batches say of accounts, by number, that an open batch has events of.
    Late(HashMap<u64, (Box<str>, AccountState)>),
}

impl PendingStates {
    /// Notes the next batch.
    pub(super) fn note(&self, batch: Arc<Batch>) {
        let mut inner = self.lock();
        inner.entries.push_back(Entry::Open(batch));
        if inner.entries.len().is_multiple_of(MOST_UNSORTED) {
            inner.sort();
        }
    }

    /// What may be journaled and has not been taken yet.
    pub(super) fn take(&self) -> HashMap<Box<str>, AccountState> {
        let mut inner = self.lock();
        inner.sort();
        std::mem::take(&mut inner.ready)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Moves what no longer waits to what is ready.
    fn sort(&mut self) {
        let mut open = HashSet::new();
        for entry in std::mem::take(&mut self.entries) {
            match entry {
                Entry::Open(batch) if !batch.is_settled() => {
                    open.extend(batch.accounts());
                    self.entries.push_back(Entry::Open(batch));
                }
                Entry::Open(batch) => self.place(batch.take_states(), &open),
                Entry::Late(late) => {
                    let states =
                        late.into_iter().map(|(number, (did, known))| (number, did, known));
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
        for (number, did, account) in states {
            match open.contains(&number) {
                false => drop(self.ready.insert(did, account)),
                true => drop(self.late().insert(number, (did, account))),
            }
        }
    }

    /// What is late at the end of the entries.
    fn late(&mut self) -> &mut HashMap<u64, (Box<str>, AccountState)> {
        if !matches!(self.entries.back(), Some(Entry::Late(_))) {
            self.entries.push_back(Entry::Late(HashMap::new()));
        }
        match self.entries.back_mut() {
            Some(Entry::Late(late)) => late,
            _ => unreachable!("the lines above put it there"),
        }
    }
}

/// Batches are sorted at least once in so many, whenever somebody takes.
const MOST_UNSORTED: usize = 256;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::ack::{Ack, RunState};
    use super::super::acks::AckTracker;
    use super::super::room::InFlightLimit;
    use super::*;
    use crate::hosts::HostId;

    /// Batches of events of accounts that are called by their numbers; a state says by `is_active`
    /// which of two it is.
    struct Bench {
        run_state: Arc<RunState>,
        pending_states: PendingStates,
    }

    impl Bench {
        fn new() -> Self {
            let run_state =
                RunState::new(vec![], AckTracker::new([None]), InFlightLimit::new(100, 100));
            Self { run_state, pending_states: PendingStates::default() }
        }

        /// A batch with an event of each account, and the words for them.
        fn batch(&self, accounts: &[u64], is_active: bool) -> Vec<Ack> {
            let begin = |_| self.run_state.acks().begin(HostId(0), Some(1));
            let tickets = accounts.iter().map(begin).collect();
            accounts.iter().for_each(|_| assert!(self.run_state.in_flight.try_acquire(0)));
            let batch = Batch::open(&self.run_state, tickets, 0, accounts.into());
            let acks = (0..accounts.len()).map(|at| batch.ack(Some(at))).collect();
            let account = AccountState { is_active, ..AccountState::UNKNOWN };
            let state = |number: &u64| (*number, number.to_string().into(), account);
            batch.close(accounts.iter().map(state).collect());
            self.pending_states.note(batch);
            acks
        }

        fn taken(&self) -> Vec<(String, bool)> {
            let taken = self.pending_states.take().into_iter();
            let mut taken: Vec<_> =
                taken.map(|(did, account)| (did.into(), account.is_active)).collect();
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

    fn said(words: &[(&str, bool)]) -> Vec<(String, bool)> {
        words.iter().map(|(did, is_active)| ((*did).to_owned(), *is_active)).collect()
    }

    #[test]
    fn an_account_is_ready_when_its_batch_is_settled_and_only_once() {
        let bench = Bench::new();
        let acks = bench.batch(&[1, 2], true);
        assert_eq!(bench.taken(), []);
        done(acks);
        assert_eq!(bench.taken(), said(&[("1", true), ("2", true)]));
        assert_eq!((bench.taken(), bench.entries()), (vec![], 0));
    }

    #[test]
    fn what_follows_an_open_event_of_the_same_account_waits_and_other_accounts_do_not() {
        let bench = Bench::new();
        let first = bench.batch(&[1, 2], true);
        done(bench.batch(&[2, 3], false));
        assert_eq!(bench.taken(), said(&[("3", false)]));
        done(bench.batch(&[4], false));
        assert_eq!(bench.taken(), said(&[("4", false)]));
        done(first);
        assert_eq!(bench.taken(), said(&[("1", true), ("2", false)]));
    }

    #[test]
    fn of_two_settled_states_the_later_is_taken() {
        let bench = Bench::new();
        done(bench.batch(&[1], true));
        done(bench.batch(&[1], false));
        assert_eq!(bench.taken(), said(&[("1", false)]));
    }

    #[test]
    fn a_state_between_two_open_events_is_taken_when_the_first_is_done() {
        let bench = Bench::new();
        let first = bench.batch(&[1], true);
        done(bench.batch(&[1], false));
        let last = bench.batch(&[1], true);
        assert_eq!(bench.taken(), []);
        done(first);
        assert_eq!(bench.taken(), said(&[("1", false)]));
        done(last);
        assert_eq!(bench.taken(), said(&[("1", true)]));
    }

    #[test]
    fn one_open_event_does_not_gather_all_that_comes_after_it() {
        let bench = Bench::new();
        let _stuck = std::mem::ManuallyDrop::new(bench.batch(&[1], true));
        for round in 0..5_000 {
            done(bench.batch(&[1, 2], round % 2 == 0));
        }
        assert!(bench.entries() <= MOST_UNSORTED, "{}", bench.entries());
        assert_eq!(bench.taken(), said(&[("2", false)]));
        assert_eq!(bench.entries(), 2);
    }
}
