//! What is in the files of a capture, and does the benchmark take them?

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use simnet::servers::{Fault, FaultSchedule, Server, WriteRate};
use simnet::signed_commits;
use wireproof::atproto::corpus;

use crate::running::{quiet, told, wireproof};

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn commits_are_captured_with_keys_and_signatures_and_the_benchmark_takes_them() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.set_write_rate(WriteRate::PerSecond(20));
    let out = dir.path().join("corpus");
    let args = ["--seconds", "1", "--sigs", "--out", out.to_str().unwrap()];
    let output = wireproof(&sim, "capture", &args).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
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
    assert!(output.status.success(), "{}", told(&output));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!results["rows"].as_array().unwrap().is_empty());
}

#[test]
fn what_does_not_verify_is_dropped_and_counted() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    sim.set_write_rate(WriteRate::PerSecond(20));
    let args = ["--seconds", "1", "--sigs", "--out", dir.path().to_str().unwrap()];
    let output = wireproof(&sim, "capture", &args).output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let commits = fs::read(dir.path().join("signed-commits.bin")).unwrap();
    assert_eq!(signed_commits::read(&commits).unwrap().len(), 0);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains(" dropped (0 unreadable, 0 without a key, "), "{printed}");
}
