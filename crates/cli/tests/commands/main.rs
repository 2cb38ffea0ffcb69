//! Output, exit codes and messages of the commands, run as processes.
//!
//! | module | commands |
//! |---|---|
//! | `files` | `inspect`, `corpus`, `completions`, `bench`, and usage errors |
//! | `bench` | `bench` with peers that must be built first, and without a checkout |
//! | `codes` | the codes of the program, the page and the schemas |
//! | `config` | precedence of flags, environment and files; `config show` |
//! | `doctor` | `doctor cpu`, `--backend` |
//! | `features` | parts built with a feature only |
//! | `doctor_host` | `doctor host URL`: verdict, exit codes, forms of output |
//! | `doctor_account` | `doctor DID` with every fault of a simulated network |
//! | `frames` | `frames verify` |
//! | `keys` | `key`, `sig verify` |
//! | `proofs` | `verify`, `repo`, `plc verify` on files |
//! | `many` | `verify`, `repo stats` and `resolve` of many inputs and of standard input |
//! | `network` | `resolve`, `verify` and `bench verify` of accounts |
//! | `nostr` | `nostr`, `corpus nostr` |
//! | `report` | `report`, `bench compare` |
//! | `guide` | the runners of the guide, and the tables of a run |
//! | `schemas` | every JSON document that these tests read follows the schema of its command |
//! | `sim` | `sim serve` |
//! | `standard_streams` | `-` in the arguments of every command |

#![forbid(unsafe_code)]

mod bench;
mod codes;
mod config;
mod doctor;
mod doctor_account;
mod doctor_host;
mod downloads;
mod features;
mod files;
mod frames;
mod guide;
mod keys;
mod many;
mod network;
mod nostr;
mod proofs;
mod report;
#[path = "../schemas/mod.rs"]
mod schemas;
mod sim;
#[cfg(target_os = "linux")]
mod small_repositories;
mod standard_streams;

use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;

/// The command with these arguments.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    // Not the state of whoever runs the tests.
    command.args(args).env("XDG_STATE_HOME", "/nonexistent");
    command
}

/// Runs the command with these arguments.
fn run(args: &[&str]) -> Assert {
    command(args).assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

/// The JSON document on standard output, which follows the schema of its command.
fn json(assert: &Assert) -> Value {
    let document = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    if let Some(schema) = schema_of(assert) {
        schemas::check(&schema, &document);
    }
    document
}

/// The lines of JSON on standard output, which follow the schema of their command.
fn json_lines(assert: &Assert) -> Vec<Value> {
    let schema = schema_of(assert).expect("a schema of the lines");
    let lines = stdout(assert);
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.inspect(|line| schemas::check(&schema, line)).collect()
}

/// The name of the schema of a command: its words, as `repo-stats`. `bench` has its own format.
fn schema_of(assert: &Assert) -> Option<String> {
    let report = assert.to_string();
    let words = report.lines().next()?.split('"').skip(1).step_by(2);
    let words: Vec<&str> = words.skip_while(|word| !word.ends_with("wireproof")).skip(1).collect();
    let both = words.get(..2).map(|words| words.join("-"));
    both.into_iter().chain(words.first().map(|word| (*word).to_owned())).find(|of| schemas::has(of))
}

/// Puts a program at a path. Where that is possible it is the same file: one that a process still writes cannot be started.
fn link(program: impl AsRef<Path>, path: &Path) {
    let program = program.as_ref();
    std::fs::hard_link(program, path).or_else(|_| std::fs::copy(program, path).map(drop)).unwrap();
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The peak of the command's resident memory in bytes, read while it runs.
#[cfg(target_os = "linux")]
fn peak_bytes(args: &[&str]) -> u64 {
    // A run can end before it is read for the first time.
    let kilobytes = std::iter::repeat_with(|| peak_kilobytes(args)).take(100).flatten().next();
    kilobytes.expect("a hundred runs are not all over at once") * 1024
}

#[cfg(target_os = "linux")]
fn peak_kilobytes(args: &[&str]) -> Option<u64> {
    use std::process::{Command, Stdio};
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let mut child = command.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (status, mut peak) = (format!("/proc/{}/status", child.id()), None);
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        // A process that has ended has no memory, and no such line.
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = kilobytes.or(peak);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    peak
}
