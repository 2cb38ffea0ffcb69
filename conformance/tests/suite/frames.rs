//! Captured frames decode without an error, have the fields that other implementations read, and are encoded again byte
//! for byte; forged ones are refused here or listed with the layer that must refuse them.

use atproto::corpus;
use atproto::event::{Block, Commit, Decoder, Event, FrameFault, Options};
use codec::car::{CarFault, HashProof};
use codec::cbor::{self, ItemCounts, Reason};
use serde_json::{Value as Json, json};
use wireproof_conformance::{Folder, Manifest, fact, fixtures};

#[test]
fn captured_pds_frames_count_what_every_peer_counts() {
    let file = fixtures!(Captures).bytes("pds/frames.bin");
    let frames = corpus::read(&file).unwrap();
    let mut decoder = Decoder::new(Options::default());
    let mut blocks = 0;
    let mut built = ItemCounts::default();
    let mut scanned = ItemCounts::default();
    for frame in &frames {
        let event = decoder.decode(frame).unwrap();
        for block in event.blocks() {
            assert_eq!(block.proof, HashProof::Checked);
            built.add(&block.value.expect("every block of a PDS is DAG-CBOR"));
            cbor::count(block.data, &mut scanned).unwrap();
            blocks += 1;
        }
    }
    assert_eq!((frames.len(), blocks), (3440, 26850));
    assert_eq!(built, PDS_COUNTS);
    assert_eq!(scanned, PDS_COUNTS);
}

#[test]
fn captured_pds_frames_are_written_back_byte_for_byte() {
    let file = fixtures!(Captures).bytes("pds/frames.bin");
    let frames = corpus::read(&file).unwrap();
    each_is_written_back(&frames);
    assert!(corpus::write(frames) == file, "the corpus itself is written back");
}

#[test]
fn captured_pds_frames_decode_alike_alone_and_in_batches() {
    let file = fixtures!(Captures).bytes("pds/frames.bin");
    each_batch_equals_single(&corpus::read(&file).unwrap());
}

#[test]
fn frames_of_the_live_network_say_what_another_implementation_read() {
    let data = fixtures!(Captures);
    let file = data.bytes(LIVE);
    let frames = split_live(&file);
    let expected = data.text("atproto/frames/firehose_2026-07-04_dev.expected.jsonl");
    let mut decoder = Decoder::new(Options::default());
    assert_eq!((frames.len(), expected.lines().count()), (62, 62));
    for (frame, line) in frames.iter().zip(expected.lines()) {
        let expected: Json = serde_json::from_str(line).unwrap();
        let event = decoder.decode(frame).unwrap();
        assert_says(&event, &expected);
    }
}

#[test]
fn frames_of_the_live_network_are_written_back_byte_for_byte() {
    let file = fixtures!(Captures).bytes(LIVE);
    each_is_written_back(&split_live(&file));
}

#[test]
fn frames_of_the_live_network_decode_alike_alone_and_in_batches() {
    let file = fixtures!(Captures).bytes(LIVE);
    each_batch_equals_single(&split_live(&file));
}

#[test]
fn every_forged_frame_is_refused_here_or_listed_for_a_later_layer() {
    let data = fixtures!(Captures);
    let manifest = Manifest::of(&data);
    let mut seen = 0;
    for (path, facts) in manifest.rows().filter(|(path, _)| path.starts_with("negative/frames/")) {
        let expected = fact(facts, "expected").unwrap();
        let Some((_, verdict)) = FORGED.iter().find(|(listed, _)| *listed == expected) else {
            panic!("{path}: no verdict is listed for {expected}");
        };
        assert_verdict(&data, &format!("atproto/{path}"), *verdict);
        seen += 1;
    }
    assert_eq!(seen, FORGED.len(), "one frame for each verdict in the table");
}

#[test]
fn a_commit_from_before_revisions_is_refused_for_lacking_one() {
    let frame = fixtures!(Captures).bytes("atproto/frames/carbox_2023-04_commit.frame");
    let mut decoder = Decoder::new(Options::default());
    let error = decoder.decode(&frame).unwrap_err();
    assert_eq!(error.fault, FrameFault::Missing("rev"));
}

/// The result of this layer for a frame.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    /// Refuses it for this reason.
    Here(FrameFault),
    /// Accepts it; the layer named must refuse it.
    Later(#[expect(dead_code, reason = "read by people")] &'static str),
    /// Accepts it, as everyone must.
    Valid,
}

fn assert_verdict(data: &Folder, path: &str, verdict: Verdict) {
    let frame = data.bytes(path);
    let mut decoder = Decoder::new(Options::default());
    let result = decoder.decode(&frame);
    match verdict {
        Verdict::Here(fault) => assert_eq!(result.unwrap_err().fault, fault, "{path}"),
        Verdict::Later(_) | Verdict::Valid => {
            let event = result.unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(event.to_frame() == frame, "{path} is written back");
        }
    }
}

fn each_is_written_back(frames: &[&[u8]]) {
    let mut decoder = Decoder::new(Options::default());
    for (index, frame) in frames.iter().enumerate() {
        let event = decoder.decode(frame).unwrap();
        assert!(event.to_frame() == *frame, "frame {index} is written back byte for byte");
    }
}

fn each_batch_equals_single(frames: &[&[u8]]) {
    let mut batches = Decoder::new(Options::default());
    let mut alone = Decoder::new(Options::default());
    for batch in frames.chunks(67) {
        let events = batches.decode_batch(batch);
        assert_eq!(events.len(), batch.len());
        for (event, frame) in events.iter().zip(batch) {
            assert_eq!(*event, alone.decode(frame));
        }
    }
}

/// Splits the live capture: every frame after its length, four bytes, little-endian.
pub(crate) fn split_live(mut file: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((len, rest)) = file.split_first_chunk() {
        let (frame, behind) = rest.split_at(u32::from_le_bytes(*len) as usize);
        frames.push(frame);
        file = behind;
    }
    assert!(file.is_empty(), "the capture ends with a whole frame");
    frames
}

/// Compares every field that the expectation has.
fn assert_says(event: &Event<'_>, expected: &Json) {
    assert_eq!(event.kind(), expected["t"].as_str());
    assert_eq!(event.seq(), expected["seq"].as_i64());
    match event {
        Event::Commit(commit) => assert_commit_says(commit, expected),
        Event::Account(account) => assert_eq!(Some(account.did), expected["did"].as_str()),
        other => panic!("the capture has no {:?}", other.kind()),
    }
}

fn assert_commit_says(commit: &Commit<'_>, expected: &Json) {
    let said = json!({
        "did": commit.repo,
        "rev": commit.rev,
        "since": commit.since,
        "time": commit.time,
        "commit": commit.commit.to_string(),
        "prevData": commit.prev_data.map(|cid| cid.to_string()),
        "data": tree_root(commit),
    });
    for (field, value) in said.as_object().unwrap() {
        assert_eq!(*value, expected[field], "{field} of {}", commit.seq);
    }
    let blocks: Vec<String> = commit.blocks.iter().map(cid_and_len).collect();
    let listed = expected["blocks"].as_array().unwrap().iter();
    // The third word is the type of the block according to another implementation.
    let listed = listed.map(|line| line.as_str().unwrap().rsplit_once(' ').unwrap().0);
    assert!(listed.eq(blocks), "blocks of {}", commit.seq);
    assert_ops_say(commit, &expected["ops"]);
    assert_eq!(commit.root, Some(commit.commit.as_cid_ref()));
}

fn assert_ops_say(commit: &Commit<'_>, expected: &Json) {
    let ops: Vec<Json> = commit
        .ops
        .iter()
        .map(|op| {
            let mut said = json!({"action": op.action.as_str(), "path": op.path});
            said.as_object_mut().unwrap().extend(
                [("cid", op.cid), ("prev", op.prev)]
                    .into_iter()
                    .filter_map(|(key, cid)| Some((key.to_owned(), cid?.to_string().into()))),
            );
            said
        })
        .collect();
    assert_eq!(Json::Array(ops), *expected, "operations of {}", commit.seq);
    for op in commit.ops {
        assert_eq!(op.cid, op.record.map(|block| block.cid), "{}", op.path);
    }
}

fn tree_root(commit: &Commit<'_>) -> String {
    let block = commit.blocks.iter().find(|block| Some(block.cid) == commit.root).unwrap();
    block.value.unwrap().get("data").unwrap().as_link().unwrap().to_string()
}

fn cid_and_len(block: &Block<'_>) -> String {
    format!("{} {}", block.cid, block.data.len())
}

pub(crate) const LIVE: &str = "atproto/frames/firehose_2026-07-04_dev.bin";

const PDS_COUNTS: ItemCounts = ItemCounts {
    maps: 120_592,
    map_entries: 439_623,
    arrays: 21_578,
    array_items: 91_179,
    text_bytes: 1_446_485,
    byte_string_bytes: 1_396_439,
    links: 171_774,
    integers: 93_665,
    floats: 0,
    booleans: 0,
    nulls: 34_604,
};

/// The manifest's expectation, and the result here.
const FORGED: [(&str, Verdict); 8] = [
    ("reject:cid-mismatch", Verdict::Here(FrameFault::Car(CarFault::HashMismatch))),
    ("reject:trailing-data", Verdict::Here(FrameFault::Cbor(Reason::TrailingBytes))),
    ("reject:truncated", Verdict::Here(FrameFault::Cbor(Reason::LengthBeyondInput))),
    ("reject:signature", Verdict::Later("verify: the commit's signature")),
    ("reject:incomplete-mst", Verdict::Later("verify: the proof of each operation")),
    ("valid:error-frame", Verdict::Valid),
    ("valid:info", Verdict::Valid),
    ("valid", Verdict::Valid),
];
