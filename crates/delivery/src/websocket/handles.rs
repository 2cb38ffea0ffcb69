//! Lookups of handles for the events of a channel: checked both ways, a few at a time, within a time.
//!
//! A handle names a host that a stranger has chosen, which may not answer. So only the account of the event waits, and
//! beyond a number of lookups a handle counts as one that is not verified.

use std::sync::Arc;
use std::time::Duration;

use net::identity::Resolver;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::event::Event;

/// The lookups of a connection.
#[derive(Debug)]
pub(super) struct HandleLookups {
    resolver: Option<Resolver>,
    permits: Arc<Semaphore>,
    running: JoinSet<LookedUpHandle>,
}

/// An event about an account, and the verified handle of that, if it has one.
#[derive(Debug)]
pub(super) struct LookedUpHandle {
    pub(super) event: Event,
    pub(super) handle: Option<String>,
}

impl HandleLookups {
    /// No lookups yet; without a resolver there are none.
    pub(super) fn new(resolver: Option<Resolver>) -> Self {
        let permits = Arc::new(Semaphore::new(MAX_CONCURRENT));
        Self { resolver, permits, running: JoinSet::new() }
    }

    /// Starts the lookup for an event. Whether there is one.
    pub(super) fn start(&mut self, event: &Event) -> bool {
        let Some(resolver) = self.resolver.clone().filter(|_| self.running.len() < MAX_LOOKUPS)
        else {
            return false;
        };
        let (permits, event) = (self.permits.clone(), event.clone());
        self.running.spawn(async move {
            let _permit = permits.acquire_owned().await;
            let lookup = resolver.handle_of(event.account());
            let handle = timeout(MAX_TIME, lookup).await.ok().flatten();
            LookedUpHandle { event, handle: handle.map(|handle| handle.to_string()) }
        });
        true
    }

    /// The next result; waits for ever while there is no lookup.
    pub(super) async fn next(&mut self) -> LookedUpHandle {
        loop {
            match self.running.join_next().await {
                Some(Ok(found)) => return found,
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

/// Number of concurrent lookups of a connection.
const MAX_CONCURRENT: usize = 32;

/// Number of lookups that run or wait.
const MAX_LOOKUPS: usize = 512;

/// Maximum time of a lookup, without its wait for others.
const MAX_TIME: Duration = Duration::from_secs(5);
