//! The state of accounts between events: its fields, the trait of its stores, and a store in memory.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};

use atproto::syntax::Tid;
use codec::Cid;
use codec::cid::Codec;
use crypto::SeededState;
use kernels::base32;
use kernels::sha256::Digest;

use super::policy::FutureWindow;

/// The state of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountState {
    /// Its newest valid commit; `None` before the first.
    pub head: Option<Head>,
    /// Whether the caller's copy of the repository is at `head`.
    pub sync: SyncState,
    /// Whether events of the account are accepted: by the statements of the upstream and the operator.
    pub is_active: bool,
}

impl AccountState {
    /// The state of an account of which nothing is stored.
    pub const UNKNOWN: Self = Self { head: None, sync: SyncState::Synchronized, is_active: true };

    /// This state, unless its head is ahead of `window`. Such a head is void, as every event of the account
    /// would be older: it counts as unknown, and the account as desynchronized.
    ///
    /// [`Judge`](super::Judge) applies it to every loaded state.
    #[must_use]
    pub fn within(self, window: FutureWindow) -> Self {
        match self.head {
            Some(head) if !window.admits(head.rev) => {
                Self { head: None, sync: SyncState::Desynchronized, ..self }
            }
            _ => self,
        }
    }
}

impl Default for AccountState {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

/// The newest valid commit of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The revision.
    pub rev: Tid,
    /// The root of the tree.
    pub data: Cid,
    /// The commit object.
    pub commit: Cid,
}

/// Whether a consumer's copy of a repository is at the newest commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SyncState {
    /// The copy is current.
    #[default]
    Synchronized,
    /// Changes are missing. The caller ends this state, by a resync and by storing another one.
    Desynchronized,
    /// The caller's resync is under way.
    InProgress,
}

/// A store of account states, by DID.
///
/// A batch loads every account once, before anything is judged, and stores the changed ones
/// once, before it returns a verdict. No other writer may change them in between: accounts may be
/// divided among several judges, but one account belongs to one judge at a time.
pub trait ChainState {
    /// The error of loading and storing.
    type Error;

    /// Writes the state of every account to the slot of the same index,
    /// [`AccountState::UNKNOWN`] where none is stored. The DIDs are distinct.
    ///
    /// # Errors
    /// If the states cannot be read. Nothing is judged then.
    fn load_many(
        &mut self,
        dids: &[&str],
        accounts: &mut [AccountState],
    ) -> Result<(), Self::Error>;

    /// Stores the new states of these accounts, all or none. The DIDs are distinct.
    ///
    /// # Errors
    /// If the states cannot be written. No verdict is returned then, and the batch can be judged
    /// again.
    fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), Self::Error>;
}

/// A store in memory, some 100 bytes an account, for millions of them.
///
/// ```
/// use wireproof::verify::sync::{AccountState, MemoryState};
/// let mut state = MemoryState::default();
/// let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
/// let suspended = AccountState { is_active: false, ..AccountState::UNKNOWN };
/// state.put(did, suspended);
/// assert_eq!((state.get(did), state.get("did:web:example.com")), (suspended, AccountState::UNKNOWN));
/// ```
#[derive(Debug)]
pub struct MemoryState {
    accounts: HashMap<PackedDid, PackedState, SeededState>,
}

impl Default for MemoryState {
    /// An empty store with a random seed of this process
    /// ([`RandomState`](std::hash::RandomState)), which places accounts in the table and never changes
    /// a verdict.
    fn default() -> Self {
        Self::new(random_seed())
    }
}

impl MemoryState {
    /// An empty store. The seed places accounts in the table; keep it secret from those who choose
    /// DIDs.
    pub fn new(seed: [u8; 16]) -> Self {
        Self { accounts: HashMap::with_hasher(SeededState::new(seed)) }
    }

    /// The state of an account, [`AccountState::UNKNOWN`] if none is stored.
    pub fn get(&self, did: &str) -> AccountState {
        self.accounts.get(&PackedDid::of(did)).map_or(AccountState::UNKNOWN, PackedState::unpack)
    }

    /// Stores the state of an account.
    pub fn put(&mut self, did: &str, account: AccountState) {
        self.accounts.insert(PackedDid::of(did), PackedState::of(&account));
    }

    /// The accounts with a stored state, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (String, AccountState)> {
        self.accounts.iter().map(|(did, account)| (did.unpack(), account.unpack()))
    }

    /// Number of accounts with a stored state.
    pub fn len(&self) -> usize {
        self.accounts.len()
    }

    /// Whether the store is empty.
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
enum PackedDid {
    Plc([u8; 15]),
    Other(Box<str>),
}

impl PackedDid {
    fn of(did: &str) -> Self {
        let symbols = did.strip_prefix("did:plc:").filter(|symbols| symbols.len() == 24);
        match symbols.and_then(base32::decode).map(<[u8; 15]>::try_from) {
            Some(Ok(bytes)) => Self::Plc(bytes),
            _ => Self::Other(did.into()),
        }
    }

    fn unpack(&self) -> String {
        match self {
            Self::Plc(bytes) => {
                let mut did = "did:plc:".to_owned();
                base32::encode_into(bytes, &mut did);
                did
            }
            Self::Other(did) => did.to_string(),
        }
    }
}

/// An account's state without the common part of all CIDs of trees and commits.
#[derive(Clone, Debug)]
struct PackedState {
    rev: Tid,
    data: Digest,
    commit: Digest,
    has_head: bool,
    is_active: bool,
    sync: SyncState,
}

impl PackedState {
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

    fn unpack(&self) -> AccountState {
        let Self { rev, has_head, sync, is_active, .. } = *self;
        let cid = |digest| Cid::from_digest(Codec::DagCbor, digest);
        let head = Head { rev, data: cid(&self.data), commit: cid(&self.commit) };
        AccountState { head: has_head.then_some(head), sync, is_active }
    }
}

const _: () = assert!(size_of::<(PackedDid, PackedState)>() <= 104, "millions are kept");

/// A seed that differs between processes and calls. It only ever places keys in hash tables; nothing
/// that decides a verdict may depend on it.
pub(super) fn random_seed() -> [u8; 16] {
    let random = RandomState::new();
    let words = [0u8, 1].map(|word| u128::from(random.hash_one(word)));
    (words[0] << 64 | words[1]).to_ne_bytes()
}

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
    fn a_stored_state_is_loaded() {
        let mut state = MemoryState::new([1; 16]);
        let dids = ["did:plc:ewvi7nxzyoun6zhxrhs64oiz", "did:web:example.com", "did:plc:short"];
        let stored: Vec<(&str, AccountState)> = dids.into_iter().zip((0..).map(account)).collect();
        state.store_many(&stored).unwrap();
        let mut loaded = [AccountState::UNKNOWN; 4];
        state.load_many(&[dids[2], dids[1], "did:plc:stranger", dids[0]], &mut loaded).unwrap();
        assert_eq!(loaded, [stored[2].1, stored[1].1, AccountState::UNKNOWN, stored[0].1]);
        assert_eq!((state.len(), state.is_empty()), (3, false));
        let mut listed: Vec<_> = state.iter().collect();
        listed.sort_by_key(|(did, _)| dids.iter().position(|stored| stored == did));
        assert!(listed.iter().map(|(did, account)| (&**did, *account)).eq(stored));
    }

    #[test]
    fn an_account_without_a_head_stays_suspended() {
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
    fn a_did_plc_is_kept_in_fifteen_bytes() {
        assert!(matches!(PackedDid::of("did:plc:ewvi7nxzyoun6zhxrhs64oiz"), PackedDid::Plc(_)));
        for other in ["did:plc:ewvi7nxzyoun6zhxrhs64oi", "did:plc:EWVI7NXZYOUN6ZHXRHS64OIZ"] {
            assert_eq!(PackedDid::of(other), PackedDid::Other(other.into()));
        }
    }

    #[test]
    fn the_seed_is_not_printed() {
        assert!(!format!("{:?}", MemoryState::new([77; 16])).contains("77"));
    }

    #[test]
    fn default_seeds_differ() {
        let [a, b] = [random_seed(), random_seed()];
        assert!(a[..8] != b[..8] && a[8..] != b[8..]);
        assert_eq!(MemoryState::default().len(), 0);
    }
}
