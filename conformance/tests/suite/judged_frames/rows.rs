//! Every row of the table of checks, with an event that fails there and at no earlier row.

use atproto::commit::UnsignedCommit;
use atproto::corpus;
use atproto::event::{Action, Commit, RepoOp};
use codec::cid::{Cid, Codec};
use crypto::{CompressedKey, KeyCache, SignatureFault};
use simnet::hostile::{CaseSet, Spec};
use simnet::keys::{Curve, SigningKey};
use simnet::repository::RecordWrite;
use verify::sync::{
    AccountKey, AccountState, Chain, ChainBreak, Ignored, Judge, MemoryState, OpFault, Outcome,
    Policy, SyncRejection, SyncState,
};

use super::fixture::*;

/// An account, its first two commits accepted, and the frame of a valid third.
fn third_commit() -> (TestJudge, Author, Vec<u8>) {
    let mut author = Author::on_k256(1);
    let mut judge = TestJudge::of([author.account()]);
    assert_eq!(judge.verdict(&author.create()), "first");
    assert_eq!(judge.verdict(&author.create()), "intact");
    let third = author.create();
    (judge, author, third)
}

/// Asserts that a frame gets this verdict, that it changes nothing, and that the valid frame is
/// still accepted after it.
#[track_caller]
fn assert_rejected(
    mut judge: TestJudge,
    author: &Author,
    forged: &[u8],
    sound: &[u8],
    verdict: &str,
) {
    let before = judge.account(author.did());
    assert_eq!(judge.verdict(forged), verdict);
    assert_eq!(judge.account(author.did()), before, "a rejected event changes nothing");
    assert_eq!(judge.verdict(sound), "intact");
}

/// As [`assert_rejected`], of the third frame rewritten.
#[track_caller]
fn assert_rewritten(verdict: &str, rewrite: impl FnOnce(Commit<'_>) -> Vec<u8>) {
    let (judge, author, sound) = third_commit();
    assert_rejected(judge, &author, &rewritten(&sound, rewrite), &sound, verdict);
}

/// As [`assert_rejected`], of the third frame with another commit object, signed again.
#[track_caller]
fn assert_resigned(verdict: &str, change: impl FnOnce(UnsignedCommit<'_>, &SigningKey) -> Vec<u8>) {
    let (judge, author, sound) = third_commit();
    let forged = rewritten(&sound, |commit| {
        with_object(commit, &change(unsigned(&object(&commit)), author.key()))
    });
    assert_rejected(judge, &author, &forged, &sound, verdict);
}

#[test]
fn row_1_a_frame_that_is_not_a_message() {
    let (judge, author, sound) = third_commit();
    let cut = &sound[..sound.len() - 1];
    assert_rejected(judge, &author, cut, &sound, "rejected 1 frame/cbor");
    let (judge, author, sound) = third_commit();
    let longer = [&sound[..], &[0]].concat();
    assert_rejected(judge, &author, &longer, &sound, "rejected 1 frame/cbor");
    let (judge, author, sound) = third_commit();
    let empty = b"\xa2\x61t\x67#commit\x62op\x01\xa0";
    assert_rejected(judge, &author, empty, &sound, "rejected 1 frame/field");
}

#[test]
fn row_2_an_account_that_is_not_a_did() {
    for repo in ["alice.example", "did:plc:", "did:plc:WQ4AAJAMMJTXDOMZ3E23667T", "did:plc:short"] {
        assert_rewritten("rejected 2 event/did", |commit| frame(Commit { repo, ..commit }));
    }
}

#[test]
fn row_3_an_event_over_a_limit() {
    let padding = vec![0; 500_000];
    let padded = |commit: Commit<'_>| {
        let raw = Cid::of(Codec::Raw, &padding);
        with_blocks(commit, blocks(&commit).chain([(raw.as_cid_ref(), &padding[..]); 4]))
    };
    assert_rewritten("rejected 3 event/limit", padded);
    assert_rewritten("rejected 3 event/limit", |commit| {
        with_ops(commit, |ops| *ops = vec![ops[0]; 201])
    });
    let (mut judge, author, sound) = third_commit();
    let mut small = TestJudge::new(policy(|policy| policy.max_record_bytes = 200));
    small.know(author.account());
    assert_eq!(small.verdict(&sound), "rejected 3 record/size");
    let mut small = TestJudge::new(policy(|policy| policy.max_frame_bytes = 200));
    assert_eq!(small.verdict(&sound), "rejected 3 frame/limit");
    assert_eq!(judge.verdict(&sound), "intact");
}

#[test]
fn row_4_an_account_on_another_host() {
    let (_, _, sound) = third_commit();
    let mut judge = Judge::new(Policy::default(), KeyCache::new(0, [7; 16]));
    let mut state = MemoryState::new([8; 16]);
    let elsewhere = |_: &str| AccountKey::OtherHost;
    let judged = judge.judge(&sound, &elsewhere, &mut state, LATER_MICROS).unwrap();
    assert_eq!(judged.outcome, Outcome::Rejected(SyncRejection::Host));
    assert_eq!(verdict(&judged.outcome), "rejected 4 event/host");
    assert!(SyncRejection::Host.may_be_stale_key() && state.is_empty());
}

#[test]
fn row_5_an_account_that_is_not_active_is_ignored() {
    let (mut judge, author, sound) = third_commit();
    let known = judge.account(author.did());
    judge.state.put(author.did(), AccountState { is_active: false, ..known });
    assert_eq!(judge.judge(&sound).outcome, Outcome::Ignored(Ignored::Inactive));
    assert_eq!(judge.verdict(&author.sync()), "ignored 5 event/inactive");
    assert_eq!(judge.account(author.did()).head, known.head);
    judge.state.put(author.did(), known);
    assert_eq!(judge.verdict(&sound), "intact");
}

#[test]
fn row_6_a_revision_that_is_not_a_tid() {
    assert_rewritten("rejected 6 event/rev-syntax", |c| frame(Commit { rev: "yesterday", ..c }));
    assert_rewritten("rejected 6 event/rev-syntax", |c| frame(Commit { since: Some("zzz"), ..c }));
}

#[test]
fn row_6_a_repeated_revision_is_ignored() {
    let mut author = Author::on_k256(1);
    let mut judge = TestJudge::of([author.account()]);
    let (first, second) = (author.create(), author.create());
    assert_eq!(judge.verdict(&first), "first");
    assert_eq!(judge.verdict(&second), "intact");
    let known = judge.account(author.did());
    for seen in [&first, &second, &author.sync()] {
        assert_eq!(judge.verdict(seen), "ignored 6 event/stale-rev");
    }
    assert_eq!(judge.account(author.did()), known);
}

#[test]
fn row_7_a_revision_too_far_ahead() {
    let (mut judge, author, sound) = third_commit();
    let rev_micros = author.repository.rev().micros();
    judge.now_micros = rev_micros - 5 * 60_000_000 - 1;
    assert_eq!(judge.verdict(&sound), "rejected 7 event/future-rev");
    judge.now_micros += 1;
    assert_eq!(judge.verdict(&sound), "intact");
}

#[test]
fn row_8_a_slice_without_its_commit() {
    assert_rewritten("rejected 8 car/header", |c| frame(Commit { car: b"\x01\xa0", ..c }));
    assert_rewritten("rejected 8 car/truncated", |c| {
        frame(Commit { car: &c.car[..c.car.len() - 1], ..c })
    });
    assert_rewritten("rejected 8 event/root", |c| {
        frame(Commit { car: &archive(None, blocks(&c)), ..c })
    });
    assert_rewritten("rejected 8 commit/missing-block", |c| {
        with_blocks(c, blocks(&c).filter(|(cid, _)| *cid != c.commit.as_cid_ref()))
    });
    let (judge, author, sound) = third_commit();
    let mut flipped = sound.clone();
    let at = sound.windows(3).position(|window| window == b"sig").unwrap() + 20;
    flipped[at] ^= 1;
    assert_rejected(judge, &author, &flipped, &sound, "rejected 8 car/hash");
}

#[test]
fn row_9_an_event_that_names_another_commit() {
    let other = Cid::of(Codec::DagCbor, b"another");
    assert_rewritten("rejected 9 event/commit-cid", |c| frame(Commit { commit: other, ..c }));
}

#[test]
fn row_10_a_commit_object_that_differs_from_the_event() {
    assert_resigned("rejected 10 event/did-mismatch", |unsigned, key| {
        sign(key, UnsignedCommit { did: "did:web:example.com", ..unsigned })
    });
    assert_resigned("rejected 10 event/rev-mismatch", |unsigned, key| {
        sign(key, UnsignedCommit { rev: "3mptbypluud2a", ..unsigned })
    });
    let without = |name: &'static [u8], with: &'static [u8]| {
        move |unsigned: UnsignedCommit<'_>, key: &SigningKey| {
            let block = sign(key, unsigned);
            let at = block.windows(name.len()).position(|window| window == name).unwrap();
            [&block[..at], with, &block[at + name.len()..]].concat()
        }
    };
    assert_resigned("rejected 10 commit/version", without(b"version\x03", b"version\x02"));
    assert_resigned("rejected 10 commit/field", without(b"prev\xf6", b"prev\x01"));
    assert_resigned(
        "rejected 10 commit/signature-length",
        without(b"sig\x58\x40", b"sig\x58\x41\x01"),
    );
    assert_resigned("rejected 10 commit/missing", |_, _| b"\xa1\x67version\x03".to_vec());
}

#[test]
fn row_11_a_signature_that_is_not_the_accounts() {
    let stranger = SigningKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    assert_resigned("rejected 11 signature/wrong", |unsigned, _| sign(&stranger, unsigned));
    assert_resigned("rejected 11 signature/wrong", |unsigned, _| unsigned.with_signature(&[1; 64]));
    assert_resigned("rejected 11 signature/range", |unsigned, _| unsigned.with_signature(&[0; 64]));
}

#[test]
fn row_11_a_signature_with_high_s() {
    for curve in [Curve::K256, Curve::P256] {
        let mut author = Author::new(1, 60);
        let key = SigningKey::from_bytes(curve, &[9; 32]).unwrap();
        author.repository = author.account().clone().with_key(key).open_repository();
        let mut judge = TestJudge::of([author.account()]);
        let sound = author.create();
        let forged = rewritten(&sound, |commit| {
            let object = object(&commit);
            let twin = high_s_twin(curve, *object.sig);
            with_object(commit, &unsigned(&object).with_signature(&twin))
        });
        let refused = Outcome::Rejected(SyncRejection::Signature(SignatureFault::HighS));
        assert_eq!(judge.judge(&forged).outcome, refused);
        assert_eq!(verdict(&refused), "rejected 11 signature/high-s");
        assert!(judge.state.is_empty());
        assert_eq!(judge.verdict(&sound), "first");
    }
}

#[test]
fn row_11_an_account_with_an_unknown_key() {
    let (mut judge, author, sound) = third_commit();
    let key = judge.keys.remove(author.did()).unwrap();
    let before = judge.account(author.did());
    assert_eq!(judge.verdict(&sound), "rejected 11 signature/no-key");
    assert_eq!(judge.account(author.did()), before);
    assert!(SyncRejection::NoKey.may_be_stale_key());
    judge.keys.insert(author.did().to_owned(), key);
    assert_eq!(judge.verdict(&sound), "intact");
}

#[test]
fn row_11_a_stale_key_is_reported_as_such() {
    let (mut judge, author, sound) = third_commit();
    let stale = SigningKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    let stale = CompressedKey::from_did_key(&stale.did_key()).unwrap();
    let fresh = judge.keys.insert(author.did().to_owned(), stale).unwrap();
    let Outcome::Rejected(rejection) = judge.judge(&sound).outcome else { panic!("accepted") };
    assert!(rejection.may_be_stale_key());
    judge.keys.insert(author.did().to_owned(), fresh);
    assert_eq!(judge.verdict(&sound), "intact");
}

#[test]
fn row_12_deprecated_flags() {
    assert_rewritten("rejected 12 event/too-big", |c| frame(Commit { too_big: Some(true), ..c }));
    assert_rewritten("rejected 12 event/rebase", |c| frame(Commit { rebase: Some(true), ..c }));
    let lenient = policy(|policy| {
        policy.accept_too_big = true;
        policy.accept_rebase = true;
    });
    let (_, author, sound) = third_commit();
    let mut judge = TestJudge::new(lenient);
    judge.know(author.account());
    let flagged =
        rewritten(&sound, |c| frame(Commit { too_big: Some(true), rebase: Some(true), ..c }));
    assert_eq!(judge.verdict(&flagged), "first");
}

#[test]
fn row_13_an_event_without_prev_data() {
    let refused = "rejected 13 event/prev-data-missing";
    assert_rewritten(refused, |c| frame(Commit { prev_data: None, ..c }));
    assert_rewritten(refused, |c| frame(Commit { prev_data: None, since: None, ..c }));
    let (_, author, sound) = third_commit();
    let mut judge = TestJudge::of([author.account()]);
    let legacy = rewritten(&sound, |c| frame(Commit { prev_data: None, ..c }));
    assert_eq!(judge.verdict(&legacy), refused, "on the first sighting too");
}

#[test]
fn row_14_a_missed_revision() {
    let (mut judge, mut author, missed) = third_commit();
    let fourth = author.create();
    let stored = judge.account(author.did()).head.unwrap();
    let Outcome::Commit(commit, Chain::Broken(broken)) = judge.judge(&fourth).outcome else {
        panic!("valid, but not chained");
    };
    let since = commit.since.map(|since| since.parse().unwrap());
    assert_eq!(broken, ChainBreak::Since { since, stored: stored.rev });
    assert_eq!((broken.row(), broken.code()), (14, "event/since"));
    let account = judge.account(author.did());
    assert_eq!(account.sync, SyncState::Desynchronized);
    assert_eq!(account.head.unwrap().rev.as_u64(), author.repository.rev().as_u64());
    assert_eq!(judge.verdict(&missed), "ignored 6 event/stale-rev");
    assert_eq!(judge.verdict(&author.create()), "still desynchronized");
    let mended = AccountState { sync: SyncState::Synchronized, ..judge.account(author.did()) };
    judge.state.put(author.did(), mended);
    assert_eq!(judge.verdict(&author.create()), "intact");
}

#[test]
fn row_14_may_be_waived_if_prev_data_matches() {
    let (_, author, sound) = third_commit();
    let mut judge = TestJudge::new(policy(|policy| policy.accept_since_mismatch = true));
    judge.know(author.account());
    let mut author = Author::on_k256(1);
    assert_eq!(judge.verdict(&author.create()), "first");
    assert_eq!(judge.verdict(&author.create()), "intact");
    let other = rewritten(&sound, |c| frame(Commit { since: Some("3mptbypluud2a"), ..c }));
    assert_eq!(judge.verdict(&other), "intact");
}

#[test]
fn row_15_a_missed_tree() {
    let (mut judge, author, _) = third_commit();
    let (mut here, mut there) = (author.clone(), author);
    // Two commits of the same revision, of which only one is seen. (The third commit of the stage was
    // not seen either, and is mended.)
    let path = there.new_path();
    let seen = here.create();
    there.commit(&[
        RecordWrite { action: Action::Create, path },
        RecordWrite { action: Action::Delete, path: there.path(3) },
    ]);
    assert_eq!(here.repository.rev(), there.repository.rev());
    assert_eq!(judge.verdict(&seen), "broken 14 event/since");
    let mended = AccountState { sync: SyncState::Synchronized, ..judge.account(here.did()) };
    judge.state.put(here.did(), mended);
    assert_eq!(judge.verdict(&there.create()), "broken 15 event/prev-data");
    assert_eq!(judge.account(here.did()).sync, SyncState::Desynchronized);
}

#[test]
fn row_16_contradictory_operations() {
    let first = |change: fn(&mut RepoOp<'_>)| {
        move |commit: Commit<'_>| with_ops(commit, |ops| change(&mut ops[0]))
    };
    assert_rewritten("rejected 16 event/path", first(|op| op.path = "no-slash"));
    assert_rewritten("rejected 16 event/path", first(|op| op.path = "app.bsky.feed.like/.."));
    assert_rewritten("rejected 16 event/op", first(|op| op.cid = None));
    assert_rewritten("rejected 16 event/op", first(|op| op.prev = op.cid));
    assert_rewritten("rejected 16 event/op", first(|op| op.action = Action::Update));
    assert_rewritten("rejected 16 event/op", first(|op| op.action = Action::Delete));
    assert_rewritten("rejected 16 event/duplicate-path", |c| with_ops(c, |ops| ops.push(ops[0])));
    assert_rewritten("rejected 16 event/duplicate-path", |c| {
        with_ops(c, |ops| *ops = vec![ops[0]; 50])
    });
}

#[test]
fn row_16_a_missing_record() {
    assert_rewritten("rejected 16 event/record-missing", |c| {
        with_blocks(c, blocks(&c).filter(|(cid, _)| Some(*cid) != c.ops[0].cid))
    });
    let raw = Cid::of(Codec::Raw, b"raw");
    assert_rewritten("rejected 16 record/link", |commit| {
        let car =
            archive(Some(&commit.commit), blocks(&commit).chain([(raw.as_cid_ref(), &b"raw"[..])]));
        with_ops(Commit { car: &car, ..commit }, |ops| ops[0].cid = Some(raw.as_cid_ref()))
    });
}

#[test]
fn row_16_an_invalid_record_under_a_strict_policy() {
    let set = CaseSet::generate(&Spec::default());
    let case = set.cases().iter().find(|case| case.name == "record/event-unsorted").unwrap();
    let frames = corpus::read(&case.bytes).unwrap();
    for (strict_records, last) in [(false, "intact"), (true, "rejected 16 record/cbor")] {
        let mut judge = TestJudge::new(policy(|policy| policy.strict_records = strict_records));
        let key = CompressedKey::from_did_key(&case.signing_key).unwrap();
        judge.keys.insert(case.did.clone(), key);
        assert_eq!([0, 1].map(|at| judge.verdict(frames[at])), ["first", last]);
    }
}

#[test]
fn row_16_an_operation_that_the_signed_tree_contradicts() {
    // A create of a record that is nowhere in the tree.
    assert_rewritten("rejected 16 event/op", |c| {
        with_ops(c, |ops| ops[0].path = "app.bsky.feed.like/3mptbypluud2a")
    });
    // A create of the right path with another record of the slice.
    let (mut judge, mut author, _) = third_commit();
    let paths = [author.new_path(), author.new_path()];
    let sound = author.commit(&paths.map(|path| RecordWrite { action: Action::Create, path }));
    let swapped = rewritten(&sound, |commit| {
        with_ops(commit, |ops| {
            let [a, b] = &mut ops[..] else { panic!("two operations") };
            std::mem::swap(&mut a.cid, &mut b.cid);
        })
    });
    let Outcome::Rejected(SyncRejection::Op { fault, .. }) = judge.judge(&swapped).outcome else {
        panic!("refused for an operation");
    };
    assert_eq!(fault, OpFault::OtherInTree);
    // A delete of a record that is still in the tree.
    let (mut judge, _, sound) = third_commit();
    let forged = rewritten(&sound, |commit| {
        let deleted =
            RepoOp { action: Action::Delete, cid: None, prev: commit.ops[0].cid, ..commit.ops[0] };
        frame(Commit { ops: &[deleted], ..commit })
    });
    let Outcome::Rejected(SyncRejection::Op { fault, .. }) = judge.judge(&forged).outcome else {
        panic!("refused for an operation");
    };
    assert_eq!(fault, OpFault::StillInTree);
}

#[test]
fn row_16_a_proof_that_lacks_a_node() {
    let (_, author, sound) = third_commit();
    let nodes: Vec<Cid> = proof_nodes(&sound);
    assert!(nodes.len() > 1, "a tree of some height");
    for node in nodes {
        let (judge, _, _) = third_commit();
        let forged = rewritten(&sound, |commit| {
            with_blocks(commit, blocks(&commit).filter(|(cid, _)| *cid != node.as_cid_ref()))
        });
        assert_rejected(judge, &author, &forged, &sound, "rejected 16 event/partial-tree");
    }
}

/// The tree nodes in a frame: all blocks except the commit and the records.
fn proof_nodes(frame: &[u8]) -> Vec<Cid> {
    let mut nodes = Vec::new();
    rewritten(frame, |commit| {
        let root = commit.commit.as_cid_ref();
        let is_record = |cid| commit.ops.iter().any(|op| op.cid == Some(cid));
        let found = blocks(&commit).filter(|(cid, _)| *cid != root && !is_record(*cid));
        nodes.extend(found.map(|(cid, _)| cid.to_cid().unwrap()));
        Vec::new()
    });
    nodes
}

#[test]
fn row_17_a_withheld_operation() {
    let (judge, mut author, _) = third_commit();
    let mut judge = judge;
    assert_eq!(judge.verdict(&author.create()), "broken 14 event/since");
    let mended = AccountState { sync: SyncState::Synchronized, ..judge.account(author.did()) };
    judge.state.put(author.did(), mended);
    let writes = [author.new_path(), author.new_path()];
    let sound = author.commit(&writes.map(|path| RecordWrite { action: Action::Create, path }));
    for kept_back in 0..2 {
        let forged = rewritten(&sound, |c| with_ops(c, |ops| _ = ops.remove(kept_back)));
        let before = judge.account(author.did());
        let outcome = judge.judge(&forged).outcome;
        assert!(
            matches!(outcome, Outcome::Rejected(SyncRejection::Inversion { .. })),
            "{outcome:?}"
        );
        assert_eq!(verdict(&outcome), "rejected 17 event/inversion");
        assert_eq!(judge.account(author.did()), before);
    }
    assert_eq!(judge.verdict(&sound), "intact");
}

#[test]
fn row_17_another_starting_tree() {
    let other = Cid::of(Codec::DagCbor, b"another tree");
    assert_rewritten("rejected 17 event/inversion", |c| {
        frame(Commit { prev_data: Some(other), ..c })
    });
    assert_rewritten("rejected 17 event/inversion", |c| with_ops(c, Vec::clear));
}

#[test]
fn row_18_a_time_that_is_not_a_datetime() {
    for time in ["", "yesterday", "2026-02-30T00:00:00Z", "2026-07-01 12:00:00Z"] {
        assert_rewritten("rejected 18 event/time", |commit| frame(Commit { time, ..commit }));
    }
    let (_, author, sound) = third_commit();
    let mut judge = TestJudge::new(policy(|policy| policy.accept_any_time = true));
    judge.know(author.account());
    let untimed = rewritten(&sound, |commit| frame(Commit { time: "yesterday", ..commit }));
    assert_eq!(judge.verdict(&untimed), "first");
}
