//! `cargo xtask speed delivery`: events a second into every destination, and the resources that `follow` uses for them.
//!
//! The relay sends prepared commits as fast as they are read. The metrics of `follow` tell how many events are delivered: a
//! pass is measured between the first tenth of them, in which keys are looked up, and the last.

use std::process::Stdio;

use clap::Args;

use super::relay::{PreparedCommits, Relay};
use super::running::{Running, free_address, token_file};
use super::scraped;
use super::table::{Pass, Table};
use crate::process;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Destinations as `follow --to` takes them. `websocket` and `webhook` start a receiver; a URL of another server is used
    /// as it is.
    #[arg(long, value_name = "DESTINATION", default_values = DESTINATIONS)]
    to: Vec<String>,
    #[command(flatten)]
    load: PreparedCommits,
    /// Write the table into docs/measured.md.
    #[arg(long)]
    publish: bool,
}

/// Measures standard output and all destinations in turn.
pub(super) fn measure(program: &str, options: &Options) -> Result<(), String> {
    let receivers = Receivers {
        websocket: super::example("websocket_client")?,
        webhook: super::example("webhook_receiver")?,
    };
    let (relay, commits) = (options.load.serve(program)?, options.load.commits);
    let mut table = Table::default();
    for _ in 0..options.load.passes {
        table.add("standard output", pass(&relay, program, None, &receivers, commits)?);
        for to in &options.to {
            table.add(name(to), pass(&relay, program, Some(to), &receivers, commits)?);
        }
    }
    relay.end()?;
    table.finish("delivery", "into", options.publish)
}

/// The name of a destination, without its address.
fn name(to: &str) -> &str {
    match to.split_once(':') {
        Some((scheme, _)) => scheme,
        None => to,
    }
}

/// Paths of programs that receive events.
struct Receivers {
    websocket: String,
    webhook: String,
}

impl Receivers {
    /// The value of `--to` for a destination, and its receiver if that is a process of ours.
    fn start(
        &self,
        to: &str,
        token: &str,
        commits: u64,
    ) -> Result<(String, Option<Running>), String> {
        let address = free_address()?;
        let (url, mut command) = match to {
            "websocket" => {
                let url = format!("ws://{address}");
                let lines = format!("{url}/lines");
                (url, process::command(&self.websocket, &[&lines, token, &commits.to_string()]))
            }
            "webhook" => {
                let url = format!("http://{address}/");
                (url, process::command(&self.webhook, &[&address.to_string()]))
            }
            other => return Ok((other.to_owned(), None)),
        };
        let process = process::start(command.stdout(Stdio::null()))?;
        Ok((url, Some(Running(process))))
    }
}

/// Delivers `commits` events of the relay; to standard output without a destination.
fn pass(
    relay: &Relay,
    program: &str,
    to: Option<&str>,
    receivers: &Receivers,
    commits: u64,
) -> Result<Pass, String> {
    let folder = process::empty_folder("speed")?;
    let metrics = free_address()?;
    let mut follow = relay.follow(program);
    follow.args(["--cursor", "oldest", "--metrics", &metrics.to_string(), "--state"]);
    follow.arg(folder.join("state")).current_dir(&folder);
    let _receiver = match to {
        Some(to) => {
            let token = token_file(&folder)?;
            let (url, receiver) = receivers.start(to, &token, commits)?;
            follow.args(["--outbox", "outbox", "--to", &url]);
            if to == "websocket" {
                follow.args(["--ws-token-file", &token]);
            }
            if to == "webhook" {
                std::fs::write(folder.join("secret"), SECRET)
                    .map_err(|error| process::at(&folder, &error))?;
                follow.args(["--webhook-secret-file", "secret"]);
            }
            receiver
        }
        None => None,
    };
    scraped::pass(&mut follow, metrics, commits, delivered)
}

/// Lines that were made, without the ones that the destination has not acknowledged.
fn delivered(page: &str) -> f64 {
    scraped::value(page, "wireproof_lines_total")
        - scraped::value(page, "wireproof_undelivered_events")
}

const DESTINATIONS: [&str; 4] = ["file:events", "sqlite:events.db", "websocket", "webhook"];

/// Signs webhooks.
const SECRET: &str = "a secret of the measurement";
