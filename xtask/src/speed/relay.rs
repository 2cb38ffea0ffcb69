//! A simulated network that serves a relay in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use clap::Args;
use serde_json::Value;

use crate::process::{self, Usage};

/// Commits that a relay has prepared, and sends as fast as they are read.
#[derive(Args, Clone, Debug)]
pub(super) struct PreparedCommits {
    /// Number of accounts.
    #[arg(long, default_value_t = 20_000)]
    accounts: u32,
    /// Number of commits, of which a tenth is not measured.
    #[arg(long, default_value_t = 200_000)]
    pub(super) commits: u64,
    /// Number of passes of each row.
    #[arg(long, default_value_t = 3)]
    pub(super) passes: u32,
}

impl PreparedCommits {
    /// Starts their relay.
    pub(super) fn serve(&self, program: &str) -> Result<Relay, String> {
        let (commits, accounts) = (self.commits.to_string(), self.accounts.to_string());
        let size =
            ["--prepared", &commits, "--accounts", &accounts, "--records", "5", "--rate", "none"];
        Relay::start(program, &size)
    }
}

/// A simulated relay.
pub(super) struct Relay {
    process: Child,
    /// The URLs of the relay, the directory and the PDSs.
    pub(super) host: String,
    pub(super) plc: String,
    pub(super) pds: Vec<String>,
}

impl Relay {
    /// Starts the network with these arguments of `sim serve`, and waits until its servers are open.
    pub(super) fn start(program: &str, args: &[&str]) -> Result<Self, String> {
        let mut serve = process::command(program, &["sim", "serve", "--port", "0", "--json"]);
        serve.args(["--jetstreams", "0", "--pds", SERVERS]);
        let mut process = process::start(serve.args(args).stdout(Stdio::piped()))?;
        let mut opening = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("piped a line up"));
        output.read_line(&mut opening).map_err(|error| error.to_string())?;
        // At its end it prints a summary, which is longer than a pipe holds.
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let opening: Value = serde_json::from_str(&opening).map_err(|error| error.to_string())?;
        let servers = opening["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let hosts = |name: &str| {
            let is_named =
                |server: &&Value| server["server"].as_str().is_some_and(|of| of.starts_with(name));
            let host = |server: &Value| server["host"].as_str().map(str::to_owned);
            servers.iter().filter(is_named).filter_map(host).collect::<Vec<_>>()
        };
        let first = |name| hosts(name).into_iter().next().unwrap_or_default();
        let (host, plc) = (first("relay"), first("plc"));
        Ok(Self { process, host, plc, pds: hosts("pds") })
    }

    /// `follow` of this relay.
    pub(super) fn follow(&self, program: &str) -> Command {
        self.reader(program, &["follow", "--verify"])
    }

    /// `archive follow` of this relay.
    pub(super) fn archive_follow(&self, program: &str) -> Command {
        self.reader(program, &["archive", "follow"])
    }

    fn reader(&self, program: &str, args: &[&str]) -> Command {
        let mut reader = process::command(program, args);
        reader.args(["--host", &self.host]);
        self.add_directory(&mut reader);
        reader
    }

    /// Names the directory, and where connections may go.
    pub(super) fn add_directory(&self, reader: &mut Command) {
        let port = self.pds.first().and_then(|url| url.rsplit(':').next()).unwrap_or_default();
        reader.args(["--plc", &self.plc, "--development-port", port]);
    }

    /// The resources that its process has used so far.
    pub(super) fn usage(&self) -> Usage {
        Usage::of(self.process.id())
    }

    pub(super) fn end(mut self) -> Result<(), String> {
        process::terminate(&mut self.process)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Number of PDSs, among which the accounts are divided.
const SERVERS: &str = "20";
