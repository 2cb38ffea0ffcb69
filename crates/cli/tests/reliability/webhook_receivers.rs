//! A receiver of webhooks has every record of the network, whenever it or the process ends.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use simnet::servers::{Server, Simulation, Spec, WriteRate};
use tempfile::TempDir;

use crate::consumed::Consumed;
use crate::follow::{self, Follow};
use crate::resync_records::expected;
use crate::webhook::{Request, response};
use crate::{report, scaled};

/// The receiver's reaction to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    Accepted,
    /// Applied, and the connection ends without a response.
    AppliedAlone,
    /// Applied, and answered with an error.
    AppliedAndFailed,
    Unread,
    Failed,
}

/// How requests are answered.
#[derive(Clone, Copy, Debug, Default)]
enum Policy {
    /// One in four by a fault, from the first on.
    #[default]
    Faulty,
    /// All with an error.
    Failing,
    /// All accepted after this time.
    Accepting(Duration),
}

/// The faults in turn.
const FAULTS: [Answer; 4] =
    [Answer::AppliedAlone, Answer::AppliedAndFailed, Answer::Unread, Answer::Failed];

#[derive(Default)]
struct State {
    consumed: Consumed,
    /// The ids of the events by idempotency key.
    batches: BTreeMap<String, Vec<String>>,
    /// Number of requests by answer.
    answers: BTreeMap<Answer, usize>,
    requests: usize,
    policy: Policy,
}

/// A receiver that runs until it is killed, and stores its events.
struct Receiver {
    stop: Arc<AtomicBool>,
    running: JoinHandle<()>,
}

impl Receiver {
    fn start(address: SocketAddr, state: &Arc<Mutex<State>>) -> Self {
        let listener = listen(address);
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

/// Listens at an address of an earlier listener, of which a process that is being started has a copy until its program runs.
fn listen(address: SocketAddr) -> TcpListener {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match TcpListener::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            bound => return bound.unwrap(),
        }
    }
}

impl State {
    fn receive(&mut self, mut stream: &TcpStream) {
        let answer = self.next_answer();
        *self.answers.entry(answer).or_default() += 1;
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        if answer == Answer::Unread {
            return;
        }
        // The process may be killed in the middle of a request.
        let Ok(request) = Request::read(stream) else { return };
        if answer != Answer::Failed {
            self.apply(&request);
        }
        let status = match answer {
            Answer::Accepted => "200 OK",
            Answer::AppliedAndFailed | Answer::Failed => "500 Failed",
            Answer::AppliedAlone | Answer::Unread => return,
        };
        let _ = stream.write_all(response(status).as_bytes());
    }

    fn next_answer(&mut self) -> Answer {
        self.requests += 1;
        match self.policy {
            Policy::Faulty if self.requests % 4 == 1 => FAULTS[self.requests / 4 % FAULTS.len()],
            Policy::Faulty => Answer::Accepted,
            Policy::Failing => Answer::Failed,
            Policy::Accepting(after) => {
                std::thread::sleep(after);
                Answer::Accepted
            }
        }
    }

    fn apply(&mut self, request: &Request) {
        let lines = request.lines();
        lines.iter().for_each(|line| self.consumed.apply(line));
        let ids = lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
        let key = request.header("idempotency-key").expect("an idempotency key");
        let known = self.batches.entry(key.to_owned()).or_insert_with(|| Vec::clone(&ids));
        assert_eq!(*known, ids, "one key names one batch");
    }
}

/// A network whose events go to a receiver.
struct Hooked {
    sim: Simulation,
    folder: TempDir,
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Hooked {
    fn new() -> Self {
        let spec = Spec {
            accounts: 5,
            records: 130,
            jetstreams: 0,
            retained_events: 1_000_000,
            max_backlog: u64::MAX,
            ..Spec::default()
        };
        let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
        let secret = "a secret of at least 24 bytes\n";
        std::fs::write(folder.path().join("secret"), secret).unwrap();
        Self { sim, folder, address: conformance::own_address(), state: Arc::default() }
    }

    fn receiver(&self) -> Receiver {
        Receiver::start(self.address, &self.state)
    }

    fn follow(&self, more: &[&str], run: usize) -> Follow {
        let accounts = (0..self.sim.account_count()).map(|number| self.sim.account(number).did);
        let (to, dids) =
            (format!("http://{}/hook", self.address), Vec::from_iter(accounts).join(","));
        let secret = self.folder.path().join("secret");
        let args = ["--to", &to, "--webhook-secret-file", secret.to_str().unwrap()];
        let args = [&args[..], &["--backfill", "--dids", &dids], more].concat();
        Follow::spawn(follow::command(&self.sim, &self.folder.path().join("state"), &args), run)
    }

    /// Waits until the receiver has every record, and ends the process.
    fn finish(&self, mut follow: Follow, receiver: Receiver) {
        let expected = expected(&self.sim);
        let has_all = |_: &Follow| self.state.lock().unwrap().consumed.records == expected;
        follow.wait_until("every record", has_all);
        let ended = follow.interrupt();
        receiver.kill();
        assert!(ended.is_orderly(), "{}", ended.errors);
        let state = self.state.lock().unwrap();
        assert!(state.consumed.repeated > 0, "a request that is not confirmed is repeated");
        let (events, repeated) = (state.consumed.events(), state.consumed.repeated);
        report(&format!("{events} events, {repeated} repeated; requests: {:?}", state.answers));
    }
}

#[test]
fn after_kills_of_either_side_and_of_the_source_a_receiver_of_webhooks_has_every_record() {
    let hooked = Hooked::new();
    let (sim, mut receiver) = (&hooked.sim, hooked.receiver());
    let (rounds, mut source_kills) = (scaled(8, 200), 0);
    for round in 0..rounds {
        let running = hooked.follow(&[], round);
        sim.write_commits(40);
        sim.write_unannounced(round % sim.account_count());
        sim.write_commits(10);
        std::thread::sleep(Duration::from_millis(60 + 61 * (round as u64 % 6)));
        if round % 2 == 1 {
            receiver.kill();
            std::thread::sleep(Duration::from_millis(40));
            receiver = hooked.receiver();
        }
        if round % 4 > 1 {
            source_kills += usize::from(follow::restart_source(sim));
        }
        running.kill();
    }
    let mut last = hooked.follow(&[], rounds);
    sim.write_commits(40);
    last.wait_for_connection(sim);
    source_kills += usize::from(follow::restart_source(sim));
    assert!(source_kills > 0, "the source ends while it is read");
    report(&format!("{source_kills} kills of the source while it was read"));
    hooked.finish(last, receiver);
}

#[test]
fn after_minutes_of_failures_and_of_slow_answers_a_receiver_of_webhooks_has_every_record() {
    let hooked = Hooked::new();
    let (sim, receiver) = (&hooked.sim, hooked.receiver());
    let mut follow = hooked.follow(&["--outbox-events", "200"], 0);
    sim.set_write_rate(WriteRate::PerSecond(500));
    // The first request is applied and not confirmed, so that it must be repeated.
    let is_applied_alone =
        |_: &Follow| hooked.state.lock().unwrap().answers.contains_key(&Answer::AppliedAlone);
    follow.wait_until("a request without a response", is_applied_alone);
    let policies = [
        (Policy::Faulty, scaled(1, 10)),
        (Policy::Failing, scaled(3, 300)),
        (Policy::Accepting(Duration::from_millis(500)), scaled(3, 600)),
    ];
    // Two seconds of events.
    let is_held_back =
        |_: &Follow| sim.backlogs(Server::Relay(0)).iter().any(|backlog| *backlog > 1_000);
    for (policy, seconds) in policies {
        hooked.state.lock().unwrap().policy = policy;
        if matches!(policy, Policy::Failing) {
            follow.wait_until("a stream that waits at the bound", is_held_back);
        }
        std::thread::sleep(Duration::from_secs(seconds));
    }
    hooked.state.lock().unwrap().policy = Policy::Accepting(Duration::ZERO);
    sim.set_write_rate(WriteRate::Off);
    let peak_bytes = follow.peak_memory();
    assert!(peak_bytes < 256 << 20, "{peak_bytes} bytes of memory");
    hooked.finish(follow, receiver);
}
