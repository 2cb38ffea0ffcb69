//! Host selection and backoff: which of several hosts is tried next, and after which delay.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::http::Url;

/// The index of a host in the caller's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub usize);

/// Selects one of several hosts: the current one until it refuses or three attempts in a row have failed,
/// then the next. A host that can never be followed is excluded.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// By host, whether it is excluded.
    excluded: Vec<bool>,
    /// By host, whether it has refused since it was last followed.
    refused: Vec<bool>,
    // current < excluded.len(), and excluded[current] only if all are
    current: usize,
    failures: u32,
}

impl Hosts {
    /// This many hosts, starting with the first.
    ///
    /// # Panics
    /// If `count` is 0.
    pub fn new(count: usize) -> Self {
        assert!(count > 0, "at least one host");
        let flags = vec![false; count];
        Self { excluded: flags.clone(), refused: flags, current: 0, failures: 0 }
    }

    /// The current host.
    pub fn current(&self) -> HostId {
        HostId(self.current)
    }

    /// The number of failed attempts in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Records that an attempt brought something new.
    pub fn record_success(&mut self) {
        self.failures = 0;
        self.refused[self.current] = false;
    }

    /// Records a failed attempt. Returns the next host if this was the last attempt and there is another
    /// host.
    pub fn record_failure(&mut self) -> Option<HostId> {
        self.failures += 1;
        if self.failures < MAX_FAILURES { None } else { self.advance() }
    }

    /// Records that the current host refused. Returns the next host that has not, if there is one; if all
    /// have, all may be tried again.
    pub fn refuse(&mut self) -> Option<HostId> {
        self.refused[self.current] = true;
        let next = self.next_where(|hosts, at| !hosts.refused[at]);
        if next.is_none() {
            self.refused.fill(false);
        }
        self.switch_to(next)
    }

    /// Excludes the current host. Returns the next one, if there is one.
    pub fn exclude(&mut self) -> Option<HostId> {
        self.excluded[self.current] = true;
        self.advance()
    }

    /// Switches to the next host, if there is one.
    pub fn advance(&mut self) -> Option<HostId> {
        self.switch_to(self.next_where(|_, _| true))
    }

    fn next_where(&self, is_eligible: impl Fn(&Self, usize) -> bool) -> Option<usize> {
        let count = self.excluded.len();
        let others = (1..count).map(|step| (self.current + step) % count);
        { others }.find(|at| !self.excluded[*at] && is_eligible(self, *at))
    }

    fn switch_to(&mut self, host: Option<usize>) -> Option<HostId> {
        self.current = host?;
        self.failures = 0;
        Some(self.current())
    }
}

/// Parses a host given as a URL or as a bare name, which is reached over TLS.
///
/// # Errors
/// If it is neither.
pub fn parse_host_url(host: &str) -> Result<Url, InvalidHost> {
    let url = if host.contains("://") { host.parse() } else { format!("wss://{host}").parse() };
    let url: Option<Url> = url.ok().filter(Url::has_host);
    url.ok_or_else(|| InvalidHost(host.to_owned()))
}

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a host name nor a URL with a host")]
pub struct InvalidHost(pub String);

/// Failed attempts in a row after which the next host is tried.
pub const MAX_FAILURES: u32 = 3;

/// Exponential backoff with full jitter: every delay is a random fraction of a bound, and the bound
/// doubles. The clients of a server that recovers so do not reconnect all at once.
#[derive(Clone, Debug)]
pub struct Backoff {
    options: BackoffOptions,
    jitter: Jitter,
    /// Delays so far, since the last reset.
    delays: u32,
    /// Delays after refusals so far, since the last accepted connection.
    refusals: u32,
}

/// Delays of a [`Backoff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffOptions {
    /// Bound of the first delay. One second.
    pub initial: Duration,
    /// Maximum bound. One minute.
    pub max: Duration,
    /// How long a connection must have lasted, with traffic, to reset the bound. One minute.
    pub reset_after: Duration,
    /// Maximum delay that a server may request, and maximum bound after refusals, such as 403 or 404 from a
    /// proxy, or 501. 15 minutes.
    pub max_requested: Duration,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        let (initial, max_requested) = (Duration::from_secs(1), 15 * minute);
        Self { initial, max: minute, reset_after: minute, max_requested }
    }
}

impl BackoffOptions {
    /// The bound after this many doublings.
    pub fn bound(&self, doublings: u32) -> Duration {
        self.doubled(doublings).min(self.max)
    }

    fn doubled(&self, doublings: u32) -> Duration {
        self.initial.saturating_mul(2_u32.saturating_pow(doublings))
    }
}

impl Backoff {
    /// Starts with the initial bound.
    pub fn new(options: BackoffOptions, jitter: Jitter) -> Self {
        Self { options, jitter, delays: 0, refusals: 0 }
    }

    /// The next delay, and at least `requested`, the delay that a server requested.
    pub fn next_delay(&mut self, requested: Duration) -> Duration {
        let bound = self.options.bound(self.delays);
        self.delays = self.delays.saturating_add(1);
        self.within(bound, requested)
    }

    /// The next delay after a refusal, whose bound grows by itself.
    pub fn next_delay_after_refusal(&mut self, requested: Duration) -> Duration {
        let bound = self.options.doubled(self.refusals).min(self.options.max_requested);
        self.refusals = self.refusals.saturating_add(1);
        self.within(bound, requested)
    }

    /// A random fraction of the bound, or the requested delay if that is longer.
    fn within(&mut self, bound: Duration, requested: Duration) -> Duration {
        let delay = bound.mul_f64(self.jitter.fraction());
        delay.max(requested.min(self.options.max_requested))
    }

    /// Records that a host accepted the connection, which resets the bound after refusals.
    pub fn connection_accepted(&mut self) {
        self.refusals = 0;
    }

    /// Records how long a connection lasted; long ones reset the bound.
    pub fn connection_ended(&mut self, lasted: Duration) {
        if lasted >= self.options.reset_after {
            self.delays = 0;
        }
    }

    /// Whether a requested delay is so long that another host is tried instead, if there is one.
    pub fn exceeds_max(&self, requested: Duration) -> bool {
        requested > self.options.max
    }
}

/// A source of random fractions, which need not be secret: a test sets their seed.
#[derive(Clone, Debug)]
pub struct Jitter(u64);

impl Jitter {
    /// The sequence of this seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A sequence seeded by the system.
    pub fn new() -> Self {
        // Every `RandomState` has its own keys, seeded by the system.
        Self(RandomState::new().hash_one(0))
    }

    /// A number from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        // SplitMix64; 53 bits fit a double exactly.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Default for Jitter {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_three_attempts_in_a_row() {
        let mut hosts = Hosts::new(3);
        assert_eq!([hosts.record_failure(), hosts.record_failure()], [None, None]);
        hosts.record_success();
        assert_eq!(
            [hosts.record_failure(), hosts.record_failure(), hosts.record_failure()],
            [None, None, Some(HostId(1))]
        );
        assert_eq!(
            [hosts.record_failure(), hosts.record_failure(), hosts.record_failure()],
            [None, None, Some(HostId(2))]
        );
        assert_eq!(
            [hosts.record_failure(), hosts.record_failure(), hosts.record_failure()],
            [None, None, Some(HostId(0))]
        );
    }

    #[test]
    fn a_single_host_is_retried_for_ever() {
        let mut hosts = Hosts::new(1);
        assert!((0..10).all(|_| hosts.record_failure().is_none()));
        assert_eq!((hosts.current(), hosts.failures()), (HostId(0), 10));
    }

    #[test]
    fn a_host_that_is_left_out_is_not_come_back_to() {
        let mut hosts = Hosts::new(3);
        assert_eq!(hosts.exclude(), Some(HostId(1)));
        assert_eq!(hosts.advance(), Some(HostId(2)));
        assert_eq!(hosts.advance(), Some(HostId(1)));
        assert_eq!(hosts.exclude(), Some(HostId(2)));
        assert_eq!(hosts.exclude(), None);
    }

    #[test]
    fn a_host_that_refused_is_tried_again_after_all_others_have_refused() {
        let mut hosts = Hosts::new(3);
        assert_eq!([hosts.refuse(), hosts.refuse()], [Some(HostId(1)), Some(HostId(2))]);
        assert_eq!(hosts.refuse(), None);
        assert_eq!([hosts.advance(), hosts.refuse()], [Some(HostId(0)), Some(HostId(1))]);
        hosts.record_success();
        assert_eq!([hosts.refuse(), hosts.refuse()], [Some(HostId(2)), None]);
        assert_eq!(Hosts::new(1).refuse(), None);
    }

    #[test]
    fn hosts_are_names_or_urls() {
        let text = |host| parse_host_url(host).map(|url| url.to_string());
        assert_eq!(text("bsky.network").unwrap(), "wss://bsky.network/");
        assert_eq!(text("localhost:2470").unwrap(), "wss://localhost:2470/");
        assert_eq!(text("http://localhost:2470").unwrap(), "http://localhost:2470/");
        assert!(["", "a b", "://", "data://"].into_iter().all(|host| text(host).is_err()));
    }

    fn backoff(seed: u64) -> Backoff {
        Backoff::new(BackoffOptions::default(), Jitter::seeded(seed))
    }

    #[test]
    fn the_bound_doubles_from_one_second_to_a_minute() {
        let mut backoff = backoff(7);
        for bound in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(backoff.options.bound(backoff.delays), Duration::from_secs(bound));
            assert!(backoff.next_delay(Duration::ZERO) <= Duration::from_secs(bound));
        }
        backoff.connection_ended(Duration::from_secs(59));
        assert_eq!(backoff.options.bound(backoff.delays), Duration::from_secs(60));
        backoff.connection_ended(Duration::from_secs(60));
        assert_eq!(backoff.options.bound(backoff.delays), Duration::from_secs(1));
    }

    #[test]
    fn the_bound_after_refusals_doubles_to_15_minutes_until_a_connection_is_accepted() {
        let mut backoff = backoff(7);
        let mut longest = |count| {
            let delays = (0..count).map(|_| backoff.next_delay_after_refusal(Duration::ZERO));
            let longest = delays.max().unwrap_or_default();
            backoff.connection_accepted();
            longest
        };
        assert!(longest(1) <= Duration::from_secs(1));
        let minutes = longest(200).as_secs_f64() / 60.0;
        assert!((10.0..=15.0).contains(&minutes), "{minutes}");
        assert!(longest(1) <= Duration::from_secs(1));
    }

    #[test]
    fn delays_are_spread_over_the_whole_bound() {
        let wait = |seed| backoff(seed).next_delay(Duration::ZERO).as_millis();
        let mut tenths = [0; 10];
        (0..10_000).for_each(|seed| tenths[wait(seed) as usize / 100] += 1);
        assert!(tenths.iter().all(|count| (900..1_100).contains(count)), "{tenths:?}");
    }

    #[test]
    fn a_requested_delay_is_honoured_up_to_a_maximum() {
        let mut backoff = backoff(7);
        assert_eq!(backoff.next_delay(Duration::from_secs(90)), Duration::from_secs(90));
        assert_eq!(backoff.next_delay(Duration::MAX), Duration::from_secs(900));
    }

    #[test]
    fn two_unseeded_sequences_differ() {
        assert_ne!(Jitter::new().fraction(), Jitter::new().fraction());
    }
}
