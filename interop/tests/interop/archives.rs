//! Consumers that catch up from `wireproof archive serve`: the events that they verify, compared with the ones that the
//! network sent.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use codec::Cid;
use serde_json::Value;
use simnet::servers::{AccountStatus, EventKind, SentEvent, Server, Simulation, Spec};
use wireproof_interop::kit;
use wireproof_interop::reader::Reader;

use crate::activity::wireproof;
use crate::follower::Follower;

const RELAY: Server = Server::Relay(0);

/// A network, and a server of an archive of its events.
struct Archived {
    sim: Simulation,
    /// The records of the accounts before the first event.
    initial: BTreeMap<String, BTreeMap<String, String>>,
    folder: tempfile::TempDir,
    /// Number of stored events.
    stored: usize,
    server: Option<Child>,
    address: String,
}

impl Archived {
    /// The archive of a few hundred commits.
    fn start() -> Self {
        let spec = Spec { accounts: 6, records: 20, ..Spec::default() };
        let sim = Simulation::start(spec).expect("ports for a small network");
        let initial = records_of(&sim);
        sim.write_commits(200);
        let folder = tempfile::tempdir().expect("a folder");
        let stored = 0;
        let server = None;
        let address = String::new();
        let mut archived = Self { sim, initial, folder, stored, server, address };
        archived.store();
        let mut serve = archived.command("serve");
        serve.args(["--listen", "127.0.0.1:0"]);
        let mut server = serve.stderr(Stdio::piped()).spawn().expect("the command");
        let errors = BufReader::new(server.stderr.take().expect("its standard error"));
        let mut lines = errors.lines().map_while(Result::ok);
        let url = lines.find_map(|line| Some(line.split_once("serving at ws://")?.1.to_owned()));
        archived.address = url.expect("a URL").split('/').next().expect("an address").to_owned();
        std::thread::spawn(move || lines.for_each(drop));
        archived.server = Some(server);
        archived
    }

    fn command(&self, command: &str) -> Command {
        let mut process = Command::new(wireproof());
        process.args(["archive", command]).env("XDG_CONFIG_HOME", "/nonexistent");
        process.env("WIREPROOF_ARCHIVE", self.folder.path()).stdout(Stdio::null());
        if command == "serve" {
            process.arg(self.folder.path());
        }
        process
    }

    /// Stores the events sent since then.
    fn store(&mut self) {
        let sent = self.sim.sent_events(RELAY).len();
        let mut follow = self.command("follow");
        follow.args(["--cursor", "oldest", "--host", &self.sim.url(RELAY)]);
        follow.args(["--plc", &self.sim.url(Server::Plc)]);
        follow.args(["--development-port", &self.sim.port(Server::Pds(0)).to_string()]);
        follow.args(["--events", &(sent - self.stored).to_string()]);
        let output = follow.stderr(Stdio::piped()).output().expect("the command");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.stored = sent;
    }

    /// Changes accounts in every way that leaves their keys unchanged, and stores the events.
    fn change(&mut self) {
        self.sim.change_handle(1, "renamed.test");
        self.sim.set_account_status(2, AccountStatus::Deactivated);
        self.sim.set_account_status(2, AccountStatus::Active);
        self.sim.send_sync(3);
        self.sim.migrate_account(4, 1);
        self.sim.write_commits(100);
        self.store();
    }

    fn service(&self) -> String {
        format!("ws://{}", self.address)
    }

    fn sent(&self) -> Vec<SentEvent> {
        self.sim.sent_events(RELAY)
    }
}

impl Drop for Archived {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            // It may have ended.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

#[test]
fn atproto_sync_verifies_every_archived_event_and_those_that_are_stored_later() {
    let kit = kit!(Readers);
    let mut archived = Archived::start();
    let plc = archived.sim.url(Server::Plc);
    let reader = Reader::atproto_sync(&kit, &archived.service(), &plc, 0);
    read_all(&archived, &reader, 0);
    let stored = archived.stored;
    archived.change();
    read_all(&archived, &reader, stored);
    assert_eq!(reader.rest(), [Value::Null; 0]);
}

#[test]
fn indigo_verifies_every_archived_event_and_resumes_after_its_cursor() {
    let kit = kit!(Relay);
    let mut archived = Archived::start();
    let plc = archived.sim.url(Server::Plc);
    let reader = |cursor| Reader::indigo(&kit, &archived.service(), &plc, cursor);
    let first = reader(0);
    let events = read_all(&archived, &first, 0);
    let seqs: Vec<i64> = events.iter().map(|event| event["seq"].as_i64().unwrap()).collect();
    assert!(seqs.is_sorted(), "{seqs:?}");
    let middle = seqs[seqs.len() / 2];
    let later: Vec<&Value> =
        events.iter().filter(|event| event["seq"].as_i64() > Some(middle)).collect();
    let resumed = reader(middle);
    let received: Vec<Value> = later.iter().map(|_| resumed.next()).collect();
    assert_eq!(received.iter().collect::<Vec<_>>(), later);
    let outdated = reader(5);
    assert_eq!(outdated.next()["name"], "OutdatedCursor");
    assert_eq!(outdated.next(), events[0]);
    assert_eq!(reader(i64::MAX - 1).next()["name"], "FutureCursor");
    let stored = archived.stored;
    archived.change();
    read_all(&archived, &first, stored);
    assert_eq!(first.rest(), [Value::Null; 0]);
}

#[test]
fn the_lines_of_follow_give_the_records_of_the_network_while_it_is_killed() {
    // Its programs are all ours.
    let mut archived = Archived::start();
    let plc = archived.sim.url(Server::Plc);
    let mut follower = Follower::start(&format!("http://{}", archived.address), &plc);
    for round in 0..3 {
        sleep(crate::round_time(round));
        follower.kill_and_restart();
    }
    archived.change();
    let all = records_of(&archived.sim);
    // No event names the accounts' records from before the stream; only a repository that was fetched does.
    let is_initial = |did: &str, path: &str, cid: &String| {
        archived.initial.get(did).and_then(|initial| initial.get(path)) == Some(cid)
    };
    let is_expected = |found: &BTreeMap<String, BTreeMap<String, String>>| {
        all.iter().all(|(did, records)| {
            let found = found.get(did).cloned().unwrap_or_default();
            let mut missing = records.iter().filter(|(path, cid)| found.get(*path) != Some(cid));
            missing.all(|(path, cid)| is_initial(did, path, cid))
                && found.iter().all(|(path, cid)| records.get(path) == Some(cid))
        })
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_expected(&follower.records()) {
        assert!(Instant::now() < deadline, "{:?}\nis not\n{all:?}", follower.records());
        sleep(Duration::from_millis(200));
    }
}

/// The CIDs of the records of every account.
fn records_of(sim: &Simulation) -> BTreeMap<String, BTreeMap<String, String>> {
    let texts = |records: BTreeMap<String, Cid>| {
        records.into_iter().map(|(path, cid)| (path, cid.to_string())).collect()
    };
    let expected = sim.expected_accounts().into_iter();
    expected.map(|of| (of.account.did, texts(of.records))).collect()
}

/// Reads the events from `start` on, and compares them per account with the sent events, in order.
fn read_all(archived: &Archived, reader: &Reader, start: usize) -> Vec<Value> {
    let sent = &archived.sent()[start..];
    let count: u32 = sent.iter().map(yields).sum();
    let events: Vec<Value> = (0..count).map(|_| reader.next()).collect();
    let mut received: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for event in &events {
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        // Other messages have no revision for all readers.
        let rev = if text("kind") == "commit" { text("rev") } else { "" };
        received.entry(text("did")).or_default().push((text("kind"), rev));
    }
    let mut expected: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for sent in sent {
        let of_account = expected.entry(&sent.subject.did).or_default();
        let line = match sent.subject.kind {
            EventKind::Commit => ("commit", sent.subject.rev.as_str()),
            EventKind::Sync => ("sync", ""),
            EventKind::Identity => ("identity", ""),
            EventKind::Account => ("account", ""),
            EventKind::Hostile => ("hostile", ""),
        };
        of_account.extend((0..yields(sent)).map(|_| line));
    }
    assert_eq!(received, expected);
    events
}

/// The number of lines of a reader for a sent event.
fn yields(sent: &SentEvent) -> u32 {
    match sent.subject.kind {
        EventKind::Commit => sent.subject.jetstream_events,
        // The network sends it with a revision that is known: it was ignored, and is not replayed.
        EventKind::Sync => 0,
        _ => 1,
    }
}
