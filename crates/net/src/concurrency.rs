//! How many may ask one host at once?
//!
//! Strangers decide which hosts we ask for handles and documents: whoever makes up a thousand accounts
//! makes us ask a thousand times. [`ConcurrencyLimit`] lets a few at a time ask what is under one domain, and a
//! bounded number ask anybody; the others wait for theirs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds how many ask at once. Clones share the bounds.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    domains: Arc<Mutex<HashMap<Box<str>, Weak<Semaphore>>>>,
    each: usize,
    all: Arc<Semaphore>,
}

/// Somebody's turn, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    _domain: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
}

impl ConcurrencyLimit {
    /// At most `each` at once for a domain, and `all` for all of them; at least one.
    pub fn new(each: usize, all: usize) -> Self {
        let all = Arc::new(Semaphore::new(all.max(1)));
        Self { domains: Arc::default(), each: each.max(1), all }
    }

    /// Waits for a turn to ask `host`.
    pub async fn acquire(&self, host: &str) -> Permit {
        // Who waits for a busy domain holds no turn that others could have.
        let domain = self.domain(domain_of(host)).acquire_owned().await;
        let all = Arc::clone(&self.all).acquire_owned().await;
        Permit { _domain: domain.expect(OPEN), _all: all.expect(OPEN) }
    }

    /// The turns of a domain. Those that nobody waits for are forgotten from time to time.
    fn domain(&self, name: &str) -> Arc<Semaphore> {
        let mut domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turns) = domains.get(name).and_then(Weak::upgrade) {
            return turns;
        }
        if domains.len() == domains.capacity() {
            domains.retain(|_, turns| turns.strong_count() > 0);
        }
        let turns = Arc::new(Semaphore::new(self.each));
        domains.insert(name.into(), Arc::downgrade(&turns));
        turns
    }
}

/// The last two labels of a name: names below them cost whoever has them nothing.
fn domain_of(host: &str) -> &str {
    let mut dots = host.trim_end_matches('.').rmatch_indices('.');
    dots.nth(1).map_or(host, |(dot, _)| &host[dot + 1..])
}

/// Why there is always a turn in the end.
const OPEN: &str = "nobody closes the semaphore";

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn at_once(turns: &ConcurrencyLimit, host: &str) -> Option<Permit> {
        turns.acquire(host).now_or_never()
    }

    #[test]
    fn a_domain_has_few_turns_whatever_names_are_under_it() {
        let turns = ConcurrencyLimit::new(2, 10);
        let first = at_once(&turns, "a.example.com").unwrap();
        let second = at_once(&turns, "b.x.example.com").unwrap();
        assert!(at_once(&turns, "example.com").is_none());
        assert!(at_once(&turns, "example.org").is_some());
        drop((first, second));
        assert!(at_once(&turns, "example.com").is_some());
    }

    #[test]
    fn all_domains_together_have_a_bound_too() {
        let turns = ConcurrencyLimit::new(2, 3);
        let names = ["a.test", "b.test", "c.test"];
        let taken: Vec<_> = names.iter().map(|name| at_once(&turns, name)).collect();
        assert!(taken.iter().all(Option::is_some));
        assert!(at_once(&turns, "d.test").is_none());
        drop(taken);
        assert!(at_once(&turns, "d.test").is_some());
    }

    #[test]
    fn domains_that_nobody_asks_are_forgotten() {
        let turns = ConcurrencyLimit::new(1, 2);
        let kept = at_once(&turns, "kept.test").unwrap();
        for number in 0..10_000 {
            assert!(at_once(&turns, &format!("a.{number}.test")).is_some());
        }
        assert!(turns.domains.lock().unwrap().len() < 100);
        assert!(at_once(&turns, "kept.test").is_none());
        drop(kept);
    }
}
