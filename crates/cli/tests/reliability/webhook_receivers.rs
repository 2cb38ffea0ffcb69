//! A receiver of webhooks has every record of the network, whenever it or the process ends.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use simnet::servers::{Simulation, Spec};

use crate::consumed::Consumed;
use crate::follow::{self, Follow};
use crate::resync_records::expected;
use crate::webhook::{Request, response};
use crate::{report, scaled};

/// What the receiver does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    Accepted,
    /// Applied, and the connection ends without a response.
    AppliedAlone,
    /// Applied, and answered with an error.
    AppliedAndFailed,
    Unread,
    Unavailable,
}

/// One answer in four is a fault.
const ANSWERS: [Answer; 4] =
    [Answer::AppliedAlone, Answer::AppliedAndFailed, Answer::Unread, Answer::Unavailable];

#[derive(Default)]
struct State {
    consumed: Consumed,
    /// The ids of the events under each idempotency key.
    batches: BTreeMap<String, Vec<String>>,
    /// Number of requests by answer.
    answers: BTreeMap<Answer, usize>,
    requests: usize,
}

/// A receiver that runs until it is killed, and stores what it was given.
struct Receiver {
    stop: Arc<AtomicBool>,
    running: JoinHandle<()>,
}

impl Receiver {
    fn start(address: SocketAddr, state: &Arc<Mutex<State>>) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (stop, state) = (Arc::<AtomicBool>::default(), state.clone());
        let is_stopped = stop.clone();
        let running = std::thread::spawn(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((stream, _)) => state.lock().unwrap().receive(&stream),
                    Err(_) => std::thread::sleep(Duration::from_millis(2)),
                }
            }
        });
        Self { stop, running }
    }

    fn kill(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.running.join().unwrap();
    }
}

impl State {
    fn receive(&mut self, mut stream: &TcpStream) {
        self.requests += 1;
        let fault =
            self.requests.is_multiple_of(4).then(|| ANSWERS[self.requests / 4 % ANSWERS.len()]);
        let answer = fault.unwrap_or(Answer::Accepted);
        *self.answers.entry(answer).or_default() += 1;
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        if answer == Answer::Unread {
            return;
        }
        // The process may be killed in the middle of a request.
        let Ok(request) = Request::read(stream) else { return };
        if answer != Answer::Unavailable {
            self.apply(&request);
        }
        let status = match answer {
            Answer::Accepted => "200 OK",
            Answer::AppliedAndFailed => "500 Failed",
            Answer::Unavailable => "503 Away",
            Answer::AppliedAlone | Answer::Unread => return,
        };
        let _ = stream.write_all(response(status).as_bytes());
    }

    fn apply(&mut self, request: &Request) {
        let lines = request.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
        lines.iter().for_each(|line| self.consumed.apply(line));
        let ids = lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
        let key = request.header("idempotency-key").expect("an idempotency key");
        let known = self.batches.entry(key.to_owned()).or_insert_with(|| Vec::clone(&ids));
        assert_eq!(*known, ids, "one key names one batch");
    }
}

#[test]
fn after_kills_of_either_side_a_receiver_of_webhooks_has_every_record() {
    let spec = Spec { accounts: 5, records: 130, jetstreams: 0, ..Spec::default() };
    let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let dids: Vec<String> =
        (0..sim.account_count()).map(|number| sim.account(number).did).collect();
    let (to, dids) = (format!("http://{address}/hook"), dids.join(","));
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "a secret of at least 24 bytes\n").unwrap();
    let secret = secret.to_str().unwrap();
    let args = ["--to", &to, "--webhook-secret-file", secret, "--backfill", "--dids", &dids];
    let spawn = |round| {
        let command = follow::command(&sim, &folder.path().join("state"), &args);
        Follow::spawn(command, round)
    };
    let state = Arc::<Mutex<State>>::default();
    let mut receiver = Receiver::start(address, &state);
    let rounds = scaled(8, 200);
    for round in 0..rounds {
        let running = spawn(round);
        sim.write_commits(40);
        sim.write_unannounced(round % sim.account_count());
        sim.write_commits(10);
        std::thread::sleep(Duration::from_millis(60 + 61 * (round as u64 % 6)));
        if round % 2 == 1 {
            receiver.kill();
            std::thread::sleep(Duration::from_millis(40));
            receiver = Receiver::start(address, &state);
        }
        running.kill();
    }
    let mut last = spawn(rounds);
    sim.write_commits(40);
    let expected = expected(&sim);
    last.wait_until("every record", |_| state.lock().unwrap().consumed.records == expected);
    let ended = last.interrupt();
    receiver.kill();
    assert!(ended.is_orderly(), "{}", ended.errors);
    let state = state.lock().unwrap();
    assert!(state.consumed.repeated > 0, "a request that is not confirmed is repeated");
    let (events, repeated) = (state.consumed.events(), state.consumed.repeated);
    report(&format!("{events} events, {repeated} repeated; requests: {:?}", state.answers));
}
