//! Which key has an account? As `#identity` and the directory say, and as the state file remembers.
//!
//! A key that was found out is good for a day, over restarts too; when nobody answers, an older one is
//! better than none. A key that a signature casts doubt on is asked for anew.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wireproof::crypto::CompressedKey;
use wireproof::net::firehose::{KeyError, KeyLookup, KeyProvider, ResolverKeys};
use wireproof::store::{Store, StoreError, StoredKey};
use wireproof::verify::sync::AccountKey;

/// The keys of a resolver, kept on disk.
#[derive(Debug)]
pub(super) struct StoredKeys<K = ResolverKeys> {
    source: K,
    store: Store,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// KeyProvider that came from the file, of which the source knows nothing. Those that were not asked for go
    /// first: when the young are too many they become the old.
    young: HashMap<Box<str>, Dated>,
    old: HashMap<Box<str>, Dated>,
    /// What the file does not say yet: keys, and that there is none any more.
    unwritten: HashMap<Box<str>, Option<StoredKey>>,
}

#[derive(Clone, Copy, Debug)]
struct Dated {
    key: CompressedKey,
    fetched_micros: u64,
}

impl<K: KeyProvider> StoredKeys<K> {
    /// Asks `source` for what `store` does not have.
    pub(super) fn new(source: K, store: Store) -> Self {
        Self { source, store, state: Mutex::default() }
    }

    /// Writes what was found out since the last time.
    pub(super) fn write(&self) -> Result<(), StoreError> {
        let unwritten: Vec<_> = self.lock().unwritten.clone().into_iter().collect();
        if unwritten.is_empty() {
            return Ok(());
        }
        self.store.save_keys(unwritten.clone())?;
        let mut state = self.lock();
        for (did, key) in unwritten {
            // Unless it has changed again meanwhile.
            if state.unwritten.get(&did) == Some(&key) {
                state.unwritten.remove(&did);
            }
        }
        Ok(())
    }

    /// What the file says, or is about to.
    fn stored(&self, did: &str) -> Option<Dated> {
        let unwritten = self.lock().unwritten.get(did).cloned();
        // A file that cannot be read is told at the next checkpoint; here it just does not help.
        let key = unwritten.unwrap_or_else(|| self.store.key(did).ok().flatten())?;
        let StoredKey { did_key, fetched_micros } = key;
        Some(Dated { key: CompressedKey::from_did_key(&did_key).ok()?, fetched_micros })
    }

    /// A key from the file, which the source does not know.
    fn take_stored(&self, did: &str, dated: Dated) -> AccountKey {
        self.lock().keep(did.into(), dated);
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
                let dated = self.lock().get(did).filter(Dated::is_fresh);
                dated.map(|dated| dated.key).into()
            }
            known => known,
        }
    }

    fn look_up<'a>(&'a self, did: &'a str, is_doubted: bool) -> KeyLookup<'a> {
        Box::pin(async move {
            let stored = if is_doubted { None } else { self.stored(did) };
            if let Some(dated) = stored.filter(Dated::is_fresh) {
                return Ok(self.take_stored(did, dated));
            }
            match self.source.look_up(did, is_doubted).await {
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
}

impl State {
    fn get(&mut self, did: &str) -> Option<Dated> {
        if let Some(dated) = self.young.get(did) {
            return Some(*dated);
        }
        let (did, dated) = self.old.remove_entry(did)?;
        self.keep(did, dated);
        Some(dated)
    }

    fn keep(&mut self, did: Box<str>, dated: Dated) {
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

impl Dated {
    fn is_fresh(&self) -> bool {
        let age = now_micros().saturating_sub(self.fetched_micros);
        u128::from(age) < FRESH.as_micros()
    }
}

fn is_outage(problem: &KeyError) -> bool {
    matches!(problem, KeyError::Identity(error) if error.is_outage())
}

fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// How long a key is good.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// Half of the keys from the file that are kept in memory.
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

    /// Who answers with a key of this number, and counts; with nothing if there is none.
    #[derive(Default)]
    struct Directory {
        number: Option<u8>,
        asked: AtomicUsize,
    }

    impl KeyProvider for Directory {
        fn cached(&self, _: &str) -> AccountKey {
            AccountKey::Unknown
        }

        fn look_up<'a>(&'a self, did: &'a str, _: bool) -> KeyLookup<'a> {
            self.asked.fetch_add(1, Relaxed);
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

    /// What is found, and how often somebody had to be asked.
    async fn find(keys: &StoredKeys<Directory>, is_doubted: bool) -> (Option<AccountKey>, usize) {
        let found = keys.look_up(DID, is_doubted).await.ok();
        (found, keys.source.asked.load(Relaxed))
    }

    fn known(number: u8) -> Option<AccountKey> {
        Some(AccountKey::Known(key(number)))
    }

    #[tokio::test]
    async fn a_key_that_was_found_is_not_asked_for_in_the_next_run() {
        let dir = tempfile::tempdir().unwrap();
        let first = keys(&dir, Some(1));
        assert_eq!(find(&first, false).await, (known(1), 1));
        first.write().unwrap();
        drop(first);
        let second = keys(&dir, Some(2));
        assert_eq!(second.cached(DID), AccountKey::Unknown);
        assert_eq!(find(&second, false).await, (known(1), 0));
        assert_eq!(Some(second.cached(DID)), known(1));
        // Unless a signature casts doubt on it.
        assert_eq!(find(&second, true).await, (known(2), 1));
        assert_eq!(second.cached(DID), AccountKey::Unknown, "the source knows better");
    }

    #[tokio::test]
    async fn a_key_that_is_forgotten_is_asked_for_before_the_file_knows_and_after() {
        let dir = tempfile::tempdir().unwrap();
        let first = keys(&dir, Some(1));
        find(&first, false).await;
        first.write().unwrap();
        first.invalidate(DID);
        assert_eq!(find(&first, false).await.1, 2);
        first.invalidate(DID);
        first.write().unwrap();
        drop(first);
        assert_eq!(find(&keys(&dir, Some(2)), false).await, (known(2), 1));
    }

    #[tokio::test]
    async fn an_old_key_is_asked_for_anew_and_better_than_none() {
        let dir = tempfile::tempdir().unwrap();
        let of_yesterday = StoredKey { did_key: key(1).to_did_key(), fetched_micros: 7 };
        let up = keys(&dir, Some(2));
        up.store.save_keys(vec![(DID.into(), Some(of_yesterday))]).unwrap();
        assert_eq!(find(&up, false).await, (known(2), 1));
        drop(up);
        let down = keys(&dir, None);
        assert_eq!(find(&down, false).await, (known(1), 1));
        // But not if it was refused.
        assert_eq!(find(&down, true).await, (None, 2));
    }

    #[tokio::test]
    async fn what_changed_while_it_was_written_is_written_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let keys = keys(&dir, Some(1));
        find(&keys, false).await;
        keys.write().unwrap();
        keys.invalidate(DID);
        assert_eq!(keys.lock().unwritten.len(), 1);
        keys.write().unwrap();
        assert_eq!((keys.lock().unwritten.len(), keys.store.key(DID)), (0, Ok(None)));
    }
}
