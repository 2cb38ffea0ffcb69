//! Options and counters of a server.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Options of an [`ArchiveServer`](super::ArchiveServer).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The arrivals of the events that are served. Default: all.
    pub arrivals: RangeInclusive<i64>,
    /// Whether events that are sealed later are served too, and a client without a cursor begins there. Otherwise a
    /// client without a cursor begins with the first event, and the stream ends after the last one. Default: yes.
    pub follows: bool,
    /// Maximum number of events per second and client. Default: none.
    pub rate: Option<NonZeroU32>,
    /// Time after its arrival at which an event is served. Several writers seal at different times: with a delay that is
    /// longer than the time until all of them have sealed, events are in order of arrival. Default: zero.
    pub delay: Duration,
    /// Origins of web pages that may connect, such as `https://app.example`. Default: none.
    pub origins: Vec<String>,
    /// Maximum number of open WebSockets. Default: 16.
    pub max_connections: usize,
    /// Time without an event taken after which a client gives way to another one that finds all places in use. Default: 5 seconds.
    pub min_idle: Duration,
    /// Maximum time until a request has arrived. Default: 10 seconds.
    pub handshake_timeout: Duration,
    /// Maximum time without a byte from the client while nothing is sent, and without one taken by it while something is. Pings
    /// are sent three times as often. Default: 60 seconds.
    pub idle_timeout: Duration,
    /// Interval at which the archive is polled for sealed and hidden events. Default: 1 second.
    pub poll_interval: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            arrivals: i64::MIN..=i64::MAX,
            follows: true,
            rate: None,
            delay: Duration::ZERO,
            origins: Vec::new(),
            max_connections: 16,
            min_idle: Duration::from_secs(5),
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            poll_interval: Duration::from_secs(1),
        }
    }
}

/// Counters of a server.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ServeMetrics {
    /// WebSockets that are open.
    pub open: AtomicU64,
    /// WebSockets that were opened.
    pub opened: AtomicU64,
    /// Requests that were refused.
    pub refused: AtomicU64,
    /// WebSockets that were ended as the client broke a rule, or took nothing for too long.
    pub dropped: AtomicU64,
    /// WebSockets that were ended as another client needed the place.
    pub gave_way: AtomicU64,
    /// WebSockets whose client has received all events of a range.
    pub completed: AtomicU64,
    /// Events sent.
    pub sent: AtomicU64,
    /// Bytes of their messages.
    pub sent_bytes: AtomicU64,
    /// Events that clients did not get as they are stored without their frame.
    pub left_out: AtomicU64,
    /// Failed looks at the archive.
    pub failed_polls: AtomicU64,
}
