//! Metrics of a run: counters, gauges and duration histograms.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crypto::CacheStats;

use super::ack::RunState;
use super::feed_item::{FrameKind, Notice, ReceivedFrame};
use crate::archive_space::ArchiveSpace;

/// Live metrics of a run, to be read from any thread at any time.
#[derive(Debug, Default)]
pub struct RunMetrics {
    events: [AtomicU64; KINDS],
    bytes: [AtomicU64; KINDS],
    notices: Mutex<BTreeMap<&'static str, u64>>,
    last_seqs: Mutex<Vec<Option<u64>>>,
    skipped_seqs: Mutex<Vec<u64>>,
    verdicts: Mutex<BTreeMap<&'static str, u64>>,
    pub(super) delivered: AtomicU64,
    pub(super) invalid_records: AtomicU64,
    pub(super) key_lookups: KeyLookupMetrics,
    pub(super) resyncs: ResyncMetrics,
    status_lookups: AtomicU64,
    statuses_unconfirmed: AtomicU64,
    /// Parked events by worker: awaiting a key, awaiting a repository.
    parked: Mutex<Vec<(usize, usize)>>,
    /// Accounts whose revisions go back, by worker.
    behind: Mutex<Vec<usize>>,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    pub(super) verify_time: Histogram,
    pub(super) handler_time: Histogram,
    pub(super) lag: Histogram,
    pub(super) checkpoint_time: Histogram,
    run: OnceLock<Arc<RunState>>,
}

/// Lookups of keys.
#[derive(Debug, Default)]
pub(super) struct KeyLookupMetrics {
    pub(super) started: AtomicU64,
    pub(super) refreshes: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) time: Histogram,
}

/// Repository fetches.
#[derive(Debug, Default)]
pub(super) struct ResyncMetrics {
    pub(super) delayed: AtomicU64,
    pub(super) running: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) time: Histogram,
    /// Set when resyncs begin.
    pub(super) space: OnceLock<ArchiveSpace>,
}

/// The metrics at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// Last received sequence number by host.
    pub last_seqs: Vec<Option<u64>>,
    /// Number of sequence numbers that a host skipped, by host, between two connections too: events that it does not
    /// forward, or lost ones; events that it sends late are counted too. Hosts without any may be missing at the end.
    pub skipped_seqs: Vec<u64>,
    /// Cursor by host: every event up to it is acknowledged.
    pub cursors: Vec<Option<u64>>,
    /// Received frames by kind.
    pub events: Vec<(FrameKind, u64)>,
    /// Received bytes by kind.
    pub bytes: Vec<(FrameKind, u64)>,
    /// Notices by [`Notice::name`].
    pub notices: BTreeMap<&'static str, u64>,
    /// Delivered events by [`Verdict::code`](super::Verdict::code).
    pub verdicts: BTreeMap<&'static str, u64>,
    /// Delivered events.
    pub delivered: u64,
    /// [Invalid](verify::InvalidRecord) records in verified commits and resynced repositories.
    pub invalid_records: u64,
    /// Events in flight: received and not acknowledged.
    pub in_flight: usize,
    /// Bytes of the events in flight.
    pub in_flight_bytes: usize,
    /// Events parked until a key is known.
    pub awaiting_key: usize,
    /// Events parked until a repository is resynced.
    pub awaiting_repo: usize,
    /// Accounts whose revisions go back, so that their events are ignored.
    pub accounts_behind: usize,
    /// Dropped events: always 0, for monitoring.
    pub dropped: u64,
    /// Lookups of keys.
    pub key_lookups: u64,
    /// Lookups of keys because a signature was rejected.
    pub key_refreshes: u64,
    /// Attempts that failed because the source of the key was unavailable, and were or will be repeated.
    pub key_retries: u64,
    /// Failed lookups of keys.
    pub key_failures: u64,
    /// Signatures whose key was in the verifiers' caches.
    pub cache_hits: u64,
    /// Signatures whose key was not.
    pub cache_misses: u64,
    /// Lookups of the status of accounts that the stream calls inactive.
    pub status_lookups: u64,
    /// Those without an answer.
    pub statuses_unconfirmed: u64,
    /// Running resyncs.
    pub resyncs_running: u64,
    /// Completed resyncs.
    pub resyncs_done: u64,
    /// Failed resyncs.
    pub resyncs_failed: u64,
    /// Failed resyncs that wait to be repeated.
    pub resyncs_delayed: u64,
    /// Bytes of the repositories that are received or in use, as
    /// [`ResyncOptions::max_bytes_in_use`](super::ResyncOptions::max_bytes_in_use) bounds them.
    pub resync_bytes: u64,
    /// The largest number of these bytes so far.
    pub resync_bytes_peak: u64,
    /// Time to verify a batch.
    pub verify_time: DurationHistogram,
    /// Time of a batch in the handler.
    pub handler_time: DurationHistogram,
    /// Time from the arrival of an event to its delivery.
    pub lag: DurationHistogram,
    /// Time to look up a key.
    pub key_lookup_time: DurationHistogram,
    /// Time to fetch and verify a repository.
    pub resync_time: DurationHistogram,
    /// Time to write a checkpoint.
    pub checkpoint_time: DurationHistogram,
}

impl RunMetrics {
    /// The metrics at this moment. Related values may differ by concurrent updates.
    pub fn snapshot(&self) -> MetricsSnapshot {
        let run = self.run.get();
        let (awaiting_key, awaiting_repo) = self.parked();
        let by_kind = |counters: &[AtomicU64; KINDS]| {
            let counters = FrameKind::ALL.iter().zip(counters);
            counters.map(|(kind, count)| (*kind, count.load(Relaxed))).collect()
        };
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let space = self.resyncs.space.get();
        MetricsSnapshot {
            last_seqs: lock(&self.last_seqs).clone(),
            skipped_seqs: lock(&self.skipped_seqs).clone(),
            cursors: run.map_or(vec![], |run| run.tracker().cursors().collect()),
            events: by_kind(&self.events),
            bytes: by_kind(&self.bytes),
            notices: lock(&self.notices).clone(),
            verdicts: lock(&self.verdicts).clone(),
            delivered: load(&self.delivered),
            invalid_records: load(&self.invalid_records),
            in_flight: run.map_or(0, |run| run.in_flight.events()),
            in_flight_bytes: run.map_or(0, |run| run.in_flight.bytes()),
            awaiting_key,
            awaiting_repo,
            dropped: 0,
            key_lookups: load(&self.key_lookups.started),
            key_refreshes: load(&self.key_lookups.refreshes),
            key_retries: load(&self.key_lookups.retries),
            key_failures: load(&self.key_lookups.failed),
            cache_hits: load(&self.cache_hits),
            cache_misses: load(&self.cache_misses),
            status_lookups: load(&self.status_lookups),
            statuses_unconfirmed: load(&self.statuses_unconfirmed),
            resyncs_running: load(&self.resyncs.running),
            resyncs_done: load(&self.resyncs.done),
            resyncs_failed: load(&self.resyncs.failed),
            accounts_behind: lock(&self.behind).iter().sum(),
            resyncs_delayed: load(&self.resyncs.delayed),
            resync_bytes: space.map_or(0, ArchiveSpace::used_bytes),
            resync_bytes_peak: space.map_or(0, ArchiveSpace::peak_bytes),
            verify_time: self.verify_time.snapshot(),
            handler_time: self.handler_time.snapshot(),
            lag: self.lag.snapshot(),
            key_lookup_time: self.key_lookups.time.snapshot(),
            resync_time: self.resyncs.time.snapshot(),
            checkpoint_time: self.checkpoint_time.snapshot(),
        }
    }

    /// Sets the run whose cursors and events in flight are reported.
    pub(super) fn attach(&self, run: Arc<RunState>) {
        // A `Firehose` runs once.
        let _ = self.run.set(run);
    }

    /// Counts a received frame.
    pub(super) fn count_frame(&self, received: &ReceivedFrame) {
        let at = FrameKind::ALL.iter().position(|kind| *kind == received.kind).unwrap_or(0);
        self.events[at].fetch_add(1, Relaxed);
        self.bytes[at].fetch_add(received.frame.len() as u64, Relaxed);
    }

    /// Sets the last sequence number of a host.
    pub(super) fn set_last_seq(&self, host: usize, seq: u64) {
        *slot(&mut lock(&self.last_seqs), host) = Some(seq);
    }

    /// Counts a notice, and the sequence numbers that its host skipped.
    pub(super) fn count_notice(&self, notice: &Notice) {
        *lock(&self.notices).entry(notice.name()).or_default() += 1;
        if notice.skipped_seqs() > 0 {
            let mut hosts = lock(&self.skipped_seqs);
            let skipped = slot(&mut hosts, notice.host().0);
            *skipped = skipped.saturating_add(notice.skipped_seqs());
        }
    }

    /// Counts a lookup of a status.
    pub(super) fn count_status_lookup<E>(&self, result: &Result<bool, E>) {
        self.status_lookups.fetch_add(1, Relaxed);
        self.statuses_unconfirmed.fetch_add(u64::from(result.is_err()), Relaxed);
    }

    /// Counts the verdicts of a batch.
    pub(super) fn count_verdicts(&self, counts: &[(&'static str, u64)]) {
        let mut verdicts = lock(&self.verdicts);
        for (code, count) in counts {
            *verdicts.entry(code).or_default() += count;
        }
    }

    /// Counts the hits and misses of a verifier's key cache between two moments.
    pub(super) fn count_cache(&self, before: &CacheStats, after: &CacheStats) {
        self.cache_hits.fetch_add(after.hits - before.hits, Relaxed);
        self.cache_misses.fetch_add(after.misses - before.misses, Relaxed);
    }

    /// Sets the numbers of a worker's events that await a key, and a repository.
    pub(super) fn set_parked(&self, worker: usize, events: (usize, usize)) {
        *slot(&mut lock(&self.parked), worker) = events;
    }

    /// Sets the number of a worker's accounts whose revisions go back.
    pub(super) fn set_behind(&self, worker: usize, accounts: usize) {
        *slot(&mut lock(&self.behind), worker) = accounts;
    }

    fn parked(&self) -> (usize, usize) {
        lock(&self.parked).iter().fold((0, 0), |sum, worker| (sum.0 + worker.0, sum.1 + worker.1))
    }
}

/// The value at an index, after defaults where there are none yet.
fn slot<T: Clone + Default>(values: &mut Vec<T>, at: usize) -> &mut T {
    if values.len() <= at {
        values.resize(at + 1, T::default());
    }
    &mut values[at]
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts durations in buckets of powers of two of a microsecond.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_micros: AtomicU64,
}

/// The state of a duration histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DurationHistogram {
    /// At index n, the count of durations from 2ⁿ⁻¹ µs to below 2ⁿ µs; the last bucket has no upper bound.
    pub buckets: [u64; BUCKETS],
    /// Sum of all durations in microseconds.
    pub sum_micros: u64,
}

impl Histogram {
    pub(super) fn count(&self, duration: Duration) {
        self.count_many(duration, 1);
    }

    /// Counts a duration several times.
    pub(super) fn count_many(&self, duration: Duration, times: u64) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let at = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[at.min(BUCKETS - 1)].fetch_add(times, Relaxed);
        self.sum_micros.fetch_add(micros.saturating_mul(times), Relaxed);
    }

    pub(super) fn snapshot(&self) -> DurationHistogram {
        let buckets = self.buckets.each_ref().map(|bucket| bucket.load(Relaxed));
        DurationHistogram { buckets, sum_micros: self.sum_micros.load(Relaxed) }
    }
}

impl DurationHistogram {
    /// The number of counted durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// An upper bound of the quantile `fraction`, from 0 to 1: the upper end of its bucket.
    pub fn quantile(&self, fraction: f64) -> Duration {
        let rank = (self.count() as f64 * fraction.clamp(0.0, 1.0)).ceil() as u64;
        let mut passed = 0;
        let at = self.buckets.iter().position(|bucket| {
            passed += bucket;
            passed >= rank.max(1)
        });
        Duration::from_micros(at.map_or(0, |at| 1 << at))
    }
}

/// The last bucket counts durations of 17 seconds and longer.
const BUCKETS: usize = 26;

const KINDS: usize = FrameKind::ALL.len();

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::HostId;

    #[test]
    fn the_skipped_sequence_numbers_of_each_host_are_added_up() {
        let metrics = RunMetrics::default();
        let host = HostId(1);
        metrics.count_notice(&Notice::Repeated { host, seq: 10 });
        assert!(metrics.snapshot().skipped_seqs.is_empty());
        for (after, seq) in [(10, 12), (20, 26)] {
            metrics.count_notice(&Notice::Gap { host, after, seq });
        }
        metrics.count_notice(&Notice::Repeated { host, seq: 26 });
        let snapshot = metrics.snapshot();
        assert_eq!((&snapshot.skipped_seqs[..], snapshot.notices["gap"]), (&[0, 6][..], 2));
        metrics.count_notice(&Notice::Gap { host, after: 0, seq: u64::MAX });
        assert_eq!(metrics.snapshot().skipped_seqs[1], u64::MAX, "no overflow");
    }

    #[test]
    fn what_the_workers_report_is_added_up() {
        let metrics = RunMetrics::default();
        metrics.set_parked(0, (2, 3));
        metrics.set_parked(2, (5, 7));
        metrics.set_parked(0, (4, 1));
        metrics.set_behind(0, 3);
        metrics.set_behind(1, 2);
        let cache = |hits, misses| CacheStats { hits, misses, ..CacheStats::default() };
        metrics.count_cache(&cache(2, 3), &cache(5, 10));
        metrics.count_cache(&cache(0, 0), &cache(1, 1));
        metrics.count_status_lookup::<()>(&Ok(true));
        metrics.count_status_lookup(&Err(()));
        metrics.count_verdicts(&[("verified", 2), ("unchecked", 1)]);
        metrics.count_verdicts(&[("verified", 3)]);
        let snapshot = metrics.snapshot();
        assert_eq!((snapshot.awaiting_key, snapshot.awaiting_repo), (9, 8));
        assert_eq!(snapshot.accounts_behind, 5);
        assert_eq!((snapshot.cache_hits, snapshot.cache_misses), (4, 8));
        assert_eq!((snapshot.status_lookups, snapshot.statuses_unconfirmed), (2, 1));
        assert_eq!((snapshot.verdicts["verified"], snapshot.verdicts["unchecked"]), (5, 1));
    }

    #[test]
    fn a_duration_is_counted_below_the_next_power_of_two() {
        let histogram = Histogram::default();
        for (micros, at) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (u64::MAX, 25)] {
            let before = histogram.snapshot().buckets[at];
            histogram.count(Duration::from_micros(micros));
            assert_eq!(histogram.snapshot().buckets[at], before + 1, "{micros}");
        }
        assert_eq!(histogram.snapshot().count(), 7);
    }

    #[test]
    fn a_quantile_is_an_upper_bound() {
        let histogram = Histogram::default();
        histogram.count_many(Duration::from_micros(100), 99);
        histogram.count(Duration::from_millis(5));
        let read = histogram.snapshot();
        let micros = |fraction| read.quantile(fraction).as_micros();
        assert_eq!((micros(0.5), micros(0.99), micros(1.0)), (128, 128, 8192));
        assert_eq!(Histogram::default().snapshot().quantile(0.5), Duration::ZERO);
    }
}
