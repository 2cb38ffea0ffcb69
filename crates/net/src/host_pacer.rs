//! Rate of requests per host: a token bucket whose rate adapts to the host.
//!
//! The rate starts at eight requests a second and doubles with every second of answers until the host is overloaded for
//! the first time. From then on it grows by one request a second per second of answers. It is halved when the host
//! rejects a request without saying until when, or answers too slowly. A limit that the host states itself
//! (`Retry-After`, an exhausted window) is waited for exactly, and leaves the rate unchanged. If the host states in its answers
//! how many requests its window has left, no more are sent.
//!
//! Slow start and additive increase work as in TCP congestion control: RFC 5681.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::{Instant, sleep};

use crate::bounded_map::BoundedMap;
use crate::rate_limit::{RateLimited, RateLimiter};

/// Paces the requests to hosts, named by authority: the name, with the port unless it is the default.
#[derive(Debug)]
pub struct HostPacer {
    limiter: RateLimiter,
    max_rate: f64,
    hosts: Mutex<BoundedMap<Box<str>, Pace>>,
}

/// The pace of one host.
#[derive(Clone, Debug)]
struct Pace {
    /// Held by the request that waits for the next token, so that others sleep until it has one.
    turn: Arc<AsyncMutex<()>>,
    /// Requests a second.
    rate: f64,
    /// Whether the host was overloaded.
    has_overloaded: bool,
    /// When the bucket is full. A request moves it by the time of one at the rate.
    full_at: Instant,
}

/// How a host answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Within the time in which an idle host answers.
    InTime,
    /// With a rejection that says until when.
    Limited,
    /// Too late, or with another rejection.
    Overloaded,
}

impl HostPacer {
    /// A pacer that also honours the limits that `limiter` knows.
    pub fn new(limiter: RateLimiter) -> Self {
        Self { limiter, max_rate: MAX_RATE, hosts: Mutex::new(BoundedMap::new(MAX_HOSTS)) }
    }

    /// Limits the rate per host to `max_rate` requests a second, within the rate that the pacer allows.
    #[must_use]
    pub fn with_max_rate(self, max_rate: f64) -> Self {
        Self { max_rate: max_rate.clamp(MIN_RATE, MAX_RATE), ..self }
    }

    /// Waits until `host` may be asked.
    ///
    /// # Errors
    /// At once, if the host allows no request for longer than an hour.
    pub async fn until_ready(&self, host: &str) -> Result<(), RateLimited> {
        let turn = self.turn(host);
        let _turn = turn.lock().await;
        loop {
            let limited = self.limiter.remaining_with_taken(host);
            if limited > MAX_WAIT {
                return Err(RateLimited(limited));
            }
            let wait = match limited {
                Duration::ZERO => self.take(host, Instant::now()),
                limited => limited,
            };
            if wait.is_zero() {
                self.limiter.take(host);
                return Ok(());
            }
            sleep(wait).await;
        }
    }

    /// Whether the host has said until when it rejects requests.
    pub fn is_limited(&self, host: &str) -> bool {
        self.limiter.is_named(host)
    }

    /// For how long the host rejects requests, as far as that is known.
    pub fn remaining(&self, host: &str) -> Duration {
        self.limiter.remaining(host)
    }

    /// Records an answer of the host.
    pub fn record(&self, host: &str, answer: Answer) {
        let mut hosts = self.lock();
        let Some(pace) = hosts.get_mut(host) else { return };
        pace.has_overloaded |= answer == Answer::Overloaded;
        pace.rate = match answer {
            Answer::InTime if pace.has_overloaded => {
                (pace.rate + 1.0 / pace.rate).min(self.max_rate)
            }
            Answer::InTime => (pace.rate + 1.0).min(self.max_rate),
            Answer::Limited => pace.rate,
            Answer::Overloaded => (pace.rate / 2.0).max(MIN_RATE),
        };
    }

    /// The turn of the requests to a host.
    fn turn(&self, host: &str) -> Arc<AsyncMutex<()>> {
        self.with_pace(host, Instant::now(), |pace| pace.turn.clone())
    }

    /// Takes a token, or returns how long there is none.
    fn take(&self, host: &str, now: Instant) -> Duration {
        self.with_pace(host, now, |pace| {
            let interval = Duration::from_secs_f64(1.0 / pace.rate);
            let full_at = pace.full_at.max(now) + interval;
            let wait = full_at.saturating_duration_since(now + interval * BURST);
            if wait.is_zero() {
                pace.full_at = full_at;
            }
            wait
        })
    }

    fn with_pace<T>(&self, host: &str, now: Instant, use_pace: impl FnOnce(&mut Pace) -> T) -> T {
        let mut hosts = self.lock();
        if let Some(pace) = hosts.get_mut(host) {
            return use_pace(pace);
        }
        let rate = INITIAL_RATE.min(self.max_rate);
        let mut pace = Pace { turn: Arc::default(), rate, has_overloaded: false, full_at: now };
        let result = use_pace(&mut pace);
        hosts.insert(host.into(), pace);
        result
    }

    fn lock(&self) -> MutexGuard<'_, BoundedMap<Box<str>, Pace>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Requests a second to a host that is not known, to one that answers in time, and to one that does not.
const INITIAL_RATE: f64 = 8.0;
const MAX_RATE: f64 = 50.0;
const MIN_RATE: f64 = 0.5;

/// Requests that may be sent at once.
const BURST: u32 = 4;

const MAX_WAIT: Duration = Duration::from_secs(3600);
const MAX_HOSTS: usize = 4096;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use reqwest::header::HeaderMap;

    use super::*;

    fn pacer() -> HostPacer {
        HostPacer::new(RateLimiter::default())
    }

    /// Number of requests in `seconds`, all recorded with `answer`.
    async fn requests(pacer: &HostPacer, seconds: u64, answer: Answer) -> u32 {
        let (end, mut count) = (Instant::now() + Duration::from_secs(seconds), 0);
        while Instant::now() < end {
            pacer.until_ready("a.test").await.unwrap();
            pacer.record("a.test", answer);
            count += 1;
        }
        count
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_doubles_with_each_second_of_answers_up_to_its_maximum() {
        let pacer = pacer();
        let first = requests(&pacer, 1, Answer::InTime).await;
        assert!((12..=24).contains(&first), "{first}");
        requests(&pacer, 2, Answer::InTime).await;
        let last = requests(&pacer, 10, Answer::InTime).await;
        assert!((480..=510).contains(&last), "{last}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_never_exceeds_a_lower_maximum() {
        let pacer = pacer().with_max_rate(3.0);
        requests(&pacer, 5, Answer::InTime).await;
        let last = requests(&pacer, 10, Answer::InTime).await;
        assert!((28..=32).contains(&last), "{last}");
    }

    #[tokio::test(start_paused = true)]
    async fn after_an_overload_the_rate_grows_by_one_in_a_second() {
        let pacer = pacer();
        requests(&pacer, 10, Answer::InTime).await;
        pacer.record("a.test", Answer::Overloaded);
        let first = requests(&pacer, 1, Answer::InTime).await;
        assert!((25..=30).contains(&first), "{first}");
        requests(&pacer, 8, Answer::InTime).await;
        let tenth = requests(&pacer, 1, Answer::InTime).await;
        assert!((33..=37).contains(&tenth), "{tenth}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_that_says_until_when_leaves_the_rate_as_it_is() {
        let pacer = pacer();
        let limited = requests(&pacer, 10, Answer::Limited).await;
        assert!((80..=84).contains(&limited), "{limited}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_of_an_overloaded_host_falls_to_its_minimum_and_grows_again() {
        let pacer = pacer();
        requests(&pacer, 30, Answer::Overloaded).await;
        let slow = requests(&pacer, 20, Answer::Overloaded).await;
        assert!((9..=11).contains(&slow), "{slow}");
        requests(&pacer, 30, Answer::InTime).await;
        assert!(requests(&pacer, 10, Answer::InTime).await > 100);
    }

    #[tokio::test(start_paused = true)]
    async fn after_two_overloads_the_rate_grows_no_faster_than_after_one() {
        let pacer = pacer();
        requests(&pacer, 10, Answer::InTime).await;
        pacer.record("a.test", Answer::Overloaded);
        pacer.record("a.test", Answer::Overloaded);
        requests(&pacer, 8, Answer::InTime).await;
        let ninth = requests(&pacer, 1, Answer::InTime).await;
        assert!((18..=24).contains(&ninth), "{ninth}");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_to_one_host_wait_in_turn_and_those_to_another_do_not() {
        let pacer = pacer();
        let turn = pacer.turn("a.test");
        let waiting = turn.lock().await;
        assert!(pacer.until_ready("a.test").now_or_never().is_none());
        assert_eq!(pacer.until_ready("b.test").now_or_never(), Some(Ok(())));
        drop(waiting);
        assert_eq!(pacer.until_ready("a.test").now_or_never(), Some(Ok(())));
    }

    #[test]
    fn an_answer_too_late_halves_the_rate() {
        let pacer = pacer();
        pacer.take("a.test", Instant::now());
        pacer.record("a.test", Answer::Overloaded);
        let rate = pacer.lock().get_mut("a.test").map(|pace| pace.rate);
        assert_eq!(rate, Some(INITIAL_RATE / 2.0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_states_what_is_left_gets_no_request_beyond_it() {
        let pacer = pacer();
        let (mut ends, mut in_window, mut windows) = (Instant::now(), 30, 0);
        for _ in 0..120 {
            pacer.until_ready("a.test").await.unwrap();
            if Instant::now() >= ends {
                assert_eq!(in_window, 30, "all that the window before allowed");
                (ends, in_window, windows) =
                    (Instant::now() + Duration::from_secs(60), 0, windows + 1);
            }
            in_window += 1;
            assert!(in_window <= 30, "and no more");
            let mut headers = HeaderMap::new();
            headers.insert("ratelimit-remaining", (30 - in_window).into());
            let left = ends.duration_since(Instant::now()).as_secs_f64().ceil();
            headers.insert("ratelimit-reset", (left as u64).into());
            assert!(!pacer.limiter.record_response("a.test", 200, &headers));
            pacer.record("a.test", Answer::InTime);
        }
        assert_eq!(windows, 4);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_a_host_names_is_waited_for_up_to_an_hour() {
        let pacer = pacer();
        let limited = |seconds: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", seconds.parse().unwrap());
            pacer.limiter.record_response("a.test", 429, &headers);
        };
        limited("300");
        let started = Instant::now();
        pacer.until_ready("a.test").await.unwrap();
        assert!(started.elapsed() >= Duration::from_secs(300));
        limited("3600");
        pacer.until_ready("a.test").await.unwrap();
        pacer.until_ready("b.test").await.unwrap();
        limited("4000");
        assert!(pacer.until_ready("a.test").await.is_err());
    }
}
