//! The runners of the guide do the claimed work, and the tables of a run are as the guide shows them.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

const COMMAND: &str = env!("CARGO_BIN_EXE_wireproof");

/// A short run of the peers in the guide's folder of runners, and of ourselves.
fn bench(work_dir: &TempDir, args: &[&str]) -> Command {
    let runners = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/examples/runners");
    let mut command = crate::command(&["bench"]);
    command.args(["--quick", "--passes", "2", "--warmup", "0", "--runners"]);
    command.arg(runners).arg("--work-dir").arg(work_dir.path()).args(args);
    command.env("VERIFY_COMMAND", format!("{COMMAND} verify"));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

fn results(command: &mut Command) -> Value {
    serde_json::from_str(&stdout(command.args(["--json", "-"]))).unwrap()
}

/// Variant, parity, and whether there is a speed, of a peer's rows.
fn rows<'r>(results: &'r Value, peer: &str) -> Vec<(&'r str, &'r str, bool)> {
    let rows = results["rows"].as_array().unwrap().iter().filter(|row| row["peer"] == peer);
    let text = |row: &'r Value, name: &str| row[name].as_str().unwrap();
    rows.map(|row| (text(row, "variant"), text(row, "parity"), row["per_s"].is_object())).collect()
}

#[test]
fn the_runner_in_python_counts_every_frame_correctly() {
    conformance::program!("python3");
    let work_dir = tempfile::tempdir().unwrap();
    let results = results(&mut bench(&work_dir, &["decode", "--peers", "python-by-hand"]));
    assert_eq!(results["unavailable"], Value::Array(Vec::new()), "{results}");
    let found = rows(&results, "python-by-hand");
    assert_eq!(found, [("verified", "ok", true), ("unverified", "ok", true)]);
    assert_eq!(results["rows"][0]["note"], Value::Null, "every count is given");
}

#[test]
fn the_runner_in_shell_wraps_a_command_that_verifies_a_repository() {
    let work_dir = tempfile::tempdir().unwrap();
    let results = results(&mut bench(&work_dir, &["repo", "--peers", "shell-command"]));
    assert_eq!(rows(&results, "shell-command"), [("total", "ok", true)], "{results}");
}

#[test]
fn the_runner_in_shell_passes_every_hostile_repository_to_the_command() {
    let work_dir = tempfile::tempdir().unwrap();
    let results = results(&mut bench(&work_dir, &["hostile", "--peers", "shell-command"]));
    let row = &results["rows"][0];
    assert_eq!((&row["variant"], &row["parity"]), (&"repo".into(), &"ok".into()), "{row}");
    assert!(row["cases"].as_array().unwrap().len() > 50);
}

#[test]
fn a_command_that_accepts_everything_is_a_mismatch() {
    let work_dir = tempfile::tempdir().unwrap();
    let mut command = bench(&work_dir, &["hostile", "--peers", "shell-command"]);
    let results = results(command.env("VERIFY_COMMAND", "true"));
    let row = &results["rows"][0];
    assert_eq!((&row["parity"], &row["counts"]["refused"]), (&"mismatch".into(), &0.into()));
}

#[test]
fn a_table_comes_with_its_units_and_a_paragraph_of_ratio_spread_and_checks() {
    let work_dir = tempfile::tempdir().unwrap();
    let peers = ["repo", "--peers", "wireproof,shell-command", "--baseline", "shell-command"];
    let text =
        stdout(&mut bench(&work_dir, &peers)).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "repo: 1 repository of 10,000 records",
        "peer variant ms min – max MB/s ratio checks parity",
        "× shell-command (total), the next",
        "wireproof makes every check, shell-command makes 4 of 20 checks.",
        "3 of 3 rows proved equal work, by their counts of",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn colour_is_for_terminals_and_on_request() {
    let work_dir = tempfile::tempdir().unwrap();
    let is_coloured = |args: &[&str], variable: Option<&str>| {
        let args = [&["repo", "--peers", "shell-command"], args].concat();
        let mut command = bench(&work_dir, &args);
        if let Some(variable) = variable {
            command.env(variable, "1");
        }
        stdout(&mut command).contains('\u{1b}')
    };
    assert!(!is_coloured(&[], None));
    assert!(is_coloured(&["--color", "always"], None));
    assert!(is_coloured(&[], Some("CLICOLOR_FORCE")));
    assert!(!is_coloured(&["--color", "never"], Some("CLICOLOR_FORCE")));
    assert!(!is_coloured(&[], Some("NO_COLOR")));
}
