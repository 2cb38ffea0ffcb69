//! Concurrency limits: permits for requests to one host, and in total.
//!
//! Strangers decide which hosts are asked for handles and DID documents, and which repositories are fetched.
//! A [`ConcurrencyLimit`] admits a few requests per key and a bounded number in total; others wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limits concurrent requests, per key and in total. Clones share the limits.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    keys: Arc<Mutex<HashMap<Box<str>, Weak<Semaphore>>>>,
    per_key: usize,
    total: Arc<Semaphore>,
}

/// The permission for one request, released when it is dropped.
#[derive(Debug)]
pub struct Permit {
    _key: Option<OwnedSemaphorePermit>,
    _total: OwnedSemaphorePermit,
}

impl ConcurrencyLimit {
    /// At most `per_key` permits per key and `total` for all keys, at least one each.
    pub fn new(per_key: usize, total: usize) -> Self {
        let total = Arc::new(Semaphore::new(total.max(1)));
        Self { keys: Arc::default(), per_key: per_key.max(1), total }
    }

    /// Waits for a permit for `key`: a host, or its [registrable domain](registrable_domain).
    pub async fn acquire(&self, key: &str) -> Permit {
        // In this order, a request that waits for a busy key takes none of the total.
        let key = self.acquire_key(key).await;
        Permit { _key: Some(key), ..self.acquire_shared().await }
    }

    /// Waits for the part of a permit that is of `key`.
    pub(crate) async fn acquire_key(&self, key: &str) -> OwnedSemaphorePermit {
        self.semaphore(key).acquire_owned().await.expect(NEVER_CLOSED)
    }

    /// Waits for the part of a permit that is shared by all keys.
    pub(crate) async fn acquire_shared(&self) -> Permit {
        let total = Arc::clone(&self.total).acquire_owned().await;
        Permit { _key: None, _total: total.expect(NEVER_CLOSED) }
    }

    /// The semaphore of a key. Unused ones are removed from time to time.
    fn semaphore(&self, key: &str) -> Arc<Semaphore> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = keys.get(key).and_then(Weak::upgrade) {
            return semaphore;
        }
        if keys.len() == keys.capacity() {
            keys.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let semaphore = Arc::new(Semaphore::new(self.per_key));
        keys.insert(key.into(), Arc::downgrade(&semaphore));
        semaphore
    }
}

/// The registrable domain of a host name, by the public suffix list: its owner can make up any number of
/// names below it. A name that is a suffix itself, and an IP address, is its own domain.
///
/// Only registries count as suffixes. The list's private section names sites that give a name to anyone
/// (`github.io`), so there a limit per name would be none.
///
/// ```
/// use wireproof::net::concurrency::registrable_domain;
/// assert_eq!(registrable_domain("a.b.example.co.uk"), "example.co.uk");
/// assert_eq!(registrable_domain("someone.github.io"), "github.io");
/// assert_eq!(registrable_domain("127.0.0.1"), "127.0.0.1");
/// ```
pub fn registrable_domain(host: &str) -> &str {
    let name = host.trim_end_matches('.');
    if name.parse::<std::net::IpAddr>().is_ok() || name.starts_with('[') {
        return name;
    }
    let mut rest = name;
    while let Some((_, parent)) = rest.split_once('.') {
        if is_registry_suffix(parent) {
            return rest;
        }
        rest = parent;
    }
    name
}

/// Whether registrations are made directly below `name`.
fn is_registry_suffix(name: &str) -> bool {
    psl::suffix(name.as_bytes())
        .is_some_and(|suffix| suffix == name.as_bytes() && suffix.typ() != Some(psl::Type::Private))
}

/// Why acquiring a permit does not fail.
const NEVER_CLOSED: &str = "the semaphore is never closed";

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn acquire_now(limit: &ConcurrencyLimit, host: &str) -> Option<Permit> {
        limit.acquire(registrable_domain(host)).now_or_never()
    }

    #[test]
    fn names_below_a_domain_share_its_permits() {
        let limit = ConcurrencyLimit::new(2, 10);
        let first = acquire_now(&limit, "a.example.com").unwrap();
        let second = acquire_now(&limit, "b.x.example.com").unwrap();
        assert!(acquire_now(&limit, "example.com").is_none());
        assert!(acquire_now(&limit, "example.org").is_some());
        drop((first, second));
        assert!(acquire_now(&limit, "example.com").is_some());
    }

    #[test]
    fn the_total_of_all_domains_is_limited() {
        let limit = ConcurrencyLimit::new(2, 3);
        let names = ["a.test", "b.test", "c.test"];
        let taken: Vec<_> = names.iter().map(|name| acquire_now(&limit, name)).collect();
        assert!(taken.iter().all(Option::is_some));
        assert!(acquire_now(&limit, "d.test").is_none());
        drop(taken);
        assert!(acquire_now(&limit, "d.test").is_some());
    }

    #[test]
    fn unused_domains_are_removed() {
        let limit = ConcurrencyLimit::new(1, 2);
        let kept = acquire_now(&limit, "kept.test").unwrap();
        for number in 0..10_000 {
            assert!(acquire_now(&limit, &format!("a.{number}.test")).is_some());
        }
        assert!(limit.keys.lock().unwrap().len() < 100);
        assert!(acquire_now(&limit, "kept.test").is_none());
        drop(kept);
    }

    #[test]
    fn a_registrable_domain_ends_in_the_suffix_of_a_registry() {
        let cases = [
            ("example.com", "example.com"),
            ("a.b.example.com.", "example.com"),
            ("a.example.co.uk", "example.co.uk"),
            ("one.us-east.host.bsky.network", "bsky.network"),
            ("a.someone.github.io", "github.io"),
            ("x.silent.test", "silent.test"),
            ("com", "com"),
            ("localhost", "localhost"),
            ("10.20.30.40", "10.20.30.40"),
            ("[::1]", "[::1]"),
        ];
        for (host, domain) in cases {
            assert_eq!(registrable_domain(host), domain, "{host}");
        }
    }
}
