//! `serve`: what is served of a hostile stream, the document of the command, and its end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use atproto::corpus;
use atproto::event::{Decoder, Event, renumbered};
use simnet::hostile::{self, CaseSet, Expect, InputKind, Layer};
use simnet::servers::{EventKind, Server, Simulation, Spec};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::{Running, schemas, stderr, with_commits};

/// A server of a network's relay.
pub(crate) fn command(sim: &Simulation, state: &std::path::Path) -> Command {
    let mut command = of_sources(sim, state);
    command.args(["--host", &sim.url(Server::Relay(0))]);
    command
}

/// A server without a source.
fn of_sources(sim: &Simulation, state: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--cursor", "oldest", "--json", "--state"]);
    command.arg(state).args(["--plc", &sim.url(Server::Plc)]);
    command.args(["--development-port", &sim.port(Server::Pds(0)).to_string()]);
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

fn start(sim: &Simulation, state: &std::path::Path) -> (Running, String) {
    start_command(command(sim, state))
}

fn start_command(command: Command) -> (Running, String) {
    let mut running = Running::start(command);
    let line = running.wait_for_stderr("serving at ws://");
    let address = line.split("ws://").nth(1).unwrap().trim().to_owned();
    (running, address)
}

/// The revisions of the commits that are served, by account, until there are as many as these.
fn served_revs(address: &str, count: usize) -> Vec<(String, String)> {
    let (mut client, mut found) = (frames(address), Vec::new());
    while found.len() < count {
        let Message::Binary(frame) = client.read().unwrap() else { continue };
        let mut decoder = Decoder::new(Default::default());
        if let Event::Commit(commit) = decoder.decode(&frame).unwrap() {
            found.push((commit.repo.to_owned(), commit.rev.to_owned()));
        }
    }
    // Events that come twice.
    client.get_ref().set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    while let Ok(message) = client.read() {
        assert!(!matches!(message, Message::Binary(_)), "an event more");
    }
    found.sort();
    found
}

/// The revisions of the commits that servers have sent, by account, each once.
fn sent_revs(sim: &Simulation, servers: &[Server]) -> Vec<(String, String)> {
    let events = servers.iter().flat_map(|server| sim.sent_events(*server));
    let commits = events.filter(|event| event.subject.kind == EventKind::Commit);
    let mut revs: Vec<_> = commits.map(|event| (event.subject.did, event.subject.rev)).collect();
    revs.sort();
    revs.dedup();
    revs
}

/// The text of a response, after a request with this body.
fn post(address: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let len = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}")
        .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn frames(address: &str) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let url = format!("ws://{address}/xrpc/com.atproto.sync.subscribeRepos?cursor=0");
    tungstenite::client(url, stream).unwrap().0
}

#[test]
fn the_document_names_the_streams_and_a_second_process_on_the_state_is_refused() {
    let (sim, folder) = (with_commits(5), tempfile::tempdir().unwrap());
    let mut child = command(&sim, folder.path());
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut document = serde_json::Deserializer::from_reader(child.stdout.take().unwrap())
        .into_iter::<serde_json::Value>();
    let document = document.next().unwrap().unwrap();
    schemas::check("serve", &document);
    let second = command(&sim, folder.path()).output().unwrap();
    assert_eq!(second.status.code(), Some(4), "{}", stderr(&second));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn sigterm_ends_the_server_with_0_and_clients_with_a_close_frame() {
    let (sim, folder) = (with_commits(5), tempfile::tempdir().unwrap());
    let (running, address) = start(&sim, folder.path());
    let mut client = frames(&address);
    for _ in 0..5 {
        assert!(matches!(client.read().unwrap(), Message::Binary(_)));
    }
    running.signal("TERM");
    let close = std::iter::from_fn(|| client.read().ok())
        .find_map(|message| if let Message::Close(frame) = message { frame } else { None });
    assert_eq!(close.map(|frame| frame.code.into()), Some(1001_u16));
    assert_eq!(running.wait_for_code(), Some(0));
}

#[test]
fn no_frame_that_must_be_refused_is_served_and_the_true_ones_are() {
    let spec = Spec { accounts: 3, records: 2, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    sim.write_commit_as(0);
    sim.sign_with_unregistered_key(1);
    (0..3).for_each(|_| sim.write_commit_as(1));
    let set = CaseSet::generate(&hostile::Spec::default());
    // What an event is to the events before it depends on what is served of those.
    let frames_of =
        |case: &&hostile::Case| case.kind == InputKind::Frames && case.layer != Layer::Event;
    set.cases().iter().filter(frames_of).for_each(|case| sim.serve_case(case));
    sim.write_commit_as(2);
    let refused = set.cases().iter().filter(frames_of).filter(|of| of.expect == Expect::Refuse);
    // The last frame is the case, unless it is a frame before it again.
    let forged = |case: &hostile::Case| {
        let frames: Vec<&[u8]> = corpus::frames(&case.bytes).unwrap().collect();
        let (last, before) = frames.split_last()?;
        (!before.contains(last)).then(|| renumbered(last, 0)).flatten()
    };
    let refused: Vec<_> = refused.filter_map(|case| Some((forged(case)?, &case.name))).collect();
    assert!(refused.len() > 30, "{}", refused.len());
    let (running, address) = start(&sim, folder.path());
    let mut client = frames(&address);
    let [honest, forged, last] = [0, 1, 2].map(|account| sim.account(account).did);
    let mut seen = Vec::new();
    loop {
        match client.read() {
            Ok(Message::Binary(frame)) => {
                let served = renumbered(&frame, 0).unwrap();
                let forged = refused.iter().find(|(frame, _)| *frame == served);
                assert_eq!(forged.map(|(_, name)| name), None);
                let mut decoder = Decoder::new(Default::default());
                if let Event::Commit(commit) = decoder.decode(&frame).unwrap() {
                    seen.push(commit.repo.to_owned());
                }
                if seen.contains(&honest) && seen.contains(&last) {
                    // Events of the others, if they come.
                    let quiet = Some(Duration::from_secs(1));
                    client.get_ref().set_read_timeout(quiet).unwrap();
                }
            }
            Ok(_) => {}
            Err(_) => break,
        }
    }
    assert!(seen.contains(&honest) && !seen.contains(&forged), "{seen:?}");
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
}

/// A network of several servers with commits of all accounts.
fn of_servers(pds: usize, relays: usize) -> Simulation {
    let spec = Spec { accounts: 12, records: 3, pds, relays, jetstreams: 0, ..Spec::default() };
    let sim = Simulation::start(spec).unwrap();
    sim.write_commits(40);
    sim
}

#[test]
fn two_relays_at_the_same_time_are_served_as_one_and_every_event_once() {
    let (sim, folder) = (of_servers(2, 2), tempfile::tempdir().unwrap());
    let relays = [Server::Relay(0), Server::Relay(1)];
    let expected = sent_revs(&sim, &relays);
    let mut command = of_sources(&sim, folder.path());
    command
        .arg("--all-hosts")
        .args(relays.iter().flat_map(|relay| ["--host".to_owned(), sim.url(*relay)]));
    let (running, address) = start_command(command);
    assert_eq!(served_revs(&address, expected.len()), expected);
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
}

#[test]
fn the_hosts_that_a_relay_lists_are_followed_at_the_same_time_and_after_a_restart_too() {
    let (sim, folder) = (of_servers(3, 1), tempfile::tempdir().unwrap());
    let hosts = [Server::Pds(0), Server::Pds(1), Server::Pds(2)];
    let expected = sent_revs(&sim, &hosts);
    let command = || {
        let mut command = of_sources(&sim, folder.path());
        command.args(["--crawl", &sim.url(Server::Relay(0))]);
        command
    };
    let (running, address) = start_command(command());
    assert_eq!(served_revs(&address, expected.len()), expected);
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
    sim.write_commits(25);
    let expected = sent_revs(&sim, &hosts);
    let (running, address) = start_command(command());
    assert_eq!(served_revs(&address, expected.len()), expected, "what came meanwhile, once");
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
}

#[test]
fn a_host_that_asks_is_followed_where_its_domain_is_accepted_and_refused_elsewhere() {
    const REQUEST_CRAWL: &str = "/xrpc/com.atproto.sync.requestCrawl";
    let (sim, folder) = (of_servers(2, 1), tempfile::tempdir().unwrap());
    let expected = sent_revs(&sim, &[Server::Pds(1)]);
    let mut command = of_sources(&sim, folder.path());
    command.args(["--accept-crawl", "localhost"]);
    let (running, address) = start_command(command);
    let ask = |hostname: &str| {
        post(&address, REQUEST_CRAWL, &serde_json::json!({ "hostname": hostname }).to_string())
    };
    let refused = ask("pds.example.com");
    assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("HostBanned"), "{refused}");
    let invalid = ask("localhost:1/path");
    assert!(invalid.starts_with("HTTP/1.1 400"), "{invalid}");
    let port = sim.port(Server::Pds(1));
    let accepted = ask(&format!("localhost:{port}"));
    assert!(accepted.starts_with("HTTP/1.1 200"), "{accepted}");
    assert_eq!(served_revs(&address, expected.len()), expected);
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
    // Without the option no request makes the server connect.
    let other = tempfile::tempdir().unwrap();
    let (running, address) = start(&sim, other.path());
    let host = format!("{{\"hostname\":\"localhost:{port}\"}}");
    let refused = post(&address, REQUEST_CRAWL, &host);
    assert!(refused.contains("HostBanned"), "{refused}");
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
}

#[test]
fn clients_go_back_over_the_archive_of_what_has_left_the_window() {
    let (sim, folder) = (with_commits(1_500), tempfile::tempdir().unwrap());
    let archive = folder.path().join("archive");
    let expected = sent_revs(&sim, &[Server::Relay(0)]);
    let start = || {
        let mut command = command(&sim, &folder.path().join("state"));
        command.args(["--window-mib", "1", "--archive"]).arg(&archive);
        start_command(command)
    };
    let (running, address) = start();
    assert_eq!(served_revs(&address, expected.len()), expected);
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
    let (running, address) = start();
    assert_eq!(served_revs(&address, expected.len()), expected, "after a restart too");
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
    let window = folder.path().join("state/window");
    let files = std::fs::read_dir(window).unwrap().filter_map(|file| file.unwrap().metadata().ok());
    let bytes: u64 = files.map(|file| file.len()).sum();
    assert!(bytes < 2 << 20, "{bytes} bytes in the window");
    let mut verify = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let verified = verify.args(["archive", "verify"]).arg(&archive).output().unwrap();
    assert!(verified.status.success(), "{}", stderr(&verified));
}

#[test]
fn repositories_are_served_whole_from_an_archive_with_the_commits_that_came_later() {
    let (sim, folder) = (with_commits(0), tempfile::tempdir().unwrap());
    let archive = folder.path().join("archive");
    let mut backfill = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, sim.url(Server::Pds(0))).unwrap();
    backfill.args(["backfill", "--development", "--hosts"]).arg(&hosts);
    backfill.args(["--plc", &sim.url(Server::Plc), "--to"]).arg(&archive);
    let stored = backfill.output().unwrap();
    assert!(stored.status.success(), "{}", stderr(&stored));
    let mut command = command(&sim, &folder.path().join("state"));
    command.arg("--archive").arg(&archive);
    let (running, address) = start_command(command);
    sim.write_commits(40);
    served_revs(&address, 40);
    for account in sim.expected_accounts() {
        let mut verify = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        let did = &account.account.did;
        verify.args(["verify", did, "--from", &format!("http://{address}"), "--json"]);
        verify.args(["--plc", &sim.url(Server::Plc), "--development"]);
        let verified = verify.output().unwrap();
        assert!(verified.status.success(), "{}", stderr(&verified));
        let document: serde_json::Value = serde_json::from_slice(&verified.stdout).unwrap();
        assert_eq!(document["repository"]["rev"], account.rev.to_string(), "{document}");
    }
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_pause_by_the_admin_api_stops_the_intake_and_its_end_resumes_it_without_a_gap() {
    let (sim, folder) = (with_commits(2), tempfile::tempdir().unwrap());
    let socket = format!("unix:{}", folder.path().join("admin").display());
    let mut command = command(&sim, &folder.path().join("state"));
    command.args(["--admin", &socket]).env("WIREPROOF_ADMIN_TOKEN", TOKEN);
    let (running, address) = start_command(command);
    let admin = |command: &str| {
        let mut admin = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        admin.args([command, "--admin", &socket]).env("WIREPROOF_ADMIN_TOKEN", TOKEN);
        let output = admin.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let relay = [Server::Relay(0)];
    assert_eq!(served_revs(&address, 2), sent_revs(&sim, &relay));
    admin("pause");
    assert!(admin("status").contains("paused"));
    sim.write_commits(3);
    assert_eq!(served_revs(&address, 2).len(), 2);
    admin("resume");
    assert_eq!(served_revs(&address, 5), sent_revs(&sim, &relay));
    running.signal("TERM");
    assert_eq!(running.wait_for_code(), Some(0));
}

#[cfg(unix)]
const TOKEN: &str = "a-token-of-this-test";
