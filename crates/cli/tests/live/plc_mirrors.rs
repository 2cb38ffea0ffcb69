//! `plc mirror` and `plc lookup` against the directory of a simulated network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crypto::{Curve, SecretKey};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::{schemas, stderr};

/// A network with 2 operations per account.
fn network(accounts: usize) -> Simulation {
    let spec = Spec { accounts, records: 1, jetstreams: 0, relays: 0, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn wireproof(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(args).env("XDG_CONFIG_HOME", "/nonexistent").env_remove("WIREPROOF_CONTACT");
    command
}

fn mirror_command(sim: &Simulation, file: &Path, rate: &str) -> Command {
    let url = sim.url(Server::Plc);
    let mut command = wireproof(&["plc", "mirror", "--json", "--development", "--url", &url]);
    command.args(["--max-rate", rate, "--to"]).arg(file);
    command
}

/// The document of a run, and its exit code.
fn mirror(sim: &Simulation, file: &Path) -> (Value, Option<i32>) {
    document("plc-mirror", &mirror_command(sim, file, "1000").output().unwrap())
}

fn lookup(file: &Path, did: &str) -> (Value, Option<i32>) {
    let output = wireproof(&["plc", "lookup", did, "--json", "--from"]).arg(file).output().unwrap();
    document("plc-lookup", &output)
}

fn document(schema: &str, output: &Output) -> (Value, Option<i32>) {
    let document =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)));
    schemas::check(schema, &document);
    (document, output.status.code())
}

/// The numbers of the accepted operations, in order.
fn seqs(file: &Path) -> Vec<i64> {
    let file = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut select = file.prepare("SELECT seq FROM operation ORDER BY seq").unwrap();
    select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn file(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("plc.sqlite")
}

#[test]
fn the_keys_of_all_accounts_are_in_the_mirror_and_follow_their_changes() {
    let (sim, dir) = (network(30), tempfile::tempdir().unwrap());
    let file = file(&dir);
    let (report, code) = mirror(&sim, &file);
    assert_eq!(
        (code, &report["accepted_count"], &report["refused_count"]),
        (Some(0), &60.into(), &0.into())
    );
    let of = |number: usize| lookup(&file, &sim.account(number).did).0;
    for number in 0..30 {
        let (account, found) = (sim.account(number), of(number));
        assert_eq!(found["signing_key"], account.signing_key);
        assert_eq!(found["claimed_handle"], account.handle);
    }
    sim.rotate_key(3);
    sim.migrate_account(4, 1);
    sim.delete_account(5);
    let new = sim.add_account();
    let (report, code) = mirror(&sim, &file);
    assert_eq!((code, &report["accepted_count"]), (Some(0), &5.into()));
    assert_eq!(report["stored_accepted_count"], 65);
    assert_eq!(of(3)["signing_key"], sim.account(3).signing_key);
    assert_eq!(of(4)["operations"].as_array().unwrap().len(), 3);
    assert_eq!(of(5)["tombstoned"], true);
    assert_eq!(of(new)["signing_key"], sim.account(new).signing_key);
    let (report, _) = mirror(&sim, &file);
    assert_eq!((&report["accepted_count"], &report["request_count"]), (&0.into(), &2.into()));
    let missing = wireproof(&["plc", "lookup", "did:plc:ewvi7nxzyoun6zhxrhs64oiz", "--from"])
        .arg(&file)
        .output();
    assert_eq!(missing.unwrap().status.code(), Some(1));
}

#[test]
fn after_kills_at_any_time_each_operation_is_stored_once_and_none_is_missing() {
    let (sim, dir) = (network(1_500), tempfile::tempdir().unwrap());
    let (undisturbed, killed) = (dir.path().join("undisturbed.sqlite"), file(&dir));
    let (whole, _) = mirror(&sim, &undisturbed);
    assert_eq!(whole["request_count"], 4, "three pages, and the empty one after them");
    let mut kills = 0;
    for micros in (0..).map(|round| 2_000 + round * 20_000) {
        let mut child = mirror_command(&sim, &killed, "1000")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (started, limit) = (Instant::now(), Duration::from_micros(micros));
        while child.try_wait().unwrap().is_none() && started.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 1, "{kills}");
    let (report, code) = mirror(&sim, &killed);
    assert_eq!((code, &report["cursor"]), (Some(0), &whole["cursor"]));
    assert_eq!(report["stored_accepted_count"], 3_000);
    let seqs = seqs(&killed);
    assert_eq!((seqs.len(), seqs.iter().collect::<BTreeSet<_>>().len()), (3_000, 3_000));
    assert_eq!(seqs, self::seqs(&undisturbed));
}

#[test]
fn limits_and_outages_of_the_directory_are_waited_for() {
    let (sim, dir) = (network(5), tempfile::tempdir().unwrap());
    let faults = sim.faults();
    faults.enable(Server::Plc, Fault::RequestTooMany, FaultSchedule::ONCE.with_amount(2));
    faults.enable(Server::Plc, Fault::RequestUnavailable, FaultSchedule::ONCE);
    let started = Instant::now();
    let (report, code) = mirror(&sim, &file(&dir));
    assert_eq!(
        (code, &report["accepted_count"], &report["request_count"]),
        (Some(0), &10.into(), &3.into())
    );
    assert!(started.elapsed() >= Duration::from_secs(2), "the delay that the directory requests");
    assert_eq!(faults.unfired(), []);
}

#[test]
fn operations_that_break_a_chain_are_named_and_not_stored_as_valid() {
    let (sim, dir) = (network(2), tempfile::tempdir().unwrap());
    let file = file(&dir);
    let account = sim.account(0);
    mirror(&sim, &file);
    // A stranger signs an update that moves the account, and another one deletes it.
    let (found, _) = lookup(&file, &account.did);
    let prev = found["operations"][1]["cid"].as_str().unwrap();
    let key = SecretKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    let forged = forged(&account.did, prev, &key);
    sim.add_to_export(&forged.to_string());
    let mut malformed = forged.clone();
    malformed["operation"]["rotationKeys"] = 7.into();
    sim.add_to_export(&malformed.to_string());

    let output = mirror_command(&sim, &file, "1000").output().unwrap();
    let (report, code) = document("plc-mirror", &output);
    assert_eq!(
        (code, &report["accepted_count"], &report["refused_count"]),
        (Some(1), &0.into(), &2.into())
    );
    let text = stderr(&output);
    for part in [
        &*account.did,
        "operation 5",
        "signature/wrong",
        "entry 2 of the log",
        "plc/json",
        "2 operations were refused",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (found, code) = lookup(&file, &account.did);
    assert_eq!((code, &found["signing_key"]), (Some(0), &account.signing_key.into()));
    let codes: Vec<&str> = found["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["code"].as_str().unwrap())
        .collect();
    assert_eq!(
        (codes, found["operations"].as_array().unwrap().len()),
        (vec!["signature/wrong", "plc/json"], 2)
    );
    // A refused operation is read once.
    assert_eq!(mirror(&sim, &file).1, Some(0));
}

#[test]
fn a_line_whose_number_skips_the_others_does_not_move_the_mirror() {
    let (sim, dir) = (network(2), tempfile::tempdir().unwrap());
    let file = file(&dir);
    let (report, _) = mirror(&sim, &file);
    assert_eq!(report["cursor"], 4);
    let key = SecretKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    let mut line = forged(&sim.account(0).did, NO_OPERATION, &key);
    line["seq"] = i64::MAX.into();
    sim.add_to_export(&line.to_string());
    let output = mirror_command(&sim, &file, "1000").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(text.contains("after 4: line 1: the number 9223372036854775807"), "{text}");

    // The directory removes the line, and then has a new account.
    sim.restart_export();
    assert_eq!(mirror(&sim, &file).1, Some(0));
    sim.add_account();
    let (report, code) = mirror(&sim, &file);
    assert_eq!((code, &report["from"], &report["cursor"]), (Some(0), &4.into(), &6.into()));
}

#[test]
fn a_directory_that_has_lost_its_newest_lines_is_an_error() {
    let (sim, dir) = (network(2), tempfile::tempdir().unwrap());
    let file = file(&dir);
    let key = SecretKey::from_bytes(Curve::K256, &[9; 32]).unwrap();
    sim.add_to_export(&forged(&sim.account(0).did, NO_OPERATION, &key).to_string());
    assert_eq!(mirror(&sim, &file).0["cursor"], 5);
    assert_eq!(mirror(&sim, &file).1, Some(0), "nothing new is no error");
    sim.restart_export();
    let output = mirror_command(&sim, &file, "1000").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("the newest line is below 5"), "{}", stderr(&output));
}

/// A CID that no operation has.
const NO_OPERATION: &str = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";

/// A line with an update of `did` by a key that has no right to it.
fn forged(did: &str, prev: &str, key: &SecretKey) -> Value {
    use atproto::plc::{AccountData, UnsignedOperation, Update};
    let data = AccountData {
        rotation_keys: vec![key.public_key().to_did_key()],
        ..AccountData::default()
    };
    let unsigned = UnsignedOperation::Update(Update { data, prev: Some(prev.parse().unwrap()) });
    let sig = key.sign(&unsigned.to_bytes());
    let operation = unsigned.with_signature(sig);
    let json: Value = serde_json::from_str(&operation.to_json()).unwrap();
    json!({
        "did": did,
        "operation": json,
        "cid": operation.cid().to_string(),
        "createdAt": "2030-01-01T00:00:00.000Z",
    })
}

#[test]
fn what_is_no_export_ends_the_run_and_public_directories_need_a_contact() {
    let (sim, dir) = (network(1), tempfile::tempdir().unwrap());
    let file = file(&dir);
    sim.add_to_export(r#"{"did":"no DID"}"#);
    let output = mirror_command(&sim, &file, "1000").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("after 0: line 3: the field \"did\""), "{}", stderr(&output));
    assert_eq!(lookup_code(&file, &sim.account(0).did), Some(1), "nothing of the page is stored");

    let output =
        wireproof(&["plc", "mirror", "--to"]).arg(dir.path().join("other")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--contact is required"), "{}", stderr(&output));
    assert!(!dir.path().join("other").exists());
    let other = mirror_of_another_directory(&file);
    assert_eq!(other.status.code(), Some(4));
    assert!(stderr(&other).contains(&sim.url(Server::Plc)), "{}", stderr(&other));
}

fn lookup_code(file: &Path, did: &str) -> Option<i32> {
    wireproof(&["plc", "lookup", did, "--from"]).arg(file).output().unwrap().status.code()
}

fn mirror_of_another_directory(file: &Path) -> Output {
    let url = "http://localhost:9";
    wireproof(&["plc", "mirror", "--development", "--url", url, "--to"]).arg(file).output().unwrap()
}
