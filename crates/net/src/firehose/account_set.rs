//! A set of accounts that can change during a run.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Accounts by DID. Clones share the set.
///
/// ```
/// use wireproof::net::firehose::AccountSet;
///
/// let accounts = AccountSet::default();
/// let shared = accounts.clone();
/// accounts.replace(["did:web:example.com".to_owned()].into());
/// assert!(shared.contains("did:web:example.com") && !shared.contains("did:web:example.org"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct AccountSet(Arc<RwLock<HashSet<String>>>);

impl AccountSet {
    /// Whether the set has an account.
    pub fn contains(&self, did: &str) -> bool {
        self.read().contains(did)
    }

    /// The number of accounts.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there is no account.
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Replaces all accounts.
    pub fn replace(&self, accounts: HashSet<String>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = accounts;
    }

    /// The accounts now.
    pub fn snapshot(&self) -> HashSet<String> {
        self.read().clone()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashSet<String>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<HashSet<String>> for AccountSet {
    fn from(accounts: HashSet<String>) -> Self {
        Self(Arc::new(RwLock::new(accounts)))
    }
}
