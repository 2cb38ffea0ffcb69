//! `frames verify`: verdicts, sequence numbers, findings, exit codes and memory.

use std::fs;
use std::path::PathBuf;

use atproto::corpus;
use atproto::event::{Account, Commit, Decoder, Event, Identity, Options};
use serde_json::Value;
use simnet::firehose;
use simnet::hostile::{self, CaseSet};
use tempfile::TempDir;

use crate::{json, run, stderr, stdout, text};

/// A small stream with the keys of its accounts.
struct Stream {
    folder: TempDir,
    frames: Vec<Vec<u8>>,
    keys: PathBuf,
}

impl Stream {
    /// Forty commits with consecutive sequence numbers.
    fn new() -> Self {
        let spec = firehose::Spec { frames: 40, ..firehose::Spec::quick() };
        let stream = firehose::Corpus::generate(&spec, &mut |_, _| {});
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("accounts.json");
        fs::write(&keys, serde_json::to_vec(&stream.account_keys()).unwrap()).unwrap();
        let mut new = Self { folder, frames: stream.frames().to_vec(), keys };
        new.renumber();
        new
    }

    /// Numbers the commits from 1.
    fn renumber(&mut self) {
        for (seq, frame) in (1..).zip(&mut self.frames) {
            *frame = changed(frame, |commit| commit.seq = seq);
        }
    }

    /// The command, for these frames.
    fn args(&self, more: &[&str]) -> Vec<String> {
        let path = self.folder.path().join("frames.bin");
        fs::write(&path, corpus::write(self.frames.iter().map(Vec::as_slice))).unwrap();
        let args = ["frames", "verify", text(&path), "--keys", text(&self.keys)];
        [&args[..], more].concat().into_iter().map(str::to_owned).collect()
    }

    fn run(&self, more: &[&str]) -> assert_cmd::assert::Assert {
        run(&self.args(more).iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The JSON document.
    fn report(&self, more: &[&str], code: i32) -> Value {
        json(&self.run(&[&["--json"], more].concat()).code(code))
    }

    /// The account of a frame.
    fn did(&self, index: usize) -> String {
        let mut decoder = Decoder::new(Options::default());
        match decoder.decode(&self.frames[index]) {
            Ok(Event::Commit(commit)) => commit.repo.to_owned(),
            other => panic!("{other:?}"),
        }
    }
}

/// A commit with other fields that are not signed.
fn changed(frame: &[u8], change: impl FnOnce(&mut Commit<'_>)) -> Vec<u8> {
    let mut decoder = Decoder::new(Options::default());
    match decoder.decode(frame) {
        Ok(Event::Commit(mut commit)) => {
            change(&mut commit);
            Event::Commit(commit).to_frame()
        }
        other => panic!("{other:?}"),
    }
}

fn account(seq: i64, did: &str, active: bool) -> Vec<u8> {
    let status = (!active).then_some("deactivated");
    Event::Account(Account { seq, did, time: TIME, active, status }).to_frame()
}

fn identity(seq: i64, did: &str, time: &str, handle: Option<&str>) -> Vec<u8> {
    Event::Identity(Identity { seq, did, time, handle }).to_frame()
}

/// Indexes and codes of the findings.
fn codes(report: &Value) -> Vec<(u64, &str)> {
    let findings = report["findings"].as_array().unwrap().iter();
    findings.map(|of| (of["index"].as_u64().unwrap(), of["code"].as_str().unwrap())).collect()
}

/// The count of a verdict with this code.
fn count(report: &Value, code: &str) -> u64 {
    let counts = report["verdicts"].as_array().unwrap().iter();
    counts.filter(|of| of["code"] == code).map(|of| of["count"].as_u64().unwrap()).sum()
}

const TIME: &str = "2026-07-01T00:00:00.000Z";
const DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

#[test]
fn frames_that_their_accounts_signed_are_exit_code_0() {
    let stream = Stream::new();
    let printed = stdout(&stream.run(&[]).success());
    assert!(printed.contains("frames      40"), "{printed}");
    assert!(printed.contains("sequence    1 to 40, 0 out of order, 0 skipped\n"), "{printed}");
    let report = stream.report(&[], 0);
    assert_eq!((&report["frame_count"], codes(&report)), (&40.into(), vec![]));
    let counts = report["verdicts"].as_array().unwrap();
    assert!(counts.iter().all(|of| of["kind"] == "commit" && of["verdict"] == "verified"));
    let sum: u64 = counts.iter().map(|of| of["count"].as_u64().unwrap()).sum();
    assert_eq!(sum, 40);
}

#[test]
fn one_refused_frame_is_exit_code_1_and_reported_with_its_index_and_rule() {
    let mut stream = Stream::new();
    let last = stream.frames[7].len() - 1;
    stream.frames[7][last] ^= 1;
    let refused = stream.run(&[]).code(1);
    assert!(stdout(&refused).starts_with("frame 7 "), "{}", stdout(&refused));
    let report = stream.report(&[], 1);
    assert_eq!(report["findings"][0]["index"], 7);
    assert_eq!(report["findings"][0]["verdict"], "refused");
}

#[test]
fn a_record_that_breaks_the_data_model_is_flagged_and_its_frame_is_not_refused() {
    let mut stream = Stream::new();
    let set = CaseSet::generate(&hostile::Spec::default());
    let case = set.cases().iter().find(|case| case.name.ends_with("record-with-a-float")).unwrap();
    stream.frames = corpus::read(&case.bytes).unwrap().into_iter().map(<[u8]>::to_vec).collect();
    fs::write(&stream.keys, format!(r#"{{"{}": "{}"}}"#, case.did, case.signing_key)).unwrap();
    let printed = stdout(&stream.run(&[]).success());
    assert!(printed.contains("flagged     1, the first "), "{printed}");
    let report = stream.report(&[], 0);
    let (flagged, first) = (&report["flagged"], &report["flagged"]["first"]);
    assert_eq!((&flagged["records"], &first["pointer"]), (&1.into(), &"/n".into()));
    assert_eq!(first["code"], "data/float");
}

#[test]
fn frames_of_accounts_without_a_key_are_refused() {
    let stream = Stream::new();
    fs::write(&stream.keys, "{}").unwrap();
    let refused = stream.run(&[]).code(1);
    assert!(stdout(&refused).contains("signature/no-key"), "{}", stdout(&refused));
    fs::write(&stream.keys, "[7]").unwrap();
    assert!(stderr(&stream.run(&[]).code(1)).contains("expected an object of DIDs"));
}

#[test]
fn commits_after_a_deactivation_are_inactive_until_the_account_is_active_again() {
    let mut stream = Stream::new();
    let did = stream.did(0);
    let owned: Vec<usize> = (0..40).filter(|index| stream.did(*index) == did).collect();
    assert!(owned.len() >= 4, "{owned:?}");
    let untouched = stream.frames.clone();
    for active_again in [None, Some(owned[2])] {
        stream.frames = untouched.clone();
        stream.renumber_with(owned[1], &did, active_again);
        let report = stream.report(&[], 0);
        let until = active_again.unwrap_or(40);
        let inactive = owned.iter().filter(|at| (owned[1]..until).contains(at)).count();
        assert_eq!(count(&report, "event/inactive"), inactive as u64, "{report}");
        let listed = codes(&report).into_iter().filter(|(_, code)| *code == "event/inactive");
        assert_eq!(listed.count(), inactive);
        // Ignored events are missing from the chain.
        let broken = codes(&report).into_iter().any(|(_, code)| code == "event/since");
        assert_eq!(broken, active_again.is_some(), "{report}");
    }
}

impl Stream {
    /// Deactivates an account before the frame at `at`, and activates it before another; numbers all frames
    /// without a gap.
    fn renumber_with(&mut self, at: usize, did: &str, active_again: Option<usize>) {
        let (mut frames, mut seq) = (Vec::new(), 0);
        for (index, frame) in self.frames.iter().enumerate() {
            for (place, active) in [(Some(at), false), (active_again, true)] {
                if place == Some(index) {
                    seq += 1;
                    frames.push(account(seq, did, active));
                }
            }
            seq += 1;
            frames.push(changed(frame, |commit| commit.seq = seq));
        }
        self.frames = frames;
    }
}

#[test]
fn a_deactivation_before_the_first_commit_counts_too() {
    let mut stream = Stream::new();
    let did = stream.did(0);
    stream.renumber_with(0, &did, None);
    assert!(count(&stream.report(&[], 0), "event/inactive") >= 4);
}

#[test]
fn a_sequence_number_that_does_not_rise_is_exit_code_1() {
    for (seq, code) in [(5, "seq/reused"), (3, "seq/regressed")] {
        let mut stream = Stream::new();
        stream.frames.drain(2..4);
        // The numbers are now 1, 2, 5, 6, …
        stream.frames[3] = changed(&stream.frames[3], |commit| commit.seq = seq);
        let refused = stream.run(&[]).code(1);
        assert!(stdout(&refused).contains(code), "{}", stdout(&refused));
        assert!(stderr(&refused).contains("1 with a sequence number out of order"));
        let report = stream.report(&[], 1);
        assert_eq!(report["sequence"]["out_of_order"], 1, "{report}");
    }
    let mut stream = Stream::new();
    stream.frames.insert(1, stream.frames[0].clone());
    assert!(stdout(&stream.run(&[]).code(1)).contains("(seq/repeated)"));
}

#[test]
fn skipped_sequence_numbers_are_counted_and_listed_and_no_refusal() {
    let mut stream = Stream::new();
    for (at, seq) in [(10, 14), (11, 15), (39, 1000)] {
        stream.frames[at] = changed(&stream.frames[at], |commit| commit.seq = seq);
    }
    stream.frames.drain(12..39);
    let printed = stdout(&stream.run(&[]).success());
    let expected =
        "1 to 1000, 0 out of order, 987 skipped in 2 gaps, the largest of 984 after 15\n";
    assert!(printed.contains(expected), "{printed}");
    assert!(!printed.contains("seq/gap"), "{printed}");
    let all = stdout(&stream.run(&["--all"]).success());
    assert!(all.contains("sequence numbers skipped after 10: 3\n"), "{all}");
    let report = stream.report(&[], 0);
    let gaps: Vec<_> = codes(&report).into_iter().filter(|(_, code)| *code == "seq/gap").collect();
    assert_eq!(gaps, [(10, "seq/gap"), (12, "seq/gap")]);
    assert_eq!(report["findings"][0]["skipped"], 3);
    let sequence = &report["sequence"];
    assert_eq!((&sequence["gaps"], &sequence["skipped"]), (&2.into(), &987.into()));
    assert_eq!(sequence["largest_gap"]["after"], 15);
    let failed = stream.run(&["--fail-on", "gap"]).code(1);
    assert!(stderr(&failed).contains("2 after a gap of the sequence"), "{}", stderr(&failed));
}

#[test]
fn a_sequence_number_outside_of_its_range_is_refused() {
    for seq in [0, -1, 1 << 53, i64::MAX] {
        let mut stream = Stream::new();
        stream.frames[39] = changed(&stream.frames[39], |commit| commit.seq = seq);
        let report = stream.report(&[], 1);
        assert_eq!(codes(&report), [(39, "event/seq")], "{report}");
    }
    let mut stream = Stream::new();
    stream.frames[39] = changed(&stream.frames[39], |commit| commit.seq = (1 << 53) - 1);
    stream.run(&[]).success();
}

#[test]
fn the_number_of_a_frame_that_cannot_be_decoded_is_not_skipped() {
    let mut stream = Stream::new();
    stream.frames[20].push(0);
    let report = stream.report(&[], 1);
    assert_eq!(codes(&report)[0], (20, "frame/cbor"), "{report}");
    assert_eq!(report["sequence"]["skipped"], 0, "{report}");
}

#[test]
fn fields_of_identity_and_account_are_checked() {
    let mut stream = Stream::new();
    stream.frames = vec![
        identity(1, DID, TIME, Some("alice.example.com")),
        identity(2, DID, TIME, None),
        identity(3, "alice.example.com", TIME, None),
        identity(4, DID, "yesterday", None),
        identity(5, DID, TIME, Some("not a handle")),
        account(6, DID, true),
        account(7, "did:plc:UPPER", true),
        identity(0, DID, TIME, None),
    ];
    let report = stream.report(&[], 1);
    let expected = [
        (2, "event/did"),
        (3, "event/time"),
        (4, "event/handle"),
        (6, "event/did"),
        (7, "event/seq"),
    ];
    assert_eq!(codes(&report), expected, "{report}");
}

#[test]
fn a_broken_chain_is_exit_code_1_only_on_demand() {
    let mut stream = Stream::new();
    let did = stream.did(0);
    let second = (1..40).find(|index| stream.did(*index) == did).unwrap();
    stream.frames.remove(second);
    stream.renumber();
    assert!(stdout(&stream.run(&[]).success()).contains("(event/since)"));
    let failed = stream.run(&["--fail-on", "broken-chain"]).code(1);
    assert!(stderr(&failed).contains("1 with a broken chain"), "{}", stderr(&failed));
    Stream::new().run(&["--fail-on", "broken-chain,gap"]).success();
}

#[test]
fn a_capture_from_before_sync_1_1_is_verified_on_demand() {
    let mut stream = Stream::new();
    for frame in &mut stream.frames {
        *frame = changed(frame, |commit| commit.prev_data = None);
    }
    let refused = stream.report(&[], 1);
    assert!(count(&refused, "event/prev-data-missing") > 20, "{refused}");
    let report = stream.report(&["--legacy"], 0);
    assert_eq!(codes(&report), [], "{report}");
    let unproved =
        report["verdicts"].as_array().unwrap().iter().find(|of| of["chain"] == "unproved");
    assert!(unproved.unwrap()["count"].as_u64().unwrap() > 20, "{report}");
}

#[test]
fn with_all_every_finding_is_printed() {
    let mut stream = Stream::new();
    stream.frames = vec![Vec::new(); 30_000];
    let first = stdout(&stream.run(&[]).code(1));
    assert!(first.contains("\n… and 29990 more: --all or --json shows them\n"), "{first}");
    let all = stdout(&stream.run(&["--all"]).code(1));
    assert_eq!(all.lines().filter(|line| line.starts_with("frame ")).count(), 30_000);
    assert_eq!(codes(&stream.report(&[], 1)).len(), 30_000);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_number_of_refused_frames() {
    let stream = Stream::new();
    let mut peaks = [20_000, 2_000_000].map(|count: u32| {
        let path = stream.folder.path().join("empty.bin");
        let file = [&count.to_be_bytes()[..], &vec![0; count as usize * 4]].concat();
        fs::write(&path, file).unwrap();
        crate::peak_bytes(&["frames", "verify", text(&path), "--keys", text(&stream.keys)])
    });
    // The file itself is mapped: 8 MB.
    peaks[1] -= 8_000_000;
    assert!(peaks[1] < peaks[0] + 16_000_000, "{peaks:?}");
}

#[test]
fn a_commit_with_an_invalid_record_is_verified_and_refused_with_strict_records() {
    let set = CaseSet::generate(&hostile::Spec::default());
    let case = set.cases().iter().find(|case| case.name == "record/event-unsorted").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [frames, keys] = ["frames.bin", "accounts.json"].map(|name| folder.path().join(name));
    fs::write(&frames, &case.bytes).unwrap();
    fs::write(&keys, format!(r#"{{"{}": "{}"}}"#, case.did, case.signing_key)).unwrap();
    let args = ["frames", "verify", text(&frames), "--keys", text(&keys), "--json"];
    let report = json(&run(&args).success());
    let invalid = &report["invalid"];
    assert_eq!(
        (&invalid["records"], &invalid["first"]["code"]),
        (&1.into(), &"record/cbor".into())
    );
    assert_eq!(report["findings"], Value::Array(vec![]));
    let report = json(&run(&[&args[..], &["--strict-records"]].concat()).code(1));
    assert_eq!(
        (&report["findings"][0]["code"], &report["findings"][0]["row"]),
        (&"record/cbor".into(), &16.into())
    );
    assert_eq!(report["invalid"]["records"], 0);
}
