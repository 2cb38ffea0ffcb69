//! `follow --to ws://…`: its clients, their cursors, and who may connect.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use simnet::servers::{AccountStatus, Fault, FaultSchedule, Server, Simulation};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket};

use crate::{Running, follow, stderr, with_commits};

/// A `follow` with a server for clients without a token, and the address of that.
pub(crate) fn serve(sim: &Simulation, dir: &Path, args: &[&str]) -> (Running, String) {
    serve_with(sim, dir, &[&["--ws-without-token"], args].concat())
}

/// A `follow` with a server, and the address of that.
fn serve_with(sim: &Simulation, dir: &Path, args: &[&str]) -> (Running, String) {
    let all = [&["--to", "ws://127.0.0.1:0"], args].concat();
    let mut running = Running::start(follow(sim, dir, &all));
    let line = running.wait_for_stderr("WebSockets at ");
    let url = line.split("ws://").nth(1).unwrap();
    let address = url.split('/').next().unwrap().to_owned();
    (running, address)
}

pub(crate) struct Client(WebSocket<TcpStream>);

impl Client {
    pub(crate) fn connect(address: &str, path: &str) -> Self {
        Self::request(address, path, &[]).unwrap_or_else(|status| panic!("{path}: {status}"))
    }

    /// Connects with these headers; the status of a refusal.
    fn request(address: &str, path: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let mut request = format!("ws://{address}{path}").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match tokio_tungstenite::tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(error) => match error {
                tokio_tungstenite::tungstenite::HandshakeError::Failure(Error::Http(response)) => {
                    Err(response.status().as_u16())
                }
                other => panic!("{other}"),
            },
        }
    }

    fn next(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    fn acknowledge(&mut self, event: &Value) {
        let text = match &event["id"] {
            Value::String(id) => id.clone(),
            id => serde_json::json!({"type": "ack", "id": id}).to_string(),
        };
        self.0.send(Message::text(text)).unwrap();
    }

    /// Acknowledges this many events.
    pub(crate) fn take(&mut self, count: usize) -> Vec<Value> {
        let next = |_| {
            let event = self.next();
            self.acknowledge(&event);
            event
        };
        (0..count).map(next).collect()
    }
}

#[test]
fn each_client_gets_every_event_from_its_own_cursor_over_several_runs() {
    let (sim, dir) = (with_commits(60), tempfile::tempdir().unwrap());
    let consumers = ["--ws-consumer", "one,two"];
    let (running, address) = serve(&sim, dir.path(), &consumers);
    let mut one = Client::connect(&address, "/lines?consumer=one");
    let mut two = Client::connect(&address, "/lines?consumer=two");
    let (mut of_one, mut of_two) = (one.take(60), two.take(20));
    assert_eq!(running.interrupt().1, Some(130));

    sim.write_commits(10);
    let args = [&consumers[..], &["--events", "10"]].concat();
    let (running, address) = serve(&sim, dir.path(), &args);
    of_one.extend(Client::connect(&address, "/lines?consumer=one").take(10));
    of_two.extend(Client::connect(&address, "/lines?consumer=two").take(50));
    assert_eq!(running.wait().1, Some(0), "it ends when both have everything");
    for lines in [of_one, of_two] {
        let ids: BTreeSet<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
        assert_eq!((lines.len(), ids.len()), (70, 70));
        let mut last = BTreeMap::new();
        for line in &lines {
            let rev = line["rev"].as_str();
            assert!(last.insert(line["did"].as_str(), rev) < Some(rev), "in order: {line}");
        }
    }
}

#[test]
fn a_channel_has_the_records_and_the_confirmed_states_of_accounts() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let dids: Vec<String> = (0..3).map(|number| sim.account(number).did).collect();
    let args = ["--dids", &*dids.join(","), "--backfill"];
    let (running, address) = serve(&sim, dir.path(), &args);
    let mut client = Client::connect(&address, "/channel");
    let mut records: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    let mut inactive = BTreeMap::new();
    let expected: BTreeMap<String, BTreeMap<String, String>> = sim.expected_accounts()[..3]
        .iter()
        .map(|of| {
            let records = of.records.iter().map(|(path, cid)| (path.clone(), cid.to_string()));
            (of.account.did.clone(), records.collect())
        })
        .collect();
    let mut are_changed = false;
    while records != expected || inactive.len() < 2 {
        if records == expected && !std::mem::replace(&mut are_changed, true) {
            sim.set_account_status(1, AccountStatus::TakenDown);
            sim.delete_account(0);
        }
        let event = client.take(1).remove(0);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        match &event["type"] {
            kind if kind == "record" => {
                let record = &event["record"];
                let of = records.entry(text(&record["did"])).or_default();
                let path = format!("{}/{}", text(&record["collection"]), text(&record["rkey"]));
                if record["action"] == "delete" {
                    of.remove(&path)
                } else {
                    of.insert(path, text(&record["cid"]))
                };
            }
            _ => {
                let identity = &event["identity"];
                assert_eq!(identity["is_active"], identity["status"] == "active");
                if identity["is_active"] == false {
                    inactive.insert(text(&identity["did"]), text(&identity["status"]));
                }
            }
        }
    }
    let statuses = [(dids[0].clone(), "deleted"), (dids[1].clone(), "takendown")];
    let statuses = statuses.map(|(did, status)| (did, status.to_owned()));
    assert_eq!(inactive, BTreeMap::from(statuses));
    assert_eq!(running.interrupt().1, Some(130));
}

#[test]
fn a_channel_has_handles_that_are_checked_both_ways_and_no_others() {
    let (sim, dir) = (with_commits(1), tempfile::tempdir().unwrap());
    let (running, address) = serve(&sim, dir.path(), &[]);
    let mut client = Client::connect(&address, "/channel");
    let mut next_handle = |number: usize| {
        loop {
            let identity = client.take(1).remove(0)["identity"].take();
            if identity["did"] == sim.account(number).did {
                return identity["handle"].as_str().unwrap().to_owned();
            }
        }
    };
    sim.change_handle(0, "renamed.test");
    assert_eq!(next_handle(0), "renamed.test");
    // The handle leads to another account.
    sim.faults().enable(Server::Pds(0), Fault::WrongHandle, FaultSchedule::ALWAYS);
    sim.change_handle(1, "claimed.test");
    assert_eq!(next_handle(1), "handle.invalid");
    sim.faults().enable(Server::Plc, Fault::NoHandle, FaultSchedule::ALWAYS);
    sim.change_handle(2, "unnamed.test");
    assert_eq!(next_handle(2), "handle.invalid");
    assert_eq!(sim.faults().unfired(), []);
    running.interrupt();
}

#[test]
fn pages_strangers_and_a_second_client_are_refused() {
    let (sim, dir) = (with_commits(5), tempfile::tempdir().unwrap());
    let token = dir.path().join("token");
    fs::write(&token, "0123456789abcdef\n").unwrap();
    let args = ["--ws-token-file", token.to_str().unwrap(), "--ws-origin", "https://app.test"];
    let (_running, address) = serve_with(&sim, dir.path(), &args);
    let bearer = ("authorization", "Bearer 0123456789abcdef");
    let status = |path: &str, headers: &[(&'static str, &str)]| {
        Client::request(&address, path, headers).err()
    };
    assert_eq!(status("/lines", &[]), Some(401));
    assert_eq!(status("/lines", &[bearer, ("origin", "https://evil.test")]), Some(403));
    assert_eq!(status("/lines?consumer=other", &[bearer]), Some(404));
    // As clients of tap send it: admin:0123456789abcdef.
    let basic = ("authorization", "Basic YWRtaW46MDEyMzQ1Njc4OWFiY2RlZg==");
    let client = Client::request(&address, "/channel", &[basic]);
    assert_eq!(status("/lines", &[bearer]), Some(409));
    drop(client);
    assert_eq!(status("/lines", &[bearer, ("origin", "https://app.test")]), None);
}

#[test]
fn a_client_needs_the_token_of_the_state_folder_which_is_made_once_and_is_of_its_owner_alone() {
    let (sim, dir) = (with_commits(3), tempfile::tempdir().unwrap());
    let mut tokens = Vec::new();
    for taken in [1, 2] {
        let mut command = follow(&sim, dir.path(), &["--to", "ws://127.0.0.1:0"]);
        command.stdin(Stdio::null());
        let mut running = Running::start(command);
        let path = running.wait_for_stderr("need the token in ");
        let path = PathBuf::from(path.split("the token in ").nth(1).unwrap().trim());
        assert_eq!(path, dir.path().join("state/websocket.token"));
        let line = running.wait_for_stderr("WebSockets at ");
        let address = line.split("ws://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        #[cfg(unix)]
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let token = fs::read_to_string(path).unwrap();
        assert_eq!(Client::request(&address, "/lines", &[]).err(), Some(401));
        let wrong = format!("Bearer {}", "0".repeat(64));
        let of = |value: &str| Client::request(&address, "/lines", &[("authorization", value)]);
        assert_eq!(of(&wrong).err(), Some(401));
        of(&format!("Bearer {}", token.trim())).unwrap().take(taken);
        tokens.push(token);
        running.interrupt();
    }
    assert_eq!(tokens[0], tokens[1]);
    assert!(tokens[0].trim().len() >= 32);
}

#[test]
fn a_server_without_a_token_is_asked_for_and_is_of_this_machine_alone() {
    let (sim, dir) = (with_commits(1), tempfile::tempdir().unwrap());
    let (running, address) = serve(&sim, dir.path(), &[]);
    Client::connect(&address, "/lines").take(1);
    assert!(!dir.path().join("state/websocket.token").exists());
    running.interrupt();
    let args = ["--to", "ws://0.0.0.0:0", "--ws-without-token"];
    let output = follow(&sim, dir.path(), &args).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("add --ws-token-file"), "{}", stderr(&output));
}

#[test]
fn an_address_of_other_machines_needs_a_token_and_a_warning_says_that_it_is_not_encrypted() {
    let (sim, dir) = (with_commits(1), tempfile::tempdir().unwrap());
    let to = ["--to", "ws://0.0.0.0:0"];
    let output = follow(&sim, dir.path(), &to).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("add --ws-token-file"), "{}", stderr(&output));

    let token = dir.path().join("token");
    fs::write(&token, "0123456789abcdef").unwrap();
    let args = [&to[..], &["--ws-token-file", token.to_str().unwrap()]].concat();
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    running.wait_for_stderr("is not encrypted");
    fs::write(&token, "short").unwrap();
    let other = tempfile::tempdir().unwrap();
    let output = follow(&sim, other.path(), &args).stdin(Stdio::null()).output().unwrap();
    assert!(stderr(&output).contains("use 16 to 256"), "{}", stderr(&output));
}
