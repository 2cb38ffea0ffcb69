//! Signed commit objects and their keys, for tests and benchmarks of signature verification.
//!
//! Many accounts with a repository and a key each commit in turn; the file has the signed objects and the keys of the
//! commits. An account recurs several times at varying distances, so that caching parsed keys pays as it would on a live
//! stream:
//!
//! | part | bytes |
//! |---|---|
//! | count | 4, big-endian |
//! | curve | 1: 0 for P-256, 1 for K-256 |
//! | commit | 2 bytes of length, big-endian, and the signed object |
//! | key | 2 bytes of length, big-endian, and the compressed point; then the next curve |
//!
//! ```
//! use wireproof_simnet::signed_commits::{self, Corpus, Spec};
//! let corpus = Corpus::generate(&Spec::quick());
//! let file = corpus.to_file();
//! assert_eq!(signed_commits::read(&file).unwrap().len(), 192);
//! ```

use std::collections::BTreeMap;

use atproto::event::Action;
use codec::Cid;
use codec::cid::Codec;
use serde::{Deserialize, Serialize};

use crate::account::{Account, AccountHistory};
use crate::corpus::{self, NoDetails};
use crate::keys::{Curve, POINT_LEN, SigningKey};
use crate::random::{DEFAULT_SEED, Random, Seed};
use crate::record::{Collection, RecordPath};
use crate::repository::{RecordWrite, Repository, sign};
use crate::time::START_MICROS;
use crate::tree::Layer;

#[cfg(test)]
mod tests;

/// The specification of a file of signed commits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The seed.
    pub seed: u64,
    /// The number of accounts, with one key each.
    pub accounts: usize,
    /// The number of commits per account.
    pub commits_per_account: usize,
    /// The number of commits in all, by random accounts; `None` for `commits_per_account` of every account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drawn_commits: Option<usize>,
    /// The share of accounts with a P-256 key in percent; the others have a K-256 key.
    pub p256_percent: u64,
}

impl Default for Spec {
    /// 3,072 commits of 384 accounts, all on K-256.
    fn default() -> Self {
        Self {
            seed: DEFAULT_SEED,
            accounts: 384,
            commits_per_account: 8,
            drawn_commits: None,
            p256_percent: 0,
        }
    }
}

impl Spec {
    /// The default with a tenth of the accounts on P-256.
    pub fn mixed() -> Self {
        Self { p256_percent: 10, ..Self::default() }
    }

    /// 12,288 commits by random ones of 100,000 accounts, 2 % of them on P-256: nearly every commit is of another account.
    pub fn many_accounts() -> Self {
        Self { accounts: 100_000, drawn_commits: Some(12_288), p256_percent: 2, ..Self::default() }
    }

    /// A small file for tests: 192 commits of 24 accounts, a quarter of them on P-256.
    pub fn quick() -> Self {
        Self { accounts: 24, p256_percent: 25, ..Self::default() }
    }
}

/// The description of a file of signed commits.
pub type Manifest = corpus::Manifest<Spec, CommitCounts>;

/// Generated commits in the order of their creation.
#[derive(Clone, Debug)]
pub struct Corpus {
    spec: Spec,
    accounts: Vec<Account>,
    commits: Vec<SignedCommit>,
}

/// A signed commit object.
#[derive(Clone, Debug)]
struct SignedCommit {
    // An index into the corpus's accounts.
    account: usize,
    object: Vec<u8>,
}

impl Corpus {
    /// Generates the commits of `spec`.
    pub fn generate(spec: &Spec) -> Self {
        let mut random = Seed::new(spec.seed, "signed commits").stream(0);
        if let Some(count) = spec.drawn_commits {
            return Self::draw(spec, count, &mut random);
        }
        let accounts = accounts(spec, &mut random);
        let mut repositories: Vec<_> = accounts.iter().map(Account::open_repository).collect();
        let count = spec.accounts * spec.commits_per_account;
        let order = random.apportioned(&vec![1; accounts.len()], count);
        let mut micros = START_MICROS;
        let mut commit = |account: usize| {
            micros += random.between(1_000, 13_000);
            SignedCommit { account, object: commit_like(&mut repositories[account], micros) }
        };
        let commits = order.into_iter().map(&mut commit).collect();
        Self { spec: spec.clone(), accounts, commits }
    }

    /// Draws the accounts of the commits. Only drawn accounts are made, without their trees: a commit object has
    /// a random root.
    fn draw(spec: &Spec, count: usize, random: &mut Random) -> Self {
        let mut indices = BTreeMap::new();
        let mut accounts: Vec<Account> = Vec::new();
        let mut micros = START_MICROS;
        let mut commit = |_| {
            let number = random.below(spec.accounts as u64) as usize;
            let account = *indices.entry(number).or_insert_with(|| {
                let is_p256 = random.chance(spec.p256_percent, 100);
                let curve = if is_p256 { Curve::P256 } else { Curve::K256 };
                accounts.push(account(spec, number, curve));
                accounts.len() - 1
            });
            micros += random.between(1_000, 13_000);
            let signer = &accounts[account];
            let data = Cid::from_digest(Codec::DagCbor, &random.bytes32());
            let object = sign(signer.did(), signer.key(), signer.tid(micros), data).data;
            SignedCommit { account, object }
        };
        let commits = (0..count).map(&mut commit).collect();
        Self { spec: spec.clone(), accounts, commits }
    }

    /// The specification.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The accounts.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// The bytes of the file; [`read`] parses them.
    pub fn to_file(&self) -> Vec<u8> {
        let points: Vec<_> =
            self.accounts.iter().map(|account| account.key().public_point()).collect();
        write(self.commits.iter().map(|commit| CommitEntry {
            curve: self.curve(commit),
            commit: &commit.object,
            key: &points[commit.account],
        }))
    }

    fn curve(&self, commit: &SignedCommit) -> Curve {
        self.accounts[commit.account].key().curve()
    }

    /// The description of `file`, the bytes of [`Corpus::to_file`].
    pub fn manifest(&self, file: &[u8]) -> Manifest {
        Manifest::new(self.spec.clone(), self.counts(), NoDetails {}, file)
    }

    /// The counts that a verifier finds.
    pub fn counts(&self) -> CommitCounts {
        let mut counts = CommitCounts::default();
        for commit in &self.commits {
            counts.commits += 1;
            match self.curve(commit) {
                Curve::K256 => counts.valid_k256 += 1,
                Curve::P256 => counts.valid_p256 += 1,
            }
        }
        counts
    }
}

/// Accounts whose keys have the specified curves.
fn accounts(spec: &Spec, random: &mut Random) -> Vec<Account> {
    let curves = random.apportioned(&[100 - spec.p256_percent, spec.p256_percent], spec.accounts);
    let of_curve =
        |(number, curve): (usize, usize)| account(spec, number, [Curve::K256, Curve::P256][curve]);
    curves.into_iter().enumerate().map(of_curve).collect()
}

fn account(spec: &Spec, number: usize, curve: Curve) -> Account {
    let seed = Seed::new(spec.seed, &format!("signing account {number}"));
    let key = SigningKey::generate(curve, &mut seed.stream(KEY_STREAM));
    Account::new(seed, AccountHistory::Thinned(HEIGHT), START_MICROS).with_key(key)
}

/// Commits one like and returns the signed object.
fn commit_like(repository: &mut Repository, micros: u64) -> Vec<u8> {
    let tid = repository.account().tid(micros);
    let path = RecordPath { collection: Collection::Like, tid };
    repository.commit(&[RecordWrite { action: Action::Create, path }], tid);
    repository.head().data.clone()
}

/// The counts that a verifier finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitCounts {
    /// Commits.
    pub commits: u64,
    /// Valid signatures on K-256.
    pub valid_k256: u64,
    /// Valid signatures on P-256.
    pub valid_p256: u64,
    /// Invalid signatures.
    pub invalid: u64,
    /// Commits or keys that cannot be parsed.
    pub errors: u64,
}

/// A signed commit and the key that signed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitEntry<'a> {
    /// The curve of the key.
    pub curve: Curve,
    /// The signed commit object.
    pub commit: &'a [u8],
    /// The public key as a compressed point.
    pub key: &'a [u8; POINT_LEN],
}

/// Parses a file. `None` unless it holds exactly the entries it states.
pub fn read(file: &[u8]) -> Option<Vec<CommitEntry<'_>>> {
    let (count, mut rest) = file.split_first_chunk()?;
    let mut entries = Vec::new();
    for _ in 0..u32::from_be_bytes(*count) {
        let entry;
        (entry, rest) = split_entry(rest)?;
        entries.push(entry);
    }
    rest.is_empty().then_some(entries)
}

fn split_entry(bytes: &[u8]) -> Option<(CommitEntry<'_>, &[u8])> {
    let (&curve, rest) = bytes.split_first()?;
    let curve = CURVES.into_iter().find(|(code, _)| *code == curve)?.1;
    let (commit, rest) = split_piece(rest)?;
    let (key, rest) = split_piece(rest)?;
    Some((CommitEntry { curve, commit, key: key.try_into().ok()? }, rest))
}

fn split_piece(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))
}

/// The file of `entries`, in order.
///
/// # Panics
/// If there are 2³² entries or more, or a commit is 64 KiB or longer.
pub fn write<'e>(entries: impl IntoIterator<Item = CommitEntry<'e>>) -> Vec<u8> {
    let mut file = vec![0; 4];
    let mut count = 0u32;
    for entry in entries {
        let code = CURVES.into_iter().find(|(_, curve)| *curve == entry.curve);
        file.extend(code.map(|(code, _)| code));
        write_piece(&mut file, entry.commit);
        write_piece(&mut file, entry.key);
        count = count.checked_add(1).expect("fewer than 2^32 entries");
    }
    file[..4].copy_from_slice(&count.to_be_bytes());
    file
}

fn write_piece(file: &mut Vec<u8>, piece: &[u8]) {
    let len = u16::try_from(piece.len()).expect("a piece shorter than 64 KiB");
    file.extend(len.to_be_bytes());
    file.extend(piece);
}

/// The curves and their codes.
const CURVES: [(u8, Curve); 2] = [(0, Curve::P256), (1, Curve::K256)];

/// The layer of the roots: commit objects are the same for any height, and low trees are cheap.
const HEIGHT: Layer = 2;

/// The stream number of an account's seed for its key here; its other uses have others.
const KEY_STREAM: u64 = 1 << 34;
