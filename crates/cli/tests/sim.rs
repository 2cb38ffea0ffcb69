//! What does `sim serve` serve, print and count?
//!
//! The walk-through of README.md shows the other commands against it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A small network that the command serves; dropping it kills it.
struct Served {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let mut child = wireproof(&["sim", "serve", "--port", "0", "--json"])
            .args(["--accounts", "3", "--records", "5", "--prepared", "20", "--rate", "none"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn document(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    /// Asks it to end, and waits for its last word.
    fn end(mut self, signal: &str) -> Value {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &pid]).status().unwrap().success());
        let counts = self.document();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        counts
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wireproof(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(args);
    command
}

/// The head and body of an answer.
fn get(url: &str, path: &str) -> (String, String) {
    let host = url.strip_prefix("http://").unwrap();
    let port = host.strip_prefix("localhost:").unwrap().parse::<u16>().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn it_says_where_everything_is_and_counts_what_was_asked() {
    let mut served = Served::start(&["--relays", "2", "--fault", "plc:503:times=1"]);
    let opening = served.document();
    for (kind, count) in [("pds", 2), ("relays", 2), ("jetstreams", 1)] {
        assert_eq!(opening[kind].as_array().unwrap().len(), count, "{kind}");
    }
    assert_eq!(opening["account_count"], 3);
    let account = &opening["accounts"][0];
    let (plc, did) = (opening["plc"].as_str().unwrap(), account["did"].as_str().unwrap());
    assert!(get(plc, &format!("/{did}")).0.starts_with("HTTP/1.1 503 "));
    let (head, document) = get(plc, &format!("/{did}"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let handle = format!("at://{}", account["handle"].as_str().unwrap());
    assert!(document.contains(&handle) && document.contains(did), "{document}");
    for command in opening["commands"].as_array().unwrap() {
        assert!(command.as_str().unwrap().starts_with("wireproof "), "{command}");
    }

    let counts = served.end("INT");
    assert_eq!(counts["connections"], 2);
    assert_eq!(counts["faults"][0]["fired"], 1);
    let servers = counts["servers"].as_array().unwrap();
    let relay = servers.iter().find(|server| server["server"] == "relay 1").unwrap();
    assert_eq!(relay["told"], 20);
    assert_eq!(servers[0]["requests"][format!("/{did}")], 2);
}

#[test]
fn the_same_seed_gives_the_same_accounts_and_another_one_others() {
    let accounts = |seed: &str| {
        let mut served = Served::start(&["--seed", seed]);
        let accounts = served.document()["accounts"].clone();
        served.end("TERM");
        accounts
    };
    let first = accounts("7");
    assert_eq!(accounts("7"), first);
    assert_ne!(accounts("8"), first);
}

#[test]
fn the_hostile_send_what_they_have_when_they_are_asked_in() {
    let mut served = Served::start(&["--hostile", "--relays", "1"]);
    let opening = served.document();
    let relay = opening["relays"][0].as_str().unwrap().to_owned();
    let health = get(&relay, "/xrpc/_health");
    assert!(health.0.starts_with("HTTP/1.1 200 "), "{health:?}");
    let counts = served.end("INT");
    // The first case came with the first tick; whether it told anything depends on its kind.
    assert!(counts["servers"][3]["told"].as_u64().unwrap() >= 20);
}

#[test]
fn without_json_it_tells_a_person() {
    let mut child =
        wireproof(&["sim", "serve", "--port", "0", "--accounts", "2", "--records", "3"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("Ctrl-C") {
        assert!(output.read_line(&mut text).unwrap() > 0, "{text}");
    }
    for part in
        ["PLC directory  http://localhost:", "relay 0", "ada.test ben.test", "wireproof verify"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("connections") && rest.contains("500 events"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_opened() {
    for (args, code, part) in [
        (&["--fault", "relay:flood"][..], 2, "no fault is called `flood`"),
        (&["--fault", "plc:cut"], 2, "does not happen"),
        (&["--fault", "relay7:cut"], 2, "there is no relay 7"),
        (&["--accounts", "0"], 2, "--accounts"),
        (&["--rate", "fast"], 2, "--rate"),
    ] {
        let output = wireproof(&["sim", "serve", "--port", "0"]).args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = wireproof(&["sim", "serve", "--accounts", "1", "--port", &port]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains(&port), "{stderr}");
}
