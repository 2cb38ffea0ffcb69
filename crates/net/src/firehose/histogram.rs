//! How long does something take, in powers of two of a microsecond?

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// MetricsSnapshot durations; anybody may count and look at any time.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_micros: AtomicU64,
}

/// How often something took how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationHistogram {
    /// How often it took less than 2ⁿ µs and no less than half of that, at n; what is longer than all
    /// is in the last.
    pub buckets: [u64; BUCKETS],
    /// All of them together, in microseconds.
    pub sum_micros: u64,
}

impl Histogram {
    pub(super) fn count(&self, duration: Duration) {
        self.count_many(duration, 1);
    }

    /// So many took as long each.
    pub(super) fn count_many(&self, duration: Duration, times: u64) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let at = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[at.min(BUCKETS - 1)].fetch_add(times, Relaxed);
        self.sum_micros.fetch_add(micros.saturating_mul(times), Relaxed);
    }

    pub(super) fn read(&self) -> DurationHistogram {
        let buckets = self.buckets.each_ref().map(|bucket| bucket.load(Relaxed));
        DurationHistogram { buckets, sum_micros: self.sum_micros.load(Relaxed) }
    }
}

impl DurationHistogram {
    /// How often it happened.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// What `partition` of them, from 0 to 1, took less than: the upper end of a bucket.
    pub fn quantile(&self, partition: f64) -> Duration {
        let rank = (self.count() as f64 * partition.clamp(0.0, 1.0)).ceil() as u64;
        let mut passed = 0;
        let at = self.buckets.iter().position(|bucket| {
            passed += bucket;
            passed >= rank.max(1)
        });
        Duration::from_micros(at.map_or(0, |at| 1 << at))
    }
}

/// The last one is of what takes 17 seconds or longer.
const BUCKETS: usize = 26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_below_the_next_power_of_two() {
        let histogram = Histogram::default();
        for (micros, at) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (u64::MAX, 25)] {
            let before = histogram.read().buckets[at];
            histogram.count(Duration::from_micros(micros));
            assert_eq!(histogram.read().buckets[at], before + 1, "{micros}");
        }
        assert_eq!(histogram.read().count(), 7);
    }

    #[test]
    fn a_quantile_is_an_upper_bound() {
        let histogram = Histogram::default();
        histogram.count_many(Duration::from_micros(100), 99);
        histogram.count(Duration::from_millis(5));
        let read = histogram.read();
        let micros = |partition| read.quantile(partition).as_micros();
        assert_eq!((micros(0.5), micros(0.99), micros(1.0)), (128, 128, 8192));
        assert_eq!(Histogram::default().read().quantile(0.5), Duration::ZERO);
    }
}
