//! May this account be fetched now? A few times a minute, and after failures less and less.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// What is remembered of accounts that were fetched.
#[derive(Debug, Default)]
pub(super) struct BackoffOptions(HashMap<Box<str>, Past>);

/// What an account may do.
#[derive(Clone, Copy, Debug)]
struct Past {
    /// When it will have all its tries again: each one takes [`REFILL`] to come back.
    full: Instant,
    failures: u32,
    /// When it may try again after its last failure.
    rested: Instant,
}

impl BackoffOptions {
    /// Takes a try, or says how long there is none.
    pub(super) fn take(&mut self, did: &str, now: Instant) -> Result<(), Duration> {
        let past = self.0.get(did).copied().unwrap_or(Past { full: now, failures: 0, rested: now });
        let full = past.full.max(now) + REFILL;
        let free = full.checked_sub(REFILL * TRIES).unwrap_or(now);
        let wait = free.max(past.rested).saturating_duration_since(now);
        if wait > Duration::ZERO {
            return Err(wait);
        }
        self.make_room(now);
        self.0.insert(did.into(), Past { full, ..past });
        Ok(())
    }

    /// The account was mended.
    pub(super) fn succeed(&mut self, did: &str) {
        if let Some(past) = self.0.get_mut(did) {
            past.failures = 0;
        }
    }

    /// The account was given up.
    pub(super) fn fail(&mut self, did: &str, now: Instant) {
        if let Some(past) = self.0.get_mut(did) {
            past.rested = now + FIRST_REST * 2_u32.pow(past.failures.min(MAX_DOUBLINGS));
            past.failures += 1;
        }
    }

    /// Forgets those who may do everything again, if there are many; and all, if there are still.
    fn make_room(&mut self, now: Instant) {
        if self.0.len() < MAX_ACCOUNTS {
            return;
        }
        self.0.retain(|_, past| past.full > now || past.rested > now);
        if self.0.len() >= MAX_ACCOUNTS {
            self.0.clear();
        }
    }
}

/// How many tries there are at once.
const TRIES: u32 = 5;

/// How long it takes until there is another.
const REFILL: Duration = Duration::from_secs(12);

/// How long an account rests that was given up; then twice that, and so on, to about an hour.
const FIRST_REST: Duration = Duration::from_secs(60);
const MAX_DOUBLINGS: u32 = 6;

const MAX_ACCOUNTS: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_tries_are_there_at_once_and_one_more_every_twelve_seconds() {
        let (mut backoff, now) = (BackoffOptions::default(), Instant::now());
        let seconds = |seconds| now + Duration::from_secs(seconds);
        for _ in 0..5 {
            assert_eq!(backoff.take("a", now), Ok(()));
        }
        assert_eq!(backoff.take("a", now), Err(REFILL));
        assert_eq!(backoff.take("b", now), Ok(()));
        assert_eq!(backoff.take("a", seconds(12)), Ok(()));
        assert_eq!(backoff.take("a", seconds(13)), Err(Duration::from_secs(11)));
        for _ in 0..5 {
            assert_eq!(backoff.take("a", seconds(600)), Ok(()));
        }
        assert!(backoff.take("a", seconds(600)).is_err());
    }

    #[test]
    fn an_account_that_fails_rests_twice_as_long_each_time_until_it_is_mended() {
        let (mut backoff, mut now) = (BackoffOptions::default(), Instant::now());
        for seconds in [60, 120, 240, 480, 960, 1920, 3840, 3840] {
            backoff.take("a", now).unwrap();
            backoff.fail("a", now);
            let rest = Duration::from_secs(seconds);
            assert_eq!(backoff.take("a", now), Err(rest));
            now += rest;
        }
        backoff.take("a", now).unwrap();
        backoff.succeed("a");
        backoff.fail("a", now);
        assert_eq!(backoff.take("a", now), Err(FIRST_REST));
    }

    #[test]
    fn the_number_of_remembered_accounts_is_bounded() {
        let (mut backoff, now) = (BackoffOptions::default(), Instant::now());
        for number in 0..2 * MAX_ACCOUNTS {
            backoff.take(&number.to_string(), now).unwrap();
            assert!(backoff.0.len() <= MAX_ACCOUNTS);
        }
    }
}
