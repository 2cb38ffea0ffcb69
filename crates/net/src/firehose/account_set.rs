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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_clones_have_the_accounts_that_one_is_given() {
        let accounts = |dids: &[&str]| dids.iter().copied().map(str::to_owned).collect();
        let (set, empty) = (AccountSet::from(accounts(&["did:web:a"])), AccountSet::default());
        let shared = set.clone();
        assert!(empty.is_empty() && !shared.is_empty());
        set.replace(accounts(&["did:web:b", "did:web:c"]));
        assert!(shared.contains("did:web:b") && !shared.contains("did:web:a"));
        assert_eq!((shared.len(), empty.len()), (2, 0));
        assert_eq!(shared.snapshot(), accounts(&["did:web:b", "did:web:c"]));
    }
}
