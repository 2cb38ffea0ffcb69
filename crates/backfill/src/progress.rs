//! The progress of a run: counts over all lists, and messages per list.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use archive::PageRow;
use indicatif::BinaryBytes;
use tokio::sync::mpsc::UnboundedSender;

/// Counts of this run. Messages go to the thread that shows them.
pub(crate) struct RunProgress {
    started: Instant,
    /// Number of lists that are being read.
    pub(crate) reading: AtomicU64,
    listed: AtomicU64,
    stored: AtomicU64,
    present: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    wire_bytes: AtomicU64,
    messages: UnboundedSender<String>,
}

/// Counts of a sweep over a list.
#[derive(Debug, Default)]
pub(crate) struct SweepCounts {
    listed: u64,
    stored: u64,
    present: u64,
    failed: u64,
    bytes: u64,
}

impl RunProgress {
    pub(crate) fn new(messages: UnboundedSender<String>) -> Self {
        let zero = AtomicU64::default;
        Self {
            started: Instant::now(),
            reading: zero(),
            listed: zero(),
            stored: zero(),
            present: zero(),
            failed: zero(),
            bytes: zero(),
            wire_bytes: zero(),
            messages,
        }
    }

    /// Shows a message.
    pub(crate) fn say(&self, message: String) {
        // Without a receiver the run is over.
        let _ = self.messages.send(message);
    }

    pub(crate) fn add(&self, row: &PageRow) {
        let counts = [
            (&self.listed, row.listed),
            (&self.stored, row.stored),
            (&self.present, row.present),
            (&self.failed, row.failures.len() as u64),
            (&self.bytes, row.bytes),
            (&self.wire_bytes, row.wire_bytes),
        ];
        for (count, added) in counts {
            count.fetch_add(added, Relaxed);
        }
    }

    /// A line for people.
    pub(crate) fn text(&self) -> String {
        let [reading, listed, stored, present, failed, bytes, wire_bytes] = [
            &self.reading,
            &self.listed,
            &self.stored,
            &self.present,
            &self.failed,
            &self.bytes,
            &self.wire_bytes,
        ]
        .map(|count| count.load(Relaxed));
        let rate = stored as f64 / self.started.elapsed().as_secs_f64().max(1.0);
        format!(
            "{reading} lists, {listed} accounts: {stored} stored, {present} present, {failed} failed; {} ({} received), {rate:.1} a second",
            BinaryBytes(bytes),
            BinaryBytes(wire_bytes)
        )
    }
}

impl SweepCounts {
    pub(crate) fn add(&mut self, row: &PageRow) {
        self.listed += row.listed;
        self.stored += row.stored;
        self.present += row.present;
        self.failed += row.failures.len() as u64;
        self.bytes += row.bytes;
    }

    /// The message at the end of a sweep.
    pub(crate) fn text(&self, list: &str, sweep: u32, odd_entries: u64) -> String {
        let Self { listed, stored, present, failed, bytes } = self;
        let odd = match odd_entries {
            0 => String::new(),
            odd => format!(", entries left out: {odd}"),
        };
        format!(
            "{list}: sweep {sweep}: {listed} accounts, {stored} stored ({}), {present} present, {failed} failed{odd}",
            BinaryBytes(*bytes)
        )
    }
}
