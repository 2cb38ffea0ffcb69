//! Signing keys from a resolver, cached in the state file over restarts.
//!
//! A stored key is fresh for a day. If the directory is down, an older one is used. A key that failed to verify a
//! signature is looked up again. The account's host is stored with the key, so that a run that follows a single server
//! rejects the accounts of others after a restart too.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crypto::CompressedKey;
use net::firehose::{HostedKey, KeyError, KeyLookup, KeyProvider, ResolverKeys};
use net::http::Url;
use store::{Store, StoreError, StoredKey};
use verify::sync::AccountKey;

use super::stats::micros;

/// The source of keys that are not stored.
pub(super) trait HostedKeys: Send + Sync + 'static {
    /// The cached key of an account, with `server` as [`HostedKey::at`]; `None` if nothing is cached.
    fn cached_at(&self, did: &str, server: Option<&Url>) -> Option<AccountKey>;

    /// Whether the cached document names this server; `None` if none is cached.
    fn cached_is_at(&self, did: &str, server: &Url) -> Option<bool>;

    /// Looks them up.
    fn look_up(
        &self,
        did: &str,
        must_refresh: bool,
    ) -> impl Future<Output = Result<HostedKey, KeyError>> + Send;

    /// Invalidates the cached ones.
    fn invalidate(&self, did: &str);

    /// As [`KeyProvider::directory_answers`].
    fn directory_answers(&self) -> u64;
}

impl HostedKeys for ResolverKeys {
    fn cached_at(&self, did: &str, server: Option<&Url>) -> Option<AccountKey> {
        ResolverKeys::cached_at(self, did, server)
    }

    fn cached_is_at(&self, did: &str, server: &Url) -> Option<bool> {
        ResolverKeys::cached_is_at(self, did, server)
    }

    async fn look_up(&self, did: &str, must_refresh: bool) -> Result<HostedKey, KeyError> {
        self.look_up_hosted(did, must_refresh).await
    }

    fn invalidate(&self, did: &str) {
        KeyProvider::invalidate(self, did);
    }

    fn directory_answers(&self) -> u64 {
        KeyProvider::directory_answers(self)
    }
}

/// The keys of a source, stored in the state file.
#[derive(Debug)]
pub(super) struct StoredKeys<K = ResolverKeys> {
    source: K,
    /// The server whose accounts alone are accepted; `None` for a relay.
    server: Option<Url>,
    /// Whether the run asks for the servers of accounts.
    asks_hosts: bool,
    store: Store,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Keys that the source may not have any more, in two generations: when the young one is full it replaces the old
    /// one.
    young: HashMap<Box<str>, CachedKey>,
    old: HashMap<Box<str>, CachedKey>,
    /// Changes that are not in the file yet; `None` removes a key.
    unwritten: HashMap<Box<str>, Option<StoredKey>>,
    /// The last lookup of every account with one in progress that was not invalidated since.
    valid_lookups: HashMap<Box<str>, u64>,
    /// Number of lookups so far.
    lookups: u64,
}

/// A key in the file, with the account's host.
#[derive(Clone, Debug)]
struct DatedKey {
    key: HostedKey,
    fetched_micros: u64,
}

/// A key in memory.
#[derive(Clone, Copy, Debug)]
struct CachedKey {
    key: AccountKey,
    /// A hash of the account's server.
    server: u64,
    fetched_micros: u64,
}

impl<K: HostedKeys> StoredKeys<K> {
    /// The keys of `store`, and of `source` for keys that it does not have. With `server`, accounts of other hosts are
    /// [`AccountKey::OtherHost`].
    pub(super) fn new(source: K, server: Option<Url>, store: Store) -> Self {
        let asks_hosts = server.is_some();
        Self { source, server, asks_hosts, store, state: Mutex::default() }
    }

    /// Also answers which server an account has.
    pub(super) fn with_hosts(self) -> Self {
        Self { asks_hosts: true, ..self }
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

    /// The key in the file, or in the changes to it. Where hosts are asked for, a key without its host does not count.
    fn stored(&self, did: &str) -> Option<DatedKey> {
        let unwritten = self.lock().unwritten.get(did).cloned();
        // A file that cannot be read is an error of the next checkpoint; here the key is unknown.
        let key = unwritten.unwrap_or_else(|| self.store.key(did).ok().flatten())?;
        if self.asks_hosts && key.host.is_none() {
            return None;
        }
        DatedKey::of(&key)
    }

    /// The key of a lookup that is answered from the file, if it may be.
    fn answer_from_file(&self, did: &str, stored: &DatedKey, lookup: &Lookup<'_>) -> bool {
        let mut state = self.lock();
        let is_valid = is_fresh(stored.fetched_micros) && lookup.is_valid(&state);
        if is_valid {
            let key = stored.key.at(self.server.as_ref());
            state.insert(did.into(), stored.cached(key));
        }
        is_valid
    }

    /// Stores the answer of the source, unless the account was invalidated after it was asked for.
    fn store_answer(&self, did: &str, key: &HostedKey, lookup: &Lookup<'_>) {
        let mut state = self.lock();
        if lookup.is_valid(&state)
            && let Some(stored) = stored_key(key)
        {
            // The source may have forgotten it before the account's next event.
            let server = server_hash(key.host.as_ref());
            let (key, fetched_micros) = (key.at(self.server.as_ref()), stored.fetched_micros);
            state.remove(did);
            state.insert(did.into(), CachedKey { key, server, fetched_micros });
            state.unwritten.insert(did.into(), Some(stored));
        }
    }

    /// The stored key that is used in an outage. It is not used instead of a refresh, which a rejected
    /// signature caused, but still shows that the account is elsewhere.
    fn usable_in_outage(
        &self,
        stored: Option<DatedKey>,
        must_refresh: bool,
        lookup: &Lookup<'_>,
    ) -> Option<AccountKey> {
        let key = stored.filter(|_| lookup.is_valid(&self.lock()))?.key.at(self.server.as_ref());
        (!must_refresh || key == AccountKey::OtherHost).then_some(key)
    }

    fn start_lookup<'k>(&'k self, did: &'k str) -> Lookup<'k> {
        let mut state = self.lock();
        state.lookups += 1;
        let number = state.lookups;
        state.valid_lookups.insert(did.into(), number);
        Lookup { state: &self.state, did, number }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl<K: HostedKeys> KeyProvider for StoredKeys<K> {
    fn cached(&self, did: &str) -> AccountKey {
        let server = self.server.as_ref();
        let stored = || {
            let cached = self.lock().get(did)?;
            is_fresh(cached.fetched_micros).then_some(cached.key)
        };
        self.source.cached_at(did, server).or_else(stored).unwrap_or(AccountKey::Unknown)
    }

    fn look_up<'a>(&'a self, did: &'a str, must_refresh: bool) -> KeyLookup<'a> {
        Box::pin(async move {
            let lookup = self.start_lookup(did);
            let stored = self.stored(did);
            if let Some(dated) = stored.as_ref().filter(|_| !must_refresh)
                && self.answer_from_file(did, dated, &lookup)
            {
                return dated.key.try_at(self.server.as_ref());
            }
            match self.source.look_up(did, must_refresh).await {
                Ok(key) => {
                    self.store_answer(did, &key, &lookup);
                    key.try_at(self.server.as_ref())
                }
                Err(error) if error.is_temporary() => {
                    self.usable_in_outage(stored, must_refresh, &lookup).ok_or(error)
                }
                Err(error) => Err(error),
            }
        })
    }

    fn invalidate(&self, did: &str) {
        let mut state = self.lock();
        state.remove(did);
        state.valid_lookups.remove(did);
        state.unwritten.insert(did.into(), None);
        drop(state);
        self.source.invalidate(did);
    }

    fn checks_host(&self) -> bool {
        self.server.is_some()
    }

    fn is_at(&self, did: &str, server: &Url) -> bool {
        let stored =
            || self.lock().get(did).is_some_and(|key| key.server == server_hash(Some(server)));
        self.source.cached_is_at(did, server).unwrap_or_else(stored)
    }

    fn directory_answers(&self) -> u64 {
        self.source.directory_answers()
    }
}

/// A lookup in progress, whose answer may be stored unless its account is invalidated meanwhile.
struct Lookup<'k> {
    state: &'k Mutex<State>,
    did: &'k str,
    number: u64,
}

impl Lookup<'_> {
    fn is_valid(&self, state: &State) -> bool {
        state.valid_lookups.get(self.did) == Some(&self.number)
    }
}

impl Drop for Lookup<'_> {
    fn drop(&mut self) {
        let mut state = lock(self.state);
        if self.is_valid(&state) {
            state.valid_lookups.remove(self.did);
        }
    }
}

impl State {
    fn get(&mut self, did: &str) -> Option<CachedKey> {
        if let Some(cached) = self.young.get(did) {
            return Some(*cached);
        }
        let (did, cached) = self.old.remove_entry(did)?;
        self.insert(did, cached);
        Some(cached)
    }

    fn insert(&mut self, did: Box<str>, cached: CachedKey) {
        if self.young.len() >= MAX_YOUNG {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(did, cached);
    }

    fn remove(&mut self, did: &str) {
        self.young.remove(did);
        self.old.remove(did);
    }
}

/// A hash of a server's host and port, whatever its scheme; 0 for none.
fn server_hash(server: Option<&Url>) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    server.map_or(0, |url| SEED.hash_one((url.host_str(), url.port_or_known_default())))
}

impl DatedKey {
    /// It in memory, as this key.
    fn cached(&self, key: AccountKey) -> CachedKey {
        let server = server_hash(self.key.host.as_ref());
        CachedKey { key, server, fetched_micros: self.fetched_micros }
    }

    /// A stored key; `None` if it is damaged.
    fn of(stored: &StoredKey) -> Option<Self> {
        let key = Some(CompressedKey::from_did_key(&stored.did_key).ok()?);
        let host = stored.host.as_ref().and_then(|host| host.parse().ok());
        Some(Self { key: HostedKey { key, host }, fetched_micros: stored.fetched_micros })
    }
}

fn is_fresh(fetched_micros: u64) -> bool {
    let age = now_micros().saturating_sub(fetched_micros);
    u128::from(age) < FRESH.as_micros()
}

/// The stored form of a key that was fetched now.
fn stored_key(key: &HostedKey) -> Option<StoredKey> {
    let host = key.host.as_ref().map(|host| host.as_str().to_owned());
    let (did_key, host) = (key.key?.to_did_key(), Some(host.unwrap_or_default()));
    Some(StoredKey { did_key, fetched_micros: now_micros(), host })
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
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

    use crypto::{Curve, SecretKey};
    use net::identity::{IdentityError, IdentityFault};
    use store::Options;
    use tempfile::TempDir;

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
        /// Held to delay answers.
        delay: tokio::sync::Mutex<()>,
    }

    impl HostedKeys for Directory {
        fn cached_at(&self, _: &str, _: Option<&Url>) -> Option<AccountKey> {
            None
        }

        fn cached_is_at(&self, _: &str, _: &Url) -> Option<bool> {
            None
        }

        async fn look_up(&self, did: &str, _: bool) -> Result<HostedKey, KeyError> {
            self.lookups.fetch_add(1, Relaxed);
            drop(self.delay.lock().await);
            let down = || IdentityError {
                subject: did.into(),
                host: None,
                fault: IdentityFault::Status(503),
            };
            match self.number {
                Some(number) => {
                    let host = Some("https://pds.test".parse().unwrap());
                    Ok(HostedKey { key: Some(key(number)), host })
                }
                None => Err(KeyError::Identity(Box::new(down()))),
            }
        }

        fn invalidate(&self, _: &str) {}

        fn directory_answers(&self) -> u64 {
            0
        }
    }

    fn keys(dir: &TempDir, number: Option<u8>) -> StoredKeys<Directory> {
        keys_at(dir, number, None)
    }

    fn keys_at(dir: &TempDir, number: Option<u8>, server: Option<&str>) -> StoredKeys<Directory> {
        let store = Store::open(&dir.path().join("state.sqlite"), Options::default()).unwrap();
        let server = server.map(|server| server.parse().unwrap());
        StoredKeys::new(Directory { number, ..Directory::default() }, server, store)
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
        assert_eq!(Some(second.cached(DID)), known(2), "the source takes precedence");
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
        let did_key = key(1).to_did_key();
        let old_key = StoredKey { did_key, fetched_micros: 7, host: None };
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

    #[tokio::test]
    async fn an_answer_that_was_asked_for_before_an_invalidation_is_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let keys = keys(&dir, Some(1));
        let delay = keys.source.delay.lock().await;
        let lookup = keys.look_up(DID, false);
        let invalidation = async {
            while keys.source.lookups.load(Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            keys.invalidate(DID);
            drop(delay);
        };
        tokio::join!(lookup, invalidation).0.unwrap();
        assert_eq!(keys.lock().unwritten.get(DID), Some(&None), "only the removal is written");
        assert_eq!(keys.lock().valid_lookups.len(), 0);
        assert_eq!(keys.cached(DID), AccountKey::Unknown);
        // The next lookup asks again, and its answer is stored.
        assert_eq!(look_up(&keys, false).await, (known(1), 2));
        assert!(keys.lock().unwritten[DID].is_some());
    }

    #[tokio::test]
    async fn with_a_server_stored_hosts_decide_while_the_directory_is_down() {
        let dir = tempfile::tempdir().unwrap();
        let up = keys_at(&dir, Some(1), Some("https://pds.test"));
        assert_eq!(look_up(&up, false).await, (known(1), 1));
        up.flush().unwrap();
        drop(up);
        let here = keys_at(&dir, None, Some("wss://pds.test"));
        assert_eq!(look_up(&here, false).await, (known(1), 0));
        assert_eq!(look_up(&here, true).await, (None, 1));
        drop(here);
        let elsewhere = keys_at(&dir, None, Some("https://other.test"));
        for must_refresh in [false, true] {
            let key = elsewhere.look_up(DID, must_refresh).await;
            assert_eq!(key, Ok(AccountKey::OtherHost), "{must_refresh}");
        }
        assert_eq!(elsewhere.cached(DID), AccountKey::OtherHost);
    }

    #[tokio::test]
    async fn with_a_server_a_key_that_was_stored_without_its_host_is_looked_up() {
        let dir = tempfile::tempdir().unwrap();
        let keys = keys_at(&dir, Some(2), Some("https://pds.test"));
        let (did_key, fetched_micros) = (key(1).to_did_key(), now_micros());
        let stored = StoredKey { did_key, fetched_micros, host: None };
        keys.store.save_keys(vec![(DID.into(), Some(stored))]).unwrap();
        assert_eq!(look_up(&keys, false).await, (known(2), 1));
    }
}
