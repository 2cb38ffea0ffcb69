//! Gaps in the sequence numbers of hosts: relays skip the numbers of events that they do not forward, so only more than is usual for
//! a host is worth a warning.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The skipped numbers by host.
#[derive(Debug, Default)]
pub(super) struct Gaps(Mutex<BTreeMap<usize, HostGaps>>);

#[derive(Debug)]
struct HostGaps {
    /// When the minute began that is counted.
    since: Instant,
    /// Numbers skipped in it.
    skipped: u64,
    /// Whether a warning was given in it.
    has_warned: bool,
    /// The mean of the minutes before, of which later ones weigh more; `None` in the first.
    usual: Option<f64>,
}

impl Gaps {
    /// Counts skipped numbers. Whether they make this minute one with far more of them than is usual for the host, for the first
    /// time in it.
    pub(super) fn record(&self, host: usize, skipped: u64, now: Instant) -> bool {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = HostGaps { since: now, skipped: 0, has_warned: false, usual: None };
        let gaps = hosts.entry(host).or_insert(new);
        gaps.begin_minute(now);
        gaps.skipped = gaps.skipped.saturating_add(skipped);
        let is_first = gaps.is_unusual() && !gaps.has_warned;
        gaps.has_warned |= is_first;
        is_first
    }
}

impl HostGaps {
    /// Ends the counted minute if it is over. Minutes without a gap, such as those without a connection, change nothing.
    fn begin_minute(&mut self, now: Instant) {
        let minutes = now.saturating_duration_since(self.since).as_secs() / MINUTE.as_secs();
        if minutes == 0 {
            return;
        }
        let last = std::mem::take(&mut self.skipped) as f64;
        self.usual = Some(self.usual.map_or(last, |usual| (usual + last) / 2.0));
        self.has_warned = false;
        self.since += MINUTE * u32::try_from(minutes).unwrap_or(u32::MAX);
    }

    fn is_unusual(&self) -> bool {
        let limit = self.usual.map_or(MAX_FIRST, |usual| (usual * FACTOR).max(MIN_LIMIT));
        self.skipped as f64 > limit
    }
}

const MINUTE: Duration = Duration::from_secs(60);

/// Skipped numbers of a first minute above which a warning is given: a busy relay skips some per event.
const MAX_FIRST: f64 = 100_000.0;

/// How many times the usual number is unusual, and the number below which none is.
const FACTOR: f64 = 4.0;
const MIN_LIMIT: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_than_is_usual_for_a_host_is_told_once_a_minute() {
        let (gaps, start) = (Gaps::default(), Instant::now());
        let at = |minute: u32| start + MINUTE * minute;
        for minute in 0..10 {
            assert!(!gaps.record(0, 3_000, at(minute)), "{minute}");
        }
        assert!(!gaps.record(0, 9_000, at(10)));
        assert!(gaps.record(0, 9_000, at(10)), "18,000 are more than four times the usual 3,000");
        assert!(!gaps.record(0, 9_000, at(10)), "once a minute");
        assert!(!gaps.record(1, 1_000, at(11)), "another host");
        assert!(gaps.record(1, 1_000_000, at(11)));
        assert!(!gaps.record(0, 3_000, at(200)), "a host that was quiet for hours");
        assert!(!gaps.record(0, 900, at(400)));
    }
}
