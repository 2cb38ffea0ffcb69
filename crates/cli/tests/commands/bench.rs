//! `wireproof bench` with peers that must be built first, by tools that are shell scripts: the output, and its
//! timing.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

/// A folder of runners with the peers `go-first` and `go-second`, and one that needs no build.
struct Runners(TempDir);

impl Runners {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/tests/runners/fake.sh");
        fs::create_dir_all(dir.path().join("runners")).unwrap();
        fs::copy(fake, dir.path().join("runners/fake.sh")).unwrap();
        for peer in ["go-first", "go-second", "ready"] {
            let folder = dir.path().join("runners").join(peer);
            fs::create_dir(&folder).unwrap();
            let source = if peer == "ready" { "runner" } else { "main.go" };
            write_script(&folder.join(source), ". ../fake.sh\nserve");
        }
        fs::create_dir(dir.path().join("tools")).unwrap();
        // `go version`, or `go build -buildvcs=false -o PROGRAM .`
        write_script(
            &dir.path().join("tools/go"),
            "case $1 in version) echo go 0 ;; *) echo built >> ../../builds; cp main.go \"$4\" ;; esac",
        );
        Self(dir)
    }

    /// A short run of the task `decode`.
    fn bench(&self, args: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = crate::command(&["bench", "decode", "--quick", "--passes", "1"]);
        command.args(["--warmup", "0"]).args(args);
        command.arg("--runners").arg(self.0.path().join("runners"));
        command.arg("--work-dir").arg(self.0.path().join("work"));
        command.env("PATH", format!("{}:{path}", self.0.path().join("tools").display()));
        command
    }

    fn builds(&self) -> usize {
        fs::read_to_string(self.0.path().join("builds")).unwrap_or_default().lines().count()
    }
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Standard output and standard error.
fn printed(command: &mut Command) -> [String; 2] {
    let run = command.assert().success();
    [&run.get_output().stdout, &run.get_output().stderr]
        .map(|bytes| String::from_utf8(bytes.clone()).unwrap())
}

/// The lines of progress without their times.
fn steps(stderr: &str) -> Vec<&str> {
    stderr
        .lines()
        .map(|line| line.split_once("] ").unwrap_or_else(|| panic!("{stderr}")).1)
        .collect()
}

#[test]
fn the_first_table_does_not_wait_for_builds_and_names_the_peers_that_do() {
    let runners = Runners::new();
    let [stdout, _] = printed(&mut runners.bench(&[]));
    let tables: Vec<&str> = stdout.split("decode: ").collect();
    let [_, first, second] = tables[..] else { panic!("{stdout}") };
    assert!(first.contains("ready") && first.contains("wireproof"), "{first}");
    assert!(first.contains("decode is measured again when all of its peers are built"), "{first}");
    assert!(first.contains("go-first, go-second: waits for its build"), "{first}");
    assert!(second.contains("go-first verified: ") && !second.contains("waits"), "{second}");
    assert_eq!(runners.builds(), 2);
}

#[test]
fn a_run_with_all_peers_built_prints_each_table_once_and_builds_nothing() {
    let runners = Runners::new();
    let peers = ["--peers", "go-first,ready"];
    printed(&mut runners.bench(&peers));
    let [stdout, stderr] = printed(&mut runners.bench(&peers));
    assert_eq!(stdout.matches("decode: ").count(), 1, "{stdout}");
    assert!(!stderr.contains("build"), "{stderr}");
    assert_eq!(runners.builds(), 1);
}

#[test]
fn without_a_terminal_each_step_is_a_line_with_elapsed_and_expected_time() {
    let runners = Runners::new();
    let [_, stderr] = printed(&mut runners.bench(&["--peers", "go-first,go-second,ready"]));
    assert!(stderr.starts_with("[ 0:00 of about "), "{stderr}");
    let expected = [
        "generate firehose-frames.bin",
        "decode: prove 1 rows",
        "decode: measure 1 passes",
        "build go-first (1 of 2)",
        "build go-second (2 of 2)",
        "decode: prove 3 rows",
        "decode: measure 3 passes",
    ];
    assert_eq!(steps(&stderr), expected);
}

#[test]
fn results_hold_the_rows_of_the_whole_task_alone() {
    let runners = Runners::new();
    let [stdout, _] = printed(&mut runners.bench(&["--peers", "go-first,ready", "--json", "-"]));
    let results: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let rows = results["rows"].as_array().unwrap();
    let peers: Vec<_> = rows.iter().map(|row| row["peer"].as_str().unwrap()).collect();
    assert_eq!(peers.len(), 2);
    assert!(peers.contains(&"go-first") && peers.contains(&"ready"), "{peers:?}");
}

#[test]
fn rust_peers_of_another_profile_are_built_for_quick_runs_alone_and_never_measured_for_release() {
    let runners = Runners::new();
    let peer = runners.0.path().join("runners/rust-first");
    fs::create_dir_all(peer.join("src")).unwrap();
    write_script(&peer.join("src/main.rs"), ". ../fake.sh\nserve");
    let tools = runners.0.path().join("tools");
    write_script(&tools.join("rustc"), "echo rustc 0");
    // `cargo build --locked --profile NAME`
    let build =
        "mkdir -p \"$CARGO_TARGET_DIR/$4\" && cp src/main.rs \"$CARGO_TARGET_DIR/$4/rust-first\"";
    write_script(&tools.join("cargo"), &format!("echo \"$4\" >> ../../builds; {build}"));
    let run = |profile: &str| {
        let mut bench = runners.bench(&["--peers", "rust-first"]);
        printed(bench.env("WIREPROOF_RUST_PROFILE", profile))
    };
    for profile in ["parity", "release", "release", "parity"] {
        run(profile);
    }
    let builds = fs::read_to_string(runners.0.path().join("builds")).unwrap();
    assert_eq!(builds, "parity\nrelease\nparity\n");
    for (profile, recorded) in [("parity", true), ("release", false)] {
        let mut bench = runners.bench(&["--peers", "rust-first", "--json", "-"]);
        let [stdout, _] = printed(bench.env("WIREPROOF_RUST_PROFILE", profile));
        let results: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        let named = &results["machine"]["toolchains"]["rust profile"];
        assert_eq!(named.as_str(), recorded.then_some(profile));
    }
    let mut measured = crate::command(&["bench", "decode", "--peers", "rust-first"]);
    measured.env("WIREPROOF_RUST_PROFILE", "parity");
    measured.arg("--work-dir").arg(runners.0.path().join("work"));
    let refused = measured.assert().code(2);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(stderr.contains("with the profile parity"), "{stderr}");
}

#[test]
fn a_run_under_a_limit_of_instruction_sets_says_so_and_measures_our_rows_under_it() {
    let work_dir = tempfile::tempdir().unwrap();
    let mut command = crate::command(&["--backend", "portable", "bench", "commit", "--quick"]);
    command.args(["--passes", "1", "--warmup", "0", "--peers", "wireproof", "--json", "-"]);
    // A run waits for another one in the same folder.
    command.arg("--work-dir").arg(work_dir.path());
    let [stdout, _] = printed(&mut command);
    let results: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(results["settings"]["backend"], "portable");
    assert!(!results["rows"].as_array().unwrap().is_empty(), "{results}");
}

#[test]
#[cfg(feature = "full")]
fn archives_are_smaller_in_each_form_and_every_query_is_answered() {
    let work_dir = tempfile::tempdir().unwrap();
    let mut command = crate::command(&["bench", "archive", "--quick", "--passes", "2", "--json"]);
    command.args(["--operations", "10", "--work-dir"]).arg(work_dir.path());
    let [stdout, _] = printed(&mut command);
    let results: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let corpora = results["corpora"].as_array().unwrap();
    assert_eq!(corpora.len(), 2);
    for corpus in corpora {
        let number = |name: &str| corpus[name].as_u64().unwrap();
        assert!(number("raw_bytes") > 2 * number("full_bytes"), "{corpus}");
        assert!(number("full_bytes") > 2 * number("compact_bytes"), "{corpus}");
        assert!(number("raw_bytes") > number("zstd_bytes"), "{corpus}");
        assert_eq!(number("compact_commits"), number("commits"));
        for seconds in ["verdict_seconds", "full_seconds", "compact_seconds"] {
            assert_eq!(corpus[seconds].as_array().unwrap().len(), 2, "{corpus}");
        }
    }
    let stored = &corpora[0]["repositories"];
    let bytes = |name: &str| stored[name].as_u64().unwrap();
    assert!(bytes("car_bytes") > 3 * bytes("archive_bytes"), "{stored}");
    assert_eq!(results["queries"]["operations"], 10_000);
    let queries = results["queries"]["rows"].as_array().unwrap();
    assert!(queries.iter().all(|query| query["rows"].as_u64().unwrap() > 0), "{queries:?}");
    assert_eq!(queries[1]["rows"], queries[2]["rows"]);
    // Nothing is left of the archives.
    assert_eq!(std::fs::read_dir(work_dir.path()).unwrap().count(), 0);
}

#[test]
fn a_program_without_a_checkout_measures_itself_and_runs_no_peer_of_the_current_folder() {
    let dir = tempfile::tempdir().unwrap();
    let stranger = dir.path().join("bench/runners/stranger");
    fs::create_dir_all(&stranger).unwrap();
    fs::write(dir.path().join("bench/runners/tasks.json"), "{}").unwrap();
    write_script(&stranger.join("runner"), "touch ../../../run");
    // Not the program in the target folder of this checkout, which has its peers.
    let program = dir.path().join("wireproof");
    let built = Path::new(env!("CARGO_BIN_EXE_wireproof"));
    crate::link(built, &program);
    crate::link(built.with_file_name("wireproof-bench"), &dir.path().join("wireproof-bench"));
    let mut command = Command::new(program);
    command.args(["bench", "commit", "--quick", "--passes", "1", "--warmup", "0"]);
    command.current_dir(&dir).env("XDG_CACHE_HOME", dir.path().join("cache"));
    for variable in ["CARGO_MANIFEST_DIR", "WIREPROOF_BENCH_RUNNERS", "WIREPROOF_BENCH_WORK_DIR"] {
        command.env_remove(variable);
    }
    let [stdout, _] = printed(&mut command);
    assert!(stdout.contains("wireproof") && stdout.contains("commit: "), "{stdout}");
    let text = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing = "not available go-atmos, go-indigo, python-wireproof, rust-jacquard, rust-shrike, ts-atproto, ts-wireproof, zig-zat: no source";
    assert!(text.contains(missing), "{text}");
    assert!(text.contains("--runners"), "{text}");
    assert!(!dir.path().join("run").exists(), "{stdout}");
    assert!(dir.path().join("cache/wireproof/bench/results.json").is_file());
}

/// `bench claims` of one peer.
fn claims(runners: &Runners, peer: &str) -> Command {
    let mut command = crate::command(&["bench", "claims", "--peers", peer]);
    command.arg("--runners").arg(runners.0.path().join("runners"));
    command.arg("--work-dir").arg(runners.0.path().join("work"));
    command
}

#[test]
fn every_check_that_our_own_rows_claim_is_proved() {
    let [stdout, _] = printed(&mut claims(&Runners::new(), "wireproof"));
    assert!(!stdout.contains("fault"), "{stdout}");
    for row in ["decode verified/", "sigs full:", "repo total:", "commit full/batch:"] {
        assert!(stdout.contains(&format!("wireproof {row}")), "{stdout}");
    }
}

#[test]
fn a_false_claim_is_named_with_the_accepted_input_and_ends_the_command_with_code_1() {
    let run = claims(&Runners::new(), "ready").assert().code(1);
    let stdout = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    assert!(stdout.contains("fault: utf8 is claimed: frame (decode-"), "{stdout}");
}
