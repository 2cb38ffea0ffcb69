//! Options of a run.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use atproto::event;
use verify::sync::Policy;

use super::error::PauseSignal;
use super::feed::FeedOptions;
use super::flow_limits::FlowLimits;
use super::keys::KeyProvider;
use super::more_hosts::MoreHosts;
use super::resync_options::ResyncOptions;
use super::status::StatusProvider;
use crate::http::Url;

/// Options of a run. Start from [`Options::new`] and assign fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The hosts: one is followed at a time, and another one if it fails.
    pub hosts: Vec<Url>,
    /// Hosts that are followed at the same time as one of `hosts`. None.
    pub more_hosts: Option<MoreHosts>,
    /// Options of the feed.
    pub feed: FeedOptions,
    /// Number of worker threads, which verify and deliver. One per core.
    pub workers: usize,
    /// Verification of events.
    pub verify: Verification,
    /// Resync of repositories that missed events; `None` leaves them desynchronized. It requires
    /// [`Verification::On`].
    pub resync: Option<ResyncOptions>,
    /// Where to ask whether an account is active before its commits are ignored: an `#account` event is not
    /// signed. `None` delivers the commits of accounts that the stream calls inactive.
    pub statuses: Option<Arc<dyn StatusProvider>>,
    /// Limits on events in flight.
    pub limits: FlowLimits,
    /// Number of events after which the run ends by itself; events acknowledged by
    /// [`Ack::skip`](super::Ack::skip) do not count. Never more are read than can count. `None` for no limit.
    pub max_events: Option<u64>,
    /// Maximum time between checkpoints. One second.
    pub checkpoint_interval: Duration,
    /// Number of acknowledged events after which a checkpoint is written earlier. 10,000.
    pub checkpoint_events: usize,
    /// Servers other than the hosts, asked before them, whose time is compared with the local one when events come from
    /// the future. None.
    pub clock_servers: Vec<Url>,
    /// Maximum time in which a stopped run ends, whatever blocks it: seven tenths for deliveries and
    /// acknowledgements, the rest for the last checkpoint. Events that are not acknowledged by then are
    /// received again in the next run, and a thread that a handler blocks is left behind. Ten seconds.
    pub stop_timeout: Duration,
    /// Pauses the run. Not set.
    pub pause: PauseSignal,
}

impl Options {
    /// Default options with these hosts and keys.
    pub fn new(hosts: Vec<Url>, keys: Arc<dyn KeyProvider>) -> Self {
        Self {
            hosts,
            more_hosts: None,
            feed: FeedOptions::default(),
            workers: std::thread::available_parallelism().map_or(1, NonZero::get),
            verify: Verification::On { policy: Policy::default(), keys, cache_bytes: 128 << 20 },
            resync: None,
            statuses: None,
            limits: FlowLimits::default(),
            max_events: None,
            checkpoint_interval: Duration::from_secs(1),
            checkpoint_events: 10_000,
            clock_servers: Vec::new(),
            stop_timeout: Duration::from_secs(10),
            pause: PauseSignal::new(),
        }
    }
}

/// Verification of events.
#[derive(Clone)]
pub enum Verification {
    /// Every check of [`verify::sync`].
    On {
        /// The policy.
        policy: Policy,
        /// The keys of accounts.
        keys: Arc<dyn KeyProvider>,
        /// Total size of the key caches in bytes. 128 MiB, for 95,000 keys.
        cache_bytes: usize,
    },
    /// Events are only decoded.
    Off {
        /// Options of the decoder.
        decoding: event::Options,
    },
}

impl std::fmt::Debug for Verification {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::On { policy, .. } => {
                f.debug_struct("On").field("policy", policy).finish_non_exhaustive()
            }
            Self::Off { decoding } => f.debug_struct("Off").field("decoding", decoding).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::FixedKeys;
    use super::*;

    #[test]
    fn the_default_sizes_are_those_that_the_documentation_states() {
        const MIB: usize = 1 << 20;
        let limits = FlowLimits::default();
        assert_eq!((limits.max_bytes, limits.max_queued_bytes), (128 * MIB, 2 * MIB));
        assert_eq!((limits.max_account_bytes, limits.max_held_bytes), (64 * MIB, 64 * MIB));
        assert_eq!(limits.max_host_key_bytes, 32 * MIB);
        assert_eq!(limits.max_directory_key_bytes, 32 * MIB);
        assert_eq!((limits.max_events, limits.max_account_events), (32_768, 2_048));
        assert_eq!((limits.max_host_key_events, limits.max_domain_key_events), (8_192, 2_048));
        assert_eq!((limits.max_held_events, limits.max_batch), (8_192, 128));
        let keys = Arc::new(FixedKeys(|_: &str| None));
        let Verification::On { cache_bytes, .. } = Options::new(vec![], keys).verify else {
            panic!("verification is on by default")
        };
        assert_eq!(cache_bytes, 128 * MIB);
    }
}
