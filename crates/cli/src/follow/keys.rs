//! Signing keys from a resolver, cached in the state file over restarts.
//!
//! A stored key is fresh for a day. If the directory is down, an older one is used. A key that failed to
//! verify a signature is looked up again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use wireproof::crypto::CompressedKey;
use wireproof::net::firehose::{KeyError, KeyLookup, KeyProvider, ResolverKeys};
use wireproof::store::{Store, StoreError, StoredKey};
use wireproof::verify::sync::AccountKey;

use super::stats::micros;

/// The keys of a provider, stored in the state file.
#[derive(Debug)]
pub(super) struct StoredKeys<K = ResolverKeys> {
    source: K,
    store: Store,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Keys from the file that the source does not have, in two generations: when the young one is full
    /// it replaces the old one.
    young: HashMap<Box<str>, DatedKey>,
    old: HashMap<Box<str>, DatedKey>,
    /// Changes that are not in the file yet; `None` removes a key.
    unwritten: HashMap<Box<str>, Option<StoredKey>>,
}

#[derive(Clone, Copy, Debug)]
struct DatedKey {
    key: CompressedKey,
    fetched_micros: u64,
}

impl<K: KeyProvider> StoredKeys<K> {
    /// The keys of `store`, and of `source` for those that it does not have.
    pub(super) fn new(source: K, store: Store) -> Self {
        Self { source, store, state: Mutex::default() }
    }

    /// Writes the changes since the last call.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        let unwritten: Vec<_> = self.lock().unwritten.clone().into_iter().collect();
        if unwritten.is_empty() {
            return Ok(());
        }
        self.store.save_keys(unwritten.clone())?;
        let mut state = self.lock();
        for (did, key) in unwritten {
            // A key that has changed since is written by the next call.
            if state.unwritten.get(&did) == Some(&key) {
                state.unwritten.remove(&did);
            }
        }
        Ok(())
    }

    /// The key in the file, or in the changes to it.
    fn stored(&self, did: &str) -> Option<DatedKey> {
        let unwritten = self.lock().unwritten.get(did).cloned();
        // A file that cannot be read is an error of the next checkpoint; here the key is unknown.
        let key = unwritten.unwrap_or_else(|| self.store.key(did).ok().flatten())?;
        let StoredKey { did_key, fetched_micros } = key;
        Some(DatedKey { key: CompressedKey::from_did_key(&did_key).ok()?, fetched_micros })
    }

    /// Caches a key from the file.
    fn cache_stored(&self, did: &str, dated: DatedKey) -> AccountKey {
        self.lock().insert(did.into(), dated);
        AccountKey::Known(dated.key)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: KeyProvider> KeyProvider for StoredKeys<K> {
    fn cached(&self, did: &str) -> AccountKey {
        match self.source.cached(did) {
            AccountKey::Unknown => {
                let dated = self.lock().get(did).filter(DatedKey::is_fresh);
                dated.map(|dated| dated.key).into()
            }
            known => known,
        }
    }

    fn look_up<'a>(&'a self, did: &'a str, must_refresh: bool) -> KeyLookup<'a> {
        Box::pin(async move {
            let stored = if must_refresh { None } else { self.stored(did) };
            if let Some(dated) = stored.filter(DatedKey::is_fresh) {
                return Ok(self.cache_stored(did, dated));
            }
            match self.source.look_up(did, must_refresh).await {
                Ok(AccountKey::Known(key)) => {
                    let key_now =
                        StoredKey { did_key: key.to_did_key(), fetched_micros: now_micros() };
                    let mut state = self.lock();
                    state.remove(did);
                    state.unwritten.insert(did.into(), Some(key_now));
                    Ok(AccountKey::Known(key))
                }
                Err(problem) if is_outage(&problem) => match stored {
                    Some(dated) => Ok(AccountKey::Known(dated.key)),
                    None => Err(problem),
                },
                other => other,
            }
        })
    }

    fn invalidate(&self, did: &str) {
        let mut state = self.lock();
        state.remove(did);
        state.unwritten.insert(did.into(), None);
        drop(state);
        self.source.invalidate(did);
    }

    fn checks_host(&self) -> bool {
        self.source.checks_host()
    }
}

impl State {
    fn get(&mut self, did: &str) -> Option<DatedKey> {
        if let Some(dated) = self.young.get(did) {
            return Some(*dated);
        }
        let (did, dated) = self.old.remove_entry(did)?;
        self.insert(did, dated);
        Some(dated)
    }

    fn insert(&mut self, did: Box<str>, dated: DatedKey) {
        if self.young.len() >= MAX_YOUNG {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(did, dated);
    }

    fn remove(&mut self, did: &str) {
        self.young.remove(did);
        self.old.remove(did);
    }
}

impl DatedKey {
    fn is_fresh(&self) -> bool {
        let age = now_micros().saturating_sub(self.fetched_micros);
        u128::from(age) < FRESH.as_micros()
    }
}

fn is_outage(problem: &KeyError) -> bool {
    matches!(problem, KeyError::Identity(error) if error.is_outage())
}

fn now_micros() -> u64 {
    micros(SystemTime::now())
}

/// How long a stored key is fresh.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// Maximum number of keys of a generation.
const MAX_YOUNG: usize = 125_000;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use tempfile::TempDir;
    use wireproof::crypto::{Curve, SecretKey};
    use wireproof::net::identity::{IdentityError, IdentityFault};
    use wireproof::store::Options;

    use super::*;

    const DID: &str = "did:web:a.test";

    fn key(number: u8) -> CompressedKey {
        let key = SecretKey::from_bytes(Curve::K256, &[number; 32]).unwrap().public_key();
        *key.as_compressed()
    }

    /// A directory with the key of this number, or an unavailable one. Counts lookups.
    #[derive(Default)]
    struct Directory {
        number: Option<u8>,
        lookups: AtomicUsize,
    }

    impl KeyProvider for Directory {
        fn cached(&self, _: &str) -> AccountKey {
            AccountKey::Unknown
        }

        fn look_up<'a>(&'a self, did: &'a str, _: bool) -> KeyLookup<'a> {
            self.lookups.fetch_add(1, Relaxed);
            let down = || IdentityError {
                subject: did.into(),
                host: None,
                fault: IdentityFault::Status(503),
            };
            let found = match self.number {
                Some(number) => Ok(AccountKey::Known(key(number))),
                None => Err(KeyError::Identity(Box::new(down()))),
            };
            Box::pin(async move { found })
        }

        fn invalidate(&self, _: &str) {}
    }

    fn keys(dir: &TempDir, number: Option<u8>) -> StoredKeys<Directory> {
        let store = Store::open(&dir.path().join("state.sqlite"), Options::default()).unwrap();
        StoredKeys::new(Directory { number, ..Directory::default() }, store)
    }

    /// The key, and the number of lookups at the directory.
    async fn look_up(
        keys: &StoredKeys<Directory>,
        must_refresh: bool,
    ) -> (Option<AccountKey>, usize) {
        let found = keys.look_up(DID, must_refresh).await.ok();
        (found, keys.source.lookups.load(Relaxed))
    }

    fn known(number: u8) -> Option<AccountKey> {
        Some(AccountKey::Known(key(number)))
    }

    #[tokio::test]
    async fn a_stored_key_is_not_looked_up_in_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        let first = keys(&dir, Some(1));
        assert_eq!(look_up(&first, false).await, (known(1), 1));
        first.flush().unwrap();
        drop(first);
        let second = keys(&dir, Some(2));
        assert_eq!(second.cached(DID), AccountKey::Unknown);
        assert_eq!(look_up(&second, false).await, (known(1), 0));
        assert_eq!(Some(second.cached(DID)), known(1));
        // Unless it must be refreshed.
        assert_eq!(look_up(&second, true).await, (known(2), 1));
        assert_eq!(second.cached(DID), AccountKey::Unknown, "the source takes precedence");
    }

    #[tokio::test]
    async fn an_invalidated_key_is_looked_up_before_and_after_the_flush() {
        let dir = tempfile::tempdir().unwrap();
        let first = keys(&dir, Some(1));
        look_up(&first, false).await;
        first.flush().unwrap();
        first.invalidate(DID);
        assert_eq!(look_up(&first, false).await.1, 2);
        first.invalidate(DID);
        first.flush().unwrap();
        drop(first);
        assert_eq!(look_up(&keys(&dir, Some(2)), false).await, (known(2), 1));
    }

    #[tokio::test]
    async fn an_old_key_is_looked_up_again_and_used_in_an_outage() {
        let dir = tempfile::tempdir().unwrap();
        let old_key = StoredKey { did_key: key(1).to_did_key(), fetched_micros: 7 };
        let up = keys(&dir, Some(2));
        up.store.save_keys(vec![(DID.into(), Some(old_key))]).unwrap();
        assert_eq!(look_up(&up, false).await, (known(2), 1));
        drop(up);
        let down = keys(&dir, None);
        assert_eq!(look_up(&down, false).await, (known(1), 1));
        // But not if it must be refreshed.
        assert_eq!(look_up(&down, true).await, (None, 2));
    }

    #[tokio::test]
    async fn a_key_that_changes_during_a_flush_is_written_by_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let keys = keys(&dir, Some(1));
        look_up(&keys, false).await;
        keys.flush().unwrap();
        keys.invalidate(DID);
        assert_eq!(keys.lock().unwritten.len(), 1);
        keys.flush().unwrap();
        assert_eq!((keys.lock().unwritten.len(), keys.store.key(DID)), (0, Ok(None)));
    }
}
