//! Unsigned commits of many operations, without trees: content for tables of operations. They do not verify.
//!
//! Collections have the shares of the live network: two operations in three are likes. Posts have their records; other
//! operations have a path and a CID.

use std::sync::Arc;

use atproto::event::Action;
use atproto::syntax::Tid;
use codec::cid::{Cid, Codec};

use crate::random::{Random, Seed};
use crate::record::{self, Collection, RecordPath, did_plc};
use crate::repository::{NewCommit, RecordOp};
use crate::time::START_MICROS;

/// Seed and size of the generated commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// Number of accounts.
    pub accounts: u32,
    /// Number of commits per account.
    pub commits: u32,
    /// Number of operations per commit: at most 200 in an event.
    pub operations: u32,
}

/// A commit and its account.
#[derive(Clone, Debug)]
pub struct UnsignedCommit {
    /// The account.
    pub did: String,
    /// The time of its revision, in microseconds since 1970.
    pub micros: u64,
    /// The `#commit` frame.
    pub frame: Vec<u8>,
}

impl Spec {
    /// Number of operations of all commits.
    pub fn operations(&self) -> u64 {
        u64::from(self.accounts) * u64::from(self.commits) * u64::from(self.operations)
    }

    /// The commits, account by account.
    pub fn generate(self) -> impl Iterator<Item = UnsignedCommit> {
        (0..self.accounts).flat_map(move |account| self.of_account(account))
    }

    fn of_account(self, account: u32) -> impl Iterator<Item = UnsignedCommit> {
        let seed = Seed::new(self.seed, "unsigned commits");
        let mut random = seed.stream(u64::from(account));
        let did = did_plc(&mut random);
        (0..self.commits).map(move |number| {
            let micros = START_MICROS + u64::from(number) * 1_000_000 + u64::from(account);
            self.commit(&did, micros, &seed, &mut random)
        })
    }

    fn commit(&self, did: &str, micros: u64, seed: &Seed, random: &mut Random) -> UnsignedCommit {
        let (mut ops, mut blocks) = (Vec::new(), Vec::new());
        for number in 0..u64::from(self.operations) {
            let path = RecordPath {
                collection: collection(random),
                // All of them before the commit.
                tid: Tid::new(micros - 1_000_000 + number * 1_000, 0),
            };
            let cid = match path.collection {
                Collection::Post => {
                    let block = record::write(seed, did, path, 0).into_block();
                    let cid = block.cid;
                    blocks.push(Arc::new(block));
                    cid
                }
                _ => any_cid(random),
            };
            let (key, cid) = (path.to_key(), Some(cid));
            ops.push(RecordOp { action: Action::Create, key, cid, prev: None });
        }
        let rev = Tid::new(micros, 0);
        let (commit, data) = (any_cid(random), any_cid(random));
        let (since, prev_data) = (Tid::new(micros - 1_000_000, 0), any_cid(random));
        let commit =
            NewCommit { did: did.to_owned(), rev, since, commit, data, prev_data, ops, blocks };
        UnsignedCommit {
            did: did.to_owned(),
            micros,
            frame: commit.to_frame(micros as i64, micros),
        }
    }
}

fn collection(random: &mut Random) -> Collection {
    match random.below(100) {
        0..66 => Collection::Like,
        66..77 => Collection::Post,
        77..87 => Collection::Repost,
        87..98 => Collection::Follow,
        _ => Collection::Block,
    }
}

/// A random CID, without a block.
fn any_cid(random: &mut Random) -> Cid {
    Cid::of(Codec::DagCbor, &random.bytes32())
}
