//! What has happened so far? For those who watch a run from outside.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crypto::CacheStats;

use super::ack::RunState;
use super::arrival::{FrameKind, ReceivedFrame};
use super::histogram::{DurationHistogram, Histogram};
use super::notice::Notice;
use super::waiting::Weight;

/// MetricsSnapshot what a run does. Anybody may look at any time.
#[derive(Debug, Default)]
pub struct RunMetrics {
    events: [AtomicU64; KINDS],
    bytes: [AtomicU64; KINDS],
    notices: Mutex<BTreeMap<&'static str, u64>>,
    last_seqs: Mutex<Vec<Option<u64>>>,
    verdicts: Mutex<BTreeMap<&'static str, u64>>,
    pub(super) delivered: AtomicU64,
    pub(super) keys: Lookups,
    pub(super) resyncs: Errands,
    /// What waits, a worker each.
    waiting: Mutex<Vec<(Weight, Weight)>>,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    pub(super) verify_time: Histogram,
    pub(super) handler_time: Histogram,
    pub(super) lag: Histogram,
    pub(super) checkpoint_time: Histogram,
    run_state: OnceLock<Arc<RunState>>,
}

/// Lookups of keys.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    pub(super) asked: AtomicU64,
    pub(super) doubted: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) times: Histogram,
}

/// Repositories that are fetched.
#[derive(Debug, Default)]
pub(super) struct Errands {
    pub(super) running: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) times: Histogram,
}

/// What has happened so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsSnapshot {
    /// For each host, the last sequence number that came.
    pub last_seqs: Vec<Option<u64>>,
    /// For each host, the last one that everything up to is acknowledged.
    pub cursors: Vec<Option<u64>>,
    /// How many frames of each kind came.
    pub events: Vec<(FrameKind, u64)>,
    /// How many bytes they had.
    pub bytes: Vec<(FrameKind, u64)>,
    /// What the connections did, by [`Notice::name`].
    pub notices: BTreeMap<&'static str, u64>,
    /// How many events were handed over with which verdict, by [`Verdict::code`](super::Verdict::code).
    pub verdicts: BTreeMap<&'static str, u64>,
    /// How many events were handed over.
    pub delivered: u64,
    /// How many are under way: they came, and are not acknowledged.
    pub in_flight: usize,
    /// How many bytes they have.
    pub in_flight_bytes: usize,
    /// How many of them wait for a key.
    pub awaiting_key: usize,
    /// How many wait for a repository.
    pub awaiting_repo: usize,
    /// How many events were dropped. None ever is; who watches wants to see that.
    pub dropped: u64,
    /// How often a key was looked for.
    pub key_lookups: u64,
    /// How often because a signature was refused.
    pub key_refreshes: u64,
    /// How often it was not found.
    pub key_failures: u64,
    /// How often the judges' caches had the key of a signature ready.
    pub cache_hits: u64,
    /// How often not.
    pub cache_misses: u64,
    /// How many repositories are being fetched anew.
    pub resyncs_running: u64,
    /// How many were.
    pub resyncs_done: u64,
    /// How many were given up.
    pub resyncs_failed: u64,
    /// How long a batch is judged.
    pub verify_time: DurationHistogram,
    /// How long a batch stays with the handler.
    pub handler_time: DurationHistogram,
    /// How long an event takes from its coming until the handler has seen it.
    pub lag: DurationHistogram,
    /// How long a lookup of a key takes.
    pub key_lookup_time: DurationHistogram,
    /// How long it takes to fetch a repository and prove it.
    pub resync_time: DurationHistogram,
    /// How long a checkpoint takes.
    pub checkpoint_time: DurationHistogram,
}

impl RunMetrics {
    /// What has happened so far; numbers that belong together may differ by what happens meanwhile.
    pub fn snapshot(&self) -> MetricsSnapshot {
        let run_state = self.run_state.get();
        let (awaiting_key, awaiting_repo) = self.waiting();
        let of = |counters: &[AtomicU64; KINDS]| {
            FrameKind::ALL.iter().zip(counters).map(|(kind, count)| (*kind, read(count))).collect()
        };
        MetricsSnapshot {
            last_seqs: self.last_seqs.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            cursors: run_state.map_or(vec![], |run_state| run_state.acks().cursors().collect()),
            events: of(&self.events),
            bytes: of(&self.bytes),
            notices: self.notices.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            verdicts: self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            delivered: read(&self.delivered),
            in_flight: run_state.map_or(0, |run_state| run_state.in_flight.events()),
            in_flight_bytes: run_state.map_or(0, |run_state| run_state.in_flight.bytes()),
            awaiting_key,
            awaiting_repo,
            dropped: 0,
            key_lookups: read(&self.keys.asked),
            key_refreshes: read(&self.keys.doubted),
            key_failures: read(&self.keys.failed),
            cache_hits: read(&self.cache_hits),
            cache_misses: read(&self.cache_misses),
            resyncs_running: read(&self.resyncs.running),
            resyncs_done: read(&self.resyncs.done),
            resyncs_failed: read(&self.resyncs.failed),
            verify_time: self.verify_time.read(),
            handler_time: self.handler_time.read(),
            lag: self.lag.read(),
            key_lookup_time: self.keys.times.read(),
            resync_time: self.resyncs.times.read(),
            checkpoint_time: self.checkpoint_time.read(),
        }
    }

    /// The run whose run_state tell what is under way.
    pub(super) fn watch(&self, run_state: Arc<RunState>) {
        // A second run would count on with the first one's; there is none.
        let _ = self.run_state.set(run_state);
    }

    /// A frame came.
    pub(super) fn arrived(&self, arrival: &ReceivedFrame) {
        let at = FrameKind::ALL.iter().position(|kind| *kind == arrival.kind).unwrap_or(0);
        self.events[at].fetch_add(1, Relaxed);
        self.bytes[at].fetch_add(arrival.frame.len() as u64, Relaxed);
    }

    /// The last sequence number of a host.
    pub(super) fn reached(&self, host: usize, seq: u64) {
        let mut last_seqs = self.last_seqs.lock().unwrap_or_else(PoisonError::into_inner);
        if last_seqs.len() <= host {
            last_seqs.resize(host + 1, None);
        }
        last_seqs[host] = Some(seq);
    }

    pub(super) fn noticed(&self, notice: &Notice) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        *notices.entry(notice.name()).or_default() += 1;
    }

    /// So many events got this verdict.
    pub(super) fn judged(&self, tally: &[(&'static str, u64)]) {
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        for (code, count) in tally {
            *verdicts.entry(code).or_default() += count;
        }
    }

    /// What the cache of a judge has done in between.
    pub(super) fn cached(&self, before: &CacheStats, after: &CacheStats) {
        self.cache_hits.fetch_add(after.hits - before.hits, Relaxed);
        self.cache_misses.fetch_add(after.misses - before.misses, Relaxed);
    }

    /// What waits with this worker.
    pub(super) fn waits(&self, worker: usize, weights: (Weight, Weight)) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() <= worker {
            waiting.resize(worker + 1, Default::default());
        }
        waiting[worker] = weights;
    }

    fn waiting(&self) -> (usize, usize) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |of: fn(&(Weight, Weight)) -> usize| waiting.iter().map(of).sum();
        (sum(|(parked, _)| parked.events), sum(|(_, held)| held.events))
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

const KINDS: usize = FrameKind::ALL.len();
