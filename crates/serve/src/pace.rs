//! Whether a client reads so slowly that it is disconnected.

use std::time::Duration;

use tokio::time::Instant;

/// How many messages a client took lately.
#[derive(Debug)]
pub(crate) struct Pace {
    since: Instant,
    taken: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { since: Instant::now(), taken: 0 }
    }
}

impl Pace {
    /// Notes that the client took messages.
    pub(crate) fn note_taken(&mut self, count: u64) {
        self.taken += count;
    }

    /// Whether the client, which is `behind` the newest event, took fewer than five messages a second for a minute although
    /// messages waited for it.
    pub(crate) fn is_too_slow(&mut self, now: Instant, behind: Duration, waits: bool) -> bool {
        if !waits || behind < PERIOD {
            *self = Self { since: now, taken: 0 };
            return false;
        }
        if now - self.since < PERIOD {
            return false;
        }
        let is_slow = self.taken < MIN_TAKEN;
        *self = Self { since: now, taken: 0 };
        is_slow
    }
}

/// The time over which messages are counted, and by which a slow client must be behind.
const PERIOD: Duration = Duration::from_secs(60);

/// The messages that a client takes in that time.
const MIN_TAKEN: u64 = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_is_too_slow_if_it_is_a_minute_behind_and_takes_little_for_a_minute() {
        let hour = Duration::from_secs(3_600);
        let after = |seconds: u64, taken: u64, behind: Duration, waits: bool| {
            let mut pace = Pace::default();
            let start = Instant::now();
            pace.note_taken(taken);
            let mut is_slow = false;
            for second in 0..=seconds {
                is_slow |= pace.is_too_slow(start + Duration::from_secs(second), behind, waits);
            }
            is_slow
        };
        assert!(after(60, 299, hour, true));
        assert!(!after(60, 300, hour, true));
        assert!(!after(59, 0, hour, true));
        assert!(!after(600, 0, Duration::from_secs(59), true));
        assert!(!after(600, 0, hour, false));
    }
}
