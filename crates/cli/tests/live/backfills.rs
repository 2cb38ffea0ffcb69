//! `backfill` of simulated hosts: the archive at the end, and the ledger meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use simnet::hostile::{self, CaseSet, Expect, InputKind};
use simnet::servers::{
    AccountStatus, Fault, FaultSchedule, RequestLimit, Server, Simulation, Spec,
};
use tempfile::TempDir;

use crate::archives::archive_following;
use crate::{schemas, stderr};

/// A network, and an archive of it.
struct Backfill {
    sim: Simulation,
    dir: TempDir,
}

/// The account, collection, record key and CID of a record.
type StoredRecord = (String, String, String, String);

impl Backfill {
    fn new(spec: Spec) -> Self {
        let backfill =
            Self { sim: Simulation::start(spec).unwrap(), dir: tempfile::tempdir().unwrap() };
        let hosts = 0..backfill.sim.spec().pds;
        let urls: Vec<String> = hosts.map(|number| backfill.sim.url(Server::Pds(number))).collect();
        fs::write(backfill.path("hosts"), urls.join("\n")).unwrap();
        backfill
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// `backfill` of all hosts.
    fn command(&self, args: &[&str]) -> Command {
        let hosts = self.path("hosts");
        self.bare_command(&[&["--hosts", hosts.to_str().unwrap()], args].concat())
    }

    /// `backfill` without a source of accounts.
    fn bare_command(&self, args: &[&str]) -> Command {
        let (plc, archive) = (self.sim.url(Server::Plc), self.path("archive"));
        let mut command =
            wireproof(&["backfill", "--json", "--development", "--plc", &plc, "--to"]);
        command.arg(archive).args(["--max-rate", "50", "--retry-seconds", "0"]).args(args);
        command
    }

    /// Runs to the end: the document, and the exit code.
    fn run(&self, args: &[&str]) -> (Value, Option<i32>) {
        ended(&self.command(args).output().unwrap())
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// `archive follow` of the relay.
    fn follow(&self) -> Child {
        let mut command = archive_following(&self.sim, &self.path("archive"), &[]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn status(&self) -> Value {
        let mut command = wireproof(&["backfill", "status", "--json"]);
        let (status, code) = ended(&command.arg(self.path("archive")).output().unwrap());
        schemas::check("backfill-status", &status);
        assert_eq!(code, Some(0));
        status
    }

    /// The rows of a statement.
    fn query(&self, sql: &str) -> Vec<Value> {
        let mut command = wireproof(&["archive", "query"]);
        command.arg(self.path("archive")).args([sql, "--format", "ndjson"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let lines = str::from_utf8(&output.stdout).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// All rows of `records`, in order: a record that is there twice is in it twice.
    fn records(&self) -> Vec<StoredRecord> {
        self.records_of("SELECT did, collection, rkey, cid(record) AS cid FROM records")
    }

    /// The records that a statement gives, in order.
    fn records_of(&self, sql: &str) -> Vec<StoredRecord> {
        let rows = self.query(sql);
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        let names = ["did", "collection", "rkey", "cid"];
        let mut records: Vec<StoredRecord> =
            rows.iter().map(|row| names.map(|name| text(row, name)).into()).collect();
        records.sort();
        records
    }

    /// The revisions and hosts of the accounts in `snapshots`, which have one row each.
    fn snapshots(&self) -> BTreeMap<String, (String, String)> {
        let rows = self.query("SELECT did, rev, host FROM snapshots");
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        let snapshots: BTreeMap<_, _> = rows
            .iter()
            .map(|row| (text(row, "did"), (text(row, "rev"), text(row, "host"))))
            .collect();
        assert_eq!(snapshots.len(), rows.len(), "an account is stored twice");
        snapshots
    }

    /// The records of the active accounts of the network.
    fn expected(&self) -> Vec<StoredRecord> {
        let mut records = Vec::new();
        for expected in self.sim.expected_accounts() {
            if expected.account.status != AccountStatus::Active {
                continue;
            }
            for (path, cid) in expected.records {
                let (collection, rkey) = path.split_once('/').unwrap();
                let [collection, rkey] = [collection, rkey].map(str::to_owned);
                records.push((expected.account.did.clone(), collection, rkey, cid.to_string()));
            }
        }
        records.sort();
        records
    }

    /// Checks that the archive has the network, every repository once, and proves it again.
    fn check(&self) {
        assert_eq!(self.records(), self.expected());
        let snapshots = self.snapshots();
        for expected in self.sim.expected_accounts() {
            let rev = snapshots.get(&expected.account.did).map(|(rev, _)| rev.clone());
            let is_active = expected.account.status == AccountStatus::Active;
            assert_eq!(rev, is_active.then(|| expected.rev.to_string()));
        }
        let mut command = wireproof(&["archive", "verify"]);
        let output = command.arg(self.path("archive")).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }

    fn fetches(&self) -> u64 {
        let hosts = 0..self.sim.spec().pds;
        let counts = hosts.map(|number| self.sim.request_counts(Server::Pds(number)));
        counts.filter_map(|counts| counts.get("/xrpc/com.atproto.sync.getRepo").copied()).sum()
    }

    /// Waits until the list of a host was read once, and returns the number of the host.
    fn wait_for_first_host(&self) -> usize {
        let since = Instant::now();
        loop {
            assert!(since.elapsed() < Duration::from_secs(60), "a host that was read");
            let status = self.path("archive").exists().then(|| self.status());
            let lists = status.as_ref().and_then(|status| status["lists"].as_array());
            if let Some(list) = lists.into_iter().flatten().find(|list| list["sweep"] == 1) {
                let of = |number: &usize| list["list"] == self.sim.url(Server::Pds(*number));
                return (0..self.sim.spec().pds).find(of).unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A host that was not asked yet.
    fn unread_host(&self) -> usize {
        let is_unread = |number: &usize| self.sim.request_counts(Server::Pds(*number)).is_empty();
        (0..self.sim.spec().pds).find(is_unread).unwrap()
    }
}

pub(crate) fn wireproof(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(args).env("XDG_CONFIG_HOME", "/nonexistent").env_remove("WIREPROOF_CONTACT");
    command
}

/// The document of a `backfill` that has ended, and its exit code.
pub(crate) fn ended(output: &Output) -> (Value, Option<i32>) {
    let document =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)));
    schemas::check("backfill", &document);
    (document, output.status.code())
}

fn network(accounts: usize, pds: usize) -> Spec {
    Spec { accounts, records: 3, pds, jetstreams: 0, ..Spec::default() }
}

#[test]
fn twenty_hosts_are_in_the_archive_once_and_the_same_command_adds_nothing() {
    let backfill = Backfill::new(network(400, 20));
    let (report, code) = backfill.run(&[]);
    assert_eq!(code, Some(0), "{report}");
    for (key, count) in [
        ("list_count", 20),
        ("done_list_count", 20),
        ("account_count", 400),
        ("stored_count", 400),
        ("present_count", 0),
    ] {
        assert_eq!(report[key], count, "{key}");
    }
    assert_eq!(report["record_count"], backfill.expected().len());
    assert_eq!(backfill.fetches(), 400);
    backfill.check();
    assert_eq!(backfill.status(), report);

    assert_eq!(backfill.run(&[]), (report, Some(0)));
    let (report, code) = backfill.run(&["--name", "another"]);
    assert_eq!(
        (code, &report["stored_count"], &report["present_count"]),
        (Some(0), &0.into(), &400.into())
    );
    assert_eq!(backfill.fetches(), 400);
    // The run fetches the accounts changed since, and nothing else.
    for number in [7, 8, 9] {
        backfill.sim.write_commit_as(number);
    }
    let (report, _) = backfill.run(&["--name", "later"]);
    assert_eq!((&report["stored_count"], &report["present_count"]), (&3.into(), &397.into()));
}

#[test]
fn kills_at_any_time_lead_to_the_archive_of_an_undisturbed_run() {
    let backfill = Backfill::new(network(200, 8));
    let (mut kills, mut delay) = (0, 150);
    loop {
        let mut child = backfill.start(&[]);
        let (started, limit) = (Instant::now(), Duration::from_millis(delay));
        while child.try_wait().unwrap().is_none() && started.elapsed() < limit {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(0));
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        // At another place in every run.
        delay += 137;
    }
    assert!(kills >= 3, "{kills}");
    println!("{kills} kills, {} requests for 200 repositories", backfill.fetches());
    backfill.check();
    assert_eq!(backfill.status()["account_count"], 200);
}

#[test]
fn several_processes_share_an_archive_and_fetch_each_repository_once() {
    let backfill = Backfill::new(network(240, 12));
    let processes: Vec<Child> =
        (0..3).map(|_| backfill.start(&["--concurrent-lists", "2"])).collect();
    for mut process in processes {
        assert_eq!(process.wait().unwrap().code(), Some(0));
    }
    assert_eq!(backfill.fetches(), 240);
    backfill.check();
    assert_eq!(backfill.status()["done_list_count"], 12);
}

#[test]
fn a_killed_process_leaves_its_hosts_to_the_others() {
    let backfill = Backfill::new(network(200, 4));
    let mut last = backfill.start(&["--concurrent-lists", "2"]);
    for _ in 0..3 {
        let mut killed = std::mem::replace(&mut last, backfill.start(&["--concurrent-lists", "2"]));
        std::thread::sleep(Duration::from_millis(700));
        assert_eq!(killed.try_wait().unwrap(), None, "it is at work");
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    assert_eq!(last.wait().unwrap().code(), Some(0));
    backfill.check();
    assert_eq!(backfill.status()["done_list_count"], 4);
}

/// The statement of the reference: every record after the newest repository of its account and the commits since.
fn state() -> &'static str {
    let page = include_str!("../../../../docs/reference/backfill.md");
    page.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a statement")
}

#[test]
fn a_stream_that_is_followed_from_before_a_backfill_leaves_no_gap_and_no_repetition() {
    let backfill = Backfill::new(Spec { relays: 1, ..network(120, 6) });
    let mut follow = Some(backfill.follow());
    while backfill.sim.connection_count() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut process = backfill.start(&[]);
    let mut added = Vec::new();
    while process.try_wait().unwrap().is_none() {
        backfill.sim.write_commits(3);
        if added.len() < 5 {
            added.push(backfill.sim.add_account());
        }
        std::thread::sleep(Duration::from_millis(40));
    }
    assert_eq!(process.wait().unwrap().code(), Some(0));
    backfill.sim.write_commits(20);
    let sent = backfill.sim.sent_count(Server::Relay(0));
    let count = "SELECT count(*) AS n, count(DISTINCT seq) AS seqs FROM events";
    let mut stored = Vec::new();
    for _ in 0..20 {
        let mut following = follow.take().unwrap_or_else(|| backfill.follow());
        std::thread::sleep(Duration::from_secs(1));
        let id = following.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
        assert_eq!(following.wait().unwrap().code(), Some(130));
        stored = backfill.query(count);
        if stored[0]["n"].as_u64() >= Some(sent) {
            break;
        }
    }
    assert_eq!((&stored[0]["n"], &stored[0]["seqs"]), (&sent.into(), &sent.into()));
    assert!(sent > 100 && added.len() == 5, "{sent}");
    assert_eq!(backfill.records_of(state()), backfill.expected());
    backfill.snapshots();
}

#[test]
fn limits_of_hosts_are_kept_and_slow_and_broken_answers_are_asked_for_again() {
    let limit = RequestLimit { requests: 12, window: Duration::from_secs(1) };
    let backfill = Backfill::new(Spec { request_limit: Some(limit), ..network(60, 3) });
    let faults = backfill.sim.faults();
    let once = FaultSchedule::ONCE;
    faults.enable(Server::Pds(0), Fault::CutRepo, once.after(3).with_amount(100));
    faults.enable(Server::Pds(0), Fault::RequestUnavailable, once.after(7));
    faults.enable(Server::Pds(1), Fault::SlowRepo, once.after(2).with_amount(20));
    faults.enable(Server::Pds(2), Fault::RequestTooMany, once.after(4).with_amount(1));
    faults.enable(Server::Pds(2), Fault::EndlessRepo, once.after(5));
    let (report, code) = backfill.run(&["--max-bytes", "1000000"]);
    assert_eq!((code, &report["stored_count"]), (Some(0), &60.into()), "{report}");
    assert_eq!(faults.unfired(), []);
    backfill.check();
}

#[test]
fn repositories_are_fetched_compressed_and_a_bomb_is_refused_at_the_limit() {
    let backfill = Backfill::new(Spec { records: 60, ..network(20, 2) });
    let bomb = FaultSchedule::ONCE.after(4).with_amount(64);
    backfill.sim.faults().enable(Server::Pds(0), Fault::BombRepo, bomb);
    let (report, code) = backfill.run(&["--max-bytes", "1000000"]);
    assert_eq!((code, &report["stored_count"]), (Some(0), &20.into()), "{report}");
    let [bytes, wire_bytes] =
        ["byte_count", "wire_byte_count"].map(|name| report[name].as_u64().unwrap());
    assert!(wire_bytes > 0 && wire_bytes * 4 < bytes * 3, "{wire_bytes} of {bytes}");
    backfill.check();

    let always = FaultSchedule::ALWAYS.with_amount(64);
    backfill.sim.faults().enable(Server::Pds(0), Fault::BombRepo, always);
    backfill.sim.write_commit_as(0);
    let (report, code) = backfill.run(&["--max-bytes", "1000000", "--name", "later"]);
    assert_eq!((code, &report["failed"]["too-large"]), (Some(3), &1.into()), "{report}");
}

#[test]
fn a_dead_host_is_named_and_the_next_run_reads_it() {
    let backfill = Backfill::new(network(30, 3));
    backfill.sim.stop_server(Server::Pds(1));
    let (report, code) = backfill.run(&[]);
    assert_eq!(
        (code, &report["stored_count"], &report["done_list_count"]),
        (Some(3), &20.into(), &2.into())
    );
    let dead = backfill.sim.url(Server::Pds(1));
    let lists = report["lists"].as_array().unwrap();
    let stopped = lists.iter().find(|list| list["list"] == *dead).unwrap();
    assert_eq!(stopped["state"], "stopped", "{report}");
    assert!(stopped["stopped"].as_str().unwrap().contains("cannot connect"), "{stopped}");
    backfill.sim.start_server(Server::Pds(1)).unwrap();
    let (report, code) = backfill.run(&[]);
    assert_eq!(
        (code, &report["done_list_count"], &report["stored_count"]),
        (Some(0), &3.into(), &30.into())
    );
    backfill.check();
}

#[test]
fn accounts_that_change_during_the_run_end_as_they_are_at_its_end() {
    let backfill = Backfill::new(network(45, 3));
    let mut child = backfill.start(&["--concurrent-lists", "1"]);
    let (read, waiting) = (backfill.wait_for_first_host(), backfill.unread_host());
    let sim = &backfill.sim;
    let of = |host: usize| (0..45).filter(move |number| sim.account(*number).host == host);
    let [moved, deleted, changed] = [0, 1, 2].map(|at| of(waiting).nth(at).unwrap());
    let (taken_down, rotated) = (of(read).next().unwrap(), of(waiting).nth(3).unwrap());
    sim.migrate_account(moved, read);
    sim.delete_account(deleted);
    sim.write_commit_as(changed);
    sim.rotate_key(rotated);
    sim.set_account_status(taken_down, AccountStatus::TakenDown);
    let new = sim.add_account();
    assert!(child.wait().unwrap().success());
    let snapshots = backfill.snapshots();
    let stored = |number: usize| snapshots.get(&sim.account(number).did);
    assert_eq!(stored(moved).map(|(_, host)| host), Some(&sim.url(Server::Pds(read))));
    assert!(stored(new).is_some());
    assert_eq!((stored(deleted), stored(taken_down)), (None, None));
    let hidden = backfill.query("SELECT did, reason FROM hidden WHERE action = 'hide'");
    assert_eq!(hidden.len(), 1, "{hidden:?}");
    assert_eq!(
        (&hidden[0]["did"], &hidden[0]["reason"]),
        (&sim.account(taken_down).did.into(), &"takendown".into())
    );
    backfill.check();
    assert_eq!(backfill.status()["inactive"]["takendown"], 1);
}

#[test]
fn hostile_repositories_are_refused_with_their_codes_and_hinder_no_other() {
    let backfill = Backfill::new(network(10, 2));
    let mut codes = BTreeMap::new();
    for seed in 1..=3 {
        let set = CaseSet::generate(&hostile::Spec { seed });
        let is_usable = |case: &&hostile::Case| {
            let code = case.code.filter(|_| case.kind == InputKind::Repo && case.now.is_none());
            case.expect == Expect::Refuse
                && code.is_some_and(|code| !codes.contains_key(code) && code.contains('/'))
        };
        let case = set.cases().iter().find(is_usable).unwrap();
        backfill.sim.serve_case(case);
        *codes.entry(case.code.unwrap().to_owned()).or_insert(0) += 1;
    }
    let (report, code) = backfill.run(&[]);
    assert_eq!((code, &report["stored_count"]), (Some(1), &10.into()), "{report}");
    let failed: BTreeMap<String, u64> = serde_json::from_value(report["failed"].clone()).unwrap();
    assert_eq!(failed, codes);
    backfill.check();
}

#[test]
fn accounts_are_selected_excluded_and_left_to_other_hosts() {
    let backfill = Backfill::new(network(12, 3));
    let did = |number: usize| backfill.sim.account(number).did;
    let [dids, excluded, hosts] = ["dids", "excluded", "two-hosts"].map(|name| backfill.path(name));
    fs::write(&dids, [0, 1, 2, 3].map(did).join("\n")).unwrap();
    let third = backfill.sim.url(Server::Pds(2));
    fs::write(&excluded, format!("{}\n{}\n", did(0), third.strip_prefix("http://").unwrap()))
        .unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (report, code) = backfill.run(&["--dids", &text(&dids), "--exclude", &text(&excluded)]);
    assert_eq!(
        (code, &report["list_count"], &report["stored_count"]),
        (Some(0), &2.into(), &2.into())
    );
    let stored: BTreeSet<String> = backfill.snapshots().into_keys().collect();
    assert_eq!(stored, [1, 3].map(did).into());

    // The relay lists accounts of all hosts as if they were its own.
    let relay = backfill.sim.url(Server::Relay(0));
    fs::write(&hosts, format!("{relay}\n{}\n", backfill.sim.url(Server::Pds(0)))).unwrap();
    let mut command = backfill.bare_command(&["--hosts", &text(&hosts), "--name", "two"]);
    let (report, code) = ended(&command.output().unwrap());
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        (&report["elsewhere_count"], &report["stored_count"]),
        (&7.into(), &3.into()),
        "{report}"
    );
}

#[test]
fn a_relay_names_the_hosts_with_their_sizes_or_the_accounts_of_a_collection() {
    let backfill = Backfill::new(network(12, 3));
    let relay = backfill.sim.url(Server::Relay(0));
    let args = ["--relay", &*relay, "--name", "posts", "--whole", "--collections"];
    let args = [&args[..], &["app.bsky.feed.post"]].concat();
    let (report, code) = ended(&backfill.bare_command(&args).output().unwrap());
    let with_posts: BTreeSet<String> = backfill
        .expected()
        .into_iter()
        .filter(|(_, collection, ..)| collection == "app.bsky.feed.post")
        .map(|(did, ..)| did)
        .collect();
    assert_eq!((code, &report["stored_count"]), (Some(0), &with_posts.len().into()), "{report}");
    let stored: BTreeSet<String> = backfill.snapshots().into_keys().collect();
    assert_eq!(stored, with_posts);
    let (report, code) = ended(&backfill.bare_command(&["--relay", &relay]).output().unwrap());
    assert_eq!((code, &report["list_count"]), (Some(0), &3.into()));
    assert_eq!(report["lists"][0]["stated_accounts"], 4);
    assert_eq!(report["present_count"], with_posts.len());
    backfill.check();
}

#[test]
fn keys_come_from_a_mirror_and_a_key_that_has_changed_since_from_the_directory() {
    let backfill = Backfill::new(network(20, 2));
    let (plc, mirror) = (backfill.sim.url(Server::Plc), backfill.path("plc.sqlite"));
    let mut command = wireproof(&["plc", "mirror", "--development", "--url", &plc, "--to"]);
    assert!(command.arg(&mirror).output().unwrap().status.success());
    backfill.sim.rotate_key(5);
    let (report, code) = backfill.run(&["--plc-mirror", mirror.to_str().unwrap()]);
    assert_eq!((code, &report["stored_count"]), (Some(0), &20.into()), "{report}");
    let requests = backfill.sim.request_counts(Server::Plc);
    let documents: Vec<&String> =
        requests.keys().filter(|path| path.starts_with("/did:")).collect();
    assert_eq!(documents, [&format!("/{}", backfill.sim.account(5).did)]);
    backfill.check();
}

#[test]
fn what_is_missing_or_unusable_is_named_before_any_request() {
    let backfill = Backfill::new(network(2, 1));
    let archive = backfill.path("archive");
    let hosts = backfill.path("hosts");
    let (archive, hosts) = (archive.to_str().unwrap(), hosts.to_str().unwrap());
    for (args, text) in [
        (vec!["--hosts", hosts], "--to ARCHIVE is required"),
        (vec!["--to", archive], "--hosts FILE or --relay URL is required"),
        (vec!["--to", archive, "--hosts", hosts], "--contact is required"),
        (vec!["--to", archive, "--hosts", hosts, "--contact", "me"], "a contact is"),
        (vec!["--to", archive, "--hosts", hosts, "--development", "--name", "../x"], "a name has"),
        (
            vec!["--to", archive, "--hosts", hosts, "--development", "--max-rate", "0"],
            "requests a second",
        ),
        (vec!["--to", archive, "--hosts", "/nonexistent"], "/nonexistent"),
    ] {
        let output = wireproof(&[&["backfill"], &args[..]].concat()).output().unwrap();
        assert!(matches!(output.status.code(), Some(2 | 4)), "{args:?}");
        assert!(stderr(&output).contains(text), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(backfill.sim.connection_count(), 0);
}
