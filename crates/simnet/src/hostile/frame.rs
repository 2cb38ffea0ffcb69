//! Malformed messages of the event stream.

use super::case::{Case, CaseBuilder, Rule};
use super::fixture::Fixture;
use super::parts::archive::{Item, map};
use super::parts::commit::frame;

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let mut cases = framing(fixture);
    cases.extend(fields(fixture));
    cases
}

fn rejected(fixture: &Fixture, name: &str, code: &'static str, rule: Rule, last: Vec<u8>) -> Case {
    let [one, _] = fixture.two_commits();
    CaseBuilder::frames(fixture.account(), name, &[one.to_frame(), last]).rejected(code, rule)
}

fn framing(fixture: &Fixture) -> Vec<Case> {
    let [_, two] = fixture.two_commits();
    let payload = two.to_item();
    let (whole, body) = (two.to_frame(), payload.encode());
    let case = |name: &str, code, last: Vec<u8>| rejected(fixture, name, code, FRAMING, last);
    let header = |header: Item| [header.encode(), body.clone()].concat();
    let (kind, op) = (("t", Item::text("#commit")), ("op", Item::Int(1)));
    let mut twice = map([kind.clone(), op.clone()]);
    twice.entries().insert(0, ("t".to_owned(), Item::text("#commit")));
    vec![
        case("cut-by-a-byte", "frame/cbor", whole[..whole.len() - 1].to_vec()),
        case("cut-behind-the-header", "frame/cbor", whole[..whole.len() - body.len()].to_vec()),
        case("cut-in-the-header", "frame/cbor", whole[..5].to_vec()),
        case("no-bytes", "frame/cbor", Vec::new()),
        case("trailing-byte", "frame/cbor", [&whole[..], &[0]].concat()),
        case("trailing-item", "frame/cbor", [&whole[..], &map([]).encode()].concat()),
        case("header-unsorted", "frame/cbor", header(map([op.clone(), kind.clone()]))),
        case("header-twice-t", "frame/cbor", header(twice)),
        case("header-wide-op", "frame/cbor", header(map([kind.clone(), ("op", Item::wide(1))]))),
        case("header-without-op", "frame/field", header(map([kind]))),
        case("header-without-t", "frame/field", header(map([op]))),
        case("header-an-array", "frame/field", header(Item::Array(vec![Item::Int(1)]))),
        case("payload-an-array", "frame/field", frame("#commit", &Item::Array(vec![payload]))),
    ]
}

fn fields(fixture: &Fixture) -> Vec<Case> {
    let [_, two] = fixture.two_commits();
    let case = |name: &str, code, rule, change: &dyn Fn(&mut Item)| {
        let mut payload = two.to_item();
        change(&mut payload);
        rejected(fixture, name, code, rule, frame("#commit", &payload))
    };
    let required =
        |name: &str, field: &str| case(name, "frame/field", FIELDS, &|event| event.remove(field));
    let of_a_kind = |name: &str, field: &str, item: Item| {
        case(name, "frame/field", FIELDS, &|event| event.set(field, item.clone()))
    };
    let encoding = |name: &str, change| case(name, "frame/cbor", CANONICAL, change);
    vec![
        required("without-ops", "ops"),
        required("without-rev", "rev"),
        required("without-seq", "seq"),
        required("without-repo", "repo"),
        required("without-time", "time"),
        required("without-since", "since"),
        required("without-blocks", "blocks"),
        required("without-commit", "commit"),
        of_a_kind("ops-null", "ops", Item::Null),
        of_a_kind("seq-text", "seq", Item::text("1")),
        of_a_kind("repo-an-integer", "repo", Item::Int(7)),
        of_a_kind("blocks-text", "blocks", Item::text("blocks")),
        of_a_kind("commit-text", "commit", Item::text(&two.commit.to_string())),
        case("op-with-an-unknown-action", "frame/field", OPS, &|event| {
            event.get("ops").at(0).set("action", Item::text("merge"));
        }),
        case("op-without-a-path", "frame/field", OPS, &|event| {
            event.get("ops").at(0).remove("path");
        }),
        case("op-without-cid", "frame/field", OPS, &|event| event.get("ops").at(0).remove("cid")),
        encoding("payload-unsorted", &|event| event.entries().reverse()),
        encoding("payload-seq-twice", &|event| {
            let seq = event.entries()[2].clone();
            event.entries().insert(2, seq);
        }),
        encoding("payload-wide-seq", &|event| event.set("seq", Item::wide(9))),
        encoding("payload-indefinite", &|event| *event = event.indefinite()),
        encoding("payload-nested-100000-deep", &|event| {
            event.set("x", Item::Raw([vec![0x81; 100_000], vec![0xf6]].concat()));
        }),
        encoding("op-cid-of-sha-256-of-20-bytes", &|event| {
            event.get("ops").at(0).set("cid", Item::short_sha_256());
        }),
        encoding("prev-data-of-sha-256-of-20-bytes", &|event| {
            event.set("prevData", Item::short_sha_256());
        }),
        encoding("payload-a-float", &|event| {
            event.set("x", Item::Raw(b"\xf9\x3c\x00".to_vec()));
        }),
    ]
}

const FRAMING: Rule = Rule {
    section: "event stream: framing",
    sentence: "a frame is a header, a map of t and op, and a payload, and nothing else",
};
const FIELDS: Rule =
    Rule { section: "sync: #commit", sentence: "required fields are present, each of its kind" };
const OPS: Rule = Rule {
    section: "sync: #commit",
    sentence: "an operation has an action, create, update or delete, a path, and cid, a link or null",
};
const CANONICAL: Rule = Rule {
    section: "event stream: framing",
    sentence: "header and payload are canonical DAG-CBOR, nested no deeper than a reader's bound",
};
