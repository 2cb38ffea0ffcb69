//! The files of `capture`, and of an interrupted `verify`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::yield_now;

use atproto::corpus;
use serde_json::Value;
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, WriteRate};
use simnet::signed_commits;

use crate::{quiet, stderr, wireproof};

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn commits_are_captured_with_keys_and_signatures_and_bench_reads_the_files() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.set_write_rate(WriteRate::PerSecond(20));
    let out = dir.path().join("corpus");
    let args = ["--seconds", "1", "--sigs", "--out", out.to_str().unwrap()];
    let output = wireproof(&sim, "capture", &args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    sim.set_write_rate(WriteRate::Off);

    let file = fs::read(out.join("firehose-frames.bin")).unwrap();
    let frames = corpus::read(&file).unwrap().len();
    assert!(frames > 0);
    let described = json(&out.join("firehose-frames.json"));
    assert_eq!(
        (described["counts"]["frames"].as_u64(), described["counts"]["errors"].as_u64()),
        (Some(frames as u64), Some(0))
    );
    let commits = fs::read(out.join("signed-commits.bin")).unwrap();
    assert_eq!(signed_commits::read(&commits).unwrap().len(), frames);
    let accounts = json(&out.join("accounts.json"));
    assert!(accounts.as_object().unwrap().len() <= 6);
    let key = |did: &String| accounts[did.as_str()].as_str().unwrap().starts_with("did:key:");
    assert!(accounts.as_object().unwrap().keys().all(key));

    let mut bench = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    bench.args(["bench", "decode", "commit", "sigs", "--peers", "wireproof", "--quick"]);
    bench.args(["--passes", "1", "--warmup", "0", "--json", "-", "--corpus"]).arg(&out);
    bench.arg("--work-dir").arg(dir.path().join("work"));
    let output = bench.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!results["rows"].as_array().unwrap().is_empty());
}

#[test]
fn commits_that_do_not_verify_are_dropped_and_counted() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    sim.set_write_rate(WriteRate::PerSecond(20));
    let args = ["--seconds", "1", "--sigs", "--out", dir.path().to_str().unwrap()];
    let output = wireproof(&sim, "capture", &args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let commits = fs::read(dir.path().join("signed-commits.bin")).unwrap();
    assert_eq!(signed_commits::read(&commits).unwrap().len(), 0);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains(" dropped (0 unreadable, 0 without a key, "), "{printed}");
}

/// A `verify` of an account whose server stalls in the middle of the repository.
fn stalled(sim: &Simulation, folder: &Path) -> Child {
    sim.faults().enable(Server::Pds(0), Fault::StalledRepo, FaultSchedule::ALWAYS);
    let mut verify = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    verify.args(["verify", &sim.account(0).did, "--plc", &sim.url(Server::Plc)]);
    verify.args(["--development", "--save"]).arg(folder.join("saved.car"));
    verify.env("XDG_CONFIG_HOME", "/nonexistent").env("TMPDIR", folder);
    verify.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_interrupted_verify_leaves_no_file_and_exit_code_130() {
    for signal in ["INT", "TERM"] {
        let (sim, folder) = (quiet(), tempfile::tempdir().unwrap());
        let mut child = stalled(&sim, folder.path());
        while !sim.faults().unfired().is_empty() || names(folder.path()).is_empty() {
            assert_eq!(child.try_wait().unwrap(), None, "the process runs");
            yield_now();
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), names(folder.path())), (Some(130), vec![]), "{signal}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn an_interrupted_verify_leaves_an_existing_file_unchanged() {
    let (sim, folder) = (quiet(), tempfile::tempdir().unwrap());
    let saved = folder.path().join("saved.car");
    fs::write(&saved, "old").unwrap();
    let mut child = stalled(&sim, folder.path());
    while !sim.faults().unfired().is_empty() || names(folder.path()).len() < 2 {
        assert_eq!(child.try_wait().unwrap(), None, "the process runs");
        yield_now();
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(names(folder.path()), ["saved.car"]);
    assert_eq!(fs::read(saved).unwrap(), b"old");
}
