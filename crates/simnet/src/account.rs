//! Accounts: a DID, a signing key and the records written before the stream begins, all derived from
//! the account's seed.

use atproto::syntax::Tid;

use crate::block::UnhashedBlock;
use crate::history::{self, InitialRecord};
use crate::keys::{Curve, SigningKey};
use crate::random::Seed;
use crate::record::{self, RecordPath, did_plc};
use crate::repository::Repository;
use crate::tree::Layer;

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
    seed: Seed,
    did: String,
    key: SigningKey,
    history: AccountHistory,
    /// The clock identifier in its TIDs.
    clock_id: u16,
    joined_micros: u64,
    /// Whether there are the blobs that its records name.
    has_blobs: bool,
}

/// The records that an account has when it joins the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountHistory {
    /// Enough for a tree of this height; records that hardly show in commits are deleted.
    Thinned(Layer),
    /// This number of records, none of them deleted.
    Full(usize),
}

impl Account {
    /// The account of this seed, which joins the stream at `joined_micros`.
    pub fn new(seed: Seed, history: AccountHistory, joined_micros: u64) -> Self {
        let mut random = seed.stream(IDENTITY_STREAM);
        let did = did_plc(&mut random);
        let clock_id = random.below(32) as u16;
        let curve = if random.chance(1, 10) { Curve::P256 } else { Curve::K256 };
        let key = SigningKey::generate(curve, &mut random);
        Self { seed, did, key, history, clock_id, joined_micros, has_blobs: false }
    }

    /// The same account with another signing key from now on.
    pub fn with_key(self, key: SigningKey) -> Self {
        Self { key, ..self }
    }

    /// The same account under another DID. It must not have written anything yet.
    pub fn with_did(self, did: String) -> Self {
        Self { did, ..self }
    }

    /// The same account with the blobs that its records name. It must not have written anything yet.
    pub fn with_blobs(self) -> Self {
        Self { has_blobs: true, ..self }
    }

    /// The DID.
    pub fn did(&self) -> &str {
        &self.did
    }

    /// The key that signs its commits.
    pub fn key(&self) -> &SigningKey {
        &self.key
    }

    /// The records it has when it joins.
    pub fn history(&self) -> AccountHistory {
        self.history
    }

    /// The TID of this microsecond by the account's clock.
    pub fn tid(&self, micros: u64) -> Tid {
        Tid::new(micros, self.clock_id)
    }

    /// Its repository at the time it joined.
    pub fn open_repository(&self) -> Repository {
        Repository::new(self.clone())
    }

    /// The time of its last commit before the stream.
    pub(crate) fn joined_micros(&self) -> u64 {
        self.joined_micros
    }

    /// The records it has when it joins, sorted by key.
    pub(crate) fn initial_records(&self) -> Vec<InitialRecord> {
        match self.history {
            AccountHistory::Thinned(height) => {
                history::thinned_records(&self.seed, height, self.clock_id, self.joined_micros)
            }
            AccountHistory::Full(count) => {
                history::all_records(&self.seed, count, self.clock_id, self.joined_micros)
            }
        }
    }

    /// Writes its record at `path` after `version` updates.
    pub(crate) fn write_record(&self, path: RecordPath, version: u64) -> UnhashedBlock {
        self.write_blobs(path, version).0
    }

    /// Writes its record at `path` after `version` updates, and the contents of its blobs, if there are such.
    pub(crate) fn write_blobs(
        &self,
        path: RecordPath,
        version: u64,
    ) -> (UnhashedBlock, Vec<Vec<u8>>) {
        let mut blobs = Vec::new();
        let out = self.has_blobs.then_some(&mut blobs);
        (record::write_with(&self.seed, &self.did, path, version, out), blobs)
    }
}

/// The stream number for DID, clock and key; collections and TIDs use others.
const IDENTITY_STREAM: u64 = 1 << 33;
