//! WebSocket clients have every record of the network, whenever the process or a client ends.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use simnet::servers::{Simulation, Spec};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::consumed::Consumed;
use crate::follow::{self, Follow};
use crate::resync_records::{Records, expected};
use crate::{report, scaled};

/// A client that connects again and again, and applies events before it acknowledges them.
struct Client {
    state: Arc<Mutex<Consumed>>,
    /// Whether the client is to end the connection at its next event, without an acknowledgement.
    is_killed: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
    running: Option<JoinHandle<()>>,
}

impl Client {
    fn start(url: &str) -> Self {
        let (state, is_killed, stop, connections) = Default::default();
        let client = Self { state, is_killed, stop, connections, running: None };
        let (state, is_killed) = (client.state.clone(), client.is_killed.clone());
        let (stop, connections) = (client.stop.clone(), client.connections.clone());
        let url = url.to_owned();
        let running = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                // The process may be away, or the consumer still in use.
                match connect(&url) {
                    Some(socket) => {
                        connections.fetch_add(1, Ordering::Relaxed);
                        receive(socket, &state, &is_killed, &stop);
                    }
                    None => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        });
        Self { running: Some(running), ..client }
    }

    /// Ends its connection in the middle of an event.
    fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
    }

    fn has(&self, records: &Records) -> bool {
        self.state.lock().unwrap().records == *records
    }

    /// Ends the client. Returns its stored events and its number of connections.
    fn end(mut self) -> (Arc<Mutex<Consumed>>, usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.running.take().unwrap().join().unwrap();
        (self.state.clone(), self.connections.load(Ordering::Relaxed))
    }
}

fn connect(url: &str) -> Option<WebSocket<TcpStream>> {
    let address = url.strip_prefix("ws://")?.split('/').next()?;
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    tungstenite::client(url, stream).ok().map(|(socket, _)| socket)
}

fn receive(
    mut socket: WebSocket<TcpStream>,
    state: &Mutex<Consumed>,
    is_killed: &AtomicBool,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) {
        let text = match socket.read() {
            Ok(Message::Text(text)) => text,
            Ok(_) => continue,
            Err(tungstenite::Error::Io(error)) if is_timeout(&error) => continue,
            Err(_) => return,
        };
        let event: Value = serde_json::from_str(&text).unwrap();
        state.lock().unwrap().apply(&event);
        if is_killed.swap(false, Ordering::Relaxed) {
            return;
        }
        let ack = match &event["id"] {
            Value::String(id) => id.clone(),
            id => serde_json::json!({"type": "ack", "id": id}).to_string(),
        };
        if socket.send(Message::text(ack)).is_err() {
            return;
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

#[test]
fn after_kills_of_the_process_the_source_and_clients_at_any_moment_both_protocols_have_every_record()
 {
    let spec = Spec { accounts: 5, records: 130, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let to = format!("ws://{}", conformance::own_address());
    let dids: BTreeSet<String> =
        (0..sim.account_count()).map(|number| sim.account(number).did).collect();
    let dids = dids.into_iter().collect::<Vec<_>>().join(",");
    let args = ["--to", &to, "--ws-without-token", "--ws-consumer", "lines,tap", "--backfill"];
    let args = [&args[..], &["--dids", &dids]].concat();
    let spawn = |round| {
        let command = follow::command(&sim, &folder.path().join("state"), &args);
        Follow::spawn(command, round)
    };
    let lines = Client::start(&format!("{to}/lines?consumer=lines"));
    let tap = Client::start(&format!("{to}/channel?consumer=tap"));

    let (rounds, mut source_kills) = (scaled(8, 100), 0);
    for round in 0..rounds {
        let running = spawn(round);
        sim.write_commits(40);
        sim.write_unannounced(round % sim.account_count());
        sim.write_commits(10);
        let pause = Duration::from_millis(30 + 61 * (round as u64 % 6));
        for client in [&lines, &tap] {
            client.kill();
            std::thread::sleep(pause);
        }
        if round % 2 == 1 {
            source_kills += usize::from(follow::restart_source(&sim));
        }
        running.kill();
    }
    let mut last = spawn(rounds);
    sim.write_commits(40);
    last.wait_for_connection(&sim);
    source_kills += usize::from(follow::restart_source(&sim));
    assert!(source_kills > 0, "the source ends while it is read");
    report(&format!("{source_kills} kills of the source while it was read"));
    let expected = expected(&sim);
    last.wait_until("every record", |_| lines.has(&expected) && tap.has(&expected));
    let ended = last.interrupt();
    assert!(ended.is_orderly(), "{}", ended.errors);
    for (name, client) in [("lines", lines), ("tap", tap)] {
        let (state, connections) = client.end();
        assert!(connections > rounds, "{name}: {connections} connections");
        let state = state.lock().unwrap();
        let (events, repeated) = (state.events(), state.repeated);
        report(&format!("{name}: {events} events, {repeated} repeated, {connections} connections"));
    }
}
