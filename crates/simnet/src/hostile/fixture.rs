//! The accounts, records and commits that all cases start from, and builders of cases.

use atproto::syntax::Tid;
use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, CaseBuilder, Rule};
use super::parts::archive::{Archive, Item, Section};
use super::parts::commit::{Author, CommitEvent, Write, sign, unsigned};
use super::parts::tree::{Leaf, NodeEntry, node};
use crate::account::{Account, AccountHistory};
use crate::keys::{Curve, SigningKey};
use crate::random::{Random, Seed};
use crate::record::{Collection, RecordPath};
use crate::time::{DAY_MICROS, START_MICROS};
use crate::tree::{Layer, Tree, TreeItem, key_height};

/// The accounts and records that all cases share.
#[derive(Clone, Debug)]
pub(crate) struct Fixture {
    seed: u64,
    account: Account,
    p256: Account,
    other_key: SigningKey,
}

impl Fixture {
    pub(crate) fn new(seed: u64) -> Self {
        let account = |name: &str, curve| {
            let seed = Seed::new(seed, &format!("hostile {name}"));
            let key = SigningKey::generate(curve, &mut seed.stream(KEY_STREAM));
            Account::new(seed, AccountHistory::Full(EXISTING_RECORDS), START_MICROS).with_key(key)
        };
        let other_key = account("stranger", Curve::K256).key().clone();
        let (k256, p256) = (account("k256", Curve::K256), account("p256", Curve::P256));
        Self { seed, account: k256, p256, other_key }
    }

    /// The seed of the set.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// A generator for the choices of one case.
    pub(crate) fn random(&self, label: &str) -> Random {
        Seed::new(self.seed, &format!("hostile {label}")).stream(0)
    }

    /// The account of most cases, with a key on K-256.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// An account with a key on P-256.
    pub(crate) fn p256(&self) -> &Account {
        &self.p256
    }

    /// A key of neither account.
    pub(crate) fn other_key(&self) -> &SigningKey {
        &self.other_key
    }

    /// The unsigned commit of this tree by the account.
    pub(crate) fn unsigned_commit(&self, data: &Cid) -> Item {
        let rev = self.account.tid(START_MICROS).to_string();
        unsigned(self.account.did(), &rev, data)
    }

    /// The signed commit of this tree by the account.
    pub(crate) fn commit(&self, data: &Cid) -> Item {
        sign(self.unsigned_commit(data), self.account.key())
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

    /// An endless sequence of likes, a second apart, in ascending order of the keys.
    pub(crate) fn likes(&self) -> impl Iterator<Item = Leaf> {
        (0..).map(|second| self.like(self.account.tid(FIRST_LIKE_MICROS + second * 1_000_000), 0))
    }

    /// The likes that the account of [`Fixture::author`] has.
    pub(crate) fn existing_likes(&self) -> Vec<Leaf> {
        self.some_leaves(EXISTING_RECORDS)
    }

    /// The first `count` likes of height 0.
    pub(crate) fn low_likes(&self, count: usize) -> Vec<Leaf> {
        self.likes().filter(|leaf| key_height(&leaf.key) == 0).take(count).collect()
    }

    /// Keys of height 0 that are as short as paths can be, ascending, all of one record.
    pub(crate) fn short_keys(&self) -> impl Iterator<Item = Leaf> {
        let [leaf] = self.leaves([0]);
        let keys = (0..).map(|number: u32| format!("a.b.c/{number:05}"));
        let low = keys.filter(|key| key_height(key) == 0);
        low.map(move |key| Leaf { key, ..leaf.clone() })
    }

    /// A like that the account of [`Fixture::author`] does not have.
    pub(crate) fn new_like(&self, index: usize) -> Leaf {
        self.likes().nth(EXISTING_RECORDS + index).expect("an endless sequence")
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

    /// The account with its existing likes, before its first event.
    pub(crate) fn author(&self) -> Author<'_> {
        Author::with_records(&self.account, START_MICROS, &self.existing_likes())
    }

    /// Two valid commits, which create a like each.
    pub(crate) fn two_commits(&self) -> [CommitEvent; 2] {
        let mut author = self.author();
        [0, 1].map(|index| author.commit(&[Write::Create(&self.new_like(index))]))
    }

    /// The same like with other contents.
    pub(crate) fn updated(&self, leaf: &Leaf) -> Leaf {
        let (_, rkey) = leaf.key.split_once('/').expect("the key of a like");
        self.like(Tid::parse(rkey).expect("the key of a like"), 1)
    }
}

/// A repository under construction.
pub(crate) struct RepositoryBuilder<'s> {
    fixture: &'s Fixture,
    sections: Vec<Section>,
}

impl<'s> RepositoryBuilder<'s> {
    pub(crate) fn new(fixture: &'s Fixture) -> Self {
        Self { fixture, sections: Vec::new() }
    }

    /// Adds a valid node and the records of its keys.
    pub(crate) fn node(&mut self, left: Option<Cid>, entries: &[NodeEntry<'_>]) -> Cid {
        self.altered_node(left, entries, |_| ())
    }

    /// Adds a node altered by `change` before it is hashed, and the records of its keys.
    pub(crate) fn altered_node(
        &mut self,
        left: Option<Cid>,
        entries: &[NodeEntry<'_>],
        change: impl FnOnce(&mut Item),
    ) -> Cid {
        for (leaf, _) in entries {
            self.add(leaf.section());
        }
        let mut node = node(left, entries);
        change(&mut node);
        self.block(node.encode())
    }

    /// Adds any block.
    pub(crate) fn block(&mut self, data: Vec<u8>) -> Cid {
        let section = Section::of(data);
        let name = section.cid();
        self.add(section);
        name
    }

    fn add(&mut self, section: Section) {
        if self.sections.iter().all(|other| other.cid != section.cid) {
            self.sections.push(section);
        }
    }

    /// The archive with this root of the tree and a commit signed by the account.
    pub(crate) fn signed(self, data: Cid) -> Archive {
        let commit = self.fixture.commit(&data);
        self.committed(commit)
    }

    /// The archive with this commit.
    pub(crate) fn committed(self, commit: Item) -> Archive {
        let mut sections = vec![Section::of(commit.encode())];
        sections.extend(self.sections);
        Archive::new(sections)
    }

    /// The archive of a tree of one node.
    pub(crate) fn one_node(fixture: &'s Fixture, leaves: &[Leaf]) -> Archive {
        Self::one_altered_node(fixture, leaves, |_| ())
    }

    /// The same with the node altered by `change`.
    pub(crate) fn one_altered_node(
        fixture: &'s Fixture,
        leaves: &[Leaf],
        change: impl FnOnce(&mut Item),
    ) -> Archive {
        let mut builder = Self::new(fixture);
        let entries: Vec<NodeEntry<'_>> = leaves.iter().map(|leaf| (leaf, None)).collect();
        let root = builder.altered_node(None, &entries, change);
        builder.signed(root)
    }
}

/// A valid archive in streamable order, and the CIDs of its blocks.
#[derive(Clone, Debug)]
pub(crate) struct ValidRepository {
    pub(crate) archive: Archive,
    /// The nodes, parents before children, from left to right.
    pub(crate) nodes: Vec<Cid>,
    /// The records, in the order of their keys.
    pub(crate) records: Vec<Cid>,
}

impl ValidRepository {
    /// The repository of `account`.
    pub(crate) fn of(account: &Account) -> Self {
        let repository = account.open_repository();
        let mut sections = Vec::new();
        repository.for_each_block(&mut |_, data| sections.push(Section::of(data.to_vec())));
        let (nodes, records) = contents(repository.tree());
        Self { archive: Archive::new(sections), nodes, records }
    }

    pub(crate) fn commit(&self) -> Cid {
        self.archive.sections[0].cid()
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> Cid {
        self.nodes[0]
    }

    /// The last node before the first record: the first one in key order.
    pub(crate) fn leading_node(&self) -> Cid {
        let first_record = self.position(&self.records[0]);
        self.archive.sections[first_record - 1].cid()
    }

    /// The index of a block in the archive.
    pub(crate) fn position(&self, cid: &Cid) -> usize {
        let mut sections = self.archive.sections.iter();
        sections.position(|section| section.cid == cid.as_bytes()).expect("a block of the archive")
    }

    /// The archive after `change`.
    pub(crate) fn with(&self, change: impl FnOnce(&mut Archive)) -> Archive {
        let mut archive = self.archive.clone();
        change(&mut archive);
        archive
    }
}

fn contents(tree: &Tree) -> (Vec<Cid>, Vec<Cid>) {
    let (mut nodes, mut records) = (Vec::new(), Vec::new());
    tree.walk(&mut |visit| match visit {
        TreeItem::Node(node) => nodes.push(node.cid),
        TreeItem::Record(entry) => records.push(entry.value),
    });
    (nodes, records)
}

/// A case of the second commit of [`Fixture::two_commits`], altered by `change`.
pub(super) fn altered(
    fixture: &Fixture,
    name: &str,
    code: &'static str,
    rule: Rule,
    change: impl FnOnce(&mut CommitEvent),
) -> Case {
    let [one, mut two] = fixture.two_commits();
    change(&mut two);
    rejected_frames(fixture, name, code, rule, &[one.to_frame(), two.to_frame()])
}

/// A case of a commit of `writes` after a valid commit, altered by `change`.
pub(super) fn altered_writes(
    fixture: &Fixture,
    name: &str,
    code: &'static str,
    rule: Rule,
    writes: &[Write<'_>],
    change: impl FnOnce(&mut CommitEvent),
) -> Case {
    let mut author = fixture.author();
    let one = author.commit(&[Write::Create(&fixture.new_like(0))]);
    let mut two = author.commit(writes);
    change(&mut two);
    rejected_frames(fixture, name, code, rule, &[one.to_frame(), two.to_frame()])
}

/// A case of frames of which the last must be rejected.
pub(super) fn rejected_frames(
    fixture: &Fixture,
    name: &str,
    code: &'static str,
    rule: Rule,
    frames: &[Vec<u8>],
) -> Case {
    CaseBuilder::frames(fixture.account(), name, frames).rejected(code, rule)
}

/// The CID of a block that is in no archive.
pub(super) fn unknown_cid() -> Cid {
    Cid::of(Codec::DagCbor, b"nobody has this block")
}

/// The number of records of an account.
pub(crate) const EXISTING_RECORDS: usize = 60;

/// The time of the first like: a day before the accounts' last commit.
const FIRST_LIKE_MICROS: u64 = START_MICROS - DAY_MICROS;

/// The stream number of an account's seed for its key here; its own uses have others.
const KEY_STREAM: u64 = 1 << 34;
