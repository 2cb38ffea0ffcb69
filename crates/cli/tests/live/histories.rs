//! Histories of accounts: their sources, their order with events, and wrong entries in hosts' lists.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use simnet::servers::{Fault, FaultSchedule, RequestLimit, Server, Simulation, Spec};

use crate::{Running, file_lines, follow};

/// The tables of a destination.
pub(crate) struct Tables(PathBuf);

impl Tables {
    pub(crate) fn new(dir: &Path) -> Self {
        Self(dir.join("tables.db"))
    }

    pub(crate) fn to(&self) -> String {
        format!("sqlite:{}", self.0.display())
    }

    pub(crate) fn query(&self, select: &str) -> Option<i64> {
        let file = Connection::open_with_flags(&self.0, OpenFlags::SQLITE_OPEN_READ_ONLY).ok()?;
        file.query_row(select, [], |row| row.get(0)).ok()
    }

    pub(crate) fn wait(&self, what: &str, select: &str, expected: usize) {
        let since = Instant::now();
        while self.query(select) != i64::try_from(expected).ok() {
            assert!(since.elapsed() < Duration::from_secs(120), "{what}: {:?}", self.query(select));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the tables have the records of the network.
    pub(crate) fn wait_for_records(&self, sim: &Simulation) {
        let (expected, since) = (expected(sim), Instant::now());
        while self.records() != expected {
            assert!(since.elapsed() < Duration::from_secs(120), "the records of the network");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn wait_for_histories(&self, accounts: usize) {
        self.wait("histories", "SELECT count(*) FROM account WHERE complete", accounts);
    }

    /// The CIDs of all records, by account and path.
    fn records(&self) -> BTreeMap<(String, String), String> {
        let file = Connection::open(&self.0).unwrap();
        let mut select =
            file.prepare("SELECT did, collection || '/' || rkey, cid FROM record").unwrap();
        let row = |row: &rusqlite::Row<'_>| Ok(((row.get(0)?, row.get(1)?), row.get(2)?));
        select.query_map([], row).unwrap().map(Result::unwrap).collect()
    }
}

/// The records of all accounts of a network.
fn expected(sim: &Simulation) -> BTreeMap<(String, String), String> {
    let of_account = |expected: simnet::servers::ExpectedAccount| {
        let did = expected.account.did;
        let record = move |(path, cid)| ((did.clone(), path), format!("{cid}"));
        expected.records.into_iter().map(record)
    };
    sim.expected_accounts().into_iter().flat_map(of_account).collect()
}

pub(crate) fn network(accounts: usize) -> Simulation {
    let spec = Spec { accounts, records: 12, jetstreams: 0, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

fn servers(sim: &Simulation) -> String {
    [0, 1].map(|server| sim.url(Server::Pds(server))).join(",")
}

#[test]
fn all_accounts_of_servers_have_their_history_also_after_kills_and_each_once() {
    let limit = RequestLimit { requests: 15, window: Duration::from_secs(1) };
    let spec = Spec {
        accounts: 60,
        records: 12,
        jetstreams: 0,
        request_limit: Some(limit),
        ..Spec::default()
    };
    let (sim, dir) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let (tables, servers) = (Tables::new(dir.path()), servers(&sim));
    let to = tables.to();
    let start = || Running::start(follow(&sim, dir.path(), &["--all-from", &servers, "--to", &to]));
    let complete = "SELECT count(*) FROM account WHERE complete";
    for count in [1, 20, 40] {
        let running = start();
        let since = Instant::now();
        while tables.query(complete).is_none_or(|found| found < count) {
            assert!(since.elapsed() < Duration::from_secs(60), "{count} histories");
            std::thread::sleep(Duration::from_millis(5));
        }
        running.kill();
        sim.write_commits(10);
    }
    let running = start();
    tables.wait_for_histories(60);
    sim.write_commits(30);
    tables.wait_for_records(&sim);
    running.kill();
    // A kill can repeat the histories in flight.
    let begun = tables.query("SELECT max(generation) FROM account").unwrap();
    assert!(begun <= 4, "{begun}");
    let repeated = tables.query("SELECT count(*) FROM account WHERE generation > 1").unwrap();
    println!("{repeated} of 60 histories were delivered again");
    assert!(repeated < 60);
}

#[test]
fn the_accounts_of_a_collection_are_found_at_the_relay() {
    let (sim, dir) = (network(6), tempfile::tempdir().unwrap());
    let (tables, collection) = (Tables::new(dir.path()), "app.bsky.feed.post");
    let to = tables.to();
    let args = ["--backfill", "--collections", collection, "--to", &to];
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    let listed = running.wait_for_stderr("accounts listed");
    assert!(listed.contains(collection), "{listed}");
    let of = |(path, _): &((String, String), String)| path.1.starts_with(collection);
    let expected: BTreeMap<_, _> = expected(&sim).into_iter().filter(of).collect();
    let since = Instant::now();
    while !tables.0.exists() || tables.records() != expected {
        assert!(since.elapsed() < Duration::from_secs(60), "the posts of the network");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Repositories of which the part with one collection is small.
fn large_repositories() -> Simulation {
    let request_limit = Some(RequestLimit { requests: 15, window: Duration::from_secs(1) });
    let spec =
        Spec { accounts: 3, records: 1_500, jetstreams: 0, request_limit, ..Spec::default() };
    Simulation::start(spec).unwrap()
}

/// The requests to all hosts for a method.
fn requests(sim: &Simulation, method: &str) -> u64 {
    let path = format!("/xrpc/com.atproto.sync.{method}");
    let of_host = |host| sim.request_counts(Server::Pds(host)).get(&path).copied();
    (0..sim.spec().pds).filter_map(of_host).sum()
}

/// The records of a network that are in these collections.
fn of_collections(sim: &Simulation, names: &[&str]) -> BTreeMap<(String, String), String> {
    let is_in = |((_, path), _): &((String, String), String)| {
        names.iter().any(|name| path.split_once('/').unwrap().0 == *name)
    };
    expected(sim).into_iter().filter(is_in).collect()
}

#[test]
fn the_history_of_a_collection_is_the_part_of_the_repository_that_proves_it() {
    let (sim, dir) = (large_repositories(), tempfile::tempdir().unwrap());
    let (tables, servers) = (Tables::new(dir.path()), servers(&sim));
    let folder = dir.path().join("lines");
    let to = format!("{},file:{}", tables.to(), folder.display());
    let (gate, repost) = ("app.bsky.feed.postgate", "app.bsky.feed.repost");
    for collections in [&[gate][..], &[gate, repost]] {
        if collections.len() == 2 {
            sim.write_commit_as(0);
        }
        let names = collections.join(",");
        let args = ["--all-from", &*servers, "--collections", &*names, "--to", &*to];
        let running = Running::start(follow(&sim, dir.path(), &args));
        let (expected, since) = (of_collections(&sim, collections), Instant::now());
        assert!(!expected.is_empty());
        while !tables.0.exists() || tables.records() != expected {
            assert!(since.elapsed() < Duration::from_secs(120), "the records of {names}");
            std::thread::sleep(Duration::from_millis(20));
        }
        tables.wait_for_histories(3);
        running.interrupt();
    }
    assert_eq!(requests(&sim, "getRepo"), 0);
    assert!(requests(&sim, "getBlocks") > 0);
    let lines = file_lines(&folder);
    let parts: Vec<_> = lines.iter().filter(|line| line["kind"] == "resync").collect();
    // The second run adds a collection to accounts that have the same commit, and fetches both of the changed one.
    let of = |collections: &[&str]| {
        let is_of = |line: &&&serde_json::Value| line["collections"] == json!(collections);
        parts.iter().filter(is_of).map(|line| line["did"].clone()).collect::<Vec<_>>()
    };
    let changed = sim.account(0).did;
    assert_eq!(of(&[gate]).len(), 3);
    assert_eq!(of(&[gate, repost]), [json!(changed)]);
    let added = of(&[repost]);
    assert!(added.len() == 2 && !added.contains(&json!(changed)), "{added:?}");
    // A record takes some 400 bytes.
    let bytes: u64 = parts.iter().map(|line| line["bytes"].as_u64().unwrap()).sum();
    let records = expected(&sim).len();
    assert!(bytes < 100 * records as u64, "{bytes} bytes of {records} records");
}

#[test]
fn a_server_that_does_not_prove_a_collection_is_named_and_asked_for_the_whole_repository() {
    let collection = "app.bsky.feed.postgate";
    for (fault, warning) in [
        (Fault::WithheldBlock, Some("(tree/missing-node)")),
        (Fault::ExtraBlock, Some("(car/extra)")),
        (Fault::NoBlocks, None),
    ] {
        let (sim, dir) = (large_repositories(), tempfile::tempdir().unwrap());
        (0..sim.spec().pds)
            .for_each(|host| sim.faults().enable(Server::Pds(host), fault, FaultSchedule::ALWAYS));
        let tables = Tables::new(dir.path());
        let (to, servers) = (tables.to(), servers(&sim));
        let args = ["--all-from", &*servers, "--collections", collection, "--to", &*to];
        let mut running = Running::start(follow(&sim, dir.path(), &args));
        if let Some(code) = warning {
            let line = running.wait_for_stderr("does not prove the selected collections");
            assert!(line.contains(code), "{line}");
        }
        tables.wait_for_histories(3);
        assert_eq!(tables.records(), of_collections(&sim, &[collection]));
        assert_eq!(requests(&sim, "getRepo"), 3, "{fault:?}");
        running.kill();
    }
}

#[test]
fn a_list_is_read_on_during_the_run_for_accounts_that_are_new() {
    let (sim, dir) = (network(4), tempfile::tempdir().unwrap());
    let (tables, servers) = (Tables::new(dir.path()), servers(&sim));
    let to = tables.to();
    let args = ["--all-from", &*servers, "--to", &*to, "--list-seconds", "1"];
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    tables.wait_for_histories(4);
    let did = sim.account(sim.add_account()).did;
    running.wait_for_stderr("1 accounts listed");
    tables.wait_for_histories(5);
    let of_new = format!("SELECT count(*) FROM event WHERE kind = 'resync' AND did = '{did}'");
    assert_eq!(tables.query(&of_new), Some(1));
    running.interrupt();
}

#[test]
fn accounts_are_read_from_standard_input_and_those_of_a_file_are_added_by_a_signal() {
    let (sim, dir) = (network(4), tempfile::tempdir().unwrap());
    let (tables, list) = (Tables::new(dir.path()), dir.path().join("dids"));
    let dids: Vec<String> = (0..3).map(|number| sim.account(number).did).collect();
    let to = tables.to();
    let mut command =
        follow(&sim, dir.path(), &["--did-file", "-", "--backfill", "--to", &to, "--events", "1"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "{}", dids[0]).unwrap();
    sim.write_commit_as(0);
    assert!(child.wait().unwrap().success());
    tables.wait_for_histories(1);

    fs::write(&list, format!("{}\n", dids[0])).unwrap();
    let file = list.display().to_string();
    let args = ["--did-file", &*file, "--backfill", "--to", &*to];
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    running.wait_for_stderr("connected");
    fs::write(&list, dids.join("\n")).unwrap();
    running.signal("HUP");
    running.wait_for_stderr("SIGHUP: 3 accounts are selected, 1 were");
    tables.wait_for_histories(3);
    running.kill();
}

#[test]
fn accounts_that_a_server_lists_and_does_not_have_are_named_and_left_out() {
    let (sim, dir) = (network(5), tempfile::tempdir().unwrap());
    let (tables, relay) = (Tables::new(dir.path()), sim.url(Server::Relay(0)));
    let both = format!("{relay},{}", sim.url(Server::Pds(0)));
    let to = tables.to();
    let args = ["--all-from", &*both, "--to", &*to];
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    let warning = running.wait_for_stderr("its history is left out");
    assert!(warning.contains(&relay) && warning.contains("whose document names"), "{warning}");
    // The relay came first, and does not hide them.
    tables.wait_for_histories(3);
    running.kill();
}
