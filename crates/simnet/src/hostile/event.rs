//! What can be wrong with an event that is well-formed?
//!
//! Every case is the second commit of a story whose first is valid, unless it says otherwise. Where
//! the fault lies behind the signature, the commit is signed with it.

use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, Exhibit, Rule};
use super::forge::archive::Section;
use super::forge::author::{Author, Write};
use super::forge::commit::change_signature;
use super::forge::event::{Draft, frame};
use super::forge::item::Item;
use super::forge::tree::Leaf;
use super::scene::{JOINED_MICROS, NOW_MICROS, RECORDS, Scene};
use super::story::{nobodys, seen, spoiled, spoiled_writes, story};
use crate::keys::with_high_s;

pub(super) fn cases(scene: &Scene) -> Vec<Case> {
    let parts = [accounts, bounds, revisions, slices, objects, signatures, flags, chains, syncs];
    parts.into_iter().flat_map(|part| part(scene)).collect()
}

fn accounts(scene: &Scene) -> Vec<Case> {
    let other = scene.p256().did();
    let did = |name: &str, text: &str| {
        spoiled(scene, name, "event/did", DID, |draft| draft.repo = text.to_owned())
    };
    vec![
        did("repo-no-did", "alice.example.com"),
        did("repo-upper-case", &scene.account().did().to_uppercase()),
        did("repo-empty", ""),
        did("repo-with-a-space", &format!("{} ", scene.account().did())),
        spoiled(scene, "commit-of-another-account", "event/did-mismatch", SAME_DID, |draft| {
            let key = scene.account().key();
            draft.resign(key, |object| object.set("did", Item::text(other)));
        }),
    ]
}

fn bounds(scene: &Scene) -> Vec<Case> {
    let too_many: Vec<Leaf> = scene.likes().skip(RECORDS + 1).take(201).collect();
    let creates: Vec<Write<'_>> = too_many.iter().map(Write::Create).collect();
    let large = map_of_text(1_000_000);
    let large = Leaf { record: large, ..scene.unseen(1) };
    vec![
        spoiled_writes(scene, "201-operations", "event/limit", OPS_BOUND, &creates, |_| ()),
        spoiled(scene, "blocks-over-2-megabytes", "event/limit", BLOCKS_BOUND, |draft| {
            let filler = |n: u8| Section::of(Item::Bytes(vec![n; 700_000]).encode());
            draft.archive.sections.extend([1, 2, 3].map(filler));
        }),
        spoiled_writes(
            scene,
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
    super::forge::item::map([("text", Item::Text("a".repeat(len)))]).encode()
}

fn revisions(scene: &Scene) -> Vec<Case> {
    let key = scene.account().key();
    let both = |draft: &mut Draft, rev: &str| {
        draft.rev = rev.to_owned();
        draft.resign(key, |object| object.set("rev", Item::text(rev)));
    };
    let syntax = |name: &str, change: &dyn Fn(&str) -> String| {
        spoiled(scene, name, "event/rev-syntax", REV_IS_A_TID, |draft| {
            let rev = change(&draft.rev);
            both(draft, &rev);
        })
    };
    let stale = |name: &str, micros: u64| {
        let rev = scene.account().tid(micros).to_string();
        spoiled(scene, name, "event/stale-rev", REV_INCREASES, |draft| both(draft, &rev))
    };
    let [one, two] = scene.two_commits();
    let again = [one.to_frame(), two.to_frame(), one.to_frame()];
    let twice = [one.to_frame(), two.to_frame(), two.to_frame()];
    let future = |name: &str, micros: u64| {
        let mut newcomer = Author::new(scene.account(), JOINED_MICROS);
        let draft = newcomer.commit_at(micros, &[Write::Create(&scene.unseen(0))]);
        story(scene, name, "event/future-rev", REV_IS_PAST, &[draft.to_frame()])
    };
    vec![
        syntax("rev-upper-case", &str::to_uppercase),
        syntax("rev-of-12", &|rev| rev[..12].to_owned()),
        syntax("rev-of-14", &|rev| format!("{rev}2")),
        syntax("rev-with-a-zero", &|rev| rev.replacen(&rev[12..], "0", 1)),
        syntax("rev-beyond-63-bits", &|rev| format!("k{}", &rev[1..])),
        spoiled(scene, "since-no-tid", "event/rev-syntax", REV_IS_A_TID, |draft| {
            draft.since = Some("yesterday".to_owned());
        }),
        stale("rev-of-an-hour-ago", JOINED_MICROS - 3_600_000_000),
        stale("rev-the-same", JOINED_MICROS + 1_000_000),
        story(scene, "an-event-again", "event/stale-rev", REV_INCREASES, &twice),
        story(scene, "an-older-event-again", "event/stale-rev", REV_INCREASES, &again),
        future("rev-6-minutes-ahead", NOW_MICROS + 6 * 60_000_000),
        future("rev-in-the-next-century", NOW_MICROS + 100 * 365 * 86_400_000_000),
    ]
}

fn slices(scene: &Scene) -> Vec<Case> {
    let case = |name: &str, code, rule, change: &dyn Fn(&mut Draft)| {
        spoiled(scene, name, code, rule, change)
    };
    let raw_bytes = |name: &str, code, rule, change: &dyn Fn(&mut Vec<u8>)| {
        let [one, two] = scene.two_commits();
        let mut car = two.archive.to_bytes();
        change(&mut car);
        let mut event = two.to_item();
        event.set("blocks", Item::Bytes(car));
        story(scene, name, code, rule, &[one.to_frame(), frame("#commit", &event)])
    };
    // Inside a text or a digest, so that the block is still one of DAG-CBOR.
    let flip = |draft: &mut Draft, at: usize| {
        let data = &mut draft.archive.sections[at].data;
        let inside = data.len() - 4;
        data[inside] ^= 1;
    };
    vec![
        case("slice-without-roots", "event/root", ROOT, &|draft| {
            draft.archive.header.get("roots").items().clear();
        }),
        case("slice-of-another-root", "event/commit-cid", ROOT, &|draft| {
            let node = draft.new_nodes[0];
            draft.archive.set_root(&node);
        }),
        case("commit-cid-of-another", "event/commit-cid", ROOT, &|draft| draft.commit = nobodys()),
        case("commit-cid-of-a-node", "event/commit-cid", ROOT, &|draft| {
            draft.commit = draft.new_nodes[0];
        }),
        case("commit-block-missing", "commit/missing-block", ROOT, &|draft| {
            let commit = draft.commit;
            draft.archive.remove(&commit);
        }),
        case("slice-of-version-2", "car/version", SLICE, &|draft| {
            draft.archive.header.set("version", Item::Int(2));
        }),
        case("slice-commit-flipped", "car/hash", HASHED, &|draft| flip(draft, 0)),
        case("slice-record-flipped", "car/hash", HASHED, &|draft| flip(draft, 1)),
        case("slice-node-flipped", "car/hash", HASHED, &|draft| flip(draft, 2)),
        raw_bytes("slice-empty", "car/truncated", SLICE, &|car| car.clear()),
        raw_bytes("slice-cut-in-a-block", "car/truncated", SLICE, &|car| {
            car.truncate(car.len() - 30);
        }),
        raw_bytes("slice-zero-at-the-end", "car/cid", SLICE, &|car| car.push(0)),
        raw_bytes("slice-padded-varint", "car/varint", SLICE, &|car| car.extend([0x80, 0])),
    ]
}

fn objects(scene: &Scene) -> Vec<Case> {
    let key = scene.account().key();
    let case = |name: &str, code, change: &dyn Fn(&mut Item)| {
        spoiled(scene, name, code, OBJECT, |draft| draft.resign(key, change))
    };
    let rev = |micros: u64| scene.account().tid(JOINED_MICROS + micros).to_string();
    vec![
        case("object-of-version-2", "commit/version", &|object| {
            object.set("version", Item::Int(2));
        }),
        case("object-without-prev", "commit/missing", &|object| object.remove("prev")),
        case("object-without-data", "commit/missing", &|object| object.remove("data")),
        case("object-data-of-raw-codec", "commit/field", &|object| {
            object.set("data", Item::link(&Cid::of(Codec::Raw, b"no tree")));
        }),
        spoiled(scene, "event-rev-of-another", "event/rev-mismatch", SAME_REV, |draft| {
            draft.rev = rev(3_000_000);
        }),
        spoiled(scene, "object-rev-of-another", "event/rev-mismatch", SAME_REV, |draft| {
            draft.resign(key, |object| object.set("rev", Item::text(&rev(3_000_000))));
        }),
    ]
}

fn signatures(scene: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    let (k256, p256) = ((scene.account(), "k256"), (scene.p256(), "p256"));
    for (account, curve_name) in [k256, p256] {
        let key = account.key();
        let mut author = Author::with_records(account, JOINED_MICROS, &seen(scene));
        let one = author.commit(&[Write::Create(&scene.unseen(0))]);
        let two = author.commit(&[Write::Create(&scene.unseen(1))]);
        let mut case = |name: &str, code, change: &dyn Fn([u8; 64]) -> Vec<u8>| {
            let mut draft = two.clone();
            draft.tamper(key, |object| change_signature(object, change));
            let name = format!("{name}-{curve_name}");
            let frames = [one.to_frame(), draft.to_frame()];
            cases.push(Exhibit::frames(account, &name, &frames).refused(code, SIGNED));
        };
        case("event-bit-flipped", "signature/wrong", &|mut sig| {
            sig[7] ^= 1;
            sig.to_vec()
        });
        case("event-high-s", "signature/high-s", &|sig| with_high_s(key.curve(), &sig).to_vec());
        case("event-r-0", "signature/range", &|sig| [&[0; 32], &sig[32..]].concat());
        case("event-sig-of-65-bytes", "commit/signature-length", &|sig| [&sig[..], &[0]].concat());
    }
    cases.push(spoiled(scene, "event-key-of-a-stranger", "signature/wrong", SIGNED, |draft| {
        draft.resign(scene.stranger(), |_| ());
    }));
    cases.push(spoiled(scene, "event-object-field-added", "signature/wrong", SIGNED, |draft| {
        draft.tamper(scene.account().key(), |object| object.set("note", Item::Null));
    }));
    cases
}

fn flags(scene: &Scene) -> Vec<Case> {
    let time = |name: &str, time: &str| {
        spoiled(scene, name, "event/time", TIME, |draft| draft.time = time.to_owned())
    };
    vec![
        spoiled(scene, "too-big", "event/too-big", COMPLETE, |draft| draft.too_big = true),
        spoiled(scene, "rebase", "event/rebase", COMPLETE, |draft| draft.rebase = true),
        time("time-of-month-13", "2026-13-01T00:00:00.000Z"),
        time("time-of-february-30", "2026-02-30T00:00:00.000Z"),
        time("time-without-zone", "2026-07-01T00:00:00.000"),
        time("time-empty", ""),
        time("time-a-word", "yesterday"),
    ]
}

/// Events that are consistent in themselves, or nearly, but do not continue what is known.
fn chains(scene: &Scene) -> Vec<Case> {
    let case =
        |name: &str, code, change: &dyn Fn(&mut Draft)| spoiled(scene, name, code, CHAIN, change);
    let earlier = scene.account().tid(JOINED_MICROS - 5_000_000).to_string();
    let three = {
        let mut author = scene.author();
        [0, 1, 2].map(|at| author.commit(&[Write::Create(&scene.unseen(at))]).to_frame())
    };
    // The same revisions over other trees: nobody who has the tree before can have this one after.
    let fork = {
        let mut author = scene.author();
        let mut other = author.clone();
        let one = author.commit(&[Write::Create(&scene.unseen(0))]);
        other.commit(&[Write::Create(&scene.unseen(3))]);
        let two = other.commit(&[Write::Create(&scene.unseen(1))]);
        [one.to_frame(), two.to_frame()]
    };
    let first_again = {
        let mut newcomer = Author::new(scene.account(), JOINED_MICROS);
        newcomer.commit_at(JOINED_MICROS + 9_000_000, &[Write::Create(&scene.unseen(1))])
    };
    let [one, _] = scene.two_commits();
    vec![
        case("prev-data-absent", "event/prev-data-missing", &|draft| draft.prev_data = None),
        case("since-earlier", "event/since", &|draft| draft.since = Some(earlier.clone())),
        case("since-null", "event/since", &|draft| draft.since = None),
        story(
            scene,
            "an-event-left-out",
            "event/since",
            CHAIN,
            &[three[0].clone(), three[2].clone()],
        ),
        story(scene, "a-fork", "event/prev-data", CHAIN, &fork),
        story(
            scene,
            "a-first-commit-again",
            "event/since",
            CHAIN,
            &[one.to_frame(), first_again.to_frame()],
        ),
    ]
}

fn syncs(scene: &Scene) -> Vec<Case> {
    let [one, two] = scene.two_commits();
    let case = |name: &str, code, rule, change: &dyn Fn(&mut Draft)| {
        let mut draft = two.clone();
        change(&mut draft);
        story(scene, name, code, rule, &[one.to_frame(), frame("#sync", &draft.to_sync())])
    };
    let key = scene.account().key();
    let rev = scene.account().tid(JOINED_MICROS + 7_000_000).to_string();
    let old = Draft { seq: two.seq, ..one.clone() };
    vec![
        case("sync-of-another-account", "event/did-mismatch", SAME_DID, &|draft| {
            let other = Item::text(scene.p256().did());
            draft.resign(key, |object| object.set("did", other));
        }),
        case("sync-rev-of-another", "event/rev-mismatch", SAME_REV, &|draft| {
            draft.rev = rev.clone();
        }),
        case("sync-by-a-stranger", "signature/wrong", SIGNED, &|draft| {
            draft.resign(scene.stranger(), |_| ());
        }),
        case("sync-object-of-version-2", "commit/version", OBJECT, &|draft| {
            draft.resign(key, |object| object.set("version", Item::Int(2)));
        }),
        case("sync-without-the-commit", "commit/missing-block", ROOT, &|draft| {
            draft.archive.sections.clear();
        }),
        case("sync-without-roots", "event/root", ROOT, &|draft| {
            draft.archive.header.get("roots").items().clear();
        }),
        case("sync-time-a-word", "event/time", TIME, &|draft| draft.time = "now".to_owned()),
        story(
            scene,
            "sync-of-the-past",
            "event/stale-rev",
            REV_INCREASES,
            &[one.to_frame(), two.to_frame(), frame("#sync", &old.to_sync())],
        ),
    ]
}

const SYNC: &str = "sync: validation";
const DID: Rule = Rule { section: SYNC, sentence: "repo is a DID in its normal form" };
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
const CHAIN: Rule = Rule {
    section: SYNC,
    sentence: "since and prevData are the rev and the tree of the commit before: if not, something is \
               missing, and the repository must be fetched",
};
