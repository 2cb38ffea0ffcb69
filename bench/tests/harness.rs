//! Does the harness tell honest runners from others, and survive all of them? The runners here are
//! shell scripts in `tests/runners` that each do one thing wrong.

#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use simnet::keys::Curve;
use simnet::signed_commits::{self, CommitEntry};
use tempfile::TempDir;
use wireproof::atproto::corpus;
use wireproof::atproto::event::{Event, Info};
use wireproof::codec::Cid;
use wireproof::codec::cid::Codec;
use wireproof_bench::{BenchError, Parity, Plan, Progress, Results, Row, Task, run, terminal};

/// A corpus of two frames, and a folder to work in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let frame = Event::Info(Info { name: "Outdated", message: None }).to_frame();
        assert_eq!(frame.len(), 28, "the runners say that two frames have 56 bytes");
        fs::write(dir.path().join("frames.bin"), corpus::write([&frame[..], &frame])).unwrap();
        let place = Self(dir);
        place.describe(r#"{"counts": {"frames": 2, "errors": 0, "links": 7}}"#);
        place
    }

    /// Adds a corpus of as many commits of ten bytes, all said to be valid.
    fn add_commits(&self, name: &str, count: usize) {
        let entry = CommitEntry { curve: Curve::K256, commit: &[b'c'; 10], key: &[2; 33] };
        let path = self.0.path().join(name);
        fs::write(&path, signed_commits::write(vec![entry; count])).unwrap();
        let sidecar = format!(r#"{{"counts": {{"commits": {count}, "valid_k256": {count}}}}}"#);
        fs::write(path.with_extension("json"), sidecar).unwrap();
    }

    /// Adds two records of five-byte keys, and three lookups.
    fn add_records(&self, sidecar: Option<&str>) {
        let mut file = 2u32.to_be_bytes().to_vec();
        for key in ["a.b/1", "a.b/2"] {
            file.extend([0, 5]);
            file.extend(key.bytes());
            file.extend(Cid::of(Codec::DagCbor, key.as_bytes()).as_bytes());
        }
        for number in [2u32, 1, 0, 3, 0, 1, 1] {
            file.extend(number.to_be_bytes());
        }
        let path = self.0.path().join("mst-records.bin");
        fs::write(&path, file).unwrap();
        if let Some(sidecar) = sidecar {
            fs::write(path.with_extension("json"), sidecar).unwrap();
        }
    }

    /// Adds an archive of ten bytes.
    fn add_repository(&self, sidecar: &str) {
        let path = self.0.path().join("repository.car");
        fs::write(&path, [b'c'; 10]).unwrap();
        fs::write(path.with_extension("json"), sidecar).unwrap();
    }

    /// Says whose the frames are.
    fn add_accounts(&self, accounts: &str) {
        fs::write(self.0.path().join("accounts.json"), accounts).unwrap();
    }

    fn describe(&self, sidecar: &str) {
        fs::write(self.0.path().join("frames.json"), sidecar).unwrap();
    }

    fn plan(&self, peers: &[&str]) -> Plan {
        Plan {
            tasks: vec![Task::Decode],
            peers: Some(peers.iter().map(|peer| (*peer).to_owned()).collect()),
            passes: 3,
            warmup: 1,
            corpus: Some(self.0.path().to_owned()),
            runners: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runners"),
            work_dir: self.0.path().join("work"),
            ..Plan::default()
        }
    }

    fn measure(&self, peers: &[&str]) -> Results {
        run(&self.plan(peers), &mut |_| {}).unwrap()
    }
}

fn row<'r>(results: &'r Results, peer: &str) -> &'r Row {
    results.rows.iter().find(|row| row.peer == peer).unwrap_or_else(|| panic!("no row of {peer}"))
}

fn note<'r>(results: &'r Results, peer: &str) -> &'r str {
    row(results, peer).note.as_deref().unwrap_or_default()
}

#[test]
fn an_honest_runner_is_measured_and_the_faster_comes_first() {
    let results = Place::new().measure(&["second", "honest"]);
    let [first, second] = &results.rows[..] else { panic!("{results:?}") };
    assert_eq!((first.peer.as_str(), second.peer.as_str()), ("honest", "second"));
    assert_eq!(first.parity, Parity::Ok);
    assert_eq!(first.passes_ns, [1_000_000; 3]);
    assert_eq!(first.median(), Some(2_000.0));
    assert_eq!(second.median(), Some(1_000.0));
    assert_eq!(first.note, None);
}

#[test]
fn passes_take_turns() {
    let place = Place::new();
    let mut order = Vec::new();
    run(&place.plan(&["second", "honest"]), &mut |progress| {
        if let Progress::Pass { peer, .. } = progress {
            order.push(peer.to_owned());
        }
    })
    .unwrap();
    assert_eq!(order, ["honest", "second"].repeat(4));
}

#[test]
fn every_stage_of_a_run_is_told_with_its_place_in_it() {
    let place = Place::new();
    let mut told = Vec::new();
    run(&place.plan(&["second", "honest"]), &mut |progress| {
        told.push(match progress {
            Progress::Building { done, total, .. } => ("building", done, total),
            Progress::Known { rows, cases } => ("known", rows, cases),
            Progress::Proving { row, rows, .. } => ("proving", row, rows),
            Progress::Pass { done, total, .. } => ("pass", done, total),
            other => panic!("{other:?}"),
        });
    })
    .unwrap();
    let before = [("building", 0, 2), ("building", 1, 2), ("known", 2, 0)];
    let proofs = [("proving", 0, 2), ("proving", 1, 2)];
    let passes = (0..8).map(|done| ("pass", done, 8));
    assert_eq!(told, before.into_iter().chain(proofs).chain(passes).collect::<Vec<_>>());
}

#[test]
fn a_runner_that_finds_something_else_is_a_mismatch_and_not_ranked() {
    let results = Place::new().measure(&["liar", "second"]);
    assert_eq!(row(&results, "liar").parity, Parity::Mismatch);
    assert_eq!(note(&results, "liar"), "links 6 instead of 7");
    assert_eq!(results.rows[1].peer, "liar", "it was faster, and comes last");
    let text = terminal::text(&results, None);
    assert!(text.contains("**mismatch**") && text.contains("links 6 instead of 7"), "{text}");
}

#[test]
fn a_runner_that_loads_less_is_a_mismatch_whatever_it_counts() {
    let results = Place::new().measure(&["short"]);
    assert_eq!(row(&results, "short").parity, Parity::Mismatch);
    assert!(note(&results, "short").starts_with("loaded 1 units of 28 bytes instead of 2 of 56"));
}

#[test]
fn a_count_that_a_runner_cannot_give_is_named_and_no_mismatch() {
    let place = Place::new();
    place.describe(r#"{"counts": {"frames": 2, "floats": 0}}"#);
    let results = place.measure(&["honest"]);
    assert_eq!(row(&results, "honest").parity, Parity::Ok);
    assert_eq!(note(&results, "honest"), "not given: floats");
}

#[test]
fn a_runner_that_hangs_becomes_a_row_with_a_note() {
    let place = Place::new();
    let plan = Plan { request_limit: Duration::from_millis(300), ..place.plan(&["hanging"]) };
    let results = run(&plan, &mut |_| {}).unwrap();
    assert_eq!(note(&results, "hanging"), "pass: no answer within 0.3 s");
    assert_eq!(row(&results, "hanging").per_s, None);
}

#[test]
fn a_runner_that_ends_in_the_middle_keeps_its_passes_and_is_not_ranked() {
    let results = Place::new().measure(&["crashing", "honest"]);
    let crashed = row(&results, "crashing");
    assert_eq!(note(&results, "crashing"), "pass: ended without an answer (exit status: 7)");
    assert!(crashed.per_s.is_none() && !crashed.is_ranked());
    assert!(row(&results, "honest").is_ranked(), "the others go on");
}

#[test]
fn a_runner_that_prints_something_else_is_shown_without_its_control_characters() {
    let results = Place::new().measure(&["babbling"]);
    assert_eq!(row(&results, "babbling").parity, Parity::Unproven);
    assert_eq!(
        note(&results, "babbling"),
        "prove: an answer that is not the protocol's: <h1> [2Jgood morning</h1>"
    );
}

#[test]
fn what_a_runner_says_went_wrong_is_in_its_row() {
    assert_eq!(note(&Place::new().measure(&["refusing"]), "refusing"), "load: no such file");
}

#[test]
fn a_peer_that_cannot_begin_is_unavailable_with_the_reason() {
    let results = Place::new().measure(&["idle", "silent", "honest"]);
    let reasons: Vec<_> =
        results.unavailable.iter().map(|peer| (&*peer.peer, &*peer.reason)).collect();
    assert_eq!(
        reasons,
        [
            ("idle", "does none of the tasks that were asked for"),
            ("silent", "describe: ended without an answer (exit status: 3)"),
        ]
    );
    assert_eq!(results.rows.len(), 1);
}

#[test]
fn a_peer_that_nobody_knows_is_an_error_that_names_the_known_ones() {
    let error = run(&Place::new().plan(&["nobody"]), &mut |_| {}).unwrap_err();
    let BenchError::UnknownPeer { asked, known } = error else { panic!("{error}") };
    assert_eq!(asked, "nobody");
    assert!(known.contains(&"honest".to_owned()));
}

#[test]
fn a_description_of_other_bytes_is_refused() {
    let place = Place::new();
    place.describe(r#"{"counts": {"frames": 2}, "sha256": "00"}"#);
    let error = run(&place.plan(&["honest"]), &mut |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::OtherCorpus(_)), "{error}");
}

#[test]
fn without_a_description_the_corpus_is_counted() {
    let place = Place::new();
    fs::remove_file(place.0.path().join("frames.json")).unwrap();
    let results = place.measure(&["honest"]);
    assert_eq!(
        note(&results, "honest"),
        "links 7 instead of 0; not given: array_items, arrays, \
        blocks, booleans, byte_string_bytes, floats, integers, map_entries, maps, nulls, text_bytes"
    );
}

fn variants(results: &Results) -> Vec<(&str, &str, u64)> {
    results.rows.iter().map(|row| (row.task.as_str(), row.variant.as_str(), row.units)).collect()
}

#[test]
fn each_row_works_on_the_corpus_of_its_task_and_those_of_a_second_one_say_so() {
    let place = Place::new();
    place.add_commits("signed-commits.bin", 2);
    place.add_commits("signed-commits-mixed.bin", 1);
    let plan = Plan { tasks: vec![Task::Sigs, Task::Decode], ..place.plan(&["honest", "signer"]) };
    let results = run(&plan, &mut |_| {}).unwrap();
    assert!(results.rows.iter().all(Row::is_ranked), "{results:?}");
    assert_eq!(
        variants(&results),
        [
            ("decode", "verified", 2),
            ("sigs", "full", 2),
            ("sigs", "full/batch", 2),
            ("sigs", "full/batch@mixed", 1),
            ("sigs", "full@mixed", 1),
        ]
    );
    let names: Vec<_> = results.corpora.iter().map(|corpus| corpus.name.as_str()).collect();
    assert_eq!(names, ["frames", "signed-commits", "signed-commits-mixed"]);
    assert_eq!(results.rows[1].unit, "commit");
}

#[test]
fn a_folder_without_a_second_corpus_has_no_rows_of_it_and_one_without_a_first_is_refused() {
    let place = Place::new();
    let plan = Plan { tasks: vec![Task::Sigs], ..place.plan(&["signer"]) };
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no signed-commits.bin in this folder"), "{error}");
    place.add_commits("signed-commits.bin", 2);
    let results = run(&plan, &mut |_| {}).unwrap();
    assert_eq!(variants(&results), [("sigs", "full", 2), ("sigs", "full/batch", 2)]);
}

#[test]
fn one_file_is_taken_for_one_task_and_not_for_several() {
    let place = Place::new();
    place.add_commits("signed-commits.bin", 2);
    let corpus = Some(place.0.path().join("signed-commits.bin"));
    let several =
        Plan { tasks: vec![Task::Decode, Task::Sigs], corpus, ..place.plan(&["honest", "signer"]) };
    let error = run(&several, &mut |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::OneFileForManyTasks(_)), "{error}");
    let results = run(&Plan { tasks: vec![Task::Sigs], ..several }, &mut |_| {}).unwrap();
    assert_eq!(results.rows.len(), 2);
}

#[test]
fn commits_without_a_description_are_verified_by_us() {
    let place = Place::new();
    place.add_commits("signed-commits.bin", 2);
    fs::remove_file(place.0.path().join("signed-commits.json")).unwrap();
    let results =
        run(&Plan { tasks: vec![Task::Sigs], ..place.plan(&["signer"]) }, &mut |_| {}).unwrap();
    assert!(note(&results, "signer").starts_with("valid_k256 2 instead of 0"), "{results:?}");
}

#[test]
fn a_file_that_is_no_corpus_of_the_task_is_refused() {
    let place = Place::new();
    for (task, content, fault) in [
        (Task::Decode, &b"x"[..], "not a file of frames"),
        (Task::Sigs, b"x", "not a file of signed commits"),
        (Task::Schnorr, b"\xff", "not lines of UTF-8"),
        (Task::Mst, b"x", "not a file of records"),
    ] {
        let file = place.0.path().join("file");
        fs::write(&file, content).unwrap();
        let plan = Plan { tasks: vec![task], corpus: Some(file), ..place.plan(&["honest"]) };
        let error = run(&plan, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains(fault), "{error}");
    }
}

fn of_task(task: Task, plan: Plan) -> Results {
    run(&Plan { tasks: vec![task], ..plan }, &mut |_| {}).unwrap()
}

const RECORDS: &str = r#"{"counts": {"records": 2, "root": "bafyreiroot", "lookups": 3, "found": 3,
    "lookup_checksum": 7}}"#;

#[test]
fn records_and_lookups_are_units_of_their_own_and_a_root_is_a_count() {
    let place = Place::new();
    place.add_records(Some(RECORDS));
    let results = of_task(Task::Mst, place.plan(&["builder"]));
    let rows: Vec<_> =
        results.rows.iter().map(|row| (&*row.variant, &*row.unit, row.units)).collect();
    assert_eq!(rows, [("insert-root/ascending", "record", 2), ("lookup", "lookup", 3)]);
    assert!(results.rows.iter().all(|row| row.is_ranked() && row.note.is_none()), "{results:?}");
    assert_eq!(results.rows[0].counts.text("root"), Some("bafyreiroot"));
}

#[test]
fn records_without_a_description_are_built_by_the_plain_tree() {
    let place = Place::new();
    place.add_records(None);
    let results = of_task(Task::Mst, place.plan(&["builder"]));
    let root = results.rows[0].note.as_deref().unwrap();
    assert!(root.starts_with("root bafyreiroot instead of bafyrei"), "{root}");
    assert!(results.rows[1].note.as_deref().unwrap().starts_with("lookup_checksum 7 instead of"));
}

const REPOSITORY: &str = r#"{"did": "did:plc:a", "signing_key": "did:key:z", "counts":
    {"repositories": 1, "records": 4, "root": "bafyreiroot"}}"#;

#[test]
fn stages_are_kept_for_every_pass_and_have_a_table() {
    let place = Place::new();
    place.add_repository(REPOSITORY);
    let results = of_task(Task::Repo, place.plan(&["stager"]));
    let [total, rebuilt] = &results.rows[..] else { panic!("{results:?}") };
    assert!(total.is_ranked() && rebuilt.is_ranked(), "{results:?}");
    assert_eq!(total.stages_ns["parse"], [1_000_000; 3]);
    assert_eq!(total.stages_ns.keys().collect::<Vec<_>>(), ["parse", "walk"]);
    assert_eq!(rebuilt.stages_ns["rebuild"], [3_000_000; 3]);
    let text = terminal::text(&results, None);
    assert!(text.contains("parse ms  walk ms  rebuild ms"), "{text}");
}

#[test]
fn a_tree_that_was_built_anew_must_have_the_same_root() {
    let place = Place::new();
    place.add_repository(&REPOSITORY.replace("bafyreiroot", "bafyreiother"));
    let results = of_task(Task::Repo, place.plan(&["stager"]));
    let note = "root bafyreiroot instead of bafyreiother";
    let rebuilt = format!("rebuilt_{note}; {note}");
    assert_eq!(results.rows[0].note.as_deref(), Some(note));
    assert_eq!(results.rows[1].note, Some(rebuilt));
}

#[test]
fn a_repository_of_nobody_is_refused() {
    let place = Place::new();
    let plan = Plan { tasks: vec![Task::Repo], ..place.plan(&["stager"]) };
    place.add_repository(r#"{"did": "did:plc:a"}"#);
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::NoOwner(_)), "{error}");
    place.add_repository(r#"{"did": "did:plc:a", "signing_key": "did:key:z"}"#);
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("the signing_key beside it is none"), "{error}");
}

#[test]
fn a_repository_without_counts_is_proved_by_us() {
    let place = Place::new();
    place.add_repository(&format!(r#"{{"did": "did:plc:a", "signing_key": "{KEY}"}}"#));
    let results = of_task(Task::Repo, place.plan(&["stager"]));
    let note = results.rows[0].note.as_deref().unwrap();
    assert!(note.contains("root bafyreiroot instead of car/"), "{note}");
}

/// The key of the test vectors, in a DID document and alone.
const KEY: &str = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";

#[test]
fn accounts_reach_a_runner_as_keys_whichever_way_they_were_told() {
    let document = serde_json::json!([{"did": "did:plc:a", "didDoc": {
        "id": "did:plc:a", "verificationMethod": [
            {"id": "did:plc:a#other", "type": "Multikey", "controller": "did:plc:a",
                "publicKeyMultibase": "zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo"},
            {"id": "did:plc:a#atproto", "type": "Multikey", "controller": "did:plc:a",
                "publicKeyMultibase": &KEY["did:key:".len()..]},
        ],
    }}]);
    for accounts in [document, serde_json::json!({"did:plc:a": KEY})] {
        let place = Place::new();
        place.describe(&format!(r#"{{"verdicts": {{"frames": 2, "key": "{KEY}"}}}}"#));
        place.add_accounts(&accounts.to_string());
        let results = of_task(Task::Commit, place.plan(&["clerk"]));
        assert!(results.rows[0].is_ranked(), "{results:?}");
    }
}

#[test]
fn frames_without_accounts_are_refused() {
    let place = Place::new();
    let plan = Plan { tasks: vec![Task::Commit], ..place.plan(&["clerk"]) };
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("accounts.json"), "{error}");
}

#[test]
fn a_peer_without_a_part_in_the_tasks_is_missing_only_if_it_was_asked_for() {
    let place = Place::new();
    let asked = place.measure(&["honest", "signer"]);
    assert_eq!(asked.unavailable[0].peer, "signer");
    let runners = place.0.path().join("runners");
    for name in ["honest", "signer"] {
        let from = place.plan(&[]).runners;
        fs::create_dir_all(runners.join(name)).unwrap();
        fs::copy(from.join("fake.sh"), runners.join("fake.sh")).unwrap();
        fs::copy(from.join(name).join("runner"), runners.join(name).join("runner")).unwrap();
    }
    let all = run(&Plan { peers: None, runners, ..place.plan(&[]) }, &mut |_| {}).unwrap();
    assert_eq!(all.unavailable, []);
    assert_eq!(all.rows.len(), 1);
}
