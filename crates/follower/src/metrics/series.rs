//! The series of a run, of a firehose and of a Jetstream.
//!
//! | series | labels |
//! |---|---|
//! | `last_seq`, `cursor`; of a Jetstream its cursor, microseconds in version 1 | `host` |
//! | `skipped_seqs_total`\* | `host` |
//! | `lag_seconds` | |
//! | `events_total`, `event_bytes_total`\* | `kind` |
//! | `verdicts_total` | `code` |
//! | `verified_against`\* | `level`: full, signature, none |
//! | `invalid_records_total`\* | |
//! | `stage_seconds`\* (histogram) | `stage`: judge, deliver, handle, key_lookup, resync, checkpoint |
//! | `identity_lookups_total`\* | `from`: memory, network, stale |
//! | `identity_errors_total`\*, `key_lookups_total`\*, `key_doubts_total`\*, `key_retries_total`\*, `key_failures_total`\* | |
//! | `status_lookups_total`\*, `statuses_unconfirmed_total`\* | |
//! | `key_cache_total`\* | `result`: hit, miss |
//! | `connections_total`, `reconnects_total`, `backoff_seconds` | `host` |
//! | `refusals_total` | `host`, `status` |
//! | `notices_total` | `notice` |
//! | `queue_events` | `state`: under_way, parked\*, held\* |
//! | `queue_bytes`\*, `dropped_total`, `lines_total` | |
//! | `resyncs_total`\* | `result`: done, failed |
//! | `resyncs_running`\*, `resyncs_delayed`\* | |
//! | `resync_bytes`\*, `resync_bytes_peak`\* | |
//! | `accounts_behind`\*: their revisions go back | |
//! | `histories`\* | `state`: awaited, done, failed |
//! | `accounts_in_memory`\* | `state`: saved, unsaved |
//! | `accounts_without_commit`\*, `accounts_without_commit_limit`\* | |
//! | `outbox_events`\*, `outbox_bytes`\*, `outbox_age_seconds`\*, `outbox_full`\*, with an outbox | |
//! | `undelivered_events`\*, `refused_bytes`\*, with an outbox | `destination` |
//! | `where_total`\*, with `--where` | `result`: matched, unmatched, failed, too_large |
//! | `websocket_connections_total`\*, with a WebSocket server | `result`: opened, refused, broken |
//! | `websocket_messages_total`\* | `what`: sent, repeated, acknowledged, ignored |
//!
//! \* not of a Jetstream, where nothing is verified.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use delivery::{Outbox, WebSocketMetrics};
use net::firehose::{DurationHistogram, FrameKind, MetricsSnapshot, RunMetrics};
use net::identity::Resolver;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use store::Store;

use super::super::condition::Condition;
use super::super::refused_events;
use super::super::stats::RunStats;
use super::super::verify_level::VerifyLevel;

/// Series of a recipient of a run's events, read at every scrape.
pub trait MoreSeries: fmt::Debug + Send + Sync {
    /// Writes them.
    ///
    /// # Errors
    /// If `encoder` does not take them.
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result;
}

/// The series of a firehose, read at every scrape.
#[derive(Debug)]
pub(crate) struct FirehoseSeries {
    pub(crate) stats: Arc<RunStats>,
    pub(crate) metrics: Arc<RunMetrics>,
    pub(crate) resolver: Resolver,
    pub(crate) store: Store,
    pub(crate) outbox: Option<Outbox>,
    pub(crate) websocket: Option<Arc<WebSocketMetrics>>,
    pub(crate) condition: Option<Condition>,
    pub(crate) level: VerifyLevel,
    /// Metrics of the recipient.
    pub(crate) more: Option<Arc<dyn MoreSeries>>,
}

impl Collector for FirehoseSeries {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let metrics = self.metrics.snapshot();
        let mut page = Page { encoder, stats: &self.stats };
        page.stream(&metrics.last_seqs, &metrics.cursors)?;
        page.skipped_seqs(&metrics.skipped_seqs)?;
        page.counters("events", "Events received", "kind", kinds(&metrics.events))?;
        page.counters("event_bytes", "Bytes of events received", "kind", kinds(&metrics.bytes))?;
        page.counters("verdicts", "Events by verdict", "code", counts(&metrics.verdicts))?;
        let level = [(self.level.name(), 1.0)];
        page.gauges("verified_against", "Level of proof for events", "level", level)?;
        let name = "invalid_records";
        page.counter(name, "Invalid records in verified data", metrics.invalid_records)?;
        self.keys(&mut page, &metrics)?;
        page.hosts(&metrics.notices)?;
        let queue = [
            ("under_way", metrics.in_flight),
            ("parked", metrics.awaiting_key),
            ("held", metrics.awaiting_repo),
        ];
        page.queue(&queue, metrics.dropped)?;
        page.gauge("queue_bytes", "Bytes of those", metrics.in_flight_bytes as f64)?;
        self.accounts(&mut page, &metrics)?;
        self.outbox(&mut page)?;
        self.websocket(&mut page)?;
        self.condition(&mut page)?;
        if let Some(more) = &self.more {
            more.encode(&mut page.encoder)?;
        }
        page.histograms("stage_seconds", "Duration of a stage", &stages(&metrics))
    }
}

fn stages(metrics: &MetricsSnapshot) -> [(&'static str, &DurationHistogram); 6] {
    [
        ("judge", &metrics.verify_time),
        ("deliver", &metrics.lag),
        ("handle", &metrics.handler_time),
        ("key_lookup", &metrics.key_lookup_time),
        ("resync", &metrics.resync_time),
        ("checkpoint", &metrics.checkpoint_time),
    ]
}

impl FirehoseSeries {
    fn keys(&self, page: &mut Page<'_, '_>, metrics: &MetricsSnapshot) -> fmt::Result {
        let resolver = self.resolver.stats();
        let lookups =
            [("memory", resolver.hits), ("network", resolver.lookups), ("stale", resolver.stale)];
        page.counters("identity_lookups", "Identity lookups by source", "from", lookups)?;
        page.counter("identity_errors", "Failed identity lookups", resolver.errors)?;
        page.counter("key_lookups", "Key lookups", metrics.key_lookups)?;
        page.counter("key_doubts", "Keys refreshed after a bad signature", metrics.key_refreshes)?;
        page.counter("key_retries", "Key lookups to be repeated", metrics.key_retries)?;
        page.counter("key_failures", "Keys not found", metrics.key_failures)?;
        page.counter("status_lookups", "Statuses asked of servers", metrics.status_lookups)?;
        let name = "statuses_unconfirmed";
        page.counter(name, "Those without an answer", metrics.statuses_unconfirmed)?;
        let cache = [("hit", metrics.cache_hits), ("miss", metrics.cache_misses)];
        page.counters("key_cache", "Signatures by use of the key cache", "result", cache)
    }

    fn condition(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let Some(counts) = self.condition.as_ref().map(Condition::counts) else { return Ok(()) };
        let results = [
            ("matched", &counts.matched),
            ("unmatched", &counts.unmatched),
            ("failed", &counts.failed),
            ("too_large", &counts.too_large),
        ];
        let results = results.map(|(result, count)| (result, count.load(Relaxed)));
        page.counters("where", "Operations and records by the result of --where", "result", results)
    }

    fn accounts(&self, page: &mut Page<'_, '_>, metrics: &MetricsSnapshot) -> fmt::Result {
        let resyncs = [("done", metrics.resyncs_done), ("failed", metrics.resyncs_failed)];
        page.counters("resyncs", "Repositories resynchronized", "result", resyncs)?;
        let running = metrics.resyncs_running as f64;
        page.gauge("resyncs_running", "Resyncs in progress", running)?;
        let behind = metrics.accounts_behind as f64;
        page.gauge("accounts_behind", "Accounts whose revisions go back", behind)?;
        let delayed = metrics.resyncs_delayed as f64;
        page.gauge("resyncs_delayed", "Failed resyncs that wait to be repeated", delayed)?;
        let (used, peak) = (metrics.resync_bytes as f64, metrics.resync_bytes_peak as f64);
        page.gauge("resync_bytes", "Bytes of repositories that are received or in use", used)?;
        page.gauge("resync_bytes_peak", "The largest number of these bytes", peak)?;
        let histories = self.stats.histories.counts().map(|(state, count)| (state, count as f64));
        page.gauges("histories", "Accounts with a history in this run", "state", histories)?;
        let (all, unsaved) = self.store.in_memory();
        let accounts = [("saved", all.saturating_sub(unsaved)), ("unsaved", unsaved)];
        let accounts = accounts.map(|(state, count)| (state, count as f64));
        page.gauges("accounts_in_memory", "Accounts in memory", "state", accounts)?;
        let (count, limit) = self.store.without_head().unwrap_or_default();
        let name = "accounts_without_commit";
        page.gauge(name, "Stored accounts of which no commit is known", count.into())?;
        let name = "accounts_without_commit_limit";
        page.gauge(name, "Maximum number of those; more are dropped", limit.into())
    }

    fn outbox(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let Some(outbox) = &self.outbox else { return Ok(()) };
        let status = outbox.status();
        page.gauge("outbox_events", "Events in the outbox", status.events as f64)?;
        page.gauge("outbox_bytes", "Bytes of those", status.bytes as f64)?;
        page.gauge("outbox_age_seconds", "Age of the oldest of those", status.age.as_secs_f64())?;
        let is_full = f64::from(u8::from(status.reached.is_some()));
        page.gauge("outbox_full", "Whether the stream waits for room in the outbox", is_full)?;
        let undelivered = status.consumers.iter().map(|of| (&of.name, of.behind as f64));
        let name = "undelivered_events";
        page.gauges(
            name,
            "Events that a destination has not acknowledged",
            "destination",
            undelivered,
        )?;
        let refused = status.consumers.iter();
        let refused = refused.map(|of| (&of.name, refused_events::bytes(outbox, &of.name) as f64));
        let help =
            "Bytes of the events that a destination has refused, in files next to the outbox";
        page.gauges("refused_bytes", help, "destination", refused)
    }

    fn websocket(&self, page: &mut Page<'_, '_>) -> fmt::Result {
        let Some(metrics) = &self.websocket else { return Ok(()) };
        let connections = [
            ("opened", metrics.connections.load(Relaxed)),
            ("refused", metrics.refused.load(Relaxed)),
            ("broken", metrics.violations.load(Relaxed)),
        ];
        let name = "websocket_connections";
        page.counters(name, "Connections of WebSocket clients", "result", connections)?;
        let messages = [
            ("sent", metrics.sent.load(Relaxed)),
            ("repeated", metrics.repeated.load(Relaxed)),
            ("acknowledged", metrics.acknowledged.load(Relaxed)),
            ("ignored", metrics.ignored.load(Relaxed)),
        ];
        let help = "Messages to WebSocket clients, and their acknowledgements";
        page.counters("websocket_messages", help, "what", messages)
    }
}

/// The series of a Jetstream, read at every scrape.
#[derive(Debug)]
pub(crate) struct JetstreamSeries {
    pub(crate) stats: Arc<RunStats>,
    pub(crate) counts: Arc<Mutex<JetstreamCounts>>,
}

/// The counts of received and printed events of a run of a Jetstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct JetstreamCounts {
    /// The cursor of the last event received, by host.
    pub(crate) last_seqs: Vec<Option<u64>>,
    /// The cursor up to which all lines are written, by host.
    pub(crate) cursors: Vec<Option<u64>>,
    pub(crate) events: BTreeMap<&'static str, u64>,
    pub(crate) verdicts: BTreeMap<&'static str, u64>,
    pub(crate) notices: BTreeMap<&'static str, u64>,
    /// Number of lines not yet written.
    pub(crate) in_flight: usize,
}

impl Collector for JetstreamSeries {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let read = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut page = Page { encoder, stats: &self.stats };
        page.stream(&read.last_seqs, &read.cursors)?;
        page.counters("events", "Events received", "kind", counts(&read.events))?;
        page.counters("verdicts", "Events by verdict", "code", counts(&read.verdicts))?;
        page.hosts(&read.notices)?;
        page.queue(&[("under_way", read.in_flight)], 0)
    }
}

/// A page of series in the making.
struct Page<'e, 's> {
    encoder: DescriptorEncoder<'e>,
    stats: &'s RunStats,
}

impl Page<'_, '_> {
    /// The series of every stream.
    fn stream(&mut self, last_seqs: &[Option<u64>], cursors: &[Option<u64>]) -> fmt::Result {
        let stats = self.stats;
        let by_host = |numbers: &[Option<u64>]| -> Vec<(String, f64)> {
            let known = { numbers.iter().enumerate() }.filter_map(|(host, number)| {
                Some((stats.host(host).to_owned(), (*number)? as f64))
            });
            known.collect()
        };
        let (last_seqs, cursors) = (by_host(last_seqs), by_host(cursors));
        self.gauges("last_seq", "Last sequence number received", "host", last_seqs)?;
        self.gauges("cursor", "Sequence number up to which all is acked", "host", cursors)?;
        let lag = stats.lag_seconds().unwrap_or_default();
        self.gauge("lag_seconds", "Age of the last event on arrival", lag)
    }

    /// The sequence numbers that the hosts skipped.
    fn skipped_seqs(&mut self, skipped: &[u64]) -> fmt::Result {
        let stats = self.stats;
        let skipped = skipped.iter().copied().chain(std::iter::repeat(0));
        let by_host = stats.host_names().zip(skipped);
        self.counters("skipped_seqs", "Sequence numbers skipped", "host", by_host)
    }

    /// Connections, refusals and delays of every host, and the notices.
    fn hosts(&mut self, notices: &BTreeMap<&'static str, u64>) -> fmt::Result {
        let (stats, host_stats) = (self.stats, self.stats.host_stats());
        let hosts = || stats.host_names().zip(&host_stats);
        let opened = hosts().map(|(host, of)| (host, of.connections));
        self.counters("connections", "Streams opened", "host", opened)?;
        let reopened = hosts().map(|(host, of)| (host, of.connections.saturating_sub(1)));
        self.counters("reconnects", "Streams reopened", "host", reopened)?;
        let backoff = hosts().map(|(host, of)| (host, of.backoff.as_secs_f64()));
        self.gauges("backoff_seconds", "Current delay of a reconnection", "host", backoff)?;
        let mut refusals = self.begin("refusals", "Streams refused", MetricType::Counter)?;
        for (host, of) in hosts() {
            for (status, count) in &of.refusals {
                let labels = [("host", host.to_owned()), ("status", status.to_string())];
                let mut family = refusals.encode_family(&labels)?;
                family.encode_counter::<NoLabelSet, _, u64>(count, None)?;
            }
        }
        self.counters("notices", "Notices of connections", "notice", counts(notices))
    }

    /// Events in flight, dropped events and lines.
    fn queue(&mut self, states: &[(&str, usize)], dropped: u64) -> fmt::Result {
        let states = states.iter().map(|(state, count)| (*state, *count as f64));
        self.gauges("queue_events", "Events not yet acked", "state", states)?;
        self.counter("dropped", "Events dropped", dropped)?;
        self.counter("lines", "Lines written", self.stats.lines.load(Relaxed))
    }

    fn begin<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.encoder.encode_descriptor(name, help, None, kind)
    }

    fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
    }

    fn counters<'c>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counts: impl IntoIterator<Item = (&'c str, u64)>,
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Counter)?;
        for (value, count) in counts {
            let labels = [(label, value)];
            let mut family = metric.encode_family(&labels)?;
            family.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.begin(name, help, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauges<L: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (L, f64)>,
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Gauge)?;
        for (of, value) in values {
            metric.encode_family(&[(label, of.as_ref())])?.encode_gauge(&value)?;
        }
        Ok(())
    }

    fn histograms(
        &mut self,
        name: &str,
        help: &str,
        stages: &[(&str, &DurationHistogram)],
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Histogram)?;
        for (stage, durations) in stages {
            let last = durations.buckets.len() - 1;
            let end =
                |at: usize| if at == last { f64::INFINITY } else { (1u64 << at) as f64 / 1e6 };
            let counts = durations.buckets.iter().enumerate();
            let buckets: Vec<_> = counts.map(|(at, count)| (end(at), *count)).collect();
            let (sum, count) = (durations.sum_micros as f64 / 1e6, durations.count());
            let labels = [("stage", *stage)];
            let mut family = metric.encode_family(&labels)?;
            family.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

fn counts<'c>(counts: &'c BTreeMap<&'static str, u64>) -> impl Iterator<Item = (&'c str, u64)> {
    counts.iter().map(|(name, count)| (*name, *count))
}

fn kinds(counts: &[(FrameKind, u64)]) -> impl Iterator<Item = (&'static str, u64)> {
    counts.iter().map(|(kind, count)| (kind.name(), *count))
}
