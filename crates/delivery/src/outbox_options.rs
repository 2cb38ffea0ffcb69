//! The bounds of an outbox, and how long it keeps data in memory.

use std::time::Duration;

/// Bounds of an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Number of events at which the source waits. Default: 1,000,000.
    pub max_events: u64,
    /// Size of all events in bytes at which the source waits; the file is some 10 % larger. Default: 1 GiB.
    pub max_bytes: u64,
    /// Age of the oldest event at which the source waits: events that a consumer leaves for so long need an operator,
    /// who removes the consumer or repairs it. No event is ever dropped for its age. Default: three days.
    pub max_age: Duration,
    /// Maximum file size in bytes, without its log. Default: the disk.
    pub max_file_bytes: Option<u64>,
    /// Number of records, of all accounts with a history, whose paths and hashes are remembered, about 60 bytes each: the
    /// next repository of an account beyond is delivered as a whole instead of its difference. Default: 10,000,000.
    pub max_records: u64,
    /// Size in bytes of the last events that are also kept in memory. Default: 4 MiB.
    pub recent_bytes: usize,
    /// Maximum time before an acknowledgement is stored; a crash in between repeats its event. Default: 200 ms.
    pub ack_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_events: 1_000_000,
            max_bytes: 1 << 30,
            max_age: Duration::from_secs(3 * 24 * 3600),
            max_file_bytes: None,
            max_records: 10_000_000,
            recent_bytes: 4 << 20,
            ack_interval: Duration::from_millis(200),
        }
    }
}

/// A bound of [`Options`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bound {
    /// The number of events.
    Events,
    /// Their size.
    Bytes,
    /// The age of the oldest one.
    Age,
}
