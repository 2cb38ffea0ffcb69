//! When is the journal written, and what stands in it?

use std::sync::Arc;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use verify::sync::AccountState;

use super::ack::Books;
use super::counters::Counters;
use super::journal::{Journal, JournalError};
use super::options::Options;
use super::run::RunError;
use super::standings::Standings;

/// Writes a journal from time to time.
#[derive(Debug)]
pub(super) struct Scribe<J> {
    journal: J,
    /// The cursor of each host's stream that is in the journal.
    written: Vec<Option<u64>>,
    books: Arc<Books>,
    /// Of each worker.
    standings: Vec<Arc<Standings>>,
    counters: Arc<Counters>,
    pace: Pace,
}

/// How often a journal is written: when so much time has passed, or so many events were acknowledged.
#[derive(Clone, Copy, Debug)]
struct Pace {
    time: Duration,
    events: usize,
}

impl<J: Journal> Scribe<J> {
    /// A scribe who finds in the journal what is in the books now.
    pub(super) fn new(
        journal: J,
        books: &Arc<Books>,
        standings: Vec<Arc<Standings>>,
        counters: &Arc<Counters>,
        options: &Options,
    ) -> Self {
        let written = books.ledger().cursors().collect();
        let pace = Pace { time: options.checkpoint_every, events: options.checkpoint_events };
        let (books, counters) = (books.clone(), counters.clone());
        Self { journal, written, books, standings, counters, pace }
    }

    /// Writes until the bell says that this is the last time, or the journal fails.
    pub(super) fn run(mut self) {
        loop {
            self.books.bell.set(self.books.settled() + self.pace.events);
            let is_last = self.books.bell.wait(self.pace.time);
            if let Err(error) = self.write() {
                return self.books.fate.seal(RunError::Journal(error));
            }
            if is_last {
                return;
            }
        }
    }

    /// Writes what has changed. The cursors are looked at before the accounts: no cursor is ahead of
    /// an account.
    fn write(&mut self) -> Result<(), JournalError> {
        let cursors: Vec<Option<u64>> = self.books.ledger().cursors().collect();
        let takes = self.standings.iter().flat_map(|standings| standings.take());
        let accounts: Vec<(Box<str>, AccountState)> = takes.collect();
        let streams = self.books.streams.iter().map(String::as_str);
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
        self.counters.journaling.count(began.elapsed());
        self.written = cursors;
        Ok(())
    }
}

/// Calls the scribe.
#[derive(Debug, Default)]
pub(super) struct Bell {
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

impl Bell {
    /// From now on, so many are settled.
    pub(super) fn settle(&self, settled: usize) {
        self.change(|state| state.is_rung |= settled >= state.due);
    }

    /// Rings for the last time.
    pub(super) fn ring_last(&self) {
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
    use super::super::ledger::Ledger;
    use super::super::room::Room;
    use super::*;
    use crate::hosts::HostId;

    /// The cursors of a checkpoint, and how many accounts it had.
    type Line = (Vec<(String, u64)>, usize);

    /// A journal that remembers what it was given, and may be full.
    #[derive(Debug, Default)]
    struct Paper {
        lines: Mutex<Vec<Line>>,
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

    fn scribe(paper: &Arc<Paper>, pace: Pace) -> Scribe<Arc<Paper>> {
        let ledger = Ledger::new([Some(5), None]);
        let books = Books::new(vec!["a".into(), "b".into()], ledger, Room::new(100, 100));
        let (standings, counters) = (vec![Arc::default()], Arc::default());
        let written = vec![Some(5), None];
        Scribe { journal: paper.clone(), written, books, standings, counters, pace }
    }

    /// An event of the second host, closed and with its word.
    fn event(scribe: &Scribe<Arc<Paper>>, seq: u64) -> Ack {
        let ticket = scribe.books.ledger().begin(HostId(1), Some(seq));
        assert!(scribe.books.room.try_take(0));
        let batch = Batch::open(&scribe.books, [ticket].into(), 0, [7].into());
        scribe.standings[0].note(batch.clone());
        let ack = batch.ack(Some(0));
        batch.close(vec![(7, "did:x:y".into(), AccountState::UNKNOWN)]);
        ack
    }

    const SLOW: Pace = Pace { time: Duration::from_secs(3600), events: 2 };

    #[test]
    fn only_what_is_acknowledged_is_written_and_only_what_changed() {
        let paper = Arc::default();
        let mut scribe = scribe(&paper, SLOW);
        let (first, second) = (event(&scribe, 8), event(&scribe, 9));
        scribe.write().unwrap();
        assert_eq!(*paper.lines.lock().unwrap(), []);
        first.done();
        scribe.write().unwrap();
        scribe.write().unwrap();
        second.done();
        scribe.write().unwrap();
        let line = |cursor| (vec![("b".to_owned(), cursor)], 1);
        assert_eq!(*paper.lines.lock().unwrap(), [line(8), line(9)]);
    }

    #[test]
    fn the_scribe_comes_when_enough_is_acknowledged_and_when_it_is_the_last_time() {
        let paper = Arc::default();
        let scribe = scribe(&paper, SLOW);
        let books = scribe.books.clone();
        let acks: Vec<Ack> = (1..=3).map(|seq| event(&scribe, seq)).collect();
        acks.into_iter().for_each(Ack::done);
        let thread = std::thread::spawn(move || scribe.run());
        while paper.lines.lock().unwrap().is_empty() {
            books.bell.settle(books.settled());
            std::thread::yield_now();
        }
        books.bell.ring_last();
        thread.join().unwrap();
        assert_eq!(*paper.lines.lock().unwrap(), [(vec![("b".to_owned(), 3)], 1)]);
    }

    #[test]
    fn a_full_journal_ends_the_run() {
        let paper = Arc::new(Paper { is_full: true, ..Paper::default() });
        let scribe = scribe(&paper, Pace { time: Duration::ZERO, ..SLOW });
        let books = scribe.books.clone();
        event(&scribe, 8).done();
        scribe.run();
        assert!(matches!(books.fate.take(), Some(RunError::Journal(_))));
    }
}
