//! The last event of every account, and why its last resync failed, for status reports.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use net::bounded_map::BoundedMap;
use net::firehose::{DeliveredEvent, ResyncError};

use super::stats::micros;

/// The last events of the accounts with the newest events, up to a limit. Nothing is kept unless it is enabled.
#[derive(Debug, Default)]
pub(super) struct AccountLog(Option<Mutex<BoundedMap<Box<str>, AccountEntry>>>);

/// The last known activity of an account.
#[derive(Clone, Debug, Default)]
pub(super) struct AccountEntry {
    pub(super) event: Option<SeenEvent>,
    /// Why its last resync failed, if no event is verified since.
    pub(super) failure: Option<String>,
    /// How its revisions go back, if no event is verified since.
    pub(super) going_back: Option<String>,
}

/// An event of an account.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenEvent {
    /// Index of the host.
    pub(super) host: usize,
    pub(super) seq: Option<u64>,
    pub(super) kind: &'static str,
    /// Time of arrival in microseconds since 1970.
    pub(super) received_micros: u64,
    pub(super) code: &'static str,
}

impl AccountLog {
    /// A log, which keeps nothing unless `is_enabled`.
    pub(super) fn new(is_enabled: bool) -> Self {
        Self(is_enabled.then(|| Mutex::new(BoundedMap::new(MAX_ACCOUNTS))))
    }

    /// Keeps an event as the last one of its account.
    pub(super) fn record(&self, event: &DeliveredEvent<'_>) {
        let Some(did) = event.did else { return };
        let code = event.verdict.code();
        let seen = SeenEvent {
            host: event.host.0,
            seq: event.seq,
            kind: event.kind.name(),
            received_micros: micros(event.received),
            code,
        };
        self.change(did, |entry| {
            entry.event = Some(seen);
            if code == "verified" {
                (entry.failure, entry.going_back) = (None, None);
            }
        });
    }

    /// Keeps why a resync failed.
    pub(super) fn record_failure(&self, did: &str, why: &ResyncError) {
        self.change(did, |entry| entry.failure = Some(why.to_string()));
    }

    /// Keeps that the revisions of an account go back.
    pub(super) fn record_going_back(&self, did: &str, how: String) {
        self.change(did, |entry| entry.going_back = Some(how));
    }

    /// The last known activity of an account.
    pub(super) fn entry(&self, did: &str) -> AccountEntry {
        let Some(map) = &self.0 else { return AccountEntry::default() };
        let map = map.lock().unwrap_or_else(PoisonError::into_inner);
        map.peek(did).cloned().unwrap_or_default()
    }

    fn change(&self, did: &str, change: impl FnOnce(&mut AccountEntry)) {
        let Some(map) = &self.0 else { return };
        let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
        match map.get_mut(did) {
            Some(entry) => change(entry),
            None => {
                let mut entry = AccountEntry::default();
                change(&mut entry);
                map.insert(did.into(), entry);
            }
        }
    }
}

/// Seconds since this time in microseconds since 1970.
pub(super) fn seconds_since(micros_of_event: u64) -> f64 {
    micros(SystemTime::now()).saturating_sub(micros_of_event) as f64 / 1e6
}

/// Maximum number of accounts.
const MAX_ACCOUNTS: usize = 65_536;
