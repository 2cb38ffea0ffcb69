//! Which accounts are in memory, and which of them only there?
//!
//! ```text
//!            store_many                    checkpoint                    too many
//! judge ───────────────> unsaved, all kept ──────────> young ──────────> old ─────> forgotten
//!                                          load_many ──> young <── asked for again ──┘
//! ```
//!
//! An account that only memory knows stays there, whatever their number: it is bounded by the events
//! that are not acknowledged yet. The others are in the file, and of them some are kept.
//!
//! A checkpoint may bring a state that is older than the one in memory. Revisions only grow, so that one
//! equal to memory's is normally the newest; but an account can be suspended and restored within
//! moments, and then an older state follows. Therefore what a judge said last outlives what is saved.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use verify::sync::AccountState;

/// The accounts in memory, in parts that are locked one by one.
#[derive(Debug)]
pub(crate) struct Overlay {
    parts: [Mutex<Part>; PARTS],
    hasher: RandomState,
    /// The most young accounts of one part.
    max_young: usize,
}

#[derive(Debug, Default)]
struct Part {
    unsaved: HashMap<Box<str>, AccountState>,
    /// When the young are too many they become the old ones, who go, unless they were asked for since.
    young: HashMap<Box<str>, Kept>,
    old: HashMap<Box<str>, Kept>,
}

/// An account that is in the file too.
#[derive(Clone, Copy, Debug)]
struct Kept {
    account: AccountState,
    /// Whether a judge said so, or else the file.
    is_judged: bool,
}

impl Overlay {
    /// Keeps up to `capacity` accounts beside those that only memory knows.
    pub(crate) fn new(capacity: usize) -> Self {
        let max_young = (capacity / 2 / PARTS).max(1);
        Self {
            parts: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            max_young,
        }
    }

    /// What is known of an account, if memory knows it.
    pub(crate) fn get(&self, did: &str) -> Option<AccountState> {
        let mut part = self.part(did);
        let young = || part.young.get(did).map(|kept| kept.account);
        let known = part.unsaved.get(did).copied().or_else(young);
        if known.is_some() {
            return known;
        }
        let (did, kept) = part.old.remove_entry(did)?;
        part.keep(did, kept, self.max_young);
        Some(kept.account)
    }

    /// Keeps what the file says of an account.
    pub(crate) fn remember(&self, did: &str, account: AccountState) {
        self.part(did).keep(did.into(), Kept { account, is_judged: false }, self.max_young);
    }

    /// Keeps what the file does not say yet.
    pub(crate) fn change(&self, did: &str, account: AccountState) {
        let mut part = self.part(did);
        if let Some(unsaved) = part.unsaved.get_mut(did) {
            *unsaved = account;
            return;
        }
        let did = part.take(did).map_or_else(|| did.into(), |(did, _)| did);
        part.unsaved.insert(did, account);
    }

    /// The file now says this of an account. If memory says the same, it need not keep it.
    pub(crate) fn saved(&self, did: &str, account: &AccountState) {
        let mut part = self.part(did);
        if part.unsaved.get(did) == Some(account) {
            let (did, account) = part.unsaved.remove_entry(did).expect("just seen");
            part.keep(did, Kept { account, is_judged: true }, self.max_young);
        } else if let Some((did, kept)) = part.take(did) {
            match kept.is_judged && kept.account != *account {
                true => drop(part.unsaved.insert(did, kept.account)),
                false => part.keep(did, Kept { account: *account, ..kept }, self.max_young),
            }
        }
    }

    /// How many accounts only memory knows.
    pub(crate) fn unsaved(&self) -> usize {
        self.parts.iter().map(|part| lock(part).unsaved.len()).sum()
    }

    /// How many accounts are in memory.
    pub(crate) fn len(&self) -> usize {
        let len = |part: &Part| part.unsaved.len() + part.young.len() + part.old.len();
        self.parts.iter().map(|part| len(&lock(part))).sum()
    }

    fn part(&self, did: &str) -> MutexGuard<'_, Part> {
        lock(&self.parts[self.hasher.hash_one(did) as usize % PARTS])
    }
}

impl Part {
    fn keep(&mut self, did: Box<str>, kept: Kept, max_young: usize) {
        if self.young.len() >= max_young {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(did, kept);
    }

    fn take(&mut self, did: &str) -> Option<(Box<str>, Kept)> {
        self.young.remove_entry(did).or_else(|| self.old.remove_entry(did))
    }
}

fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As many as keep the workers of a large machine out of each other's way.
const PARTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const GONE: AccountState = AccountState { is_active: false, ..AccountState::UNKNOWN };

    #[test]
    fn the_saved_are_bounded_and_the_unsaved_are_kept() {
        let overlay = Overlay::new(PARTS * 4);
        let did = |number: u32| format!("did:web:{number}.test");
        (0..2_000).for_each(|number| overlay.change(&did(number), GONE));
        (2_000..9_000).for_each(|number| overlay.remember(&did(number), AccountState::UNKNOWN));
        assert_eq!(overlay.unsaved(), 2_000);
        assert!(overlay.len() <= 2_000 + PARTS * 4, "{}", overlay.len());
        assert!((0..2_000).all(|number| overlay.get(&did(number)) == Some(GONE)));
        (0..2_000).for_each(|number| overlay.saved(&did(number), &GONE));
        assert_eq!(overlay.unsaved(), 0);
        assert!(overlay.len() <= PARTS * 4, "{}", overlay.len());
    }

    #[test]
    fn an_account_that_changed_since_it_was_saved_is_still_unsaved() {
        let overlay = Overlay::new(0);
        overlay.change("did:web:a.test", GONE);
        overlay.saved("did:web:a.test", &AccountState::UNKNOWN);
        assert_eq!((overlay.get("did:web:a.test"), overlay.unsaved()), (Some(GONE), 1));
    }

    #[test]
    fn an_older_state_that_is_saved_after_the_newest_does_not_replace_it() {
        let (overlay, did) = (Overlay::new(PARTS * 8), "did:web:a.test");
        for account in [AccountState::UNKNOWN, GONE, AccountState::UNKNOWN] {
            overlay.change(did, account);
        }
        let saved = |account| {
            overlay.saved(did, &account);
            (overlay.get(did), overlay.unsaved())
        };
        assert_eq!(saved(AccountState::UNKNOWN), (Some(AccountState::UNKNOWN), 0));
        assert_eq!(saved(GONE), (Some(AccountState::UNKNOWN), 1));
        assert_eq!(saved(AccountState::UNKNOWN), (Some(AccountState::UNKNOWN), 0));
    }

    #[test]
    fn what_was_read_from_the_file_follows_the_file() {
        let (overlay, did) = (Overlay::new(PARTS * 8), "did:web:a.test");
        overlay.remember(did, AccountState::UNKNOWN);
        overlay.saved(did, &GONE);
        assert_eq!((overlay.get(did), overlay.unsaved()), (Some(GONE), 0));
    }

    #[test]
    fn an_account_that_is_asked_for_stays() {
        let overlay = Overlay::new(PARTS * 8);
        overlay.remember("did:web:kept.test", GONE);
        for number in 0..10_000 {
            overlay.remember(&format!("did:web:{number}.test"), AccountState::UNKNOWN);
            assert_eq!(overlay.get("did:web:kept.test"), Some(GONE));
        }
    }
}
