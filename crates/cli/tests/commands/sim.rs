//! `sim serve`: servers, output and counts. README.md shows the other commands against it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::schemas;

/// A running `sim serve` of a small network. Dropping it kills the process.
struct Served {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        Self::of(&[&["--accounts", "3", "--records", "5", "--prepared", "20"], args].concat())
    }

    fn of(args: &[&str]) -> Self {
        let mut child = wireproof(&["sim", "serve", "--port", "0", "--json", "--rate", "none"])
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
        let document =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        schemas::check("sim-serve", &document);
        document
    }

    /// Sends a signal, and returns the last line.
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

/// The head and body of a response.
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

/// The URL of a server.
fn host(opening: &Value, name: &str) -> String {
    let servers = opening["servers"].as_array().unwrap();
    let server = servers.iter().find(|server| server["server"] == name).unwrap();
    server["host"].as_str().unwrap().to_owned()
}

#[test]
fn it_prints_every_server_and_counts_requests() {
    let mut served = Served::start(&["--relays", "2", "--fault", "plc:503:times=1"]);
    let opening = served.document();
    let servers = opening["servers"].as_array().unwrap().iter();
    let names: Vec<&str> = servers.map(|server| server["server"].as_str().unwrap()).collect();
    assert_eq!(names, ["plc", "pds0", "pds1", "relay0", "relay1", "jetstream0"]);
    assert_eq!(opening["account_count"], 3);
    let account = &opening["accounts"][0];
    let (plc, did) = (host(&opening, "plc"), account["did"].as_str().unwrap());
    assert!(get(&plc, &format!("/{did}")).0.starts_with("HTTP/1.1 503 "));
    let (head, document) = get(&plc, &format!("/{did}"));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let handle = format!("at://{}", account["handle"].as_str().unwrap());
    assert!(document.contains(&handle) && document.contains(did), "{document}");
    for command in opening["commands"].as_array().unwrap() {
        assert!(command.as_str().unwrap().starts_with("wireproof "), "{command}");
    }

    let counts = served.end("INT");
    assert_eq!(counts["connections"], 2);
    assert_eq!(counts["faults"][0]["count"], 1);
    let servers = counts["servers"].as_array().unwrap();
    let relay = servers.iter().find(|server| server["server"] == "relay1").unwrap();
    assert_eq!(relay["events"], 20);
    let path = format!("/{did}");
    assert_eq!(servers[0]["requests"], serde_json::json!([{ "path": path, "count": 2 }]));
}

#[test]
fn realistic_accounts_are_as_the_seed_gives_them_whenever_they_are_asked_for() {
    let mut served = Served::of(&[
        "--accounts",
        "200",
        "--records",
        "realistic:50",
        "--uneven",
        "--prepared",
        "0",
    ]);
    let opening = served.document();
    let (plc, pds) = (host(&opening, "plc"), host(&opening, "pds0"));
    let (_, list) = get(&pds, "/xrpc/com.atproto.sync.listRepos?limit=1000");
    let list: Value = serde_json::from_str(&list).unwrap();
    let repos = list["repos"].as_array().unwrap();
    assert!((110..170).contains(&repos.len()), "two thirds are on the first: {}", repos.len());
    let did = repos[7]["did"].as_str().unwrap();
    let latest = format!("/xrpc/com.atproto.sync.getLatestCommit?did={did}");
    let [first, again] = [(); 2].map(|()| get(&pds, &latest).1);
    assert_eq!(first, again);
    let first: Value = serde_json::from_str(&first).unwrap();
    assert_eq!(first["rev"], repos[7]["rev"]);
    assert!(get(&plc, &format!("/{did}")).1.contains(&pds));
    assert!(get(&plc, "/export?count=1000").1.lines().count() == 400, "two operations each");
}

#[test]
fn hosts_of_all_conditions_are_named_with_what_they_answered() {
    let mut served = Served::of(&[
        "--prepared",
        "0",
        "--accounts",
        "60",
        "--pds",
        "20",
        "--hosts-vary",
        "--records",
        "realistic:9",
        "--changes",
        "1",
    ]);
    let opening = served.document();
    let of = |condition: &str| {
        let servers = opening["servers"].as_array().unwrap();
        let server = servers.iter().find(|server| server["condition"] == condition).unwrap();
        server["host"].as_str().unwrap().to_owned()
    };
    let health = "/xrpc/_health";
    let statuses = |url: &str, count: usize| -> Vec<String> {
        let heads = (0..count).map(|_| get(url, health).0);
        heads.filter(|head| !head.starts_with("HTTP/1.1 200 ")).collect()
    };
    let limited = statuses(&of("limited"), 50);
    assert!(!limited.is_empty() && limited.iter().all(|head| head.contains("retry-after: ")));
    let silently = statuses(&of("limited-silently"), 70);
    assert!(!silently.is_empty() && silently.iter().all(|head| head.starts_with("HTTP/1.1 429 ")));
    assert!(
        silently.iter().all(|head| !head.contains("retry-after") && !head.contains("ratelimit"))
    );
    assert_eq!(statuses(&of("steady"), 70), Vec::<String>::new());
    let refusing = of("refusing").rsplit(':').next().unwrap().parse::<u16>().unwrap();
    assert!(TcpStream::connect(("127.0.0.1", refusing)).is_err());
    assert_eq!(opening["hostile_accounts"].as_array().unwrap().len(), 4);

    let counts = served.end("INT");
    let servers = counts["servers"].as_array().unwrap();
    let server = servers.iter().find(|server| server["condition"] == "limited").unwrap();
    let answers = serde_json::json!([
        { "status": 200, "count": 50 - limited.len() }, { "status": 429, "count": limited.len() },
    ]);
    assert_eq!(server["answers"], answers);
    assert!(server["peak_per_s"].as_u64().is_some_and(|peak| (1..=50).contains(&peak)));
    assert_eq!(counts["changes"], serde_json::json!([{ "change": "moved", "count": 1 }]));
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
fn hostile_cases_are_served_with_the_option() {
    let mut served = Served::start(&["--hostile", "--relays", "1"]);
    let opening = served.document();
    let relay = host(&opening, "relay0");
    let health = get(&relay, "/xrpc/_health");
    assert!(health.0.starts_with("HTTP/1.1 200 "), "{health:?}");
    let counts = served.end("INT");
    // The first case is served at the first tick; whether it emits an event depends on its kind.
    assert!(counts["servers"][3]["events"].as_u64().unwrap() >= 20);
}

#[test]
fn without_json_the_output_is_text() {
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
fn arguments_that_make_no_sense_are_exit_code_2() {
    for (args, code, part) in [
        (&["--fault", "relay:flood"][..], 2, "unknown fault `flood`"),
        (&["--fault", "plc:cut-repo"], 2, "cannot have the fault `cut-repo`"),
        (&["--fault", "relay7:cut"], 2, "there is no relay 7"),
        (&["--accounts", "0"], 2, "--accounts"),
        (&["--records", "some"], 2, "`realistic`"),
        (&["--pds", "201"], 2, "--pds"),
        (&["--rate", "fast"], 2, "--rate"),
    ] {
        let output = wireproof(&["sim", "serve", "--port", "0"]).args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {stderr}");
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = wireproof(&["sim", "serve", "--accounts", "1", "--port", &port]).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains(&port), "{stderr}");
}
