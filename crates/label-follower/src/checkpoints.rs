//! The cursors of labelers: stored once the lines before them are taken by the reader, or stored in the outbox.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use follower::Acknowledge;
use net::cursors::stream_name;
use program::failure::Failure;
use store::{Options, Store, StoreError};
use verify::sync::AccountState;

use crate::labeler::Labeler;

/// The cursors of all labelers.
pub(crate) struct Checkpoints {
    /// `None` where nothing is stored.
    store: Option<Store>,
    /// The names of the streams.
    streams: Vec<String>,
    state: Mutex<State>,
}

struct State {
    labelers: Vec<Cursor>,
    stored: Vec<Option<u64>>,
    stored_at: Instant,
}

/// The cursor of a labeler.
struct Cursor {
    resume: Option<u64>,
    /// Lines that are not taken, and taken ones after them, with their cursors; in order.
    in_flight: VecDeque<(Option<u64>, bool)>,
    /// Number of entries that have left `in_flight`.
    left: u64,
}

/// Lines that are not yet taken.
pub(crate) struct Progress {
    labeler: usize,
    ticket: u64,
    checkpoints: Arc<Checkpoints>,
}

impl Checkpoints {
    /// Loads the cursors.
    pub(crate) fn open(folder: Option<&Path>, labelers: &[Labeler]) -> Result<Self, Failure> {
        let store = match folder {
            Some(folder) => Some(Store::open(&folder.join("state.sqlite"), Options::default())?),
            None => None,
        };
        let streams: Vec<String> = labelers.iter().map(stream).collect();
        let load = |stream: &String| match &store {
            Some(store) => store.cursor(stream),
            None => Ok(None),
        };
        let stored: Vec<_> = streams.iter().map(load).collect::<Result<_, StoreError>>()?;
        let cursor =
            |resume: &Option<u64>| Cursor { resume: *resume, in_flight: VecDeque::new(), left: 0 };
        let labelers = stored.iter().map(cursor).collect();
        let state = State { labelers, stored, stored_at: Instant::now() };
        Ok(Self { store, streams, state: Mutex::new(state) })
    }

    /// The cursor of a labeler.
    pub(crate) fn resume(&self, labeler: usize) -> Option<u64> {
        self.lock().labelers[labeler].resume
    }

    /// Registers lines, after which the labeler is followed up to `seq`, if they have a cursor.
    pub(crate) fn start(self: &Arc<Self>, labeler: usize, seq: Option<u64>) -> Progress {
        let mut state = self.lock();
        let cursor = &mut state.labelers[labeler];
        cursor.in_flight.push_back((seq, false));
        let ticket = cursor.left + cursor.in_flight.len() as u64 - 1;
        Progress { labeler, ticket, checkpoints: self.clone() }
    }

    /// Stores the cursors once a second.
    pub(crate) fn store_if_due(&self) -> Result<(), StoreError> {
        let elapsed = self.lock().stored_at.elapsed();
        if elapsed >= STORE_EVERY { self.store() } else { Ok(()) }
    }

    /// Stores the cursors.
    pub(crate) fn store(&self) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut state = self.lock();
        state.stored_at = Instant::now();
        let resumes: Vec<_> = state.labelers.iter().map(|cursor| cursor.resume).collect();
        if state.stored == resumes {
            return Ok(());
        }
        let cursors: Vec<(&String, u64)> = { self.streams.iter().zip(&resumes) }
            .filter_map(|(stream, resume)| Some((stream, (*resume)?)))
            .collect();
        store.checkpoint(&cursors, &NO_ACCOUNTS)?;
        state.stored = resumes;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Acknowledge for Progress {
    fn done(self) {
        let mut state = self.checkpoints.lock();
        let cursor = &mut state.labelers[self.labeler];
        let at = usize::try_from(self.ticket - cursor.left).expect("a ticket leaves once");
        cursor.in_flight[at].1 = true;
        while let Some((seq, true)) = cursor.in_flight.front() {
            cursor.resume = seq.or(cursor.resume);
            cursor.in_flight.pop_front();
            cursor.left += 1;
        }
    }
}

/// The name of a stream: numbers of another service, or of another labeler there, are not related.
fn stream(labeler: &Labeler) -> String {
    let url = stream_name(&labeler.method("com.atproto.label.subscribeLabels"));
    format!("{url}#{}", labeler.did)
}

const STORE_EVERY: Duration = Duration::from_secs(1);

const NO_ACCOUNTS: [(&str, AccountState); 0] = [];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_stops_before_the_oldest_line_that_is_not_taken() {
        let labeler = Labeler {
            did: "did:web:l.test".parse().unwrap(),
            host: "https://l.test".parse().unwrap(),
        };
        let dir = tempfile::tempdir().unwrap();
        let open = || Arc::new(Checkpoints::open(Some(dir.path()), std::slice::from_ref(&labeler)));
        let checkpoints = Arc::new(Arc::into_inner(open()).unwrap().unwrap());
        let [first, second, third, fourth] =
            [5, 6, 9, 2].map(|seq| checkpoints.start(0, Some(seq)));
        second.done();
        assert_eq!(checkpoints.resume(0), None);
        first.done();
        assert_eq!(checkpoints.resume(0), Some(6));
        // A service whose numbers begin again.
        fourth.done();
        third.done();
        assert_eq!(checkpoints.resume(0), Some(2));
        checkpoints.store().unwrap();
        drop(checkpoints);
        assert_eq!(Arc::into_inner(open()).unwrap().unwrap().resume(0), Some(2));
    }
}
