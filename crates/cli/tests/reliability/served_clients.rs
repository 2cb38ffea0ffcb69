//! Clients of `serve` have every record of the network and get no commit twice, whenever the server, the source or a client
//! ends, and while the disk is full.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use atproto::event::{Action, Decoder, Event};
use serde_json::Value;
use simnet::servers::{Simulation, Spec};
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::follow::{self, Follow};
use crate::resync_records::{Records, expected};
use crate::{report, scaled};

/// A form in which events are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Frames,
    JetstreamV1,
    JetstreamV2,
}

impl Form {
    const ALL: [Self; 3] = [Self::Frames, Self::JetstreamV1, Self::JetstreamV2];

    fn path(self) -> &'static str {
        match self {
            Self::Frames => "/xrpc/com.atproto.sync.subscribeRepos",
            Self::JetstreamV1 => "/subscribe",
            Self::JetstreamV2 => "/xrpc/network.bsky.jetstream.subscribeEvents",
        }
    }
}

/// What a client has stored.
#[derive(Default)]
struct Stored {
    records: Records,
    /// The last revision of every account.
    revs: BTreeMap<String, String>,
    cursor: i64,
    connections: usize,
}

impl Stored {
    /// Takes a message. A cursor of a Jetstream is inclusive, so its event comes again.
    fn take(&mut self, form: Form, message: &Message) {
        match (form, message) {
            (Form::Frames, Message::Binary(frame)) => self.take_frame(frame),
            (Form::JetstreamV1, Message::Text(text)) => {
                let event: Value = serde_json::from_str(text).unwrap();
                self.take_op(&event["did"], &event["cursor"], &event["commit"]);
            }
            (Form::JetstreamV2, Message::Text(text)) => {
                let event: Value = serde_json::from_str(text).unwrap();
                let payload = &event["payload"];
                self.take_op(&payload["did"], &payload["seq"], payload);
            }
            (_, other) => panic!("{form:?}: {other:?}"),
        }
    }

    fn take_frame(&mut self, frame: &[u8]) {
        let mut decoder = Decoder::new(Default::default());
        let Event::Commit(commit) = decoder.decode(frame).unwrap() else { panic!("a commit") };
        assert!(commit.seq > self.cursor, "{} after {}", commit.seq, self.cursor);
        self.cursor = commit.seq;
        self.note_rev(commit.repo, commit.rev, |known, rev| known < rev);
        for op in commit.ops {
            let cid = op.cid.filter(|_| op.action != Action::Delete);
            self.put(commit.repo, op.path, cid.map(|cid| cid.to_string()));
        }
    }

    fn take_op(&mut self, did: &Value, cursor: &Value, op: &Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (did, cursor) = (text(did), cursor.as_i64().unwrap());
        assert!(cursor >= self.cursor, "{cursor} after {}", self.cursor);
        let is_new = cursor > self.cursor;
        self.cursor = cursor;
        if is_new {
            // The operations of a commit have one revision.
            self.note_rev(&did, &text(&op["rev"]), |known, rev| known <= rev);
            let path = format!("{}/{}", text(&op["collection"]), text(&op["rkey"]));
            self.put(&did, &path, op["cid"].as_str().map(str::to_owned));
        }
    }

    fn note_rev(&mut self, did: &str, rev: &str, follows: impl Fn(&str, &str) -> bool) {
        if let Some(known) = self.revs.insert(did.to_owned(), rev.to_owned()) {
            assert!(follows(&known, rev), "{did}: {rev} after {known}");
        }
    }

    fn put(&mut self, did: &str, path: &str, cid: Option<String>) {
        let records = self.records.entry(did.to_owned()).or_default();
        match cid {
            Some(cid) => drop(records.insert(path.to_owned(), cid)),
            None => drop(records.remove(path)),
        }
    }
}

/// A client that connects again and again, at its cursor.
struct Client {
    stored: Arc<Mutex<Stored>>,
    is_killed: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    running: Option<JoinHandle<()>>,
}

impl Client {
    /// A client that has these records.
    fn start(address: &str, form: Form, records: Records) -> Self {
        let stored = Arc::new(Mutex::new(Stored { records, ..Stored::default() }));
        let (is_killed, stop) = Default::default();
        let client = Self { stored, is_killed, stop, running: None };
        let (stored, is_killed, stop) =
            (client.stored.clone(), client.is_killed.clone(), client.stop.clone());
        let address = address.to_owned();
        let running = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let cursor = stored.lock().unwrap().cursor;
                match connect(&address, form, cursor) {
                    Some(socket) => {
                        stored.lock().unwrap().connections += 1;
                        receive(socket, form, &stored, &is_killed, &stop);
                    }
                    None => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        });
        Self { running: Some(running), ..client }
    }

    fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
    }

    fn has(&self, records: &Records) -> bool {
        self.stored.lock().unwrap().records == *records
    }

    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.running.take().unwrap().join().unwrap();
        self.stored.lock().unwrap().connections
    }
}

fn connect(address: &str, form: Form, cursor: i64) -> Option<WebSocket<TcpStream>> {
    let stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let url = format!("ws://{address}{}?cursor={cursor}", form.path());
    tungstenite::client(url, stream).ok().map(|(socket, _)| socket)
}

fn receive(
    mut socket: WebSocket<TcpStream>,
    form: Form,
    stored: &Mutex<Stored>,
    is_killed: &AtomicBool,
    stop: &AtomicBool,
) {
    while !stop.load(Ordering::Relaxed) && !is_killed.swap(false, Ordering::Relaxed) {
        match socket.read() {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                stored.lock().unwrap().take(form, &message);
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(error)) if is_timeout(&error) => {}
            Err(_) => return,
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}

/// A network, a folder for the state, and an address for the server.
struct Scene {
    sim: Simulation,
    /// The records that accounts had before their first event.
    initial: Records,
    folder: tempfile::TempDir,
    address: String,
    /// More arguments of the server.
    args: Vec<String>,
}

impl Scene {
    fn new() -> Self {
        let spec = Spec { accounts: 5, records: 0, jetstreams: 0, ..Spec::default() };
        let (sim, folder) = (Simulation::start(spec).unwrap(), tempfile::tempdir().unwrap());
        let initial = expected(&sim);
        let address = conformance::own_address().to_string();
        Self { sim, initial, folder, address, args: Vec::new() }
    }

    /// A server with an archive, and with a window that is small enough that most events are only there.
    fn with_archive() -> Self {
        let scene = Self::new();
        let archive = scene.archive().display().to_string();
        Self {
            args: ["--window-mib", "1", "--archive", &archive].map(str::to_owned).into(),
            ..scene
        }
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    /// Whether the whole archive is proved, and the report.
    fn verify_archive(&self) -> (bool, String) {
        let mut verify = Command::new(env!("CARGO_BIN_EXE_wireproof"));
        let verified = verify.args(["archive", "verify"]).arg(self.archive()).output().unwrap();
        let text = [verified.stdout, verified.stderr].concat();
        (verified.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Starts the server. Its document is no line of events.
    fn serve(&self, run: usize, limit: &str) -> Follow {
        let args = follow::follow_args(&self.sim, &self.folder.path().join("state"));
        let script = format!("{limit} exec \"$@\" > /dev/null");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_wireproof"), "serve"]).args(args);
        command.args(["--listen", &self.address]).args(&self.args);
        command.env("XDG_CONFIG_HOME", "/nonexistent");
        Follow::spawn(command, run)
    }

    fn clients(&self) -> Vec<(Form, Client)> {
        Form::ALL.map(|form| (form, self.client(form))).into()
    }

    fn client(&self, form: Form) -> Client {
        Client::start(&self.address, form, self.initial.clone())
    }
}

#[test]
fn after_kills_of_the_server_the_source_and_clients_every_form_has_every_record_and_none_twice() {
    let scene = Scene::new();
    let clients = scene.clients();
    let (rounds, mut source_kills) = (scaled(10, 200), 0);
    for round in 0..rounds {
        let running = scene.serve(round, "");
        scene.sim.write_commits(40);
        let pause = Duration::from_millis(30 + 61 * (round as u64 % 6));
        for (_, client) in &clients {
            client.kill();
            std::thread::sleep(pause);
        }
        if round % 2 == 1 {
            source_kills += usize::from(follow::restart_source(&scene.sim));
        }
        running.kill();
    }
    let mut last = scene.serve(rounds, "");
    scene.sim.write_commits(40);
    last.wait_for_connection(&scene.sim);
    source_kills += usize::from(follow::restart_source(&scene.sim));
    report(&format!("{source_kills} kills of the source while it was read"));
    let expected = expected(&scene.sim);
    last.wait_until("every record", |_| clients.iter().all(|(_, client)| client.has(&expected)));
    let ended = last.interrupt();
    assert!(ended.is_orderly(), "{}", ended.errors);
    for (form, client) in clients {
        let connections = client.end();
        report(&format!("{form:?}: {connections} connections"));
    }
}

#[test]
fn after_kills_of_a_server_with_an_archive_a_new_client_gets_every_commit_from_the_first_on() {
    let scene = Scene::with_archive();
    let rounds = scaled(6, 60);
    for round in 0..rounds {
        let running = scene.serve(round, "");
        scene.sim.write_commits(250);
        std::thread::sleep(Duration::from_millis(150 + 170 * (round as u64 % 5)));
        running.kill();
    }
    let mut last = scene.serve(rounds, "");
    last.wait_for_connection(&scene.sim);
    let expected = expected(&scene.sim);
    let clients = scene.clients();
    last.wait_until("every record", |_| clients.iter().all(|(_, client)| client.has(&expected)));
    assert!(last.interrupt().is_orderly());
    for (_, client) in clients {
        client.end();
    }
    let (is_proved, report) = scene.verify_archive();
    assert!(is_proved, "{report}");
    assert!(!report.contains(" 0 events"), "it has some");
}

#[test]
fn a_server_that_is_stopped_first_stores_the_rest_of_a_segment_that_a_crash_has_left_in_one_table()
{
    let scene = Scene::with_archive();
    let marker = scene.folder.path().join("marker").display().to_string();
    let point = "WIREPROOF_CRASH_POINT=archive/committed@1";
    let crashing = scene.serve(0, &format!("export {point} WIREPROOF_CRASH_MARKER={marker};"));
    scene.sim.write_commits(250);
    crashing.wait();
    assert_eq!(std::fs::read_to_string(marker).unwrap(), "archive/committed");
    let (is_proved, report) = scene.verify_archive();
    assert!(!is_proved && report.contains("no event has this operation"), "{report}");
    let mut next = scene.serve(1, "");
    next.wait_until("its address", |_| TcpStream::connect(&scene.address).is_ok());
    assert!(next.interrupt().is_orderly());
    let (is_proved, report) = scene.verify_archive();
    assert!(is_proved, "{report}");
}

/// Files that reach a size limit fail as on a full disk.
#[cfg(target_os = "linux")]
#[test]
fn while_the_disk_is_full_clients_get_what_is_stored_and_later_the_rest() {
    let scene = Scene::new();
    scene.sim.write_commits(60);
    // SIGXFSZ would end the process before it can report the error.
    let limit = format!("trap '' XFSZ; ulimit -S -f {};", LIMIT_KIB * 2);
    let mut running = scene.serve(0, &limit);
    let clients = scene.clients();
    let is_full = |follow: &Follow| follow.errors().contains("cannot be stored");
    while !is_full(&running) {
        scene.sim.write_commits(10);
        running.wait_until("a short time", |_| {
            std::thread::sleep(Duration::from_millis(50));
            true
        });
    }
    // A client that connects now gets what is stored.
    let late = scene.client(Form::Frames);
    let newest = clients[0].1.stored.lock().unwrap().cursor;
    running.wait_until("the stored events", |_| late.stored.lock().unwrap().cursor >= newest);
    let pid = running.pid().to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
    assert!(raised.unwrap().success());
    let expected = expected(&scene.sim);
    running.wait_until("every record", |_| clients.iter().all(|(_, client)| client.has(&expected)));
    assert!(running.interrupt().is_orderly());
    let ended = clients.into_iter().map(|(_, client)| client).chain([late]);
    assert!(ended.map(Client::end).all(|connections| connections > 0));
}

/// More than the state takes, and less than the window.
#[cfg(target_os = "linux")]
const LIMIT_KIB: usize = 512;
