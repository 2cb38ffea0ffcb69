//! Chains as they go on: first commits, `#sync`, leniencies, and frames that must not move anything.

use simnet::keys::{Curve, SigningKey};
use simnet::repository::RecordWrite;
use wireproof::atproto::commit::UnsignedCommit;
use wireproof::atproto::event::{Action, Commit, RepoOp};
use wireproof::atproto::mst::Tree;
use wireproof::codec::cid::{Cid, Codec};
use wireproof::verify::sync::{AccountState, Chain, Outcome, Policy, SyncState};

use super::stage::*;

/// A court that knows the account, and has accepted its first commit.
fn started(author: &mut Author, policy: Policy) -> Court {
    let mut court = Court::new(policy);
    court.know(author.account());
    assert_eq!(court.word(&author.create()), "first");
    court
}

#[test]
fn creates_updates_and_deletes_go_on_and_on() {
    for number in 1..=4 {
        let mut author = Author::new(number, 150);
        let mut court = started(&mut author, Policy::default());
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
            assert_eq!(court.word(&frame), "holds", "step {step} of account {number}");
        }
        let head = court.account(author.did()).head.unwrap();
        assert_eq!(head.data, author.repository.tree().root());
    }
}

#[test]
fn a_commit_of_nothing_is_valid() {
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, Policy::default());
    assert_eq!(court.word(&author.commit(&[])), "holds");
    let bare = rewritten(&author.commit(&[]), |commit| {
        with_blocks(commit, blocks(&commit).filter(|(cid, _)| *cid == commit.commit.as_cid_ref()))
    });
    assert_eq!(court.word(&bare), "holds", "without a node of the tree too");
}

#[test]
fn blocks_that_nothing_links_to_are_passed_by_however_many() {
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, Policy::default());
    let padding: Vec<[u8; 4]> = (0u32..30_000).map(u32::to_be_bytes).collect();
    let cids: Vec<Cid> = padding.iter().map(|data| Cid::of(Codec::Raw, data)).collect();
    let padded = |commit: Commit<'_>| {
        let padding = cids.iter().zip(&padding).map(|(cid, data)| (cid.as_cid_ref(), &data[..]));
        with_blocks(commit, padding.chain(blocks(&commit)))
    };
    assert_eq!(court.word(&rewritten(&author.create(), padded)), "holds");
    assert_eq!(court.word(&rewritten(&author.delete(7), padded)), "holds");
    let frame = rewritten(&author.create(), padded);
    let words: Vec<String> =
        court.judge_batch(&[&frame]).iter().map(|judged| word(&judged.outcome)).collect();
    assert_eq!(words, ["holds"]);
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
fn the_first_commit_of_all_starts_at_the_empty_tree() {
    let author = Author::on_k256(1);
    let empty = Cid::of(Codec::DagCbor, b"\xa2\x61e\x80\x61l\xf6");
    for prev_data in [None, Some(empty)] {
        let mut court = Court::of([author.account()]);
        assert_eq!(court.word(&first_commit(&author, prev_data)), "first");
    }
    let mut court = Court::of([author.account()]);
    let elsewhere = Cid::of(Codec::DagCbor, b"elsewhere");
    let refused = "refused 17 event/inversion";
    assert_eq!(court.word(&first_commit(&author, Some(elsewhere))), refused);
    // A later commit may not pass for the first by leaving out where it started.
    let mut author = author;
    let later = rewritten(&author.create(), |commit| {
        frame(Commit { since: None, prev_data: None, ..commit })
    });
    assert_eq!(court.word(&later), refused);
    assert!(court.state.is_empty());
}

#[test]
fn a_sync_with_the_known_tree_changes_the_revision_only() {
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, Policy::default());
    let data = court.account(author.did()).head.unwrap().data;
    author.commit(&[]);
    assert_eq!(court.word(&author.sync()), "sync unchanged");
    let account = court.account(author.did());
    let head = account.head.unwrap();
    assert_eq!((head.data, account.sync), (data, SyncState::Synchronized));
    assert_eq!(head.rev.as_u64(), author.repository.rev().as_u64());
    assert_eq!(court.word(&author.create()), "holds");
}

#[test]
fn a_sync_with_another_tree_desynchronizes() {
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, Policy::default());
    author.create();
    assert_eq!(court.word(&author.sync()), "sync desynchronized");
    assert_eq!(court.account(author.did()).sync, SyncState::Desynchronized);
    assert_eq!(court.word(&author.create()), "unmended");
}

#[test]
fn a_sync_may_be_the_first_that_is_heard_of_an_account() {
    let mut author = Author::on_k256(1);
    let mut court = Court::of([author.account()]);
    assert_eq!(court.word(&author.sync()), "sync first");
    assert_eq!(court.word(&author.create()), "holds");
}

#[test]
fn a_sync_is_refused_as_a_commit_is() {
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, Policy::default());
    author.create();
    let known = court.account(author.did());
    let head = author.repository.head().clone();
    let rev = author.repository.rev().to_string();
    let own = [(head.cid.as_cid_ref(), &head.data[..])];
    let car = archive(Some(&head.cid), own);
    let mut verdict = |frame: &[u8]| court.word(frame);
    assert_eq!(verdict(&sync_frame("nobody", &rev, &car)), "refused 2 event/did");
    assert_eq!(verdict(&sync_frame(author.did(), "now", &car)), "refused 6 event/rev-syntax");
    let future = "bzzzzzzzzzzzz";
    assert_eq!(verdict(&sync_frame(author.did(), future, &car)), "refused 7 event/future-rev");
    let rootless = archive(None, own);
    assert_eq!(verdict(&sync_frame(author.did(), &rev, &rootless)), "refused 8 event/root");
    let empty = archive(Some(&head.cid), []);
    let missing = "refused 8 commit/missing-block";
    assert_eq!(verdict(&sync_frame(author.did(), &rev, &empty)), missing);
    let other = author.account().tid(LATER_MICROS).to_string();
    let mismatch = "refused 10 event/rev-mismatch";
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
    let wrong = "refused 11 signature/wrong";
    assert_eq!(verdict(&sync_frame(author.did(), &rev, &car)), wrong);
    assert_eq!(court.account(author.did()), known);
    assert_eq!(court.word(&author.sync()), "sync desynchronized");
}

#[test]
fn a_sync_may_be_longer_than_the_lexicon_says_unless_the_policy_says_otherwise() {
    let author = Author::on_k256(1);
    let head = author.repository.head();
    let padding = vec![0; 20_000];
    let raw = Cid::of(Codec::Raw, &padding);
    let both = [(head.cid.as_cid_ref(), &head.data[..]), (raw.as_cid_ref(), &padding[..])];
    let car = archive(Some(&head.cid), both);
    let long = sync_frame(author.did(), &author.repository.rev().to_string(), &car);
    assert_eq!(Court::of([author.account()]).word(&long), "sync first");
    let mut strict = Court::new(policy(|policy| policy.max_sync_blocks_bytes = 10_000));
    strict.know(author.account());
    assert_eq!(strict.word(&long), "refused 3 event/limit");
}

#[test]
fn each_leniency_takes_what_it_names_and_says_so() {
    let lenient = policy(|policy| {
        policy.accept_missing_prev_data = true;
        policy.accept_ops_without_prev = true;
        policy.accept_failed_inversion = true;
    });
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, lenient);
    let delete = author.delete(5);
    let without_prev = rewritten(&delete, |c| with_ops(c, |ops| ops[0].prev = None));
    assert_eq!(court.word(&without_prev), "unproved OpsWithoutPrev");
    let legacy = rewritten(&author.delete(5), |commit| {
        with_ops(Commit { prev_data: None, ..commit }, |ops| ops[0].prev = None)
    });
    assert_eq!(court.word(&legacy), "unproved MissingPrevData");
    let paths = [author.new_path(), author.new_path()];
    let pair = author.commit(&paths.map(|path| RecordWrite { action: Action::Create, path }));
    let kept_back = rewritten(&pair, |c| with_ops(c, |ops| ops.truncate(1)));
    assert_eq!(court.word(&kept_back), "unproved FailedInversion");
    assert_eq!(court.word(&author.create()), "holds");
}

#[test]
fn no_leniency_takes_what_the_signed_tree_contradicts() {
    let lenient = policy(|policy| {
        policy.accept_missing_prev_data = true;
        policy.accept_ops_without_prev = true;
        policy.accept_failed_inversion = true;
        policy.accept_since_mismatch = true;
    });
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, lenient);
    let create = author.create();
    let known = court.account(author.did());
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
        assert_eq!(court.word(&rewritten(&base, elsewhere)), "refused 16 event/op");
        assert_eq!(court.word(&rewritten(&base, delete)), "refused 16 event/op");
    }
    assert_eq!(court.account(author.did()), known);
}

#[test]
fn a_failed_inversion_is_never_taken_where_the_chain_is_broken_too() {
    let lenient = policy(|policy| policy.accept_failed_inversion = true);
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, lenient);
    author.create();
    let forged = rewritten(&author.create(), |commit| {
        frame(Commit { prev_data: Some(Cid::of(Codec::DagCbor, b"elsewhere")), ..commit })
    });
    assert_eq!(court.word(&forged), "refused 17 event/inversion");
}

#[test]
fn an_accepted_commit_hands_out_its_records() {
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, Policy::default());
    let frame = author.create();
    let judged = court.judge(&frame);
    let Outcome::Commit(commit, Chain::Intact) = judged.outcome else { panic!("accepted") };
    let record = commit.ops[0].record.unwrap();
    assert_eq!(record.value.unwrap().get("$type").unwrap().as_text(), Some("app.bsky.feed.like"));
    assert_eq!(Cid::of(Codec::DagCbor, record.data).as_cid_ref(), record.cid);
}

#[test]
fn what_nobody_signed_is_all_that_a_flipped_bit_can_change() {
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, Policy::default());
    let known = court.account(author.did());
    let sound = author.create();
    let mut accepted = 0;
    for at in 0..sound.len() {
        let mut flipped = sound.clone();
        flipped[at] ^= 1 << (at % 8);
        court.state.put(author.did(), known);
        let judged = court.judge(&flipped);
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
fn an_account_that_is_being_mended_stays_so() {
    let mut author = Author::on_k256(1);
    let mut court = started(&mut author, Policy::default());
    let known = court.account(author.did());
    court.state.put(author.did(), AccountState { sync: SyncState::InProgress, ..known });
    assert_eq!(court.word(&author.create()), "unmended");
    assert_eq!(court.account(author.did()).sync, SyncState::InProgress);
}
