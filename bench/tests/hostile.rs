//! The task `hostile` with a peer whose behaviour is the name of the case: a shell script that accepts, rejects, crashes or
//! hangs.

#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use wireproof_bench::{
    BenchError, CaseOutcome, Expect, Outcome, Parity, Plan, Progress, Results, Row, Task, run,
    terminal,
};

/// A set of cases: files of ten bytes named after their outcomes.
struct TestDir(TempDir);

impl TestDir {
    fn new(cases: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let case = |(name, expect): &(&str, &str)| {
            let file = format!("{name}.car");
            fs::write(dir.path().join(&file), [b'c'; 10]).unwrap();
            fs::write(dir.path().join(format!("{name}.json")), SIDECAR).unwrap();
            serde_json::json!({
                "name": name, "file": file, "kind": "repo", "expect": expect, "code": "tree/order",
                "layer": "tree", "section": "Repository: MST", "rule": "Keys increase.",
                "did": "did:plc:a", "signing_key": "did:key:z", "file_bytes": 10, "sha256": "",
            })
        };
        let cases: Vec<_> = cases.iter().map(case).collect();
        let manifest = serde_json::json!({ "seed": 1, "cases": cases });
        fs::write(dir.path().join("hostile.json"), manifest.to_string()).unwrap();
        Self(dir)
    }

    fn plan(&self) -> Plan {
        Plan {
            tasks: vec![Task::Hostile],
            peers: Some(vec!["juror".to_owned()]),
            corpus: Some(self.0.path().to_owned()),
            runners: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runners")),
            work_dir: self.0.path().join("work"),
            case_limit: Duration::from_millis(1_500),
            ..Plan::default()
        }
    }

    fn judge(&self) -> Results {
        run(&self.plan(), &mut |_| {}).unwrap()
    }
}

/// The sidecar file of every case.
const SIDECAR: &str =
    r#"{"did": "did:plc:a", "signing_key": "did:key:z", "now": "2026-11-20T00:00:00Z"}"#;

fn only_row(results: &Results) -> &Row {
    let [row] = &results.rows[..] else { panic!("{results:?}") };
    row
}

fn outcome(case: &CaseOutcome) -> (&str, Outcome, &str) {
    (&case.name, case.outcome, case.reason.as_deref().unwrap_or_default())
}

#[test]
fn an_outcome_has_the_peers_own_reason_or_how_its_process_ended() {
    let names = ["accepted", "refused", "crashed", "hung", "failed", "babbled"];
    let results = TestDir::new(&names.map(|name| (name, "refuse"))).judge();
    let row = only_row(&results);
    let outcomes: Vec<_> = row.cases.iter().map(outcome).collect();
    assert_eq!(
        outcomes,
        [
            ("accepted", Outcome::Accepted, ""),
            ("refused", Outcome::Refused, "a  [2Jbad tree"),
            ("crashed", Outcome::Crashed, "ended without an answer (exit status: 7)"),
            ("hung", Outcome::Hung, "no answer within 1.5 s"),
            ("failed", Outcome::Refused, "no archive"),
            (
                "babbled",
                Outcome::Crashed,
                "the answer does not follow the protocol: <h1>good morning</h1>"
            ),
        ]
    );
    let counts = ["accepted", "refused", "crashed", "hung"].map(|name| row.counts.get(name));
    assert_eq!(counts, [Some(1), Some(2), Some(2), Some(1)]);
    assert_eq!((row.units, row.bytes, row.valid_refused), (6, 60, Some(0)));
    assert_eq!(row.parity, Parity::Mismatch);
}

#[test]
fn a_valid_case_is_not_counted_with_the_invalid_ones() {
    let results = TestDir::new(&[("accepted", "accept"), ("refused", "refuse")]).judge();
    let row = only_row(&results);
    assert_eq!(row.parity, Parity::Ok);
    assert_eq!((row.counts.get("accepted"), row.counts.get("refused")), (Some(0), Some(1)));
    assert!(row.cases.iter().all(CaseOutcome::is_right));
}

#[test]
fn a_valid_case_that_is_not_accepted_is_a_mismatch_however_it_fails() {
    let results = TestDir::new(&[("refused", "accept"), ("crashed", "accept")]).judge();
    let row = only_row(&results);
    assert_eq!((row.parity, row.valid_refused), (Parity::Mismatch, Some(2)));
    assert_eq!(row.cases[0].expect, Expect::Accept);
}

#[test]
fn a_peer_gets_the_time_and_a_memory_limit() {
    let results = TestDir::new(&[("timed", "refuse"), ("limited", "refuse")]).judge();
    let [timed, limited] = &only_row(&results).cases[..] else { panic!("{results:?}") };
    assert_eq!(outcome(timed), ("timed", Outcome::Refused, "2026-11-20T00:00:00Z"));
    assert_eq!(outcome(limited), ("limited", Outcome::Refused, "4194304"));
}

#[test]
fn each_case_is_reported_once() {
    let dir = TestDir::new(&[("refused", "refuse"), ("accepted", "accept"), ("failed", "refuse")]);
    let mut seen = Vec::new();
    run(&dir.plan(), &mut |progress| {
        if let Progress::Case { case, done, total, .. } = progress {
            assert_eq!((done, total), (seen.len() as u64 + 1, 3));
            seen.push(case.to_owned());
        }
    })
    .unwrap();
    seen.sort();
    assert_eq!(seen, ["accepted", "failed", "refused"]);
}

#[test]
fn a_path_that_a_peer_lacks_has_no_row() {
    let dir = TestDir::new(&[("accepted", "accept")]);
    let manifest = dir.0.path().join("hostile.json");
    let text = fs::read_to_string(&manifest).unwrap().replace("\"repo\"", "\"frames\"");
    fs::write(&manifest, text).unwrap();
    let results = dir.judge();
    assert_eq!((only_row(&results).units, only_row(&results).cases.len()), (0, 0));
}

#[test]
fn the_report_has_a_line_for_each_case_and_one_for_each_peer() {
    let text = terminal::text(
        &TestDir::new(&[("accepted", "refuse"), ("refused", "refuse")]).judge(),
        None,
    );
    assert!(text.starts_with("hostile: 2 cases, 0 of them valid"), "{text}");
    assert!(text.contains("accepted  refuse  **accepts**"), "{text}");
    assert!(text.contains("juror accepts 1 of 2 invalid cases."), "{text}");
}

#[test]
fn a_missing_and_a_malformed_manifest_are_rejected() {
    let dir = TestDir::new(&[]);
    let manifest = dir.0.path().join("hostile.json");
    fs::write(&manifest, "[]").unwrap();
    let error = run(&dir.plan(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, BenchError::Sidecar { .. }), "{error}");
    fs::remove_file(manifest).unwrap();
    let error = run(&dir.plan(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no hostile.json in this folder"), "{error}");
}
