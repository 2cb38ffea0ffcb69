//! Output, exit codes and messages of the commands, run as processes.
//!
//! | module | commands |
//! |---|---|
//! | `files` | `inspect`, `corpus`, `completions`, `bench`, and usage errors |
//! | `config` | precedence of flags, environment and files; `config show` |
//! | `keys` | `key`, `sig verify` |
//! | `proofs` | `verify`, `repo`, `frames verify`, `plc verify` on files |
//! | `network` | `resolve`, `verify` and `bench verify` of accounts |
//! | `nostr` | `nostr`, `corpus nostr` |
//! | `report` | `report`, `bench compare` |
//! | `guide` | the runners of the guide, and the tables of a run |
//! | `sim` | `sim serve` |

#![forbid(unsafe_code)]

mod config;
mod downloads;
mod files;
mod guide;
mod keys;
mod network;
mod nostr;
mod proofs;
mod report;
mod sim;

use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use serde_json::Value;

/// The command with these arguments.
fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(args);
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

/// The JSON document on standard output.
fn json(assert: &Assert) -> Value {
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
