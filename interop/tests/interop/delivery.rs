//! `wireproof follow --to` on a simulated network, as a process that is killed and started again, and the records that its
//! destination must have.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use simnet::servers::{Server, Simulation, Spec};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::activity::wireproof;

/// The records of every account: CIDs by path.
pub(crate) type Records = BTreeMap<String, BTreeMap<String, String>>;

/// A network, and a follower of all its accounts with one state over all of its runs.
pub(crate) struct Delivered {
    pub(crate) sim: Simulation,
    pub(crate) folder: TempDir,
    args: Vec<String>,
    child: Option<Child>,
}

impl Delivered {
    /// A network with some commits, that will be delivered to `uri`, with the history of its accounts.
    pub(crate) fn new(uri: &str) -> Self {
        Self::with_history(uri, 150)
    }

    /// As [`new`](Self::new), with this number of records per account.
    pub(crate) fn with_history(uri: &str, records: usize) -> Self {
        let spec =
            Spec { accounts: 6, records, jetstreams: 0, initial_commits: 30, ..Spec::default() };
        let sim = Simulation::start(spec).expect("a network");
        let dids: Vec<String> =
            (0..sim.account_count()).map(|number| sim.account(number).did).collect();
        let args = ["--to", uri, "--backfill", "--dids", &dids.join(",")].map(str::to_owned);
        Self::with_args(sim, &args)
    }

    /// A network, and the arguments of its follower.
    pub(crate) fn with_args(sim: Simulation, args: &[String]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { sim, folder, args: args.to_vec(), child: None }
    }

    /// Adds arguments for the following runs.
    pub(crate) fn add_args(&mut self, args: &[&str]) {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
    }

    /// The command.
    pub(crate) fn command(&self) -> Command {
        let port = self.sim.port(Server::Pds(0)).to_string();
        let mut command = Command::new(wireproof());
        command.args(["follow", "--host", &self.sim.url(Server::Relay(0)), "--cursor", "oldest"]);
        command.args(["--plc", &self.sim.url(Server::Plc), "--development-port", &port]);
        command.args(["--backoff-first-ms", "10", "--backoff-max-ms", "200"]);
        command.arg("--state").arg(self.folder.path().join("state")).args(&self.args);
        command.env("XDG_CONFIG_HOME", "/nonexistent").current_dir(self.folder.path());
        command.stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn output(&self, more: &[&str]) -> Output {
        self.command().args(more).output().expect("the command starts")
    }

    /// Checks that every line proves again by its own proof, under the keys of the network.
    pub(crate) fn assert_proved(&self, lines: &[String]) {
        let accounts = self.sim.expected_accounts().into_iter().map(|of| of.account);
        let keys: BTreeMap<String, String> =
            accounts.map(|account| (account.did, account.signing_key.to_string())).collect();
        let file = |name: &str, text: String| {
            let path = self.folder.path().join(name);
            fs::write(&path, text).expect("a file");
            path
        };
        let keys = file("keys.json", serde_json::json!(keys).to_string());
        let proved = file("lines.ndjson", lines.join("\n"));
        let mut command = Command::new(wireproof());
        command.args(["frames", "verify-lines", "--json"]).arg(proved).arg("--keys").arg(keys);
        let output = command.output().expect("the command starts");
        let report = String::from_utf8_lossy(&output.stdout);
        let expected = format!("\"proved\":{}", lines.len());
        let is_proved = output.status.success() && report.replace(' ', "").contains(&expected);
        assert!(is_proved && !lines.is_empty(), "{report}");
    }

    /// Starts the process, with a point at which it ends itself in builds that have such points.
    pub(crate) fn start(&mut self, crash_point: Option<&str>) {
        let errors = File::options().create(true).append(true).open(self.errors_file());
        let mut command = self.command();
        command.stdout(Stdio::null()).stderr(errors.expect("a file"));
        if let Some(point) = crash_point {
            command.env("WIREPROOF_CRASH_POINT", point);
            command.env("WIREPROOF_CRASH_MARKER", self.folder.path().join("marker"));
        }
        self.child = Some(command.spawn().expect("the command starts"));
    }

    /// Kills the process without notice.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Whether the process has ended, by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.end().is_some()
    }

    /// How the process has ended, by itself.
    fn end(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().and_then(|child| child.try_wait().expect("a state"))
    }

    /// The most memory that the process has had at once.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let pid = self.child.as_ref().expect("a process").id();
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process of Linux");
        let peak =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
        peak.and_then(|kib| kib.parse::<u64>().ok()).expect("a number of KiB") << 10
    }

    /// Interrupts the process, and checks that it ends in an orderly way.
    pub(crate) fn interrupt(&mut self) {
        let mut child = self.child.take().expect("a process");
        let pid = child.id().to_string();
        let _ = Command::new("kill").args(["-s", "INT", &pid]).status();
        let status = child.wait().expect("its end");
        assert_eq!(status.code(), Some(130), "{}", self.errors());
    }

    /// Its standard error, of all runs.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(self.errors_file()).unwrap_or_default()
    }

    fn errors_file(&self) -> PathBuf {
        self.folder.path().join("errors")
    }

    /// Writes commits of all accounts, and leaves a gap in one.
    pub(crate) fn write(&self, round: usize) {
        self.sim.write_commits(12);
        let account = round % self.sim.account_count();
        self.sim.write_unannounced(account);
        self.sim.write_commit_as(account);
    }

    /// Kills the relay, and starts it again with commits that were written meanwhile.
    pub(crate) async fn restart_source(&self) {
        self.sim.stop_server(Server::Relay(0));
        self.sim.write_commits(10);
        sleep(Duration::from_millis(40)).await;
        self.sim.start_server(Server::Relay(0)).expect("a relay that starts");
    }

    /// The records of the network.
    pub(crate) fn expected(&self) -> Records {
        let accounts = self.sim.expected_accounts().into_iter().map(|expected| {
            let records = expected.records.into_iter();
            (expected.account.did, records.map(|(path, cid)| (path, cid.to_string())).collect())
        });
        accounts.collect()
    }

    /// Waits until a destination has something.
    ///
    /// # Panics
    /// If the process ends, or the wait takes three minutes.
    pub(crate) async fn wait_until(&mut self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let since = Instant::now();
        while !holds().await {
            if let Some(end) = self.end() {
                panic!("waiting for {what}: {end}\n{}", self.errors());
            }
            let is_late = since.elapsed() > Duration::from_secs(180);
            assert!(!is_late, "waiting for {what}\n{}", self.errors());
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the process has ended by itself.
    pub(crate) async fn wait_for_end(&mut self) {
        let since = Instant::now();
        while !self.has_ended() {
            let is_late = since.elapsed() > Duration::from_secs(180);
            assert!(!is_late, "it does not end\n{}", self.errors());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        self.kill();
    }
}
