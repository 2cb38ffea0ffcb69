//! `follow --proof`: every line proves again offline, and no changed one does.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
#[cfg(feature = "where")]
use std::process::Stdio;
use std::process::{Command, Output};

use atproto::repo::RepositoryWriter;
use atproto::syntax::{Did, Tid};
use codec::cid::Codec;
use codec::json::Json;
use codec::{Cid, cbor};
use crypto::{Curve, SecretKey};
use rusqlite::Connection;
use serde_json::{Value, json};
use simnet::servers::{Server, Simulation};

#[cfg(feature = "where")]
use crate::Running;
use crate::deliveries::receiver;
use crate::websockets::{Client, serve};
use crate::{file_lines, follow, lines, quiet, schemas, stderr, with_commits};

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
        #[cfg(feature = "where")]
        &["--proof", "blocks", "--where", "has(record.createdAt)"],
    ] {
        let state = tempfile::tempdir().unwrap();
        let lines = lines(follow(&sim, state.path(), &[args, &["--events", "50"]].concat()));
        assert!(lines.len() >= 50, "{args:?}");
        assert_proved(&lines, dir.path());
    }
}

#[test]
fn keys_come_from_the_directory_a_log_or_a_document_too() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let all = lines(follow(&sim, dir.path(), &["--proof", "frame", "--events", "40"]));
    let (did, path) = (all[0]["did"].as_str().unwrap(), dir.path().join("lines.ndjson"));
    let write = |lines: &[&Value]| {
        fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    };
    let verify = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["frames", "verify-lines", "--json"]).arg(&path).args(args);
        let output = command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        (output.status.code(), report, stderr(&output))
    };
    let (plc, port) = (sim.url(Server::Plc), sim.port(Server::Pds(0)).to_string());
    let directory = ["--resolve", "--plc", &*plc, "--development-port", &*port];
    write(&all.iter().collect::<Vec<_>>());
    let (code, report, errors) = verify(&directory);
    assert_eq!((code, &report["proved"]), (Some(0), &all.len().into()), "{report} {errors}");
    let mirror = dir.path().join("plc.sqlite");
    let mirror = mirror.to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["plc", "mirror", "--development", "--url", &plc, "--to", mirror]);
    assert!(command.output().unwrap().status.success());
    let (code, report, errors) = verify(&["--plc-mirror", mirror]);
    assert_eq!((code, &report["proved"]), (Some(0), &all.len().into()), "{report} {errors}");
    for (option, request) in
        [("--plc-log", format!("{did}/log/audit")), ("--did-doc", did.to_owned())]
    {
        let file = dir.path().join("key.json");
        fs::write(&file, get(&format!("{plc}/{request}"))).unwrap();
        let key = [option, file.to_str().unwrap()];
        write(&all.iter().filter(|line| line["did"] == did).collect::<Vec<_>>());
        let (code, report, errors) = verify(&key);
        assert_eq!((code, &report["refused"]), (Some(0), &0.into()), "{option} {report} {errors}");
        let other = all.iter().find(|line| line["did"] != did).unwrap();
        write(&[other]);
        let (code, report, _) = verify(&key);
        assert_eq!((code, &report["findings"][0]["code"]), (Some(1), &"signature/no-key".into()));
    }
    // A key that the account has replaced does not prove earlier commits.
    let number = (0..sim.account_count()).find(|at| sim.account(*at).did == did).unwrap();
    sim.rotate_key(number);
    write(&[&all[0]]);
    let (code, report, _) = verify(&directory);
    assert_eq!((code, &report["findings"][0]["code"]), (Some(1), &"signature/wrong".into()));
    sim.stop_server(Server::Plc);
    assert_eq!(verify(&directory).0, Some(3), "it is not known whether there is a key");
    for args in [&[][..], &["--resolve", "--did-doc", "x.json"]] {
        assert_eq!(verify(args).0, Some(2), "{args:?}");
    }
}

/// The body of the answer to a request.
pub(crate) fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn a_line_proves_again_whichever_destination_has_it() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    let (secret, folder) = (dir.path().join("secret"), dir.path().join("events"));
    let (tables, (url, requests)) = (dir.path().join("tables.db"), receiver());
    fs::write(&secret, "a secret of twenty-four bytes").unwrap();
    let (files, to_tables) =
        (format!("file:{}", folder.display()), format!("sqlite:{}", tables.display()));
    let secret = secret.to_str().unwrap();
    for (run, form) in ["blocks", "frame"].into_iter().enumerate() {
        let args = ["--to", &*files, "--to", &*to_tables, "--to", &*url, "--events", "30"];
        let more = ["--webhook-secret-file", secret, "--proof", form];
        let (running, address) = serve(&sim, dir.path(), &[&args[..], &more].concat());
        let of_client = Client::connect(&address, "/lines").take(30);
        assert_eq!(running.wait().1, Some(0));
        let of_webhook: Vec<Value> =
            requests.try_iter().flat_map(|request| request.lines()).collect();
        let file = Connection::open(&tables).unwrap();
        let mut rows = file.prepare("SELECT line FROM event WHERE number > ?1").unwrap();
        let rows = rows.query_map([30 * run as i64], |row| row.get::<_, String>(0)).unwrap();
        let of_tables: Vec<Value> =
            rows.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let of_files = file_lines(&folder).split_off(run * 30);
        for lines in [of_client, of_webhook, of_tables, of_files] {
            assert_eq!(lines.len(), 30);
            assert!(lines.iter().all(|line| line["proof"][form].is_object()));
            assert_proved(&lines, dir.path());
        }
        sim.write_commits(30);
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
#[cfg(feature = "where")]
fn a_deletion_of_a_record_that_no_longer_matches_proves_that_the_record_is_there() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    let did = sim.account(1).did;
    let args = ["--dids", &*did, "--backfill", "--proof", "blocks", "--ack-stdin"];
    // Acknowledges all lines until the last of the account's repository, and returns the lines of it but the known ones: an
    // acknowledgement before a stop may have come too late.
    let run = |more: &[&str], known: &[Value]| {
        let mut command = follow(&sim, dir.path(), &[&args[..], more].concat());
        command.stdin(Stdio::piped());
        let mut running = Running::start(command);
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line: &Value| line["last"] != true) {
            let line = running.take(1).remove(0);
            let mut acks = running.child.stdin.as_ref().unwrap();
            writeln!(acks, "{}", line["id"].as_str().unwrap()).unwrap();
            lines.extend(Some(line).filter(|of| of["kind"] == "resync" && !known.contains(of)));
        }
        assert_eq!(running.interrupt().1, Some(130));
        lines
    };
    let first = run(&[], &[]);
    assert!(first[0]["ops"].as_array().is_some_and(|ops| ops.len() > 4));
    sim.write_unannounced(1);
    sim.write_commit_as(1);
    let resync = run(&["--resync", "--where", "size(rkey) == 0"], &first);
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
    for (name, value) in
        [("ops", commit["ops"].clone()), ("kind", "commit".into()), ("kind", "resync".into())]
    {
        let mut line = sync.clone();
        line[name] = value;
        assert_eq!(refusal(line, dir.path()), "proof/line", "{name}");
    }
    let mut line = sync.clone();
    line["commit"] = commit["commit"].clone();
    assert_eq!(refusal(line, dir.path()), "proof/differs");
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
        assert_eq!(of(&|line| line["kind"] = "sync".into()), "proof/line");
        let repeated = |line: &mut Value| line["ops"] = vec![line["ops"][0].clone(); 2].into();
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

/// The code with which the text of a line is refused.
#[track_caller]
fn text_refusal(text: &str, dir: &Path) -> String {
    let path = dir.join("line.ndjson");
    fs::write(&path, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["frames", "verify-lines", "--json"]).arg(&path);
    let output = command.arg("--keys").arg(dir.join("keys.json")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{text} {}", stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    schemas::check("frames-verify-lines", &report);
    report["findings"][0]["code"].as_str().unwrap().to_owned()
}

#[test]
fn a_key_that_is_there_twice_unknown_or_missing_is_refused_in_every_part_of_a_line() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    for form in [&["--proof", "frame"][..], &["--proof", "blocks"], &["--proof", "frame", "--ops"]]
    {
        let state = tempfile::tempdir().unwrap();
        let lines = lines(follow(&sim, state.path(), &[form, &["--events", "30"]].concat()));
        let op_of = |line: &Value| line.get("ops").map_or(line, |ops| &ops[0]).clone();
        let is_create =
            |line: &&Value| op_of(line)["action"] == "create" && line["proof"].is_object();
        let line = lines.iter().find(is_create).unwrap();
        let is_flat = line["ops"].is_null();
        let text = line.to_string();
        assert!(text.contains(r#""createdAt":"#), "{text}");
        // The test puts another member before the first one of these objects.
        let objects = [
            ("the line", r#"{"#, 0),
            ("the proof", r#""proof":{"#, 9),
            ("the bytes", r#"{"$bytes":"#, 1),
            ("the record", r#""record":{"#, 10),
            (
                "the operation",
                if is_flat { r#"{"# } else { r#""ops":[{"# },
                usize::from(!is_flat) * 8,
            ),
        ];
        for (name, start, len) in objects {
            let at = text.find(start).unwrap() + if len == 0 { 1 } else { len };
            let with = |member: &str| format!("{}{member},{}", &text[..at], &text[at..]);
            let first_key = text[at..].split('"').nth(1).unwrap();
            for member in [format!(r#""{first_key}":1"#), r#""x":1,"x":1"#.to_owned()] {
                assert_eq!(
                    text_refusal(&with(&member), dir.path()),
                    "proof/line",
                    "{name} {member}"
                );
            }
            let unknown = text_refusal(&with(r#""unknown":1"#), dir.path());
            let expected = if name == "the record" { "proof/differs" } else { "proof/line" };
            assert_eq!(unknown, expected, "{name}");
        }
        let of = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
            let mut line = line.clone();
            change(line.as_object_mut().unwrap());
            refusal(line, dir.path())
        };
        for key in ["v", "kind", "did", "rev", "code", "ops", "action", "collection", "rkey"] {
            if line.get(key).is_some() {
                assert_eq!(of(&|line| drop(line.remove(key))), "proof/line", "without {key}");
                assert_eq!(
                    of(&|line| drop(line.insert(key.to_owned(), Value::Null))),
                    "proof/line"
                );
            }
        }
        let set =
            |key: &str, value: Value| of(&|line| drop(line.insert(key.to_owned(), value.clone())));
        assert_eq!(set("v", 2.into()), "proof/line");
        assert_eq!(set("code", "signature/wrong".into()), "proof/line");
        assert_eq!(set("host", json!({"a": 1})), "proof/line");
        assert_eq!(set("records", 1.into()), "proof/line", "of a resync alone");
        assert_eq!(set("id", "did:web:other.test/3jzfcijpj2z2a".into()), "proof/differs");
        assert_eq!(set("key", "did:key:zOther".into()), "proof/differs");
        if form == ["--proof", "frame"] {
            assert_eq!(set("ops", json!([])), "proof/differs");
        }
    }
}

#[test]
fn an_invalid_record_is_proved_with_its_rule_and_a_valid_one_is_not_called_invalid() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    let lines = lines(follow(&sim, dir.path(), &["--proof", "blocks", "--events", "20"]));
    let is_create = |line: &&Value| line["ops"][0]["action"] == "create";
    let mut line = lines.iter().find(is_create).unwrap().clone();
    let op = line["ops"][0].as_object_mut().unwrap();
    op.remove("record");
    let bytes = json!({"$bytes": "oA"});
    let invalid = json!({"code": "record/cbor", "offset": 0, "message": "x", "bytes": bytes});
    op.insert("invalid".to_owned(), invalid);
    assert_eq!(refusal(line.clone(), dir.path()), "proof/differs");
    line["ops"][0]["invalid"]["more"] = 1.into();
    assert_eq!(refusal(line, dir.path()), "proof/line");
}

#[test]
fn what_no_proof_covers_is_named() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    write_keys(&sim, &dir.path().join("keys.json"));
    for (args, keys) in [
        (&["--proof", "frame"][..], json!(["host"])),
        (&["--proof", "blocks"], json!(["action", "host", "ops", "seq", "time"])),
        (&["--proof", "frame", "--ops", "--workers", "1"], json!(["host", "index", "last"])),
    ] {
        let state = tempfile::tempdir().unwrap();
        let lines = lines(follow(&sim, state.path(), &[args, &["--events", "40"]].concat()));
        let (output, report) = verify(&lines, dir.path());
        assert_eq!(output.status.code(), Some(0), "{} {report}", stderr(&output));
        assert_eq!((&report["not_compared"], &report["left_out"]), (&keys, &json!(0)), "{args:?}");
    }
}

/// A record.
const NOTE: &[u8] = b"\xa1\x65$type\x6dapp.test.note";

/// The lines of a commit that creates three equal records: as one line, and as a line per record.
fn lines_of_three_creates(block: &[u8], keys: &Path) -> (Value, Vec<Value>) {
    let did = "did:web:three.test";
    let key = SecretKey::from_bytes(Curve::K256, &[7; 32]).unwrap();
    fs::write(keys, json!({did: key.public_key().to_did_key()}).to_string()).unwrap();
    let mut repository = RepositoryWriter::new(Did::parse(did).unwrap());
    let arena = cbor::Arena::new();
    let record = json!(Json(&cbor::decode(block, &arena).unwrap()));
    let paths = ["1", "2", "3"];
    for rkey in paths {
        let path = format!("app.test.note/{rkey}");
        repository.create(&path, block).unwrap();
    }
    let rev = Tid::new(1_700_000_000_000_000, 1);
    let commit = repository.commit(rev, |message| key.sign(message)).unwrap();
    let time = "2023-11-14T22:13:20Z";
    let frame = commit.to_frame(1, time).unwrap();
    let proof = json!({"frame": Json(&cbor::Value::Bytes(&frame))});
    let cid = Cid::of(Codec::DagCbor, block).to_string();
    let op = |rkey: &str| json!({"action": "create", "collection": "app.test.note", "rkey": rkey, "cid": cid, "record": record});
    let mut event = json!({
        "v": 1, "host": "https://host.test", "seq": 1, "did": did, "time": time, "rev": rev.to_string(),
        "commit": commit.cid().to_string(), "verdict": "verified", "code": "verified",
    });
    let mut operations: Vec<Value> = paths
        .iter()
        .map(|rkey| {
            let mut line = event.clone();
            merge(&mut line, &op(rkey));
            merge(&mut line, &json!({"kind": "operation"}));
            line
        })
        .collect();
    operations[0]["proof"] = proof.clone();
    merge(&mut event, &json!({"kind": "commit", "ops": paths.map(op), "proof": proof}));
    (event, operations)
}

#[test]
fn operations_of_a_frame_that_no_line_has_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (event, operations) = lines_of_three_creates(NOTE, &dir.path().join("keys.json"));
    let left_out = |lines: &[Value]| {
        let (output, report) = verify(lines, dir.path());
        assert_eq!(output.status.code(), Some(0), "{} {report}", stderr(&output));
        report["left_out"].as_u64().unwrap()
    };
    assert_eq!(left_out(std::slice::from_ref(&event)), 0);
    assert_eq!(left_out(&operations), 0);
    let mut shorter = event.clone();
    shorter["ops"].as_array_mut().unwrap().pop();
    assert_eq!(left_out(&[shorter.clone(), event, shorter]), 2);
    assert_eq!(left_out(&operations[..2]), 1);
    assert_eq!(left_out(&[operations[..1].to_vec(), operations.clone()].concat()), 2);
    let twice = [&operations[..], &operations[2..]].concat();
    let (output, report) = verify(&twice, dir.path());
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert_eq!(report["findings"][0]["code"], "proof/differs");
}

#[test]
fn the_deepest_record_proves_again_and_is_compared() {
    let dir = tempfile::tempdir().unwrap();
    let levels = cbor::MAX_DEPTH as usize;
    let arrays = [vec![0x81; levels - 1], vec![0x41, 0x07]].concat();
    let block = [b"\xa2\x61a", &arrays[..], b"\x65$type\x6dapp.test.note"].concat();
    let (event, operations) = lines_of_three_creates(&block, &dir.path().join("keys.json"));
    assert_proved(std::slice::from_ref(&event), dir.path());
    assert_proved(&operations, dir.path());
    let changed = event.to_string().replace("\"Bw\"", "\"CA\"");
    assert_eq!(text_refusal(&changed, dir.path()), "proof/differs");
}
