//! The series of an archive: of the run that writes it, and of its server.
//!
//! | series of `archive follow` | labels |
//! |---|---|
//! | `archive_unsealed_events`, `archive_unsealed_bytes`, `archive_unsealed_age_seconds` | |
//! | `archive_sealed_events_total`, `archive_sealed_files_total`, `archive_sealed_bytes_total`, `archive_seal_failures_total` | |
//!
//! | series of `archive serve` | labels |
//! |---|---|
//! | `archive_clients` | |
//! | `archive_connections_total` | `result`: opened, refused, dropped, gave-way |
//! | `archive_sent_events_total`, `archive_sent_bytes_total`, `archive_left_out_events_total`, `archive_failed_polls_total` | |

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use archive::{Sealed, ServeMetrics, Wal};
use follower::MoreSeries;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// The counts of a run that writes to an archive.
#[derive(Debug)]
pub(super) struct ArchiveCounts {
    wal: Arc<Wal>,
    events: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    pub(super) failures: AtomicU64,
}

impl ArchiveCounts {
    pub(super) fn new(wal: Arc<Wal>) -> Self {
        let (events, files, bytes, failures) = Default::default();
        Self { wal, events, files, bytes, failures }
    }

    /// Counts sealed events.
    pub(super) fn add(&self, sealed: &Sealed) {
        self.events.fetch_add(sealed.events, Relaxed);
        self.files.fetch_add(sealed.files, Relaxed);
        self.bytes.fetch_add(sealed.bytes, Relaxed);
    }
}

impl MoreSeries for ArchiveCounts {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let unsealed = self.wal.unsealed();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let age = unsealed.oldest.map_or(0.0, |oldest| (now - oldest as f64 / 1e6).max(0.0));
        gauge(
            encoder,
            "archive_unsealed_events",
            "Events in the write-ahead log",
            unsealed.events as f64,
        )?;
        gauge(
            encoder,
            "archive_unsealed_bytes",
            "Bytes of the write-ahead log",
            unsealed.bytes as f64,
        )?;
        let help = "Age of the oldest event in the write-ahead log";
        gauge(encoder, "archive_unsealed_age_seconds", help, age)?;
        counter(encoder, "archive_sealed_events", "Events sealed into the tables", &self.events)?;
        counter(encoder, "archive_sealed_files", "Files of these", &self.files)?;
        counter(encoder, "archive_sealed_bytes", "Bytes of these", &self.bytes)?;
        let help = "Failed attempts to seal the write-ahead log";
        counter(encoder, "archive_seal_failures", help, &self.failures)
    }
}

/// The series of a server, read at every scrape.
#[derive(Debug)]
pub(crate) struct ServeSeries(pub(crate) Arc<ServeMetrics>);

impl Collector for ServeSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (encoder, metrics) = (&mut encoder, &self.0);
        let open = metrics.open.load(Relaxed) as f64;
        gauge(encoder, "archive_clients", "Clients of the archive", open)?;
        let results = [
            ("opened", &metrics.opened),
            ("refused", &metrics.refused),
            ("dropped", &metrics.dropped),
            ("gave-way", &metrics.gave_way),
        ];
        let help = "Connections of clients of the archive";
        let mut connections =
            encoder.encode_descriptor("archive_connections", help, None, MetricType::Counter)?;
        for (result, count) in results {
            let labels = [("result", result)];
            let mut family = connections.encode_family(&labels)?;
            family.encode_counter::<NoLabelSet, _, u64>(&count.load(Relaxed), None)?;
        }
        counter(encoder, "archive_sent_events", "Events sent to clients", &metrics.sent)?;
        counter(encoder, "archive_sent_bytes", "Bytes of these", &metrics.sent_bytes)?;
        let help = "Events left out as they are stored without their frame";
        counter(encoder, "archive_left_out_events", help, &metrics.left_out)?;
        let help = "Failed looks at the archive";
        counter(encoder, "archive_failed_polls", help, &metrics.failed_polls)
    }
}

fn gauge(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    ConstGauge::new(value).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    count: &AtomicU64,
) -> fmt::Result {
    let count = ConstCounter::new(count.load(Relaxed));
    count.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}
