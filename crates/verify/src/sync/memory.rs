//! Chain states in memory: some hundred bytes an account, for millions of them.

use std::collections::HashMap;
use std::convert::Infallible;

use codec::Cid;
use codec::cid::Codec;
use crypto::SeededState;
use kernels::base32;
use kernels::sha256::Digest;

use super::state::{AccountState, ChainState, Head, SyncState};
use atproto::syntax::Tid;

/// Keeps accounts in memory, until the program ends.
///
/// ```
/// use wireproof_verify::sync::{AccountState, ChainState, MemoryState};
/// let mut state = MemoryState::new([7; 16]);
/// let (did, account) = ("did:plc:ewvi7nxzyoun6zhxrhs64oiz", AccountState { is_active: false, ..AccountState::UNKNOWN });
/// state.put(did, account);
/// assert_eq!((state.get(did), state.get("did:web:example.com")), (account, AccountState::UNKNOWN));
/// ```
#[derive(Debug)]
pub struct MemoryState {
    accounts: HashMap<Name, Entry, SeededState>,
}

impl MemoryState {
    /// Knows no account. The seed should be a secret from those who choose DIDs: it decides where in
    /// the table they are.
    pub fn new(seed: [u8; 16]) -> Self {
        Self { accounts: HashMap::with_hasher(SeededState::new(seed)) }
    }

    /// What is known of an account.
    pub fn get(&self, did: &str) -> AccountState {
        self.accounts.get(&Name::of(did)).map_or(AccountState::UNKNOWN, Entry::to_account)
    }

    /// Keeps what is known of an account.
    pub fn put(&mut self, did: &str, account: AccountState) {
        self.accounts.insert(Name::of(did), Entry::of(&account));
    }

    /// How many accounts are known.
    pub fn len(&self) -> usize {
        self.accounts.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }
}

impl ChainState for MemoryState {
    type Error = Infallible;

    fn load_many(
        &mut self,
        dids: &[&str],
        accounts: &mut [AccountState],
    ) -> Result<(), Infallible> {
        for (did, account) in dids.iter().zip(accounts) {
            *account = self.get(did);
        }
        Ok(())
    }

    fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), Infallible> {
        for (did, account) in changed {
            self.put(did, *account);
        }
        Ok(())
    }
}

/// A DID. Nearly all are `did:plc` and 24 symbols of base32, which are 15 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Name {
    Plc([u8; 15]),
    Other(Box<str>),
}

impl Name {
    fn of(did: &str) -> Self {
        let symbols = did.strip_prefix("did:plc:").filter(|symbols| symbols.len() == 24);
        match symbols.and_then(base32::decode).map(<[u8; 15]>::try_from) {
            Some(Ok(bytes)) => Self::Plc(bytes),
            _ => Self::Other(did.into()),
        }
    }
}

/// What is known of an account, without what all CIDs of trees and commits share.
#[derive(Clone, Debug)]
struct Entry {
    rev: Tid,
    data: Digest,
    commit: Digest,
    has_head: bool,
    is_active: bool,
    sync: SyncState,
}

impl Entry {
    fn of(account: &AccountState) -> Self {
        let AccountState { head, sync, is_active } = *account;
        let digest = |cid: fn(&Head) -> &Cid| head.as_ref().map_or([0; 32], |h| *cid(h).digest());
        Self {
            rev: head.map_or(Tid::MIN, |head| head.rev),
            data: digest(|head| &head.data),
            commit: digest(|head| &head.commit),
            has_head: head.is_some(),
            is_active,
            sync,
        }
    }

    fn to_account(&self) -> AccountState {
        let cid = |digest| Cid::from_digest(Codec::DagCbor, digest);
        let head = Head { rev: self.rev, data: cid(&self.data), commit: cid(&self.commit) };
        AccountState {
            head: self.has_head.then_some(head),
            sync: self.sync,
            is_active: self.is_active,
        }
    }
}

const _: () = assert!(size_of::<(Name, Entry)>() <= 104, "accounts are kept by the million");

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: u8) -> AccountState {
        let cid = |block: &[u8]| Cid::of(Codec::DagCbor, block);
        let rev = Tid::new(1_700_000_000_000_000 + u64::from(number), 7);
        let head = Head { rev, data: cid(&[number]), commit: cid(&[number, 0]) };
        AccountState { head: Some(head), sync: SyncState::InProgress, is_active: number == 1 }
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let mut state = MemoryState::new([1; 16]);
        let dids = ["did:plc:ewvi7nxzyoun6zhxrhs64oiz", "did:web:example.com", "did:plc:short"];
        let stored: Vec<(&str, AccountState)> = dids.into_iter().zip((0..).map(account)).collect();
        state.store_many(&stored).unwrap();
        let mut loaded = [AccountState::UNKNOWN; 4];
        state.load_many(&[dids[2], dids[1], "did:plc:stranger", dids[0]], &mut loaded).unwrap();
        assert_eq!(loaded, [stored[2].1, stored[1].1, AccountState::UNKNOWN, stored[0].1]);
        assert_eq!((state.len(), state.is_empty()), (3, false));
    }

    #[test]
    fn an_account_without_a_head_keeps_its_standing() {
        let mut state = MemoryState::new([1; 16]);
        let suspended = AccountState { is_active: false, ..AccountState::UNKNOWN };
        state.put("did:web:example.com", suspended);
        assert_eq!(state.get("did:web:example.com"), suspended);
    }

    #[test]
    fn dids_that_differ_are_different_accounts() {
        let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
        let others = [did.replace("plc", "web"), did.to_uppercase(), did.replace('z', "y")];
        let mut state = MemoryState::new([1; 16]);
        state.put(did, account(0));
        for other in &others {
            assert_eq!(state.get(other), AccountState::UNKNOWN, "{other}");
            state.put(other, account(1));
        }
        assert_eq!((state.get(did), state.len()), (account(0), 4));
    }

    #[test]
    fn the_seed_is_not_printed() {
        assert!(!format!("{:?}", MemoryState::new([77; 16])).contains("77"));
    }
}
