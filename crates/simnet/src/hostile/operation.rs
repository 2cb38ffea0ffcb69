//! What can be wrong with what an event says was done, and with what it brings along to prove it?

use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, Rule};
use super::forge::archive::Section;
use super::forge::author::{Author, Write};
use super::forge::event::{Draft, Op};
use super::forge::item::Item;
use super::forge::tree::{Leaf, node};
use super::scene::{JOINED_MICROS, RECORDS, Scene};
use super::story::{nobodys, seen, spoiled, spoiled_writes, story};
use super::tree;
use crate::tree::key_height;

pub(super) fn cases(scene: &Scene) -> Vec<Case> {
    let parts = [operations, outcomes, inversions, records, blocks, paths, trees];
    parts.into_iter().flat_map(|part| part(scene)).collect()
}

/// Operations that cannot be what happened, whatever the tree.
fn operations(scene: &Scene) -> Vec<Case> {
    let old = seen(scene);
    let updated = scene.updated(&old[7]);
    let create = |name: &str, change: &dyn Fn(&mut Op)| {
        spoiled(scene, name, "event/op", OPERATION, |draft| change(&mut draft.ops[0]))
    };
    let update = |name: &str, change: &dyn Fn(&mut Op)| {
        spoiled_writes(scene, name, "event/op", OPERATION, &[Write::Update(&updated)], |draft| {
            change(&mut draft.ops[0]);
        })
    };
    let delete = |name: &str, change: &dyn Fn(&mut Op)| {
        spoiled_writes(scene, name, "event/op", OPERATION, &[Write::Delete(&old[9])], |draft| {
            change(&mut draft.ops[0]);
        })
    };
    let nobody = nobodys();
    vec![
        create("create-of-nothing", &|op| op.cid = None),
        create("create-with-prev", &|op| op.prev = Some(nobody)),
        update("update-to-nothing", &|op| op.cid = None),
        update("update-without-prev", &|op| op.prev = None),
        delete("delete-with-cid", &|op| op.cid = op.prev),
        delete("delete-without-prev", &|op| op.prev = None),
        spoiled(scene, "an-operation-twice", "event/duplicate-path", ONCE, |draft| {
            draft.ops.push(draft.ops[0].clone());
        }),
        spoiled(scene, "created-and-deleted", "event/duplicate-path", ONCE, |draft| {
            let Op { path, cid, .. } = draft.ops[0].clone();
            draft.ops.push(Op { action: "delete", path, cid: None, prev: cid });
        }),
    ]
}

/// Operations after which the signed tree does not hold what they say.
fn outcomes(scene: &Scene) -> Vec<Case> {
    let old = seen(scene);
    let (new, next) = (scene.unseen(1), scene.unseen(2));
    let case = |name: &str, writes: &[Write<'_>], change: &dyn Fn(&mut Draft)| {
        spoiled_writes(scene, name, "event/op", OUTCOME, writes, change)
    };
    let two_creates = [Write::Create(&new), Write::Create(&next)];
    vec![
        case("phantom-create", &[Write::Create(&new)], &|draft| {
            let (path, cid) = (low_unseen(scene).key, draft.ops[0].cid);
            draft.ops.push(Op { action: "create", path, cid, prev: None });
        }),
        case("create-of-another-record", &two_creates, &|draft| {
            draft.ops[0].cid = draft.ops[1].cid;
        }),
        case("delete-of-what-was-created", &[Write::Create(&new)], &|draft| {
            draft.ops[0] = delete(&new.key, new.cid());
        }),
        case("delete-of-what-is-there", &two_creates, &|draft| {
            draft.ops[0] = delete(&new.key, old[3].cid());
        }),
    ]
}

/// Operations that the signed tree bears out, and yet not what happened.
fn inversions(scene: &Scene) -> Vec<Case> {
    let old = seen(scene);
    let (new, updated) = (scene.unseen(1), scene.updated(&old[7]));
    let two_creates = [Write::Create(&new), Write::Create(&scene.unseen(2))];
    let create_and_delete = [Write::Create(&new), Write::Delete(&old[9])];
    let (nobody, other) = (nobodys(), old[3].cid());
    let case = |name: &str, writes: &[Write<'_>], change: &dyn Fn(&mut Draft)| {
        spoiled_writes(scene, name, "event/inversion", INVERSION, writes, change)
    };
    let create = |name: &str, change| case(name, &[Write::Create(&new)], change);
    let update = |name: &str, change| case(name, &[Write::Update(&updated)], change);
    vec![
        case("create-left-out", &two_creates, &|draft| drop(draft.ops.pop())),
        case("delete-left-out", &create_and_delete, &|draft| drop(draft.ops.pop())),
        create("all-left-out", &|draft| draft.ops.clear()),
        create("phantom-delete", &|draft| {
            draft.ops.push(delete(&low_unseen(scene).key, nobody));
        }),
        create("phantom-delete-at-the-end", &|draft| {
            draft.ops.push(delete("pub.leaflet.document/3zzzzzzzzzzzz", nobody));
        }),
        create("create-called-update", &|draft| {
            (draft.ops[0].action, draft.ops[0].prev) = ("update", Some(other));
        }),
        update("update-called-create", &|draft| {
            (draft.ops[0].action, draft.ops[0].prev) = ("create", None);
        }),
        update("update-of-another-record", &|draft| draft.ops[0].prev = Some(other)),
        case("delete-of-another-record", &[Write::Delete(&old[9])], &|draft| {
            draft.ops[0].prev = Some(other);
        }),
        case("no-operations-another-tree", &[], &|draft| {
            let key = scene.account().key();
            draft.resign(key, |object| object.set("data", Item::link(&nobody)));
        }),
        spoiled(scene, "prev-data-nobody-has", "event/inversion", INVERSION, |draft| {
            draft.prev_data = Some(nobody);
        }),
    ]
}

/// The operation that there was this at `path` and is no more.
fn delete(path: &str, prev: Cid) -> Op {
    Op { action: "delete", path: path.to_owned(), cid: None, prev: Some(prev) }
}

/// A like of height 0 that is behind all others: where it would be, every event here shows the tree.
fn low_unseen(scene: &Scene) -> Leaf {
    let mut likes = scene.likes().skip(RECORDS + 10);
    likes.find(|leaf| key_height(&leaf.key) == 0).expect("likes without end")
}

/// Blocks that a commit has to bring along.
fn records(scene: &Scene) -> Vec<Case> {
    let updated = scene.updated(&seen(scene)[7]);
    let without_record = |draft: &mut Draft| {
        let record = draft.ops[0].cid.expect("a new record");
        draft.archive.remove(&record);
    };
    let raw = Leaf { codec: Codec::Raw, ..scene.unseen(1) };
    vec![
        spoiled(scene, "created-record-missing", "event/record-missing", BLOCKS, without_record),
        spoiled_writes(
            scene,
            "updated-record-missing",
            "event/record-missing",
            BLOCKS,
            &[Write::Update(&updated)],
            without_record,
        ),
        spoiled_writes(
            scene,
            "event-value-of-raw-codec",
            "record/link",
            BLOCKS,
            &[Write::Create(&raw)],
            |_| (),
        ),
    ]
}

/// Blocks under their right hashes that are no DAG-CBOR, whatever else they would be.
fn blocks(scene: &Scene) -> Vec<Case> {
    let record = |name: &str, record: Vec<u8>| {
        let leaf = Leaf { record, ..scene.unseen(1) };
        let writes = [Write::Create(&leaf)];
        spoiled_writes(scene, name, "frame/block", CANONICAL, &writes, |_| ())
    };
    let nested = |levels: usize| [b"\xa1\x65devil", &vec![0x81; levels][..], &[0xf6]].concat();
    let key = scene.account().key();
    let object = |name: &str, change: &dyn Fn(&mut Item)| {
        spoiled(scene, name, "frame/block", CANONICAL, |draft| draft.resign(key, change))
    };
    vec![
        record("record-nested-1000-deep", nested(1_000)),
        record("record-nested-100000-deep", nested(100_000)),
        record("record-of-no-bytes", Vec::new()),
        record("record-unsorted", b"\xa2\x61b\x01\x61a\x02".to_vec()),
        object("object-unsorted", &|object| object.entries().reverse()),
        object("object-version-wide", &|object| object.set("version", Item::wide(3))),
        spoiled(scene, "extra-block-unsorted", "frame/block", CANONICAL, |draft| {
            draft.archive.sections.push(Section::of(b"\xa2\x61b\x01\x61a\x02".to_vec()));
        }),
    ]
}

fn paths(scene: &Scene) -> Vec<Case> {
    let case = |name: &str, path: &str| {
        let leaf = scene.leaf_at(path);
        spoiled_writes(scene, name, "event/path", PATH, &[Write::Create(&leaf)], |_| ())
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

/// Trees that are broken, or not brought along far enough.
fn trees(scene: &Scene) -> Vec<Case> {
    let [leaf] = scene.leaves([0]);
    let rooted = |name: &str, code, rule, leaf: &Leaf, nodes: Vec<Section>| {
        let mut newcomer = Author::new(scene.account(), JOINED_MICROS);
        let mut draft = newcomer.commit(&[Write::Create(leaf)]);
        draft.replace_tree(scene.account().key(), nodes);
        story(scene, name, code, rule, &[draft.to_frame()])
    };
    let node = |name: &str, code, change: &dyn Fn(&mut Item)| {
        let mut root = node(None, &[(&leaf, None)]);
        change(&mut root);
        rooted(name, code, NODE, &leaf, vec![Section::of(root.encode())])
    };
    let doubling = |name: &str, layers| {
        let (top, nodes) = doubling(scene, layers);
        rooted(name, "tree/layer", BOUNDED_WALK, &top, nodes)
    };
    let prefix =
        |number: i64| move |node: &mut Item| node.get("e").at(0).set("p", Item::Int(number));
    let unproved = without_a_proof_node(scene);
    let empty_root = |draft: &mut Draft| {
        let root = draft.new_nodes[0];
        draft.archive.remove(&root);
    };
    vec![
        node("event-prefix-500", "tree/prefix", &prefix(500)),
        node("event-prefix-minus-5", "tree/prefix", &prefix(-5)),
        node("event-node-without-l", "tree/shape", &|node| node.remove("l")),
        node("event-key-empty", "tree/empty-key", &|node| {
            node.get("e").at(0).set("k", Item::Bytes(Vec::new()));
        }),
        node("event-left-of-raw-codec", "tree/link", &|node| {
            node.set("l", Item::link(&Cid::of(Codec::Raw, b"no node")));
        }),
        doubling("event-doubling-18-times", 18),
        doubling("event-doubling-60-times", 60),
        spoiled(scene, "root-missing", "event/partial-tree", PROOF, empty_root),
        story(scene, "proof-node-missing", "event/partial-tree", PROOF, &unproved),
    ]
}

/// The nodes of [`tree::doubling`], the root first, and the key in the root.
fn doubling(scene: &Scene, layers: usize) -> (Leaf, Vec<Section>) {
    let leaves = tree::low_likes(scene, layers + 1);
    let mut nodes: Vec<Section> = Vec::new();
    for leaf in &leaves {
        let below = nodes.last().map(Section::name);
        nodes.push(Section::of(node(below, &[(leaf, below)]).encode()));
    }
    nodes.reverse();
    (leaves[layers].clone(), nodes)
}

/// A delete whose undoing needs a node that it did not change, and does not bring along.
fn without_a_proof_node(scene: &Scene) -> [Vec<u8>; 2] {
    let mut author = scene.author();
    let one = author.commit(&[Write::Create(&scene.unseen(0))]);
    let delete = |leaf: &Leaf| author.clone().commit(&[Write::Delete(leaf)]);
    let drafts = seen(scene).into_iter().map(|leaf| delete(&leaf));
    let mut draft = drafts.max_by_key(|draft| draft.proof_nodes.len()).expect("records");
    let proof = std::mem::take(&mut draft.proof_nodes);
    assert!(!proof.is_empty(), "a delete next to a node that it leaves as it is");
    proof.iter().for_each(|node| draft.archive.remove(node));
    [one.to_frame(), draft.to_frame()]
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
    sentence: "a block of DAG-CBOR is one canonical item, nested no deeper than a reader's bound",
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
