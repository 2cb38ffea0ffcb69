//! Rate limits of hosts: when a host may be asked again.
//!
//! A server rejects too many requests with status 429, or 503 with `Retry-After`, or announces its limit with
//! `RateLimit-Remaining` and `RateLimit-Reset`. A 503 without a time is an outage, which its caller retries. A [`RateLimiter`] remembers the delay per
//! host, and everyone who shares it waits. A wait beyond its maximum is an error instead. Callers that count their requests,
//! as a [`HostPacer`](crate::host_pacer::HostPacer) does, wait before the host has to reject one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderMap;
use tokio::time::Instant;

use crate::DurationText;
use crate::bounded_map::BoundedMap;
use crate::hosts::BackoffOptions;
use crate::request_budget::RequestBudgets;

/// Remembers until when hosts must not be asked. Clones share their knowledge.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    delays: Arc<Mutex<BoundedMap<Box<str>, HostDelay>>>,
    budgets: RequestBudgets,
    max_wait: Duration,
}

/// The host must not be asked for longer than the limiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host limits requests: retry in {text}", text = DurationText(*.0))]
pub struct RateLimited(pub Duration);

#[derive(Clone, Copy, Debug)]
struct HostDelay {
    until: Instant,
    /// Rejections in a row without a time.
    rejections: u32,
}

impl RateLimiter {
    /// A limiter that waits at most `max_wait`.
    pub fn new(max_wait: Duration) -> Self {
        let delays = Arc::new(Mutex::new(BoundedMap::new(MAX_HOSTS)));
        Self { delays, budgets: RequestBudgets::default(), max_wait }
    }

    /// A limiter with the same knowledge of hosts that waits at most `max_wait`.
    #[must_use]
    pub fn with_max_wait(&self, max_wait: Duration) -> Self {
        Self { max_wait, ..self.clone() }
    }

    /// Waits until `host` may be asked, and returns how long that took.
    ///
    /// # Errors
    /// At once, if the wait would be longer than the maximum.
    pub async fn until_ready(&self, host: &str) -> Result<Duration, RateLimited> {
        let wait = self.remaining(host);
        if wait > self.max_wait {
            return Err(RateLimited(wait));
        }
        tokio::time::sleep(wait).await;
        Ok(wait)
    }

    /// How long `host` must not be asked from now on.
    pub fn remaining(&self, host: &str) -> Duration {
        let until = self.delays().peek(host).map(|delay| delay.until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Whether `host` has said itself until when it must not be asked, and that is in the future.
    pub(crate) fn is_named(&self, host: &str) -> bool {
        let delays = self.delays();
        delays.peek(host).is_some_and(|of| of.rejections == 0 && of.until > Instant::now())
    }

    /// How long `host` must not be asked, or allows no request beyond the ones that were [taken](Self::take).
    pub(crate) fn remaining_with_taken(&self, host: &str) -> Duration {
        self.remaining(host).max(self.budgets.remaining(host))
    }

    /// Counts a request that is about to be sent.
    pub(crate) fn take(&self, host: &str) {
        self.budgets.take(host);
    }

    /// Records the limits on the next request in a response of `host`. Whether the response is a rejection for too many
    /// requests.
    pub fn record_response(&self, host: &str, status: u16, headers: &HeaderMap) -> bool {
        let now = SystemTime::now();
        let requested = requested_delay(may_reject(status), headers, now);
        self.budgets.note(host, stated_budget(headers, now));
        let is_rejection = status == 429 || (status == 503 && requested.is_some());
        let mut delays = self.delays();
        let known = delays.peek(host).copied();
        let (delay, rejections) = match (is_rejection, requested) {
            (false, None) => {
                // A response to a request from before the rejection does not revoke the rejection.
                if known.is_some_and(|known| known.until <= Instant::now()) {
                    delays.remove(host);
                }
                return false;
            }
            (_, Some(delay)) => (delay.min(MAX_DELAY), 0),
            (true, None) => {
                let rejections = known.map_or(0, |known| known.rejections);
                (BACKOFF.bound(rejections), rejections + 1)
            }
        };
        delays.insert(host.into(), HostDelay { until: Instant::now() + delay, rejections });
        is_rejection
    }

    fn delays(&self) -> MutexGuard<'_, BoundedMap<Box<str>, HostDelay>> {
        self.delays.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for RateLimiter {
    /// A limiter that waits at most 30 seconds.
    fn default() -> Self {
        Self::new(Duration::from_secs(30))
    }
}

/// The delay that a rejection of this status (429 or 503) requests.
pub fn retry_after(status: u16, headers: &HeaderMap) -> Option<Duration> {
    requested_delay(may_reject(status), headers, SystemTime::now())
}

fn may_reject(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// The delay that the headers of a response request.
fn requested_delay(may_reject: bool, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let is_exhausted = || text(headers, REMAINING) == Some("0");
    let retry_after = text(headers, "retry-after").filter(|_| may_reject);
    let reset = || text(headers, RESET).filter(|_| may_reject || is_exhausted());
    match retry_after.and_then(|text| time_until(text, now)) {
        Some(delay) => Some(delay),
        None => time_until(reset()?, now),
    }
}

/// The requests that a host allows for a time, by the headers of a response.
fn stated_budget(headers: &HeaderMap, now: SystemTime) -> Option<(u64, Duration)> {
    let left = text(headers, REMAINING)?.parse().ok()?;
    let time = time_until(text(headers, RESET)?, now)?;
    Some((left, time.min(MAX_DELAY)))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim)
}

/// The time from now on, given as seconds, as a Unix time, or as an HTTP date. Servers leave out the fraction of a second, so a
/// second that is named is over before the time is.
fn time_until(text: &str, now: SystemTime) -> Option<Duration> {
    let second = match text.parse::<u64>() {
        Ok(second) if second >= MIN_UNIX_TIME => Duration::from_secs(second),
        Ok(seconds) => return Some(Duration::from_secs(seconds)),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?,
    };
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    Some(second.saturating_add(Duration::from_secs(1)).saturating_sub(now))
}

const REMAINING: &str = "ratelimit-remaining";
const RESET: &str = "ratelimit-reset";

/// Smaller numbers are durations: 1,000,000,000 seconds are 31 years.
const MIN_UNIX_TIME: u64 = 1_000_000_000;

/// Delays after rejections without a time.
const BACKOFF: BackoffOptions = BackoffOptions {
    initial: Duration::from_secs(1),
    max: Duration::from_secs(64),
    reset_after: Duration::MAX,
    max_requested: MAX_DELAY,
};

const MAX_DELAY: Duration = Duration::from_secs(24 * 3600);

const MAX_HOSTS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn requested(is_rejection: bool, pairs: &[(&'static str, &'static str)]) -> Option<u64> {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        requested_delay(is_rejection, &headers(pairs), now).map(|delay| delay.as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_limiter_with_another_maximum_shares_what_is_known_of_hosts() {
        let limiter = RateLimiter::default();
        let impatient = limiter.with_max_wait(Duration::ZERO);
        impatient.record_response("a.test", 429, &headers(&[("retry-after", "20")]));
        assert!(impatient.until_ready("a.test").await.is_err());
        assert!(limiter.until_ready("a.test").await.unwrap() >= Duration::from_secs(19));
        assert!(impatient.until_ready("a.test").await.is_ok());
    }

    #[test]
    fn seconds_unix_times_and_http_dates_to_their_end_are_accepted() {
        assert_eq!(requested(true, &[("retry-after", "7")]), Some(7));
        assert_eq!(requested(true, &[("ratelimit-reset", "1800000009")]), Some(10));
        assert_eq!(requested(true, &[("retry-after", "Fri, 15 Jan 2027 08:00:10 GMT")]), Some(11));
        assert_eq!(requested(true, &[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(0));
    }

    #[test]
    fn an_exhausted_limit_delays_before_a_rejection() {
        let left = |left| [("ratelimit-remaining", left), ("ratelimit-reset", "1800000005")];
        assert_eq!(requested(false, &left("0")), Some(6));
        assert_eq!(requested(false, &left("1")), None);
        assert_eq!(requested(false, &[("retry-after", "7")]), None);
    }

    #[test]
    fn values_without_a_time_are_ignored() {
        for odd in ["", "-1", "soon", "Fri, 99 Jan 2027 08:00:10 GMT", "Fri, 1 Jan 2027 1:2 GMT"] {
            assert_eq!(requested(true, &[("retry-after", odd)]), None, "{odd}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_ready_after_its_delay_and_others_at_once() {
        let limiter = RateLimiter::default();
        assert!(limiter.record_response("a.test", 429, &headers(&[("retry-after", "7")])));
        assert_eq!(limiter.until_ready("b.test").await, Ok(Duration::ZERO));
        assert_eq!(limiter.until_ready("a.test").await, Ok(Duration::from_secs(7)));
        assert_eq!(limiter.until_ready("a.test").await, Ok(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_beyond_the_maximum_is_an_error() {
        let limiter = RateLimiter::default();
        limiter.record_response("a.test", 503, &headers(&[("retry-after", "31")]));
        assert_eq!(limiter.until_ready("a.test").await, Err(RateLimited(Duration::from_secs(31))));
    }

    #[tokio::test(start_paused = true)]
    async fn rejections_without_a_time_double_the_delay() {
        let limiter = RateLimiter::default();
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            limiter.record_response("a.test", 429, &HeaderMap::new());
            assert_eq!(limiter.remaining("a.test"), Duration::from_secs(seconds));
        }
        limiter.record_response("a.test", 200, &HeaderMap::new());
        assert_eq!(limiter.remaining("a.test"), Duration::from_secs(64));
        tokio::time::advance(Duration::from_secs(64)).await;
        limiter.record_response("a.test", 200, &HeaderMap::new());
        limiter.record_response("a.test", 429, &HeaderMap::new());
        assert_eq!(limiter.remaining("a.test"), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_503_without_a_time_is_no_limit() {
        let limiter = RateLimiter::default();
        assert!(!limiter.record_response("a.test", 503, &HeaderMap::new()));
        assert_eq!(limiter.remaining("a.test"), Duration::ZERO);
        assert!(limiter.record_response("a.test", 503, &headers(&[("retry-after", "7")])));
        assert_eq!(limiter.remaining("a.test"), Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_remembered_hosts_is_bounded() {
        let limiter = RateLimiter::default();
        for number in 0..MAX_HOSTS + 10 {
            limiter.record_response(&number.to_string(), 429, &HeaderMap::new());
        }
        assert!(limiter.delays.lock().unwrap().len() <= MAX_HOSTS);
    }
}
