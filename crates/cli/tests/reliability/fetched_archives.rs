//! Fetched repositories: the bytes of all resyncs, and of a backfill, stay within one bound on the disk
//! whatever hosts send; lists that do not end delay no other list.

use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use simnet::servers::{Fault, FaultSchedule, Server, Simulation, Spec};

use crate::follow::{self, Follow};
use crate::{report, scaled};

#[test]
fn repositories_of_all_resyncs_stay_within_one_bound_in_the_state_folder() {
    let accounts = scaled(24, 200);
    let spec = Spec { accounts, records: 10, pds: 1, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Pds(0), Fault::EndlessRepo, FaultSchedule::ALWAYS);
    let bound = scaled(48 << 20, 1 << 30);
    let args = ["--resync", "--resync-bytes", &format!("{bound}")];
    let mut command = follow::command(&sim, folder.path(), &args);
    command.env_remove("TMPDIR");
    let mut follow = Follow::spawn(command, 0);
    (0..accounts).for_each(|account| sim.write_commit_as(account));
    for account in 0..accounts {
        sim.write_unannounced(account);
        sim.write_commit_as(account);
    }
    let mut peak = 0;
    let pid = follow.pid();
    follow.wait_until("a request for each repository", |_| {
        peak = peak.max(unnamed_bytes(pid, folder.path()));
        sim.request_counts(Server::Pds(0))
            .get(GET_REPO)
            .is_some_and(|count| *count >= accounts as u64)
    });
    drop(follow.kill());
    report(&format!("{accounts} endless repositories: at most {} MiB in files", peak >> 20));
    assert!(peak > 0, "they are in the state folder");
    assert!(peak <= bound, "{peak} bytes");
}

#[test]
fn repositories_of_a_backfill_stay_within_one_bound_until_they_are_stored() {
    let (accounts, mib) = scaled((40, 16), (400, 64));
    let spec = Spec { accounts, records: 3, pds: 2, jetstreams: 0, ..Spec::default() };
    let backfill = Backfill::new(Simulation::start(spec).unwrap());
    // Bombs are a few KiB when received. In later sweeps the host sends its repositories unchanged.
    let bombs = FaultSchedule::times(accounts as u64 / 2).with_amount(mib);
    backfill.sim.faults().enable(Server::Pds(0), Fault::BombRepo, bombs);
    let (max_bytes, bound) = ((mib + 4) << 20, (3 * mib) << 20);
    let [max_bytes, in_use] = [max_bytes, bound].map(|bytes| bytes.to_string());
    let args = ["--max-bytes", &max_bytes, "--max-bytes-in-use", &in_use];
    let mut child = backfill.start(&args);
    let (mut peak, temporary) = (0, backfill.path("tmp"));
    let status = loop {
        peak = peak.max(unnamed_bytes(child.id(), &temporary));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
    };
    report(&format!("bombs of {mib} MiB: at most {} MiB in files", peak >> 20));
    assert!(peak <= bound, "{peak} bytes");
    assert_eq!(status.code(), Some(0));
    assert_eq!(backfill.status()["stored_count"], accounts);
}

#[test]
fn lists_without_end_delay_no_other_list_and_are_given_up_by_name() {
    let (slow_lists, places) = scaled((1, "1"), (64, "32"));
    let spec = Spec { accounts: 20, records: 3, pds: 2, jetstreams: 0, ..Spec::default() };
    let mut backfill = Backfill::new(Simulation::start(spec).unwrap());
    let slow: Vec<String> = (0..slow_lists).map(|_| serve_slow_list()).collect();
    backfill.hosts.splice(0..0, slow.iter().cloned());
    let mut child = backfill.start(&["--concurrent-lists", places]);
    while !backfill.is_done(&backfill.sim.url(Server::Pds(0)))
        || !backfill.is_done(&backfill.sim.url(Server::Pds(1)))
    {
        assert_eq!(child.try_wait().unwrap(), None, "the lists without end go on");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(backfill.status()["stored_count"], 20);
    if scaled(true, false) {
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let status = backfill.status();
    let lists = status["lists"].as_array().unwrap();
    for list in lists.iter().filter(|list| slow.iter().any(|slow| list["list"] == **slow)) {
        assert_eq!(list["state"], "stopped");
        assert!(list["stopped"].as_str().unwrap().contains("new account"), "{list}");
    }
}

/// A host whose list has one new account a page, and whose pages take ten seconds.
fn serve_slow_list() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            std::thread::spawn(move || send_slow_page(stream.unwrap(), number));
        }
    });
    url
}

/// Sends a page; a client that is gone ends it.
fn send_slow_page(mut stream: TcpStream, number: usize) {
    let _ = stream.read(&mut [0; 4096]);
    let did = format!("did:web:account{number}.example.com");
    let body = format!(r#"{{"repos":[{{"did":"{did}"}}],"cursor":"{number}"}}"#);
    let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n";
    let pieces = [head].into_iter().chain([" "; 10]).chain([&*body]);
    for piece in pieces {
        if stream.write_all(piece.as_bytes()).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// A backfill of a simulated network.
struct Backfill {
    sim: Simulation,
    dir: tempfile::TempDir,
    hosts: Vec<String>,
}

impl Backfill {
    fn new(sim: Simulation) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        let hosts = (0..sim.spec().pds).map(|number| sim.url(Server::Pds(number))).collect();
        Self { sim, dir, hosts }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn start(&self, args: &[&str]) -> Child {
        fs::write(self.path("hosts"), self.hosts.join("\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["backfill", "--development", "--retry-seconds", "0", "--max-rate", "50"]);
        command.args(["--plc", &self.sim.url(Server::Plc)]).args(args);
        command.arg("--to").arg(self.path("archive")).arg("--hosts").arg(self.path("hosts"));
        command.env("XDG_CONFIG_HOME", "/nonexistent").env("TMPDIR", self.path("tmp"));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The document of `backfill status`.
    fn status(&self) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        command.args(["backfill", "status", "--json"]).arg(self.path("archive"));
        let output = command.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Whether a list is done.
    fn is_done(&self, list: &str) -> bool {
        let status = self.status();
        let lists = status["lists"].as_array().into_iter().flatten();
        lists.into_iter().any(|of| of["list"] == list && of["state"] == "done")
    }
}

/// Bytes of the files without a name below `folder` that a process has open or mapped.
fn unnamed_bytes(pid: u32, folder: &Path) -> u64 {
    let (folder, mut bytes) = (folder.to_str().unwrap(), HashMap::new());
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        let is_unnamed = fs::read_link(entry.path()).is_ok_and(|target| {
            let target = target.to_string_lossy();
            target.starts_with(folder) && target.ends_with("(deleted)")
        });
        // A file may be closed meanwhile.
        if let Some(metadata) = fs::metadata(entry.path()).ok().filter(|_| is_unnamed) {
            bytes.insert(metadata.ino(), metadata.len());
        }
    }
    for line in fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default().lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [range, _, _, _, inode, path, ..] = fields[..]
            && path.starts_with(folder)
            && line.ends_with("(deleted)")
            && let Some((start, end)) = range.split_once('-')
        {
            let [start, end] = [start, end].map(|end| u64::from_str_radix(end, 16).unwrap());
            // Whole pages.
            bytes.entry(inode.parse().unwrap()).or_insert(end - start);
        }
    }
    bytes.values().sum()
}

const GET_REPO: &str = "/xrpc/com.atproto.sync.getRepo";
