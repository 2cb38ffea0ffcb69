//! The keys of accounts as the caller knows them, and the accounts of a batch: every account is looked
//! up once, whatever the number of its frames.

use crypto::CompressedKey;

use super::policy::FutureWindow;
use super::state::{AccountState, ChainState};

/// A source of the signing keys of accounts. Closures from a DID to an optional key implement it.
///
/// A batch does not wait for a lookup: without a key its events are rejected as
/// [`NoKey`](super::SyncRejection::NoKey), and can be judged again once the caller has found it.
pub trait KeySource {
    /// The key of the account with this DID. Called once per batch and account.
    fn key(&self, did: &str) -> AccountKey;
}

/// The signing key of an account, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountKey {
    /// The key that its DID document names.
    Known(CompressedKey),
    /// No key is known.
    Unknown,
    /// The DID document names another host than the one that sends this stream. For consumers that
    /// connect to hosts directly.
    OtherHost,
}

impl AccountKey {
    /// The key, if it is known.
    pub fn known(self) -> Option<CompressedKey> {
        match self {
            Self::Known(key) => Some(key),
            Self::Unknown | Self::OtherHost => None,
        }
    }
}

impl From<Option<CompressedKey>> for AccountKey {
    fn from(key: Option<CompressedKey>) -> Self {
        key.map_or(Self::Unknown, Self::Known)
    }
}

impl<F: Fn(&str) -> K, K: Into<AccountKey>> KeySource for F {
    fn key(&self, did: &str) -> AccountKey {
        self(did).into()
    }
}

/// The distinct accounts of a batch: their states and keys, and whether a state has changed.
pub(super) struct BatchAccounts<'a> {
    dids: Vec<&'a str>,
    states: Vec<AccountState>,
    keys: Vec<AccountKey>,
    has_changed: Vec<bool>,
}

impl<'a> BatchAccounts<'a> {
    /// Loads the distinct accounts among `dids`, and numbers them: the index of every DID's account.
    pub(super) fn load<S: ChainState>(
        dids: &[&'a str],
        keys: &impl KeySource,
        state: &mut S,
        window: FutureWindow,
    ) -> Result<(Self, Vec<usize>), S::Error> {
        let (dids, numbers) = number(dids);
        let mut states = vec![AccountState::UNKNOWN; dids.len()];
        state.load_many(&dids, &mut states)?;
        states.iter_mut().for_each(|state| *state = state.within(window));
        let keys = dids.iter().map(|did| keys.key(did)).collect();
        let has_changed = vec![false; dids.len()];
        Ok((Self { dids, states, keys, has_changed }, numbers))
    }

    /// The current state of an account, and its key.
    pub(super) fn get(&self, number: usize) -> (&AccountState, AccountKey) {
        (&self.states[number], self.keys[number])
    }

    /// The current state of an account for advancing it, and its key.
    pub(super) fn get_mut(&mut self, number: usize) -> (&mut AccountState, AccountKey) {
        (&mut self.states[number], self.keys[number])
    }

    /// Marks an account as one whose state must be stored.
    pub(super) fn mark_changed(&mut self, number: usize) {
        self.has_changed[number] = true;
    }

    /// Stores the accounts that changed.
    pub(super) fn store<S: ChainState>(self, state: &mut S) -> Result<(), S::Error> {
        let accounts = self.dids.into_iter().zip(self.states).zip(self.has_changed);
        let changed: Vec<(&str, AccountState)> =
            accounts.filter(|(_, has_changed)| *has_changed).map(|(account, _)| account).collect();
        if changed.is_empty() { Ok(()) } else { state.store_many(&changed) }
    }
}

/// The distinct DIDs, and for every given DID the index of its own among them.
///
/// Sorting needs no secret seed against chosen DIDs, and by their last eight bytes, which differ for
/// nearly all accounts, it costs no more than hashing.
fn number<'a>(dids: &[&'a str]) -> (Vec<&'a str>, Vec<usize>) {
    let mut order: Vec<(u64, usize)> =
        (0..).zip(dids).map(|(at, did)| (last_bytes(did), at)).collect();
    order.sort_unstable();
    let (mut distinct, mut numbers) = (Vec::new(), vec![0; dids.len()]);
    for group in order.chunk_by_mut(|(a, _), (b, _)| a == b) {
        if !group.windows(2).all(|pair| dids[pair[0].1] == dids[pair[1].1]) {
            group.sort_unstable_by_key(|(_, at)| dids[*at]);
        }
        for (_, at) in group {
            if distinct.last() != Some(&dids[*at]) {
                distinct.push(dids[*at]);
            }
            numbers[*at] = distinct.len() - 1;
        }
    }
    (distinct, numbers)
}

/// The last eight bytes of a DID as a number; 0 for shorter ones.
fn last_bytes(did: &str) -> u64 {
    did.as_bytes().last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_account_of_a_batch_has_one_number() {
        // All end in the same eight bytes.
        let [a, b, c] = ["did:web:a.example.com", "did:web:b.example.com", "did:web:c.example.com"];
        for dids in [[a, b, a, b], [a, a, a, a], [a, b, c, a], [b, a, c, b]] {
            let (distinct, numbers) = number(&dids);
            let mut expected = dids.to_vec();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(distinct, expected);
            assert!(numbers.iter().zip(dids).all(|(number, did)| distinct[*number] == did));
        }
    }
}
