//! Events whose operations are wrong or not proved.

use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, CaseBuilder, Rule};
use super::fixture::{
    EXISTING_RECORDS, Fixture, altered, altered_writes, rejected_frames, unknown_cid,
};
use super::parts::archive::{Item, Section, map};
use super::parts::commit::{Author, CommitEvent, Op, Write};
use super::parts::tree::{Leaf, node};
use crate::time::START_MICROS;
use crate::tree::key_height;

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let parts = [operations, outcomes, inversions, records, blocks, paths, trees];
    parts.into_iter().flat_map(|part| part(fixture)).collect()
}

/// Operations that are invalid for any tree.
fn operations(fixture: &Fixture) -> Vec<Case> {
    let old = fixture.existing_likes();
    let updated = fixture.updated(&old[7]);
    let create = |name: &str, change: &dyn Fn(&mut Op)| {
        altered(fixture, name, "event/op", OPERATION, |event| change(&mut event.ops[0]))
    };
    let update = |name: &str, change: &dyn Fn(&mut Op)| {
        altered_writes(fixture, name, "event/op", OPERATION, &[Write::Update(&updated)], |event| {
            change(&mut event.ops[0]);
        })
    };
    let delete = |name: &str, change: &dyn Fn(&mut Op)| {
        altered_writes(fixture, name, "event/op", OPERATION, &[Write::Delete(&old[9])], |event| {
            change(&mut event.ops[0]);
        })
    };
    let unknown = unknown_cid();
    vec![
        create("create-of-nothing", &|op| op.cid = None),
        create("create-with-prev", &|op| op.prev = Some(unknown)),
        update("update-to-nothing", &|op| op.cid = None),
        update("update-without-prev", &|op| op.prev = None),
        delete("delete-with-cid", &|op| op.cid = op.prev),
        delete("delete-without-prev", &|op| op.prev = None),
        altered(fixture, "an-operation-twice", "event/duplicate-path", ONCE, |event| {
            event.ops.push(event.ops[0].clone());
        }),
        altered(fixture, "created-and-deleted", "event/duplicate-path", ONCE, |event| {
            let Op { path, cid, .. } = event.ops[0].clone();
            event.ops.push(Op { action: "delete", path, cid: None, prev: cid });
        }),
    ]
}

/// Operations whose results are not in the signed tree.
fn outcomes(fixture: &Fixture) -> Vec<Case> {
    let old = fixture.existing_likes();
    let (new, next) = (fixture.new_like(1), fixture.new_like(2));
    let case = |name: &str, writes: &[Write<'_>], change: &dyn Fn(&mut CommitEvent)| {
        altered_writes(fixture, name, "event/op", OUTCOME, writes, change)
    };
    let two_creates = [Write::Create(&new), Write::Create(&next)];
    vec![
        case("phantom-create", &[Write::Create(&new)], &|event| {
            let (path, cid) = (low_new_like(fixture).key, event.ops[0].cid);
            event.ops.push(Op { action: "create", path, cid, prev: None });
        }),
        case("create-of-another-record", &two_creates, &|event| {
            event.ops[0].cid = event.ops[1].cid;
        }),
        case("delete-of-what-was-created", &[Write::Create(&new)], &|event| {
            event.ops[0] = delete(&new.key, new.cid());
        }),
        case("delete-of-what-is-there", &two_creates, &|event| {
            event.ops[0] = delete(&new.key, old[3].cid());
        }),
    ]
}

/// Operations whose results are in the signed tree but whose inversion does not give the previous tree.
fn inversions(fixture: &Fixture) -> Vec<Case> {
    let old = fixture.existing_likes();
    let (new, updated) = (fixture.new_like(1), fixture.updated(&old[7]));
    let two_creates = [Write::Create(&new), Write::Create(&fixture.new_like(2))];
    let create_and_delete = [Write::Create(&new), Write::Delete(&old[9])];
    let (unknown, other) = (unknown_cid(), old[3].cid());
    let case = |name: &str, writes: &[Write<'_>], change: &dyn Fn(&mut CommitEvent)| {
        altered_writes(fixture, name, "event/inversion", INVERSION, writes, change)
    };
    let create = |name: &str, change| case(name, &[Write::Create(&new)], change);
    let update = |name: &str, change| case(name, &[Write::Update(&updated)], change);
    vec![
        case("create-left-out", &two_creates, &|event| drop(event.ops.pop())),
        case("delete-left-out", &create_and_delete, &|event| drop(event.ops.pop())),
        create("all-left-out", &|event| event.ops.clear()),
        create("phantom-delete", &|event| {
            event.ops.push(delete(&low_new_like(fixture).key, unknown));
        }),
        create("phantom-delete-at-the-end", &|event| {
            event.ops.push(delete("pub.leaflet.document/3zzzzzzzzzzzz", unknown));
        }),
        create("create-called-update", &|event| {
            (event.ops[0].action, event.ops[0].prev) = ("update", Some(other));
        }),
        update("update-called-create", &|event| {
            (event.ops[0].action, event.ops[0].prev) = ("create", None);
        }),
        update("update-of-another-record", &|event| event.ops[0].prev = Some(other)),
        case("delete-of-another-record", &[Write::Delete(&old[9])], &|event| {
            event.ops[0].prev = Some(other);
        }),
        case("no-operations-another-tree", &[], &|event| {
            let key = fixture.account().key();
            event.re_sign(key, |object| object.set("data", Item::link(&unknown)));
        }),
        altered(fixture, "prev-data-nobody-has", "event/inversion", INVERSION, |event| {
            event.prev_data = Some(unknown);
        }),
    ]
}

/// A delete of the record `prev` at `path`.
fn delete(path: &str, prev: Cid) -> Op {
    Op { action: "delete", path: path.to_owned(), cid: None, prev: Some(prev) }
}

/// A like of height 0 after all others, where every event here includes the tree.
fn low_new_like(fixture: &Fixture) -> Leaf {
    let mut likes = fixture.likes().skip(EXISTING_RECORDS + 10);
    likes.find(|leaf| key_height(&leaf.key) == 0).expect("likes without end")
}

/// Commits without the blocks of their records.
fn records(fixture: &Fixture) -> Vec<Case> {
    let updated = fixture.updated(&fixture.existing_likes()[7]);
    let without_record = |event: &mut CommitEvent| {
        let record = event.ops[0].cid.expect("a new record");
        event.archive.remove(&record);
    };
    let raw = Leaf { codec: Codec::Raw, ..fixture.new_like(1) };
    vec![
        altered(fixture, "created-record-missing", "event/record-missing", BLOCKS, without_record),
        altered_writes(
            fixture,
            "updated-record-missing",
            "event/record-missing",
            BLOCKS,
            &[Write::Update(&updated)],
            without_record,
        ),
        altered_writes(
            fixture,
            "event-value-of-raw-codec",
            "record/link",
            BLOCKS,
            &[Write::Create(&raw)],
            |_| (),
        ),
    ]
}

/// Blocks with valid hashes that are not canonical DAG-CBOR: records cost themselves, commit objects the event.
fn blocks(fixture: &Fixture) -> Vec<Case> {
    let record = |name: &str, code, record: Vec<u8>| {
        let mut author = fixture.author();
        let leaves = [fixture.new_like(0), Leaf { record, ..fixture.new_like(1) }];
        let frames = leaves.each_ref().map(|leaf| author.commit(&[Write::Create(leaf)]).to_frame());
        CaseBuilder::frames(fixture.account(), name, &frames).with_invalid_record(code, CANONICAL)
    };
    let nested = |levels: usize| [b"\xa1\x65devil", &vec![0x81; levels][..], &[0xf6]].concat();
    let key = fixture.account().key();
    let object = |name: &str, change: &dyn Fn(&mut Item)| {
        altered(fixture, name, "commit/cbor", CANONICAL, |event| event.re_sign(key, change))
    };
    vec![
        record("event-nested-1000-deep", "record/cbor", nested(1_000)),
        record("event-nested-100000-deep", "record/cbor", nested(100_000)),
        record("event-no-bytes", "record/cbor", Vec::new()),
        record("event-unsorted", "record/cbor", b"\xa2\x61b\x01\x61a\x02".to_vec()),
        record("event-link-of-sha-256-of-20-bytes", "record/cbor", {
            map([("n", Item::short_sha_256())]).encode()
        }),
        record("event-an-array", "record/shape", b"\x80".to_vec()),
        object("object-unsorted", &|object| object.entries().reverse()),
        object("object-version-wide", &|object| object.set("version", Item::wide(3))),
    ]
}

fn paths(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, path: &str| {
        let leaf = fixture.leaf_at(path);
        altered_writes(fixture, name, "event/path", PATH, &[Write::Create(&leaf)], |_| ())
    };
    vec![
        case("event-path-without-slash", "app.bsky.feed.like"),
        case("event-path-with-two-slashes", "app.bsky.feed.like/3mpk7jqic2222/x"),
        case("event-path-without-rkey", "app.bsky.feed.like/"),
        case("event-path-without-collection", "/3mpk7jqic2222"),
        case("event-nsid-of-two-segments", "bsky.like/3mpk7jqic2222"),
        case("event-rkey-two-dots", "app.bsky.feed.like/.."),
        case("event-rkey-of-513-bytes", &format!("app.bsky.feed.like/{}", "k".repeat(513))),
    ]
}

/// Malformed trees, and trees without the nodes that inversion visits.
fn trees(fixture: &Fixture) -> Vec<Case> {
    let [leaf] = fixture.leaves([0]);
    let rooted = |name: &str, code, rule, leaf: &Leaf, nodes: Vec<Section>| {
        let mut newcomer = Author::new(fixture.account(), START_MICROS);
        let mut event = newcomer.commit(&[Write::Create(leaf)]);
        event.replace_tree(fixture.account().key(), nodes);
        rejected_frames(fixture, name, code, rule, &[event.to_frame()])
    };
    let node = |name: &str, code, change: &dyn Fn(&mut Item)| {
        let mut root = node(None, &[(&leaf, None)]);
        change(&mut root);
        rooted(name, code, NODE, &leaf, vec![Section::of(root.encode())])
    };
    let doubling = |name: &str, layers| {
        let (top, nodes) = doubling(fixture, layers);
        rooted(name, "tree/layer", BOUNDED_WALK, &top, nodes)
    };
    let prefix =
        |number: i64| move |node: &mut Item| node.get("e").at(0).set("p", Item::Int(number));
    let unproved = without_a_proof_node(fixture);
    let empty_root = |event: &mut CommitEvent| {
        let root = event.new_nodes[0];
        event.archive.remove(&root);
    };
    vec![
        node("event-prefix-500", "tree/prefix", &prefix(500)),
        node("event-prefix-minus-5", "tree/prefix", &prefix(-5)),
        node("event-node-without-l", "tree/shape", &|node| node.remove("l")),
        node("event-node-unsorted", "tree/cbor", &|node| node.entries().reverse()),
        node("event-key-empty", "tree/empty-key", &|node| {
            node.get("e").at(0).set("k", Item::Bytes(Vec::new()));
        }),
        node("event-left-of-raw-codec", "tree/link", &|node| {
            node.set("l", Item::link(&Cid::of(Codec::Raw, b"no node")));
        }),
        doubling("event-doubling-18-times", 18),
        doubling("event-doubling-60-times", 60),
        altered(fixture, "root-missing", "event/partial-tree", PROOF, empty_root),
        rejected_frames(fixture, "proof-node-missing", "event/partial-tree", PROOF, &unproved),
    ]
}

/// A tree in which every node links twice to the one below: its nodes, the root first, and the key in the root.
fn doubling(fixture: &Fixture, layers: usize) -> (Leaf, Vec<Section>) {
    let leaves = fixture.low_likes(layers + 1);
    let mut nodes: Vec<Section> = Vec::new();
    for leaf in &leaves {
        let below = nodes.last().map(Section::cid);
        nodes.push(Section::of(node(below, &[(leaf, below)]).encode()));
    }
    nodes.reverse();
    (leaves[layers].clone(), nodes)
}

/// A delete whose inversion needs an unchanged node that is missing.
fn without_a_proof_node(fixture: &Fixture) -> [Vec<u8>; 2] {
    let mut author = fixture.author();
    let one = author.commit(&[Write::Create(&fixture.new_like(0))]);
    let delete = |leaf: &Leaf| author.clone().commit(&[Write::Delete(leaf)]);
    let events = fixture.existing_likes().into_iter().map(|leaf| delete(&leaf));
    let mut event = events.max_by_key(|event| event.proof_nodes.len()).expect("records");
    let proof = std::mem::take(&mut event.proof_nodes);
    assert!(!proof.is_empty(), "a delete next to a node that it leaves as it is");
    proof.iter().for_each(|node| event.archive.remove(node));
    [one.to_frame(), event.to_frame()]
}

const SYNC: &str = "sync: validation";
const OPERATION: Rule = Rule {
    section: "sync: #commit",
    sentence: "a create has cid, an update cid and prev, a delete prev alone",
};
const ONCE: Rule =
    Rule { section: "sync: #commit", sentence: "no two operations of a commit are on one path" };
const OUTCOME: Rule = Rule {
    section: SYNC,
    sentence: "the commit's tree holds what was created or updated, and nothing where it was deleted",
};
const INVERSION: Rule = Rule {
    section: SYNC,
    sentence: "the operations are all that changed: undone in the commit's tree they give prevData",
};
const BLOCKS: Rule = Rule {
    section: "sync: CAR slices",
    sentence: "the record of every create and update is there, under a CID that proves it",
};
const CANONICAL: Rule = Rule {
    section: "data model",
    sentence: "a commit object or record is one canonical item, a map, nested no deeper than a reader's bound",
};
const PATH: Rule = Rule {
    section: "repository: paths",
    sentence: "a path is a collection, which is an NSID, one slash, and a record key",
};
const NODE: Rule = Rule {
    section: "repository: MST structure",
    sentence: "a node that an event brings along is as well-formed as any",
};
const BOUNDED_WALK: Rule = Rule {
    section: "repository: MST structure",
    sentence: "keys increase and stand in the layer of their height, so the work is bounded by the bytes",
};
const PROOF: Rule = Rule {
    section: "sync: CAR slices",
    sentence: "every node that undoing the operations reads is there",
};
