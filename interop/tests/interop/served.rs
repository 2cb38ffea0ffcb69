//! A network, and `wireproof serve` of its events, which is killed and restarted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use codec::Cid;
use simnet::servers::{AccountStatus, Server, Simulation, Spec};
use tempfile::TempDir;
use wireproof_interop::program::free_port;

use crate::activity::wireproof;

pub(crate) const RELAY: Server = Server::Relay(0);

/// The CIDs of records by account and path.
pub(crate) type Records = BTreeMap<String, BTreeMap<String, String>>;

/// A network, and a server of its events that is killed and restarted.
pub(crate) struct Served {
    pub(crate) sim: Simulation,
    /// The records of the accounts before the first event.
    pub(crate) initial: Records,
    folder: TempDir,
    port: u16,
    options: Vec<String>,
    server: Child,
}

impl Served {
    /// Serves a few hundred events of six accounts.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with more options of the server.
    pub(crate) fn start_with(options: &[&str]) -> Self {
        Self::of(network(), options)
    }

    /// The same with an archive of all accounts before these events.
    pub(crate) fn start_after_backfill(archive: &str) -> Self {
        let sim = network();
        backfill(&sim, archive);
        Self::of(sim, &["--archive", archive])
    }

    fn of(sim: Simulation, options: &[&str]) -> Self {
        let initial = records_of(&sim);
        sim.write_commits(150);
        let folder = tempfile::tempdir().expect("a folder");
        let options: Vec<String> = options.iter().map(|of| (*of).to_owned()).collect();
        let port = free_port();
        let server = spawn(&sim, &folder, port, &options);
        let served = Self { sim, initial, folder, port, options, server };
        served.wait_for_events();
        served
    }

    /// Waits until there are events: in an empty stream, every cursor but 0 is in the future.
    fn wait_for_events(&self) {
        let deadline = Instant::now() + TIMEOUT;
        while !self.get("/xrpc/com.atproto.sync.listRepos").contains("did:") {
            assert!(Instant::now() < deadline, "the server has no events");
            sleep(Duration::from_millis(50));
        }
    }

    /// The answer to a query, with its headers.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a server");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Kills the server without notice, and starts it again with its state and its port.
    pub(crate) fn kill_and_restart(&mut self) {
        self.kill();
        self.server = spawn(&self.sim, &self.folder, self.port, &self.options);
    }

    /// Changes accounts in every way that leaves their keys unchanged.
    pub(crate) fn change(&self) {
        self.sim.change_handle(1, "renamed.test");
        self.sim.set_account_status(2, AccountStatus::Deactivated);
        self.sim.set_account_status(2, AccountStatus::Active);
        self.sim.migrate_account(4, 1);
        self.sim.write_commits(100);
    }

    /// The URL for streams.
    pub(crate) fn url(&self) -> String {
        format!("ws://127.0.0.1:{}", self.port)
    }

    /// The URL for queries.
    pub(crate) fn http_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn kill(&mut self) {
        // It may have ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

fn network() -> Simulation {
    let spec = Spec { accounts: 6, records: 20, ..Spec::default() };
    Simulation::start(spec).expect("ports for a small network")
}

/// Archives the repositories of all accounts.
fn backfill(sim: &Simulation, archive: &str) {
    let hosts = tempfile::NamedTempFile::new().expect("a file");
    let urls: Vec<String> =
        (0..sim.spec().pds).map(|number| sim.url(Server::Pds(number))).collect();
    std::fs::write(hosts.path(), urls.join("\n")).expect("a list of hosts");
    let mut backfill = Command::new(wireproof());
    backfill.env("XDG_CONFIG_HOME", "/nonexistent").args(["backfill", "--development", "--hosts"]);
    backfill.arg(hosts.path()).args(["--plc", &sim.url(Server::Plc), "--to", archive]);
    let ended = backfill.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("the command");
    assert!(ended.success(), "{ended}");
}

/// Starts a server, and waits until it accepts connections.
fn spawn(sim: &Simulation, folder: &TempDir, port: u16, options: &[String]) -> Child {
    let log = folder.path().join("log");
    let errors = File::options().create(true).append(true).open(&log).expect("a file");
    let mut serve = Command::new(wireproof());
    serve
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .args(["serve", "--cursor", "oldest"])
        .args(options);
    serve.arg("--state").arg(folder.path().join("state"));
    serve.args(["--host", &sim.url(RELAY), "--plc", &sim.url(Server::Plc)]);
    serve.args(["--development-port", &sim.port(Server::Pds(0)).to_string()]);
    serve.args(["--listen", &format!("127.0.0.1:{port}")]).current_dir(folder.path());
    let mut server =
        serve.stdout(Stdio::null()).stderr(errors).spawn().expect("the command starts");
    let deadline = Instant::now() + TIMEOUT;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = server.try_wait().expect("the state of a child");
        let is_late = Instant::now() > deadline;
        let log = || std::fs::read_to_string(&log).unwrap_or_default();
        assert!(ended.is_none() && !is_late, "the server has not started: {}", log());
        sleep(Duration::from_millis(50));
    }
    server
}

/// The CIDs of the records of every account.
pub(crate) fn records_of(sim: &Simulation) -> Records {
    let texts = |records: BTreeMap<String, Cid>| {
        records.into_iter().map(|(path, cid)| (path, cid.to_string())).collect()
    };
    let expected = sim.expected_accounts().into_iter();
    expected.map(|of| (of.account.did, texts(of.records))).collect()
}

/// The time in which a server starts on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
