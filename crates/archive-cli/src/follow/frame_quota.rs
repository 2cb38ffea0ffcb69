//! A quota of frames that cannot be decoded: an archive stores them as evidence, and a host could fill the disk with them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The frames of every host that were stored and dropped on its last day.
#[derive(Debug, Default)]
pub(super) struct FrameQuota {
    days: Mutex<HashMap<String, HostDay>>,
}

/// A day of a host.
#[derive(Clone, Copy, Debug, Default)]
struct HostDay {
    /// Days since 1970, UTC.
    day: i64,
    stored_bytes: usize,
    /// Frames dropped since the run began.
    dropped: u64,
}

impl FrameQuota {
    /// Whether a frame is stored that was received at a time, in microseconds since 1970; one that is not is counted.
    pub(super) fn admits(&self, host: &str, received: i64, bytes: usize) -> bool {
        let mut days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let of_host = days.entry(host.to_owned()).or_default();
        let day = received.div_euclid(DAY_MICROS);
        if of_host.day != day {
            (of_host.day, of_host.stored_bytes) = (day, 0);
        }
        let stored = of_host.stored_bytes.saturating_add(bytes);
        let is_admitted = stored <= MAX_DAY_BYTES;
        if is_admitted {
            of_host.stored_bytes = stored
        } else {
            of_host.dropped += 1
        }
        is_admitted
    }

    /// A message about a host, for the operator.
    pub(super) fn message(&self, host: &str) -> String {
        format!(
            "{host} has sent more than {} MiB of frames today that cannot be decoded: the others are not stored ({})",
            MAX_DAY_BYTES >> 20,
            quota_code()
        )
    }

    /// The dropped frames, if there are any.
    pub(super) fn dropped_text(&self) -> Option<String> {
        let days = self.days.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped: u64 = days.values().map(|of_host| of_host.dropped).sum();
        (dropped > 0).then(|| {
            format!("{dropped} frames that cannot be decoded were not stored ({})", quota_code())
        })
    }
}

/// Whether a verdict belongs to a frame that cannot be decoded.
pub(super) fn is_undecodable(code: &str) -> bool {
    code.starts_with("frame/")
}

/// The stable code of frames that are not stored.
fn quota_code() -> &'static str {
    "archive/frame-quota"
}

/// Bytes of frames of a host that are stored in a day.
const MAX_DAY_BYTES: usize = 64 << 20;

const DAY_MICROS: i64 = 86_400_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_host_are_stored_up_to_the_quota_of_each_day_and_the_others_are_counted() {
        let (quota, half) = (FrameQuota::default(), MAX_DAY_BYTES / 2);
        assert!(quota.admits("a", 0, half) && quota.admits("a", 1, half));
        assert!(!quota.admits("a", 2, 1) && !quota.admits("a", 3, usize::MAX));
        assert!(quota.admits("b", 4, half), "each host has its own");
        assert!(quota.admits("a", DAY_MICROS, 1), "and each day");
        let text = quota.dropped_text().unwrap();
        assert!(text.starts_with("2 frames") && text.contains(quota_code()), "{text}");
    }
}
