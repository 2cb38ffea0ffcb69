//! `archive serve` and `archive replay`: the events that consumers get from an archive.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use atproto::corpus;
use atproto::event::{Decoder, Event};
use serde_json::Value;
use simnet::servers::{Server, Simulation};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::archives::{archive_follow, state_home};
use crate::metrics::{address as metrics_address, page_with};
use crate::{Running, lines, parsed, schemas, seqs, stderr, with_commits};

/// A network, and an archive of its first events.
struct Archived {
    sim: Simulation,
    _dir: tempfile::TempDir,
    folder: PathBuf,
}

impl Archived {
    fn new(commits: usize) -> Self {
        let (sim, dir) = (with_commits(commits), tempfile::tempdir().unwrap());
        let archived = Self { folder: dir.path().join("archive"), sim, _dir: dir };
        archived.store(commits);
        archived
    }

    /// Stores the next events.
    fn store(&self, events: usize) {
        let output = archive_follow(&self.sim, &self.folder, &["--events", &events.to_string()]);
        assert!(output.status.success(), "{}", stderr(&output));
    }

    fn command(&self, command: &str, args: &[&str]) -> Command {
        let mut process = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        process.args(["archive", command]).arg(&self.folder).args(args);
        process.env("XDG_CONFIG_HOME", "/nonexistent");
        process.env("XDG_STATE_HOME", state_home(&self.folder));
        process
    }

    fn run(&self, command: &str, args: &[&str]) {
        let output = self.command(command, args).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }

    /// A server, and its address.
    fn serve(&self, args: &[&str]) -> (Running, String) {
        let args = [&["--listen", "127.0.0.1:0"], args].concat();
        self.served("serve", &args)
    }

    fn served(&self, command: &str, args: &[&str]) -> (Running, String) {
        let mut running = Running::start(self.command(command, args));
        let line = running.wait_for_stderr("serving at ws://");
        let address = line.split("ws://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        (running, address)
    }

    /// The lines of a replay.
    fn lines(&self, args: &[&str]) -> Vec<Value> {
        lines(self.command("replay", &[&["--to", "-", "--format", "lines"], args].concat()))
    }

    /// The lines of a `follow` of a server.
    fn follow(&self, address: &str, state: &Path, args: &[&str]) -> Vec<Value> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        let port = self.sim.port(Server::Pds(0)).to_string();
        process.args(["follow", "--host", &format!("http://{address}")]);
        process.args(["--plc", &self.sim.url(Server::Plc), "--development-port", &port]);
        process.arg("--state").arg(state).args(args).env("XDG_CONFIG_HOME", "/nonexistent");
        lines(process)
    }
}

/// A consumer of frames.
struct Consumer(WebSocket<TcpStream>);

impl Consumer {
    fn connect(address: &str, query: &str) -> Self {
        Self::request(address, query, None).unwrap_or_else(|status| panic!("{query}: {status}"))
    }

    /// Connects; the status of a refusal.
    fn request(address: &str, query: &str, origin: Option<&str>) -> Result<Self, u16> {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let url = format!("ws://{address}/xrpc/com.atproto.sync.subscribeRepos{query}");
        let mut request = url.into_client_request().unwrap();
        if let Some(origin) = origin {
            request.headers_mut().insert("origin", origin.parse().unwrap());
        }
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                Err(response.status().as_u16())
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// The next frame; `None` at the end.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.0.read() {
                Ok(Message::Binary(frame)) => return Some(frame.to_vec()),
                // The next call sends the answer to a close.
                Ok(Message::Close(_)) => drop(self.0.flush()),
                Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    fn take(&mut self, count: usize) -> Vec<Vec<u8>> {
        (0..count).map(|_| self.next().expect("the stream goes on")).collect()
    }

    /// The frames until none arrives for a second.
    fn rest(&mut self) -> Vec<Vec<u8>> {
        self.0.get_mut().set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// The sequence number and the account of a commit.
fn commit(frame: &[u8]) -> (i64, String) {
    match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Commit(commit) => (commit.seq, commit.repo.to_owned()),
        other => panic!("{other:?}"),
    }
}

/// The name of a message about the stream.
fn name(frame: &[u8]) -> String {
    match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Info(info) => info.name.to_owned(),
        Event::Error(error) => error.error.to_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_consumer_gets_every_event_once_in_order_and_verified_and_resumes_after_its_cursor() {
    let archived = Archived::new(120);
    let (server, address) = archived.serve(&[]);
    let state = tempfile::tempdir().unwrap();
    let args = ["--cursor", "oldest", "--events", "120", "--workers", "1"];
    let all = archived.follow(&address, &state.path().join("all"), &args);
    assert!(all.iter().all(|line| line["verdict"] == "verified"), "{all:#?}");
    let arrivals: Vec<u64> =
        archived.lines(&[]).iter().map(|line| line["arrival"].as_u64().unwrap()).collect();
    // Events that wait for the key of their account are printed later.
    let sorted = |lines: &[Value]| seqs(lines).into_iter().collect::<BTreeSet<u64>>();
    assert_eq!((seqs(&all).len(), sorted(&all)), (120, arrivals.iter().copied().collect()));
    let cursor = arrivals[70].to_string();
    let args = ["--cursor", &cursor, "--events", "49", "--workers", "1"];
    let rest = archived.follow(&address, &state.path().join("rest"), &args);
    assert_eq!((seqs(&rest).len(), sorted(&rest)), (49, arrivals[71..].iter().copied().collect()));
    server.signal("TERM");
    assert_eq!(server.wait_for_code(), Some(0));
}

#[test]
fn the_bytes_of_a_frame_are_those_that_came_but_for_the_sequence_number() {
    let archived = Archived::new(20);
    let (_server, address) = archived.serve(&[]);
    let served = Consumer::connect(&address, "?cursor=0").take(20);
    let file = archived.folder.with_file_name("frames.bin");
    archived.run("replay", &["--to", file.to_str().unwrap()]);
    let stored = std::fs::read(&file).unwrap();
    let stored: Vec<_> = corpus::frames(&stored).unwrap().collect();
    assert_eq!(stored.len(), 20);
    let commit_of = |frame: &[u8]| match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Commit(commit) => {
            (commit.repo.to_owned(), commit.rev.to_owned(), commit.car.to_vec())
        }
        other => panic!("{other:?}"),
    };
    for (served, stored) in served.iter().zip(stored) {
        assert_eq!(commit_of(served), commit_of(stored));
        assert_ne!(commit(served).0, commit(stored).0);
    }
}

#[test]
fn a_cursor_says_where_to_begin_as_the_protocol_has_it() {
    let archived = Archived::new(10);
    let (_server, address) = archived.serve(&[]);
    let seqs: Vec<i64> = Consumer::connect(&address, "?cursor=0")
        .take(10)
        .iter()
        .map(|frame| commit(frame).0)
        .collect();
    let mut outdated = Consumer::connect(&address, "?cursor=5");
    assert_eq!(name(&outdated.next().unwrap()), "OutdatedCursor");
    assert_eq!(commit(&outdated.next().unwrap()).0, seqs[0]);
    let mut future = Consumer::connect(&address, &format!("?cursor={}", seqs[9] + 1));
    assert_eq!(name(&future.next().unwrap()), "FutureCursor");
    assert_eq!(future.next(), None);
    assert_eq!(Consumer::connect(&address, &format!("?cursor={}", seqs[9])).rest().len(), 0);
    assert_eq!(Consumer::request(&address, "?cursor=x", None).err(), Some(400));
    // A client without a cursor gets the events sealed from now on.
    let mut live = Consumer::connect(&address, "");
    std::thread::sleep(Duration::from_millis(500));
    archived.sim.write_commits(5);
    archived.store(5);
    let later: Vec<i64> = live.take(5).iter().map(|frame| commit(frame).0).collect();
    assert!(later[0] > seqs[9] && later.is_sorted(), "{seqs:?} {later:?}");
    assert_eq!(live.rest().len(), 0);
}

#[test]
fn hidden_and_erased_accounts_leave_neither_a_stream_nor_a_replay() {
    let archived = Archived::new(60);
    let (_server, address) = archived.serve(&[]);
    let dids = |frames: &[Vec<u8>]| frames.iter().map(|frame| commit(frame).1).collect::<Vec<_>>();
    let all = dids(&Consumer::connect(&address, "?cursor=0").take(60));
    let accounts: Vec<&String> = all.iter().collect::<BTreeSet<_>>().into_iter().collect();
    let without = |left_out: &[&String]| {
        all.iter().filter(|did| !left_out.contains(did)).cloned().collect::<Vec<_>>()
    };
    // The server looks at the archive every second.
    let look = || std::thread::sleep(Duration::from_secs(3));
    archived.run("hide", &["--did", accounts[0]]);
    look();
    let shown = dids(&Consumer::connect(&address, "?cursor=0").rest());
    assert_eq!(shown, without(&accounts[..1]));
    archived.run("erase", &["--did", accounts[1]]);
    look();
    let shown = dids(&Consumer::connect(&address, "?cursor=0").rest());
    assert_eq!(shown, without(&accounts[..2]));
    let printed = archived.lines(&[]);
    assert_eq!(printed.len(), shown.len());
    archived.run("unhide", &["--did", accounts[0]]);
    look();
    let shown = dids(&Consumer::connect(&address, "?cursor=0").rest());
    assert_eq!(shown, without(&accounts[1..2]));
}

#[test]
fn the_document_of_a_server_has_the_url_for_clients() {
    let archived = Archived::new(5);
    let mut command = archived.command("serve", &["--listen", "127.0.0.1:0", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut documents =
        serde_json::Deserializer::from_reader(child.stdout.take().unwrap()).into_iter();
    let document: Value = documents.next().unwrap().unwrap();
    schemas::check("archive-serve", &document);
    let address = document["url"].as_str().unwrap().strip_prefix("ws://").unwrap();
    let address = address.split('/').next().unwrap();
    assert_eq!(Consumer::connect(address, "?cursor=0").take(5).len(), 5);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn clients_beyond_the_limit_and_web_pages_are_refused() {
    let archived = Archived::new(5);
    let (_server, address) = archived.serve(&["--clients", "2", "--origin", "https://app.test"]);
    let first = Consumer::connect(&address, "");
    assert_eq!(Consumer::request(&address, "", Some("https://other.test")).err(), Some(403));
    let second = Consumer::request(&address, "", Some("https://app.test")).unwrap();
    assert_eq!(Consumer::request(&address, "", None).err(), Some(503));
    drop((first, second));
    let again = std::iter::repeat_with(|| Consumer::request(&address, "", None))
        .inspect(|_| std::thread::sleep(Duration::from_millis(50)));
    assert!(again.take(600).any(|connected| connected.is_ok()));
}

#[test]
fn a_replayed_line_is_that_of_the_followed_event_with_its_number_and_its_key() {
    let archived = Archived::new(30);
    let state = tempfile::tempdir().unwrap();
    let followed = lines(crate::follow(&archived.sim, state.path(), &["--events", "30"]));
    let replayed = archived.lines(&[]);
    assert_eq!(replayed.len(), 30);
    for mut line in replayed {
        let object = line.as_object_mut().unwrap();
        assert!(object.remove("arrival").unwrap().as_u64().unwrap() > 1_700_000_000_000_000);
        assert!(object.remove("key").unwrap().as_str().unwrap().starts_with("did:key:"));
        assert_eq!(object.remove("live"), Some(false.into()));
        let id = object.remove("id").unwrap();
        assert_eq!(
            id,
            format!("{}/{}", line["did"].as_str().unwrap(), line["rev"].as_str().unwrap())
        );
        assert!(followed.contains(&line), "{line} is not in {followed:#?}");
    }
}

#[test]
fn a_replay_has_the_events_from_a_number_to_another_one() {
    let archived = Archived::new(30);
    let all = archived.lines(&[]);
    let arrival = |at: usize| all[at]["arrival"].to_string();
    let range = archived.lines(&["--since", &arrival(10), "--until", &arrival(19)]);
    assert_eq!(range, all[10..20]);
    assert_eq!(archived.lines(&["--until", "2020-01-01T00:00:00Z"]).len(), 0);
}

#[test]
fn frames_on_standard_output_are_those_of_the_file() {
    let archived = Archived::new(20);
    let file = archived.folder.with_file_name("frames.bin");
    let summary = archived.command("replay", &["--json", "--to", file.to_str().unwrap()]).output();
    let summary: Value = serde_json::from_slice(&summary.unwrap().stdout).unwrap();
    schemas::check("archive-replay", &summary);
    assert_eq!((&summary["frame_count"], &summary["left_out_count"]), (&20.into(), &0.into()));
    let output = archived.command("replay", &["--to", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout, std::fs::read(&file).unwrap());
    let output = archived.command("replay", &["--to", "-", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_away_ends_a_replay_with_exit_code_4_and_a_message() {
    let archived = Archived::new(400);
    let mut command = archived.command("replay", &["--to", "-", "--format", "lines"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("the reader of standard output closed it"));
}

#[test]
fn a_rate_is_kept() {
    let archived = Archived::new(30);
    let started = std::time::Instant::now();
    assert_eq!(archived.lines(&["--rate", "20"]).len(), 30);
    assert!(started.elapsed() >= Duration::from_millis(1_400), "{:?}", started.elapsed());
}

#[test]
fn a_replay_to_clients_ends_when_one_has_all_events() {
    let archived = Archived::new(30);
    let (server, address) = archived.served("replay", &["--to", "ws://127.0.0.1:0"]);
    let mut consumer = Consumer::connect(&address, "");
    let frames: Vec<_> = std::iter::from_fn(|| consumer.next()).collect();
    assert_eq!(frames.len(), 30);
    assert_eq!(server.wait_for_code(), Some(0));

    let to = ["--to", "ws://127.0.0.1:0", "--format", "lines"];
    let (server, address) = archived.served("replay", &to);
    let stream = TcpStream::connect(&address).unwrap();
    let (mut socket, _) = tungstenite::client(format!("ws://{address}/lines"), stream).unwrap();
    let mut received = String::new();
    while let Ok(message) = socket.read() {
        if let Message::Text(line) = message {
            received += &format!("{line}\n");
        }
    }
    assert_eq!(parsed(received.as_bytes()), archived.lines(&[]));
    assert_eq!(server.wait_for_code(), Some(0));
}

#[test]
fn the_series_of_an_archive_and_of_its_server_are_served() {
    let archived = Archived::new(20);
    let (mut server, address) = archived.serve(&["--metrics", "127.0.0.1:0"]);
    let metrics = metrics_address(&mut server);
    let mut consumer = Consumer::connect(&address, "?cursor=0");
    consumer.take(20);
    assert_eq!(Consumer::request(&address, "?cursor=x", None).err(), Some(400));
    let page = page_with(&metrics, "wireproof_archive_sent_events_total 20");
    for series in [
        "wireproof_archive_clients 1.0",
        "wireproof_archive_connections_total{result=\"opened\"} 1",
        "wireproof_archive_connections_total{result=\"refused\"} 1",
        "wireproof_archive_failed_polls_total 0",
    ] {
        assert!(page.contains(series), "{series} is not on\n{page}");
    }
}
