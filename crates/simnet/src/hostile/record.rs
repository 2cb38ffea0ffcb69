//! Invalid records, whose repositories are valid, and malformed record paths and CIDs.

use codec::cid::Codec;

use super::case::{Case, CaseBuilder, Layer, Rule};
use super::fixture::{Fixture, RepositoryBuilder};
use super::parts::archive::{Archive, Item, map};
use super::parts::commit::{sign, unsigned};
use super::parts::tree::Leaf;
use crate::time::START_MICROS;

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let mut cases = paths(fixture);
    cases.extend(contents(fixture));
    cases.push(in_a_later_commit(fixture));
    cases.extend(values(fixture));
    cases
}

fn rejected(
    fixture: &Fixture,
    name: &str,
    code: &'static str,
    rule: Rule,
    archive: &Archive,
) -> Case {
    CaseBuilder::repo(fixture.account(), name, archive).rejected(code, rule)
}

fn paths(fixture: &Fixture) -> Vec<Case> {
    let rule = Rule { section: "repository: paths", sentence: PATH };
    let case = |name: &str, path: &str| {
        // A single key makes a tree of one node, whatever its height.
        let archive = RepositoryBuilder::one_node(fixture, &[fixture.leaf_at(path)]);
        rejected(fixture, name, "record/path", rule, &archive)
    };
    let not_utf8 = RepositoryBuilder::one_altered_node(fixture, &fixture.leaves([0]), |node| {
        let key = node.get("e").at(0).get("k");
        let Item::Bytes(bytes) = key else { unreachable!("a key is bytes") };
        *bytes.last_mut().expect("a key") = 0xff;
    });
    let long_rkey = "k".repeat(513);
    let long_nsid = format!("{}.{}.name", "a".repeat(63), vec!["b".repeat(60); 5].join("."));
    vec![
        case("path-without-slash", "app.bsky.feed.like"),
        case("path-with-two-slashes", "app.bsky.feed.like/3mpk7jqic2222/x"),
        case("path-with-a-double-slash", "app.bsky.feed.like//3mpk7jqic2222"),
        case("path-with-a-leading-slash", "/app.bsky.feed.like/3mpk7jqic2222"),
        case("path-without-collection", "/3mpk7jqic2222"),
        case("path-without-rkey", "app.bsky.feed.like/"),
        case("path-a-slash", "/"),
        case("nsid-of-two-segments", "bsky.like/3mpk7jqic2222"),
        case("nsid-starts-with-a-digit", "4pp.bsky.feed/3mpk7jqic2222"),
        case("nsid-name-with-a-hyphen", "app.bsky.feed-like/3mpk7jqic2222"),
        case("nsid-with-an-empty-segment", "app..feed.like/3mpk7jqic2222"),
        case("nsid-with-a-fragment", "app.bsky.feed.like#main/3mpk7jqic2222"),
        case("nsid-too-long", &format!("{long_nsid}/3mpk7jqic2222")),
        case("rkey-a-dot", "app.bsky.feed.like/."),
        case("rkey-two-dots", "app.bsky.feed.like/.."),
        case("rkey-with-a-space", "app.bsky.feed.like/3mpk7 jqic"),
        case("rkey-with-a-percent", "app.bsky.feed.like/a%2fb"),
        case("rkey-with-an-at", "app.bsky.feed.like/@a"),
        case("rkey-with-a-nul", "app.bsky.feed.like/a\0b"),
        case("rkey-not-ascii", "app.bsky.feed.like/naïve"),
        case("rkey-of-513-bytes", &format!("app.bsky.feed.like/{long_rkey}")),
        rejected(fixture, "path-not-utf-8", "record/path", rule, &not_utf8),
    ]
}

fn contents(fixture: &Fixture) -> Vec<Case> {
    let build = |data: Vec<u8>| {
        let [leaf] = fixture.leaves([0]);
        RepositoryBuilder::one_node(fixture, &[Leaf { record: data, ..leaf }])
    };
    let invalid = |name: &str, code, sentence, data: Vec<u8>| {
        let rule = Rule { section: "data model", sentence };
        CaseBuilder::repo(fixture.account(), name, &build(data)).with_invalid_record(code, rule)
    };
    let case = |name: &str, data: Vec<u8>| invalid(name, "record/cbor", CANONICAL, data);
    let record = || map([("text", Item::text("hello")), ("$type", Item::text("a.b.c"))]);
    let with = |key: &str, item: Item| {
        let mut record = record();
        record.set(key, item);
        record.encode()
    };
    let nested = |levels: usize| {
        let bomb = [vec![0x81; levels], vec![0xf6]].concat();
        with("devil", Item::Raw(bomb))
    };
    let shape = |name: &str, item: Item| invalid(name, "record/shape", MAP, item.encode());
    let large = with("text", Item::Text("a".repeat(1 << 20)));
    let mut unsorted = record();
    unsorted.entries().reverse();
    let mut twice = record();
    let entry = twice.entries()[0].clone();
    twice.entries().insert(0, entry);
    let trailing = [record().encode(), vec![0]].concat();
    vec![
        case("nested-1000-deep", nested(1_000)),
        case("nested-100000-deep", nested(100_000)),
        case("no-bytes", Vec::new()),
        case("random-bytes", b"\xff\xfe no record".to_vec()),
        case("trailing-byte", trailing),
        case("unsorted", unsorted.encode()),
        case("key-twice", twice.encode()),
        case("indefinite", record().indefinite().encode()),
        case("wide-integer", with("n", Item::wide(7))),
        case("half-float", with("n", Item::Raw(b"\xf9\x3c\x00".to_vec()))),
        case("not-a-number", with("n", Item::Raw(b"\xfb\x7f\xf8\0\0\0\0\0\0".to_vec()))),
        case("undefined", with("n", Item::Raw(b"\xf7".to_vec()))),
        case("not-utf-8", with("n", Item::Raw(b"\x62\xc3\x28".to_vec()))),
        case("integer-for-a-key", b"\xa1\x01\x02".to_vec()),
        case("tag-2", with("n", Item::Raw(b"\xc2\x41\x01".to_vec()))),
        case("link-of-35-bytes", with("n", Item::Link(vec![1; 35]))),
        case("link-of-sha-256-of-20-bytes", with("n", Item::short_sha_256())),
        shape("record-an-array", Item::Array(vec![Item::Null])),
        shape("record-a-text", Item::text("hello")),
        shape("record-null", Item::Null),
        invalid("record-over-1-mebibyte", "record/size", SIZE, large),
    ]
}

/// An invalid record in a repository that is later than every event of its account.
fn in_a_later_commit(fixture: &Fixture) -> Case {
    let [leaf] = fixture.leaves([0]);
    let leaf = Leaf { record: b"\xa2\x61b\x01\x61a\x02".to_vec(), ..leaf };
    let mut builder = RepositoryBuilder::new(fixture);
    let data = builder.node(None, &[(&leaf, None)]);
    let rev = fixture.account().tid(START_MICROS + 60_000_000).to_string();
    let commit = sign(unsigned(fixture.account().did(), &rev, &data), fixture.account().key());
    let rule = Rule { section: "data model", sentence: CANONICAL };
    CaseBuilder::repo(fixture.account(), "unsorted-in-a-later-commit", &builder.committed(commit))
        .with_invalid_record("record/cbor", rule)
}

/// Invalid CIDs of records.
fn values(fixture: &Fixture) -> Vec<Case> {
    let named = |cid: Vec<u8>| {
        RepositoryBuilder::one_altered_node(fixture, &fixture.leaves([0]), |node| {
            node.get("e").at(0).set("v", Item::Link(cid));
        })
    };
    let rule = Rule { section: "repository: MST structure", sentence: PROVABLE };
    let odd = |name: &str, cid: Vec<u8>| rejected(fixture, name, "record/link", rule, &named(cid));
    let shared = Rule { section: "repository: MST structure", sentence: SHARED };
    let [a, b, c] = fixture.leaves([0, 0, 0]);
    let raw = RepositoryBuilder::one_node(fixture, &[Leaf { codec: Codec::Raw, ..a.clone() }]);
    let record = a.record.clone();
    let twins = [a, Leaf { record: record.clone(), ..b }, Leaf { record, ..c }];
    vec![
        rejected(fixture, "value-of-raw-codec", "record/link", rule, &raw),
        odd("value-under-sha-512", [&[1, 0x71, 0x13, 0x40], &[7; 64][..]].concat()),
        odd("value-of-version-0", [&[0x12, 0x20], &[7; 32][..]].concat()),
        odd("value-the-data-itself", vec![1, 0x71, 0, 3, 0xa1, 0x60, 0x01]),
        CaseBuilder::repo(
            fixture.account(),
            "same-record-thrice",
            &RepositoryBuilder::one_node(fixture, &twins),
        )
        .accepted(Layer::Record, shared),
    ]
}

const PATH: &str =
    "a path is a collection, which is an NSID, one slash, and a record key of at most 512 bytes";
const CANONICAL: &str =
    "a record is one item of canonical DAG-CBOR, nested no deeper than a reader's bound";
const MAP: &str = "a record is a map";
const SIZE: &str = "a record is at most 1 MiB long";
const PROVABLE: &str =
    "a record's CID is of DAG-CBOR under SHA-256, so that its bytes can be proved";
const SHARED: &str = "equal records have one CID, whatever their keys";
