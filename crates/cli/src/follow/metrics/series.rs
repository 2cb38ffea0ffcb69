//! Which series are there of a relay's stream?
//!
//! | series | labels |
//! |---|---|
//! | `last_seq`, `cursor` | `host` |
//! | `lag_seconds` | |
//! | `events_total`, `event_bytes_total` | `kind` |
//! | `verdicts_total` | `code` |
//! | `stage_seconds` (histogram) | `stage`: judge, deliver, handle, key_lookup, resync, checkpoint |
//! | `identity_lookups_total` | `from`: memory, network, stale |
//! | `identity_errors_total`, `key_lookups_total`, `key_doubts_total`, `key_failures_total` | |
//! | `key_cache_total` | `result`: hit, miss |
//! | `connections_total`, `reconnects_total`, `backoff_seconds` | `host` |
//! | `refusals_total` | `host`, `status` |
//! | `notices_total` | `notice` |
//! | `queue_events` | `state`: under_way, parked, held |
//! | `queue_bytes`, `dropped_total`, `lines_total` | |
//! | `resyncs_total` | `result`: done, failed |
//! | `resyncs_running` | |
//! | `accounts_in_memory` | `state`: saved, unsaved |

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use wireproof::net::firehose::{DurationHistogram, MetricsSnapshot, RunMetrics};
use wireproof::net::identity::Resolver;
use wireproof::store::Store;

use super::super::watch::Watch;
use super::hosts;
use super::page::Page;

/// All series of a run, as they are when somebody asks.
#[derive(Debug)]
pub(in super::super) struct Series {
    pub(in super::super) watch: Arc<Watch>,
    pub(in super::super) counters: Arc<RunMetrics>,
    pub(in super::super) resolver: Resolver,
    pub(in super::super) store: Store,
}

impl Collector for Series {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (watch, counts) = (&*self.watch, self.counters.snapshot());
        let mut page = Page(encoder);
        streams(&mut page, watch, &counts)?;
        self.keys(&mut page, &counts)?;
        hosts::encode(&mut page, watch, &counts.notices)?;
        self.queues(&mut page, &counts)?;
        page.histograms("stage_seconds", "How long a stage takes", &stages(&counts))
    }
}

fn streams(page: &mut Page<'_>, watch: &Watch, counts: &MetricsSnapshot) -> fmt::Result {
    let last_seqs = hosts::numbers(watch, &counts.last_seqs);
    page.gauges("last_seq", "The last number that came", "host", &last_seqs)?;
    let cursors = hosts::numbers(watch, &counts.cursors);
    page.gauges("cursor", "The number up to which all is acknowledged", "host", &cursors)?;
    let lag = watch.lag_seconds().unwrap_or_default();
    page.gauge("lag_seconds", "How old the last event was when it came", lag)?;
    let events: Vec<_> = counts.events.iter().map(|(kind, count)| (kind.name(), *count)).collect();
    page.counters("events", "Events that came", "kind", &events)?;
    let bytes: Vec<_> = counts.bytes.iter().map(|(kind, count)| (kind.name(), *count)).collect();
    page.counters("event_bytes", "Bytes of events that came", "kind", &bytes)?;
    let verdicts: Vec<_> = counts.verdicts.iter().map(|(code, count)| (*code, *count)).collect();
    page.counters("verdicts", "Events by verdict", "code", &verdicts)
}

impl Series {
    fn keys(&self, page: &mut Page<'_>, counts: &MetricsSnapshot) -> fmt::Result {
        let resolver = self.resolver.stats();
        let lookups =
            [("memory", resolver.hits), ("network", resolver.lookups), ("stale", resolver.stale)];
        page.counters("identity_lookups", "Answers to who an account is", "from", &lookups)?;
        page.counter("identity_errors", "Lookups that ended with an error", resolver.errors)?;
        page.counter("key_lookups", "Keys that were looked for", counts.key_lookups)?;
        page.counter("key_doubts", "Keys that a signature cast doubt on", counts.key_refreshes)?;
        page.counter("key_failures", "Keys that were not found", counts.key_failures)?;
        let cache = [("hit", counts.cache_hits), ("miss", counts.cache_misses)];
        page.counters("key_cache", "Signatures by whether the key was prepared", "result", &cache)
    }

    fn queues(&self, page: &mut Page<'_>, counts: &MetricsSnapshot) -> fmt::Result {
        let queue = [
            ("under_way", counts.in_flight),
            ("parked", counts.awaiting_key),
            ("held", counts.awaiting_repo),
        ];
        let queue = queue.map(|(state, count)| (state.to_owned(), count as f64));
        page.gauges("queue_events", "Events that are not acknowledged yet", "state", &queue)?;
        page.gauge("queue_bytes", "Bytes of those", counts.in_flight_bytes as f64)?;
        page.counter("dropped", "Events that were dropped", counts.dropped)?;
        page.counter("lines", "Lines that were written", self.watch.lines.load(Relaxed))?;
        let resyncs = [("done", counts.resyncs_done), ("failed", counts.resyncs_failed)];
        page.counters("resyncs", "Repositories fetched anew", "result", &resyncs)?;
        page.gauge("resyncs_running", "Repositories being fetched", counts.resyncs_running as f64)?;
        let (all, unsaved) = self.store.in_memory();
        let accounts = [("saved", all.saturating_sub(unsaved)), ("unsaved", unsaved)];
        let accounts = accounts.map(|(state, count)| (state.to_owned(), count as f64));
        page.gauges("accounts_in_memory", "Accounts in memory", "state", &accounts)
    }
}

fn stages(counts: &MetricsSnapshot) -> [(&'static str, &DurationHistogram); 6] {
    [
        ("judge", &counts.verify_time),
        ("deliver", &counts.lag),
        ("handle", &counts.handler_time),
        ("key_lookup", &counts.key_lookup_time),
        ("resync", &counts.resync_time),
        ("checkpoint", &counts.checkpoint_time),
    ]
}
