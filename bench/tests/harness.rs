//! The harness with correct and faulty runners: shell scripts in `tests/runners` that do one thing wrong each.

#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use atproto::corpus;
use atproto::event::{Event, Info};
use codec::Cid;
use codec::cid::Codec;
use simnet::keys::Curve;
use simnet::signed_commits::{self, CommitEntry};
use tempfile::TempDir;
use wireproof_bench::{BenchError, Parity, Plan, Progress, Results, Row, Task, run, terminal};

/// A folder with a corpus of two frames, and a work folder.
struct TestDir(TempDir);

impl TestDir {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let frame = Event::Info(Info { name: "Outdated", message: None }).to_frame();
        assert_eq!(frame.len(), 28, "the runners answer that two frames have 56 bytes");
        fs::write(dir.path().join("frames.bin"), corpus::write([&frame[..], &frame])).unwrap();
        let dir = Self(dir);
        dir.describe(r#"{"counts": {"frames": 2, "errors": 0, "links": 7}}"#);
        dir
    }

    /// Adds a corpus of `count` commits of ten bytes, described as valid.
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
        // Two in shuffled order, three lookups, no operations.
        for number in [2u32, 1, 0, 3, 0, 1, 1, 0] {
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

    /// Adds the keys of the accounts.
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
            runners: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runners")),
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
    let results = TestDir::new().measure(&["second", "honest"]);
    let [first, second] = &results.rows[..] else { panic!("{results:?}") };
    assert_eq!((first.peer.as_str(), second.peer.as_str()), ("honest", "second"));
    assert_eq!(first.parity, Parity::Ok);
    assert_eq!(first.passes_ns, [1_000_000; 3]);
    assert_eq!(first.median(), Some(2_000.0));
    assert_eq!(second.median(), Some(1_000.0));
    assert_eq!(first.note, None);
}

#[test]
fn passes_are_interleaved() {
    let dir = TestDir::new();
    let mut order = Vec::new();
    run(&dir.plan(&["second", "honest"]), &mut |progress| {
        if let Progress::Pass { peer, .. } = progress {
            order.push(peer.to_owned());
        }
    })
    .unwrap();
    assert_eq!(order, ["honest", "second"].repeat(4));
}

#[test]
fn every_step_of_a_run_is_reported_with_its_number() {
    let dir = TestDir::new();
    let mut steps = Vec::new();
    run(&dir.plan(&["second", "honest"]), &mut |progress| {
        steps.push(match progress {
            Progress::Planned { builds } => ("planned", builds, 0),
            Progress::Task { rows, missing, .. } => ("task", rows, missing),
            Progress::Proving { row, rows, .. } => ("proving", row, rows),
            Progress::Pass { done, total, .. } => ("pass", done, total),
            Progress::Measured { rows, missing } => {
                ("measured", rows.len() as u64, missing.len() as u64)
            }
            other => panic!("{other:?}"),
        });
    })
    .unwrap();
    let mut expected =
        vec![("planned", 0, 0), ("task", 2, 0), ("proving", 0, 2), ("proving", 1, 2)];
    expected.extend((0..8).map(|done| ("pass", done, 8)));
    expected.push(("measured", 2, 0));
    assert_eq!(steps, expected);
}

#[test]
fn tasks_are_measured_and_reported_one_after_the_other_in_the_order_of_the_report() {
    let dir = TestDir::new();
    dir.add_commits("signed-commits.bin", 2);
    let tasks = vec![Task::Sigs, Task::Decode, Task::Sigs];
    let mut reported = Vec::new();
    let plan = Plan { tasks, ..dir.plan(&["honest", "signer"]) };
    run(&plan, &mut |progress| {
        if let Progress::Measured { rows, .. } = progress {
            reported.push((rows[0].task.clone(), rows.len()));
        }
    })
    .unwrap();
    assert_eq!(reported, [("decode".to_owned(), 1), ("sigs".to_owned(), 2)]);
}

#[test]
fn a_row_with_a_slow_proof_makes_one_pass() {
    let dir = TestDir::new();
    let plan = Plan { one_pass_over: Some(Duration::ZERO), ..dir.plan(&["honest"]) };
    let results = run(&plan, &mut |_| {}).unwrap();
    assert_eq!(row(&results, "honest").passes_ns, [1_000_000]);
    assert!(row(&results, "honest").is_ranked());
}

#[test]
fn an_uneven_task_gets_as_many_passes_again_up_to_its_limit() {
    let dir = TestDir::new();
    let plan = |peers: &[&str]| Plan { extensions: 2, ..dir.plan(peers) };
    let passes = |results: &Results, peer| row(results, peer).passes_ns.len();
    let uneven = run(&plan(&["uneven"]), &mut |_| {}).unwrap();
    assert_eq!(passes(&uneven, "uneven"), 9, "three, and twice as many again");
    let even = run(&plan(&["honest", "second"]), &mut |_| {}).unwrap();
    assert_eq!((passes(&even, "honest"), passes(&even, "second")), (3, 3));
    // One row of three is not more than half.
    let mixed = run(&plan(&["honest", "second", "uneven"]), &mut |_| {}).unwrap();
    assert_eq!(passes(&mixed, "uneven"), 3);
}

#[test]
fn a_pass_repeats_the_work_and_takes_the_mean() {
    let dir = TestDir::new();
    // However fast the proof is, a day holds the greatest number of executions.
    let day = Some(Duration::from_secs(86_400));
    let plan = Plan { passes: 1, warmup: 0, pass_at_least: day, ..dir.plan(&["growing"]) };
    let results = run(&plan, &mut |_| {}).unwrap();
    let [mean] = row(&results, "growing").passes_ns[..] else { panic!("{results:?}") };
    let executions = (2 * mean / 1_000).saturating_sub(1);
    assert!(executions > 100, "the mean {mean} is of {executions} executions");
    let once = Plan { pass_at_least: None, ..plan };
    let results = run(&once, &mut |_| {}).unwrap();
    assert_eq!(row(&results, "growing").passes_ns, [1_000]);
}

#[test]
fn a_runner_with_other_counts_is_a_mismatch_and_not_ranked() {
    let results = TestDir::new().measure(&["liar", "second"]);
    assert_eq!(row(&results, "liar").parity, Parity::Mismatch);
    assert_eq!(note(&results, "liar"), "links 6 instead of 7");
    assert_eq!(results.rows[1].peer, "liar", "it was faster, and comes last");
    let text = terminal::text(&results, None);
    assert!(text.contains("**mismatch**") && text.contains("links 6 instead of 7"), "{text}");
}

#[test]
fn a_runner_that_loads_less_is_a_mismatch() {
    let results = TestDir::new().measure(&["short"]);
    assert_eq!(row(&results, "short").parity, Parity::Mismatch);
    assert!(note(&results, "short").starts_with("loaded 1 units of 28 bytes instead of 2 of 56"));
}

#[test]
fn a_count_that_a_runner_does_not_give_is_named_and_no_mismatch() {
    let dir = TestDir::new();
    dir.describe(r#"{"counts": {"frames": 2, "floats": 0}}"#);
    let results = dir.measure(&["honest"]);
    assert_eq!(row(&results, "honest").parity, Parity::Ok);
    assert_eq!(note(&results, "honest"), "not given: floats");
}

#[test]
fn a_runner_that_hangs_is_a_row_with_a_note() {
    let dir = TestDir::new();
    let plan = Plan { request_limit: Duration::from_millis(300), ..dir.plan(&["hanging"]) };
    let results = run(&plan, &mut |_| {}).unwrap();
    assert_eq!(note(&results, "hanging"), "pass: no answer within 0.3 s");
    assert_eq!(row(&results, "hanging").per_s, None);
}

#[test]
fn a_runner_that_exits_early_keeps_its_passes_and_is_not_ranked() {
    let results = TestDir::new().measure(&["crashing", "honest"]);
    let crashed = row(&results, "crashing");
    assert_eq!(note(&results, "crashing"), "pass: ended without an answer (exit status: 7)");
    assert!(crashed.per_s.is_none() && !crashed.is_ranked());
    assert!(row(&results, "honest").is_ranked(), "the others go on");
}

#[test]
fn malformed_output_is_shown_without_control_characters() {
    let results = TestDir::new().measure(&["babbling"]);
    assert_eq!(row(&results, "babbling").parity, Parity::Unproven);
    assert_eq!(
        note(&results, "babbling"),
        "prove: the answer does not follow the protocol: <h1> [2Jgood morning</h1>"
    );
}

#[test]
fn the_error_of_a_runner_is_in_its_row() {
    assert_eq!(note(&TestDir::new().measure(&["refusing"]), "refusing"), "load: no such file");
}

#[test]
fn a_peer_that_cannot_start_is_unavailable_with_the_reason() {
    let results = TestDir::new().measure(&["idle", "silent", "honest"]);
    let reasons: Vec<_> =
        results.unavailable.iter().map(|peer| (&*peer.peer, &*peer.reason)).collect();
    assert_eq!(
        reasons,
        [
            ("idle", "has none of the requested tasks"),
            ("silent", "describe: ended without an answer (exit status: 3)"),
        ]
    );
    assert_eq!(results.rows.len(), 1);
}

#[test]
fn an_unknown_peer_is_an_error_that_names_the_known_ones() {
    let error = run(&TestDir::new().plan(&["nobody"]), &mut |_| {}).unwrap_err();
    let BenchError::UnknownPeer { requested, known } = error else { panic!("{error}") };
    assert_eq!(requested, "nobody");
    assert!(known.contains(&"honest".to_owned()));
}

#[test]
fn a_description_of_another_corpus_is_rejected() {
    let dir = TestDir::new();
    dir.describe(r#"{"counts": {"frames": 2}, "sha256": "00"}"#);
    let error = run(&dir.plan(&["honest"]), &mut |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::OtherCorpus(_)), "{error}");
}

#[test]
fn without_a_description_our_own_counts_are_the_reference() {
    let dir = TestDir::new();
    fs::remove_file(dir.0.path().join("frames.json")).unwrap();
    let results = dir.measure(&["honest"]);
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
fn each_row_has_the_corpus_of_its_task_and_a_suffix_for_a_second_one() {
    let dir = TestDir::new();
    dir.add_commits("signed-commits.bin", 2);
    dir.add_commits("signed-commits-mixed.bin", 1);
    let plan = Plan { tasks: vec![Task::Sigs, Task::Decode], ..dir.plan(&["honest", "signer"]) };
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
fn the_second_corpus_of_a_folder_is_optional_and_the_first_is_required() {
    let dir = TestDir::new();
    let plan = Plan { tasks: vec![Task::Sigs], ..dir.plan(&["signer"]) };
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no signed-commits.bin in this folder"), "{error}");
    dir.add_commits("signed-commits.bin", 2);
    let results = run(&plan, &mut |_| {}).unwrap();
    assert_eq!(variants(&results), [("sigs", "full", 2), ("sigs", "full/batch", 2)]);
}

#[test]
fn one_file_is_the_corpus_of_one_task_only() {
    let dir = TestDir::new();
    dir.add_commits("signed-commits.bin", 2);
    let corpus = Some(dir.0.path().join("signed-commits.bin"));
    let several =
        Plan { tasks: vec![Task::Decode, Task::Sigs], corpus, ..dir.plan(&["honest", "signer"]) };
    let error = run(&several, &mut |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::OneFileForManyTasks(_)), "{error}");
    let results = run(&Plan { tasks: vec![Task::Sigs], ..several }, &mut |_| {}).unwrap();
    assert_eq!(results.rows.len(), 2);
}

#[test]
fn commits_without_a_description_are_verified_by_our_own_implementation() {
    let dir = TestDir::new();
    dir.add_commits("signed-commits.bin", 2);
    fs::remove_file(dir.0.path().join("signed-commits.json")).unwrap();
    let results =
        run(&Plan { tasks: vec![Task::Sigs], ..dir.plan(&["signer"]) }, &mut |_| {}).unwrap();
    assert!(note(&results, "signer").starts_with("valid_k256 2 instead of 0"), "{results:?}");
}

#[test]
fn a_file_that_is_not_the_corpus_of_its_task_is_rejected() {
    let dir = TestDir::new();
    for (task, content, fault) in [
        (Task::Decode, &b"x"[..], "not a file of frames"),
        (Task::Sigs, b"x", "not a file of signed commits"),
        (Task::Schnorr, b"\xff", "not lines of UTF-8"),
        (Task::Mst, b"x", "not a file of records"),
    ] {
        let file = dir.0.path().join("file");
        fs::write(&file, content).unwrap();
        let plan = Plan { tasks: vec![task], corpus: Some(file), ..dir.plan(&["honest"]) };
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
fn records_and_lookups_have_their_own_units_and_a_root_is_a_count() {
    let dir = TestDir::new();
    dir.add_records(Some(RECORDS));
    let results = of_task(Task::Mst, dir.plan(&["builder"]));
    let rows: Vec<_> =
        results.rows.iter().map(|row| (&*row.variant, &*row.unit, row.units)).collect();
    assert_eq!(rows, [("insert-root/ascending", "record", 2), ("lookup", "lookup", 3)]);
    assert!(results.rows.iter().all(|row| row.is_ranked() && row.note.is_none()), "{results:?}");
    assert_eq!(results.rows[0].counts.text("root"), Some("bafyreiroot"));
}

#[test]
fn records_without_a_description_are_built_by_the_reference_tree() {
    let dir = TestDir::new();
    dir.add_records(None);
    let results = of_task(Task::Mst, dir.plan(&["builder"]));
    let root = results.rows[0].note.as_deref().unwrap();
    assert!(root.starts_with("root bafyreiroot instead of bafyrei"), "{root}");
    assert!(results.rows[1].note.as_deref().unwrap().starts_with("lookup_checksum 7 instead of"));
}

const REPOSITORY: &str = r#"{"did": "did:plc:a", "signing_key": "did:key:z", "counts":
    {"repositories": 1, "records": 4, "root": "bafyreiroot"}}"#;

#[test]
fn stages_are_recorded_for_every_pass_and_have_a_table() {
    let dir = TestDir::new();
    dir.add_repository(REPOSITORY);
    let results = of_task(Task::Repo, dir.plan(&["stager"]));
    let [total, rebuilt] = &results.rows[..] else { panic!("{results:?}") };
    assert!(total.is_ranked() && rebuilt.is_ranked(), "{results:?}");
    assert_eq!(total.stages_ns["parse"], [1_000_000; 3]);
    assert_eq!(total.stages_ns.keys().collect::<Vec<_>>(), ["parse", "walk"]);
    assert_eq!(rebuilt.stages_ns["rebuild"], [3_000_000; 3]);
    let text = terminal::text(&results, None);
    assert!(text.contains("parse ms  walk ms  rebuild ms"), "{text}");
}

#[test]
fn a_rebuilt_tree_must_have_the_same_root() {
    let dir = TestDir::new();
    dir.add_repository(&REPOSITORY.replace("bafyreiroot", "bafyreiother"));
    let results = of_task(Task::Repo, dir.plan(&["stager"]));
    let note = "root bafyreiroot instead of bafyreiother";
    let rebuilt = format!("rebuilt_{note}; {note}");
    assert_eq!(results.rows[0].note.as_deref(), Some(note));
    assert_eq!(results.rows[1].note, Some(rebuilt));
}

#[test]
fn a_repository_without_an_owner_is_rejected() {
    let dir = TestDir::new();
    let plan = Plan { tasks: vec![Task::Repo], ..dir.plan(&["stager"]) };
    dir.add_repository(r#"{"did": "did:plc:a"}"#);
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::NoOwner(_)), "{error}");
    dir.add_repository(r#"{"did": "did:plc:a", "signing_key": "did:key:z"}"#);
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(
        error.to_string().contains("the signing_key in the sidecar file is not a key"),
        "{error}"
    );
}

#[test]
fn a_repository_without_counts_is_verified_by_our_own_implementation() {
    let dir = TestDir::new();
    dir.add_repository(&format!(r#"{{"did": "did:plc:a", "signing_key": "{KEY}"}}"#));
    let results = of_task(Task::Repo, dir.plan(&["stager"]));
    let note = results.rows[0].note.as_deref().unwrap();
    assert!(note.contains("root bafyreiroot instead of car/"), "{note}");
}

/// The key of the test vectors, in a DID document and alone.
const KEY: &str = "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme";

#[test]
fn accounts_reach_a_runner_as_keys_from_either_form() {
    let document = serde_json::json!([{"did": "did:plc:a", "didDoc": {
        "id": "did:plc:a", "verificationMethod": [
            {"id": "did:plc:a#other", "type": "Multikey", "controller": "did:plc:a",
                "publicKeyMultibase": "zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo"},
            {"id": "did:plc:a#atproto", "type": "Multikey", "controller": "did:plc:a",
                "publicKeyMultibase": &KEY["did:key:".len()..]},
        ],
    }}]);
    for accounts in [document, serde_json::json!({"did:plc:a": KEY})] {
        let dir = TestDir::new();
        dir.describe(&format!(r#"{{"verdicts": {{"frames": 2, "key": "{KEY}"}}}}"#));
        dir.add_accounts(&accounts.to_string());
        let results = of_task(Task::Commit, dir.plan(&["clerk"]));
        assert!(results.rows[0].is_ranked(), "{results:?}");
    }
}

#[test]
fn frames_without_accounts_are_rejected() {
    let dir = TestDir::new();
    let plan = Plan { tasks: vec![Task::Commit], ..dir.plan(&["clerk"]) };
    let error = run(&plan, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("accounts.json"), "{error}");
}

#[test]
fn a_peer_without_the_tasks_is_unavailable_only_if_it_was_requested() {
    let dir = TestDir::new();
    let requested = dir.measure(&["honest", "signer"]);
    assert_eq!(requested.unavailable[0].peer, "signer");
    let runners = dir.0.path().join("runners");
    for name in ["honest", "signer"] {
        let from = dir.plan(&[]).runners.unwrap();
        fs::create_dir_all(runners.join(name)).unwrap();
        fs::copy(from.join("fake.sh"), runners.join("fake.sh")).unwrap();
        fs::copy(from.join(name).join("runner"), runners.join(name).join("runner")).unwrap();
    }
    let all =
        run(&Plan { peers: None, runners: Some(runners), ..dir.plan(&[]) }, &mut |_| {}).unwrap();
    assert_eq!(all.unavailable, []);
    assert_eq!(all.rows.len(), 1);
}
