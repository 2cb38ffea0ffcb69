//! The first contact with hosts, which is bounded: a wrong name ends a run instead of being tried for ever.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use net::firehose::Notice;
use tokio::time::{Instant, sleep_until};

use crate::failure::Failure;
use crate::stream::notice_text;

/// Whether a run has reached one of its hosts.
#[derive(Debug)]
pub struct FirstContact {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_made: bool,
    /// The last failure of every host.
    failures: BTreeMap<String, String>,
}

impl FirstContact {
    /// With no host reached yet.
    pub fn new() -> Self {
        Self { state: Mutex::default() }
    }

    /// Learns of a connection, or of a failed one.
    pub fn record(&self, host: &str, notice: &Notice) {
        match notice {
            Notice::Connected { .. } => self.lock().is_made = true,
            Notice::ConnectFailed { .. } | Notice::HostExcluded { .. } => {
                let mut state = self.lock();
                if !state.is_made {
                    state.failures.insert(host.to_owned(), notice_text(host, notice));
                }
            }
            _ => {}
        }
    }

    /// Waits for `limit`, and returns the failure if no host is reached then. If one is, or there is no limit, it never returns.
    pub async fn missed(&self, limit: Option<Duration>) -> Failure {
        let Some(limit) = limit else { return pending().await };
        sleep_until(Instant::now() + limit).await;
        let state = self.lock().missed(limit);
        match state {
            Some(text) => Failure::Network(text),
            None => pending().await,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for FirstContact {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn missed(&self, limit: Duration) -> Option<String> {
        if self.is_made {
            return None;
        }
        let failures: Vec<&str> = self.failures.values().map(String::as_str).collect();
        let why = if failures.is_empty() { "no answer".to_owned() } else { failures.join("; ") };
        Some(format!("no event stream within {} s: {why}", limit.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_contact_the_failure_of_every_host_is_named_and_with_it_there_is_none() {
        let failures = [("b", "b: refused"), ("a", "a: no such name")];
        let failures = failures.map(|(host, text)| (host.to_owned(), text.to_owned())).into();
        let mut state = State { is_made: false, failures };
        let text = state.missed(Duration::from_secs(30)).unwrap();
        assert_eq!(text, "no event stream within 30 s: a: no such name; b: refused");
        state.is_made = true;
        assert_eq!(state.missed(Duration::from_secs(30)), None);
        let silent = State::default().missed(Duration::from_secs(5)).unwrap();
        assert_eq!(silent, "no event stream within 5 s: no answer");
    }
}
