//! Parts of a repository that claim to have all records of a collection.
//!
//! A part has the commit, the tree nodes that can have keys of the collection, and its records. The account of these cases has records
//! of several collections.

use std::collections::BTreeMap;
use std::sync::Arc;

use atproto::event::Action;
use codec::Cid;

use super::case::{Case, CaseBuilder, Layer, Rule};
use super::fixture::{Fixture, unknown_cid};
use super::parts::archive::{Archive, Section};
use super::parts::commit::{sign, unsigned};
use crate::account::{Account, AccountHistory};
use crate::block::Block;
use crate::random::Seed;
use crate::record::{Collection, RecordPath};
use crate::repository::{RecordWrite, Repository};
use crate::time::{DAY_MICROS, START_MICROS};

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let parts = Parts::new(fixture);
    let mut cases = parts.valid();
    cases.extend(parts.withheld());
    cases.extend(parts.of_other_trees());
    cases.extend(parts.altered());
    cases
}

/// A repository, and its next revision.
struct Parts<'f> {
    fixture: &'f Fixture,
    repository: Repository,
    /// With one more record of the wanted collection.
    next: Repository,
}

/// The blocks of a part.
struct Part {
    commit: Section,
    /// From the root down along the first path, then the others.
    nodes: Vec<Section>,
    records: Vec<Section>,
}

impl Part {
    fn archive(&self) -> Archive {
        let blocks = [&self.commit].into_iter().chain(&self.nodes).chain(&self.records);
        Archive::new(blocks.cloned().collect())
    }

    /// The archive without a block.
    fn without(&self, block: &Section) -> Archive {
        let mut archive = self.archive();
        archive.remove(&block.cid());
        archive
    }
}

impl<'f> Parts<'f> {
    fn new(fixture: &'f Fixture) -> Self {
        let seed = Seed::new(fixture.seed(), "hostile parts");
        let account = Account::new(seed, AccountHistory::Full(RECORDS), START_MICROS);
        let repository = account.open_repository();
        let mut next = repository.clone();
        let tid = account.tid(START_MICROS + DAY_MICROS);
        let path = RecordPath { collection: WANTED, tid };
        next.commit(&[RecordWrite { action: Action::Create, path }], tid);
        Self { fixture, repository, next }
    }

    fn part(&self, collection: &str) -> Part {
        part(&self.repository, collection)
    }

    fn case(&self, name: &'static str, archive: &Archive) -> CaseBuilder<'_> {
        CaseBuilder::part(self.repository.account(), name, WANTED.nsid(), archive)
    }

    fn valid(&self) -> Vec<Case> {
        let accepted = |name, rule, collection: &str, archive: &Archive| {
            let account = self.repository.account();
            let case = CaseBuilder::part(account, name, collection, archive);
            case.accepted(Layer::Tree, rule)
        };
        let mut with_others = self.part(WANTED.nsid());
        with_others.records.extend(self.part(Collection::Follow.nsid()).records);
        vec![
            accepted("part", COMPLETE, WANTED.nsid(), &self.part(WANTED.nsid()).archive()),
            accepted("part-with-other-records", COMPLETE, WANTED.nsid(), &with_others.archive()),
            accepted("part-without-records", ABSENT, MISSING, &self.part(MISSING).archive()),
        ]
    }

    fn withheld(&self) -> Vec<Case> {
        let part = self.part(WANTED.nsid());
        let of_next = self.part(Collection::Follow.nsid());
        let [first, last] = [part.nodes.first(), part.nodes.last()].map(|node| node.expect("some"));
        let record = &part.records[part.records.len() / 2];
        vec![
            self.case("part-without-root", &part.without(first))
                .rejected("tree/missing-node", COMPLETE),
            self.case("part-without-a-node", &part.without(last))
                .rejected("tree/missing-node", COMPLETE),
            self.case("part-without-a-record", &part.without(record))
                .rejected("record/missing", COMPLETE),
            self.case("part-without-commit", &part.without(&part.commit))
                .rejected("commit/missing-block", COMMIT),
            self.case("part-of-another-collection", &of_next.archive())
                .rejected("tree/missing-node", COMPLETE),
        ]
    }

    fn of_other_trees(&self) -> Vec<Case> {
        let part = self.part(WANTED.nsid());
        let next = part_of_commit(&self.next, &self.repository);
        let account = self.repository.account();
        let rev = account.tid(START_MICROS).to_string();
        let commit = |did: &str, data: &Cid, key| {
            let section = Section::of(sign(unsigned(did, &rev, data), key).encode());
            let nodes = part.nodes.clone();
            Part { commit: section, nodes, records: part.records.clone() }.archive()
        };
        let root = part.nodes[0].cid();
        let other_did = self.fixture.account().did();
        vec![
            self.case(
                "part-of-another-tree",
                &commit(account.did(), &unknown_cid(), account.key()),
            )
            .rejected("tree/missing-node", COMPLETE),
            self.case("part-of-two-revisions", &next).rejected("tree/missing-node", COMPLETE),
            self.case("part-of-another-account", &commit(other_did, &root, account.key()))
                .rejected("commit/did", COMMIT),
            self.case(
                "part-under-another-key",
                &commit(account.did(), &root, self.fixture.other_key()),
            )
            .rejected("signature/wrong", COMMIT),
        ]
    }

    fn altered(&self) -> Vec<Case> {
        let part = self.part(WANTED.nsid());
        let altered = |block: &Section| {
            let mut archive = part.archive();
            *archive.section(&block.cid()).data.last_mut().expect("a byte") ^= 1;
            archive
        };
        let (node, record) = (part.nodes.last().expect("a node"), &part.records[0]);
        vec![
            self.case("part-with-another-node", &altered(node)).rejected("car/hash", HASH),
            self.case("part-with-another-record", &altered(record)).rejected("car/hash", HASH),
        ]
    }
}

/// The part of a repository that has all records of a collection.
fn part(repository: &Repository, collection: &str) -> Part {
    let (head, tree) = (repository.head(), repository.tree());
    let (first, last) = (format!("{collection}/"), format!("{collection}0"));
    let entries = tree.entries();
    let [from, to] = [&first, &last].map(|key| entries.partition_point(|e| *e.key < **key));
    let keys: Vec<&str> = entries[from..to].iter().map(|entry| &*entry.key).collect();
    let (mut nodes, mut seen) = (Vec::new(), BTreeMap::<Cid, Arc<Block>>::new());
    for key in [first.as_str()].into_iter().chain(keys.iter().copied()).chain([last.as_str()]) {
        for node in tree.search_path(key) {
            if seen.insert(node.cid, node.clone()).is_none() {
                nodes.push(Section::of(node.data.clone()));
            }
        }
    }
    let records = keys.iter().map(|key| Section::of(repository.record(key))).collect();
    Part { commit: Section::of(head.data.clone()), nodes, records }
}

/// The commit of one revision with the blocks of another.
fn part_of_commit(of: &Repository, blocks: &Repository) -> Archive {
    let commit = Section::of(of.head().data.clone());
    let part = part(blocks, WANTED.nsid());
    Part { commit, ..part }.archive()
}

/// The wanted collection of most cases.
const WANTED: Collection = Collection::Post;

/// A collection without records.
const MISSING: &str = "app.bsky.feed.missing";

/// The number of records of the account: enough for a tree of several layers.
const RECORDS: usize = 400;

const COMPLETE: Rule = Rule {
    section: "https://atproto.com/specs/repository#mst-structure",
    sentence: "the nodes whose keys can be in a collection show all its records and that there are no others",
};
const ABSENT: Rule = Rule {
    section: "https://atproto.com/specs/repository#mst-structure",
    sentence: "the nodes between which keys of a collection would be show that it has no records",
};
const COMMIT: Rule = Rule {
    section: "https://atproto.com/specs/repository#commit-objects",
    sentence: "a commit is signed by the key of the account that it names, and its block is there",
};
const HASH: Rule = Rule {
    section: "https://atproto.com/specs/repository#car-file-serialization",
    sentence: "a CID is the hash of its block",
};
