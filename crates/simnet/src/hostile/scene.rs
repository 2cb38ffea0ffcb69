//! Who is there before anything goes wrong?

use codec::Cid;
use codec::cid::Codec;

use super::forge::author::{Author, Write};
use super::forge::commit;
use super::forge::event::Draft;
use super::forge::item::Item;
use super::forge::tree::Leaf;
use crate::account::{Account, AccountHistory};
use crate::keys::{Curve, SigningKey};
use crate::random::{Random, Seed};
use crate::record::{Collection, RecordPath};
use crate::tid::Tid;
use crate::tree::{Layer, key_height};

/// The accounts and records that all cases share.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    seed: u64,
    account: Account,
    p256: Account,
    stranger: SigningKey,
}

impl Scene {
    pub(crate) fn new(seed: u64) -> Self {
        let account = |name: &str, curve| {
            let seed = Seed::new(seed, &format!("hostile {name}"));
            let key = SigningKey::generate(curve, &mut seed.stream(KEY_STREAM));
            Account::new(seed, AccountHistory::Full(RECORDS), JOINED_MICROS).with_key(key)
        };
        let stranger = account("stranger", Curve::K256).key().clone();
        let (k256, p256) = (account("k256", Curve::K256), account("p256", Curve::P256));
        Self { seed, account: k256, p256, stranger }
    }

    /// Choices that matter to nothing but one case.
    pub(crate) fn random(&self, label: &str) -> Random {
        Seed::new(self.seed, &format!("hostile {label}")).stream(0)
    }

    /// The account that the cases are about; its key is on K-256.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// One with a key on P-256.
    pub(crate) fn p256(&self) -> &Account {
        &self.p256
    }

    /// A key that is nobody's here.
    pub(crate) fn stranger(&self) -> &SigningKey {
        &self.stranger
    }

    /// The account's commit of this tree, before it is signed.
    pub(crate) fn unsigned_commit(&self, data: &Cid) -> Item {
        let rev = self.account.tid(JOINED_MICROS).to_string();
        commit::unsigned(self.account.did(), &rev, data)
    }

    /// The account's commit of this tree.
    pub(crate) fn commit(&self, data: &Cid) -> Item {
        commit::sign(self.unsigned_commit(data), self.account.key())
    }

    /// Likes whose keys have these heights, in ascending order of the keys.
    pub(crate) fn leaves<const N: usize>(&self, heights: [Layer; N]) -> [Leaf; N] {
        let mut all = self.likes();
        heights.map(|height| {
            all.find(|leaf| key_height(&leaf.key) == height).expect("a key of any low height")
        })
    }

    /// The first `count` likes.
    pub(crate) fn some_leaves(&self, count: usize) -> Vec<Leaf> {
        self.likes().take(count).collect()
    }

    /// Likes without end, a second apart, in ascending order of the keys.
    pub(crate) fn likes(&self) -> impl Iterator<Item = Leaf> {
        (0..).map(|second| self.like(self.account.tid(FIRST_LIKE_MICROS + second * 1_000_000), 0))
    }

    /// A like that the account of [`Scene::author`] has not written yet.
    pub(crate) fn unseen(&self, index: usize) -> Leaf {
        self.likes().nth(RECORDS + index).expect("likes without end")
    }

    fn like(&self, tid: Tid, version: u64) -> Leaf {
        let path = RecordPath { collection: Collection::Like, tid };
        let record = self.account.write_record(path, version).data;
        Leaf { key: path.to_key(), record, codec: Codec::DagCbor }
    }

    /// A record under any key.
    pub(crate) fn leaf_at(&self, key: &str) -> Leaf {
        let [leaf] = self.leaves([0]);
        Leaf { key: key.to_owned(), ..leaf }
    }

    /// The account with some records, of whose commits nobody knows yet.
    pub(crate) fn author(&self) -> Author<'_> {
        Author::with_records(&self.account, JOINED_MICROS, &self.some_leaves(RECORDS))
    }

    /// A story of one valid commit, and of the next that somebody has yet to spoil: it creates a
    /// like.
    pub(crate) fn two_commits(&self) -> [Draft; 2] {
        let mut author = self.author();
        [0, 1].map(|index| author.commit(&[Write::Create(&self.unseen(index))]))
    }

    /// The same record, written differently.
    pub(crate) fn updated(&self, leaf: &Leaf) -> Leaf {
        let (_, rkey) = leaf.key.split_once('/').expect("the key of a like");
        self.like(Tid::parse(rkey).expect("the key of a like"), 1)
    }
}

/// How many records the accounts have.
pub(crate) const RECORDS: usize = 60;

/// When the accounts last committed before the stories begin: 2026-07-01T00:00:00Z.
pub(crate) const JOINED_MICROS: u64 = 1_782_864_000_000_000;

/// What time it is when the cases are judged: an hour later.
pub(crate) const NOW_MICROS: u64 = JOINED_MICROS + 3_600_000_000;

/// When the first like was written.
const FIRST_LIKE_MICROS: u64 = JOINED_MICROS - 86_400_000_000;

/// The stream number of an account's seed for its key here; its own uses have others.
const KEY_STREAM: u64 = 1 << 34;
