//! `archive import-jetstream`: lines, texts, exit codes, and the archive at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use simnet::servers::{Fault, FaultSchedule, HostedArchive, Server, Simulation, Spec};

use crate::{schemas, stderr};

const JETSTREAM: Server = Server::Jetstream(0);

fn network() -> Simulation {
    let archive = HostedArchive {
        events_per_block: 32,
        token: Some("secret-of-the-server".to_owned()),
        ..HostedArchive::default()
    };
    Simulation::start(Spec { accounts: 9, archive, ..Spec::default() }).unwrap()
}

fn import(sim: &Simulation, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let source = format!("jetstream+{}", sim.url(JETSTREAM));
    command.args(["archive", "import", &source, "--development", "--plc"]);
    command.arg(sim.url(Server::Plc)).args(["--max-rate", "1000"]).args(args);
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command.env("WIREPROOF_JETSTREAM_TOKEN", "secret-of-the-server");
    command
}

/// The lines of accounts by DID, and the summary.
fn lines(output: &Output) -> (BTreeMap<String, Value>, Value) {
    let lines = str::from_utf8(&output.stdout).unwrap().lines();
    let mut lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|line| schemas::check("archive-import-jetstream", line));
    let summary = lines.pop().unwrap_or_default();
    let by_did = lines.into_iter().map(|line| (line["did"].as_str().unwrap().to_owned(), line));
    (by_did.collect(), summary)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn an_honest_archive_is_proved_stored_and_proved_again_from_the_tables() {
    let (sim, dir) = (network(), tempfile::tempdir().unwrap());
    let folder = dir.path().join("archive");
    let output = import(&sim, &["--to", text(&folder), "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (accounts, summary) = lines(&output);
    assert_eq!((accounts.len(), &summary["stored_count"]), (9, &9.into()));
    for expected in sim.expected_accounts() {
        let line = &accounts[&expected.account.did];
        assert_eq!(
            (&line["verdict"], &line["rev"]),
            (&"proved".into(), &expected.rev.to_string().into())
        );
    }
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        let output = command.args(args).env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let verified = run(&["archive", "verify", text(&folder), "--json"]);
    assert_eq!(verified["proved_snapshot_count"], 9);
    let status = run(&["backfill", "status", text(&folder), "--name", "jetstream", "--json"]);
    assert_eq!(status["stored_count"], 9);
    assert!(!stderr(&output).contains("secret-of-the-server"));
}

#[test]
fn wrong_accounts_end_with_exit_code_1_and_their_paths() {
    let sim = network();
    sim.faults().enable(JETSTREAM, Fault::ForgedRecord, FaultSchedule::ONCE);
    let output = import(&sim, &["--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let (accounts, summary) = lines(&output);
    assert_eq!((&summary["wrong_count"], &summary["proved_count"]), (&1.into(), &8.into()));
    let wrong = accounts.values().find(|line| line["verdict"] == "wrong").unwrap();
    let path = wrong["unsigned"]["paths"][0].as_str().unwrap();
    let output = import(&sim, &[]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains(&format!("unsigned {path}")), "{printed}");
    assert!(printed.contains("8 proved"), "{printed}");
}

#[test]
fn a_sample_states_its_bound_and_a_seed_repeats_it() {
    let (sim, dir) = (network(), tempfile::tempdir().unwrap());
    let token = dir.path().join("token");
    fs::write(&token, "secret-of-the-server\n").unwrap();
    let args = ["--sample", "4", "--json", "--token-file", text(&token)];
    let output = import(&sim, &args).env_remove("WIREPROOF_JETSTREAM_TOKEN").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (accounts, summary) = lines(&output);
    let sample = &summary["sample"];
    assert_eq!((accounts.len(), &sample["decided_count"]), (4, &4.into()));
    let seed = sample["seed"].to_string();
    let again = import(&sim, &[&args[..3], &["--seed", &seed]].concat()).output().unwrap();
    assert!(lines(&again).0.keys().eq(accounts.keys()));
    let printed = import(&sim, &["--sample", "4", "--seed", &seed]).output().unwrap();
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(
        printed.contains(&format!("seed {seed}")) && printed.contains("at most 52.713 %"),
        "{printed}"
    );
}

#[test]
fn refusals_of_the_server_and_of_arguments_have_their_exit_codes() {
    let (sim, dir) = (network(), tempfile::tempdir().unwrap());
    let code = |command: &mut Command| {
        let output = command.output().unwrap();
        (output.status.code(), stderr(&output))
    };
    let mut without = import(&sim, &[]);
    let (exit, message) = code(without.env_remove("WIREPROOF_JETSTREAM_TOKEN"));
    assert_eq!(exit, Some(3), "{message}");
    assert!(message.contains("AuthMissing"), "{message}");
    let token = dir.path().join("token");
    fs::write(&token, "two words").unwrap();
    let (exit, message) = code(&mut import(&sim, &["--token-file", text(&token)]));
    assert!(exit == Some(2) && !message.contains("two words"), "{message}");
    let (exit, message) = code(&mut import(&sim, &["--collections", "no-name"]));
    assert_eq!(exit, Some(2), "{message}");
    sim.faults().enable(JETSTREAM, Fault::DamagedBlock, FaultSchedule::ALWAYS);
    let (exit, message) = code(&mut import(&sim, &[]));
    assert!(exit == Some(1) && message.contains("jss/compression"), "{message}");
}
