//! Progress of the deliveries of a run, for a person at a terminal: counts per destination, and finished histories.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use delivery::DeliveryMetrics;
use indicatif::HumanCount;

/// The destinations of a run with their counters, and the finished histories.
#[derive(Debug, Default)]
pub(super) struct DeliveryProgress {
    destinations: Mutex<Vec<(String, Arc<DeliveryMetrics>)>>,
    histories: Mutex<FinishedHistories>,
}

/// The finished histories.
#[derive(Debug, Default)]
struct FinishedHistories {
    count: u64,
    /// When the last sum was printed.
    summed: Option<Instant>,
}

impl DeliveryProgress {
    /// Sets the destinations.
    pub(super) fn set_destinations(&self, destinations: &[(String, Arc<DeliveryMetrics>)]) {
        *lock(&self.destinations) = destinations.to_vec();
    }

    /// Appends the counts of every destination to a status line.
    pub(super) fn append_to(&self, text: &mut String) {
        for (name, metrics) in &*lock(&self.destinations) {
            let _ = write!(text, " · {} to {name}", count_of(metrics));
        }
    }

    /// A line for every destination at the end of a run.
    pub(super) fn totals(&self) -> Vec<String> {
        let total = |(name, metrics): &(String, Arc<DeliveryMetrics>)| {
            let refused = match metrics.set_aside() {
                0 => String::new(),
                count => format!(", {} refused", HumanCount(count)),
            };
            let count = match metrics.rows() {
                None => format!("{} delivered", count_of(metrics)),
                Some(_) => format!(
                    "{} of {} events delivered",
                    count_of(metrics),
                    HumanCount(metrics.accepted())
                ),
            };
            format!("{name}: {count}{refused}")
        };
        lock(&self.destinations).iter().map(total).collect()
    }

    /// The line of a finished history: its own for the first ten, then a sum from time to time.
    pub(super) fn finished_history(&self, did: &str, all: u64, now: Instant) -> Option<String> {
        let mut histories = lock(&self.histories);
        histories.count += 1;
        let count = histories.count;
        if count <= SINGLE_LINES {
            return Some(format!("{did}: history stored"));
        }
        let is_due = histories.summed.is_none_or(|last| now.duration_since(last) >= SUM_EVERY);
        if !is_due && count < all {
            return None;
        }
        histories.summed = Some(now);
        Some(format!("{} of {} histories stored", HumanCount(count), HumanCount(all.max(count))))
    }
}

/// The rows of a destination that has rows, otherwise its accepted events.
fn count_of(metrics: &DeliveryMetrics) -> String {
    match metrics.rows() {
        None => format!("{} events", HumanCount(metrics.accepted())),
        Some(rows) => format!("{} rows", HumanCount(rows)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Histories with a line of their own.
const SINGLE_LINES: u64 = 10;

/// Interval of the sums.
const SUM_EVERY: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_histories_have_lines_of_their_own_and_the_others_a_sum_every_ten_seconds_and_at_the_end()
    {
        let progress = DeliveryProgress::default();
        let now = Instant::now();
        for _ in 0..10 {
            let line = progress.finished_history("did:web:a.test", 40, now);
            assert_eq!(line.unwrap(), "did:web:a.test: history stored");
        }
        let at = |seconds| progress.finished_history("x", 14, now + Duration::from_secs(seconds));
        assert_eq!(at(1).unwrap(), "11 of 14 histories stored");
        assert_eq!(at(5), None);
        assert_eq!(at(11).unwrap(), "13 of 14 histories stored");
        assert_eq!(at(12).unwrap(), "14 of 14 histories stored");
    }
}
