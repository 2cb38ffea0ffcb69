//! `cargo xtask speed delay`: the delay from the time of an event to its receipt by a WebSocket client.
//!
//! The relay makes events at a constant rate, `follow` delivers them through its outbox, and the client acknowledges them.

use std::process::Stdio;

use clap::Args;

use super::relay::Relay;
use super::running::{Running, free_address, token_file};
use super::table;
use crate::process;

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Events a second.
    #[arg(long, default_value_t = 1_000)]
    rate: u32,
    /// Number of events, of which a tenth is not measured.
    #[arg(long, default_value_t = 30_000)]
    events: u64,
    /// Number of passes.
    #[arg(long, default_value_t = 3)]
    passes: u32,
    /// Write the table into docs/measured.md.
    #[arg(long)]
    publish: bool,
}

/// Measures passes one after the other.
pub(super) fn measure(program: &str, options: &Options) -> Result<(), String> {
    let client = super::example("websocket_client")?;
    let mut text = "| pass | events/s; delay |\n|---|---|\n".to_owned();
    for number in 1..=options.passes {
        let result = pass(program, &client, options)?;
        text += &format!("| {number} | {} |\n", result.trim());
    }
    table::report("delay", &text, options.publish)
}

/// The client's measurements.
fn pass(program: &str, client: &str, options: &Options) -> Result<String, String> {
    let rate = options.rate.to_string();
    let size = ["--prepared", "0", "--accounts", "500", "--records", "20", "--rate", &rate];
    let relay = Relay::start(program, &size)?;
    let folder = process::empty_folder("speed")?;
    let url = format!("ws://{}", free_address()?);
    let mut follow = relay.follow(program);
    let token = token_file(&folder)?;
    follow.args(["--state", "state", "--outbox", "outbox", "--to", &url]).current_dir(&folder);
    follow.args(["--ws-token-file", &token]);
    follow.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Running(process::start(&mut follow)?);
    let lines = format!("{url}/lines");
    let client = process::command(client, &[&lines, &token, &options.events.to_string()]);
    let result = process.run_beside(client)?;
    process::terminate(&mut process.0)?;
    relay.end()?;
    Ok(result)
}
