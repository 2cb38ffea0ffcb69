//! What can be seen of a run from outside besides what the libraries count? How old events are when they
//! come, how many lines are out, and how hosts behave.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wireproof::atproto::event::Event;
use wireproof::atproto::syntax::Datetime;
use wireproof::net::firehose::Notice;
use wireproof::net::websocket::DialFault;

/// A run, watched.
#[derive(Debug)]
pub(super) struct Watch {
    /// The hosts, as they were given.
    pub(super) hosts: Vec<String>,
    /// How many lines were written.
    pub(super) lines: AtomicU64,
    /// How old the last event that we looked at was when it came.
    lag_micros: AtomicI64,
    /// When we looked.
    looked_micros: AtomicU64,
    manners: Mutex<Vec<Manners>>,
}

/// How a host behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manners {
    /// How often it let us in.
    pub(super) connections: u64,
    /// How often it answered the request for a stream with this status.
    pub(super) refusals: Vec<(u16, u64)>,
    /// How long we wait for it just now.
    pub(super) waiting: Duration,
}

impl Watch {
    pub(super) fn new(hosts: Vec<String>) -> Self {
        let manners = Mutex::new(vec![Manners::default(); hosts.len()]);
        let (lines, lag_micros, looked_micros) = Default::default();
        Self { hosts, lines, lag_micros, looked_micros, manners }
    }

    /// The name of a host.
    pub(super) fn host(&self, number: usize) -> &str {
        self.hosts.get(number).map_or("", String::as_str)
    }

    /// Looks at the age of an event, now and then.
    pub(super) fn see(&self, event: Option<&Event<'_>>, received: SystemTime) {
        self.look(received, || {
            let time = Datetime::parse(event.and_then(time)?).ok()?;
            Some(time.unix_micros())
        });
    }

    /// The same of an event that was told at this time, in microseconds since 1970.
    pub(super) fn see_told(&self, micros: u64, received: SystemTime) {
        self.look(received, || i64::try_from(micros).ok());
    }

    fn look(&self, received: SystemTime, told: impl FnOnce() -> Option<i64>) {
        let received = micros(received);
        let looked = self.looked_micros.load(Relaxed);
        if received.saturating_sub(looked) < LOOK_EVERY_MICROS {
            return;
        }
        let Some(told) = told() else { return };
        self.looked_micros.store(received, Relaxed);
        let lag = i64::try_from(received).unwrap_or(i64::MAX).saturating_sub(told);
        self.lag_micros.store(lag, Relaxed);
    }

    /// How old the last event that we looked at was when it came, in seconds. `None` before the first.
    pub(super) fn lag_seconds(&self) -> Option<f64> {
        let has_looked = self.looked_micros.load(Relaxed) > 0;
        has_looked.then(|| self.lag_micros.load(Relaxed) as f64 / 1e6)
    }

    pub(super) fn note(&self, notice: &Notice) {
        let mut manners = self.manners_of_all();
        let Some(host) = manners.get_mut(notice.host().0) else { return };
        match notice {
            Notice::Connected { .. } => {
                host.connections += 1;
                host.waiting = Duration::ZERO;
            }
            Notice::RetryScheduled { time, .. } => host.waiting = *time,
            Notice::ConnectFailed { error, .. } => {
                if let DialFault::Refused(refusal) = &error.fault {
                    host.refuse(refusal.status);
                }
            }
            _ => {}
        }
    }

    /// How each host behaves.
    pub(super) fn manners(&self) -> Vec<Manners> {
        self.manners_of_all().clone()
    }

    fn manners_of_all(&self) -> MutexGuard<'_, Vec<Manners>> {
        self.manners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Manners {
    fn refuse(&mut self, status: u16) {
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

fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

const LOOK_EVERY_MICROS: u64 = 50_000;
