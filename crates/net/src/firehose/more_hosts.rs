//! Hosts that are added to a run.

use std::num::NonZero;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::http::Url;

/// Adds hosts to a run, before and during it; all of them are followed at the same time. Clones share it, and a later run
/// follows all hosts that were added.
#[derive(Clone, Debug)]
pub struct MoreHosts(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    max_events_per_s: NonZero<u32>,
    is_complete: AtomicBool,
    hosts: Mutex<Vec<AddedHost>>,
    added: Notify,
}

/// A host that was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedHost {
    /// The host. The path of the method is added unless the URL has one.
    pub url: Url,
    /// The role of the host.
    pub role: HostRole,
}

/// The role of a host: about which accounts its unsigned events are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRole {
    /// `#account` and `#identity`, which nobody signs, about any account.
    Relay,
    /// These events about accounts whose DID documents name it as their server; about others they are rejected.
    Pds,
}

impl MoreHosts {
    /// No hosts. Up to `max_events_per_s` events a second are read from each; a host that has more waits.
    pub fn new(max_events_per_s: NonZero<u32>) -> Self {
        let (is_complete, hosts, added) = Default::default();
        Self(Arc::new(Shared { max_events_per_s, is_complete, hosts, added }))
    }

    /// Adds a host. The caller limits their number: every host has a connection and its buffers.
    pub fn add(&self, host: AddedHost) {
        self.hosts().push(host);
        self.0.added.notify_one();
    }

    /// Ends the additions: the run fails once no host is left.
    pub fn complete(&self) {
        self.0.is_complete.store(true, Release);
    }

    /// Whether there will be no hosts after this many.
    pub(super) fn is_complete(&self, count: usize) -> bool {
        self.0.is_complete.load(Acquire) && self.hosts().len() <= count
    }

    /// Maximum number of events a second from each host.
    pub(super) fn max_events_per_s(&self) -> NonZero<u32> {
        self.0.max_events_per_s
    }

    /// Waits for the host after this many. Cancel-safe. One task may wait at a time.
    pub(super) async fn after(&self, count: usize) -> AddedHost {
        loop {
            if let Some(host) = self.hosts().get(count) {
                return host.clone();
            }
            self.0.added.notified().await;
        }
    }

    fn hosts(&self) -> MutexGuard<'_, Vec<AddedHost>> {
        self.0.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
