//! Which series are there?
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
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use wireproof::net::firehose::{Counts, Durations};

use super::super::watch::Watch;

/// All series of a run, as they are when somebody asks.
#[derive(Debug)]
pub(super) struct Series(pub(super) Arc<Watch>);

impl Collector for Series {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (watch, counts) = (&*self.0, self.0.counters.counts());
        let mut page = Page(encoder);
        streams(&mut page, watch, &counts)?;
        keys(&mut page, watch, &counts)?;
        hosts(&mut page, watch, &counts)?;
        queues(&mut page, watch, &counts)?;
        page.histograms("stage_seconds", "How long a stage takes", &stages(&counts))
    }
}

fn streams(page: &mut Page<'_>, watch: &Watch, counts: &Counts) -> fmt::Result {
    let of_hosts = |seqs: &[Option<u64>]| -> Vec<(String, f64)> {
        let known = seqs.iter().enumerate().filter_map(|(host, seq)| Some((host, (*seq)?)));
        known.map(|(host, seq)| (watch.host(host).to_owned(), seq as f64)).collect()
    };
    page.gauges("last_seq", "The last number that came", "host", &of_hosts(&counts.last_seqs))?;
    let cursors = of_hosts(&counts.cursors);
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

fn keys(page: &mut Page<'_>, watch: &Watch, counts: &Counts) -> fmt::Result {
    let resolver = watch.resolver.counts();
    let lookups =
        [("memory", resolver.hits), ("network", resolver.lookups), ("stale", resolver.stale)];
    page.counters("identity_lookups", "Answers to who an account is", "from", &lookups)?;
    page.counter("identity_errors", "Lookups that ended with an error", resolver.errors)?;
    page.counter("key_lookups", "Keys that were looked for", counts.key_lookups)?;
    page.counter("key_doubts", "Keys that a signature cast doubt on", counts.key_doubts)?;
    page.counter("key_failures", "Keys that were not found", counts.key_failures)?;
    let cache = [("hit", counts.cache_hits), ("miss", counts.cache_misses)];
    page.counters("key_cache", "Signatures by whether the key was prepared", "result", &cache)
}

fn hosts(page: &mut Page<'_>, watch: &Watch, counts: &Counts) -> fmt::Result {
    let manners = watch.manners();
    let all = || watch.hosts.iter().zip(&manners);
    let connections: Vec<_> = all().map(|(host, of)| (host.as_str(), of.connections)).collect();
    page.counters("connections", "Streams that were opened", "host", &connections)?;
    let again = all().map(|(host, of)| (host.as_str(), of.connections.saturating_sub(1)));
    page.counters("reconnects", "Streams opened once more", "host", &again.collect::<Vec<_>>())?;
    let waits = all().map(|(host, of)| (host.clone(), of.waiting.as_secs_f64()));
    page.gauges(
        "backoff_seconds",
        "How long the host is waited for",
        "host",
        &waits.collect::<Vec<_>>(),
    )?;
    let mut refusals = page.begin("refusals", "Streams refused", MetricType::Counter)?;
    for (host, of) in all() {
        for (status, count) in &of.refusals {
            let labels = [("host", host.clone()), ("status", status.to_string())];
            refusals.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
    }
    let notices: Vec<_> = counts.notices.iter().map(|(name, count)| (*name, *count)).collect();
    page.counters("notices", "What connections did", "notice", &notices)
}

fn queues(page: &mut Page<'_>, watch: &Watch, counts: &Counts) -> fmt::Result {
    let queue = [("under_way", counts.under_way), ("parked", counts.parked), ("held", counts.held)];
    let queue = queue.map(|(state, count)| (state.to_owned(), count as f64));
    page.gauges("queue_events", "Events that are not acknowledged yet", "state", &queue)?;
    page.gauge("queue_bytes", "Bytes of those", counts.under_way_bytes as f64)?;
    page.counter("dropped", "Events that were dropped", counts.dropped)?;
    page.counter("lines", "Lines that were written", watch.lines.load(Relaxed))?;
    let resyncs = [("done", counts.resynced), ("failed", counts.resyncs_failed)];
    page.counters("resyncs", "Repositories fetched anew", "result", &resyncs)?;
    page.gauge("resyncs_running", "Repositories being fetched", counts.resyncing as f64)?;
    let (all, unsaved) = watch.store.in_memory();
    let accounts = [("saved", all.saturating_sub(unsaved)), ("unsaved", unsaved)];
    let accounts = accounts.map(|(state, count)| (state.to_owned(), count as f64));
    page.gauges("accounts_in_memory", "Accounts in memory", "state", &accounts)
}

fn stages(counts: &Counts) -> [(&'static str, &Durations); 6] {
    [
        ("judge", &counts.judging),
        ("deliver", &counts.lag),
        ("handle", &counts.handling),
        ("key_lookup", &counts.key_lookup),
        ("resync", &counts.resync),
        ("checkpoint", &counts.journaling),
    ]
}

/// A page in the making.
struct Page<'e>(DescriptorEncoder<'e>);

impl Page<'_> {
    fn begin<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, kind)
    }

    fn counter(&mut self, name: &str, help: &str, count: u64) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
    }

    fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counts: &[(&str, u64)],
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Counter)?;
        for (value, count) in counts {
            let labels = [(label, *value)];
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.begin(name, help, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn gauges(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: &[(String, f64)],
    ) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Gauge)?;
        for (of, value) in values {
            metric.encode_family(&[(label, of.as_str())])?.encode_gauge(value)?;
        }
        Ok(())
    }

    fn histograms(&mut self, name: &str, help: &str, stages: &[(&str, &Durations)]) -> fmt::Result {
        let mut metric = self.begin(name, help, MetricType::Histogram)?;
        for (stage, durations) in stages {
            let last = durations.buckets.len() - 1;
            let end =
                |at: usize| if at == last { f64::INFINITY } else { (1u64 << at) as f64 / 1e6 };
            let counts = durations.buckets.iter().enumerate();
            let buckets: Vec<_> = counts.map(|(at, count)| (end(at), *count)).collect();
            let sum = durations.sum_micros as f64 / 1e6;
            let labels = [("stage", *stage)];
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                sum,
                durations.count(),
                &buckets,
                None,
            )?;
        }
        Ok(())
    }
}
