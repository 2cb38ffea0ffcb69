//! The client of tap, unchanged, at the channel of `wireproof follow --to ws://…` and of `wireproof serve`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use simnet::servers::{AccountStatus, Server, Simulation, Spec};
use wireproof_interop::kit;
use wireproof_interop::program::free_port;
use wireproof_interop::reader::Reader;

use crate::activity::wireproof;
use crate::served::Served;

/// A `follow` whose clients connect to one address over all of its runs.
struct Follow {
    child: Child,
}

impl Follow {
    fn start(sim: &Simulation, folder: &Path, address: &str) -> Self {
        let dids: Vec<String> =
            (0..sim.account_count()).map(|number| sim.account(number).did).collect();
        let mut command = Command::new(wireproof());
        command.args(["follow", "--backfill", "--cursor", "oldest", "--dids", &dids.join(",")]);
        command.args(["--host", &sim.url(Server::Relay(0)), "--plc", &sim.url(Server::Plc)]);
        command.args(["--development-port", &sim.port(Server::Pds(0)).to_string()]);
        command.arg("--state").arg(folder.join("state"));
        command.args(["--to", &format!("ws://{address}")]);
        command.arg("--ws-token-file").arg(folder.join("token"));
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the command");
        let errors = BufReader::new(child.stderr.take().expect("its standard error"));
        let mut lines = errors.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("WebSockets at")), "the server is not ready");
        // The rest is read too, so that it never waits.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child }
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The events that a client has received.
#[derive(Debug, Default)]
struct State {
    records: BTreeMap<String, BTreeMap<String, String>>,
    statuses: BTreeMap<String, String>,
    events: usize,
}

impl State {
    fn apply(&mut self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        self.events += 1;
        if event["kind"] == "identity" {
            self.statuses.insert(text("did"), text("status"));
            return;
        }
        let records = self.records.entry(text("did")).or_default();
        let path = format!("{}/{}", text("collection"), text("rkey"));
        if event["action"] == "delete" {
            records.remove(&path)
        } else {
            records.insert(path, text("cid"))
        };
    }

    fn has_records_of(&self, sim: &Simulation) -> bool {
        sim.expected_accounts().iter().all(|expected| {
            let records = self.records.get(&expected.account.did);
            let records = records.into_iter().flatten();
            let found = records.map(|(path, cid)| (path.clone(), cid.clone()));
            found.eq(expected.records.iter().map(|(path, cid)| (path.clone(), cid.to_string())))
        })
    }

    fn receive_all(&mut self, sim: &Simulation, client: &Reader) {
        while !self.has_records_of(sim) {
            self.apply(&client.next());
        }
    }
}

#[test]
fn the_client_of_tap_ends_with_every_record_whichever_side_is_killed() {
    let kit = kit!(Readers);
    let spec = Spec { accounts: 5, records: 120, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    fs::write(folder.path().join("token"), PASSWORD).unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let follow = || Follow::start(&sim, folder.path(), &address);
    let client = || Reader::tap(&kit, &format!("http://{address}"), PASSWORD);
    let mut state = State::default();
    let mut server = follow();
    let mut reader = client();

    let rounds = crate::scaled(6, 200);
    for round in 0..rounds {
        sim.write_commits(40);
        (0..round % 6 * 7).for_each(|_| state.apply(&reader.next()));
        // Either in the middle of its events.
        if round % 2 == 1 {
            drop(server);
            server = follow();
        }
        reader.kill().iter().for_each(|event| state.apply(event));
        reader = client();
    }
    state.receive_all(&sim, &reader);
    // A client that has handled everything reconnects by itself.
    assert_eq!(reader.rest(), [Value::Null; 0]);
    drop(server);
    let _server = follow();
    sim.write_commits(20);
    state.receive_all(&sim, &reader);
    let did = sim.account(2).did;
    sim.set_account_status(2, AccountStatus::TakenDown);
    while state.statuses.get(&did).map(String::as_str) != Some("takendown") {
        state.apply(&reader.next());
    }
    println!("{} events in {rounds} rounds", state.events);
}

#[test]
fn the_client_of_tap_gets_every_record_at_the_port_of_serve_whichever_side_is_killed() {
    let kit = kit!(Readers);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    fs::write(&token, PASSWORD).unwrap();
    let token = token.to_string_lossy().into_owned();
    let mut served = Served::start_with(&["--ws-consumer", "tap", "--ws-token-file", &token]);
    let service = served.http_url();
    let client = || Reader::tap(&kit, &service, PASSWORD);
    let mut state = State { records: served.initial.clone(), ..State::default() };
    let mut reader = client();
    for round in 0..4 {
        served.sim.write_commits(40);
        (0..round * 7).for_each(|_| state.apply(&reader.next()));
        if round % 2 == 1 {
            served.kill_and_restart();
        }
        reader.kill().iter().for_each(|event| state.apply(event));
        reader = client();
    }
    state.receive_all(&served.sim, &reader);
}

const PASSWORD: &str = "password-of-a-test";
