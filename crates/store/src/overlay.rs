//! Account states in memory: all states that are not in the file yet, and some that are.
//!
//! ```text
//!          set_unsaved              mark_saved              generation full
//! judge ───────────────> unsaved ──────────────> recent ──────────────────────> previous ──> dropped
//! file  ──────────────────────────── cache ────> recent <────────── get ──────── previous
//! ```
//!
//! Unsaved states are all cached: the events that are not acknowledged yet bound their number. The saved
//! ones are a cache of two generations: when the recent one is full it replaces the previous one, whose
//! states are dropped unless they were read since.
//!
//! A checkpoint may bring a state that is older than the one in memory. Revisions only grow, so that a state equal to
//! memory's is normally the newest; but an account can be suspended and restored within moments, and then an older
//! state follows. Therefore a judge's last state outlives the saved ones.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use verify::sync::AccountState;

/// The account states in memory, in shards with their own locks.
#[derive(Debug)]
pub(crate) struct Overlay {
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    /// Maximum size of a shard's recent generation.
    max_recent: usize,
}

#[derive(Debug, Default)]
struct Shard {
    unsaved: HashMap<Box<str>, AccountState>,
    recent: HashMap<Box<str>, CachedState>,
    previous: HashMap<Box<str>, CachedState>,
}

/// A state that is in the file too.
#[derive(Clone, Copy, Debug)]
struct CachedState {
    account: AccountState,
    /// Whether a judge stored it, rather than the file.
    is_judged: bool,
}

impl Overlay {
    /// An empty overlay for up to `capacity` saved accounts.
    pub(crate) fn new(capacity: usize) -> Self {
        let max_recent = (capacity / 2 / SHARDS).max(1);
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            max_recent,
        }
    }

    /// The state of an account, if it is in memory.
    pub(crate) fn get(&self, did: &str) -> Option<AccountState> {
        let mut shard = self.shard(did);
        let recent = || shard.recent.get(did).map(|cached| cached.account);
        let known = shard.unsaved.get(did).copied().or_else(recent);
        if known.is_some() {
            return known;
        }
        let (did, cached) = shard.previous.remove_entry(did)?;
        shard.cache(did, cached, self.max_recent);
        Some(cached.account)
    }

    /// Adds a state that was read from the file.
    pub(crate) fn cache(&self, did: &str, account: AccountState) {
        self.shard(did).cache(
            did.into(),
            CachedState { account, is_judged: false },
            self.max_recent,
        );
    }

    /// Sets a state that is not in the file yet.
    pub(crate) fn set_unsaved(&self, did: &str, account: AccountState) {
        let mut shard = self.shard(did);
        if let Some(unsaved) = shard.unsaved.get_mut(did) {
            *unsaved = account;
            return;
        }
        let did = shard.take(did).map_or_else(|| did.into(), |(did, _)| did);
        shard.unsaved.insert(did, account);
    }

    /// Notes that the file now has this state. If memory has the same, it becomes a cached one.
    pub(crate) fn mark_saved(&self, did: &str, account: &AccountState) {
        let mut shard = self.shard(did);
        if shard.unsaved.get(did) == Some(account) {
            let (did, account) = shard.unsaved.remove_entry(did).expect("just seen");
            shard.cache(did, CachedState { account, is_judged: true }, self.max_recent);
        } else if let Some((did, cached)) = shard.take(did) {
            if cached.is_judged && cached.account != *account {
                shard.unsaved.insert(did, cached.account);
            } else {
                shard.cache(did, CachedState { account: *account, ..cached }, self.max_recent)
            }
        }
    }

    /// Number of accounts that are not in the file yet.
    pub(crate) fn unsaved(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).unsaved.len()).sum()
    }

    /// The accounts that are not in the file yet, except accounts of which nothing is known.
    pub(crate) fn unsaved_dids(&self) -> Vec<String> {
        let known = |shard: &Shard| -> Vec<String> {
            let of = shard.unsaved.iter().filter(|(_, account)| account.head.is_some());
            of.map(|(did, _)| did.to_string()).collect()
        };
        self.shards.iter().flat_map(|shard| known(&lock(shard))).collect()
    }

    /// Number of accounts in memory.
    pub(crate) fn len(&self) -> usize {
        let len = |shard: &Shard| shard.unsaved.len() + shard.recent.len() + shard.previous.len();
        self.shards.iter().map(|shard| len(&lock(shard))).sum()
    }

    fn shard(&self, did: &str) -> MutexGuard<'_, Shard> {
        lock(&self.shards[self.hasher.hash_one(did) as usize % SHARDS])
    }
}

impl Shard {
    fn cache(&mut self, did: Box<str>, cached: CachedState, max_recent: usize) {
        if self.recent.len() >= max_recent {
            self.previous = std::mem::take(&mut self.recent);
        }
        self.recent.insert(did, cached);
    }

    fn take(&mut self, did: &str) -> Option<(Box<str>, CachedState)> {
        self.recent.remove_entry(did).or_else(|| self.previous.remove_entry(did))
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Enough shards for the workers of a large machine to rarely contend.
const SHARDS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const SUSPENDED: AccountState = AccountState { is_active: false, ..AccountState::UNKNOWN };

    #[test]
    fn saved_states_are_bounded_and_unsaved_states_are_all_kept() {
        let overlay = Overlay::new(SHARDS * 4);
        let did = |number: u32| format!("did:web:{number}.test");
        (0..2_000).for_each(|number| overlay.set_unsaved(&did(number), SUSPENDED));
        (2_000..9_000).for_each(|number| overlay.cache(&did(number), AccountState::UNKNOWN));
        assert_eq!(overlay.unsaved(), 2_000);
        assert!(overlay.len() <= 2_000 + SHARDS * 4, "{}", overlay.len());
        assert!((0..2_000).all(|number| overlay.get(&did(number)) == Some(SUSPENDED)));
        (0..2_000).for_each(|number| overlay.mark_saved(&did(number), &SUSPENDED));
        assert_eq!(overlay.unsaved(), 0);
        assert!(overlay.len() <= SHARDS * 4, "{}", overlay.len());
    }

    #[test]
    fn an_account_that_changed_since_it_was_saved_is_still_unsaved() {
        let overlay = Overlay::new(0);
        overlay.set_unsaved("did:web:a.test", SUSPENDED);
        overlay.mark_saved("did:web:a.test", &AccountState::UNKNOWN);
        assert_eq!((overlay.get("did:web:a.test"), overlay.unsaved()), (Some(SUSPENDED), 1));
    }

    #[test]
    fn an_older_state_that_is_saved_after_the_newest_does_not_replace_it() {
        let (overlay, did) = (Overlay::new(SHARDS * 8), "did:web:a.test");
        for account in [AccountState::UNKNOWN, SUSPENDED, AccountState::UNKNOWN] {
            overlay.set_unsaved(did, account);
        }
        let saved = |account| {
            overlay.mark_saved(did, &account);
            (overlay.get(did), overlay.unsaved())
        };
        assert_eq!(saved(AccountState::UNKNOWN), (Some(AccountState::UNKNOWN), 0));
        assert_eq!(saved(SUSPENDED), (Some(AccountState::UNKNOWN), 1));
        assert_eq!(saved(AccountState::UNKNOWN), (Some(AccountState::UNKNOWN), 0));
    }

    #[test]
    fn a_cached_state_follows_the_file() {
        let (overlay, did) = (Overlay::new(SHARDS * 8), "did:web:a.test");
        overlay.cache(did, AccountState::UNKNOWN);
        overlay.mark_saved(did, &SUSPENDED);
        assert_eq!((overlay.get(did), overlay.unsaved()), (Some(SUSPENDED), 0));
    }

    #[test]
    fn an_account_that_is_read_stays() {
        let overlay = Overlay::new(SHARDS * 8);
        overlay.cache("did:web:kept.test", SUSPENDED);
        for number in 0..10_000 {
            overlay.cache(&format!("did:web:{number}.test"), AccountState::UNKNOWN);
            assert_eq!(overlay.get("did:web:kept.test"), Some(SUSPENDED));
        }
    }
}
