//! Counters of a server, and their series.
//!
//! | series | labels |
//! |---|---|
//! | `serve_clients` | `form`: frames, jetstream-v1, jetstream-v2 |
//! | `serve_connections_total` | `form`, `result`: opened, dropped, gave-way, too-slow |
//! | `serve_sent_events_total`, `serve_sent_bytes_total` | `form` |
//! | `serve_refused_requests_total`, `serve_requests_total` | |
//! | `serve_stored_events_total`, `serve_unproved_events_total`, `serve_repeated_events_total` | |
//! | `serve_window_seconds`, `serve_directory_lag_seconds`, `serve_storage_waits`, `serve_crawled_hosts` | |

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use follower::MoreSeries;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::form::FormIndex;
use crate::shared::Shared;

/// The counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    forms: [FormCounts; 3],
    /// Requests that were answered, without the streams.
    pub(crate) requests: AtomicU64,
    /// Requests that were refused.
    pub(crate) refused: AtomicU64,
    /// Events that were stored.
    pub(crate) stored: AtomicU64,
    /// Events that are not proved, and so not served.
    pub(crate) unproved: AtomicU64,
    /// Events that were stored before.
    pub(crate) repeated: AtomicU64,
}

/// The counters of a form.
#[derive(Debug, Default)]
pub(crate) struct FormCounts {
    pub(crate) open: AtomicU64,
    pub(crate) opened: AtomicU64,
    /// Clients that broke a rule, or took nothing for too long.
    pub(crate) dropped: AtomicU64,
    /// Clients whose place another one needed.
    pub(crate) gave_way: AtomicU64,
    /// Clients that were too far behind.
    pub(crate) too_slow: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) sent_bytes: AtomicU64,
}

/// A counter of a form.
type FormCount = fn(&FormCounts) -> &AtomicU64;

impl Metrics {
    pub(crate) fn form(&self, index: FormIndex) -> &FormCounts {
        &self.forms[index as usize]
    }

    /// Number of clients of all forms.
    pub(crate) fn open_clients(&self) -> u64 {
        self.by_form().map(|(_, counts)| counts.open.load(Relaxed)).sum()
    }

    fn by_form(&self) -> impl Iterator<Item = (FormIndex, &FormCounts)> {
        FormIndex::ALL.into_iter().map(|index| (index, self.form(index)))
    }
}

/// The series of a server, read at every scrape.
#[derive(Debug)]
pub(crate) struct ServeSeries(pub(crate) Arc<Shared>);

impl MoreSeries for ServeSeries {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let metrics = &self.0.metrics;
        let help = "Clients of streams";
        let mut family =
            encoder.encode_descriptor("serve_clients", help, None, MetricType::Gauge)?;
        for (form, counts) in metrics.by_form() {
            let labels = [("form", form.name())];
            let open = counts.open.load(Relaxed) as f64;
            ConstGauge::new(open).encode(family.encode_family(&labels)?)?;
        }
        let help = "Connections of clients of streams";
        let mut family =
            encoder.encode_descriptor("serve_connections", help, None, MetricType::Counter)?;
        for (form, counts) in metrics.by_form() {
            let results = [
                ("opened", &counts.opened),
                ("dropped", &counts.dropped),
                ("gave-way", &counts.gave_way),
                ("too-slow", &counts.too_slow),
            ];
            for (result, count) in results {
                let labels = [("form", form.name()), ("result", result)];
                let mut of_labels = family.encode_family(&labels)?;
                of_labels.encode_counter::<NoLabelSet, _, u64>(&count.load(Relaxed), None)?;
            }
        }
        let of_form: [(&str, &str, FormCount); 2] = [
            ("serve_sent_events", "Events sent to clients", |counts| &counts.sent),
            ("serve_sent_bytes", "Bytes of these", |counts| &counts.sent_bytes),
        ];
        for (name, help, count) in of_form {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (form, counts) in metrics.by_form() {
                let labels = [("form", form.name())];
                let mut of_labels = family.encode_family(&labels)?;
                let count = count(counts).load(Relaxed);
                of_labels.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        if let Some(consumers) = &self.0.consumers {
            let help = "Events that wait for a consumer's acknowledgement";
            let name = "serve_consumer_events";
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for consumer in consumers.status().consumers {
                let labels = [("consumer", &*consumer.name)];
                ConstGauge::new(consumer.behind as f64).encode(family.encode_family(&labels)?)?;
            }
        }
        let counters = [
            ("serve_requests", "Requests that were answered", &metrics.requests),
            ("serve_refused_requests", "Requests that were refused", &metrics.refused),
            ("serve_stored_events", "Events that were stored", &metrics.stored),
            ("serve_unproved_events", "Events that were not proved", &metrics.unproved),
            ("serve_repeated_events", "Events that were stored before", &metrics.repeated),
        ];
        for (name, help, count) in counters {
            let count = ConstCounter::new(count.load(Relaxed));
            count.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        let gauges = [
            ("serve_window_seconds", "Time that the stored events span", self.0.window_seconds()),
            (
                "serve_directory_lag_seconds",
                "Time by which the directory is behind",
                self.0.directory_lag(),
            ),
        ];
        let hosts = self.0.options.crawl.as_ref().map_or(0, |crawl| crawl.len());
        let crawled = ("serve_crawled_hosts", "Hosts of lists, or that asked", hosts as f64);
        let waits = if self.0.log.wal.obstacle().is_some() { 1.0 } else { 0.0 };
        let help = "Whether events wait because they cannot be stored";
        let waits = ("serve_storage_waits", help, waits);
        for (name, help, value) in gauges.into_iter().chain([waits, crawled]) {
            let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(encoder)?;
        }
        Ok(())
    }
}
