//! `cargo xtask speed nostr`: verified events a second of `nostr follow`, from a simulated relay.
//!
//! The relay sends all its events in answer to one request, as fast as they are read. A pass is a whole run: connecting, the events,
//! and the end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;
use std::time::Instant;

use clap::Args;

use super::running::{Running, free_address};
use crate::process::{self, Usage};

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Number of events.
    #[arg(long, default_value_t = 100_000)]
    events: u32,
    /// Number of passes.
    #[arg(long, default_value_t = 3)]
    passes: u32,
}

/// Measures `nostr follow`.
pub(super) fn measure(program: &str, options: &Options) -> Result<(), String> {
    let port = free_address()?.port().to_string();
    let events = options.events.to_string();
    let relay = ["sim", "nostr", "--events", &events, "--page", &events, "--port", &port];
    let mut relay = process::command(program, &relay);
    let mut relay = Running(process::start(relay.stdout(Stdio::piped()))?);
    let mut output = BufReader::new(relay.0.stdout.take().expect("piped a line up"));
    let mut line = String::new();
    while !line.starts_with(READY) {
        line.clear();
        if output.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
            return Err("the relay ended before it served".to_owned());
        }
    }
    thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
    let url = format!("ws://localhost:{port}");
    for _ in 0..options.passes {
        pass(program, &url, options.events, &relay)?;
    }
    relay.check()
}

fn pass(program: &str, url: &str, events: u32, relay: &Running) -> Result<(), String> {
    let used = |pid| Usage::of(pid).processor_time();
    let (since, before) = (Instant::now(), used(relay.0.id()));
    let mut follow =
        process::command(program, &["nostr", "follow", url, "--development", "--stored", "-q"]);
    let mut follow = Running(process::start(follow.stdout(Stdio::piped()))?);
    let output = follow.0.stdout.take().expect("piped a line up");
    let mut output = BufReader::with_capacity(READ_BYTES, output);
    let mut lines = 0;
    loop {
        let bytes = output.fill_buf().map_err(|error| error.to_string())?;
        if bytes.is_empty() {
            break;
        }
        lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        let len = bytes.len();
        output.consume(len);
    }
    let status = follow.0.wait().map_err(|error| error.to_string())?;
    if !status.success() || lines != events as usize {
        return Err(format!("{status}: {lines} lines of {events}"));
    }
    let seconds = since.elapsed().as_secs_f64();
    let relay_time = used(relay.0.id()).saturating_sub(before).as_secs_f64();
    println!(
        "{:.0} verified events/s; the relay took {:.2} cores",
        lines as f64 / seconds,
        relay_time / seconds
    );
    Ok(())
}

/// The line after which the relay serves.
const READY: &str = "Ctrl-C ends";
const READ_BYTES: usize = 256 << 10;
