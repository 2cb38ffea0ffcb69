//! Valid inputs, some of them unusual.

use super::case::{Case, CaseBuilder, Layer, NOW_MICROS, Rule};
use super::fixture::{Fixture, RepositoryBuilder, ValidRepository};
use super::parts::archive::{Archive, Item, Section};
use super::parts::commit::{Author, CommitEvent, Write, frame, sign, unsigned};
use super::parts::tree::Leaf;
use crate::account::Account;
use crate::time::START_MICROS;
use crate::tree::{Tree, TreeEntry, TreeItem};

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let mut cases = repositories(fixture);
    cases.extend(streams(fixture));
    cases
}

fn repositories(fixture: &Fixture) -> Vec<Case> {
    let account = fixture.account();
    let case = |account: &Account, name: &str, archive: &_| {
        CaseBuilder::repo(account, name, archive).accepted(Layer::Tree, MST)
    };
    let empty = {
        let mut builder = RepositoryBuilder::new(fixture);
        let root = builder.node(None, &[]);
        builder.signed(root)
    };
    let empty_node_between = {
        let [low, top] = fixture.leaves([0, 2]);
        let mut builder = RepositoryBuilder::new(fixture);
        let leaf = builder.node(None, &[(&low, None)]);
        let between = builder.node(Some(leaf), &[]);
        let root = builder.node(Some(between), &[(&top, None)]);
        builder.signed(root)
    };
    let [low, middle, high] = fixture.leaves([0, 1, 0]);
    let both_sides = {
        let mut builder = RepositoryBuilder::new(fixture);
        let (left, right) =
            (builder.node(None, &[(&low, None)]), builder.node(None, &[(&high, None)]));
        let root = builder.node(Some(left), &[(&middle, Some(right))]);
        builder.signed(root)
    };
    let big: Vec<Leaf> = fixture.short_keys().take(10_000).collect();
    let longest = format!("{}/{}", longest_nsid(), "k".repeat(512));
    vec![
        case(account, "repository-k256", &ValidRepository::of(account).archive),
        case(fixture.p256(), "repository-p256", &ValidRepository::of(fixture.p256()).archive),
        case(account, "empty-repository", &empty),
        case(account, "one-record", &RepositoryBuilder::one_node(fixture, &fixture.leaves([0]))),
        case(
            account,
            "one-record-in-layer-3",
            &RepositoryBuilder::one_node(fixture, &fixture.leaves([3])),
        ),
        case(account, "empty-node-between-layers", &empty_node_between),
        case(account, "children-on-both-sides", &both_sides),
        case(account, "seven-layers", &deep(fixture)),
        case(account, "node-of-10000-entries", &RepositoryBuilder::one_node(fixture, &big)),
        case(
            account,
            "path-of-830-bytes",
            &RepositoryBuilder::one_node(fixture, &[fixture.leaf_at(&longest)]),
        ),
        case(
            account,
            "record-keys-of-every-sign",
            &RepositoryBuilder::one_node(fixture, &[fixture.leaf_at(SIGNS)]),
        ),
        signature_in_the_did(fixture),
    ]
}

/// The longest valid NSID: 253 bytes of authority, a dot, and a name of 63.
fn longest_nsid() -> String {
    let segment = "b".repeat(63);
    let authority = format!("{segment}.{segment}.{segment}.{}", "b".repeat(61));
    format!("{authority}.{}", "n".repeat(63))
}

/// A repository of seven layers.
fn deep(fixture: &Fixture) -> Archive {
    let leaves = fixture.leaves([0, 3, 0, 1, 6, 2, 0, 5, 0]);
    let mut builder = RepositoryBuilder::new(fixture);
    let entry = |leaf: &Leaf| TreeEntry { key: leaf.key.as_str().into(), value: leaf.cid() };
    let tree = Tree::new(leaves.iter().map(entry).collect());
    tree.walk(&mut |visit| match visit {
        TreeItem::Node(node) => drop(builder.block(node.data.clone())),
        TreeItem::Record(entry) => {
            let leaf = leaves.iter().find(|leaf| *leaf.key == *entry.key).expect("one of them");
            builder.block(leaf.record.clone());
        }
    });
    builder.signed(tree.root())
}

/// A commit whose DID contains the bytes `csig`, with which the entry of the signature starts.
fn signature_in_the_did(fixture: &Fixture) -> Case {
    let key = fixture.account().key();
    let did = "did:web:csig.example";
    let mut builder = RepositoryBuilder::new(fixture);
    let [leaf] = fixture.leaves([0]);
    let data = builder.node(None, &[(&leaf, None)]);
    let rev = fixture.account().tid(START_MICROS).to_string();
    let archive = builder.committed(sign(unsigned(did, &rev, &data), key));
    let case = CaseBuilder::repo(fixture.account(), "sig-in-the-did", &archive);
    Case { did: did.to_owned(), ..case.accepted(Layer::Commit, CUT_BY_PARSING) }
}

fn streams(fixture: &Fixture) -> Vec<Case> {
    let mut cases = Vec::new();
    for (account, curve) in [(fixture.account(), "k256"), (fixture.p256(), "p256")] {
        let mut case = |name: &str, frames: &[Vec<u8>]| {
            let name = format!("{name}-{curve}");
            cases.push(CaseBuilder::frames(account, &name, frames).accepted(Layer::Event, SYNC));
        };
        let old = fixture.some_leaves(40);
        let new: Vec<Leaf> = fixture.likes().skip(40).take(6).collect();
        let mut author = Author::with_records(account, START_MICROS, &old);
        let first = author.commit(&[Write::Create(&new[0])]).to_frame();
        let then = |write: &[Write<'_>]| author.clone().commit(write).to_frame();
        case("first-sighting", std::slice::from_ref(&first));
        case("create", &[first.clone(), then(&[Write::Create(&new[1])])]);
        case("update", &[first.clone(), then(&[Write::Update(&fixture.updated(&old[7]))])]);
        case("delete", &[first.clone(), then(&[Write::Delete(&old[20])])]);
        let several = [
            Write::Create(&new[1]),
            Write::Delete(&old[3]),
            Write::Update(&fixture.updated(&old[4])),
            Write::Create(&new[2]),
            Write::Delete(&old[39]),
        ];
        case("five-operations", &[first.clone(), then(&several)]);
        case("no-operations", &[first.clone(), then(&[])]);
        let everything: Vec<Write<'_>> = old.iter().chain([&new[0]]).map(Write::Delete).collect();
        case("delete-of-everything", &[first.clone(), then(&everything)]);
    }
    cases.extend(beginnings(fixture));
    cases.extend(oddities(fixture));
    cases
}

fn accepted(fixture: &Fixture, name: &str, rule: Rule, frames: &[Vec<u8>]) -> Case {
    CaseBuilder::frames(fixture.account(), name, frames).accepted(Layer::Event, rule)
}

/// The first commit of an account, and `#sync`.
fn beginnings(fixture: &Fixture) -> Vec<Case> {
    let [leaf] = fixture.leaves([0]);
    let mut newcomer = Author::new(fixture.account(), START_MICROS);
    let first = newcomer.commit(&[Write::Create(&leaf)]);
    let without_prev_data = CommitEvent { prev_data: None, ..first.clone() };
    let [one, two] = fixture.two_commits();
    let sync = |event: &CommitEvent| frame("#sync", &event.to_sync());
    let next = CommitEvent { seq: two.seq + 1, ..two.clone() };
    let mut with_extra = one.clone();
    with_extra.archive.sections.push(Section::of(b"\xff no CBOR".to_vec()));
    vec![
        accepted(fixture, "first-commit", SYNC, &[first.to_frame()]),
        accepted(fixture, "first-commit-without-prev-data", SYNC, &[without_prev_data.to_frame()]),
        accepted(fixture, "sync-first-sighting", SYNC, &[sync(&one)]),
        accepted(fixture, "sync-with-an-extra-block", UNLINKED, &[sync(&with_extra)]),
        accepted(fixture, "sync-then-the-next-commit", SYNC, &[sync(&one), two.to_frame()]),
        accepted(fixture, "sync-with-another-tree", SYNC, &[one.to_frame(), sync(&next)]),
    ]
}

/// Unusual frames that the protocol allows.
fn oddities(fixture: &Fixture) -> Vec<Case> {
    let [one, two] = fixture.two_commits();
    let then = |name: &str, rule, change: &dyn Fn(&mut CommitEvent)| {
        let mut event = two.clone();
        change(&mut event);
        accepted(fixture, name, rule, &[one.to_frame(), event.to_frame()])
    };
    let item = |name: &str, rule, change: &dyn Fn(&mut Item)| {
        let mut item = two.to_item();
        change(&mut item);
        accepted(fixture, name, rule, &[one.to_frame(), frame("#commit", &item)])
    };
    let key = fixture.account().key();
    let mut shuffled = two.clone();
    fixture.random("slice").shuffle(&mut shuffled.archive.sections);
    let ahead = {
        let [leaf] = fixture.leaves([0]);
        let mut newcomer = Author::new(fixture.account(), START_MICROS);
        newcomer.commit_at(NOW_MICROS + 4 * 60_000_000, &[Write::Create(&leaf)])
    };
    let record = |name: &str, value: &[u8]| {
        let mut author = fixture.author();
        let [one, two]: [Leaf; 2] = std::array::from_fn(|at| fixture.new_like(at));
        let strange = Leaf { record: [b"\xa1\x61n", value].concat(), ..two };
        let frames = [&one, &strange].map(|leaf| author.commit(&[Write::Create(leaf)]).to_frame());
        accepted(fixture, name, RECORDS_OF_OTHERS, &frames)
    };
    vec![
        record("record-with-a-float", b"\xfb\x3f\xf8\0\0\0\0\0\0"),
        record("record-with-an-integer-of-64-bits", b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff"),
        record("record-with-a-link-of-version-0", &strange_link()),
        accepted(fixture, "rev-4-minutes-ahead", CLOCK, &[ahead.to_frame()]),
        accepted(fixture, "blocks-shuffled", SLICE, &[one.to_frame(), shuffled.to_frame()]),
        then("blocks-twice", SLICE, &|event| {
            let twice = event.archive.sections.clone();
            event.archive.sections.extend(twice);
        }),
        then("extra-block-unsorted", UNLINKED, &|event| {
            event.archive.sections.push(Section::of(b"\xa2\x61b\x01\x61a\x02".to_vec()));
        }),
        then("extra-block-of-no-bytes", UNLINKED, &|event| {
            event.archive.sections.insert(0, Section::of(Vec::new()));
        }),
        then("extra-block-nested-100000-deep", UNLINKED, &|event| {
            event.archive.sections.push(Section::of(vec![0x81; 100_000]));
        }),
        then("unknown-field-in-the-commit", SIGNED_AS_IT_STANDS, &|event| {
            event.re_sign(key, |object| object.set("note", Item::text("from a later version")));
        }),
        item("unknown-field-in-the-event", FIELDS, &|event| event.set("later", Item::Null)),
        item("without-deprecated-fields", FIELDS, &|event| {
            ["blobs", "rebase", "tooBig"].iter().for_each(|key| event.remove(key));
        }),
    ]
}

/// A link with a CID of version 0.
fn strange_link() -> Vec<u8> {
    Item::Link([&[0x12, 0x20], &[7; 32][..]].concat()).encode()
}

/// A path with every punctuation character of record keys.
const SIGNS: &str = "a.b.c/_~.:-AZaz09";

const MST: Rule = Rule {
    section: "repository: MST structure",
    sentence: "the tree is the one that its keys determine",
};
const CUT_BY_PARSING: Rule = Rule {
    section: "repository: commit objects",
    sentence: "the signature is over the object without the field sig, wherever else its bytes occur",
};
const SYNC: Rule = Rule {
    section: "sync: validation",
    sentence: "an event is valid if its operations undone in the signed tree give prevData, and it \
               continues what is known of the account",
};
const CLOCK: Rule = Rule {
    section: "sync: validation",
    sentence: "a rev may lie a few minutes in the future: five",
};
const SLICE: Rule = Rule {
    section: "sync: CAR slices",
    sentence: "blocks may stand in any order, and more than once",
};
const UNLINKED: Rule = Rule {
    section: "sync: CAR slices",
    sentence: "a block that no tree and no record links to may be anything whose hash is right",
};
const SIGNED_AS_IT_STANDS: Rule = Rule {
    section: "repository: commit objects",
    sentence: "the signature is over the object as it stands without sig, unknown fields among it",
};
const RECORDS_OF_OTHERS: Rule = Rule {
    section: "data model",
    sentence: "a record that the data model does not allow costs the record, not the event",
};
const FIELDS: Rule = Rule {
    section: "event stream: messages",
    sentence: "unknown fields are passed by, and deprecated ones may be absent",
};
