use codec::car::{CarFault, HashProof, Writer};
use codec::cbor::{Encoder, ItemKind, Reason};
use codec::cid::Codec;
use codec::{Cid, car};
use proptest::prelude::*;

use super::decoder::HASHED_BLOCKS;
use super::*;

const DID: &str = "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa";
const REV: &str = "3jqfcqzm3fo2j";
const TIME: &str = "2026-07-04T00:00:00.000Z";

fn record(n: u8) -> (Cid, Vec<u8>) {
    let mut record = Encoder::new();
    record.map(2).text("n").integer(i64::from(n)).text("$type").text("com.example.record");
    let record = record.into_bytes();
    (Cid::of(Codec::DagCbor, &record), record)
}

fn slice(blocks: &[(Cid, Vec<u8>)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &[blocks[0].0]).unwrap();
    for (cid, data) in blocks {
        writer.block(cid, data).unwrap();
    }
    writer.into_inner()
}

/// A commit event without blocks and operations.
fn bare_commit(commit: Cid, car: &[u8]) -> Commit<'_> {
    Commit {
        seq: 7,
        repo: DID,
        commit,
        rev: REV,
        since: None,
        car,
        root: None,
        blocks: &[],
        ops: &[],
        prev_data: None,
        time: TIME,
        blobs: Some(&[]),
        rebase: Some(false),
        too_big: Some(false),
    }
}

fn op(action: Action, path: &str, cid: Option<Cid>) -> (Action, &str, Option<Cid>) {
    (action, path, cid)
}

/// The frame of a commit that creates `count` records.
fn frame_of(count: u8) -> Vec<u8> {
    let blocks: Vec<_> = (0..=count).map(record).collect();
    let paths: Vec<String> = (0..count).map(|n| format!("com.example.record/{n}")).collect();
    let ops: Vec<_> = paths
        .iter()
        .zip(&blocks[1..])
        .map(|(p, (cid, _))| op(Action::Create, p, Some(*cid)))
        .collect();
    frame_with(&slice(&blocks), blocks[0].0, &ops)
}

fn frame_with(car: &[u8], commit: Cid, ops: &[(Action, &str, Option<Cid>)]) -> Vec<u8> {
    let ops: Vec<RepoOp<'_>> = ops
        .iter()
        .map(|(action, path, cid)| RepoOp {
            action: *action,
            path,
            cid: cid.as_ref().map(Cid::as_cid_ref),
            prev: None,
            record: None,
        })
        .collect();
    Event::Commit(Commit { ops: &ops, ..bare_commit(commit, car) }).to_frame()
}

fn decode_error(frame: &[u8]) -> FrameError {
    Decoder::new(Options::default()).decode(frame).map(drop).unwrap_err()
}

#[test]
fn a_commit_is_decoded_with_each_operation_beside_its_record() {
    let frame = frame_of(3);
    let mut decoder = Decoder::new(Options::default());
    let Event::Commit(commit) = decoder.decode(&frame).unwrap() else { panic!("a commit") };
    assert_eq!((commit.seq, commit.repo, commit.rev, commit.time), (7, DID, REV, TIME));
    assert_eq!(commit.root.and_then(CidRef::to_cid), Some(commit.commit));
    assert_eq!((commit.blocks.len(), commit.ops.len()), (4, 3));
    for (n, op) in (1..).zip(commit.ops) {
        let block = op.record.expect("created records come along");
        assert_eq!(block.proof, HashProof::Checked);
        assert_eq!(block.value.unwrap().get("n").and_then(|v| v.as_integer()), Some(n));
        assert_eq!(op.path, format!("com.example.record/{}", n - 1));
    }
    assert_eq!(Event::Commit(commit).to_frame(), frame);
}

#[test]
fn each_block_of_a_batch_is_hashed_once_and_none_where_hashes_are_trusted() {
    let frames: Vec<Vec<u8>> = [1, 9, 0, 60].map(frame_of).into();
    let headers = frames.iter().map(|frame| ParsedHeader::read(frame).ok());
    let frames: Vec<Frame<'_>> =
        frames.iter().zip(headers).map(|(frame, header)| Frame::new(frame, header)).collect();
    for (trust_hashes, expected) in [(false, 2 + 10 + 1 + 61), (true, 0)] {
        let mut decoder = Decoder::new(Options { trust_hashes, ..Options::default() });
        let before = HASHED_BLOCKS.get();
        assert!(decoder.decode_batch(&frames).iter().all(Result::is_ok));
        assert_eq!(HASHED_BLOCKS.get() - before, expected);
    }
}

#[test]
fn many_operations_find_their_records_as_few_do() {
    for count in [1, 15, 16, 17, 100, 199] {
        let frame = frame_of(count);
        let mut decoder = Decoder::new(Options::default());
        let Event::Commit(commit) = decoder.decode(&frame).unwrap() else { panic!("a commit") };
        assert!(commit.ops.iter().all(|op| op.record.map(|b| b.cid) == op.cid));
    }
}

#[test]
fn a_delete_and_an_absent_record_have_no_block() {
    let blocks = [record(0)];
    let ops = [op(Action::Delete, "a/b", None), op(Action::Update, "a/c", Some(record(9).0))];
    let frame = frame_with(&slice(&blocks), blocks[0].0, &ops);
    let mut decoder = Decoder::new(Options::default());
    let Event::Commit(commit) = decoder.decode(&frame).unwrap() else { panic!("a commit") };
    assert!(commit.ops.iter().all(|op| op.record.is_none()));
    assert_eq!(
        commit.ops.iter().map(|op| op.action.as_str()).collect::<Vec<_>>(),
        ["delete", "update"]
    );
}

#[test]
fn every_kind_of_event_is_written_and_read_back() {
    let car = slice(&[record(1)]);
    let unknown =
        Unknown { header: Header { op: 1, kind: Some("#labels") }, payload: b"\xa1\x61x\x01" };
    let events = [
        Event::Sync(Sync {
            seq: 1,
            did: DID,
            car: &car,
            root: None,
            blocks: &[],
            rev: REV,
            time: TIME,
        }),
        Event::Identity(Identity { seq: 2, did: DID, time: TIME, handle: Some("a.test") }),
        Event::Identity(Identity { seq: 2, did: DID, time: TIME, handle: None }),
        Event::Account(Account {
            seq: 3,
            did: DID,
            time: TIME,
            active: false,
            status: Some("deleted"),
        }),
        Event::Account(Account { seq: 3, did: DID, time: TIME, active: true, status: None }),
        Event::Info(Info { name: "OutdatedCursor", message: Some("older than the window") }),
        Event::Error(ErrorFrame { error: "FutureCursor", message: None }),
        Event::Unknown(unknown),
        Event::Unknown(Unknown { header: Header { op: 2, kind: None }, payload: b"\xa0" }),
    ];
    for event in events {
        let frame = event.to_frame();
        let mut decoder = Decoder::new(Options::default());
        let read = decoder.decode(&frame).unwrap();
        assert_eq!((read.kind(), read.seq()), (event.kind(), event.seq()));
        assert_eq!(read.to_frame(), frame);
        let (header, _) = peek(&frame).unwrap();
        assert_eq!(header.kind, event.kind());
    }
}

#[test]
fn deprecated_fields_may_be_absent_and_unknown_ones_are_ignored() {
    let (cid, data) = record(0);
    let car = slice(&[(cid, data)]);
    let bare = Commit { blobs: None, rebase: None, too_big: None, ..bare_commit(cid, &car) };
    let frame = Event::Commit(bare).to_frame();
    assert!(Decoder::new(Options::default()).decode(&frame).is_ok());

    let mut payload = Encoder::new();
    payload.map(4).text("did").text(DID).text("seq").integer(1).text("time").text(TIME);
    payload.text("tomorrow").array(1).null();
    let frame = [b"\xa2\x61t\x69#identity\x62op\x01", payload.as_bytes()].concat();
    assert!(Decoder::new(Options::default()).decode(&frame).is_ok());
}

/// The frame of a `#commit` whose operations lack `cid`, with this `prevData` and without the other optional fields.
fn commit_without_cids(ops: &[Action], prev_data: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let (cid, data) = record(0);
    let mut payload = Encoder::new();
    payload.map(9).text("ops").array(ops.len());
    for action in ops {
        payload.map(2).text("path").text("a.b.c/d").text("action").text(action.as_str());
    }
    payload.text("rev").text(REV).text("seq").integer(1).text("repo").text(DID);
    payload
        .text("time")
        .text(TIME)
        .text("since")
        .null()
        .text("blocks")
        .bytes(&slice(&[(cid, data)]));
    payload.text("commit").link(cid.as_cid_ref()).text("prevData");
    prev_data(&mut payload);
    [b"\xa2\x61t\x67#commit\x62op\x01", payload.as_bytes()].concat()
}

#[test]
fn a_delete_may_lack_the_cid_that_is_null_and_other_operations_may_not() {
    let none = |payload: &mut Encoder| _ = payload.null();
    let frame = commit_without_cids(&[Action::Delete, Action::Delete], none);
    let mut decoder = Decoder::new(Options::default());
    let Event::Commit(commit) = decoder.decode(&frame).unwrap() else { panic!("a commit") };
    assert!(commit.ops.iter().all(|op| op.action == Action::Delete && op.cid.is_none()));
    for action in [Action::Create, Action::Update] {
        let frame = commit_without_cids(&[Action::Delete, action], none);
        assert_eq!(decode_error(&frame).fault, FrameFault::Missing("cid"), "{action:?}");
    }
}

/// The payload of a commit with all deprecated fields; the function writes `blobs`.
fn with_deprecated(write_blobs: impl FnOnce(&mut Encoder)) -> Encoder {
    let mut payload = Encoder::new();
    let (cid, data) = record(0);
    payload.map(11).text("ops").array(0).text("rev").text(REV).text("seq").integer(1);
    payload.text("repo").text(DID).text("time").text(TIME).text("blobs");
    write_blobs(&mut payload);
    payload.text("since").null().text("blocks").bytes(&slice(&[(cid, data)]));
    payload.text("commit").link(cid.as_cid_ref()).text("rebase").null().text("tooBig").null();
    payload
}

#[test]
fn what_the_deprecated_list_of_blobs_has_is_ignored() {
    let cid = Cid::of(Codec::Raw, b"blob");
    let text = cid.to_string();
    let forms: [&dyn Fn(&mut Encoder); 6] = [
        &|payload| _ = payload.array(1).text(&text),
        &|payload| _ = payload.array(2).link(cid.as_cid_ref()).text(&text),
        &|payload| _ = payload.array(1).array(1).null(),
        &|payload| _ = payload.text(&text),
        &|payload| _ = payload.integer(7),
        &|payload| _ = payload.null(),
    ];
    let mut decoder = Decoder::new(Options::default());
    let mut blobs = |write: &dyn Fn(&mut Encoder)| {
        let payload = with_deprecated(write);
        let frame = [b"\xa2\x61t\x67#commit\x62op\x01", payload.as_bytes()].concat();
        let Event::Commit(commit) = decoder.decode(&frame).unwrap() else { panic!("a commit") };
        commit.blobs.map(<[_]>::len)
    };
    for write in forms {
        assert_eq!(blobs(write), None);
    }
    assert_eq!(blobs(&|payload| _ = payload.array(1).link(cid.as_cid_ref())), Some(1));
}

#[test]
fn the_null_of_an_optional_field_is_its_absence_and_a_required_field_has_none() {
    let decoded = |kind: &[u8], payload: &Encoder| {
        let frame = [b"\xa2\x61t", kind, b"\x62op\x01", payload.as_bytes()].concat();
        let mut decoder = Decoder::new(Options::default());
        decoder.decode(&frame).map(|event| event.to_frame())
    };
    let with_prev_data = |write: fn(&mut Encoder)| commit_without_cids(&[], write);
    let frame = with_prev_data(|payload| _ = payload.null());
    let mut decoder = Decoder::new(Options::default());
    let Event::Commit(commit) = decoder.decode(&frame).unwrap() else { panic!("a commit") };
    assert_eq!((commit.prev_data, commit.since), (None, None));
    let number = with_prev_data(|payload| _ = payload.integer(1));
    assert!(matches!(decode_error(&number).fault, FrameFault::Cbor(Reason::Expected(_))));
    let raw = with_prev_data(|payload| _ = payload.link(Cid::of(Codec::Raw, b"raw").as_cid_ref()));
    assert_eq!(decode_error(&raw).fault, FrameFault::Field("prevData"));

    let deprecated = with_deprecated(|payload| _ = payload.null());
    let read = decoded(b"\x67#commit", &deprecated).unwrap();
    let Event::Commit(commit) = decoder.decode(&read).unwrap() else { panic!("a commit") };
    assert_eq!((commit.blobs, commit.rebase, commit.too_big), (None, None, None));

    let mut identity = Encoder::new();
    identity.map(4).text("did").text(DID).text("seq").integer(2).text("time").text(TIME);
    identity.text("handle").null();
    let expected = Event::Identity(Identity { seq: 2, did: DID, time: TIME, handle: None });
    assert_eq!(decoded(b"\x69#identity", &identity), Ok(expected.to_frame()));

    let mut account = Encoder::new();
    account.map(5).text("did").text(DID).text("seq").integer(3).text("time").text(TIME);
    account.text("active").boolean(true).text("status").null();
    let expected = Account { seq: 3, did: DID, time: TIME, active: true, status: None };
    assert_eq!(decoded(b"\x68#account", &account), Ok(Event::Account(expected).to_frame()));

    let mut info = Encoder::new();
    info.map(2).text("name").text("OutdatedCursor").text("message").null();
    let expected = Event::Info(Info { name: "OutdatedCursor", message: None });
    assert_eq!(decoded(b"\x65#info", &info), Ok(expected.to_frame()));
    let mut nameless = Encoder::new();
    nameless.map(1).text("name").null();
    let error = decoded(b"\x65#info", &nameless).unwrap_err();
    assert!(matches!(error.fault, FrameFault::Cbor(Reason::Expected(_))), "{error}");
}

#[test]
fn missing_fields_are_named() {
    type Write = for<'o> fn(&'o mut Encoder) -> &'o mut Encoder;
    let fields: [(&str, Write); 4] = [
        ("did", |out| out.text(DID)),
        ("seq", |out| out.integer(1)),
        ("time", |out| out.text(TIME)),
        ("active", |out| out.boolean(true)),
    ];
    for (left_out, _) in fields {
        let mut payload = Encoder::new();
        payload.map(fields.len() - 1);
        for (name, write) in fields.iter().filter(|(name, _)| *name != left_out) {
            write(payload.text(name));
        }
        let frame = [b"\xa2\x61t\x68#account\x62op\x01", payload.as_bytes()].concat();
        assert_eq!(
            decode_error(&frame),
            FrameError { offset: 16, fault: FrameFault::Missing(left_out) }
        );
    }
    assert_eq!(decode_error(b"\xa1\x62op\x01\xa0").fault, FrameFault::Missing("t"));
    assert_eq!(decode_error(b"\xa1\x61t\x61#\xa0").fault, FrameFault::Missing("op"));
}

#[test]
fn faults_have_their_offset_in_the_frame() {
    let blocks = [record(0), record(1)];
    let frame = frame_with(&slice(&blocks), blocks[0].0, &[]);
    let data_at =
        |data: &[u8]| frame.windows(data.len()).position(|window| window == data).unwrap();

    let second = data_at(&blocks[1].1);
    let mut wrong = frame.clone();
    wrong[second + 3] ^= 1;
    let fault = FrameFault::Car(CarFault::HashMismatch);
    assert_eq!(decode_error(&wrong), FrameError { offset: second, fault });

    let mut longer = frame.clone();
    longer.push(0xf6);
    let fault = FrameFault::Cbor(Reason::TrailingBytes);
    assert_eq!(decode_error(&longer), FrameError { offset: frame.len(), fault });

    let fault = FrameFault::Cbor(Reason::Expected(ItemKind::Map));
    assert_eq!(decode_error(b"\x01"), FrameError { offset: 0, fault });
}

#[test]
fn a_wrong_block_invalidates_its_own_frame_alone() {
    let frames: Vec<_> = (0..40).map(frame_of).collect();
    for bad in 0..frames.len() {
        let mut damaged = frames[bad].clone();
        let (_, first) = record(0);
        let at = damaged.windows(first.len()).position(|window| window == first).unwrap();
        damaged[at + 3] ^= 1;
        let batch: Vec<&[u8]> =
            (0..frames.len()).map(|n| if n == bad { &damaged[..] } else { &frames[n] }).collect();
        let mut decoder = Decoder::new(Options::default());
        for (n, result) in decoder.decode_batch(&batch).iter().enumerate() {
            assert_eq!(result.is_err(), n == bad, "frame {n} with frame {bad} damaged");
        }
    }
}

#[test]
fn trusted_hashes_and_omitted_values_are_visible_in_the_blocks() {
    let mut frame = frame_of(1);
    let (_, data) = record(1);
    let at = frame.windows(data.len()).position(|window| window == data).unwrap();
    frame[at + 3] ^= 1;
    let trusting = Options { trust_hashes: true, ..Options::default() };
    let mut decoder = Decoder::new(trusting);
    let event = decoder.decode(&frame).unwrap();
    assert!(event.blocks().iter().all(|block| block.proof == HashProof::Trusted));

    let validating = Options { values: Values::ValidateOnly, ..trusting };
    let mut decoder = Decoder::new(validating);
    assert!(decoder.decode(&frame).unwrap().blocks().iter().all(|block| block.value.is_none()));
}

#[test]
fn a_block_that_is_not_canonical_has_no_value_and_leaves_its_frame_valid() {
    let (cid, data) = record(0);
    let odd: [&[u8]; 4] = [b"\xa2\x61b\x01\x61a\x02", b"\xa1\x61a\x81\x61", b"\xff no CBOR", b""];
    for odd in odd {
        let blocks = [(cid, data.clone()), (Cid::of(Codec::DagCbor, odd), odd.to_vec())];
        let frame = frame_with(&slice(&blocks), cid, &[]);
        for values in [Values::Build, Values::ValidateOnly] {
            let mut decoder = Decoder::new(Options { values, ..Options::default() });
            let blocks = decoder.decode(&frame).unwrap().blocks();
            let has_value = values == Values::Build;
            assert_eq!((blocks[0].is_canonical, blocks[0].value.is_some()), (true, has_value));
            assert_eq!((blocks[1].is_canonical, blocks[1].value), (false, None));
            assert_eq!((blocks[1].data, blocks[1].proof), (odd, HashProof::Checked));
        }
    }
}

#[test]
fn each_exceeded_limit_is_an_error_that_names_it() {
    let frame = frame_of(3);
    let bound = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        Decoder::new(options).decode(&frame).map(drop).unwrap_err().fault
    };
    assert_eq!(bound(|o| o.max_frame_bytes = 100), FrameFault::FrameLimit(100));
    assert_eq!(bound(|o| o.max_blocks_bytes = 100), FrameFault::BlocksLimit(100));
    assert_eq!(bound(|o| o.max_ops = 2), FrameFault::OpsLimit(2));
    assert_eq!(bound(|o| o.max_record_bytes = 10), FrameFault::RecordLimit(10));
}

#[test]
fn links_to_a_commit_or_a_tree_name_dag_cbor() {
    let (_, data) = record(0);
    let raw = Cid::of(Codec::Raw, &data);
    let frame = frame_with(&slice(&[(raw, data)]), raw, &[]);
    assert_eq!(decode_error(&frame).fault, FrameFault::Field("commit"));
}

#[test]
fn blocks_that_are_not_dag_cbor_are_kept_without_a_value() {
    let (cid, data) = record(0);
    let blob = b"\xff not CBOR".to_vec();
    let frame = frame_with(&slice(&[(cid, data), (Cid::of(Codec::Raw, &blob), blob)]), cid, &[]);
    let mut decoder = Decoder::new(Options::default());
    let blocks = decoder.decode(&frame).unwrap().blocks();
    assert!(blocks[0].value.is_some() && blocks[1].value.is_none());
    assert_eq!(blocks[1].proof, HashProof::Checked);
}

#[test]
fn every_hash_back_end_gives_the_same_results() {
    let frames: Vec<_> = (0..60).map(|n| frame_of(n % 20)).collect();
    let mut batch = frames.clone();
    let middle = batch[30].len() / 2;
    batch[30][middle] ^= 1;
    let views: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
    let mut reference = Decoder::new(Options::default());
    let expected = reference.decode_batch(&views);
    for backend in kernels::sha256::Backend::available() {
        let options = Options { hash_backend: Some(backend), ..Options::default() };
        let mut decoder = Decoder::new(options);
        assert_eq!(decoder.decode_batch(&views), expected, "{}", backend.name());
    }
}

#[test]
fn the_slice_reader_and_the_decoder_find_the_same_blocks() {
    let frame = frame_of(5);
    let mut decoder = Decoder::new(Options::default());
    let Event::Commit(commit) = decoder.decode(&frame).unwrap() else { panic!("a commit") };
    let archive = car::read(commit.car, &car::Options::default()).unwrap();
    let pairs = archive.blocks.iter().zip(commit.blocks);
    assert!(pairs.into_iter().all(|(a, b)| (a.cid, a.data, a.proof) == (b.cid, b.data, b.proof)));
}

proptest! {
    #[test]
    fn damaged_frames_are_rejected_or_read_alike_alone_and_in_a_batch(
        count in 0u8..6,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let good = frame_of(2);
        let mut frame = frame_of(count);
        for (at, byte) in damage {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        let mut alone = Decoder::new(Options::default());
        let mut together = Decoder::new(Options::default());
        let batch = together.decode_batch(&[&good, &frame, &good]);
        prop_assert_eq!(alone.decode(&frame), batch[1]);
        prop_assert!(batch[0].is_ok() && batch[2].is_ok());
        let mut parsed = Decoder::new(Options::default());
        let header = ParsedHeader::read(&frame).ok();
        let of_parsed = parsed.decode_batch(&[Frame::new(&frame, header)]);
        prop_assert_eq!(of_parsed[0], batch[1], "a header that was read before changes nothing");
        if let Ok(event) = batch[1] {
            let written = event.to_frame();
            let mut again = Decoder::new(Options::default());
            let read = again.decode(&written).expect("what was read can be written and read");
            prop_assert_eq!(read.to_frame(), written);
        }
    }
}

#[test]
fn the_memory_of_a_large_frame_is_not_kept() {
    let numbers = 1_500_000_u32;
    let block = [&[0x9a], &numbers.to_be_bytes()[..], &vec![0; numbers as usize]].concat();
    let car = slice(&[(Cid::of(Codec::DagCbor, &block), block)]);
    let (root, blocks) = (None, &[][..]);
    let sync = Sync { seq: 7, did: DID, car: &car, root, blocks, rev: REV, time: TIME };
    let large = Event::Sync(sync).to_frame();
    let mut decoder = Decoder::new(Options::default());
    assert!(decoder.decode(&large).is_ok());
    assert!(decoder.retained_bytes() > decoder::MAX_RETAINED_BYTES);
    assert!(decoder.decode(&frame_of(3)).is_ok());
    assert!(decoder.retained_bytes() < decoder::MAX_RETAINED_BYTES);
}
