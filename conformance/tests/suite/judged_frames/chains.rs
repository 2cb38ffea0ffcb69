//! Chains of commits: first commits, `#sync`, lenient options, and frames that must not change any state.

use std::collections::HashSet;

use atproto::commit::UnsignedCommit;
use atproto::event::{Action, Commit, RepoOp};
use atproto::mst::Tree;
use codec::cid::{Cid, Codec};
use codec::{CidRef, car};
use simnet::keys::{Curve, SigningKey};
use simnet::repository::RecordWrite;
use verify::sync::{AccountState, Chain, OpFault, Outcome, Policy, SyncRejection, SyncState};

use super::fixture::*;

/// A verifier with the account's key that has accepted its first commit.
fn after_first_commit(author: &mut Author, policy: Policy) -> TestJudge {
    let mut judge = TestJudge::new(policy);
    judge.know(author.account());
    assert_eq!(judge.verdict(&author.create()), "first");
    judge
}

#[test]
fn long_chains_of_creates_updates_and_deletes_are_accepted() {
    for number in 1..=4 {
        let mut author = Author::new(number, 150);
        let mut judge = after_first_commit(&mut author, Policy::default());
        for step in 0..60 {
            let frame = match step % 4 {
                0 => author.create(),
                1 => author.delete((step * 7) % 40),
                2 => author.commit(&[RecordWrite { action: Action::Update, path: author.path(0) }]),
                _ => {
                    let paths = [author.new_path(), author.new_path(), author.path(step)];
                    let actions = [Action::Create, Action::Create, Action::Delete];
                    author.commit(
                        &[0, 1, 2].map(|at| RecordWrite { action: actions[at], path: paths[at] }),
                    )
                }
            };
            assert_eq!(judge.verdict(&frame), "intact", "step {step} of account {number}");
        }
        let head = judge.account(author.did()).head.unwrap();
        assert_eq!(head.data, author.repository.tree().root());
    }
}

#[test]
fn a_commit_of_nothing_is_valid() {
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, Policy::default());
    assert_eq!(judge.verdict(&author.commit(&[])), "intact");
    let bare = rewritten(&author.commit(&[]), |commit| {
        with_blocks(commit, blocks(&commit).filter(|(cid, _)| *cid == commit.commit.as_cid_ref()))
    });
    assert_eq!(judge.verdict(&bare), "intact", "without a node of the tree too");
}

#[test]
fn any_number_of_unlinked_blocks_is_accepted() {
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, Policy::default());
    let padding: Vec<[u8; 4]> = (0u32..30_000).map(u32::to_be_bytes).collect();
    let cids: Vec<Cid> = padding.iter().map(|data| Cid::of(Codec::Raw, data)).collect();
    let padded = |commit: Commit<'_>| {
        let padding = cids.iter().zip(&padding).map(|(cid, data)| (cid.as_cid_ref(), &data[..]));
        with_blocks(commit, padding.chain(blocks(&commit)))
    };
    assert_eq!(judge.verdict(&rewritten(&author.create(), padded)), "intact");
    assert_eq!(judge.verdict(&rewritten(&author.delete(7), padded)), "intact");
    let frame = rewritten(&author.create(), padded);
    let words: Vec<String> =
        judge.judge_batch(&[&frame]).iter().map(|judged| verdict(&judged.outcome)).collect();
    assert_eq!(words, ["intact"]);
}

/// The first commit of an account: one record, no `since`, and this `prevData`.
fn first_commit(author: &Author, prev_data: Option<Cid>) -> Vec<u8> {
    let (path, record) = ("app.bsky.feed.like/3mptbypluud2a", b"\xa1\x61a\x01");
    let record_cid = Cid::of(Codec::DagCbor, record);
    let mut tree = Tree::empty();
    tree.insert(path.as_bytes(), record_cid).unwrap();
    let data = tree.root();
    let rev = author.repository.rev().to_string();
    let object =
        sign(author.key(), UnsignedCommit { did: author.did(), rev: &rev, data, prev: None });
    let commit = Cid::of(Codec::DagCbor, &object);
    let nodes = tree.collect_blocks();
    let nodes = nodes.iter().map(|(cid, node)| (cid.as_cid_ref(), &node[..]));
    let others = [(commit.as_cid_ref(), &object[..]), (record_cid.as_cid_ref(), &record[..])];
    let car = archive(Some(&commit), others.into_iter().chain(nodes));
    let cid = Some(record_cid.as_cid_ref());
    frame(Commit {
        seq: 1,
        repo: author.did(),
        commit,
        rev: &rev,
        since: None,
        car: &car,
        root: None,
        blocks: &[],
        ops: &[RepoOp { action: Action::Create, path, cid, prev: None, record: None }],
        prev_data,
        time: TIME,
        blobs: None,
        rebase: None,
        too_big: None,
    })
}

#[test]
fn the_first_commit_of_an_account_starts_from_the_empty_tree() {
    let author = Author::on_k256(1);
    let empty = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
    for prev_data in [None, Some(empty)] {
        let mut judge = TestJudge::of([author.account()]);
        assert_eq!(judge.verdict(&first_commit(&author, prev_data)), "first");
    }
    let mut judge = TestJudge::of([author.account()]);
    let elsewhere = Cid::of(Codec::DagCbor, b"elsewhere");
    let refused = "rejected 17 event/inversion";
    assert_eq!(judge.verdict(&first_commit(&author, Some(elsewhere))), refused);
    // A later commit may not pass for the first by leaving out where it started.
    let mut author = author;
    let later = rewritten(&author.create(), |commit| {
        frame(Commit { since: None, prev_data: None, ..commit })
    });
    assert_eq!(judge.verdict(&later), refused);
    assert!(judge.state.is_empty());
}

#[test]
fn a_sync_with_the_known_tree_changes_the_revision_only() {
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, Policy::default());
    let data = judge.account(author.did()).head.unwrap().data;
    author.commit(&[]);
    assert_eq!(judge.verdict(&author.sync()), "sync unchanged");
    let account = judge.account(author.did());
    let head = account.head.unwrap();
    assert_eq!((head.data, account.sync), (data, SyncState::Synchronized));
    assert_eq!(head.rev.as_u64(), author.repository.rev().as_u64());
    assert_eq!(judge.verdict(&author.create()), "intact");
}

#[test]
fn a_sync_with_another_tree_desynchronizes() {
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, Policy::default());
    author.create();
    assert_eq!(judge.verdict(&author.sync()), "sync desynchronized");
    assert_eq!(judge.account(author.did()).sync, SyncState::Desynchronized);
    assert_eq!(judge.verdict(&author.create()), "still desynchronized");
}

#[test]
fn a_sync_may_be_the_first_event_of_an_account() {
    let mut author = Author::on_k256(1);
    let mut judge = TestJudge::of([author.account()]);
    assert_eq!(judge.verdict(&author.sync()), "sync first");
    assert_eq!(judge.verdict(&author.create()), "intact");
}

#[test]
fn a_sync_is_rejected_for_the_same_rules_as_a_commit() {
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, Policy::default());
    author.create();
    let known = judge.account(author.did());
    let head = author.repository.head().clone();
    let rev = author.repository.rev().to_string();
    let own = [(head.cid.as_cid_ref(), &head.data[..])];
    let car = archive(Some(&head.cid), own);
    let mut verdict = |frame: &[u8]| judge.verdict(frame);
    assert_eq!(verdict(&sync_frame("nobody", &rev, &car)), "rejected 2 event/did");
    assert_eq!(verdict(&sync_frame(author.did(), "now", &car)), "rejected 6 event/rev-syntax");
    let future = "bzzzzzzzzzzzz";
    assert_eq!(verdict(&sync_frame(author.did(), future, &car)), "rejected 7 event/future-rev");
    let rootless = archive(None, own);
    assert_eq!(verdict(&sync_frame(author.did(), &rev, &rootless)), "rejected 8 event/root");
    let empty = archive(Some(&head.cid), []);
    let missing = "rejected 8 commit/missing-block";
    assert_eq!(verdict(&sync_frame(author.did(), &rev, &empty)), missing);
    let other = author.account().tid(LATER_MICROS).to_string();
    let mismatch = "rejected 10 event/rev-mismatch";
    assert_eq!(verdict(&sync_frame(author.did(), &other, &car)), mismatch);
    let unsigned = UnsignedCommit {
        did: author.did(),
        rev: &rev,
        data: author.repository.tree().root(),
        prev: None,
    };
    let stranger = SigningKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    let forged = sign(&stranger, unsigned);
    let root = Cid::of(Codec::DagCbor, &forged);
    let car = archive(Some(&root), [(root.as_cid_ref(), &forged[..])]);
    let wrong = "rejected 11 signature/wrong";
    assert_eq!(verdict(&sync_frame(author.did(), &rev, &car)), wrong);
    assert_eq!(judge.account(author.did()), known);
    assert_eq!(judge.verdict(&author.sync()), "sync desynchronized");
}

#[test]
fn a_sync_may_exceed_the_limit_of_the_lexicon_unless_the_policy_forbids_it() {
    let author = Author::on_k256(1);
    let head = author.repository.head();
    let padding = vec![0; 20_000];
    let raw = Cid::of(Codec::Raw, &padding);
    let both = [(head.cid.as_cid_ref(), &head.data[..]), (raw.as_cid_ref(), &padding[..])];
    let car = archive(Some(&head.cid), both);
    let long = sync_frame(author.did(), &author.repository.rev().to_string(), &car);
    assert_eq!(TestJudge::of([author.account()]).verdict(&long), "sync first");
    let mut strict = TestJudge::new(policy(|policy| policy.max_sync_blocks_bytes = 10_000));
    strict.know(author.account());
    assert_eq!(strict.verdict(&long), "rejected 3 event/limit");
}

#[test]
fn each_leniency_accepts_what_it_names_and_reports_it() {
    let lenient = policy(|policy| {
        policy.accept_missing_prev_data = true;
        policy.accept_ops_without_prev = true;
        policy.accept_failed_inversion = true;
    });
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, lenient);
    let delete = author.delete(5);
    let without_prev = rewritten(&delete, |c| with_ops(c, |ops| ops[0].prev = None));
    assert_eq!(judge.verdict(&without_prev), "unproved OpsWithoutPrev");
    let legacy = rewritten(&author.delete(5), |commit| {
        with_ops(Commit { prev_data: None, ..commit }, |ops| ops[0].prev = None)
    });
    assert_eq!(judge.verdict(&legacy), "unproved MissingPrevData");
    let paths = [author.new_path(), author.new_path()];
    let pair = author.commit(&paths.map(|path| RecordWrite { action: Action::Create, path }));
    let kept_back = rewritten(&pair, |c| with_ops(c, |ops| ops.truncate(1)));
    assert_eq!(judge.verdict(&kept_back), "unproved FailedInversion");
    assert_eq!(judge.verdict(&author.create()), "intact");
}

#[test]
fn events_from_before_sync_1_1_are_accepted_under_their_policy_and_stay_unproved() {
    let mut author = Author::on_k256(1);
    let mut without_deletes = Policy::before_sync_1_1();
    without_deletes.accept_unproved_deletes = false;
    let policies = [Policy::default(), without_deletes, Policy::before_sync_1_1()];
    let mut judges = policies.map(|policy| after_first_commit(&mut author.clone(), policy));
    author.create();
    let mut partial = 0;
    for place in (0..40).rev() {
        let known = author.repository.export_car();
        let known = car::read(&known, &car::Options::default()).unwrap();
        let known: HashSet<CidRef<'_>> = known.blocks.iter().map(|block| block.cid).collect();
        let legacy = rewritten(&author.delete(place), |commit| {
            let changed: Vec<_> = blocks(&commit).filter(|(cid, _)| !known.contains(cid)).collect();
            let bare = with_ops(Commit { prev_data: None, ..commit }, |ops| ops[0].prev = None);
            rewritten(&bare, |commit| with_blocks(commit, changed))
        });
        let [strict, without_deletes, legacy] = judges.each_mut().map(|j| j.verdict(&legacy));
        assert_eq!(strict, "rejected 16 event/op", "place {place}");
        partial += usize::from(without_deletes == "rejected 16 event/partial-tree");
        assert_eq!(legacy, "unproved MissingPrevData", "place {place}");
    }
    assert!(partial > 0, "a delete leads to a node that did not change");
    let legacy = &mut judges[2];
    let too_big = rewritten(&author.create(), |commit| {
        frame(Commit { prev_data: None, ops: &[], too_big: Some(true), ..commit })
    });
    assert_eq!(legacy.verdict(&too_big), "unproved MissingPrevData");
    let forged = rewritten(&author.create(), |commit| {
        let object = sign(Author::new(9, 1).key(), unsigned(&object(&commit)));
        with_object(Commit { prev_data: None, ..commit }, &object)
    });
    assert_eq!(legacy.verdict(&forged), "rejected 11 signature/wrong");
}

#[test]
fn no_leniency_accepts_what_the_signed_tree_contradicts() {
    let lenient = policy(|policy| {
        policy.accept_missing_prev_data = true;
        policy.accept_ops_without_prev = true;
        policy.accept_failed_inversion = true;
        policy.accept_since_mismatch = true;
    });
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, lenient);
    let create = author.create();
    let known = judge.account(author.did());
    let elsewhere = |commit: Commit<'_>| {
        with_ops(commit, |ops| ops[0].path = "app.bsky.feed.like/3mptbypluud2a")
    };
    let delete = |commit: Commit<'_>| {
        with_ops(commit, |ops| {
            (ops[0].prev, ops[0].cid, ops[0].action) = (None, None, Action::Delete);
        })
    };
    for without in [false, true] {
        let base = rewritten(&create, |commit| {
            let prev_data = commit.prev_data.filter(|_| !without);
            frame(Commit { prev_data, ..commit })
        });
        assert_eq!(judge.verdict(&rewritten(&base, elsewhere)), "rejected 16 event/op");
        assert_eq!(judge.verdict(&rewritten(&base, delete)), "rejected 16 event/op");
    }
    assert_eq!(judge.account(author.did()), known);
}

#[test]
fn no_leniency_accepts_an_operation_that_names_another_record_than_the_signed_tree() {
    let lenient = policy(|policy| {
        policy.accept_missing_prev_data = true;
        policy.accept_failed_inversion = true;
    });
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, lenient);
    let paths = [author.new_path(), author.new_path()];
    let sound = author.commit(&paths.map(|path| RecordWrite { action: Action::Create, path }));
    for without in [false, true] {
        let base = rewritten(&sound, |commit| {
            let prev_data = commit.prev_data.filter(|_| !without);
            frame(Commit { prev_data, ..commit })
        });
        let swapped = rewritten(&base, |commit| {
            with_ops(commit, |ops| (ops[0].cid, ops[1].cid) = (ops[1].cid, ops[0].cid))
        });
        let Outcome::Rejected(SyncRejection::Op { path, fault }) = judge.judge(&swapped).outcome
        else {
            panic!("rejected for an operation");
        };
        assert_eq!(fault, OpFault::OtherInTree);
        assert!(paths.iter().any(|of| of.to_key() == path), "{path}");
    }
    assert_eq!(judge.verdict(&sound), "intact");
}

#[test]
fn a_signature_alone_proves_no_operation_and_refuses_what_is_not_signed_or_not_hashed() {
    let mut author = Author::on_k256(1);
    let mut full = after_first_commit(&mut author.clone(), Policy::default());
    let mut judge = after_first_commit(&mut author, Policy::signature_only());
    let known = judge.account(author.did());
    let sound = author.create();
    let invented = rewritten(&sound, |commit| {
        with_ops(commit, |ops| ops[0].path = "app.bsky.feed.like/3mptbypluud2a")
    });
    let left_out = rewritten(&sound, |commit| frame(Commit { ops: &[], ..commit }));
    let without_origin = rewritten(&sound, |c| frame(Commit { prev_data: None, ..c }));
    for (accepted, rejection) in [
        (&sound, None),
        (&invented, Some("rejected 16 event/op")),
        (&left_out, Some("rejected 17 event/inversion")),
        (&without_origin, Some("rejected 13 event/prev-data-missing")),
    ] {
        judge.state.put(author.did(), known);
        assert_eq!(judge.verdict(accepted), "unproved UnprovedOperations");
        if let Some(rejection) = rejection {
            assert_eq!(full.verdict(accepted), rejection);
        }
    }
    judge.state.put(author.did(), known);
    let forged = rewritten(&sound, |commit| {
        let object = sign(Author::new(9, 1).key(), unsigned(&object(&commit)));
        with_object(commit, &object)
    });
    assert_eq!(judge.verdict(&forged), "rejected 11 signature/wrong");
    let other = Cid::of(Codec::DagCbor, b"\xa0");
    let without_record =
        rewritten(&sound, |commit| with_ops(commit, |ops| ops[0].cid = Some(other.as_cid_ref())));
    assert_eq!(judge.verdict(&without_record), "rejected 16 event/record-missing");
    assert_eq!(judge.account(author.did()), known);
    let after_gap = author.create();
    assert_eq!(judge.verdict(&after_gap), "broken 14 event/since");
}

#[test]
fn a_failed_inversion_is_never_accepted_with_a_broken_chain() {
    let lenient = policy(|policy| policy.accept_failed_inversion = true);
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, lenient);
    author.create();
    let forged = rewritten(&author.create(), |commit| {
        frame(Commit { prev_data: Some(Cid::of(Codec::DagCbor, b"elsewhere")), ..commit })
    });
    assert_eq!(judge.verdict(&forged), "rejected 17 event/inversion");
}

#[test]
fn an_accepted_commit_includes_its_records() {
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, Policy::default());
    let frame = author.create();
    let judged = judge.judge(&frame);
    let Outcome::Commit(commit, Chain::Intact) = judged.outcome else { panic!("accepted") };
    let record = commit.ops[0].record.unwrap();
    assert_eq!(record.value.unwrap().get("$type").unwrap().as_text(), Some("app.bsky.feed.like"));
    assert_eq!(Cid::of(Codec::DagCbor, record.data).as_cid_ref(), record.cid);
}

#[test]
fn a_flipped_bit_can_only_change_unsigned_fields() {
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, Policy::default());
    let known = judge.account(author.did());
    let sound = author.create();
    let mut accepted = 0;
    for at in 0..sound.len() {
        let mut flipped = sound.clone();
        flipped[at] ^= 1 << (at % 8);
        judge.state.put(author.did(), known);
        let judged = judge.judge(&flipped);
        let Outcome::Commit(commit, chain) = judged.outcome else { continue };
        accepted += 1;
        let is_same = |original: Commit<'_>| {
            assert_eq!((commit.repo, commit.rev), (original.repo, original.rev), "byte {at}");
            assert_eq!(commit.commit, original.commit, "byte {at}");
            assert_eq!(chain == Chain::Intact, commit.since == original.since, "byte {at}");
            assert_eq!(commit.prev_data, original.prev_data, "byte {at}");
            let what = |op: &RepoOp<'_>| format!("{:?} {} {:?}", op.action, op.path, op.cid);
            assert!(commit.ops.iter().map(what).eq(original.ops.iter().map(what)), "byte {at}");
            Vec::new()
        };
        rewritten(&sound, is_same);
    }
    assert!(accepted < 120, "{accepted}: the fields seq, since, time, blobs and the flags");
}

#[test]
fn an_account_in_resync_stays_in_resync() {
    let mut author = Author::on_k256(1);
    let mut judge = after_first_commit(&mut author, Policy::default());
    let known = judge.account(author.did());
    judge.state.put(author.did(), AccountState { sync: SyncState::InProgress, ..known });
    assert_eq!(judge.verdict(&author.create()), "still desynchronized");
    assert_eq!(judge.account(author.did()).sync, SyncState::InProgress);
}
