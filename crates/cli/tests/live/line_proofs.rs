//! `follow --proof`: every line proves again offline, and no changed one does.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use simnet::servers::{Server, Simulation};

use crate::{Running, file_lines, follow, lines, quiet, schemas, stderr, with_commits};

/// The keys of all accounts.
pub(crate) fn write_keys(sim: &Simulation, path: &Path) {
    let accounts = sim.expected_accounts();
    let keys = accounts.iter().map(|of| (of.account.did.clone(), json!(of.account.signing_key)));
    let keys = Value::Object(keys.collect());
    fs::write(path, keys.to_string()).unwrap();
}

/// Proves lines again.
pub(crate) fn verify(lines: &[Value], dir: &Path) -> (Output, Value) {
    let path = dir.join("lines.ndjson");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["frames", "verify-lines", "--json"]).arg(&path);
    let output = command.arg("--keys").arg(dir.join("keys.json")).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    if report != Value::Null {
        schemas::check("frames-verify-lines", &report);
    }
    (output, report)
}

#[track_caller]
pub(crate) fn assert_proved(lines: &[Value], dir: &Path) {
    let (output, report) = verify(lines, dir);
    assert_eq!(output.status.code(), Some(0), "{} {report}", stderr(&output));
    assert_eq!(report["proved"], lines.len(), "{report}");
}

/// Sets fields of an object.
fn merge(object: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().unwrap() {
        object[name] = value.clone();
    }
}

/// The code with which a line is refused.
#[track_caller]
fn refusal(line: Value, dir: &Path) -> String {
    let (output, report) = verify(&[line], dir);
    assert_eq!(output.status.code(), Some(1), "{} {report}", stderr(&output));
    report["findings"][0]["code"].as_str().unwrap().to_owned()
}

#[test]
fn every_line_of_a_run_proves_again_in_each_form() {
    let (sim, dir) = (with_commits(100), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    for args in [
        &["--proof", "frame"][..],
        &["--proof", "blocks"],
        &["--proof", "blocks", "--collections", "app.bsky.feed.*"],
        &["--proof", "frame", "--ops", "--workers", "1"],
        &["--proof", "blocks", "--ops", "--workers", "1"],
        &["--proof", "blocks", "--where", "has(record.createdAt)"],
    ] {
        let state = tempfile::tempdir().unwrap();
        let lines = lines(follow(&sim, state.path(), &[args, &["--events", "50"]].concat()));
        assert!(lines.len() >= 50, "{args:?}");
        assert_proved(&lines, dir.path());
    }
}

#[test]
fn the_lines_of_a_repository_prove_again() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    let (did, folder) = (sim.account(0).did, dir.path().join("events"));
    let to = format!("file:{}", folder.display());
    let args = ["--dids", &*did, "--backfill", "--proof", "frame", "--to", &*to, "--events", "2"];
    let output = follow(&sim, dir.path(), &args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = file_lines(&folder);
    let history: Vec<_> = lines.into_iter().filter(|line| line["kind"] == "resync").collect();
    assert!(!history.is_empty() && history.iter().all(|line| line["proof"]["blocks"].is_object()));
    assert_proved(&history, dir.path());
    let mut changed = history[0].clone();
    changed["ops"][0]["record"]["createdAt"] = "2020-01-01T00:00:00Z".into();
    assert_eq!(refusal(changed, dir.path()), "proof/differs");
}

#[test]
fn a_deletion_of_a_record_that_no_longer_matches_proves_that_the_record_is_there() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    let did = sim.account(1).did;
    let args = ["--dids", &*did, "--backfill", "--proof", "blocks", "--ack-stdin"];
    // Acknowledges all lines until the last of the account's repository, and returns the lines of it.
    let run = |more: &[&str]| {
        let mut command = follow(&sim, dir.path(), &[&args[..], more].concat());
        command.stdin(Stdio::piped());
        let mut running = Running::start(command);
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &Value| line["last"] != true) {
            let line = running.take(1).remove(0);
            let mut acks = running.child.stdin.as_ref().unwrap();
            writeln!(acks, "{}", line["id"].as_str().unwrap()).unwrap();
            lines.extend(Some(line).filter(|line| line["kind"] == "resync"));
        }
        assert_eq!(running.interrupt().1, Some(130));
        lines
    };
    assert!(run(&[])[0]["ops"].as_array().is_some_and(|ops| ops.len() > 4));
    sim.write_unannounced(1);
    sim.write_commit_as(1);
    let resync = run(&["--resync", "--where", "size(rkey) == 0"]);
    let ops = || resync.iter().flat_map(|line| line["ops"].as_array().unwrap());
    assert!(ops().count() > 4 && ops().all(|op| op["action"] == "delete"), "{resync:?}");
    assert!(ops().filter(|op| op["filtered"] == true).count() > 4, "{resync:?}");
    assert_proved(&resync, dir.path());
    let is_filtered = |op: &Value| op["filtered"] == true;
    let at = resync[0]["ops"].as_array().unwrap().iter().position(is_filtered).unwrap();
    let of = |fields: Value| {
        let mut line = resync[0].clone();
        merge(&mut line["ops"][at], &fields);
        refusal(line, dir.path())
    };
    assert_eq!(of(json!({"filtered": false})), "proof/differs");
    assert_eq!(of(json!({"rkey": "other"})), "proof/differs");
    for action in ["create", "update"] {
        let content = json!({"action": action, "cid": resync[0]["commit"], "record": {}});
        assert_eq!(of(content), "proof/differs");
    }
    assert_eq!(of(json!({"record": {}})), "proof/differs");
}

#[test]
fn the_line_of_a_sync_has_no_operations() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    sim.send_sync(1);
    sim.write_commits(6);
    let count = sim.sent_count(Server::Relay(0)).to_string();
    let lines = lines(follow(&sim, dir.path(), &["--proof", "frame", "--events", &count]));
    let of = |kind: &str| lines.iter().find(|line| line["kind"] == kind).unwrap().clone();
    let (sync, commit) = (of("sync"), of("commit"));
    assert_proved(std::slice::from_ref(&sync), dir.path());
    for (name, value) in [
        ("ops", commit["ops"].clone()),
        ("commit", commit["commit"].clone()),
        ("kind", "commit".into()),
        ("kind", "resync".into()),
    ] {
        let mut line = sync.clone();
        line[name] = value;
        assert_eq!(refusal(line, dir.path()), "proof/differs", "{name}");
    }
}

#[test]
fn a_line_or_a_proof_that_was_changed_is_refused_with_the_rule() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    for form in ["frame", "blocks"] {
        let state = tempfile::tempdir().unwrap();
        let args = ["--proof", form, "--events", "30"];
        let lines = lines(follow(&sim, state.path(), &args));
        let is_create = |line: &&Value| line["ops"][0]["action"] == "create";
        let line = lines.iter().find(is_create).unwrap();
        let of = |change: &dyn Fn(&mut Value)| {
            let mut line = line.clone();
            change(&mut line);
            refusal(line, dir.path())
        };
        let other = |line: &Value| line["did"].clone();
        let other = lines.iter().map(other).find(|did| *did != line["did"]).unwrap();
        assert_eq!(
            of(&|line| drop(line.as_object_mut().unwrap().remove("proof"))),
            "proof/missing"
        );
        assert_eq!(of(&|line| line["ops"][0]["record"]["createdAt"] = "x".into()), "proof/differs");
        assert_eq!(of(&|line| line["ops"][0]["cid"] = line["commit"].clone()), "proof/differs");
        assert_eq!(of(&|line| line["rev"] = "3jzfcijpj2z2a".into()), "proof/differs");
        if form == "frame" {
            assert_eq!(of(&|line| line["seq"] = 1.into()), "proof/differs");
            assert_eq!(of(&|line| line["time"] = "2020-01-01T00:00:00Z".into()), "proof/differs");
        }
        assert_eq!(of(&|line| line["ops"][0]["action"] = "delete".into()), "proof/differs");
        assert_eq!(of(&|line| line["ops"][0]["filtered"] = true.into()), "proof/differs");
        assert_eq!(of(&|line| line["ops"][0]["action"] = "move".into()), "proof/differs");
        let as_filtered = json!({"action": "delete", "filtered": true});
        if form == "frame" {
            // The commit creates the record, and only an update can end the match of one.
            assert_eq!(of(&|line| merge(&mut line["ops"][0], &as_filtered)), "proof/differs");
            assert_eq!(of(&|line| line["ops"][0]["action"] = "update".into()), "proof/differs");
        }
        assert_eq!(of(&|line| line["kind"] = "sync".into()), "proof/differs");
        let repeated = |line: &mut Value| line["ops"] = vec![line["ops"][0].clone(); 201].into();
        assert_eq!(of(&repeated), "proof/differs");
        assert_ne!(of(&|line| line["ops"][0]["rkey"] = "other".into()), "");
        assert_ne!(of(&|line| line["did"] = other.clone()), "");
        assert_eq!(of(&|line| line["did"] = "did:web:unknown.test".into()), "signature/no-key");
        // Any byte of the blocks. Around them a frame has fields that nothing proves, such as `since`.
        let base64 = line["proof"][form]["$bytes"].as_str().unwrap().to_owned();
        let mut codes = std::collections::BTreeSet::new();
        let range = match form {
            "frame" => base64.len() * 2 / 5..base64.len() * 3 / 5,
            _ => 0..base64.len() - 2,
        };
        for at in range.step_by(base64.len() / 40) {
            codes.insert(of(&|line| {
                let mut bytes = base64.clone().into_bytes();
                bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
                line["proof"][form]["$bytes"] = String::from_utf8(bytes).unwrap().into();
            }));
        }
        assert!(codes.contains("car/hash"), "{form}: {codes:?}");
    }
}
