//! Who is this account?
//!
//! Everything about an account follows from its seed: its DID, its key, and what it wrote before
//! the stream began.

use crate::block::Draft;
use crate::history::{self, OldRecord};
use crate::keys::{Curve, SigningKey};
use crate::random::Seed;
use crate::record::{self, RecordPath, did_plc};
use crate::repository::Repository;
use crate::tid::Tid;
use crate::tree::Layer;

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
    seed: Seed,
    did: String,
    key: SigningKey,
    past: AccountHistory,
    /// The clock identifier in its TIDs.
    clock: u64,
    joined_micros: u64,
}

/// What an account has written when it joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountHistory {
    /// As much as gives a tree of this height; what hardly shows in its commits is deleted.
    Thinned(Layer),
    /// So many records, none of them deleted.
    Full(usize),
}

impl Account {
    /// The account of this seed, with such a past at `joined_micros`.
    pub fn new(seed: Seed, past: AccountHistory, joined_micros: u64) -> Self {
        let mut random = seed.stream(IDENTITY_STREAM);
        let did = did_plc(&mut random);
        let clock = random.below(32);
        let curve = if random.chance(1, 10) { Curve::P256 } else { Curve::K256 };
        let key = SigningKey::generate(curve, &mut random);
        Self { seed, did, key, past, clock, joined_micros }
    }

    /// The same account, with another key from now on.
    pub fn with_key(self, key: SigningKey) -> Self {
        Self { key, ..self }
    }

    /// The same account under another DID, for those who know where DIDs come from. It must not have
    /// written anything yet.
    pub fn with_did(self, did: String) -> Self {
        Self { did, ..self }
    }

    /// The DID.
    pub fn did(&self) -> &str {
        &self.did
    }

    /// The key that signs its commits.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// What it had written when it joined.
    pub fn past(&self) -> AccountHistory {
        self.past
    }

    /// The TID of this microsecond by the account's clock.
    pub fn tid(&self, micros: u64) -> Tid {
        Tid::new(micros, self.clock)
    }

    /// Its repository as it was when the account joined.
    pub fn open_repository(&self) -> Repository {
        Repository::new(self.clone())
    }

    /// When the account joined the stream; its last commit until then is of this moment.
    pub(crate) fn joined_micros(&self) -> u64 {
        self.joined_micros
    }

    /// The records that it has when it joins, sorted by key.
    pub(crate) fn old_records(&self) -> Vec<OldRecord> {
        match self.past {
            AccountHistory::Thinned(height) => {
                history::records(&self.seed, height, self.clock, self.joined_micros)
            }
            AccountHistory::Full(count) => {
                history::all_records(&self.seed, count, self.clock, self.joined_micros)
            }
        }
    }

    /// Writes its record at `path`, as of the update numbered `version`.
    pub(crate) fn write_record(&self, path: RecordPath, version: u64) -> Draft {
        record::write(&self.seed, &self.did, path, version)
    }
}

/// The stream number for DID, clock and key; collections and TIDs have others.
const IDENTITY_STREAM: u64 = 1 << 33;
