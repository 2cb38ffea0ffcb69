//! What is right, and looks odd enough that somebody may refuse it?

use super::case::{Case, Exhibit, Layer, Rule};
use super::forge::archive::Archive;
use super::forge::author::{Author, Write};
use super::forge::commit::{sign, unsigned};
use super::forge::event::{Draft, frame};
use super::forge::item::Item;
use super::forge::tree::{Forge, Leaf};
use super::healthy::Healthy;
use super::scene::{JOINED_MICROS, NOW_MICROS, Scene};
use crate::account::Account;
use crate::tree::{Entry, Tree, Visit, key_height};

pub(super) fn cases(scene: &Scene) -> Vec<Case> {
    let mut cases = repositories(scene);
    cases.extend(streams(scene));
    cases
}

fn repositories(scene: &Scene) -> Vec<Case> {
    let account = scene.account();
    let case = |account: &Account, name: &str, archive: &_| {
        Exhibit::repo(account, name, archive).accepted(Layer::Tree, MST)
    };
    let empty = {
        let mut forge = Forge::new(scene);
        let root = forge.node(None, &[]);
        forge.signed(root)
    };
    let empty_node_between = {
        let [low, top] = scene.leaves([0, 2]);
        let mut forge = Forge::new(scene);
        let leaf = forge.node(None, &[(&low, None)]);
        let between = forge.node(Some(leaf), &[]);
        let root = forge.node(Some(between), &[(&top, None)]);
        forge.signed(root)
    };
    let [low, middle, high] = scene.leaves([0, 1, 0]);
    let both_sides = {
        let mut forge = Forge::new(scene);
        let (left, right) = (forge.node(None, &[(&low, None)]), forge.node(None, &[(&high, None)]));
        let root = forge.node(Some(left), &[(&middle, Some(right))]);
        forge.signed(root)
    };
    let big: Vec<Leaf> = short_keys(scene).take(10_000).collect();
    let longest = format!("{}/{}", longest_nsid(), "k".repeat(512));
    vec![
        case(account, "repository-k256", &Healthy::of(account).archive),
        case(scene.p256(), "repository-p256", &Healthy::of(scene.p256()).archive),
        case(account, "empty-repository", &empty),
        case(account, "one-record", &Forge::one_node(scene, &scene.leaves([0]))),
        case(account, "one-record-in-layer-3", &Forge::one_node(scene, &scene.leaves([3]))),
        case(account, "empty-node-between-layers", &empty_node_between),
        case(account, "children-on-both-sides", &both_sides),
        case(account, "seven-layers", &deep(scene)),
        case(account, "node-of-10000-entries", &Forge::one_node(scene, &big)),
        case(account, "path-of-830-bytes", &Forge::one_node(scene, &[scene.leaf_at(&longest)])),
        case(
            account,
            "record-keys-of-every-sign",
            &Forge::one_node(scene, &[scene.leaf_at(SIGNS)]),
        ),
        signature_in_the_did(scene),
    ]
}

/// The longest NSID that there is: 253 bytes of authority, a dot, and a name of 63.
fn longest_nsid() -> String {
    let segment = "b".repeat(63);
    let authority = format!("{segment}.{segment}.{segment}.{}", "b".repeat(61));
    format!("{authority}.{}", "n".repeat(63))
}

/// A repository whose top key has height 6, and a few below each other under it.
fn deep(scene: &Scene) -> Archive {
    let leaves = scene.leaves([0, 3, 0, 1, 6, 2, 0, 5, 0]);
    let mut forge = Forge::new(scene);
    let entry = |leaf: &Leaf| Entry { key: leaf.key.as_str().into(), value: leaf.cid() };
    let tree = Tree::new(leaves.iter().map(entry).collect());
    tree.walk(&mut |visit| match visit {
        Visit::Node(node) => drop(forge.block(node.data.clone())),
        Visit::Record(entry) => {
            let leaf = leaves.iter().find(|leaf| *leaf.key == *entry.key).expect("one of them");
            forge.block(leaf.record.clone());
        }
    });
    forge.signed(tree.root())
}

/// A DID that holds the bytes `csig`, which is how the entry of the signature starts.
fn signature_in_the_did(scene: &Scene) -> Case {
    let key = scene.account().key();
    let did = "did:web:csig.example";
    let mut forge = Forge::new(scene);
    let [leaf] = scene.leaves([0]);
    let data = forge.node(None, &[(&leaf, None)]);
    let rev = scene.account().tid(JOINED_MICROS).to_string();
    let archive = forge.committed(sign(unsigned(did, &rev, &data), key));
    let case = Exhibit::repo(scene.account(), "sig-in-the-did", &archive);
    Case { did: did.to_owned(), ..case.accepted(Layer::Commit, CUT_BY_PARSING) }
}

/// Keys of height 0 that are as short as paths get, ascending, all of one record.
pub(super) fn short_keys(scene: &Scene) -> impl Iterator<Item = Leaf> {
    let [leaf] = scene.leaves([0]);
    let keys = (0..).map(|number: u32| format!("a.b.c/{number:05}"));
    let low = keys.filter(|key| key_height(key) == 0);
    low.map(move |key| Leaf { key, ..leaf.clone() })
}

fn streams(scene: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    for (account, curve) in [(scene.account(), "k256"), (scene.p256(), "p256")] {
        let mut case = |name: &str, frames: &[Vec<u8>]| {
            let name = format!("{name}-{curve}");
            cases.push(Exhibit::frames(account, &name, frames).accepted(Layer::Event, SYNC));
        };
        let old = scene.some_leaves(40);
        let new: Vec<Leaf> = scene.likes().skip(40).take(6).collect();
        let mut author = Author::with_records(account, JOINED_MICROS, &old);
        let first = author.commit(&[Write::Create(&new[0])]).to_frame();
        let then = |write: &[Write<'_>]| author.clone().commit(write).to_frame();
        case("first-sighting", std::slice::from_ref(&first));
        case("create", &[first.clone(), then(&[Write::Create(&new[1])])]);
        case("update", &[first.clone(), then(&[Write::Update(&scene.updated(&old[7]))])]);
        case("delete", &[first.clone(), then(&[Write::Delete(&old[20])])]);
        let several = [
            Write::Create(&new[1]),
            Write::Delete(&old[3]),
            Write::Update(&scene.updated(&old[4])),
            Write::Create(&new[2]),
            Write::Delete(&old[39]),
        ];
        case("five-operations", &[first.clone(), then(&several)]);
        case("no-operations", &[first.clone(), then(&[])]);
        let everything: Vec<Write<'_>> = old.iter().chain([&new[0]]).map(Write::Delete).collect();
        case("delete-of-everything", &[first.clone(), then(&everything)]);
    }
    cases.extend(beginnings(scene));
    cases.extend(oddities(scene));
    cases
}

fn accepted(scene: &Scene, name: &str, rule: Rule, frames: &[Vec<u8>]) -> Case {
    Exhibit::frames(scene.account(), name, frames).accepted(Layer::Event, rule)
}

/// The first commit of an account, and `#sync`.
fn beginnings(scene: &Scene) -> Vec<Case> {
    let [leaf] = scene.leaves([0]);
    let mut newcomer = Author::new(scene.account(), JOINED_MICROS);
    let first = newcomer.commit(&[Write::Create(&leaf)]);
    let without_prev_data = Draft { prev_data: None, ..first.clone() };
    let [one, two] = scene.two_commits();
    let sync = |draft: &Draft| frame("#sync", &draft.to_sync());
    let next = Draft { seq: two.seq + 1, ..two.clone() };
    vec![
        accepted(scene, "first-commit", SYNC, &[first.to_frame()]),
        accepted(scene, "first-commit-without-prev-data", SYNC, &[without_prev_data.to_frame()]),
        accepted(scene, "sync-first-sighting", SYNC, &[sync(&one)]),
        accepted(scene, "sync-then-the-next-commit", SYNC, &[sync(&one), two.to_frame()]),
        accepted(scene, "sync-with-another-tree", SYNC, &[one.to_frame(), sync(&next)]),
    ]
}

/// Frames that bend where the protocol bends.
fn oddities(scene: &Scene) -> Vec<Case> {
    let [one, two] = scene.two_commits();
    let then = |name: &str, rule, change: &dyn Fn(&mut Draft)| {
        let mut draft = two.clone();
        change(&mut draft);
        accepted(scene, name, rule, &[one.to_frame(), draft.to_frame()])
    };
    let item = |name: &str, rule, change: &dyn Fn(&mut Item)| {
        let mut item = two.to_item();
        change(&mut item);
        accepted(scene, name, rule, &[one.to_frame(), frame("#commit", &item)])
    };
    let key = scene.account().key();
    let mut shuffled = two.clone();
    scene.random("slice").shuffle(&mut shuffled.archive.sections);
    let ahead = {
        let [leaf] = scene.leaves([0]);
        let mut newcomer = Author::new(scene.account(), JOINED_MICROS);
        newcomer.commit_at(NOW_MICROS + 4 * 60_000_000, &[Write::Create(&leaf)])
    };
    let record = |name: &str, value: &[u8]| {
        let mut author = scene.author();
        let [one, two]: [Leaf; 2] = std::array::from_fn(|at| scene.unseen(at));
        let strange = Leaf { record: [b"\xa1\x61n", value].concat(), ..two };
        let frames = [&one, &strange].map(|leaf| author.commit(&[Write::Create(leaf)]).to_frame());
        accepted(scene, name, RECORDS_OF_OTHERS, &frames)
    };
    vec![
        record("record-with-a-float", b"\xfb\x3f\xf8\0\0\0\0\0\0"),
        record("record-with-an-integer-of-64-bits", b"\x1b\xff\xff\xff\xff\xff\xff\xff\xff"),
        record("record-with-a-link-of-version-0", &strange_link()),
        accepted(scene, "rev-4-minutes-ahead", CLOCK, &[ahead.to_frame()]),
        accepted(scene, "blocks-shuffled", SLICE, &[one.to_frame(), shuffled.to_frame()]),
        then("blocks-twice", SLICE, &|draft| {
            let twice = draft.archive.sections.clone();
            draft.archive.sections.extend(twice);
        }),
        then("unknown-field-in-the-commit", SIGNED_AS_IT_STANDS, &|draft| {
            draft.resign(key, |object| object.set("note", Item::text("from a later version")));
        }),
        item("unknown-field-in-the-event", FIELDS, &|event| event.set("later", Item::Null)),
        item("without-deprecated-fields", FIELDS, &|event| {
            ["blobs", "rebase", "tooBig"].iter().for_each(|key| event.remove(key));
        }),
    ]
}

/// A link as other applications of the format have.
fn strange_link() -> Vec<u8> {
    Item::Link([&[0x12, 0x20], &[7; 32][..]].concat()).encode()
}

/// Record keys may have these.
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
