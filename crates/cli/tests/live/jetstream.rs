//! The lines of `follow --jetstream`.

use std::path::Path;
use std::process::Command;

use simnet::servers::{Server, Simulation, Spec};

use crate::{Running, lines, seqs, stderr};

/// A small network with a Jetstream, and commits that it replays.
pub(crate) fn with_jetstream(prepared: usize) -> Simulation {
    let spec = Spec {
        accounts: 6,
        records: 5,
        pds: 1,
        relays: 0,
        initial_commits: prepared,
        ..Spec::default()
    };
    Simulation::start(spec).unwrap()
}

/// `follow` from the oldest event of the Jetstream, with its state in `dir`.
pub(crate) fn follow(sim: &Simulation, dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["follow", "--development", "--cursor", "oldest"]);
    command.args(["--host", &sim.url(Server::Jetstream(0)), "--state"]).arg(dir.join("state"));
    command.args(args).env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

#[test]
fn both_versions_have_the_same_events_and_none_is_verified() {
    let sim = with_jetstream(30);
    let count = sim.sent_count(Server::Jetstream(0)).to_string();
    let printed = ["1", "2"].map(|version| {
        let dir = tempfile::tempdir().unwrap();
        let version = format!("--jetstream={version}");
        lines(follow(&sim, dir.path(), &[&version, "--events", &count]))
    });
    for line in printed.iter().flatten() {
        assert_eq!((&line["kind"], &line["verdict"]), (&"commit".into(), &"not-asked".into()));
        assert!(line["seq"].is_u64() && line["rev"].is_string() && line["time"].is_string());
        let op = &line["ops"][0];
        assert!(op["collection"].is_string() && op["rkey"].is_string(), "{line}");
        assert_eq!(op["record"].is_object(), op["action"] != "delete", "{line}");
    }
    let ops = |lines: &[serde_json::Value]| -> Vec<_> {
        lines
            .iter()
            .map(|line| (line["did"].clone(), line["rev"].clone(), line["ops"].clone()))
            .collect()
    };
    assert_eq!(ops(&printed[0]), ops(&printed[1]));
}

#[test]
fn what_needs_verified_events_is_refused_with_the_reason() {
    let (sim, dir) = (with_jetstream(1), tempfile::tempdir().unwrap());
    let refused_condition = if cfg!(feature = "where") {
        "--where: the cursor of a Jetstream"
    } else {
        "--where needs the feature `where`"
    };
    for (args, expected) in [
        (&["--where", "live"][..], refused_condition),
        (&["--admin", "127.0.0.1:0"], "--admin: its states, histories and destinations"),
        (&["--proof", "frame"], "cannot be used with '--proof <FORM>'"),
        (&["--to", "sqlite:tables.db"], "leave out --jetstream"),
    ] {
        let args = [&["--jetstream"], args].concat();
        let output = follow(&sim, dir.path(), &args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(sim.connection_count(), 0);
}

#[test]
fn a_run_resumes_after_the_last_line_of_the_previous_one() {
    let (sim, dir) = (with_jetstream(20), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &["--jetstream", "--compress"]));
    let mut printed = running.take(sim.sent_count(Server::Jetstream(0)) as usize);
    let (rest, code) = running.interrupt();
    assert_eq!((rest.len(), code), (0, Some(130)));
    sim.write_commits(10);
    let all = sim.sent_count(Server::Jetstream(0)) as usize;
    let count = (all - printed.len()).to_string();
    printed.extend(lines(follow(&sim, dir.path(), &["--jetstream", "--events", &count])));
    let seqs = seqs(&printed);
    assert!(seqs.is_sorted_by(|a, b| a < b) && seqs.len() == all, "{seqs:?}");
}

#[test]
fn events_with_one_time_are_printed_once_whatever_run_ends_between_them() {
    let spec = Spec {
        accounts: 6,
        records: 5,
        pds: 1,
        relays: 0,
        initial_commits: 20,
        jetstream_shared_times: true,
        ..Spec::default()
    };
    let (sim, dir) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let all = sim.sent_count(Server::Jetstream(0)) as usize;
    let op = |line: &serde_json::Value| {
        (line["seq"].as_u64().unwrap(), format!("{} {} {}", line["did"], line["rev"], line["ops"]))
    };
    let whole = tempfile::tempdir().unwrap();
    let count = all.to_string();
    let expected = lines(follow(&sim, whole.path(), &["--jetstream=1", "--events", &count]));
    let expected: Vec<_> = expected.iter().map(op).collect();
    let times: std::collections::BTreeSet<u64> = expected.iter().map(|(seq, _)| *seq).collect();
    assert!(times.len() < all, "several have one time");
    let mut printed = Vec::new();
    while printed.len() < all {
        let one = lines(follow(&sim, dir.path(), &["--jetstream=1", "--events", "1"]));
        printed.extend(one.iter().map(op));
    }
    assert_eq!(printed, expected);
}

#[test]
fn compression_of_version_1_requires_a_dictionary() {
    let (sim, dir) = (with_jetstream(0), tempfile::tempdir().unwrap());
    let output = follow(&sim, dir.path(), &["--jetstream=1", "--compress"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let output = follow(&sim, dir.path(), &["--compress"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
