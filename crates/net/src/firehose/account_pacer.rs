//! How often an account is resynced: a token bucket, and an exponential backoff after failures.

use std::time::Duration;

use tokio::time::Instant;

use crate::bounded_map::BoundedMap;
use crate::hosts::BackoffOptions;

/// Limits how often an account is resynced: a token bucket, and an exponential backoff after failures.
#[derive(Debug)]
pub(super) struct AccountPacer(BoundedMap<Box<str>, AccountPace>);

#[derive(Clone, Copy, Debug)]
struct AccountPace {
    /// When the bucket will be full: every start takes [`REFILL_TIME`].
    full_at: Instant,
    failures: u32,
    /// When the backoff after the last failure ends.
    backoff_until: Instant,
}

impl AccountPacer {
    pub(super) fn new() -> Self {
        Self(BoundedMap::new(MAX_PACED_ACCOUNTS))
    }

    /// Takes a token for a resync, or returns how long there is none.
    pub(super) fn start(&mut self, did: &str, now: Instant) -> Result<(), Duration> {
        let (pace, full_at, wait) = self.next_start(did, now);
        if wait > Duration::ZERO {
            return Err(wait);
        }
        self.0.insert(did.into(), AccountPace { full_at, ..pace });
        Ok(())
    }

    /// How long there is no token for a resync.
    pub(super) fn wait(&mut self, did: &str, now: Instant) -> Duration {
        self.next_start(did, now).2
    }

    /// The pace of an account, when its bucket will be full after one more resync, and the wait for that one.
    fn next_start(&mut self, did: &str, now: Instant) -> (AccountPace, Instant, Duration) {
        let new = AccountPace { full_at: now, failures: 0, backoff_until: now };
        let pace = self.0.get_mut(did).copied().unwrap_or(new);
        let full_at = pace.full_at.max(now) + REFILL_TIME;
        let available_at = full_at.checked_sub(REFILL_TIME * MAX_TOKENS).unwrap_or(now);
        let wait = available_at.max(pace.backoff_until).saturating_duration_since(now);
        (pace, full_at, wait)
    }

    pub(super) fn succeeded(&mut self, did: &str) {
        if let Some(pace) = self.0.get_mut(did) {
            pace.failures = 0;
        }
    }

    pub(super) fn failed(&mut self, did: &str, now: Instant) {
        if let Some(pace) = self.0.get_mut(did) {
            pace.backoff_until = now + ACCOUNT_BACKOFF.bound(pace.failures);
            pace.failures += 1;
        }
    }
}

/// Delays after failed resyncs of one account, without jitter.
const ACCOUNT_BACKOFF: BackoffOptions = BackoffOptions {
    initial: Duration::from_secs(60),
    max: Duration::from_secs(3840),
    reset_after: Duration::MAX,
    max_requested: Duration::ZERO,
};

/// Resyncs of one account that may start at once.
const MAX_TOKENS: u32 = 5;

/// Time until one more may start.
const REFILL_TIME: Duration = Duration::from_secs(12);

const MAX_PACED_ACCOUNTS: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_resyncs_may_start_at_once_and_one_more_every_twelve_seconds() {
        let mut pacer = AccountPacer::new();
        let now = Instant::now();
        let seconds = |seconds| now + Duration::from_secs(seconds);
        for _ in 0..5 {
            assert_eq!(pacer.start("a", now), Ok(()));
        }
        assert_eq!(pacer.start("a", now), Err(REFILL_TIME));
        assert_eq!(pacer.start("b", now), Ok(()));
        assert_eq!(pacer.start("a", seconds(12)), Ok(()));
        assert_eq!(pacer.start("a", seconds(13)), Err(Duration::from_secs(11)));
        for _ in 0..5 {
            assert_eq!(pacer.start("a", seconds(600)), Ok(()));
        }
        assert!(pacer.start("a", seconds(600)).is_err());
    }

    #[test]
    fn a_failing_account_backs_off_twice_as_long_each_time_until_it_succeeds() {
        let mut pacer = AccountPacer::new();
        let mut now = Instant::now();
        for seconds in [60, 120, 240, 480, 960, 1920, 3840, 3840] {
            pacer.start("a", now).unwrap();
            pacer.failed("a", now);
            let delay = Duration::from_secs(seconds);
            assert_eq!(pacer.start("a", now), Err(delay));
            now += delay;
        }
        pacer.start("a", now).unwrap();
        pacer.succeeded("a");
        pacer.failed("a", now);
        assert_eq!(pacer.start("a", now), Err(Duration::from_secs(60)));
    }

    #[test]
    fn the_number_of_remembered_accounts_is_bounded() {
        let mut pacer = AccountPacer::new();
        let now = Instant::now();
        for number in 0..2 * MAX_PACED_ACCOUNTS {
            pacer.start(&number.to_string(), now).unwrap();
            assert!(pacer.0.len() <= MAX_PACED_ACCOUNTS);
        }
    }
}
