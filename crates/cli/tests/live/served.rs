//! `serve`: what is served of a hostile stream, the document of the command, and its end.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use atproto::corpus;
use atproto::event::{Decoder, Event, renumbered};
use simnet::hostile::{self, CaseSet, Expect, InputKind, Layer};
use simnet::servers::{Server, Simulation, Spec};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::{Running, schemas, stderr, with_commits};

/// A server of a network's relay.
fn command(sim: &Simulation, state: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--cursor", "oldest", "--json", "--state"]);
    command.arg(state).args(["--host", &sim.url(Server::Relay(0)), "--plc", &sim.url(Server::Plc)]);
    command.args(["--development-port", &sim.port(Server::Pds(0)).to_string()]);
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

fn start(sim: &Simulation, state: &std::path::Path) -> (Running, String) {
    let mut running = Running::start(command(sim, state));
    let line = running.wait_for_stderr("serving at ws://");
    let address = line.split("ws://").nth(1).unwrap().trim().to_owned();
    (running, address)
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
