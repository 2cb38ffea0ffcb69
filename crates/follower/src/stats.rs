//! Statistics of a run that the libraries do not keep: lines, the lag of events, and the hosts.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use atproto::event::Event;
use atproto::syntax::Datetime;
use net::firehose::Notice;
use net::websocket::DialFault;

use crate::first_contact::FirstContact;
use crate::stream::http_origin;

use super::history_progress::HistoryProgress;

/// Statistics of one run.
#[derive(Debug)]
pub(super) struct RunStats {
    /// The names of the hosts, by index.
    hosts: Box<[OnceLock<String>]>,
    /// The number of hosts that the arguments name.
    named_hosts: usize,
    /// Number of lines written.
    pub(super) lines: AtomicU64,
    /// Age of the last sampled event on arrival.
    lag_micros: AtomicI64,
    /// Arrival of the last sampled event, in microseconds since 1970.
    sampled_micros: AtomicU64,
    host_stats: Mutex<Vec<HostStats>>,
    /// Whether a host was reached.
    pub(super) contact: FirstContact,
    /// Progress of the histories.
    pub(super) histories: Arc<HistoryProgress>,
}

/// Statistics of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostStats {
    /// Whether a stream is open.
    pub(super) is_connected: bool,
    /// Number of streams opened.
    pub(super) connections: u64,
    /// Number of refused requests for a stream, by status.
    pub(super) refusals: Vec<(u16, u64)>,
    /// Current delay before a reconnection.
    pub(super) backoff: Duration,
}

impl RunStats {
    pub(super) fn new(hosts: Vec<String>) -> Self {
        Self::with_more(hosts, 0)
    }

    /// Of a run to which this many hosts may be added.
    pub(super) fn with_more(hosts: Vec<String>, more: usize) -> Self {
        let host_stats = Mutex::new(vec![HostStats::default(); hosts.len()]);
        let named_hosts = hosts.len();
        let hosts = hosts.into_iter().map(OnceLock::from);
        let hosts = hosts.chain(std::iter::repeat_with(OnceLock::new).take(more)).collect();
        Self {
            hosts,
            named_hosts,
            lines: AtomicU64::new(0),
            lag_micros: AtomicI64::new(0),
            sampled_micros: AtomicU64::new(0),
            host_stats,
            contact: FirstContact::new(),
            histories: Arc::default(),
        }
    }

    /// The name of a host.
    pub(super) fn host(&self, index: usize) -> &str {
        self.hosts.get(index).and_then(OnceLock::get).map_or("", String::as_str)
    }

    /// The names of the hosts, by index.
    pub(super) fn host_names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map_while(OnceLock::get).map(String::as_str)
    }

    /// Whether a host was added to the run, and is not named by the arguments.
    pub(super) fn is_added(&self, index: usize) -> bool {
        index >= self.named_hosts
    }

    /// Samples the lag of an event, at most every 50 ms.
    pub(super) fn sample_lag(&self, event: Option<&Event<'_>>, received: SystemTime) {
        self.sample(received, || {
            let time = Datetime::parse(event.and_then(time)?).ok()?;
            Some(time.unix_micros())
        });
    }

    /// Samples the lag of an event with this time in microseconds since 1970.
    pub(super) fn sample_lag_at(&self, micros: u64, received: SystemTime) {
        self.sample(received, || i64::try_from(micros).ok());
    }

    fn sample(&self, received: SystemTime, event_micros: impl FnOnce() -> Option<i64>) {
        let received = micros(received);
        let sampled = self.sampled_micros.load(Relaxed);
        if received.saturating_sub(sampled) < SAMPLE_EVERY_MICROS {
            return;
        }
        let Some(event_micros) = event_micros() else { return };
        self.sampled_micros.store(received, Relaxed);
        let lag = i64::try_from(received).unwrap_or(i64::MAX).saturating_sub(event_micros);
        self.lag_micros.store(lag, Relaxed);
    }

    /// Lag of the last sampled event in seconds; `None` before the first.
    pub(super) fn lag_seconds(&self) -> Option<f64> {
        let has_sample = self.sampled_micros.load(Relaxed) > 0;
        has_sample.then(|| self.lag_micros.load(Relaxed) as f64 / 1e6)
    }

    /// Counts a notice for its host.
    pub(super) fn record(&self, notice: &Notice) {
        let index = notice.host().0;
        if let (Notice::HostAdded { added, .. }, Some(name)) = (notice, self.hosts.get(index)) {
            name.get_or_init(|| http_origin(&added.url));
        }
        self.contact.record(self.host(index), notice);
        let mut hosts = self.lock();
        if hosts.len() <= index && index < self.hosts.len() {
            hosts.resize(index + 1, HostStats::default());
        }
        let Some(host) = hosts.get_mut(index) else { return };
        match notice {
            Notice::Connected { .. } => {
                host.is_connected = true;
                host.connections += 1;
                host.backoff = Duration::ZERO;
            }
            Notice::Disconnected { .. } => host.is_connected = false,
            Notice::RetryScheduled { time, .. } => host.backoff = *time,
            Notice::ConnectFailed { error, .. } => {
                if let DialFault::Refused(refusal) = &error.fault {
                    host.record_refusal(refusal.status);
                }
            }
            _ => {}
        }
    }

    /// Whether the stream of any host is open.
    pub(super) fn is_connected(&self) -> bool {
        self.lock().iter().any(|host| host.is_connected)
    }

    /// The statistics of the hosts, by index.
    pub(super) fn host_stats(&self) -> Vec<HostStats> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<HostStats>> {
        self.host_stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostStats {
    fn record_refusal(&mut self, status: u16) {
        match self.refusals.iter_mut().find(|(other, _)| *other == status) {
            Some((_, count)) => *count += 1,
            None => self.refusals.push((status, 1)),
        }
    }
}

fn time<'e>(event: &Event<'e>) -> Option<&'e str> {
    match event {
        Event::Commit(commit) => Some(commit.time),
        Event::Sync(sync) => Some(sync.time),
        Event::Identity(identity) => Some(identity.time),
        Event::Account(account) => Some(account.time),
        _ => None,
    }
}

/// Microseconds since 1970.
pub fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

const SAMPLE_EVERY_MICROS: u64 = 50_000;
