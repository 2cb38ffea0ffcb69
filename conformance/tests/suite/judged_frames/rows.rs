//! Each row of the table of checks, with an event that fails there and nowhere before.

use simnet::keys::{Curve, SigningKey};
use simnet::repository::RecordWrite;
use wireproof::atproto::commit::UnsignedCommit;
use wireproof::atproto::event::{Action, Commit, RepoOp};
use wireproof::codec::cid::{Cid, Codec};
use wireproof::crypto::{CompressedKey, KeyCache, SignatureFault};
use wireproof::verify::sync::{
    AccountKey, AccountState, Chain, ChainBreak, Ignored, Judge, MemoryState, OpFault, Outcome,
    Policy, SyncRejection, SyncState,
};

use super::stage::*;

/// An account, its first two commits accepted, and the frame of a third that is sound.
fn stage() -> (Court, Author, Vec<u8>) {
    let mut author = Author::on_k256(1);
    let mut court = Court::of([author.account()]);
    assert_eq!(court.word(&author.create()), "first");
    assert_eq!(court.word(&author.create()), "holds");
    let third = author.create();
    (court, author, third)
}

/// Asserts that a frame gets this verdict, that it changes nothing, and that the sound frame is
/// still accepted after it.
#[track_caller]
fn assert_refused(mut court: Court, author: &Author, forged: &[u8], sound: &[u8], verdict: &str) {
    let before = court.account(author.did());
    assert_eq!(court.word(forged), verdict);
    assert_eq!(court.account(author.did()), before, "a refused event changes nothing");
    assert_eq!(court.word(sound), "holds");
}

/// As [`assert_refused`], of the third frame rewritten.
#[track_caller]
fn assert_rewritten(verdict: &str, rewrite: impl FnOnce(Commit<'_>) -> Vec<u8>) {
    let (court, author, sound) = stage();
    assert_refused(court, &author, &rewritten(&sound, rewrite), &sound, verdict);
}

/// As [`assert_refused`], of the third frame with another commit object, signed again.
#[track_caller]
fn assert_resigned(verdict: &str, change: impl FnOnce(UnsignedCommit<'_>, &SigningKey) -> Vec<u8>) {
    let (court, author, sound) = stage();
    let forged = rewritten(&sound, |commit| {
        with_object(commit, &change(unsigned(&object(&commit)), author.key()))
    });
    assert_refused(court, &author, &forged, &sound, verdict);
}

#[test]
fn row_1_a_frame_that_is_no_message() {
    let (court, author, sound) = stage();
    let cut = &sound[..sound.len() - 1];
    assert_refused(court, &author, cut, &sound, "refused 1 frame/cbor");
    let (court, author, sound) = stage();
    let longer = [&sound[..], &[0]].concat();
    assert_refused(court, &author, &longer, &sound, "refused 1 frame/cbor");
    let (court, author, sound) = stage();
    let empty = b"\xa2\x61t\x67#commit\x62op\x01\xa0";
    assert_refused(court, &author, empty, &sound, "refused 1 frame/field");
}

#[test]
fn row_2_an_account_that_is_no_did() {
    for repo in ["alice.example", "did:plc:", "did:plc:WQ4AAJAMMJTXDOMZ3E23667T", "did:plc:short"] {
        assert_rewritten("refused 2 event/did", |commit| frame(Commit { repo, ..commit }));
    }
}

#[test]
fn row_3_an_event_over_a_bound() {
    let padding = vec![0; 500_000];
    let padded = |commit: Commit<'_>| {
        let raw = Cid::of(Codec::Raw, &padding);
        with_blocks(commit, blocks(&commit).chain([(raw.as_cid_ref(), &padding[..]); 4]))
    };
    assert_rewritten("refused 3 event/limit", padded);
    assert_rewritten("refused 3 event/limit", |commit| {
        with_ops(commit, |ops| *ops = vec![ops[0]; 201])
    });
    let (mut court, author, sound) = stage();
    let mut small = Court::new(policy(|policy| policy.max_record_bytes = 200));
    small.know(author.account());
    assert_eq!(small.word(&sound), "refused 3 record/size");
    let mut small = Court::new(policy(|policy| policy.max_frame_bytes = 200));
    assert_eq!(small.word(&sound), "refused 3 frame/limit");
    assert_eq!(court.word(&sound), "holds");
}

#[test]
fn row_4_an_account_that_is_hosted_elsewhere() {
    let (_, _, sound) = stage();
    let mut judge = Judge::new(Policy::default(), KeyCache::new(0, [7; 16]));
    let mut state = MemoryState::new([8; 16]);
    let elsewhere = |_: &str| AccountKey::OtherHost;
    let judged = judge.judge(&sound, &elsewhere, &mut state, LATER_MICROS).unwrap();
    assert_eq!(judged.outcome, Outcome::Rejected(SyncRejection::Host));
    assert_eq!(word(&judged.outcome), "refused 4 event/host");
    assert!(SyncRejection::Host.may_be_stale_key() && state.is_empty());
}

#[test]
fn row_5_an_account_that_is_not_active_is_ignored() {
    let (mut court, author, sound) = stage();
    let known = court.account(author.did());
    court.state.put(author.did(), AccountState { is_active: false, ..known });
    assert_eq!(court.judge(&sound).outcome, Outcome::Ignored(Ignored::Inactive));
    assert_eq!(court.word(&author.sync()), "ignored 5 event/inactive");
    assert_eq!(court.account(author.did()).head, known.head);
    court.state.put(author.did(), known);
    assert_eq!(court.word(&sound), "holds");
}

#[test]
fn row_6_a_revision_that_is_no_tid() {
    assert_rewritten("refused 6 event/rev-syntax", |c| frame(Commit { rev: "yesterday", ..c }));
    assert_rewritten("refused 6 event/rev-syntax", |c| frame(Commit { since: Some("zzz"), ..c }));
}

#[test]
fn row_6_a_revision_that_was_seen_is_ignored() {
    let mut author = Author::on_k256(1);
    let mut court = Court::of([author.account()]);
    let (first, second) = (author.create(), author.create());
    assert_eq!(court.word(&first), "first");
    assert_eq!(court.word(&second), "holds");
    let known = court.account(author.did());
    for seen in [&first, &second, &author.sync()] {
        assert_eq!(court.word(seen), "ignored 6 event/stale-rev");
    }
    assert_eq!(court.account(author.did()), known);
}

#[test]
fn row_7_a_revision_too_far_ahead() {
    let (mut court, author, sound) = stage();
    let rev_micros = author.repository.rev().micros();
    court.now_micros = rev_micros - 5 * 60_000_000 - 1;
    assert_eq!(court.word(&sound), "refused 7 event/future-rev");
    court.now_micros += 1;
    assert_eq!(court.word(&sound), "holds");
}

#[test]
fn row_8_a_slice_without_its_commit() {
    assert_rewritten("refused 8 car/header", |c| frame(Commit { car: b"\x01\xa0", ..c }));
    assert_rewritten("refused 8 car/truncated", |c| {
        frame(Commit { car: &c.car[..c.car.len() - 1], ..c })
    });
    assert_rewritten("refused 8 event/root", |c| {
        frame(Commit { car: &archive(None, blocks(&c)), ..c })
    });
    assert_rewritten("refused 8 commit/missing-block", |c| {
        with_blocks(c, blocks(&c).filter(|(cid, _)| *cid != c.commit.as_cid_ref()))
    });
    let (court, author, sound) = stage();
    let mut flipped = sound.clone();
    let at = sound.windows(3).position(|window| window == b"sig").unwrap() + 20;
    flipped[at] ^= 1;
    assert_refused(court, &author, &flipped, &sound, "refused 8 car/hash");
}

#[test]
fn row_9_an_event_about_another_commit() {
    let other = Cid::of(Codec::DagCbor, b"another");
    assert_rewritten("refused 9 event/commit-cid", |c| frame(Commit { commit: other, ..c }));
}

#[test]
fn row_10_a_commit_object_that_says_something_else() {
    assert_resigned("refused 10 event/did-mismatch", |unsigned, key| {
        sign(key, UnsignedCommit { did: "did:web:example.com", ..unsigned })
    });
    assert_resigned("refused 10 event/rev-mismatch", |unsigned, key| {
        sign(key, UnsignedCommit { rev: "3mptbypluud2a", ..unsigned })
    });
    let without = |name: &'static [u8], with: &'static [u8]| {
        move |unsigned: UnsignedCommit<'_>, key: &SigningKey| {
            let block = sign(key, unsigned);
            let at = block.windows(name.len()).position(|window| window == name).unwrap();
            [&block[..at], with, &block[at + name.len()..]].concat()
        }
    };
    assert_resigned("refused 10 commit/version", without(b"version\x03", b"version\x02"));
    assert_resigned("refused 10 commit/field", without(b"prev\xf6", b"prev\x01"));
    assert_resigned(
        "refused 10 commit/signature-length",
        without(b"sig\x58\x40", b"sig\x58\x41\x01"),
    );
    assert_resigned("refused 10 commit/missing", |_, _| b"\xa1\x67version\x03".to_vec());
}

#[test]
fn row_11_a_signature_that_is_not_the_accounts() {
    let stranger = SigningKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    assert_resigned("refused 11 signature/wrong", |unsigned, _| sign(&stranger, unsigned));
    assert_resigned("refused 11 signature/wrong", |unsigned, _| unsigned.with_signature(&[1; 64]));
    assert_resigned("refused 11 signature/range", |unsigned, _| unsigned.with_signature(&[0; 64]));
}

#[test]
fn row_11_the_twin_of_a_signature() {
    for curve in [Curve::K256, Curve::P256] {
        let mut author = Author::new(1, 60);
        let key = SigningKey::from_bytes(curve, &[9; 32]).unwrap();
        author.repository = author.account().clone().with_key(key).open_repository();
        let mut court = Court::of([author.account()]);
        let sound = author.create();
        let forged = rewritten(&sound, |commit| {
            let object = object(&commit);
            let twin = high_twin(curve, *object.sig);
            with_object(commit, &unsigned(&object).with_signature(&twin))
        });
        let refused = Outcome::Rejected(SyncRejection::Signature(SignatureFault::HighS));
        assert_eq!(court.judge(&forged).outcome, refused);
        assert_eq!(word(&refused), "refused 11 signature/high-s");
        assert!(court.state.is_empty());
        assert_eq!(court.word(&sound), "first");
    }
}

#[test]
fn row_11_an_account_whose_key_nobody_knows() {
    let (mut court, author, sound) = stage();
    let key = court.keys.remove(author.did()).unwrap();
    let before = court.account(author.did());
    assert_eq!(court.word(&sound), "refused 11 signature/no-key");
    assert_eq!(court.account(author.did()), before);
    assert!(SyncRejection::NoKey.may_be_stale_key());
    court.keys.insert(author.did().to_owned(), key);
    assert_eq!(court.word(&sound), "holds");
}

#[test]
fn row_11_a_key_that_was_changed_is_asked_for_again() {
    let (mut court, author, sound) = stage();
    let stale = SigningKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    let stale = CompressedKey::from_did_key(&stale.did_key()).unwrap();
    let fresh = court.keys.insert(author.did().to_owned(), stale).unwrap();
    let Outcome::Rejected(rejection) = court.judge(&sound).outcome else { panic!("accepted") };
    assert!(rejection.may_be_stale_key());
    court.keys.insert(author.did().to_owned(), fresh);
    assert_eq!(court.word(&sound), "holds");
}

#[test]
fn row_12_what_the_protocol_has_given_up() {
    assert_rewritten("refused 12 event/too-big", |c| frame(Commit { too_big: Some(true), ..c }));
    assert_rewritten("refused 12 event/rebase", |c| frame(Commit { rebase: Some(true), ..c }));
    let lenient = policy(|policy| {
        policy.accept_too_big = true;
        policy.accept_rebase = true;
    });
    let (_, author, sound) = stage();
    let mut court = Court::new(lenient);
    court.know(author.account());
    let flagged =
        rewritten(&sound, |c| frame(Commit { too_big: Some(true), rebase: Some(true), ..c }));
    assert_eq!(court.word(&flagged), "first");
}

#[test]
fn row_13_an_event_that_does_not_say_where_it_started() {
    let refused = "refused 13 event/prev-data-missing";
    assert_rewritten(refused, |c| frame(Commit { prev_data: None, ..c }));
    assert_rewritten(refused, |c| frame(Commit { prev_data: None, since: None, ..c }));
    let (_, author, sound) = stage();
    let mut court = Court::of([author.account()]);
    let legacy = rewritten(&sound, |c| frame(Commit { prev_data: None, ..c }));
    assert_eq!(court.word(&legacy), refused, "on the first sighting too");
}

#[test]
fn row_14_a_revision_that_was_missed() {
    let (mut court, mut author, missed) = stage();
    let fourth = author.create();
    let stored = court.account(author.did()).head.unwrap();
    let Outcome::Commit(commit, Chain::Broken(broken)) = court.judge(&fourth).outcome else {
        panic!("valid, but not chained");
    };
    let since = commit.since.map(|since| since.parse().unwrap());
    assert_eq!(broken, ChainBreak::Since { since, stored: stored.rev });
    assert_eq!((broken.row(), broken.code()), (14, "event/since"));
    let account = court.account(author.did());
    assert_eq!(account.sync, SyncState::Desynchronized);
    assert_eq!(account.head.unwrap().rev.as_u64(), author.repository.rev().as_u64());
    assert_eq!(court.word(&missed), "ignored 6 event/stale-rev");
    assert_eq!(court.word(&author.create()), "unmended");
    let mended = AccountState { sync: SyncState::Synchronized, ..court.account(author.did()) };
    court.state.put(author.did(), mended);
    assert_eq!(court.word(&author.create()), "holds");
}

#[test]
fn row_14_may_be_waived_where_the_trees_chain() {
    let (_, author, sound) = stage();
    let mut court = Court::new(policy(|policy| policy.accept_since_mismatch = true));
    court.know(author.account());
    let mut author = Author::on_k256(1);
    assert_eq!(court.word(&author.create()), "first");
    assert_eq!(court.word(&author.create()), "holds");
    let other = rewritten(&sound, |c| frame(Commit { since: Some("3mptbypluud2a"), ..c }));
    assert_eq!(court.word(&other), "holds");
}

#[test]
fn row_15_a_tree_that_was_missed() {
    let (mut court, author, _) = stage();
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
    assert_eq!(court.word(&seen), "broken 14 event/since");
    let mended = AccountState { sync: SyncState::Synchronized, ..court.account(here.did()) };
    court.state.put(here.did(), mended);
    assert_eq!(court.word(&there.create()), "broken 15 event/prev-data");
    assert_eq!(court.account(here.did()).sync, SyncState::Desynchronized);
}

#[test]
fn row_16_operations_that_cannot_be() {
    let first = |change: fn(&mut RepoOp<'_>)| {
        move |commit: Commit<'_>| with_ops(commit, |ops| change(&mut ops[0]))
    };
    assert_rewritten("refused 16 event/path", first(|op| op.path = "no-slash"));
    assert_rewritten("refused 16 event/path", first(|op| op.path = "app.bsky.feed.like/.."));
    assert_rewritten("refused 16 event/op", first(|op| op.cid = None));
    assert_rewritten("refused 16 event/op", first(|op| op.prev = op.cid));
    assert_rewritten("refused 16 event/op", first(|op| op.action = Action::Update));
    assert_rewritten("refused 16 event/op", first(|op| op.action = Action::Delete));
    assert_rewritten("refused 16 event/duplicate-path", |c| with_ops(c, |ops| ops.push(ops[0])));
    assert_rewritten("refused 16 event/duplicate-path", |c| {
        with_ops(c, |ops| *ops = vec![ops[0]; 50])
    });
}

#[test]
fn row_16_a_record_that_is_not_there() {
    assert_rewritten("refused 16 event/record-missing", |c| {
        with_blocks(c, blocks(&c).filter(|(cid, _)| Some(*cid) != c.ops[0].cid))
    });
    let raw = Cid::of(Codec::Raw, b"raw");
    assert_rewritten("refused 16 record/link", |commit| {
        let car =
            archive(Some(&commit.commit), blocks(&commit).chain([(raw.as_cid_ref(), &b"raw"[..])]));
        with_ops(Commit { car: &car, ..commit }, |ops| ops[0].cid = Some(raw.as_cid_ref()))
    });
}

#[test]
fn row_16_an_operation_that_the_signed_tree_does_not_show() {
    // A create of a record that is nowhere in the tree.
    assert_rewritten("refused 16 event/op", |c| {
        with_ops(c, |ops| ops[0].path = "app.bsky.feed.like/3mptbypluud2a")
    });
    // A create of the right path with another record of the slice.
    let (mut court, mut author, _) = stage();
    let paths = [author.new_path(), author.new_path()];
    let sound = author.commit(&paths.map(|path| RecordWrite { action: Action::Create, path }));
    let swapped = rewritten(&sound, |commit| {
        with_ops(commit, |ops| {
            let [a, b] = &mut ops[..] else { panic!("two operations") };
            std::mem::swap(&mut a.cid, &mut b.cid);
        })
    });
    let Outcome::Rejected(SyncRejection::Op { fault, .. }) = court.judge(&swapped).outcome else {
        panic!("refused for an operation");
    };
    assert_eq!(fault, OpFault::OtherInTree);
    // A delete of what is still there.
    let (mut court, _, sound) = stage();
    let forged = rewritten(&sound, |commit| {
        let deleted =
            RepoOp { action: Action::Delete, cid: None, prev: commit.ops[0].cid, ..commit.ops[0] };
        frame(Commit { ops: &[deleted], ..commit })
    });
    let Outcome::Rejected(SyncRejection::Op { fault, .. }) = court.judge(&forged).outcome else {
        panic!("refused for an operation");
    };
    assert_eq!(fault, OpFault::StillInTree);
}

#[test]
fn row_16_a_proof_without_one_of_its_nodes() {
    let (_, author, sound) = stage();
    let nodes: Vec<Cid> = proof_nodes(&sound);
    assert!(nodes.len() > 1, "a tree of some height");
    for node in nodes {
        let (court, _, _) = stage();
        let forged = rewritten(&sound, |commit| {
            with_blocks(commit, blocks(&commit).filter(|(cid, _)| *cid != node.as_cid_ref()))
        });
        assert_refused(court, &author, &forged, &sound, "refused 16 event/partial-tree");
    }
}

/// The tree nodes in a frame: what is neither the commit nor a record.
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
fn row_17_an_operation_that_is_kept_back() {
    let (court, mut author, _) = stage();
    let mut court = court;
    assert_eq!(court.word(&author.create()), "broken 14 event/since");
    let mended = AccountState { sync: SyncState::Synchronized, ..court.account(author.did()) };
    court.state.put(author.did(), mended);
    let writes = [author.new_path(), author.new_path()];
    let sound = author.commit(&writes.map(|path| RecordWrite { action: Action::Create, path }));
    for kept_back in 0..2 {
        let forged = rewritten(&sound, |c| with_ops(c, |ops| _ = ops.remove(kept_back)));
        let before = court.account(author.did());
        let outcome = court.judge(&forged).outcome;
        assert!(
            matches!(outcome, Outcome::Rejected(SyncRejection::Inversion { .. })),
            "{outcome:?}"
        );
        assert_eq!(word(&outcome), "refused 17 event/inversion");
        assert_eq!(court.account(author.did()), before);
    }
    assert_eq!(court.word(&sound), "holds");
}

#[test]
fn row_17_another_tree_to_start_from() {
    let other = Cid::of(Codec::DagCbor, b"another tree");
    assert_rewritten("refused 17 event/inversion", |c| {
        frame(Commit { prev_data: Some(other), ..c })
    });
    assert_rewritten("refused 17 event/inversion", |c| with_ops(c, Vec::clear));
}

#[test]
fn row_18_a_time_that_is_none() {
    for time in ["", "yesterday", "2026-02-30T00:00:00Z", "2026-07-01 12:00:00Z"] {
        assert_rewritten("refused 18 event/time", |commit| frame(Commit { time, ..commit }));
    }
    let (_, author, sound) = stage();
    let mut court = Court::new(policy(|policy| policy.accept_any_time = true));
    court.know(author.account());
    let untimed = rewritten(&sound, |commit| frame(Commit { time: "yesterday", ..commit }));
    assert_eq!(court.word(&untimed), "first");
}
