//! The local clock, compared with the clocks of servers when events come from the future.
//!
//! An event whose revision is too far ahead of the clock is rejected, and the cursor passes it. With a clock
//! that is behind, every event would be lost in that way. So such events wait for the `Date` of a
//! server's response: if that explains them, the run fails with the cursor before them; otherwise they are
//! delivered as rejected. If no server reports its time, the majority of recent events decides.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::http::{Client, Limits, Url};

/// The state of the local clock.
#[derive(Debug, Default)]
pub(super) struct LocalClock {
    state: Mutex<ClockState>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct ClockState {
    reading: Reading,
    /// The accounts of the latest judged events, hashed, and whether they came from the future.
    recent: VecDeque<(u64, bool)>,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, Default)]
enum Reading {
    #[default]
    None,
    /// Servers are being asked.
    Pending,
    /// How far the clock was behind at this time; `None` if no server reported its time.
    Taken(Option<Duration>, Instant),
}

/// Why an event comes from the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Future {
    /// Unknown until servers have reported their time.
    Undecided,
    /// The clock of its account is ahead.
    OfAccount,
    /// The local clock is behind by this time.
    OfLocalClock(Duration),
}

impl LocalClock {
    /// Records judged events: their hashed accounts, and whether they come from the future.
    pub(super) fn record(&self, judged: impl Iterator<Item = (u64, bool)>) {
        let mut state = self.lock();
        for event in judged {
            if state.recent.len() == MAX_RECENT {
                state.recent.pop_front();
            }
            state.recent.push_back(event);
        }
    }

    /// Decides about an event that is `ahead` of the local clock, `excess` more than allowed. Servers are
    /// asked if there is no recent comparison.
    pub(super) fn decide(&self, ahead: Duration, excess: Duration, now: Instant) -> Future {
        let mut state = self.lock();
        match state.reading {
            Reading::Taken(behind, at) if now.saturating_duration_since(at) < MAX_AGE => {
                match behind {
                    Some(behind) if behind >= excess.max(MIN_BEHIND) => {
                        Future::OfLocalClock(behind)
                    }
                    None if state.is_mostly_future() => Future::OfLocalClock(ahead),
                    _ => Future::OfAccount,
                }
            }
            Reading::Pending => Future::Undecided,
            _ => {
                state.reading = Reading::Pending;
                self.asked.notify_one();
                Future::Undecided
            }
        }
    }

    /// Whether servers are being asked.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self.lock().reading, Reading::Pending)
    }

    /// Asks servers for the time whenever that is needed, forever. The first answer counts.
    pub(super) async fn compare(&self, http: &Client, servers: &[Url]) {
        loop {
            self.asked.notified().await;
            let behind = tokio::time::timeout(MAX_ASKING, ask(http, servers)).await;
            self.set(behind.ok().flatten());
        }
    }

    fn set(&self, behind: Option<Duration>) {
        self.lock().reading = Reading::Taken(behind, Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClockState {
    /// Whether most of the recent events come from the future, from several accounts.
    fn is_mostly_future(&self) -> bool {
        let future = self.recent.iter().filter(|(_, is_future)| *is_future);
        let accounts: BTreeSet<u64> = future.clone().map(|(account, _)| *account).collect();
        accounts.len() >= MIN_ACCOUNTS && future.count() * 2 > self.recent.len()
    }
}

/// How far the local clock is behind the clock of the first server that reports its time.
async fn ask(http: &Client, servers: &[Url]) -> Option<Duration> {
    for server in servers {
        let url = time_url(server);
        let Ok(response) = http.open_direct(&url, &LIMITS).await else { continue };
        let date = response.headers().get("date").and_then(|date| date.to_str().ok());
        if let Some(time) = date.and_then(|date| httpdate::parse_http_date(date).ok()) {
            return Some(time.duration_since(SystemTime::now()).unwrap_or_default());
        }
    }
    None
}

/// The URL at which a server is asked for its time.
fn time_url(server: &Url) -> Url {
    let mut url = server.clone();
    let scheme = if matches!(url.scheme(), "wss" | "https") { "https" } else { "http" };
    // A URL with a host has a scheme that can be replaced.
    let _ = url.set_scheme(scheme);
    url.set_path("/");
    url
}

/// Maximum difference between honest clocks.
const MIN_BEHIND: Duration = Duration::from_secs(60);

/// Age at which a comparison is repeated.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Accounts that must have events from the future, if no server reports its time.
const MIN_ACCOUNTS: usize = 3;

/// Maximum time for asking all servers, while events wait.
const MAX_ASKING: Duration = Duration::from_secs(10);

const MAX_RECENT: usize = 256;

/// Only the head of the response is read.
const LIMITS: Limits = Limits {
    max_time: Duration::from_secs(5),
    idle_timeout: Duration::from_secs(5),
    ..Limits::DOCUMENT
};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::*;
    use crate::dns::LoopbackDns;
    use crate::egress::EgressPolicy;
    use crate::loopback_server::{response, serve};

    const AHEAD: Duration = Duration::from_secs(600);
    const EXCESS: Duration = Duration::from_secs(300);

    fn decide(clock: &LocalClock) -> Future {
        clock.decide(AHEAD, EXCESS, Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_waits_until_a_server_has_told_its_time() {
        let clock = LocalClock::default();
        assert_eq!(decide(&clock), Future::Undecided);
        assert!(clock.asked.notified().now_or_never().is_some());
        assert_eq!(decide(&clock), Future::Undecided);
        assert!(clock.asked.notified().now_or_never().is_none(), "servers are asked once");
        assert!(clock.is_pending());
        clock.set(Some(AHEAD));
        assert!(!clock.is_pending());
        assert_eq!(decide(&clock), Future::OfLocalClock(AHEAD));
        let later = Instant::now() + MAX_AGE;
        assert_eq!(clock.decide(AHEAD, EXCESS, later), Future::Undecided);
    }

    #[test]
    fn a_clock_that_does_not_explain_the_event_is_not_blamed() {
        let clock = LocalClock::default();
        for behind in [Duration::ZERO, MIN_BEHIND, EXCESS - Duration::from_secs(1)] {
            clock.set(Some(behind));
            assert_eq!(decide(&clock), Future::OfAccount);
        }
        clock.set(Some(EXCESS));
        assert_eq!(decide(&clock), Future::OfLocalClock(EXCESS));
        clock.set(Some(Duration::from_secs(1)));
        let barely = clock.decide(EXCESS, Duration::from_millis(1), Instant::now());
        assert_eq!(barely, Future::OfAccount, "clocks differ by a second");
    }

    #[test]
    fn without_a_server_most_events_of_several_accounts_decide() {
        let clock = LocalClock::default();
        clock.set(None);
        clock.record((0..20).map(|_| (1, true)));
        assert_eq!(decide(&clock), Future::OfAccount, "one account");
        clock.record([(2, true), (3, true)].into_iter());
        assert_eq!(decide(&clock), Future::OfLocalClock(AHEAD));
        clock.record((0..21).map(|_| (4, false)));
        assert_eq!(decide(&clock), Future::OfLocalClock(AHEAD));
        clock.record([(4, false)].into_iter());
        assert_eq!(decide(&clock), Future::OfAccount, "half of the events");
        clock.record((0..MAX_RECENT as u64).map(|account| (account, false)));
        assert_eq!(clock.lock().recent.len(), MAX_RECENT);
    }

    #[test]
    fn servers_of_streams_are_asked_at_their_root_over_http() {
        let asked = |url: &str| time_url(&url.parse().unwrap()).to_string();
        for secure in ["wss://relay.test/xrpc/x", "https://relay.test/z"] {
            assert_eq!(asked(secure), "https://relay.test/");
        }
        for plain in ["ws://localhost:2583/xrpc/x", "http://localhost:2583"] {
            assert_eq!(asked(plain), "http://localhost:2583/");
        }
    }

    /// The URL of a server whose responses have this header field.
    async fn server(field: String) -> Url {
        let port = serve(move |_| response(404, &format!("{field}\r\n"), "")).await;
        format!("ws://localhost:{port}/").parse().unwrap()
    }

    #[tokio::test]
    async fn the_first_server_that_reports_its_time_is_compared_with() {
        let client = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let date = httpdate::fmt_http_date(SystemTime::now() + 2 * AHEAD);
        let servers = [server("x: y".into()).await, server(format!("date: {date}")).await];
        let clock = Arc::<LocalClock>::default();
        assert_eq!(decide(&clock), Future::Undecided);
        let comparing = clock.clone();
        let compare = tokio::spawn(async move { comparing.compare(&client, &servers).await });
        while clock.is_pending() {
            tokio::task::yield_now().await;
        }
        let Future::OfLocalClock(behind) = decide(&clock) else { panic!("a clock that is behind") };
        assert!((AHEAD..=2 * AHEAD).contains(&behind), "{behind:?}");
        compare.abort();
    }
}
