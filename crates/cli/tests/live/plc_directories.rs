//! `plc mirror --follow`, `plc serve`, `plc checkpoint`, `plc prove` and `plc diff` with the directory of a simulated network.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use simnet::servers::{Server, Simulation, Spec};
use tempfile::TempDir;

use crate::{schemas, stderr};

/// A network with 2 operations per account.
fn network(accounts: usize) -> Simulation {
    let spec = Spec { accounts, records: 1, jetstreams: 0, relays: 0, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn plc(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.arg("plc").args(args).env("XDG_CONFIG_HOME", "/nonexistent");
    command.env_remove("WIREPROOF_CONTACT");
    command
}

fn mirror(url: &str, file: &Path) -> Command {
    let mut command = plc(&["mirror", "--json", "--development", "--max-rate", "1000"]);
    command.args(["--url", url, "--to"]).arg(file);
    command
}

fn document(schema: &str, output: &Output) -> Value {
    let document =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)));
    schemas::check(schema, &document);
    document
}

/// Everything that a mirror has of its operations.
fn rows(file: &Path) -> Vec<(String, i64, i64, i64, i64, String)> {
    let file = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let statement = "SELECT did, number, seq, created, nullified, json FROM operation ORDER BY seq";
    let mut select = file.prepare(statement).unwrap();
    let row = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
    };
    select.query_map([], row).unwrap().map(Result::unwrap).collect()
}

fn path(dir: &TempDir, name: &str) -> PathBuf {
    dir.path().join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A process that ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// The first document of its output.
    fn document(&mut self) -> Value {
        let documents = serde_json::Deserializer::from_reader(self.0.stdout.take().unwrap());
        documents.into_iter::<Value>().next().unwrap().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a mirror has as many operations as the export.
fn wait_for(file: &Path, count: usize) {
    let started = Instant::now();
    while !file.exists() || rows(file).len() < count {
        assert!(started.elapsed() < Duration::from_secs(30), "{} of {count}", rows(file).len());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_follower_that_is_killed_at_any_time_has_every_operation_once() {
    let (sim, dir) = (network(40), tempfile::tempdir().unwrap());
    let (killed, undisturbed) = (path(&dir, "killed.sqlite"), path(&dir, "whole.sqlite"));
    let url = sim.url(Server::Plc);
    for round in 0..25_u64 {
        let follower = Running::start(mirror(&url, &killed).arg("--follow"));
        let until = Instant::now() + Duration::from_millis(40 + 37 * (round % 9));
        while Instant::now() < until {
            sim.rotate_key(round as usize % 40);
            sim.change_handle(7, &format!("round{round}.test"));
            std::thread::sleep(Duration::from_millis(4));
        }
        follower.kill();
    }
    assert!(mirror(&url, &undisturbed).output().unwrap().status.success());
    let whole = rows(&undisturbed);
    assert!(whole.len() > 500, "{}", whole.len());
    let follower = Running::start(mirror(&url, &killed).arg("--follow"));
    wait_for(&killed, whole.len());
    follower.kill();
    assert_eq!(rows(&killed), whole);
}

#[test]
fn a_follower_ends_in_order_at_a_signal_and_says_what_it_did() {
    let (sim, dir) = (network(5), tempfile::tempdir().unwrap());
    let file = path(&dir, "plc.sqlite");
    let mut command = mirror(&sim.url(Server::Plc), &file);
    let child =
        command.arg("--follow").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&file, 10);
    sim.add_account();
    wait_for(&file, 12);
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let report = document("plc-mirror", &output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!((&report["accepted_count"], &report["stream_count"]), (&12.into(), &1.into()));
}

/// A served mirror, and its URL.
fn serve(file: &Path) -> (Running, String) {
    let mut server = Running::start(
        plc(&["serve", "--json", "--stream-days", "36500", "--listen", "127.0.0.1:0", "--from"])
            .arg(file),
    );
    let document = server.document();
    schemas::check("plc-serve", &document);
    let url = document["url"].as_str().unwrap().replace("127.0.0.1", "localhost");
    (server, url)
}

#[test]
fn a_mirror_of_a_served_mirror_is_the_same_and_follows_it() {
    let (sim, dir) = (network(30), tempfile::tempdir().unwrap());
    let (first, second) = (path(&dir, "first.sqlite"), path(&dir, "second.sqlite"));
    let _writer = Running::start(mirror(&sim.url(Server::Plc), &first).arg("--follow"));
    wait_for(&first, 60);
    let (_server, url) = serve(&first);
    let _follower = Running::start(mirror(&url, &second).arg("--follow"));
    wait_for(&second, 60);
    for round in 0..20 {
        sim.rotate_key(round);
    }
    sim.delete_account(3);
    wait_for(&second, 81);
    assert_eq!(rows(&second), rows(&first));
}

#[test]
fn accounts_resolve_at_a_served_mirror_and_their_logs_verify() {
    let (sim, dir) = (network(5), tempfile::tempdir().unwrap());
    let file = path(&dir, "plc.sqlite");
    mirror(&sim.url(Server::Plc), &file).output().unwrap();
    let (_server, url) = serve(&file);
    let account = sim.account(2);
    let resolved = Command::new(env!("CARGO_BIN_EXE_wireproof"))
        .args(["resolve", &account.did, "--json", "--plc", &url, "--development"])
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&resolved.stdout).into_owned();
    assert!(output.contains(&account.signing_key), "{output}{}", stderr(&resolved));
}

/// A mirror, and a checkpoint of it.
fn checkpoint(dir: &TempDir, sim: &Simulation) -> (PathBuf, PathBuf) {
    let (file, key) = (path(dir, "plc.sqlite"), path(dir, "operator.key"));
    mirror(&sim.url(Server::Plc), &file).output().unwrap();
    std::fs::write(&key, format!("{}\n", "5a".repeat(32))).unwrap();
    let made = path(dir, "checkpoint.json");
    let mut command = plc(&["checkpoint", "--from", text(&file), "--key-file", text(&key)]);
    let output = command.args(["--out", text(&made)]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    (file, made)
}

/// The audit log of an account.
fn audit_log(file: &Path, did: &str) -> String {
    let mirror = store::PlcMirrorReader::open(file).unwrap();
    let answer = directory::Answer::to(&mirror, &format!("/{did}/log/audit"), None);
    answer.unwrap().body
}

#[test]
fn a_proof_holds_for_the_log_of_its_day_although_the_mirror_goes_on() {
    let (sim, dir) = (network(20), tempfile::tempdir().unwrap());
    let (file, made) = checkpoint(&dir, &sim);
    let did = sim.account(4).did;
    let [log, later, proof] = ["log.json", "later.json", "proof.json"].map(|name| path(&dir, name));
    std::fs::write(&log, audit_log(&file, &did)).unwrap();
    sim.rotate_key(4);
    sim.add_account();
    mirror(&sim.url(Server::Plc), &file).output().unwrap();
    std::fs::write(&later, audit_log(&file, &did)).unwrap();

    let prove = |did: &str| {
        let mut command = plc(&["prove", did, "--from", text(&file), "--checkpoint", text(&made)]);
        command.args(["--out", text(&proof)]).output().unwrap()
    };
    assert!(prove(&did).status.success());
    let verify = |log: &[&str]| {
        let mut command =
            plc(&["verify", "--json", "--checkpoint", text(&made), "--proof", text(&proof)]);
        let output = command.args(log).output().unwrap();
        (document("plc-verify", &output), output.status.code())
    };
    let (report, code) = verify(&[text(&log)]);
    assert_eq!((code, &report["checkpoint"]["is_absent"]), (Some(0), &false.into()));
    assert_eq!(report["operations"].as_array().unwrap().len(), 2);
    let (report, code) = verify(&[text(&later)]);
    assert_eq!((code, &report["findings"][0]["code"]), (Some(1), &"checkpoint/root".into()));
    let (report, code) = verify(&["--did", &did]);
    assert_eq!((code, &report["findings"][0]["code"]), (Some(1), &"checkpoint/root".into()));

    // An account that came later is absent.
    let new = sim.account(20).did;
    assert!(prove(&new).status.success());
    let (report, code) = verify(&["--did", &new]);
    assert_eq!((code, &report["checkpoint"]["is_absent"]), (Some(0), &true.into()));
    let (report, code) = verify(&["--did", &did]);
    assert_eq!((code, &report["findings"][0]["code"]), (Some(1), &"checkpoint/did".into()));
}

#[test]
fn a_checkpoint_is_compared_with_a_mirror_that_is_further() {
    let (sim, dir) = (network(10), tempfile::tempdir().unwrap());
    let (file, made) = checkpoint(&dir, &sim);
    sim.rotate_key(4);
    mirror(&sim.url(Server::Plc), &file).output().unwrap();
    let check = |extra: &[&str]| {
        let mut command =
            plc(&["checkpoint", "--json", "--from", text(&file), "--check", text(&made)]);
        command.args(extra).output().unwrap()
    };
    let output = check(&[]);
    let report = document("plc-checkpoint", &output);
    assert_eq!((output.status.code(), &report["is_equal"]), (Some(0), &true.into()));
    assert_eq!((&report["accounts"], &report["cursor"]), (&10.into(), &20.into()));
    let other = "did:key:zQ3shXjHeiBuRCKmM36cuYnm7YEMzhGnCmCyW92sRJ9pribSF";
    let output = check(&["--checkpoint-key", other]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("checkpoint/key"), "{}", stderr(&output));

    let changed = std::fs::read_to_string(&made).unwrap().replace("\"cursor\":20", "\"cursor\":19");
    std::fs::write(&made, changed).unwrap();
    let output = check(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("signature/wrong"), "{}", stderr(&output));
}

#[test]
fn a_mirror_that_lacks_an_operation_is_named_by_diff() {
    let (sim, dir) = (network(10), tempfile::tempdir().unwrap());
    let (whole, less) = (path(&dir, "whole.sqlite"), path(&dir, "less.sqlite"));
    let url = sim.url(Server::Plc);
    mirror(&url, &whole).output().unwrap();
    let diff = |a: &Path, b: &Path| {
        let output = plc(&["diff", "--json", text(a), text(b)]).output().unwrap();
        (document("plc-diff", &output), output.status.code())
    };
    let (report, code) = diff(&whole, &whole);
    assert_eq!((code, &report["equal_count"]), (Some(0), &10.into()));
    std::fs::copy(&whole, &less).unwrap();
    let did = sim.account(6).did;
    let file = Connection::open(&less).unwrap();
    file.execute("DELETE FROM operation WHERE did = ?1 AND number = 1", [&did]).unwrap();
    drop(file);
    let (report, code) = diff(&whole, &less);
    let found = &report["differences"][0];
    assert_eq!((code, &report["contradiction_count"]), (Some(1), &1.into()));
    assert_eq!(
        (&found["did"], &found["kind"], &found["index"]),
        (&did.into(), &"withheld".into(), &1.into())
    );
    assert!(found["first"].is_string() && found["second"].is_null());

    sim.rotate_key(1);
    std::fs::copy(&whole, &less).unwrap();
    mirror(&url, &whole).output().unwrap();
    let (report, code) = diff(&less, &whole);
    assert_eq!((code, &report["counts"]["newer"]), (Some(0), &1.into()));
}
