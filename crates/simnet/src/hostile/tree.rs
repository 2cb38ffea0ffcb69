//! Malformed trees with valid hashes under a commit with a valid signature.

use codec::Cid;

use super::case::{Case, CaseBuilder, Rule};
use super::fixture::{Fixture, RepositoryBuilder, unknown_cid};
use super::parts::archive::{Archive, Item, map};
use super::parts::tree::{Leaf, NodeEntry};
use crate::tree::{key_height, shared_prefix_len};

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let parts = [prefixes, shapes, encodings, orders, layers, emptiness, links, sharing, limits];
    parts.into_iter().flat_map(|part| part(fixture)).collect()
}

fn rejected(
    fixture: &Fixture,
    name: &str,
    code: &'static str,
    sentence: &'static str,
    archive: &Archive,
) -> Case {
    CaseBuilder::repo(fixture.account(), name, archive)
        .rejected(code, Rule { section: MST, sentence })
}

/// A change of entry `index` of a node.
fn entry(index: usize, change: impl FnOnce(&mut Item)) -> impl FnOnce(&mut Item) {
    move |node| change(node.get("e").at(index))
}

/// A change of one field of entry `index` of a node.
fn field(index: usize, name: &'static str, item: Item) -> impl FnOnce(&mut Item) {
    entry(index, move |entry| entry.set(name, item))
}

fn prefixes(fixture: &Fixture) -> Vec<Case> {
    let leaves = fixture.leaves([0, 0, 0]);
    let len = leaves[0].key.len() as i64;
    // The length of the common prefix of the first two keys.
    let shared = shared_prefix_len(&leaves[0].key, &leaves[1].key);
    let case =
        |name: &str, code, sentence, archive| rejected(fixture, name, code, sentence, &archive);
    let prefix = |name: &str, index, item| {
        let archive =
            RepositoryBuilder::one_altered_node(fixture, &leaves, field(index, "p", item));
        case(name, "tree/prefix", PREFIX_WITHIN, archive)
    };
    let shorter = entry(1, |entry| {
        entry.set("p", Item::Int(shared as i64 - 1));
        entry.set("k", Item::Bytes(leaves[1].key.as_bytes()[shared - 1..].to_vec()));
    });
    let uncompressed = |node: &mut Item| {
        for (index, leaf) in leaves.iter().enumerate() {
            let entry = node.get("e").at(index);
            entry.set("p", Item::Int(0));
            entry.set("k", Item::Bytes(leaf.key.as_bytes().to_vec()));
        }
    };
    let nothing_new = entry(1, |entry| {
        entry.set("p", Item::Int(len));
        entry.set("k", Item::Bytes(Vec::new()));
    });
    let nothing = field(0, "k", Item::Bytes(Vec::new()));
    vec![
        prefix("prefix-500", 1, Item::Int(500)),
        prefix("prefix-one-too-long", 1, Item::Int(len + 1)),
        prefix("prefix-of-2-to-63-less-1", 1, Item::Int(i64::MAX)),
        prefix("prefix-of-2-to-32", 1, Item::Int(1 << 32)),
        prefix("prefix-1-on-the-first", 0, Item::Int(1)),
        prefix("prefix-500-on-the-first", 0, Item::Int(500)),
        case(
            "prefix-minus-5",
            "tree/prefix",
            PREFIX_IS_A_COUNT,
            RepositoryBuilder::one_altered_node(fixture, &leaves, field(1, "p", Item::Int(-5))),
        ),
        case(
            "prefix-minus-1-on-the-first",
            "tree/prefix",
            PREFIX_IS_A_COUNT,
            RepositoryBuilder::one_altered_node(fixture, &leaves, field(0, "p", Item::Int(-1))),
        ),
        case(
            "prefix-one-too-short",
            "tree/prefix",
            PREFIX_IS_ALL,
            RepositoryBuilder::one_altered_node(fixture, &leaves, shorter),
        ),
        case(
            "prefix-0-everywhere",
            "tree/prefix",
            PREFIX_IS_ALL,
            RepositoryBuilder::one_altered_node(fixture, &leaves, uncompressed),
        ),
        case(
            "suffix-empty",
            "tree/empty-key",
            SUFFIX_IS_SOMETHING,
            RepositoryBuilder::one_altered_node(fixture, &leaves, nothing_new),
        ),
        case(
            "key-empty",
            "tree/empty-key",
            SUFFIX_IS_SOMETHING,
            RepositoryBuilder::one_altered_node(fixture, &leaves, nothing),
        ),
    ]
}

fn shapes(fixture: &Fixture) -> Vec<Case> {
    let leaves = fixture.leaves([0, 0, 0]);
    let node = |name: &str, change: &dyn Fn(&mut Item)| {
        let archive = RepositoryBuilder::one_altered_node(fixture, &leaves, change);
        rejected(fixture, name, "tree/shape", NODE_FIELDS, &archive)
    };
    let entry = |name: &str, change: &dyn Fn(&mut Item)| {
        let change = |node: &mut Item| change(node.get("e").at(1));
        let archive = RepositoryBuilder::one_altered_node(fixture, &leaves, change);
        rejected(fixture, name, "tree/shape", ENTRY_FIELDS, &archive)
    };
    vec![
        malformed_after_many_keys(fixture),
        node("node-without-l", &|node| node.remove("l")),
        node("node-without-e", &|node| node.remove("e")),
        node("node-with-x", &|node| node.set("x", Item::Int(1))),
        node("node-l-false", &|node| node.set("l", Item::Bool(false))),
        node("node-l-text", &|node| node.set("l", Item::text("bafyreie5737gdxlw5i64vzichcalba3z"))),
        node("node-e-null", &|node| node.set("e", Item::Null)),
        node("node-e-a-map", &|node| node.set("e", map([]))),
        node("node-an-array", &|node| *node = Item::Array(vec![Item::Array(vec![]), Item::Null])),
        node("node-null", &|node| *node = Item::Null),
        entry("entry-without-t", &|entry| entry.remove("t")),
        entry("entry-without-p", &|entry| entry.remove("p")),
        entry("entry-without-k", &|entry| entry.remove("k")),
        entry("entry-without-v", &|entry| entry.remove("v")),
        entry("entry-with-x", &|entry| entry.set("x", Item::Null)),
        entry("entry-v-null", &|entry| entry.set("v", Item::Null)),
        entry("entry-k-text", &|entry| entry.set("k", Item::text("3mpk7jqic2222"))),
        entry("entry-p-text", &|entry| entry.set("p", Item::text("5"))),
        entry("entry-t-false", &|entry| entry.set("t", Item::Bool(false))),
        entry("entry-null", &|entry| *entry = Item::Null),
    ]
}

/// A malformed child whose keys are in a wrong layer, and more than a verifier may hash together.
fn malformed_after_many_keys(fixture: &Fixture) -> Case {
    let [top] = fixture.leaves([2]);
    let low: Vec<Leaf> = fixture.short_keys().take(600).collect();
    let entries: Vec<NodeEntry<'_>> = low.iter().map(|leaf| (leaf, None)).collect();
    let mut builder = RepositoryBuilder::new(fixture);
    let child = builder.altered_node(None, &entries, |node| node.set("l", Item::Bool(false)));
    let root = builder.node(Some(child), &[(&top, None)]);
    let archive = builder.signed(root);
    rejected(fixture, "node-l-false-after-600-keys", "tree/shape", NODE_FIELDS, &archive)
}

fn encodings(fixture: &Fixture) -> Vec<Case> {
    let leaves = fixture.leaves([0, 0, 0]);
    let case = |name: &str, change: &dyn Fn(&mut Item)| {
        let archive = RepositoryBuilder::one_altered_node(fixture, &leaves, change);
        rejected(fixture, name, "tree/cbor", CANONICAL_NODE, &archive)
    };
    let bytes = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        case(name, &|node| {
            let mut bytes = node.encode();
            change(&mut bytes);
            *node = Item::Raw(bytes);
        })
    };
    let suffix = |node: &mut Item| node.get("e").at(0).get("k").clone();
    vec![
        case("node-unsorted", &|node| node.entries().reverse()),
        case("entry-unsorted", &|node| node.get("e").at(0).entries().swap(0, 1)),
        case("node-e-twice", &|node| {
            let twice = node.entries()[0].clone();
            node.entries().insert(0, twice);
        }),
        case("prefix-wide", &|node| node.get("e").at(0).set("p", Item::wide(0))),
        case("prefix-a-float", &|node| {
            node.get("e").at(0).set("p", Item::Raw(b"\xf9\x00\x00".to_vec()));
        }),
        case("node-indefinite", &|node| *node = node.indefinite()),
        case("entries-indefinite", &|node| {
            let entries = node.get("e").indefinite();
            node.set("e", entries);
        }),
        case("suffix-indefinite", &|node| {
            let suffix = suffix(node).indefinite();
            node.get("e").at(0).set("k", suffix);
        }),
        case("suffix-of-2-to-62", &|node| {
            let claim = [&[0x5b], &(1u64 << 62).to_be_bytes()[..]].concat();
            node.get("e").at(0).set("k", Item::Raw(claim));
        }),
        case("entries-of-2-to-32-less-1", &|node| {
            node.set("e", Item::Raw(b"\x9a\xff\xff\xff\xff".to_vec()));
        }),
        case("value-of-sha-256-of-20-bytes", &|node| {
            node.get("e").at(0).set("v", Item::short_sha_256());
        }),
        case("left-of-sha-256-of-20-bytes", &|node| node.set("l", Item::short_sha_256())),
        case("tag-24", &|node| node.set("l", Item::Raw(b"\xd8\x18\xf6".to_vec()))),
        bytes("node-wide-head", &|bytes| drop(bytes.splice(..1, [0xb8, 2]))),
        bytes("node-trailing-byte", &|bytes| bytes.push(0)),
        bytes("node-cut", &|bytes| bytes.truncate(bytes.len() - 1)),
        bytes("node-of-no-bytes", &|bytes| bytes.clear()),
    ]
}

fn orders(fixture: &Fixture) -> Vec<Case> {
    let case =
        |name: &str, archive: Archive| rejected(fixture, name, "tree/order", ASCENDING, &archive);
    let [a, b, c] = fixture.leaves([0, 0, 0]);
    let inside = RepositoryBuilder::one_node(fixture, &[a.clone(), c, b]);
    let swapped = |node: &mut Item| node.get("e").items().swap(0, 1);
    let uncompressed =
        RepositoryBuilder::one_altered_node(fixture, &fixture.leaves([0, 0]), |node| {
            swapped(node);
            let second = fixture.leaves([0, 0])[1].key.clone().into_bytes();
            let first = a.key.clone().into_bytes();
            for (index, key) in [second, first].into_iter().enumerate() {
                node.get("e").at(index).set("k", Item::Bytes(key));
                node.get("e").at(index).set("p", Item::Int(0));
            }
        });
    let [low, middle, high] = fixture.leaves([0, 1, 0]);
    let two_layers = |left: &[&Leaf], right: &[&Leaf]| {
        let mut builder = RepositoryBuilder::new(fixture);
        let left = below(&mut builder, left);
        let right = below(&mut builder, right);
        let root = builder.node(left, &[(&middle, right)]);
        builder.signed(root)
    };
    let [first, between, second, after] = fixture.leaves([1, 0, 1, 0]);
    let past_the_next = {
        let mut builder = RepositoryBuilder::new(fixture);
        let right = below(&mut builder, &[&between, &after]);
        let root = builder.node(None, &[(&first, right), (&second, None)]);
        builder.signed(root)
    };
    vec![
        case("order-inside-a-node", inside),
        rejected(
            fixture,
            "order-inside-without-prefixes",
            "tree/prefix",
            PREFIX_IS_ALL,
            &uncompressed,
        ),
        case("wrong-side-left", two_layers(&[&high], &[])),
        case("wrong-side-right", two_layers(&[], &[&low])),
        case("sides-exchanged", two_layers(&[&high], &[&low])),
        case("left-reaches-past-its-parent", two_layers(&[&low, &high], &[])),
        case("right-reaches-back", two_layers(&[], &[&low, &high])),
        case("right-reaches-past-the-next-key", past_the_next),
        case("key-in-two-nodes", two_layers(&[&low], &[&low, &high])),
    ]
}

/// A node of these leaves, if there are any.
fn below(builder: &mut RepositoryBuilder<'_>, leaves: &[&Leaf]) -> Option<Cid> {
    let entries: Vec<NodeEntry<'_>> = leaves.iter().map(|leaf| (*leaf, None)).collect();
    (!entries.is_empty()).then(|| builder.node(None, &entries))
}

fn layers(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, archive: Archive| {
        rejected(fixture, name, "tree/layer", LAYER_IS_HEIGHT, &archive)
    };
    let skipped = |name: &str, archive: Archive| {
        rejected(fixture, name, "tree/skipped-layer", ONE_LAYER_DOWN, &archive)
    };
    let [low, middle, high, upper] = fixture.leaves([0, 1, 0, 1]);
    let [deep, top, taller] = fixture.leaves([0, 2, 3]);
    let under = |left: &[&Leaf], parent: &Leaf, right: &[&Leaf]| {
        let mut builder = RepositoryBuilder::new(fixture);
        let (left, right) = (below(&mut builder, left), below(&mut builder, right));
        let root = builder.node(left, &[(parent, right)]);
        builder.signed(root)
    };
    let leaf_with_child = {
        let [a, b] = fixture.leaves([0, 0]);
        under(&[], &a, &[&b])
    };
    let needless_node = {
        let mut builder = RepositoryBuilder::new(fixture);
        let leaf = builder.node(None, &[(&low, None)]);
        let between = builder.node(Some(leaf), &[]);
        let root = builder.node(Some(between), &[(&middle, None)]);
        builder.signed(root)
    };
    let skipped_below_an_empty_node = {
        let [leaf, top] = fixture.leaves([0, 3]);
        let mut builder = RepositoryBuilder::new(fixture);
        let bottom = builder.node(None, &[(&leaf, None)]);
        let between = builder.node(Some(bottom), &[]);
        let root = builder.node(Some(between), &[(&top, None)]);
        builder.signed(root)
    };
    vec![
        case(
            "all-keys-in-one-node",
            RepositoryBuilder::one_node(fixture, &fixture.leaves([0, 1, 0, 2, 0])),
        ),
        case(
            "a-high-key-among-low-ones",
            RepositoryBuilder::one_node(fixture, &fixture.leaves([0, 0, 1, 0, 0])),
        ),
        case(
            "a-low-key-among-high-ones",
            RepositoryBuilder::one_node(fixture, &fixture.leaves([1, 1, 0, 1, 1])),
        ),
        case("child-in-the-same-layer", under(&[], &middle, &[&high, &upper])),
        case("child-in-the-same-layer-alone", under(&[], &middle, &[&upper])),
        case("child-above-its-parent", under(&[], &top, &[&taller])),
        case("child-below-layer-0", leaf_with_child),
        case("a-needless-node-between", needless_node),
        skipped("layer-skipped-left", under(&[&deep], &top, &[])),
        skipped("layer-skipped-right", {
            let [top, deep] = fixture.leaves([2, 0]);
            under(&[], &top, &[&deep])
        }),
        skipped("layer-skipped-under-an-empty-node", skipped_below_an_empty_node),
    ]
}

fn emptiness(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, code, sentence, archive: Archive| {
        rejected(fixture, name, code, sentence, &archive)
    };
    let [leaf, middle, top] = fixture.leaves([0, 1, 2]);
    let empty_child = |on_the_left: bool| {
        let mut builder = RepositoryBuilder::new(fixture);
        let empty = Some(builder.node(None, &[]));
        let (left, right) = if on_the_left { (empty, None) } else { (None, empty) };
        let root = builder.node(left, &[(&middle, right)]);
        builder.signed(root)
    };
    let empty_grandchild = {
        let mut builder = RepositoryBuilder::new(fixture);
        let empty = builder.node(None, &[]);
        let between = builder.node(Some(empty), &[]);
        let root = builder.node(Some(between), &[(&top, None)]);
        builder.signed(root)
    };
    let untrimmed = |layers: usize, bottom: &[NodeEntry<'_>]| {
        let mut builder = RepositoryBuilder::new(fixture);
        let mut root = builder.node(None, bottom);
        (0..layers).for_each(|_| root = builder.node(Some(root), &[]));
        builder.signed(root)
    };
    vec![
        case("empty-node-left", "tree/empty-node", NO_EMPTY_NODES, empty_child(true)),
        case("empty-node-right", "tree/empty-node", NO_EMPTY_NODES, empty_child(false)),
        case("empty-node-at-the-bottom", "tree/empty-node", NO_EMPTY_NODES, empty_grandchild),
        case("untrimmed-root", "tree/untrimmed-root", TRIMMED, untrimmed(1, &[(&leaf, None)])),
        case("untrimmed-thrice", "tree/untrimmed-root", TRIMMED, untrimmed(3, &[(&leaf, None)])),
        case(
            "untrimmed-500-times",
            "tree/untrimmed-root",
            TRIMMED,
            untrimmed(500, &[(&leaf, None)]),
        ),
        case("untrimmed-and-empty", "tree/untrimmed-root", TRIMMED, untrimmed(1, &[])),
    ]
}

fn links(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, archive: Archive| {
        rejected(fixture, name, "tree/link", CHILDREN_ARE_DAG_CBOR, &archive)
    };
    let [low, middle, high] = fixture.leaves([0, 1, 0]);
    let whole = |change: &dyn Fn(&mut Item)| {
        let mut builder = RepositoryBuilder::new(fixture);
        let left = builder.node(None, &[(&low, None)]);
        let right = builder.node(None, &[(&high, None)]);
        let root = builder.altered_node(Some(left), &[(&middle, Some(right))], change);
        builder.signed(root)
    };
    let as_raw = |link: &mut Item| {
        if let Item::Link(cid) = link {
            cid[1] = 0x55;
        }
    };
    let sha512 = || Item::Link([&[1, 0x71, 0x13, 0x40], &[7; 64][..]].concat());
    let version_0 = |cid: Cid| Item::Link([&[0x12, 0x20], &cid.digest()[..]].concat());
    let blake3 = || Item::Link([&[1, 0x71, 0x1e, 0x20], &[7; 32][..]].concat());
    vec![
        case("left-of-raw-codec", whole(&|node| as_raw(node.get("l")))),
        case("right-of-raw-codec", whole(&|node| as_raw(node.get("e").at(0).get("t")))),
        case("left-under-sha-512", whole(&|node| node.set("l", sha512()))),
        case("left-under-blake3", whole(&|node| node.set("l", blake3()))),
        case("left-of-version-0", whole(&|node| node.set("l", version_0(unknown_cid())))),
    ]
}

/// Trees that are small in bytes and large to traverse.
fn sharing(fixture: &Fixture) -> Vec<Case> {
    let both_sides = {
        let [low, middle] = fixture.leaves([0, 1]);
        let mut builder = RepositoryBuilder::new(fixture);
        let shared = builder.node(None, &[(&low, None)]);
        let root = builder.node(Some(shared), &[(&middle, Some(shared))]);
        builder.signed(root)
    };
    let once = |name: &str, archive: &Archive| {
        rejected(fixture, name, "tree/repeated-node", REACHED_ONCE, archive)
    };
    // Keys of 18 heights cannot be found, so these are in the wrong layers too.
    let doubling = |name: &str, layers: usize| {
        rejected(fixture, name, "tree/layer", BOUNDED_WALK, &doubling(fixture, layers))
    };
    vec![
        once("shared-by-both-sides", &both_sides),
        once("shared-in-the-right-layers", &shared_in_their_layers(fixture)),
        doubling("doubling-18-times", 18),
        doubling("doubling-40-times", 40),
        doubling("doubling-100-times", 100),
    ]
}

/// A tree in which every node links twice to the one below: 2ⁿ⁺¹ − 1 entries for n + 1 nodes.
fn doubling(fixture: &Fixture, layers: usize) -> Archive {
    let leaves = fixture.low_likes(layers + 1);
    let mut builder = RepositoryBuilder::new(fixture);
    let mut root = builder.node(None, &[(&leaves[0], None)]);
    for leaf in &leaves[1..] {
        root = builder.node(Some(root), &[(leaf, Some(root))]);
    }
    builder.signed(root)
}

/// Like [`doubling`], with every key in its own layer and the leftmost path in order, so that only the
/// repetition is invalid: eight keys per node, with the same child next to every key, make 9⁴ visits to the leaves.
fn shared_in_their_layers(fixture: &Fixture) -> Archive {
    let mut likes = fixture.likes();
    let mut builder = RepositoryBuilder::new(fixture);
    let mut root = None;
    for height in 0..5 {
        let of_height = likes.by_ref().filter(|leaf| key_height(&leaf.key) == height);
        let leaves: Vec<Leaf> = of_height.take(8).collect();
        let entries: Vec<NodeEntry<'_>> = leaves.iter().map(|leaf| (leaf, root)).collect();
        root = Some(builder.node(root, &entries));
    }
    builder.signed(root.expect("five nodes"))
}

fn limits(fixture: &Fixture) -> Vec<Case> {
    let one_more: Vec<Leaf> = fixture.short_keys().take(10_001).collect();
    let long_key = format!("app.bsky.feed.like/{}", "k".repeat(1_100));
    let long = RepositoryBuilder::one_node(fixture, &[fixture.leaf_at(&long_key)]);
    let deep = {
        let [leaf, top] = fixture.leaves([0, 1]);
        let mut builder = RepositoryBuilder::new(fixture);
        let mut child = builder.node(None, &[(&leaf, None)]);
        (0..300).for_each(|_| child = builder.node(Some(child), &[]));
        let root = builder.node(Some(child), &[(&top, None)]);
        builder.signed(root)
    };
    vec![
        rejected(
            fixture,
            "node-of-10001-entries",
            "tree/limit",
            BOUNDED_NODES,
            &RepositoryBuilder::one_node(fixture, &one_more),
        ),
        rejected(fixture, "key-of-1119-bytes", "tree/limit", BOUNDED_KEYS, &long),
        rejected(fixture, "300-empty-layers", "tree/layer", LAYER_IS_HEIGHT, &deep),
    ]
}

const MST: &str = "repository: MST structure";
const PREFIX_WITHIN: &str =
    "a prefix is at most as long as the key before it in the same node, and 0 for the first";
const PREFIX_IS_A_COUNT: &str = "a prefix is a count of bytes, never negative";
const PREFIX_IS_ALL: &str = "a prefix is all that a key shares with the one before it in the node";
const SUFFIX_IS_SOMETHING: &str = "no key is empty or repeats the one before it";
const NODE_FIELDS: &str = "a node is a map of e, an array, and l, a link or null, both present";
const ENTRY_FIELDS: &str =
    "an entry is a map of k, bytes, p, an integer, t, a link or null, and v, a link, all present";
const CANONICAL_NODE: &str = "a node is one item of canonical DAG-CBOR";
const ASCENDING: &str = "keys increase strictly over the whole walk of the tree";
const LAYER_IS_HEIGHT: &str =
    "a key stands in the layer of its height: half the leading zero bits of its SHA-256";
const ONE_LAYER_DOWN: &str = "a child stands one layer below its parent; where it has no keys of its own, it is an empty node";
const NO_EMPTY_NODES: &str = "only the root of an empty repository has neither a key nor a child";
const TRIMMED: &str = "a root without keys is cut off: the root's layer is that of the highest key";
const CHILDREN_ARE_DAG_CBOR: &str = "a child is a block of DAG-CBOR under SHA-256";
const REACHED_ONCE: &str = "keys increase strictly, so no node that holds one is reached twice";
const BOUNDED_WALK: &str = "a key stands in the layer of its height, and no node with keys is reached twice: the work is \
     bounded by the bytes";
const BOUNDED_NODES: &str =
    "a reader bounds the entries of a node against keys made for the purpose";
const BOUNDED_KEYS: &str = "a key is a path, so it is no longer than paths are";
