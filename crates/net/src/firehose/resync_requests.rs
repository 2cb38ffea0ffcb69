//! Requests for resyncs by the program that runs a firehose.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::queue::{AccountHasher, Inbox, WorkerMessage, worker_of};

/// Requests resyncs of accounts, before and during a run. Clones share it.
///
/// A program that wants the history of accounts announces all of them, and requests them one after the other: as fast as
/// they are done ([`Handler::resynced`](super::Handler::resynced)), as a request takes memory until then. An account
/// whose event comes before its request is resynced at that event.
#[derive(Clone, Default)]
pub struct ResyncRequests(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    run: Option<(Arc<[Inbox]>, AccountHasher)>,
    /// The requests before the run.
    early: VecDeque<(Box<str>, bool)>,
}

impl ResyncRequests {
    /// Announces that an account will be resynced: its next event waits for its repository, and starts the resync. This
    /// takes 8 bytes until then.
    pub fn announce(&self, did: &str) {
        self.send(did.into(), false);
    }

    /// Resyncs an account. Its events wait for the repository, within the limits.
    pub fn request(&self, did: &str) {
        self.send(did.into(), true);
    }

    /// Sends all requests to the workers of a run.
    pub(super) fn attach(&self, inboxes: Arc<[Inbox]>, hasher: AccountHasher) {
        let mut state = self.lock();
        state.run = Some((inboxes, hasher));
        let early = std::mem::take(&mut state.early);
        drop(state);
        early.into_iter().for_each(|(did, is_due)| self.send(did, is_due));
    }

    fn send(&self, did: Box<str>, is_due: bool) {
        let mut state = self.lock();
        let Some((inboxes, hasher)) = &state.run else {
            return state.early.push_back((did, is_due));
        };
        let account = hasher.hash(Some(&did));
        let message = if is_due {
            WorkerMessage::Desynchronized(account, did)
        } else {
            WorkerMessage::ResyncAnnounced(account)
        };
        inboxes[worker_of(account, inboxes.len())].send(message);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ResyncRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResyncRequests").finish_non_exhaustive()
    }
}
