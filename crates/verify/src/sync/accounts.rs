//! The accounts of a batch: each is looked up once, whatever the number of its frames.

use super::batch::Case;
use super::keys::{AccountKey, KeySource};
use super::state::{AccountState, ChainState};

/// What is known of the accounts of a batch.
pub(super) struct Accounts<'a> {
    dids: Vec<&'a str>,
    states: Vec<AccountState>,
    standings: Vec<Standing>,
}

/// What does not depend on earlier frames, and whether the state does.
#[derive(Clone, Copy, Debug)]
struct Standing {
    key: AccountKey,
    has_changed: bool,
}

impl<'a> Accounts<'a> {
    /// Loads the account of each case, and tells the case which one it is.
    pub(super) fn load<S: ChainState>(
        cases: &mut [Case<'a>],
        keys: &impl KeySource,
        state: &mut S,
    ) -> Result<Self, S::Error> {
        let dids = number(cases);
        let mut states = vec![AccountState::UNKNOWN; dids.len()];
        state.load_many(&dids, &mut states)?;
        let standing = |did: &&str| Standing { key: keys.key(did), has_changed: false };
        let standings = dids.iter().map(standing).collect();
        Ok(Self { dids, states, standings })
    }

    /// The account of this number as it is now, and its key.
    pub(super) fn get(&self, number: usize) -> (&AccountState, AccountKey) {
        (&self.states[number], self.standings[number].key)
    }

    /// The same, to be advanced.
    pub(super) fn get_mut(&mut self, number: usize) -> (&mut AccountState, AccountKey) {
        (&mut self.states[number], self.standings[number].key)
    }

    /// Notes whether an event advanced the account of this number.
    pub(super) fn note(&mut self, number: usize, has_advanced: bool) {
        self.standings[number].has_changed |= has_advanced;
    }

    /// Stores the accounts that changed.
    pub(super) fn store<S: ChainState>(self, state: &mut S) -> Result<(), S::Error> {
        let Self { dids, states, standings } = self;
        let accounts = dids.into_iter().zip(states).zip(&standings);
        let changed: Vec<(&str, AccountState)> = accounts
            .filter(|(_, standing)| standing.has_changed)
            .map(|(account, _)| account)
            .collect();
        if changed.is_empty() { Ok(()) } else { state.store_many(&changed) }
    }
}

/// Gives each case the number of its account; the answer is the DIDs by number.
///
/// Sorting needs no secret to be safe from those who choose DIDs, and by the last eight bytes, of
/// which nearly all DIDs have their own, it costs no more than hashing.
fn number<'a>(cases: &mut [Case<'a>]) -> Vec<&'a str> {
    let mut order: Vec<(u64, usize)> =
        (0..).zip(&*cases).map(|(at, case)| (ending(case.claim.did), at)).collect();
    order.sort_unstable();
    let mut dids = Vec::new();
    for alike in order.chunk_by_mut(|(a, _), (b, _)| a == b) {
        let did = |(_, at): &(u64, usize)| cases[*at].claim.did;
        if !alike.windows(2).all(|pair| did(&pair[0]) == did(&pair[1])) {
            alike.sort_unstable_by_key(did);
        }
        for (_, at) in alike {
            let case = &mut cases[*at];
            if dids.last() != Some(&case.claim.did) {
                dids.push(case.claim.did);
            }
            case.account = dids.len() - 1;
        }
    }
    dids
}

/// The last eight bytes of a DID; the few that have no more are alike.
fn ending(did: &str) -> u64 {
    did.as_bytes().last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
