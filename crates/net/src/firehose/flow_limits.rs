//! Limits on events in flight.

use std::time::Duration;

/// Limits on events in flight, from arrival to acknowledgement. At a limit reading stops, and the server
/// has to wait (backpressure); no event is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowLimits {
    /// Maximum number of events in flight, at least one. 32,768.
    pub max_events: usize,
    /// Maximum size of their frames in bytes. 128 MiB.
    pub max_bytes: usize,
    /// Size in bytes, per worker, of the events in all inboxes at which nothing more is read until half of them are
    /// taken: more would take memory and not be verified sooner. 2 MiB.
    pub max_queued_bytes: usize,
    /// Maximum number of an account's events that are parked until its repository or, for `did:web`, its key is
    /// known. Beyond, they are delivered without: desynchronized, or with an unknown key. 2,048.
    pub max_account_events: usize,
    /// Maximum size of those in bytes. 64 MiB.
    pub max_account_bytes: usize,
    /// Maximum number of events of all `did:web` accounts that are parked until a key is known. Beyond, events
    /// are delivered with an unknown key. Events of `did:plc` accounts wait for the directory, up to
    /// [`max_directory_key_bytes`](Self::max_directory_key_bytes). 8,192.
    pub max_host_key_events: usize,
    /// Maximum size of those in bytes. 32 MiB.
    pub max_host_key_bytes: usize,
    /// Size in bytes of the events of `did:plc` accounts that are parked until a key is known, at which nothing more is read
    /// until half of them are released. 32 MiB.
    pub max_directory_key_bytes: usize,
    /// Maximum number of the parked events of `did:web` accounts under one registrable domain. 2,048.
    pub max_domain_key_events: usize,
    /// Maximum time for which events of a `did:web` account are parked until its key is known; meanwhile they
    /// hold back the cursor. It also bounds a single request to the directory. 30 seconds.
    pub max_key_wait: Duration,
    /// Maximum number of events of all accounts that are parked until a repository is resynced. 8,192.
    pub max_held_events: usize,
    /// Maximum size of those in bytes. 64 MiB.
    pub max_held_bytes: usize,
    /// Maximum time for which events are parked until a repository is resynced or a status is confirmed; meanwhile
    /// they hold back the cursor. One minute.
    pub max_hold: Duration,
    /// Maximum number of events that are verified together. 128.
    pub max_batch: usize,
    /// Maximum time for which a worker with few events waits for more, to verify them together. It waits only while the
    /// stream brings several within this time. 2 milliseconds; zero never waits.
    pub max_gather: Duration,
}

impl Default for FlowLimits {
    fn default() -> Self {
        Self {
            max_events: 32 << 10,
            max_bytes: 128 << 20,
            max_queued_bytes: 2 << 20,
            max_account_events: 2 << 10,
            max_account_bytes: 64 << 20,
            max_host_key_events: 8 << 10,
            max_host_key_bytes: 32 << 20,
            max_directory_key_bytes: 32 << 20,
            max_domain_key_events: 2 << 10,
            max_key_wait: Duration::from_secs(30),
            max_held_events: 8 << 10,
            max_held_bytes: 64 << 20,
            max_hold: Duration::from_secs(60),
            max_batch: 128,
            max_gather: Duration::from_millis(2),
        }
    }
}
