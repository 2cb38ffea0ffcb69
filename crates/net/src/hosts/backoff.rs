//! How long to wait before the next attempt.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Waits with full jitter: each is a random part of a bound, and the bound doubles.
#[derive(Clone, Debug)]
pub struct Backoff {
    backoff: BackoffOptions,
    chance: Jitter,
    bound: Duration,
}

/// How long waits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffOptions {
    /// The initial bound of a wait.
    pub initial: Duration,
    /// The max bound.
    pub max: Duration,
    /// How long a connection has to hold, with traffic, for the bounds to begin anew.
    pub reset_after: Duration,
    /// The max wait that a server may ask for.
    pub max_requested: Duration,
}

impl Default for BackoffOptions {
    /// From a second to a minute, anew after a minute; a server may ask for a quarter of an hour.
    fn default() -> Self {
        let minute = Duration::from_secs(60);
        let (initial, max_requested) = (Duration::from_secs(1), 15 * minute);
        Self { initial, max: minute, reset_after: minute, max_requested }
    }
}

impl Backoff {
    /// Begins with the initial bound.
    pub fn new(backoff: BackoffOptions, chance: Jitter) -> Self {
        Self { backoff, chance, bound: backoff.initial }
    }

    /// The next wait, and `least` at least: what a server asked for.
    pub fn next_delay(&mut self, least: Duration) -> Duration {
        let wait = self.bound.mul_f64(self.chance.fraction());
        self.bound = (self.bound * 2).min(self.backoff.max);
        wait.max(least.min(self.backoff.max_requested))
    }

    /// A connection has ended that held for this time.
    pub fn connection_ended(&mut self, held: Duration) {
        if held >= self.backoff.reset_after {
            self.bound = self.backoff.initial;
        }
    }

    /// Whether a server that asks for this wait is better left to itself while there are others.
    pub fn exceeds_max(&self, asked: Duration) -> bool {
        asked > self.backoff.max
    }
}

/// Random numbers that nobody has to fear: a test gives their seed.
#[derive(Clone, Debug)]
pub struct Jitter(u64);

impl Jitter {
    /// The numbers that follow from `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Numbers that this system's randomness begins.
    pub fn new() -> Self {
        // Every state has keys of its own, drawn from the system.
        Self(RandomState::new().hash_one(0))
    }

    /// A number from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        // SplitMix64; 53 bits are what fits a double exactly.
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

    fn backoff(seed: u64) -> Backoff {
        Backoff::new(BackoffOptions::default(), Jitter::seeded(seed))
    }

    #[test]
    fn the_bound_doubles_from_one_second_to_a_minute() {
        let mut backoff = backoff(7);
        for bound in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(backoff.bound, Duration::from_secs(bound));
            assert!(backoff.next_delay(Duration::ZERO) <= Duration::from_secs(bound));
        }
        backoff.connection_ended(Duration::from_secs(59));
        assert_eq!(backoff.bound, Duration::from_secs(60));
        backoff.connection_ended(Duration::from_secs(60));
        assert_eq!(backoff.bound, Duration::from_secs(1));
    }

    #[test]
    fn waits_are_spread_over_the_whole_bound() {
        let wait = |seed| backoff(seed).next_delay(Duration::ZERO).as_millis();
        let mut tenths = [0; 10];
        (0..10_000).for_each(|seed| tenths[wait(seed) as usize / 100] += 1);
        assert!(tenths.iter().all(|count| (900..1_100).contains(count)), "{tenths:?}");
    }

    #[test]
    fn what_a_server_asks_for_is_waited_up_to_a_bound() {
        let mut backoff = backoff(7);
        assert_eq!(backoff.next_delay(Duration::from_secs(90)), Duration::from_secs(90));
        assert_eq!(backoff.next_delay(Duration::MAX), Duration::from_secs(900));
    }

    #[test]
    fn two_beginnings_by_the_system_differ() {
        assert_ne!(Jitter::new().fraction(), Jitter::new().fraction());
    }
}
