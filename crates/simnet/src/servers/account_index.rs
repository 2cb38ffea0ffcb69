//! The accounts of a network by number, DID and handle: kept, or derived from the seed whenever they are asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use atproto::syntax::Tid;
use codec::Cid;

use super::hosted_account::{self, AccountStatus, DerivedAccount, HostedAccount};
use super::network::lock;

/// The accounts of a network.
#[derive(Debug, Default)]
pub(super) struct AccountIndex {
    slots: Vec<AccountSlot>,
    by_did: HashMap<Arc<str>, usize>,
    by_handle: HashMap<Box<str>, usize>,
}

/// An account.
#[derive(Clone, Debug)]
pub(super) enum AccountSlot {
    /// Kept, with all that has changed of it.
    Kept(Arc<Mutex<HostedAccount>>),
    /// As the seed gives it: nothing of it has changed.
    Derived(DerivedAccount),
}

/// The entry of an account in lists.
#[derive(Clone, Debug)]
pub(super) struct ListedAccount {
    pub(super) did: Arc<str>,
    pub(super) status: AccountStatus,
    pub(super) rev: Tid,
    /// The CID of the newest commit; of no commit if the repository is not kept.
    pub(super) head: Cid,
}

impl AccountIndex {
    /// Adds an account; returns its number.
    pub(super) fn insert(&mut self, slot: AccountSlot, handle: &str) -> usize {
        let number = self.slots.len();
        self.by_did.insert(slot.did(), number);
        self.by_handle.insert(handle.into(), number);
        self.slots.push(slot);
        number
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, number: usize) -> Option<&AccountSlot> {
        self.slots.get(number)
    }

    /// The accounts that are kept.
    pub(super) fn kept(&self) -> Vec<Arc<Mutex<HostedAccount>>> {
        let kept = self.slots.iter().filter_map(|slot| match slot {
            AccountSlot::Kept(account) => Some(account.clone()),
            AccountSlot::Derived(_) => None,
        });
        kept.collect()
    }

    /// The number of derived accounts of a PDS.
    pub(super) fn derived_count(&self, host: usize) -> usize {
        let is_of =
            |slot: &&AccountSlot| matches!(slot, AccountSlot::Derived(of) if of.host == host);
        self.slots.iter().filter(is_of).count()
    }

    /// Keeps an account that is derived; another one stays as it is.
    pub(super) fn keep(&mut self, number: usize, account: Arc<Mutex<HostedAccount>>) {
        if let Some(slot @ AccountSlot::Derived(_)) = self.slots.get_mut(number) {
            *slot = AccountSlot::Kept(account);
        }
    }

    pub(super) fn number_of_did(&self, did: &str) -> Option<usize> {
        self.by_did.get(did).copied()
    }

    pub(super) fn number_of_handle(&self, handle: &str) -> Option<usize> {
        self.by_handle.get(handle).copied()
    }

    /// The indexed handle of an account, if it differs from `handle`.
    pub(super) fn outdated_handle(&self, number: usize, handle: &str) -> Option<Box<str>> {
        if self.number_of_handle(handle) == Some(number) {
            return None;
        }
        let known = self.by_handle.iter().find(|(_, other)| **other == number)?;
        Some(known.0.clone())
    }

    pub(super) fn rename(&mut self, number: usize, old: &str, new: &str) {
        self.by_handle.remove(old);
        self.by_handle.insert(new.into(), number);
    }
}

impl AccountSlot {
    pub(super) fn did(&self) -> Arc<str> {
        match self {
            Self::Kept(account) => lock(account).did().into(),
            Self::Derived(account) => account.did.clone(),
        }
    }

    /// The number of its PDS.
    pub(super) fn host(&self) -> usize {
        match self {
            Self::Kept(account) => lock(account).host,
            Self::Derived(account) => account.host,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        match self {
            Self::Kept(account) => lock(account).status == AccountStatus::Active,
            Self::Derived(_) => true,
        }
    }

    /// The times of its operations in the directory, in microseconds since 1970.
    pub(super) fn log_micros(&self) -> Vec<u64> {
        match self {
            Self::Kept(account) => lock(account).log.iter().map(|logged| logged.micros).collect(),
            Self::Derived(_) => DerivedAccount::LOG_MICROS.to_vec(),
        }
    }

    pub(super) fn listed(&self) -> ListedAccount {
        match self {
            Self::Kept(account) => {
                let account = lock(account);
                let (rev, head) = (account.repository.rev(), account.repository.stated_head());
                ListedAccount { did: account.did().into(), status: account.status, rev, head }
            }
            Self::Derived(DerivedAccount { did, rev, .. }) => ListedAccount {
                did: did.clone(),
                status: AccountStatus::Active,
                rev: *rev,
                head: hosted_account::stated_head(did),
            },
        }
    }
}
