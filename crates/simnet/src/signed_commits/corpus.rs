//! The commits, and who made them.

use atproto::event::Action;
use serde::{Deserialize, Serialize};

use super::file::{self, CommitEntry};
use crate::account::{Account, AccountHistory};
use crate::keys::{Curve, POINT_LEN, SigningKey};
use crate::random::{Random, Seed};
use crate::record::{Collection, RecordPath};
use crate::repository::{RecordWrite, Repository};
use crate::tree::Layer;

/// What commits to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Everything follows from this number.
    pub seed: u64,
    /// How many accounts commit.
    pub accounts: usize,
    /// How often each of them commits.
    pub commits_per_account: usize,
    /// How many of a hundred accounts have a P-256 key; the others have a K-256 key.
    pub p256_percent: u64,
}

impl Default for Spec {
    /// 3,072 commits of 384 accounts, all on K-256.
    fn default() -> Self {
        Self { seed: 4_621_332_152, accounts: 384, commits_per_account: 8, p256_percent: 0 }
    }
}

impl Spec {
    /// The same, with a tenth of the accounts on P-256.
    pub fn mixed() -> Self {
        Self { p256_percent: 10, ..Self::default() }
    }

    /// Commits for tests: 192 of 24 accounts, a quarter of them on P-256.
    pub fn quick() -> Self {
        Self { accounts: 24, p256_percent: 25, ..Self::default() }
    }
}

/// Generated commits, in the order in which they were made.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    accounts: Vec<Account>,
    commits: Vec<Commit>,
}

/// A signed commit object.
#[derive(Clone, Debug)]
struct Commit {
    // An index into the corpus's accounts.
    account: usize,
    object: Vec<u8>,
}

impl Corpus {
    /// Makes the commits of `spec`.
    pub fn generate(spec: &Spec) -> Self {
        let mut random = Seed::new(spec.seed, "signed commits").stream(0);
        let accounts = accounts(spec, &mut random);
        let mut repositories: Vec<_> = accounts.iter().map(Account::open_repository).collect();
        let order = random.deck(&vec![1; accounts.len()], spec.accounts * spec.commits_per_account);
        let mut micros = JOINED_MICROS;
        let mut commit = |account: usize| {
            micros += random.between(1_000, 13_000);
            Commit { account, object: like(&mut repositories[account], micros) }
        };
        let commits = order.into_iter().map(&mut commit).collect();
        Self { spec: spec.clone(), accounts, commits }
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The accounts that commit.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// The bytes of a corpus file; [`read`](super::read) takes them apart.
    pub fn to_file(&self) -> Vec<u8> {
        let points: Vec<_> =
            self.accounts.iter().map(|account| account.key().public_point()).collect();
        file::write(self.commits.iter().map(|commit| self.entry(commit, &points[commit.account])))
    }

    fn entry<'a>(&'a self, commit: &'a Commit, key: &'a [u8; POINT_LEN]) -> CommitEntry<'a> {
        let curve = self.accounts[commit.account].key().curve();
        CommitEntry { curve, commit: &commit.object, key }
    }

    /// What a verifier must find.
    pub fn counts(&self) -> CommitCounts {
        let mut counts = CommitCounts::default();
        for commit in &self.commits {
            counts.commits += 1;
            match self.accounts[commit.account].key().curve() {
                Curve::K256 => counts.valid_k256 += 1,
                Curve::P256 => counts.valid_p256 += 1,
            }
        }
        counts
    }
}

/// Accounts whose keys have the curves that were asked for.
fn accounts(spec: &Spec, random: &mut Random) -> Vec<Account> {
    let curves = random.deck(&[100 - spec.p256_percent, spec.p256_percent], spec.accounts);
    let account = |(number, curve): (usize, usize)| {
        let seed = Seed::new(spec.seed, &format!("signing account {number}"));
        let key =
            SigningKey::generate([Curve::K256, Curve::P256][curve], &mut seed.stream(KEY_STREAM));
        Account::new(seed, AccountHistory::Thinned(HEIGHT), JOINED_MICROS).with_key(key)
    };
    curves.into_iter().enumerate().map(account).collect()
}

/// Commits one like and gives the signed object.
fn like(repository: &mut Repository, micros: u64) -> Vec<u8> {
    let tid = repository.account().tid(micros);
    let path = RecordPath { collection: Collection::Like, tid };
    repository.commit(&[RecordWrite { action: Action::Create, path }], tid);
    repository.head().data.clone()
}

/// How many signatures of each kind there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitCounts {
    /// Commits.
    pub commits: u64,
    /// Signatures on K-256 that are right.
    pub valid_k256: u64,
    /// Signatures on P-256 that are right.
    pub valid_p256: u64,
    /// Signatures that are wrong.
    pub invalid: u64,
    /// Commits or keys that cannot be read.
    pub errors: u64,
}

/// The layer of the roots. A commit object is the same for any; a low tree is soon made.
const HEIGHT: Layer = 2;

/// Until when the accounts have written before: 2026-07-01T00:00:00Z.
const JOINED_MICROS: u64 = 1_782_864_000_000_000;

/// The stream number of an account's seed for its key here; its own uses have others.
const KEY_STREAM: u64 = 1 << 34;
