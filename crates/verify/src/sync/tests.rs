//! The computations of a batch ahead of its verdicts, its stored states, and the boundaries of single checks.

use std::convert::Infallible;

use atproto::event::{Account, Action, Commit, Decoder, Event, Identity, RepoOp};
use atproto::mst::key_height;
use atproto::repo::RepositoryWriter;
use atproto::syntax::{Did, Tid};
use codec::cbor::{self, Arena, Encoder, Map, Value};
use codec::{Cid, cid::Codec};
use crypto::{CompressedKey, Curve, KeyCache, SecretKey};

use super::*;

const DIDS: [&str; 3] =
    ["did:plc:wq4aajammjtxdomz3e23667t", "did:plc:ewvi7nxzyoun6zhxrhs64oiz", "did:web:example.com"];
const TIME: &str = "2026-01-01T00:00:00Z";
const NOW_MICROS: u64 = 1_700_000_100_000_000;

fn secret() -> SecretKey {
    SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap()
}

fn keys(_: &str) -> Option<CompressedKey> {
    Some(*secret().public_key().as_compressed())
}

fn judge(change: impl FnOnce(&mut Policy)) -> Judge {
    let mut policy = Policy::default();
    change(&mut policy);
    Judge::new(policy, KeyCache::new(1 << 20, [1; 16]))
}

/// The writer of one account's events.
struct Author {
    repository: RepositoryWriter,
    number: u64,
}

impl Author {
    fn of(did: &str) -> Self {
        Self { repository: RepositoryWriter::new(Did::parse(did).unwrap()), number: 0 }
    }

    fn path(number: u64) -> String {
        format!("app.test.note/{}", Tid::new(number, 0))
    }

    fn commit(&mut self) -> atproto::repo::WrittenCommit {
        self.number += 1;
        let rev = Tid::new(1_700_000_000_000_000 + self.number, 0);
        self.repository.commit(rev, |message| secret().sign(message)).unwrap()
    }

    /// The frame of a commit that creates a record.
    fn create(&mut self) -> Vec<u8> {
        let mut record = Encoder::new();
        record
            .map(2)
            .text("$type")
            .text("app.test.note")
            .text("number")
            .integer(self.number as i64);
        self.repository.create(&Self::path(self.number), record.as_bytes()).unwrap();
        self.commit().to_frame(1, TIME).unwrap()
    }

    /// The frame of a commit that deletes a record.
    fn delete(&mut self, number: u64) -> Vec<u8> {
        self.repository.delete(&Self::path(number)).unwrap();
        self.commit().to_frame(1, TIME).unwrap()
    }

    /// The frame of a `#sync`.
    fn sync(&mut self) -> Vec<u8> {
        self.commit().to_sync_frame(1, TIME)
    }
}

fn rewritten(frame: &[u8], change: impl FnOnce(&mut Commit<'_>)) -> Vec<u8> {
    let mut decoder = Decoder::new(Default::default());
    let Event::Commit(mut commit) = decoder.decode(frame).unwrap() else { panic!("a #commit") };
    change(&mut commit);
    Event::Commit(commit).to_frame()
}

fn with_op(frame: &[u8], change: impl FnOnce(&mut RepoOp<'_>)) -> Vec<u8> {
    let mut decoder = Decoder::new(Default::default());
    let Event::Commit(commit) = decoder.decode(frame).unwrap() else { panic!("a #commit") };
    let mut op = commit.ops[0];
    change(&mut op);
    Event::Commit(Commit { ops: &[op], ..commit }).to_frame()
}

/// The outcome of a frame for an account in this state.
fn outcome_in(account: AccountState, frame: &[u8]) -> String {
    let (mut judge, mut state) = (judge(|_| ()), MemoryState::new([1; 16]));
    state.put(DIDS[0], account);
    let judged = judge.judge(frame, &keys, &mut state, NOW_MICROS).unwrap();
    match judged.outcome {
        Outcome::Commit(_, chain) => format!("{chain:?}"),
        Outcome::Sync(_, effect) => format!("{effect:?}"),
        other => format!("{other:?}"),
    }
}

fn fault_of(judge: &mut Judge, frame: &[u8]) -> Option<OpFault> {
    let judged = judge.judge(frame, &keys, &mut MemoryState::new([1; 16]), NOW_MICROS).unwrap();
    match judged.outcome {
        Outcome::Rejected(SyncRejection::Op { fault, .. }) => Some(fault),
        _ => None,
    }
}

#[test]
fn a_batch_computes_what_its_verdicts_need_and_nothing_for_other_events() {
    let mut author = Author::of(DIDS[0]);
    let (first, second) = (author.create(), author.create());
    let without_origin = rewritten(&author.create(), |commit| commit.prev_data = None);
    let without_prev = with_op(&author.delete(0), |op| op.prev = None);
    let inactive = Author::of(DIDS[1]).create();
    let frames = [&first[..], &second, &without_origin, &without_prev, &inactive];
    let mut judge = judge(|policy| {
        policy.accept_missing_prev_data = true;
        policy.accept_ops_without_prev = true;
    });
    let mut state = MemoryState::new([1; 16]);
    state.put(DIDS[1], AccountState { is_active: false, ..AccountState::UNKNOWN });
    let precomputed = judge.precompute(&frames, &keys, &mut state, NOW_MICROS);
    assert_eq!(precomputed, ["osi", "osi", "os", "os", ""]);
    let mut of_signatures = Judge::new(Policy::signature_only(), KeyCache::new(1 << 20, [1; 16]));
    let precomputed = of_signatures.precompute(&frames, &keys, &mut state, NOW_MICROS);
    assert_eq!(precomputed, ["os", "os", "os", "os", ""], "operations are not undone");
}

#[test]
fn a_batch_stores_the_accounts_of_accepted_events_only() {
    #[derive(Default)]
    struct Stored(Vec<Vec<String>>);
    impl ChainState for Stored {
        type Error = Infallible;
        fn load_many(&mut self, _: &[&str], _: &mut [AccountState]) -> Result<(), Infallible> {
            Ok(())
        }
        fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), Infallible> {
            self.0.push(changed.iter().map(|(did, _)| (*did).to_owned()).collect());
            Ok(())
        }
    }
    let (mut judge, mut stored) = (judge(|_| ()), Stored::default());
    let sound = Author::of(DIDS[0]).create();
    let forged = with_op(&Author::of(DIDS[1]).create(), |op| op.cid = None);
    judge.judge_batch(&[&forged[..], b"no frame"], &keys, &mut stored, NOW_MICROS).unwrap();
    assert!(stored.0.is_empty());
    judge.judge_batch(&[&forged[..], &sound], &keys, &mut stored, NOW_MICROS).unwrap();
    assert_eq!(stored.0, [[DIDS[0]]]);
}

#[test]
fn accepted_events_name_the_key_that_verified_them_and_others_none() {
    let (mut author, mut other) = (Author::of(DIDS[0]), Author::of(DIDS[1]));
    let create = author.create();
    let sync = author.sync();
    let keyless = other.create();
    let forged = with_op(&author.create(), |op| op.prev = op.cid);
    let frames = [&create[..], &sync, &keyless, &forged];
    let key_of = |did: &str| keys(did).filter(|_| did == DIDS[0]);
    let (mut batch, mut single) = (judge(|_| ()), judge(|_| ()));
    let (mut state, mut of_single) = (MemoryState::new([1; 16]), MemoryState::new([1; 16]));
    let Ok(judged) = batch.judge_batch(&frames, &key_of, &mut state, NOW_MICROS);
    let found: Vec<_> = judged.iter().map(|judged| judged.key).collect();
    assert_eq!(found, [keys(""), keys(""), None, None]);
    for (frame, key) in frames.iter().zip(found) {
        let Ok(judged) = single.judge(frame, &key_of, &mut of_single, NOW_MICROS);
        assert_eq!(judged.key, key);
    }
}

#[test]
fn an_operation_is_rejected_for_the_field_that_contradicts_its_action() {
    let mut author = Author::of(DIDS[0]);
    let (create, delete) = (author.create(), author.delete(0));
    let mut judge = judge(|_| ());
    let mut fault =
        |frame: &[u8], change: fn(&mut RepoOp<'_>)| fault_of(&mut judge, &with_op(frame, change));
    assert_eq!(fault(&create, |op| op.cid = None), Some(OpFault::CidMissing));
    assert_eq!(fault(&create, |op| op.prev = op.cid), Some(OpFault::PrevForbidden));
    assert_eq!(fault(&create, |op| op.action = Action::Update), Some(OpFault::PrevMissing));
    assert_eq!(fault(&create, |op| op.action = Action::Delete), Some(OpFault::CidForbidden));
    assert_eq!(fault(&delete, |op| op.prev = None), Some(OpFault::PrevMissing));
}

#[test]
fn operations_need_not_name_what_they_replaced_only_where_the_tree_before_is_missing_too() {
    let mut author = Author::of(DIDS[0]);
    author.create();
    author.create();
    let without_prev = with_op(&author.delete(0), |op| op.prev = None);
    let legacy = rewritten(&without_prev, |commit| commit.prev_data = None);
    let mut lenient = judge(|policy| policy.accept_missing_prev_data = true);
    assert_eq!(fault_of(&mut lenient, &without_prev), Some(OpFault::PrevMissing));
    assert_eq!(fault_of(&mut lenient, &legacy), None);
    assert_eq!(fault_of(&mut judge(|_| ()), &legacy), Some(OpFault::PrevMissing));
}

/// A frame as a relay writes it that leaves out the nulls of operations, spells `prev` otherwise, and has a null
/// instead of `prevData`.
fn reserialized(frame: &[u8]) -> Vec<u8> {
    let (_, payload_at) = atproto::event::peek(frame).unwrap();
    let arena = Arena::new();
    let payload = cbor::decode(&frame[payload_at..], &arena).unwrap();
    let fields = payload.as_map().unwrap().iter().map(|(key, value)| match (*key, value) {
        ("ops", Value::Array(ops)) => {
            let ops = ops.iter().map(|op| reserialized_op(op, &arena));
            (*key, Value::Array(arena.alloc_slice_fill_iter(ops)))
        }
        ("prevData", _) => (*key, Value::Null),
        (key, value) => (key, *value),
    });
    let payload = cbor::encode(&map_of(fields, &arena)).unwrap();
    [&frame[..payload_at], &payload].concat()
}

fn reserialized_op<'a>(op: &Value<'a>, arena: &'a Arena) -> Value<'a> {
    let fields = op.as_map().unwrap().iter().filter(|(_, value)| *value != Value::Null);
    let fields = fields.map(|(key, value)| match *key {
        "prev" => ("prev_data", Value::Null),
        key => (key, *value),
    });
    map_of(fields, arena)
}

fn map_of<'a>(fields: impl Iterator<Item = (&'a str, Value<'a>)>, arena: &'a Arena) -> Value<'a> {
    let fields: Vec<_> = fields.collect();
    Value::Map(Map::from_entries(arena.alloc_slice_copy(&fields)).unwrap())
}

#[test]
fn commits_that_a_relay_wrote_anew_without_what_proves_them_are_unproved_and_never_proved() {
    let mut author = Author::of(DIDS[0]);
    let first = author.create();
    let later = [author.create(), author.delete(1)].map(|frame| reserialized(&frame));
    let outcomes = |policy: Policy| {
        let mut judge = Judge::new(policy, KeyCache::new(1 << 20, [1; 16]));
        let mut state = MemoryState::new([1; 16]);
        let mut outcome = |frame: &[u8]| {
            let judged = judge.judge(frame, &keys, &mut state, NOW_MICROS).unwrap();
            match judged.outcome {
                Outcome::Commit(_, chain) => Ok(chain),
                Outcome::Rejected(rejection) => Err(rejection.code()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(outcome(&first), Ok(Chain::FirstSeen));
        later.each_ref().map(|frame| outcome(frame))
    };
    let unproved = Ok(Chain::Unproved(Leniency::MissingPrevData));
    assert_eq!(outcomes(Policy::before_sync_1_1()), [unproved; 2]);
    assert!(outcomes(Policy::signature_only()).iter().all(Result::is_ok));
    assert!(
        outcomes(Policy::default())
            .iter()
            .all(|outcome| { matches!(outcome, Err("event/prev-data-missing" | "event/op")) })
    );
}

#[test]
fn an_account_without_a_head_stays_desynchronized() {
    let desynchronized = AccountState { sync: SyncState::Desynchronized, ..AccountState::UNKNOWN };
    let mut author = Author::of(DIDS[0]);
    let (create, sync) = (author.create(), author.sync());
    assert_eq!(outcome_in(desynchronized, &create), "StillDesynchronized");
    assert_eq!(outcome_in(desynchronized, &sync), "Desynchronized");
    assert_eq!(outcome_in(AccountState::default(), &create), "FirstSeen");
    assert_eq!(outcome_in(AccountState::default(), &sync), "FirstSeen");
}

#[test]
fn a_stored_head_ahead_of_the_clock_is_void() {
    let cid = Cid::of(Codec::DagCbor, b"ahead");
    let window_micros = Policy::default().future_window_micros;
    let at = |micros| {
        let head = Head { rev: Tid::new(micros, 0), data: cid, commit: cid };
        AccountState { head: Some(head), ..AccountState::UNKNOWN }
    };
    let frame = Author::of(DIDS[0]).create();
    let ahead = NOW_MICROS + window_micros + 1;
    assert_eq!(outcome_in(at(ahead), &frame), "StillDesynchronized");
    assert!(outcome_in(at(ahead - 1), &frame).contains("Stale"));
}

#[test]
fn a_sync_may_be_as_long_as_its_limit() {
    let commit = Author::of(DIDS[0]).sync();
    let mut decoder = Decoder::new(Default::default());
    let Event::Sync(sync) = decoder.decode(&commit).unwrap() else { panic!("a #sync") };
    let len = sync.car.len();
    for (limit, is_accepted) in [(len, true), (len - 1, false)] {
        let mut judge = judge(|policy| policy.max_sync_blocks_bytes = limit);
        let mut state = MemoryState::default();
        let judged = judge.judge(&commit, &keys, &mut state, NOW_MICROS).unwrap();
        assert_eq!(judged.outcome.is_accepted(), is_accepted);
    }
}

#[test]
fn each_outcome_has_a_stable_code_and_a_verdict() {
    let [mut chained, mut synced, mut inactive] = DIDS.map(Author::of);
    let first = chained.create();
    chained.create();
    let (after_a_gap, next) = (chained.create(), chained.create());
    let (first_sync, unchanged) = (synced.sync(), synced.sync());
    let unproved = rewritten(&synced.create(), |commit| commit.prev_data = None);
    synced.create();
    let changed = synced.sync();
    let account = |seq| Account { seq, did: DIDS[0], time: TIME, active: true, status: None };
    let [unsigned, rejected] = [1, 0].map(|seq| Event::Account(account(seq)).to_frame());
    let mut judge = judge(|policy| policy.accept_missing_prev_data = true);
    let mut state = MemoryState::new([1; 16]);
    state.put(DIDS[2], AccountState { is_active: false, ..AccountState::UNKNOWN });
    for (frame, verdict, code) in [
        (&first, "verified", "verified"),
        (&first, "ignored", "event/stale-rev"),
        (&after_a_gap, "verified", "verified/broken"),
        (&next, "verified", "verified/unmended"),
        (&first_sync, "verified", "verified"),
        (&unchanged, "verified", "verified"),
        (&unproved, "verified", "verified/unproved"),
        (&changed, "verified", "verified/broken"),
        (&inactive.create(), "ignored", "event/inactive"),
        (&unsigned, "unchecked", "unchecked"),
        (&rejected, "refused", "event/seq"),
    ] {
        let Ok(judged) = judge.judge(frame, &keys, &mut state, NOW_MICROS);
        let found = (judged.outcome.verdict(), judged.outcome.code());
        assert_eq!(found, (verdict, code), "{:?}", judged.outcome);
    }
}

#[test]
fn a_judge_keeps_the_policy_it_was_built_with() {
    assert_eq!(Judge::default().policy(), &Policy::default());
    let lenient = Policy { accept_any_time: true, ..Policy::default() };
    assert_eq!(Judge::builder().policy(lenient).seed([1; 16]).build().policy(), &lenient);
}

#[test]
fn only_a_missing_or_wrong_key_or_host_may_be_stale() {
    use crypto::SignatureFault;
    for stale in [SyncRejection::NoKey, SyncRejection::Host] {
        assert!(stale.may_be_stale_key());
    }
    assert!(SyncRejection::Signature(SignatureFault::Mismatch).may_be_stale_key());
    assert!(SyncRejection::Signature(SignatureFault::Key).may_be_stale_key());
    for other in [SyncRejection::TooBig, SyncRejection::Signature(SignatureFault::HighS)] {
        assert!(!other.may_be_stale_key());
    }
}

#[test]
fn a_break_of_the_chain_names_both_ends() {
    let stored = Tid::new(1_700_000_000_000_000, 0);
    let text = |since| ChainBreak::Since { since, stored }.to_string();
    assert!(text(None).starts_with("the event follows revision none, "), "{}", text(None));
    let since = Tid::new(1, 0);
    assert!(text(Some(since)).starts_with(&format!("the event follows revision {since}, ")));
}

#[test]
fn a_sequence_number_is_from_one_to_the_greatest_exact_double() {
    let frame = Author::of(DIDS[0]).create();
    let code = |frame: &[u8]| {
        let (mut judge, mut state) = (judge(|_| ()), MemoryState::default());
        match judge.judge(frame, &keys, &mut state, NOW_MICROS).unwrap().outcome {
            Outcome::Rejected(rejection) => rejection.code(),
            _ => "",
        }
    };
    let greatest = (1 << 53) - 1;
    for (seq, expected) in
        [(1, ""), (greatest, ""), (0, "event/seq"), (-1, "event/seq"), (greatest + 1, "event/seq")]
    {
        let (did, time) = (DIDS[0], TIME);
        let account = Account { seq, did, time, active: true, status: None };
        let frames = [
            rewritten(&frame, |commit| commit.seq = seq),
            Event::Account(account).to_frame(),
            Event::Identity(Identity { seq, did, time, handle: None }).to_frame(),
        ];
        assert_eq!(frames.map(|frame| code(&frame)), [expected; 3], "{seq}");
    }
}

/// A path whose key has this height in trees, after other paths in order.
fn path_of_height(height: u8, prefix: char) -> String {
    let paths = (0..).map(|number| format!("app.test.note/{prefix}{number}"));
    let mut paths = paths.filter(|path| key_height(path.as_bytes()) == height);
    paths.next().expect("one of the paths has it")
}

#[test]
fn a_proof_without_the_node_that_leads_to_the_tree_before_is_partial() {
    let (mut author, record) = (Author::of(DIDS[0]), b"\xa1\x65$type\x6dapp.test.note");
    author.repository.create(&path_of_height(0, 'a'), record).unwrap();
    let first = author.commit().to_frame(1, TIME).unwrap();
    // Its key is above all others: the tree before is under a node without a key, which undoing has to read.
    author.repository.create(&path_of_height(2, 'b'), record).unwrap();
    let written = author.commit();
    let second = written.to_frame(2, TIME).unwrap();
    let mut decoder = Decoder::new(Default::default());
    let Ok(Event::Commit(commit)) = decoder.decode(&second) else { panic!("a commit") };
    let is_bare = |data: &[u8]| data.starts_with(b"\xa2\x61e\x80\x61l\xd8");
    let blocks = commit.blocks.iter().filter(|block| !is_bare(block.data));
    assert_eq!(blocks.clone().count() + 1, commit.blocks.len(), "one node without a key");
    let mut car = codec::car::Writer::new(Vec::new(), &[commit.commit]).unwrap();
    for block in blocks {
        car.block(&block.cid.to_cid().unwrap(), block.data).unwrap();
    }
    let car = car.into_inner();
    let lacking = Event::Commit(Commit { car: &car, ..commit }).to_frame();
    let (mut judge, mut state) = (judge(|_| {}), MemoryState::default());
    let mut code_of = |frame: &[u8]| {
        let Ok(judged) = judge.judge(frame, &keys, &mut state, NOW_MICROS);
        judged.outcome.code()
    };
    assert_eq!(code_of(&first), "verified");
    assert_eq!(code_of(&lacking), "event/partial-tree");
    assert_eq!(code_of(&second), "verified");
}
