//! Concurrency limit of repository fetches: permits by host, by registrable domain, and in total.
//!
//! Accounts name their hosts, so anyone can have repositories fetched from any number of hosts, slowly. A domain
//! holds at most half of the permits; not fewer, as most accounts are on hosts of one domain. A domain whose
//! fetches were slow holds one, and all such domains together a quarter: the rest is kept for the others.
//!
//! The number of fetches that wait is limited by domain too, so that one domain cannot fill the queue.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bounded_map::BoundedMap;
use crate::concurrency::registrable_domain;
use crate::http::{Url, authority};

/// Limits concurrent fetches.
#[derive(Debug)]
pub(super) struct FetchLimit {
    max: MaxFetches,
    state: Mutex<FetchState>,
    released: Notify,
}

/// Maximum numbers of concurrent and of waiting fetches.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaxFetches {
    pub(super) total: usize,
    pub(super) per_domain: usize,
    pub(super) per_host: usize,
    /// Waiting fetches from one domain.
    pub(super) waiting_per_domain: usize,
}

/// The permission for one fetch, released when it is dropped.
#[derive(Debug)]
pub(super) struct FetchPermit<'l> {
    limit: &'l FetchLimit,
    host: FetchHost,
    /// Whether it counts as a request to a slow domain.
    is_slow: bool,
}

/// Too many fetches from one domain wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyWaiting;

/// The host of a fetch.
#[derive(Clone, Debug)]
struct FetchHost {
    authority: Box<str>,
    domain: Box<str>,
}

#[derive(Debug)]
struct FetchState {
    total: usize,
    of_slow_domains: usize,
    by_domain: HashMap<Box<str>, usize>,
    by_host: HashMap<Box<str>, usize>,
    waiting: HashMap<Box<str>, usize>,
    slow: BoundedMap<Box<str>, SlowDomain>,
}

/// A domain that was slow.
#[derive(Clone, Copy, Debug)]
struct SlowDomain {
    /// Slow fetches less the fast ones after them; the domain is slow while it is above 0.
    excess: u32,
    until: Instant,
}

impl FetchLimit {
    pub(super) fn new(max: MaxFetches) -> Self {
        let (total, of_slow_domains, by_domain, by_host, waiting) = Default::default();
        let slow = BoundedMap::new(MAX_SLOW_DOMAINS);
        let state = FetchState { total, of_slow_domains, by_domain, by_host, waiting, slow };
        Self { max, state: Mutex::new(state), released: Notify::new() }
    }

    /// Waits for a permit for a fetch from `url`.
    pub(super) async fn acquire(&self, url: &Url) -> Result<FetchPermit<'_>, TooManyWaiting> {
        let host = FetchHost::of(url);
        let mut waiting = None;
        loop {
            let mut released = pin!(self.released.notified());
            released.as_mut().enable();
            if let Some(permit) = self.try_acquire(&host, Instant::now()) {
                return Ok(permit);
            }
            waiting.get_or_insert_with(|| Waiting::start(self, &host.domain));
            if self.lock().has_too_many_waiting(&host.domain, &self.max, Instant::now()) {
                return Err(TooManyWaiting);
            }
            released.await;
        }
    }

    fn try_acquire(&self, host: &FetchHost, now: Instant) -> Option<FetchPermit<'_>> {
        let mut state = self.lock();
        let is_slow = state.is_slow(&host.domain, now);
        let per_domain = if is_slow { 1 } else { self.max.per_domain };
        let is_free = state.total < self.max.total
            && count(&state.by_domain, &host.domain) < per_domain
            && count(&state.by_host, &host.authority) < self.max.per_host
            && (!is_slow || state.of_slow_domains < self.max_of_slow_domains());
        is_free.then(|| {
            state.total += 1;
            state.of_slow_domains += usize::from(is_slow);
            *state.by_domain.entry(host.domain.clone()).or_default() += 1;
            *state.by_host.entry(host.authority.clone()).or_default() += 1;
            FetchPermit { limit: self, host: host.clone(), is_slow }
        })
    }

    fn max_of_slow_domains(&self) -> usize {
        (self.max.total / 4).max(1)
    }

    fn lock(&self) -> MutexGuard<'_, FetchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FetchPermit<'_> {
    /// Records how long the fetch took. A fast failure says nothing.
    pub(super) fn record(&self, elapsed: Duration, is_ok: bool) {
        let max = if is_ok { FAST_FETCH } else { FAST_FAILURE };
        let is_slow = elapsed > max;
        if is_ok || is_slow {
            self.limit.lock().record(&self.host.domain, is_slow, Instant::now());
        }
    }
}

impl Drop for FetchPermit<'_> {
    fn drop(&mut self) {
        let mut state = self.limit.lock();
        state.total -= 1;
        state.of_slow_domains -= usize::from(self.is_slow);
        decrement(&mut state.by_domain, &self.host.domain);
        decrement(&mut state.by_host, &self.host.authority);
        drop(state);
        self.limit.released.notify_waiters();
    }
}

impl FetchHost {
    fn of(url: &Url) -> Self {
        let domain = registrable_domain(url.host_str().unwrap_or_default()).into();
        Self { authority: authority(url).into(), domain }
    }
}

impl FetchState {
    fn is_slow(&self, domain: &str, now: Instant) -> bool {
        self.slow.peek(domain).is_some_and(|slow| now < slow.until)
    }

    fn has_too_many_waiting(&self, domain: &str, max: &MaxFetches, now: Instant) -> bool {
        let max = if self.is_slow(domain, now) {
            max.waiting_per_domain.min(MAX_WAITING_FOR_SLOW)
        } else {
            max.waiting_per_domain
        };
        count(&self.waiting, domain) > max
    }

    fn record(&mut self, domain: &str, was_slow: bool, now: Instant) {
        let excess = self.slow.peek(domain).filter(|slow| now < slow.until);
        let excess = excess.map_or(0, |slow| slow.excess);
        match (was_slow, excess) {
            (true, _) => {
                let slow =
                    SlowDomain { excess: (excess + 1).min(MAX_EXCESS), until: now + SLOW_TIME };
                self.slow.insert(domain.into(), slow);
            }
            (false, 0 | 1) => self.slow.remove(domain),
            (false, _) => {
                if let Some(slow) = self.slow.get_mut(domain) {
                    slow.excess -= 1;
                }
            }
        }
    }
}

/// A fetch that waits for a permit.
struct Waiting<'l> {
    limit: &'l FetchLimit,
    domain: Box<str>,
}

impl<'l> Waiting<'l> {
    fn start(limit: &'l FetchLimit, domain: &str) -> Self {
        *limit.lock().waiting.entry(domain.into()).or_default() += 1;
        Self { limit, domain: domain.into() }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        decrement(&mut self.limit.lock().waiting, &self.domain);
    }
}

fn count(counts: &HashMap<Box<str>, usize>, key: &str) -> usize {
    counts.get(key).copied().unwrap_or_default()
}

/// Subtracts one, and removes entries that reach 0.
fn decrement(counts: &mut HashMap<Box<str>, usize>, key: &str) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// Time in which a fetch is fast.
const FAST_FETCH: Duration = Duration::from_secs(60);
const FAST_FAILURE: Duration = Duration::from_secs(4);

/// Time after a slow fetch for which a domain is slow, unless fast fetches follow.
const SLOW_TIME: Duration = Duration::from_secs(600);

/// Number of fast fetches after which a slow domain is no longer slow, at most.
const MAX_EXCESS: u32 = 8;

const MAX_SLOW_DOMAINS: usize = 4 << 10;
const MAX_WAITING_FOR_SLOW: usize = 16;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const MAX: MaxFetches =
        MaxFetches { total: 16, per_domain: 8, per_host: 2, waiting_per_domain: 100 };

    fn acquire_now<'l>(limit: &'l FetchLimit, host: &str) -> Option<FetchPermit<'l>> {
        let url = format!("https://{host}/").parse().unwrap();
        limit.acquire(&url).now_or_never().map(|permit| permit.unwrap())
    }

    /// Takes the permits that hosts of `domain` can have.
    fn hold<'l>(limit: &'l FetchLimit, domain: &str) -> Vec<FetchPermit<'l>> {
        (0..100).filter_map(|host| acquire_now(limit, &format!("host{host}.{domain}"))).collect()
    }

    #[test]
    fn hosts_of_one_domain_hold_half_of_the_permits_and_another_host_is_asked_at_once() {
        let limit = FetchLimit::new(MAX);
        let held = hold(&limit, "slow.test");
        assert_eq!(held.len(), 8);
        assert_eq!(acquire_now(&limit, "slow.test:8443").map(drop), None, "another port");
        assert!(acquire_now(&limit, "honest.test").is_some());
        drop(held);
        assert!(acquire_now(&limit, "slow.test:8443").is_some());
        assert!(limit.lock().by_domain.is_empty() && limit.lock().by_host.is_empty());
    }

    #[test]
    fn a_host_holds_two_permits() {
        let limit = FetchLimit::new(MAX);
        let held: Vec<_> = (0..9).filter_map(|_| acquire_now(&limit, "a.test")).collect();
        assert_eq!(held.len(), 2);
        assert!(acquire_now(&limit, "b.a.test").is_some());
    }

    #[test]
    fn domains_known_to_be_slow_hold_a_quarter_of_the_permits_together() {
        let limit = FetchLimit::new(MAX);
        let domains: Vec<String> = (0..50).map(|number| format!("slow{number}.test")).collect();
        for domain in &domains {
            acquire_now(&limit, domain).unwrap().record(FAST_FETCH * 2, true);
        }
        assert_eq!(hold(&limit, &domains[0]).len(), 1, "each of them holds one");
        let held: Vec<_> = domains.iter().flat_map(|domain| hold(&limit, domain)).collect();
        assert_eq!(held.len(), 4);
        assert_eq!(hold(&limit, "honest.test").len(), 8);
        drop(held);
        let held: Vec<_> = domains.iter().flat_map(|domain| hold(&limit, domain)).collect();
        assert_eq!(held.len(), 4, "those that were released are free again");
    }

    #[test]
    fn the_permits_of_all_domains_together_are_limited() {
        let limit = FetchLimit::new(MAX);
        let held: Vec<_> = ["a.test", "b.test"].map(|domain| hold(&limit, domain)).into();
        assert_eq!(held.iter().map(Vec::len).sum::<usize>(), MAX.total);
        assert!(acquire_now(&limit, "c.test").is_none());
    }

    #[test]
    fn a_fetch_is_slow_after_a_minute_and_a_failure_after_seconds() {
        let limit = FetchLimit::new(MAX);
        let permit = acquire_now(&limit, "a.test").unwrap();
        let is_slow = |elapsed, is_ok| {
            permit.record(elapsed, is_ok);
            limit.lock().is_slow("a.test", Instant::now())
        };
        assert!(!is_slow(FAST_FETCH, true) && !is_slow(FAST_FAILURE, false));
        assert!(is_slow(FAST_FAILURE + Duration::from_millis(1), false));
        assert!(!is_slow(FAST_FETCH, true) && is_slow(FAST_FETCH + Duration::from_millis(1), true));
    }

    #[test]
    fn slow_fetches_that_are_long_ago_do_not_count() {
        let (limit, now) = (FetchLimit::new(MAX), Instant::now());
        let mut state = limit.lock();
        let later = now + SLOW_TIME;
        [now, now, later].iter().for_each(|at| state.record("a.test", true, *at));
        state.record("a.test", false, later);
        assert!(!state.is_slow("a.test", later), "of three, one is left, and made good");
    }

    #[test]
    fn a_slow_domain_recovers_by_fast_fetches_or_in_time() {
        let (limit, now) = (FetchLimit::new(MAX), Instant::now());
        let mut state = limit.lock();
        for (was_slow, is_slow) in [(true, true), (true, true), (false, true), (false, false)] {
            state.record("a.test", was_slow, now);
            assert_eq!(state.is_slow("a.test", now), is_slow);
        }
        state.record("a.test", true, now);
        assert!(!state.is_slow("a.test", now + SLOW_TIME));
    }

    #[test]
    fn the_waiting_fetches_of_a_domain_are_limited_the_more_if_it_is_slow() {
        let limit = FetchLimit::new(MAX);
        let url: Url = "https://slow.test/".parse().unwrap();
        let held = hold(&limit, "slow.test");
        let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(limit.acquire(&url))).collect();
        assert!(waiting.iter_mut().all(|fetch| fetch.as_mut().now_or_never().is_none()));
        assert_eq!(limit.acquire(&url).now_or_never().unwrap().err(), Some(TooManyWaiting));
        held[0].record(FAST_FAILURE * 2, false);
        limit.released.notify_waiters();
        let left = waiting.iter_mut().filter_map(|fetch| fetch.as_mut().now_or_never());
        assert_eq!(left.filter(Result::is_err).count(), 100 - MAX_WAITING_FOR_SLOW);
        assert!(acquire_now(&limit, "honest.test").is_some());
    }
}
