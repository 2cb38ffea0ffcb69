//! A simulated network that serves a relay in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::process::{self, Usage};

/// A simulated relay.
pub(super) struct Relay {
    process: Child,
    /// The URLs of the relay, the directory and the PDS.
    pub(super) host: String,
    pub(super) plc: String,
    pds: String,
}

impl Relay {
    /// Starts the network with these arguments of `sim serve`, and waits until its servers are open.
    pub(super) fn start(program: &str, args: &[&str]) -> Result<Self, String> {
        let mut serve = process::command(program, &["sim", "serve", "--port", "0", "--json"]);
        serve.args(["--jetstreams", "0", "--pds", "1"]);
        let mut process = process::start(serve.args(args).stdout(Stdio::piped()))?;
        let mut opening = String::new();
        let mut output = BufReader::new(process.stdout.take().expect("piped a line up"));
        output.read_line(&mut opening).map_err(|error| error.to_string())?;
        // At its end it prints a summary, which is longer than a pipe holds.
        thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        let opening: Value = serde_json::from_str(&opening).map_err(|error| error.to_string())?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let servers = opening["servers"].as_array().cloned().unwrap_or_default();
        let host = |name: &str| {
            let server = servers.iter().find(|server| server["server"] == name);
            server.map(|server| text(&server["host"])).unwrap_or_default()
        };
        let (host, plc, pds) = (host("relay0"), host("plc"), host("pds0"));
        Ok(Self { process, host, plc, pds })
    }

    /// `follow` of this relay.
    pub(super) fn follow(&self, program: &str) -> Command {
        let mut follow = process::command(program, &["follow", "--verify", "--host", &self.host]);
        follow.args(["--plc", &self.plc, "--development-port", self.pds_port()]);
        follow
    }

    fn pds_port(&self) -> &str {
        self.pds.rsplit(':').next().unwrap_or_default()
    }

    /// The DIDs of all accounts, in the order of the relay.
    pub(super) fn dids(&self) -> Result<Vec<String>, String> {
        let (mut dids, mut cursor) = (Vec::new(), String::new());
        loop {
            let host = &self.host;
            let url = format!("{host}/xrpc/com.atproto.sync.listRepos?limit=1000{cursor}");
            let page = process::output(&mut process::command("curl", &["-sSf", &url]))?;
            let page: Value = serde_json::from_str(&page).map_err(|error| error.to_string())?;
            let repos = page["repos"].as_array().map(Vec::as_slice).unwrap_or_default();
            dids.extend(repos.iter().filter_map(|repo| Some(repo["did"].as_str()?.to_owned())));
            match page["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(dids),
            }
        }
    }

    /// What its process has used so far.
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
