//! May this host be asked now, or did it ask us to wait?
//!
//! A server that is asked too often says so: by the status 429 or 503, with `Retry-After` or without,
//! or beforehand by `RateLimit-Remaining: 0` and `RateLimit-Reset`. A [`RateLimiter`] remembers per host until
//! when; everyone who asks hosts through the same gate waits. Nobody waits longer than the gate's
//! bound: beyond it the answer is a refusal that says how long the host wants to be left alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::header::HeaderMap;
use tokio::time::Instant;

/// Remembers which hosts want to be left alone, and until when. Clones share what they know.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    closed: Arc<Mutex<HashMap<String, Closed>>>,
    max_wait: Duration,
}

/// A host wants to be left alone for longer than the gate waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host wants to be left alone for {0:?}")]
pub struct RateLimited(pub Duration);

#[derive(Clone, Copy, Debug)]
struct Closed {
    until: Instant,
    /// How many refusals in a row did not say for how long.
    refusals: u32,
}

impl Closed {
    fn is_over(&self) -> bool {
        self.until <= Instant::now()
    }
}

impl RateLimiter {
    /// A gate at which nobody waits longer than `max_wait`.
    pub fn new(max_wait: Duration) -> Self {
        Self { closed: Arc::default(), max_wait }
    }

    /// Waits until `host` may be asked, and says how long that took.
    ///
    /// # Errors
    /// If the wait would be longer than the gate's bound; then there is none.
    pub async fn until_ready(&self, host: &str) -> Result<Duration, RateLimited> {
        let wait = self.remaining(host);
        if wait > self.max_wait {
            return Err(RateLimited(wait));
        }
        tokio::time::sleep(wait).await;
        Ok(wait)
    }

    /// For how long `host` wants to be left alone from now.
    pub fn remaining(&self, host: &str) -> Duration {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let until = closed.get(host).map(|closed| closed.until);
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Takes note of what an answer of `host` says about the next question. Whether the answer is a
    /// refusal for being asked too often.
    pub fn record_response(&self, host: &str, status: u16, headers: &HeaderMap) -> bool {
        let is_refusal = is_refusal(status);
        let stated = stated_wait(is_refusal, headers, SystemTime::now());
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        match (is_refusal, stated) {
            // An answer to a question from before the refusal does not take the refusal back.
            (false, None) if closed.get(host).is_some_and(Closed::is_over) => {
                closed.remove(host);
            }
            (false, None) => {}
            (_, Some(wait)) => close(&mut closed, host, wait, 0),
            (true, None) => {
                let refusals = closed.get(host).map_or(0, |closed| closed.refusals);
                let wait = FIRST_WAIT * (1 << refusals.min(MAX_DOUBLINGS));
                close(&mut closed, host, wait, refusals + 1);
            }
        }
        is_refusal
    }
}

impl Default for RateLimiter {
    /// Nobody waits longer than 30 seconds.
    fn default() -> Self {
        Self::new(Duration::from_secs(30))
    }
}

/// Closes the way to `host`, and forgets those that are open again when there are too many.
fn close(closed: &mut HashMap<String, Closed>, host: &str, wait: Duration, refusals: u32) {
    let now = Instant::now();
    if closed.len() >= MAX_HOSTS && !closed.contains_key(host) {
        closed.retain(|_, closed| closed.until > now);
    }
    if closed.len() >= MAX_HOSTS
        && let Some(first) = closed.iter().min_by_key(|(_, closed)| closed.until)
    {
        let first = first.0.clone();
        closed.remove(&first);
    }
    closed.insert(host.to_owned(), Closed { until: now + wait.min(LONGEST_WAIT), refusals });
}

/// For how long an answer of this status asks us to wait, if it says so.
pub(crate) fn asked_wait(status: u16, headers: &HeaderMap) -> Option<Duration> {
    stated_wait(is_refusal(status), headers, SystemTime::now())
}

/// Whether this status means that we ask too often.
fn is_refusal(status: u16) -> bool {
    matches!(status, 429 | 503)
}

/// For how long an answer's headers ask us to wait.
fn stated_wait(is_refusal: bool, headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let is_exhausted = || text("ratelimit-remaining") == Some("0");
    let retry_after = text("retry-after").filter(|_| is_refusal);
    let reset = || text("ratelimit-reset").filter(|_| is_refusal || is_exhausted());
    let wait = match retry_after.and_then(|text| wait_of(text, now)) {
        Some(wait) => wait,
        None => wait_of(reset()?, now)?,
    };
    Some(Duration::from_secs(wait))
}

/// Seconds from now: told as such, as a time of Unix, or as a date of HTTP.
fn wait_of(text: &str, now: u64) -> Option<u64> {
    match text.parse::<u64>() {
        Ok(time) if time >= LEAST_UNIX_TIME => Some(time.saturating_sub(now)),
        Ok(seconds) => Some(seconds),
        Err(_) => Some(date(text)?.saturating_sub(now)),
    }
}

/// The time of Unix that a date like `Sun, 06 Nov 1994 08:49:37 GMT` tells.
fn date(text: &str) -> Option<u64> {
    let mut words = text.split_once(", ")?.1.strip_suffix(" GMT")?.split(' ');
    let day: u64 = words.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let is_clock = hour < 24 && minute < 60 && second <= 60 && words.next().is_none();
    let seconds = hour * 3600 + minute * 60 + second;
    is_clock.then(|| days_before(year, month, day) * 86_400 + seconds)
}

/// Days from 1970-01-01 to a day of the Gregorian calendar; years are counted from March, so that the
/// day that leaps is the last one.
fn days_before(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let leaps = year / 4 - year / 100 + year / 400;
    year * 365 + leaps + (month * 306 + 5) / 10 + day - 1 - DAYS_BEFORE_1970
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// From the first of March of the year 0.
const DAYS_BEFORE_1970: u64 = 719_468;

/// What is less is a number of seconds: 1,000,000,000 of them are 31 years.
const LEAST_UNIX_TIME: u64 = 1_000_000_000;

const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_DOUBLINGS: u32 = 6;
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);
const MAX_HOSTS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn stated(is_refusal: bool, pairs: &[(&'static str, &'static str)]) -> Option<u64> {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        stated_wait(is_refusal, &headers(pairs), now).map(|wait| wait.as_secs())
    }

    #[test]
    fn seconds_times_and_dates_are_understood() {
        assert_eq!(stated(true, &[("retry-after", "7")]), Some(7));
        assert_eq!(stated(true, &[("ratelimit-reset", "1800000009")]), Some(9));
        assert_eq!(stated(true, &[("retry-after", "Fri, 15 Jan 2027 08:00:10 GMT")]), Some(10));
        assert_eq!(date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(date("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800));
    }

    #[test]
    fn an_exhausted_limit_closes_the_way_before_the_refusal() {
        let left = |left| [("ratelimit-remaining", left), ("ratelimit-reset", "1800000005")];
        assert_eq!(stated(false, &left("0")), Some(5));
        assert_eq!(stated(false, &left("1")), None);
        assert_eq!(stated(false, &[("retry-after", "7")]), None);
    }

    #[test]
    fn what_tells_no_time_is_passed_by() {
        for odd in ["", "-1", "soon", "Fri, 99 Jan 2027 08:00:10 GMT", "Fri, 1 Jan 2027 1:2 GMT"] {
            assert_eq!(stated(true, &[("retry-after", odd)]), None, "{odd}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_asked_again_when_it_said_and_others_at_once() {
        let gate = RateLimiter::default();
        assert!(gate.record_response("a.test", 429, &headers(&[("retry-after", "7")])));
        assert_eq!(gate.until_ready("b.test").await, Ok(Duration::ZERO));
        assert_eq!(gate.until_ready("a.test").await, Ok(Duration::from_secs(7)));
        assert_eq!(gate.until_ready("a.test").await, Ok(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_beyond_the_bound() {
        let gate = RateLimiter::default();
        gate.record_response("a.test", 503, &headers(&[("retry-after", "31")]));
        assert_eq!(gate.until_ready("a.test").await, Err(RateLimited(Duration::from_secs(31))));
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_that_tell_no_time_double_the_wait() {
        let gate = RateLimiter::default();
        for seconds in [1, 2, 4, 8, 16, 32, 64, 64] {
            gate.record_response("a.test", 503, &HeaderMap::new());
            assert_eq!(gate.remaining("a.test"), Duration::from_secs(seconds));
        }
        gate.record_response("a.test", 200, &HeaderMap::new());
        assert_eq!(gate.remaining("a.test"), Duration::from_secs(64));
        tokio::time::advance(Duration::from_secs(64)).await;
        gate.record_response("a.test", 200, &HeaderMap::new());
        gate.record_response("a.test", 503, &HeaderMap::new());
        assert_eq!(gate.remaining("a.test"), Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_remembered_hosts_is_bounded() {
        let gate = RateLimiter::default();
        for number in 0..MAX_HOSTS + 10 {
            gate.record_response(&number.to_string(), 429, &HeaderMap::new());
        }
        assert_eq!(gate.closed.lock().unwrap().len(), MAX_HOSTS);
    }
}
