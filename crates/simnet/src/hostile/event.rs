//! Well-formed events that are invalid.
//!
//! Every case is the second commit after a valid one, unless it says otherwise. A fault that is detected
//! after the signature check is covered by the signature.

use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, CaseBuilder, NOW_MICROS, Rule};
use super::fixture::{
    EXISTING_RECORDS, Fixture, altered, altered_writes, rejected_frames, unknown_cid,
};
use super::parts::archive::{Item, Section, map};
use super::parts::commit::{Author, CommitEvent, Write, change_signature, frame};
use super::parts::tree::Leaf;
use crate::keys::with_high_s;
use crate::time::{DAY_MICROS, START_MICROS};

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let parts = [
        accounts, bounds, revisions, slices, objects, signatures, flags, chains, syncs, numbers,
        unsigned,
    ];
    parts.into_iter().flat_map(|part| part(fixture)).collect()
}

fn accounts(fixture: &Fixture) -> Vec<Case> {
    let other = fixture.p256().did();
    let did = |name: &str, text: &str| {
        altered(fixture, name, "event/did", DID, |event| event.repo = text.to_owned())
    };
    vec![
        did("repo-no-did", "alice.example.com"),
        did("repo-upper-case", &fixture.account().did().to_uppercase()),
        did("repo-empty", ""),
        did("repo-with-a-space", &format!("{} ", fixture.account().did())),
        altered(fixture, "commit-of-another-account", "event/did-mismatch", SAME_DID, |event| {
            let key = fixture.account().key();
            event.re_sign(key, |object| object.set("did", Item::text(other)));
        }),
    ]
}

fn bounds(fixture: &Fixture) -> Vec<Case> {
    let too_many: Vec<Leaf> = fixture.likes().skip(EXISTING_RECORDS + 1).take(201).collect();
    let creates: Vec<Write<'_>> = too_many.iter().map(Write::Create).collect();
    let large = map_of_text(1_000_000);
    let large = Leaf { record: large, ..fixture.new_like(1) };
    vec![
        altered_writes(fixture, "201-operations", "event/limit", OPS_BOUND, &creates, |_| ()),
        altered(fixture, "blocks-over-2-megabytes", "event/limit", BLOCKS_BOUND, |event| {
            let filler = |n: u8| Section::of(Item::Bytes(vec![n; 700_000]).encode());
            event.archive.sections.extend([1, 2, 3].map(filler));
        }),
        altered_writes(
            fixture,
            "record-over-1-megabyte",
            "record/size",
            RECORD_BOUND,
            &[Write::Create(&large)],
            |_| (),
        ),
    ]
}

/// A record with a text of this length.
fn map_of_text(len: usize) -> Vec<u8> {
    map([("text", Item::Text("a".repeat(len)))]).encode()
}

fn revisions(fixture: &Fixture) -> Vec<Case> {
    let key = fixture.account().key();
    let both = |event: &mut CommitEvent, rev: &str| {
        event.rev = rev.to_owned();
        event.re_sign(key, |object| object.set("rev", Item::text(rev)));
    };
    let syntax = |name: &str, change: &dyn Fn(&str) -> String| {
        altered(fixture, name, "event/rev-syntax", REV_IS_A_TID, |event| {
            let rev = change(&event.rev);
            both(event, &rev);
        })
    };
    let stale = |name: &str, micros: u64| {
        let rev = fixture.account().tid(micros).to_string();
        altered(fixture, name, "event/stale-rev", REV_INCREASES, |event| both(event, &rev))
    };
    let [one, two] = fixture.two_commits();
    let again = [one.to_frame(), two.to_frame(), one.to_frame()];
    let twice = [one.to_frame(), two.to_frame(), two.to_frame()];
    let future = |name: &str, micros: u64| {
        let mut newcomer = Author::new(fixture.account(), START_MICROS);
        let event = newcomer.commit_at(micros, &[Write::Create(&fixture.new_like(0))]);
        rejected_frames(fixture, name, "event/future-rev", REV_IS_PAST, &[event.to_frame()])
    };
    vec![
        syntax("rev-upper-case", &str::to_uppercase),
        syntax("rev-of-12", &|rev| rev[..12].to_owned()),
        syntax("rev-of-14", &|rev| format!("{rev}2")),
        syntax("rev-with-a-zero", &|rev| rev.replacen(&rev[12..], "0", 1)),
        syntax("rev-beyond-63-bits", &|rev| format!("k{}", &rev[1..])),
        altered(fixture, "since-no-tid", "event/rev-syntax", REV_IS_A_TID, |event| {
            event.since = Some("yesterday".to_owned());
        }),
        stale("rev-of-an-hour-ago", START_MICROS - 3_600_000_000),
        stale("rev-the-same", START_MICROS + 1_000_000),
        rejected_frames(fixture, "an-event-again", "event/stale-rev", REV_INCREASES, &twice),
        rejected_frames(fixture, "an-older-event-again", "event/stale-rev", REV_INCREASES, &again),
        future("rev-6-minutes-ahead", NOW_MICROS + 6 * 60_000_000),
        future("rev-in-the-next-century", NOW_MICROS + 100 * 365 * DAY_MICROS),
    ]
}

fn slices(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, code, rule, change: &dyn Fn(&mut CommitEvent)| {
        altered(fixture, name, code, rule, change)
    };
    let raw_bytes = |name: &str, code, rule, change: &dyn Fn(&mut Vec<u8>)| {
        let [one, two] = fixture.two_commits();
        let mut car = two.archive.to_bytes();
        change(&mut car);
        let mut event = two.to_item();
        event.set("blocks", Item::Bytes(car));
        rejected_frames(fixture, name, code, rule, &[one.to_frame(), frame("#commit", &event)])
    };
    // Inside a text or a digest, so that the block remains valid DAG-CBOR.
    let flip = |event: &mut CommitEvent, at: usize| {
        let data = &mut event.archive.sections[at].data;
        let inside = data.len() - 4;
        data[inside] ^= 1;
    };
    vec![
        case("slice-without-roots", "event/root", ROOT, &|event| {
            event.archive.header.get("roots").items().clear();
        }),
        case("slice-of-another-root", "event/commit-cid", ROOT, &|event| {
            let node = event.new_nodes[0];
            event.archive.set_root(&node);
        }),
        case("commit-cid-of-another", "event/commit-cid", ROOT, &|event| {
            event.commit = unknown_cid()
        }),
        case("commit-cid-of-a-node", "event/commit-cid", ROOT, &|event| {
            event.commit = event.new_nodes[0];
        }),
        case("commit-block-missing", "commit/missing-block", ROOT, &|event| {
            let commit = event.commit;
            event.archive.remove(&commit);
        }),
        case("slice-of-version-2", "car/version", SLICE, &|event| {
            event.archive.header.set("version", Item::Int(2));
        }),
        case("slice-commit-flipped", "car/hash", HASHED, &|event| flip(event, 0)),
        case("slice-record-flipped", "car/hash", HASHED, &|event| flip(event, 1)),
        case("slice-node-flipped", "car/hash", HASHED, &|event| flip(event, 2)),
        case("slice-extra-block-flipped", "car/hash", HASHED, &|event| {
            event.archive.sections.push(Section::of(b"\xa1\x64text\x64text".to_vec()));
            flip(event, event.archive.sections.len() - 1);
        }),
        raw_bytes("slice-empty", "car/truncated", SLICE, &|car| car.clear()),
        raw_bytes("slice-cut-in-a-block", "car/truncated", SLICE, &|car| {
            car.truncate(car.len() - 30);
        }),
        raw_bytes("slice-zero-at-the-end", "car/cid", SLICE, &|car| car.push(0)),
        raw_bytes("slice-padded-varint", "car/varint", SLICE, &|car| car.extend([0x80, 0])),
    ]
}

fn objects(fixture: &Fixture) -> Vec<Case> {
    let key = fixture.account().key();
    let case = |name: &str, code, change: &dyn Fn(&mut Item)| {
        altered(fixture, name, code, OBJECT, |event| event.re_sign(key, change))
    };
    let rev = |micros: u64| fixture.account().tid(START_MICROS + micros).to_string();
    vec![
        case("object-of-version-2", "commit/version", &|object| {
            object.set("version", Item::Int(2));
        }),
        case("object-without-prev", "commit/missing", &|object| object.remove("prev")),
        case("object-without-data", "commit/missing", &|object| object.remove("data")),
        case("object-data-of-raw-codec", "commit/field", &|object| {
            object.set("data", Item::link(&Cid::of(Codec::Raw, b"no tree")));
        }),
        altered(fixture, "event-rev-of-another", "event/rev-mismatch", SAME_REV, |event| {
            event.rev = rev(3_000_000);
        }),
        altered(fixture, "object-rev-of-another", "event/rev-mismatch", SAME_REV, |event| {
            event.re_sign(key, |object| object.set("rev", Item::text(&rev(3_000_000))));
        }),
    ]
}

fn signatures(fixture: &Fixture) -> Vec<Case> {
    let mut cases = Vec::new();
    let (k256, p256) = ((fixture.account(), "k256"), (fixture.p256(), "p256"));
    for (account, curve_name) in [k256, p256] {
        let key = account.key();
        let mut author = Author::with_records(account, START_MICROS, &fixture.existing_likes());
        let one = author.commit(&[Write::Create(&fixture.new_like(0))]);
        let two = author.commit(&[Write::Create(&fixture.new_like(1))]);
        let mut case = |name: &str, code, change: &dyn Fn([u8; 64]) -> Vec<u8>| {
            let mut event = two.clone();
            event.tamper(key, |object| change_signature(object, change));
            let name = format!("{name}-{curve_name}");
            let frames = [one.to_frame(), event.to_frame()];
            cases.push(CaseBuilder::frames(account, &name, &frames).rejected(code, SIGNED));
        };
        case("event-bit-flipped", "signature/wrong", &|mut sig| {
            sig[7] ^= 1;
            sig.to_vec()
        });
        case("event-high-s", "signature/high-s", &|sig| with_high_s(key.curve(), &sig).to_vec());
        case("event-r-0", "signature/range", &|sig| [&[0; 32], &sig[32..]].concat());
        case("event-sig-of-65-bytes", "commit/signature-length", &|sig| [&sig[..], &[0]].concat());
    }
    cases.push(altered(fixture, "event-key-of-a-stranger", "signature/wrong", SIGNED, |event| {
        event.re_sign(fixture.other_key(), |_| ());
    }));
    cases.push(altered(fixture, "event-object-field-added", "signature/wrong", SIGNED, |event| {
        event.tamper(fixture.account().key(), |object| object.set("note", Item::Null));
    }));
    cases
}

fn flags(fixture: &Fixture) -> Vec<Case> {
    let time = |name: &str, time: &str| {
        altered(fixture, name, "event/time", TIME, |event| event.time = time.to_owned())
    };
    vec![
        altered(fixture, "too-big", "event/too-big", COMPLETE, |event| event.too_big = true),
        altered(fixture, "rebase", "event/rebase", COMPLETE, |event| event.rebase = true),
        time("time-of-month-13", "2026-13-01T00:00:00.000Z"),
        time("time-of-february-30", "2026-02-30T00:00:00.000Z"),
        time("time-without-zone", "2026-07-01T00:00:00.000"),
        time("time-empty", ""),
        time("time-a-word", "yesterday"),
    ]
}

/// Events that do not continue the known state of the account.
fn chains(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, code, change: &dyn Fn(&mut CommitEvent)| {
        altered(fixture, name, code, CHAIN, change)
    };
    let earlier = fixture.account().tid(START_MICROS - 5_000_000).to_string();
    let three = {
        let mut author = fixture.author();
        [0, 1, 2].map(|at| author.commit(&[Write::Create(&fixture.new_like(at))]).to_frame())
    };
    // The same revisions over other trees: the rev of the previous commit matches, its tree does not.
    let fork = {
        let mut author = fixture.author();
        let mut other = author.clone();
        let one = author.commit(&[Write::Create(&fixture.new_like(0))]);
        other.commit(&[Write::Create(&fixture.new_like(3))]);
        let two = other.commit(&[Write::Create(&fixture.new_like(1))]);
        [one.to_frame(), two.to_frame()]
    };
    let first_again = {
        let mut newcomer = Author::new(fixture.account(), START_MICROS);
        newcomer.commit_at(START_MICROS + 9_000_000, &[Write::Create(&fixture.new_like(1))])
    };
    let [one, _] = fixture.two_commits();
    vec![
        case("prev-data-absent", "event/prev-data-missing", &|event| event.prev_data = None),
        case("since-earlier", "event/since", &|event| event.since = Some(earlier.clone())),
        case("since-null", "event/since", &|event| event.since = None),
        rejected_frames(
            fixture,
            "an-event-left-out",
            "event/since",
            CHAIN,
            &[three[0].clone(), three[2].clone()],
        ),
        rejected_frames(fixture, "a-fork", "event/prev-data", CHAIN, &fork),
        rejected_frames(
            fixture,
            "a-first-commit-again",
            "event/since",
            CHAIN,
            &[one.to_frame(), first_again.to_frame()],
        ),
    ]
}

fn syncs(fixture: &Fixture) -> Vec<Case> {
    let [one, two] = fixture.two_commits();
    let case = |name: &str, code, rule, change: &dyn Fn(&mut CommitEvent)| {
        let mut event = two.clone();
        change(&mut event);
        rejected_frames(
            fixture,
            name,
            code,
            rule,
            &[one.to_frame(), frame("#sync", &event.to_sync())],
        )
    };
    let key = fixture.account().key();
    let rev = fixture.account().tid(START_MICROS + 7_000_000).to_string();
    let old = CommitEvent { seq: two.seq, ..one.clone() };
    vec![
        case("sync-of-another-account", "event/did-mismatch", SAME_DID, &|event| {
            let other = Item::text(fixture.p256().did());
            event.re_sign(key, |object| object.set("did", other));
        }),
        case("sync-rev-of-another", "event/rev-mismatch", SAME_REV, &|event| {
            event.rev = rev.clone();
        }),
        case("sync-by-a-stranger", "signature/wrong", SIGNED, &|event| {
            event.re_sign(fixture.other_key(), |_| ());
        }),
        case("sync-object-of-version-2", "commit/version", OBJECT, &|event| {
            event.re_sign(key, |object| object.set("version", Item::Int(2)));
        }),
        case("sync-without-the-commit", "commit/missing-block", ROOT, &|event| {
            event.archive.sections.clear();
        }),
        case("sync-without-roots", "event/root", ROOT, &|event| {
            event.archive.header.get("roots").items().clear();
        }),
        case("sync-time-a-word", "event/time", TIME, &|event| event.time = "now".to_owned()),
        rejected_frames(
            fixture,
            "sync-of-the-past",
            "event/stale-rev",
            REV_INCREASES,
            &[one.to_frame(), two.to_frame(), frame("#sync", &old.to_sync())],
        ),
    ]
}

fn numbers(fixture: &Fixture) -> Vec<Case> {
    let case =
        |name: &str, seq: i64| altered(fixture, name, "event/seq", SEQ, |event| event.seq = seq);
    vec![case("seq-0", 0), case("seq-negative", -1), case("seq-of-54-bits", 1 << 53)]
}

/// Events without a signature, after a valid commit.
fn unsigned(fixture: &Fixture) -> Vec<Case> {
    let [one, two] = fixture.two_commits();
    let case = |name: &str, (code, rule), kind: &str, [did, time]: [&str; 2], (key, item)| {
        let (did, time) = (("did", Item::text(did)), ("time", Item::text(time)));
        let event = map([did, ("seq", Item::Int(two.seq)), time, (key, item)]);
        rejected_frames(fixture, name, code, rule, &[one.to_frame(), frame(kind, &event)])
    };
    let (did, time) = (fixture.account().did(), &*two.time);
    let identity = |name: &str, code, [did, time]: [&str; 2], handle: &str| {
        case(name, code, "#identity", [did, time], ("handle", Item::text(handle)))
    };
    let account = |name: &str, code, [did, time]: [&str; 2]| {
        case(name, code, "#account", [did, time], ("active", Item::Bool(true)))
    };
    let no_did = ("event/did", DID);
    let no_time = ("event/time", TIME);
    let no_handle = ("event/handle", HANDLE);
    vec![
        identity("identity-of-no-did", no_did, [HANDLE_TEXT, time], HANDLE_TEXT),
        identity("identity-time-a-word", no_time, [did, "yesterday"], HANDLE_TEXT),
        identity("identity-handle-of-one-label", no_handle, [did, time], "alice"),
        identity("identity-handle-with-a-space", no_handle, [did, time], "alice example.com"),
        identity("identity-handle-empty", no_handle, [did, time], ""),
        account("account-of-no-did", no_did, [HANDLE_TEXT, time]),
        account("account-time-a-word", no_time, [did, "yesterday"]),
    ]
}

const HANDLE_TEXT: &str = "alice.example.com";

const SYNC: &str = "sync: validation";
const DID: Rule = Rule { section: SYNC, sentence: "the account is a DID in its normal form" };
const SAME_DID: Rule =
    Rule { section: SYNC, sentence: "the commit's did is the account that the event is about" };
const SAME_REV: Rule = Rule { section: SYNC, sentence: "the commit's rev is that of the event" };
const OPS_BOUND: Rule =
    Rule { section: "sync: #commit", sentence: "a commit has at most 200 operations" };
const BLOCKS_BOUND: Rule =
    Rule { section: "sync: #commit", sentence: "blocks are at most 2,000,000 bytes" };
const RECORD_BOUND: Rule =
    Rule { section: "sync: #commit", sentence: "a record is at most 1,000,000 bytes" };
const REV_IS_A_TID: Rule = Rule { section: SYNC, sentence: "rev and since are TIDs" };
const REV_INCREASES: Rule = Rule {
    section: SYNC,
    sentence: "an event whose rev is not later than the last is ignored: it is old, or comes again",
};
const REV_IS_PAST: Rule =
    Rule { section: SYNC, sentence: "a rev is at most a few minutes, five, in the future" };
const ROOT: Rule = Rule {
    section: SYNC,
    sentence: "the first root of the blocks is the commit that the event names, and its block is there",
};
const SLICE: Rule =
    Rule { section: "sync: CAR slices", sentence: "blocks are an archive of version 1, whole" };
const HASHED: Rule = Rule {
    section: "sync: CAR slices",
    sentence: "a CID is the SHA-256 of the very bytes that stand beside it",
};
const OBJECT: Rule = Rule {
    section: "repository: commit objects",
    sentence: "a commit has the six fields of version 3",
};
const SIGNED: Rule = Rule {
    section: "cryptography: ECDSA signature malleability",
    sentence: "the signature is by the account's key, over this commit, 64 bytes and low-S",
};
const COMPLETE: Rule = Rule {
    section: "sync: #commit",
    sentence: "an event tells all that happened: tooBig and rebase, which say otherwise, are past",
};
const TIME: Rule = Rule {
    section: "sync: #commit",
    sentence: "time is a datetime: RFC 3339 with a zone, and real",
};
const SEQ: Rule = Rule {
    section: "event stream: sequence numbers",
    sentence: "seq is a positive integer of at most 53 bits",
};
const HANDLE: Rule = Rule {
    section: "sync: #identity",
    sentence: "handle is a handle: a domain name of two labels or more",
};
const CHAIN: Rule = Rule {
    section: SYNC,
    sentence: "since and prevData are the rev and the tree of the commit before: if not, something is \
               missing, and the repository must be fetched",
};
