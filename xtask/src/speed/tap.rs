//! `cargo xtask speed tap`: `follow` next to tap of indigo. Both serve tap's channel to the same client, which
//! acknowledges every event, over networks of the same seed.
//!
//! | scenario | events |
//! |---|---|
//! | history | every record of many repositories; nothing is written meanwhile |
//! | live | commits that the relay makes as fast as they are read, after short histories |
//!
//! Both programs are measured from their start to the last acknowledgement.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Args;

use super::relay::Relay;
use super::running::{Running, free_address, token_file};
use super::table::{Pass, Table};
use crate::interop;
use crate::process::{self, Usage};

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Number of accounts of the histories.
    #[arg(long, default_value_t = 5_000)]
    accounts: u64,
    /// Number of records of each of them.
    #[arg(long, default_value_t = 20)]
    records: u64,
    /// Number of accounts of the live commits.
    #[arg(long, default_value_t = 500)]
    live_accounts: u64,
    /// Number of live events.
    #[arg(long, default_value_t = 50_000)]
    live_events: u64,
    /// Number of passes of each program.
    #[arg(long, default_value_t = 3)]
    passes: u32,
    /// Write the tables into docs/measured.md.
    #[arg(long)]
    publish: bool,
}

/// Measures both programs in turn.
pub(super) fn measure(program: &str, options: &Options) -> Result<(), String> {
    let programs = Programs {
        follow: program.to_owned(),
        tap: interop::build_tap()?,
        client: super::example("websocket_client")?,
    };
    let history = Scenario {
        name: "history",
        accounts: options.accounts,
        records: options.records,
        rate: "none",
        events: options.accounts * options.records,
    };
    let live = Scenario {
        name: "live",
        accounts: options.live_accounts,
        records: 1,
        rate: "0",
        events: options.live_events,
    };
    for scenario in [&history, &live] {
        let mut table = Table::default();
        for _ in 0..options.passes {
            table.add("tap", programs.pass(Server::Tap, scenario)?);
            table.add("wireproof", programs.pass(Server::Follow, scenario)?);
        }
        let block = format!("tap-{}", scenario.name);
        table.finish(&block, "program", options.publish)?;
    }
    Ok(())
}

/// A network, and the number of its events until the end of a pass.
struct Scenario {
    name: &'static str,
    accounts: u64,
    records: u64,
    /// The value of `sim serve --rate`.
    rate: &'static str,
    events: u64,
}

/// A program that serves the channel.
#[derive(Clone, Copy)]
enum Server {
    Follow,
    Tap,
}

/// Paths of programs.
struct Programs {
    follow: String,
    tap: PathBuf,
    client: String,
}

impl Programs {
    fn pass(&self, server: Server, scenario: &Scenario) -> Result<Pass, String> {
        let [accounts, records] = [scenario.accounts, scenario.records].map(|of| of.to_string());
        let size = ["--accounts", &accounts, "--records", &records, "--rate", scenario.rate];
        // Without handles, which tap would look up in a DNS that does not know them.
        let options = ["--prepared", "0", "--fault", "plc:no-handle:always"];
        let relay = Relay::start(&self.follow, &[size.as_slice(), &options].concat())?;
        let folder = process::empty_folder("speed")?;
        let address = free_address()?.to_string();
        let token = token_file(&folder)?;
        let mut command = match server {
            Server::Follow => self.follow(&relay, &address, &token),
            Server::Tap => self.tap(&relay, &address),
        };
        let since = Instant::now();
        command.current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = Running(process::start(&mut command)?);
        let url = format!("ws://{address}/channel");
        let events = scenario.events.to_string();
        let client = process::command(&self.client, &[&url, &token, &events]);
        process.run_beside(client)?;
        let (seconds, usage) = (since.elapsed().as_secs_f64(), Usage::of(process.0.id()));
        process::terminate(&mut process.0)?;
        relay.end()?;
        Ok(Pass {
            events: scenario.events as f64,
            seconds,
            processor_time: usage.processor_time(),
            peak_bytes: usage.peak_bytes,
        })
    }

    fn follow(&self, relay: &Relay, address: &str, token: &str) -> Command {
        let mut follow = relay.follow(&self.follow);
        follow.args(["--ws-token-file", token]);
        follow.args(["--state", "state", "--outbox", "outbox", "--all-from", &relay.pds.join(",")]);
        follow.args(["--to", &format!("ws://{address}")]);
        follow
    }

    fn tap(&self, relay: &Relay, address: &str) -> Command {
        let mut tap = Command::new(&self.tap);
        tap.args(["run", "--full-network", "--db-url", "sqlite://tap.db", "--bind", address]);
        tap.args(["--plc-url", &relay.plc, "--relay-url", &relay.host, "--log-level", "error"]);
        tap
    }
}
