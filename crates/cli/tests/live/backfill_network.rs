//! `backfill` of a simulated network, both in their own processes: hosts of all conditions, accounts that change meanwhile, kills at
//! random times. At the end every account is in the archive or not, as the network says.
//!
//! 2,000 accounts on 20 hosts; 100,000 on 200 with `WIREPROOF_SOAK=1`, as `cargo xtask soak backfill` sets it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::backfills::{ended, wireproof};
use crate::{schemas, stderr};

#[test]
fn every_account_ends_in_one_state_which_is_that_of_the_network_and_no_host_is_asked_too_often() {
    let shape = Shape::of_test();
    let (dir, started) = (tempfile::tempdir().unwrap(), Instant::now());
    let (network, opened) = (Network::start(&shape), Instant::now());
    println!("{} accounts within {:.1?}", shape.accounts, opened - started);
    let run = Run { network: &network, dir: &dir, shape: &shape };

    let (first, kills) = run.complete("first", &[], shape.kills);
    assert_eq!(first.code, Some(3), "{}", first.document);
    let dead: BTreeSet<String> = network.hosts(|condition| !is_alive(condition)).collect();
    assert_eq!(lists(&first.document, "stopped"), dead);
    first.print(kills);

    // Accounts have changed while their lists were read; the dead hosts are left out.
    wait_for_changes(&shape, opened);
    let excluded = dir.path().join("excluded");
    let names = dead.iter().map(|url| url.strip_prefix("http://").unwrap());
    fs::write(&excluded, names.collect::<Vec<_>>().join("\n")).unwrap();
    let (second, _) = run.complete("second", &["--exclude", excluded.to_str().unwrap()], 0);
    second.print(0);
    assert_eq!(second.code, Some(1), "{}", second.document);
    assert_eq!(lists(&second.document, "done").len(), shape.pds - dead.len());

    let hostile = network.hostile_codes();
    assert_eq!(second.failures(), hostile, "only hostile repositories fail");
    run.check_states(&second.document);
    run.check_proofs();
    let traffic = network.end();
    check_traffic(&traffic, &shape, kills);
}

/// The size of the test.
struct Shape {
    accounts: usize,
    pds: usize,
    records: &'static str,
    changes: u64,
    kills: u64,
    /// Bounds of the time until a kill, in milliseconds.
    kill_after_ms: (u64, u64),
}

impl Shape {
    fn of_test() -> Self {
        let is_whole = std::env::var_os("WIREPROOF_SOAK").is_some_and(|value| value == "1");
        if is_whole {
            return Self {
                accounts: 100_000,
                pds: 200,
                records: "realistic",
                changes: 600,
                kills: 10,
                kill_after_ms: (5_000, 60_000),
            };
        }
        Self {
            accounts: 2_000,
            pds: 20,
            records: "realistic:100",
            changes: 25,
            kills: 2,
            kill_after_ms: (3_000, 8_000),
        }
    }
}

/// A running `sim serve`. Dropping it kills the process.
struct Network {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The first line.
    opening: Value,
}

/// An account, as a server lists it.
struct Listed {
    did: String,
    rev: Option<String>,
    is_active: bool,
}

impl Network {
    fn start(shape: &Shape) -> Self {
        let [accounts, pds] = [shape.accounts, shape.pds].map(|count| count.to_string());
        let mut command = wireproof(&["sim", "serve", "--port", "0", "--json", "--hosts-vary"]);
        command.args(["--accounts", &accounts, "--pds", &pds, "--records", shape.records]);
        command.args(["--uneven", "--rate", "none", "--prepared", "0", "--jetstreams", "0"]);
        command.args(["--changes", &shape.changes.to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let opening = document(&mut output);
        Self { child, output, opening }
    }

    fn servers(&self) -> impl Iterator<Item = &Value> {
        self.opening["servers"].as_array().unwrap().iter()
    }

    fn url(&self, name: &str) -> String {
        let server = self.servers().find(|server| server["server"] == name).unwrap();
        server["host"].as_str().unwrap().to_owned()
    }

    /// The URLs of the hosts of some conditions.
    fn hosts(&self, has: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
        let is_of = move |server: &&Value| server["condition"].as_str().is_some_and(&has);
        self.servers().filter(is_of).map(|server| server["host"].as_str().unwrap().to_owned())
    }

    /// The accounts that a server lists, without the entries that name none.
    fn listed(&self, url: &str) -> Vec<Listed> {
        let (mut listed, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = get(url, &format!("/xrpc/com.atproto.sync.listRepos?limit=1000{cursor}"));
            for repo in page["repos"].as_array().unwrap() {
                let did = repo["did"].as_str().filter(|did| did.starts_with("did:"));
                let rev = repo["rev"].as_str().filter(|rev| !rev.is_empty());
                listed.extend(did.map(|did| Listed {
                    did: did.to_owned(),
                    rev: rev.map(str::to_owned),
                    is_active: repo["active"] != false,
                }));
            }
            match page["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return listed,
            }
        }
    }

    /// The hostile accounts, and the codes of their refusals.
    fn hostile(&self) -> BTreeMap<String, String> {
        let hostile = self.opening["hostile_accounts"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        hostile.map(|account| (text(&account["did"]), text(&account["code"]))).collect()
    }

    fn hostile_codes(&self) -> BTreeMap<String, u64> {
        self.hostile().into_values().map(|code| (code, 1)).collect()
    }

    /// Ends it; the last line.
    fn end(mut self) -> Value {
        println!("sim serve: {} MiB at most", peak_memory(&self.child).unwrap() >> 20);
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
        let traffic = document(&mut self.output);
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        traffic
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until all accounts have changed that change: one a second since the servers were open, or somewhat later.
fn wait_for_changes(shape: &Shape, opened: Instant) {
    let end = opened + Duration::from_secs(shape.changes + shape.changes / 20 + 5);
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
}

fn is_alive(condition: &str) -> bool {
    !matches!(condition, "silent" | "refusing")
}

fn document(output: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let document = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    schemas::check("sim-serve", &document);
    document
}

/// A document of a server, asked for again while it answers 429.
fn get(url: &str, path: &str) -> Value {
    let host = url.strip_prefix("http://").unwrap();
    let port = host.strip_prefix("localhost:").unwrap().parse::<u16>().unwrap();
    loop {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        if !head.starts_with("HTTP/1.1 429 ") {
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
            return serde_json::from_str(body).unwrap();
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Peak memory of a process that runs, in bytes.
fn peak_memory(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

/// Backfills of a network into one archive.
struct Run<'r> {
    network: &'r Network,
    dir: &'r TempDir,
    shape: &'r Shape,
}

/// How a backfill ended.
struct Ended {
    document: Value,
    code: Option<i32>,
    time: Duration,
    peak_memory: u64,
}

impl Run<'_> {
    fn archive(&self) -> PathBuf {
        self.dir.path().join("archive")
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let (plc, relay) = (self.network.url("plc"), self.network.url("relay0"));
        let mut command = wireproof(&["backfill", "--json", "--development", "--plc", &plc]);
        command.arg("--to").arg(self.archive()).args(["--relay", &relay, "--name", name]);
        command.args(["--max-rate", &MAX_RATE.to_string(), "--retry-seconds", "1"]).args(args);
        command
    }

    /// Runs a backfill to its end, after it was killed this many times; fewer if it ends before.
    fn complete(&self, name: &str, args: &[&str], max_kills: u64) -> (Ended, u64) {
        let started = Instant::now();
        let mut kills = 0;
        let mut peak = 0;
        let (out, errors) = (self.dir.path().join("out"), self.dir.path().join("errors"));
        loop {
            let [stdout, stderr] = [&out, &errors].map(|path| fs::File::create(path).unwrap());
            let mut child = self.command(name, args).stdout(stdout).stderr(stderr).spawn().unwrap();
            let limit = (kills < max_kills).then(|| self.kill_after(kills));
            let since = Instant::now();
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break Some(status);
                }
                peak = peak.max(peak_memory(&child).unwrap_or(0));
                if limit.is_some_and(|limit| since.elapsed() >= limit) {
                    break None;
                }
                std::thread::sleep(Duration::from_millis(50));
            };
            let Some(status) = status else {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
                continue;
            };
            let [stdout, stderr] = [&out, &errors].map(|path| fs::read(path).unwrap());
            let (document, code) = ended(&std::process::Output { status, stdout, stderr });
            return (Ended { document, code, time: started.elapsed(), peak_memory: peak }, kills);
        }
    }

    /// The time until a kill: any within the bounds, by the clock.
    fn kill_after(&self, kills: u64) -> Duration {
        let (least, most) = self.shape.kill_after_ms;
        let now = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
        let delay = least + (u64::from(now) + kills) % (most - least);
        println!("kill {} after {delay} ms", kills + 1);
        Duration::from_millis(delay)
    }

    /// The rows of a statement over the archive.
    fn query(&self, sql: &str) -> Vec<Value> {
        let mut command = wireproof(&["archive", "query"]);
        let output =
            command.arg(self.archive()).args([sql, "--format", "ndjson"]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let lines = str::from_utf8(&output.stdout).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Checks that the archive has the accounts that hosts serve, at the revisions that they state, and no other; and that every
    /// account of the network is one of these, inactive, or on a dead host.
    fn check_states(&self, report: &Value) {
        // The requests below are not paced, and not in one second with the run's requests.
        std::thread::sleep(Duration::from_secs(1));
        let hostile = self.network.hostile();
        let mut served = BTreeMap::new();
        let mut inactive = BTreeSet::new();
        // The relay states the revisions that the list with odd entries does not.
        let all = self.network.listed(&self.network.url("relay0"));
        let revs: BTreeMap<&str, &String> =
            all.iter().filter_map(|of| Some((&*of.did, of.rev.as_ref()?))).collect();
        for host in self.network.hosts(is_alive) {
            for Listed { did, rev, is_active } in self.network.listed(&host) {
                match is_active {
                    _ if hostile.contains_key(&did) => {}
                    true => {
                        let rev = rev.unwrap_or_else(|| revs[&*did].clone());
                        assert_eq!(served.insert(did, rev), None, "one host has it");
                    }
                    false => assert!(inactive.insert(did), "one host has it"),
                }
            }
        }
        let rows = self.query("SELECT did, max(rev) AS rev FROM snapshots GROUP BY did");
        let text = |row: &Value, name: &str| row[name].as_str().unwrap().to_owned();
        let stored: BTreeMap<String, String> =
            rows.iter().map(|row| (text(row, "did"), text(row, "rev"))).collect();
        assert_eq!(stored.len(), rows.len());
        assert!(stored == served, "{}", difference(&stored, &served));
        let counts = self.query(
            "SELECT count(*) AS n, count(DISTINCT concat(did, ' ', rev)) AS repositories FROM snapshots",
        );
        assert_eq!(counts[0]["n"], counts[0]["repositories"], "each is stored once");

        let is_elsewhere = |did: &str| !served.contains_key(did) && !inactive.contains(did);
        let unreached = all.iter().filter(|account| is_elsewhere(&account.did)).count();
        println!(
            "{} accounts: {} stored, {} inactive, {unreached} on dead hosts",
            all.len(),
            stored.len(),
            inactive.len()
        );
        assert_eq!(stored.len() + inactive.len() + unreached, all.len());
        assert!(all.len() > self.shape.accounts && unreached > 0 && !inactive.is_empty());
        let reported = report["inactive"].as_object().unwrap().values();
        let reported: u64 = reported.map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(reported, inactive.len() as u64, "{report}");
    }

    fn check_proofs(&self) {
        let output = wireproof(&["archive", "verify"]).arg(self.archive()).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        println!("the archive has {} MiB", size_of(&self.archive()) >> 20);
    }
}

impl Ended {
    /// The accounts that failed, by class.
    fn failures(&self) -> BTreeMap<String, u64> {
        serde_json::from_value(self.document["failed"].clone()).unwrap()
    }

    fn print(&self, kills: u64) {
        let Self { document, time, peak_memory, .. } = self;
        let count = |name: &str| document[name].as_u64().unwrap();
        let stored = count("stored_count");
        println!(
            "{kills} kills, {stored} repositories with {} records in {time:.1?}: {:.1} a second, {} MiB of {} MiB received, \
             {} MiB of memory at most; failed: {:?}",
            count("record_count"),
            stored as f64 / time.as_secs_f64(),
            count("wire_byte_count") >> 20,
            count("byte_count") >> 20,
            peak_memory >> 20,
            self.failures(),
        );
    }
}

/// The lists in a state.
fn lists(report: &Value, state: &str) -> BTreeSet<String> {
    let lists = report["lists"].as_array().unwrap().iter();
    let lists = lists.filter(|list| list["state"] == state);
    lists.map(|list| list["list"].as_str().unwrap().to_owned()).collect()
}

/// The first accounts that differ.
fn difference(stored: &BTreeMap<String, String>, served: &BTreeMap<String, String>) -> String {
    let dids: BTreeSet<&String> = stored.keys().chain(served.keys()).collect();
    let differ = dids.into_iter().filter(|did| stored.get(*did) != served.get(*did));
    let line = |did: &String| {
        format!("{did}: stored {:?}, served {:?}\n", stored.get(did), served.get(did))
    };
    differ.take(5).map(line).collect()
}

/// Bytes of the files in a folder.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let size = |path: PathBuf| {
        if path.is_dir() { size_of(&path) } else { fs::metadata(&path).unwrap().len() }
    };
    entries.map(size).sum()
}

/// Checks the traffic of the network: rates, answers of every condition, and that everything planned has happened.
fn check_traffic(traffic: &Value, shape: &Shape, kills: u64) {
    let mut seen = BTreeSet::new();
    let count = |value: &Value| value["count"].as_u64().unwrap();
    for host in traffic["servers"].as_array().unwrap() {
        let Some(condition) = host["condition"].as_str() else { continue };
        let answers = host["answers"].as_array().unwrap();
        let of = |status: u16| {
            answers.iter().filter(|of| of["status"] == status).map(count).sum::<u64>()
        };
        let (all, limited): (u64, u64) = (answers.iter().map(count).sum(), of(429));
        let peak = host["peak_per_s"].as_u64().unwrap();
        assert!(peak <= MAX_PEAK, "{host}");
        match condition {
            "silent" | "refusing" => assert_eq!(all, 0, "{host}"),
            // Requests that are under way when the limit is reached are limited too.
            "limited" => assert!(limited <= (all / 40 + 1 + kills) * IN_FLIGHT, "{host}"),
            "limited-silently" => assert!(limited * 5 <= all, "{host}"),
            _ => assert_eq!(limited, 0, "{host}"),
        }
        if limited > 0 {
            seen.insert(condition);
        }
    }
    assert!(seen.contains("limited"), "{seen:?}");
    let happened: BTreeSet<&str> = { traffic["faults"].as_array().unwrap().iter() }
        .filter(|fault| count(fault) > 0)
        .map(|fault| fault["fault"].as_str().unwrap())
        .collect();
    assert_eq!(happened, ["cut-repo", "late-answer", "odd-entries", "silence"].into());
    let changes = traffic["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 5, "{changes:?}");
    assert_eq!(changes.iter().map(count).sum::<u64>(), shape.changes);
    let peaks = traffic["servers"].as_array().unwrap().iter();
    let peaks = peaks.filter(|server| server["condition"].is_string());
    let peak = peaks.map(|server| server["peak_per_s"].as_u64().unwrap()).max();
    println!("at most {peak:?} requests in a second to a host");
}

/// Requests a second to one host.
const MAX_RATE: u64 = 40;

/// Requests at once to one host.
const IN_FLIGHT: u64 = 4;

/// The largest number of requests in any second: the rate, a burst, and requests that were late; a killed process and the next one
/// may share the second.
const MAX_PEAK: u64 = MAX_RATE + 2 * (4 + IN_FLIGHT);
