//! What does the caller want of a run?

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use atproto::event;
use verify::sync::Policy;

use super::feed::Options as FeedOptions;
use super::keys::KeyProvider;
use super::resync::ResyncOptions;
use crate::http::Url;

/// How a stream is followed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who is followed: one of these, and another one if that fails.
    pub hosts: Vec<Url>,
    /// How.
    pub feed: FeedOptions,
    /// How many threads judge and hand over. One a core.
    pub workers: usize,
    /// What is asked of events.
    pub verify: Verification,
    /// How repositories are fetched anew that are out of step; without, they stay so. It needs
    /// [`Verification::On`].
    pub resync: Option<ResyncOptions>,
    /// How much may be under way.
    pub limits: FlowLimits,
    /// After how much time the journal is written. A second.
    pub checkpoint_interval: Duration,
    /// After how many acknowledged events it is written, if that is sooner. 1,000.
    pub checkpoint_events: usize,
    /// How long a run that is asked to stop waits for keys that are looked for, and then for
    /// acknowledgements. What is not acknowledged by then comes again in the next run. Ten seconds each.
    pub drain_timeout: Duration,
}

impl Options {
    /// The defaults, with these hosts and keys.
    pub fn new(hosts: Vec<Url>, keys: Arc<dyn KeyProvider>) -> Self {
        Self {
            hosts,
            feed: FeedOptions::default(),
            workers: std::thread::available_parallelism().map_or(1, NonZero::get),
            verify: Verification::On { policy: Policy::default(), keys, cache_bytes: 128 << 20 },
            resync: None,
            limits: FlowLimits::default(),
            checkpoint_interval: Duration::from_secs(1),
            checkpoint_events: 1_000,
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// What is asked of events.
#[derive(Clone)]
pub enum Verification {
    /// Everything: [`verify::sync`].
    On {
        /// The judges' policy.
        policy: Policy,
        /// Who has which key.
        keys: Arc<dyn KeyProvider>,
        /// How much memory the caches of keys take, all together. 128 MiB, for 95,000 keys.
        cache_bytes: usize,
    },
    /// Nothing but that they can be read.
    Off {
        /// How they are read.
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

/// How much may be under way: from its coming until it is acknowledged. Where a bound is reached nothing
/// more is read, and the server has to wait; nothing is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Events; one at least. 32,768.
    pub max_events: usize,
    /// Bytes of their frames. 128 MiB.
    pub max_bytes: usize,
    /// Events of one account that wait for its key or its repository. Beyond, they wait no longer and
    /// are handed over as they are: without a key, or out of step. 2,048.
    pub max_account_events: usize,
    /// Bytes of those. 64 MiB.
    pub max_account_bytes: usize,
    /// Events of all accounts that wait for their repositories. 8,192.
    pub max_held_events: usize,
    /// Bytes of those. 64 MiB.
    pub max_held_bytes: usize,
    /// How long an account's events wait for its repository. A minute: they keep the cursor back.
    pub max_hold: Duration,
    /// Events that are judged together. 128.
    pub max_batch: usize,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            max_events: 32 << 10,
            max_bytes: 128 << 20,
            max_account_events: 2 << 10,
            max_account_bytes: 64 << 20,
            max_held_events: 8 << 10,
            max_held_bytes: 64 << 20,
            max_hold: Duration::from_secs(60),
            max_batch: 128,
        }
    }
}
