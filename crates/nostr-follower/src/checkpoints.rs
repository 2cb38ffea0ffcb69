//! The times up to which relays were followed: stored once the lines before them are taken by the reader, or stored in the
//! outbox.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernels::{hex, sha256};
use nostr::Filter;
use store::{Options, Store, StoreError};
use verify::sync::AccountState;

use crate::options::{NostrFollowOptions, relay_name};
use follower::Acknowledge;
use program::failure::Failure;

/// The checkpoints of all relays.
pub(crate) struct Checkpoints {
    /// `None` where nothing is stored.
    store: Option<Store>,
    /// The names of the relays with their filter.
    streams: Vec<String>,
    state: Mutex<State>,
}

struct State {
    /// In seconds since 1970.
    resumes: Vec<Option<u64>>,
    stored: Vec<Option<u64>>,
    stored_at: Instant,
    /// Number of lines that are not taken.
    in_flight: usize,
}

/// The times up to which relays are followed once some lines are taken.
pub(crate) type Resumes = Vec<(usize, u64)>;

/// Lines that are not yet taken, and their effects.
pub(crate) struct Progress {
    resumes: Resumes,
    checkpoints: Arc<Checkpoints>,
}

impl Checkpoints {
    /// Loads the checkpoints of the relays under this filter.
    pub(crate) fn open(options: &NostrFollowOptions) -> Result<Self, Failure> {
        let (urls, filter) = (&options.relays, &options.filter);
        let store = match &options.checkpoints {
            Some(folder) => Some(Store::open(&folder.join("state.sqlite"), Options::default())?),
            None => None,
        };
        // Another filter asks for other events.
        let filter = Filter { limit: None, ..filter.clone() };
        let digest = sha256::digest(filter.to_json().as_bytes());
        let suffix = hex::encode(&digest[..8]);
        let streams: Vec<_> =
            urls.iter().map(|url| format!("{}#{suffix}", relay_name(url))).collect();
        let load = |stream: &String| match &store {
            Some(store) => store.cursor(stream),
            None => Ok(None),
        };
        let resumes: Vec<_> = streams.iter().map(load).collect::<Result<_, StoreError>>()?;
        let state =
            State { stored: resumes.clone(), resumes, stored_at: Instant::now(), in_flight: 0 };
        Ok(Self { store, streams, state: Mutex::new(state) })
    }

    /// The time up to which a relay was followed, in seconds since 1970.
    pub(crate) fn resume(&self, relay: usize) -> Option<u64> {
        self.lock().resumes[relay]
    }

    /// Registers lines, after which relays are followed up to these times.
    pub(crate) fn start(self: &Arc<Self>, resumes: Resumes) -> Progress {
        self.lock().in_flight += 1;
        Progress { resumes, checkpoints: self.clone() }
    }

    /// Applies times without lines of their own, if no earlier line is in flight.
    pub(crate) fn apply_if_idle(&self, resumes: &mut Resumes) {
        let mut state = self.lock();
        if state.in_flight == 0 {
            state.apply(resumes);
            resumes.clear();
        }
    }

    /// Stores the checkpoints once a second.
    pub(crate) fn store_if_due(&self) -> Result<(), StoreError> {
        let elapsed = self.lock().stored_at.elapsed();
        if elapsed >= STORE_EVERY { self.store() } else { Ok(()) }
    }

    /// Stores the checkpoints.
    pub(crate) fn store(&self) -> Result<(), StoreError> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut state = self.lock();
        state.stored_at = Instant::now();
        if state.stored == state.resumes {
            return Ok(());
        }
        let resumes = state.resumes.clone();
        drop(state);
        let cursors: Vec<(&String, u64)> = { self.streams.iter().zip(&resumes) }
            .filter_map(|(stream, resume)| Some((stream, (*resume)?)))
            .collect();
        store.checkpoint(&cursors, &NO_ACCOUNTS)?;
        self.lock().stored = resumes;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn apply(&mut self, resumes: &Resumes) {
        for (relay, resume) in resumes {
            let known = &mut self.resumes[*relay];
            *known = (*known).max(Some(*resume));
        }
    }
}

impl Acknowledge for Progress {
    fn done(self) {
        let mut state = self.checkpoints.lock();
        state.in_flight -= 1;
        state.apply(&self.resumes);
    }
}

const STORE_EVERY: Duration = Duration::from_secs(1);

const NO_ACCOUNTS: [(&str, AccountState); 0] = [];
