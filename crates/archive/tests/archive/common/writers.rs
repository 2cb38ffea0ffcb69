//! Accounts that write commits, and the days on which these are archived.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

use atproto::repo::RepositoryWriter;
use atproto::syntax::{Did, Tid};
use crypto::{Curve, PublicKey, SecretKey};
use verify::identity::AccountKeys;
use verify::repository::{self, Options};
use verify::sync::Policy;
use wireproof_archive::{Archive, ArchivedRepository, ImportOptions, WorkId};

/// Accounts that write, and the frames of their commits.
pub(crate) struct Writers {
    pub(crate) accounts: Vec<Account>,
    random: u64,
    micros: u64,
    seq: i64,
}

pub(crate) struct Account {
    secret: SecretKey,
    pub(crate) repository: RepositoryWriter,
    paths: Vec<String>,
}

impl Writers {
    pub(crate) fn new(accounts: u8, seed: u64) -> Self {
        let account = |number: u8| {
            let curve = if number.is_multiple_of(3) { Curve::P256 } else { Curve::K256 };
            Account {
                secret: SecretKey::from_bytes(curve, &[number + 1; 32]).unwrap(),
                repository: RepositoryWriter::new(
                    Did::parse(&format!("did:web:account{number}.test")).unwrap(),
                ),
                paths: Vec::new(),
            }
        };
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { accounts: (0..accounts).map(account).collect(), random, micros: DAY_0, seq: 0 }
    }

    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// A commit of one to three operations of an account.
    pub(crate) fn commit(&mut self, account: usize) -> Vec<u8> {
        let count = 1 + self.random(3);
        for _ in 0..count {
            let (choice, number) = (self.random(10), self.random(1 << 40));
            let account = &mut self.accounts[account];
            let known = (number as usize).checked_rem(account.paths.len());
            match known {
                Some(known) if choice < 2 => {
                    // One record is changed once in a commit.
                    let path = account.paths.swap_remove(known);
                    account.repository.delete(&path).unwrap();
                }
                Some(known) if choice < 4 => {
                    let path = &account.paths[known];
                    account.repository.update(path, &record(path, number, "an update")).unwrap();
                }
                _ => {
                    let path = format!("app.test.c{}/{number:013}", number % 3);
                    account.repository.create(&path, &record(&path, number, "a post")).unwrap();
                    account.paths.push(path);
                }
            }
        }
        self.frame(account)
    }

    /// A commit that creates a record.
    pub(crate) fn create(&mut self, account: usize, path: &str, record: &[u8]) -> Vec<u8> {
        self.accounts[account].repository.create(path, record).unwrap();
        self.frame(account)
    }

    /// A commit that deletes a record.
    pub(crate) fn delete(&mut self, account: usize, path: &str) -> Vec<u8> {
        self.accounts[account].repository.delete(path).unwrap();
        self.frame(account)
    }

    /// The frame of the changes of an account.
    fn frame(&mut self, account: usize) -> Vec<u8> {
        self.micros += 1_000_000;
        self.seq += 1;
        let (micros, seq) = (self.micros, self.seq);
        let Account { secret, repository, .. } = &mut self.accounts[account];
        let commit =
            repository.commit(Tid::new(micros, 0), |message| secret.sign(message)).unwrap();
        commit.to_frame(seq, "2026-07-01T00:00:00Z").unwrap()
    }

    /// Commits of random accounts.
    pub(crate) fn commits(&mut self, count: usize) -> Vec<Vec<u8>> {
        let accounts = self.accounts.len() as u64;
        (0..count)
            .map(|_| {
                let account = self.random(accounts) as usize;
                self.commit(account)
            })
            .collect()
    }

    pub(crate) fn keys(&self) -> AccountKeys {
        let keys: BTreeMap<&str, String> = self
            .accounts
            .iter()
            .map(|account| (account.did(), account.secret.public_key().to_did_key()))
            .collect();
        AccountKeys::from_json(&serde_json::to_vec(&keys).unwrap()).unwrap()
    }

    /// Archives frames that came on a day.
    pub(crate) async fn import(&self, archive: &Archive, frames: &[Vec<u8>], name: &str, day: i64) {
        let options = ImportOptions {
            host: "relay.test".to_owned(),
            name: name.to_owned(),
            now_micros: later(day),
            policy: Policy::default(),
        };
        let frames = frames.iter().map(Vec::as_slice);
        archive.import_frames(frames, &self.keys(), &options).await.unwrap();
    }
}

impl Account {
    pub(crate) fn did(&self) -> &str {
        self.repository.did().as_str()
    }

    pub(crate) fn key(&self) -> PublicKey {
        self.secret.public_key()
    }

    /// The paths of the records, in no order.
    pub(crate) fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Archives the repository as it is.
    pub(crate) async fn snapshot(&mut self, archive: &Archive, day: i64) {
        let car = self.repository.export(Vec::new()).unwrap();
        let key = self.key();
        let repository = repository::verify(&car, None, &key, &Options::default()).unwrap();
        let archived = ArchivedRepository {
            repository: &repository,
            key: &key,
            host: "pds.test",
            fetched: received(day),
        };
        let work = WorkId { writer: format!("{} {}", self.did(), later(day)), number: 0 };
        archive.seal_repositories(vec![archived], Some(&work)).await.unwrap();
    }
}

/// DAG-CBOR of a record with a text that is found nowhere else.
pub(crate) fn record(path: &str, number: u64, text: &str) -> Vec<u8> {
    let text = format!("{text} of number {number:020}, which no other record has");
    let mut record = b"\xa2\x64text\x78".to_vec();
    record.push(text.len() as u8);
    record.extend(text.as_bytes());
    record.extend(b"\x65$type\x6b");
    record.extend(path.split('/').next().unwrap().as_bytes());
    record
}

/// 2026-07-01 in microseconds.
pub(crate) const DAY_0: u64 = 1_782_864_000_000_000;

/// Noon of a day.
pub(crate) fn received(day: i64) -> i64 {
    DAY_0 as i64 + (day * 24 + 12) * 3_600_000_000
}

/// A time of a day that no other call returns.
pub(crate) fn later(day: i64) -> i64 {
    static CALLS: AtomicI64 = AtomicI64::new(0);
    received(day) + CALLS.fetch_add(1, Relaxed) * 1_000_000
}

/// The time before which everything of a day and the days before it came.
pub(crate) fn after(day: i64) -> i64 {
    DAY_0 as i64 + (day + 1) * 24 * 3_600_000_000
}
