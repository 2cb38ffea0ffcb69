//! Progress of the histories of a run.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, HumanDuration};

/// Counts of histories.
#[derive(Debug)]
pub(super) struct HistoryProgress {
    started: Instant,
    awaited: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
}

impl Default for HistoryProgress {
    fn default() -> Self {
        let (awaited, done, failed) = Default::default();
        Self { started: Instant::now(), awaited, done, failed }
    }
}

impl HistoryProgress {
    pub(super) fn add(&self, accounts: usize) {
        self.awaited.fetch_add(accounts as u64, Relaxed);
    }

    pub(super) fn is_done(&self) {
        self.done.fetch_add(1, Relaxed);
    }

    pub(super) fn has_failed(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    /// Number of all histories of the run.
    pub(super) fn all(&self) -> u64 {
        self.awaited.load(Relaxed)
    }

    /// Number of histories by state: histories that are neither done nor failed are awaited.
    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        let (done, failed) = (self.done.load(Relaxed), self.failed.load(Relaxed));
        let awaited = self.awaited.load(Relaxed).saturating_sub(done + failed);
        [("awaited", awaited), ("done", done), ("failed", failed)]
    }

    /// The progress for a person, with the time that the rest takes at the rate so far; `None` when nothing is awaited.
    pub(super) fn text(&self) -> Option<String> {
        self.text_after(self.started.elapsed())
    }

    fn text_after(&self, elapsed: Duration) -> Option<String> {
        let [(_, awaited), (_, done), (_, failed)] = self.counts();
        if awaited == 0 {
            return None;
        }
        let all = awaited + done + failed;
        let mut text = format!("history {}/{}", HumanCount(done), HumanCount(all));
        if failed > 0 {
            let _ = write!(text, ", {} failed", HumanCount(failed));
        }
        if done > 0 {
            let rest = elapsed.mul_f64(awaited as f64 / done as f64);
            let _ = write!(text, ", {} left", HumanDuration(rest));
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_estimated_at_the_rate_so_far_until_nothing_is_awaited() {
        let progress = HistoryProgress::default();
        assert_eq!(progress.text(), None);
        progress.add(1200);
        let text = || progress.text_after(Duration::from_secs(60));
        assert_eq!(text().unwrap(), "history 0/1,200");
        (0..300).for_each(|_| progress.is_done());
        (0..300).for_each(|_| progress.has_failed());
        assert_eq!(text().unwrap(), "history 300/1,200, 300 failed, 2 minutes left");
        assert_eq!(progress.counts(), [("awaited", 600), ("done", 300), ("failed", 300)]);
        (0..600).for_each(|_| progress.is_done());
        assert_eq!(text(), None);
    }
}
