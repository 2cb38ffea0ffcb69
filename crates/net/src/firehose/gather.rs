//! How long a worker waits for more events, so that they are verified together.
//!
//! Lanes verify eight signatures in little more time than one. On a stream that brings several events within the limit,
//! a worker that would start with few of them sleeps until enough have come; on a slower one it would wait for nothing,
//! and on a faster one events come together while it works.

use std::time::Duration;

use tokio::time::Instant;

/// The rate of a worker's events, and the wait that follows from it.
#[derive(Debug)]
pub(super) struct Gather {
    limit: Duration,
    window_start: Instant,
    /// Events since then.
    arrived: usize,
    /// Events a second in the window before.
    rate: f64,
}

impl Gather {
    /// Waits at most `limit`; never, if that is zero.
    pub(super) fn new(limit: Duration, now: Instant) -> Self {
        Self { limit, window_start: now, arrived: 0, rate: 0.0 }
    }

    /// Counts events that have arrived.
    pub(super) fn count(&mut self, events: usize, now: Instant) {
        self.arrived += events;
        let elapsed = now.duration_since(self.window_start);
        if elapsed >= WINDOW {
            self.rate = self.arrived as f64 / elapsed.as_secs_f64();
            (self.window_start, self.arrived) = (now, 0);
        }
    }

    /// The time to wait when `ready` events are ready; `None` to start at once.
    pub(super) fn wait(&self, ready: usize) -> Option<Duration> {
        let expected = self.rate * self.limit.as_secs_f64();
        let missing = ENOUGH.saturating_sub(ready);
        if ready == 0 || missing == 0 || expected < WORTHWHILE {
            return None;
        }
        Some(Duration::from_secs_f64(missing as f64 / self.rate).min(self.limit))
    }
}

/// The time over which the rate is measured.
const WINDOW: Duration = Duration::from_millis(100);

/// Events that fill a vector of lanes.
const ENOUGH: usize = 8;

/// Events that must be expected within the limit.
const WORTHWHILE: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(2);

    /// After a second of events at this rate.
    fn at_rate(per_second: usize) -> Gather {
        let start = Instant::now();
        let mut gather = Gather::new(LIMIT, start);
        for tenth in 1..=10 {
            gather.count(per_second / 10, start + tenth * WINDOW);
        }
        gather
    }

    #[test]
    fn a_slow_stream_waits_for_nothing() {
        for rate in [0, 10, 500, 990] {
            assert_eq!(at_rate(rate).wait(1), None, "{rate} a second");
        }
    }

    #[test]
    fn a_fast_stream_waits_until_enough_are_expected_and_never_beyond_the_limit() {
        assert_eq!(at_rate(1_000).wait(1), Some(LIMIT));
        assert_eq!(at_rate(8_000).wait(1), Some(Duration::from_micros(875)));
        assert_eq!(at_rate(8_000).wait(7), Some(Duration::from_micros(125)));
    }

    #[test]
    fn the_rate_is_known_at_the_end_of_the_first_window() {
        let start = Instant::now();
        let mut gather = Gather::new(LIMIT, start);
        gather.count(400, start + WINDOW / 2);
        assert_eq!(gather.wait(1), None);
        gather.count(400, start + WINDOW);
        assert_eq!(gather.wait(1), Some(Duration::from_micros(875)));
    }

    #[test]
    fn nothing_and_enough_are_not_waited_for() {
        assert_eq!(at_rate(5_000).wait(0), None);
        assert_eq!(at_rate(5_000).wait(ENOUGH), None);
        let mut off = Gather::new(Duration::ZERO, Instant::now());
        off.count(1_000_000, Instant::now() + WINDOW);
        assert_eq!(off.wait(1), None);
    }

    #[test]
    fn a_stream_that_becomes_slow_is_noticed_in_the_next_window() {
        let mut gather = at_rate(8_000);
        gather.count(1, Instant::now() + Duration::from_secs(60));
        assert_eq!(gather.wait(1), None);
    }
}
