//! `cargo xtask soak`: the reliability tests, the model of the follower and the longest interop test at full length,
//! and the speed of `follow --verify`.
//!
//! The tests are those that `cargo xtask test` runs shortened. The measurement runs a relay and a client
//! as two processes of the release build: first the relay sends prepared commits as fast as they are read
//! (commits a second, processor time of both ends), then a thousand events a second (delay from an
//! event's `time` to its line).

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Instant;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use crate::toolchains::Without;
use crate::{interop, process};

/// What to run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Measure the speed of `follow --verify` instead of testing.
    #[arg(long, conflicts_with = "tests")]
    speed: bool,
    /// Tests to run, by a part of their names, or `model`; all by default.
    tests: Vec<String>,
    /// Number of random schedules of `model`.
    #[arg(long, default_value_t = 100_000)]
    schedules: u64,
    /// The first seed of `model`; the others follow it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the tests one after the other, or measures.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    if options.speed {
        return measure();
    }
    let (of_model, tests): (Vec<&String>, Vec<&String>) =
        options.tests.iter().partition(|test| *test == "model");
    let runs_all = options.tests.is_empty();
    if runs_all || !of_model.is_empty() {
        model(options)?;
    }
    if runs_all || !tests.is_empty() {
        reliability(&tests)?;
    }
    if runs_all { interop() } else { Ok(()) }
}

/// Holds the follower against its model under random schedules.
fn model(options: &Options) -> Result<(), String> {
    let args = ["test", "--release", "-p", "wireproof-net", "--lib", MODEL, "--", "--nocapture"];
    let mut command = process::command("cargo", &args);
    command.env("WIREPROOF_MODEL_SCHEDULES", options.schedules.to_string());
    process::run(command.env("WIREPROOF_MODEL_SEED", options.seed.to_string()))
}

fn reliability(tests: &[&String]) -> Result<(), String> {
    let args = ["test", "--release", "-p", "wireproof-cli", "--test", "reliability", "--"];
    let mut command = process::command("cargo", &args);
    // One at a time, so that no test's load shows in the figures of another.
    command.args(["--test-threads", "1", "--nocapture"]).args(tests);
    process::run(command.env("WIREPROOF_SOAK", "1"))
}

/// Runs the interop test that depends on its length.
fn interop() -> Result<(), String> {
    let without = Without::default();
    interop::set_up(&without)?;
    process::cargo(&["build", "--release", "-p", "wireproof-cli", "--bin", "wireproof"])?;
    let args = ["test", "--release", "-p", "wireproof-interop", "--test", "interop", "--"];
    let mut command = process::command("cargo", &args);
    command.args(["printed_state", "--nocapture"]);
    interop::configure(&mut command, &without);
    process::run(command.env("WIREPROOF_SOAK", "1"))
}

fn measure() -> Result<(), String> {
    process::cargo(&["build", "--release", "-p", "wireproof-cli"])?;
    let program = process::target_folder()?.join("release/wireproof");
    let program = program.to_string_lossy();
    throughput(&program)?;
    latency(&program)
}

fn throughput(program: &str) -> Result<(), String> {
    let prepared = COMMITS.to_string();
    let relay = Relay::start(program, &["--prepared", &prepared, "--rate", "none"])?;
    for _ in 0..PASSES {
        let mut follow = relay.follow()?;
        // The first commits of accounts wait for key lookups; they are not measured.
        follow.read_lines(COMMITS / 10, |_| ())?;
        let used = || [relay.process.id(), follow.process.id()].map(process::processor_time);
        let (since, before) = (Instant::now(), used());
        let count = COMMITS - COMMITS / 10;
        let mut verified = 0;
        let lines = &mut follow.lines;
        read_lines(lines, count, |line| verified += u64::from(is_verified(line)))?;
        let (time, after) = (since.elapsed().as_secs_f64(), used());
        follow.end()?;
        let cores = |at: usize| after[at].saturating_sub(before[at]).as_secs_f64() / time;
        let (per_s, of_relay, of_follow) = (count as f64 / time, cores(0), cores(1));
        println!(
            "{per_s:.0} commits/s, {verified} of {count} verified; of the cores the relay took \
             {of_relay:.2}, follow {of_follow:.2}"
        );
    }
    relay.end()
}

fn latency(program: &str) -> Result<(), String> {
    let rate = RATE.to_string();
    let relay = Relay::start(program, &["--prepared", "0", "--rate", &rate])?;
    let mut follow = relay.follow()?;
    follow.read_lines(RATE * 5, |_| ())?;
    let mut delays = Vec::new();
    follow.read_lines(RATE * SECONDS, |line| delays.extend(delay_ms(line)))?;
    follow.end()?;
    relay.end()?;
    delays.sort_unstable_by(f64::total_cmp);
    let at =
        |part: f64| delays.get((delays.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    let (median, most, len) = (at(0.5), delays.last().copied().unwrap_or(f64::NAN), delays.len());
    println!(
        "at {rate} events/s, from an event's time (in whole milliseconds, rounded down) to its line: \
         median {median:.1} ms, 99 % within {:.1} ms, all {len} within {most:.1} ms",
        at(0.99)
    );
    Ok(())
}

/// A simulated relay.
struct Relay {
    process: Child,
    program: String,
    /// Arguments of `follow` that lead to it.
    args: Vec<String>,
}

impl Relay {
    fn start(program: &str, args: &[&str]) -> Result<Self, String> {
        let mut serve = process::command(program, &["sim", "serve", "--port", "0", "--json"]);
        serve.args(["--accounts", "500", "--records", "20", "--jetstreams", "0", "--pds", "1"]);
        let mut process = process::start(serve.args(args).stdout(Stdio::piped()))?;
        let mut opening = String::new();
        let output = process.stdout.as_mut().expect("piped a line up");
        BufReader::new(output).read_line(&mut opening).map_err(|error| error.to_string())?;
        let opening: Value = serde_json::from_str(&opening).map_err(|error| error.to_string())?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let servers = opening["servers"].as_array().cloned().unwrap_or_default();
        let host = |name: &str| {
            let server = servers.iter().find(|server| server["server"] == name);
            server.map(|server| text(&server["host"])).unwrap_or_default()
        };
        let port = host("pds0").rsplit(':').next().unwrap_or_default().to_owned();
        let (host, plc) = (host("relay0"), host("plc"));
        let args = [("--host", host), ("--plc", plc), ("--development-port", port)];
        let args = args.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        Ok(Self { process, program: program.to_owned(), args })
    }

    /// Starts `follow` at the oldest event, without stored state.
    fn follow(&self) -> Result<Follow, String> {
        let state = process::target("soak-state");
        let _ = std::fs::remove_dir_all(&state);
        let args = ["follow", "--verify", "--cursor", "oldest"];
        let mut follow = process::command(&self.program, &args);
        follow.args(&self.args).arg("--state").arg(&state).stdout(Stdio::piped());
        let mut process = process::start(&mut follow)?;
        let output = process.stdout.take().expect("piped a line up");
        Ok(Follow { process, lines: BufReader::with_capacity(READ_LEN, output), state })
    }

    fn end(mut self) -> Result<(), String> {
        process::terminate(&mut self.process)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A `follow` process.
struct Follow {
    process: Child,
    lines: BufReader<ChildStdout>,
    state: PathBuf,
}

impl Follow {
    fn read_lines(&mut self, count: u64, visit: impl FnMut(&str)) -> Result<(), String> {
        read_lines(&mut self.lines, count, visit)
    }

    fn end(mut self) -> Result<(), String> {
        let pid = self.process.id().to_string();
        process::run(&mut process::command("kill", &["-s", "INT", &pid]))?;
        // A process that writes must be read to the end, or it blocks.
        let rest = std::io::copy(&mut self.lines, &mut std::io::sink());
        rest.map_err(|error| error.to_string())?;
        self.process.wait().map(drop).map_err(|error| error.to_string())
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

/// Reads `count` lines.
fn read_lines(
    lines: &mut impl BufRead,
    count: u64,
    mut visit: impl FnMut(&str),
) -> Result<(), String> {
    let mut line = String::new();
    for _ in 0..count {
        line.clear();
        let len = lines.read_line(&mut line).map_err(|error| error.to_string())?;
        if len == 0 {
            return Err("`follow` ended early".to_owned());
        }
        visit(&line);
    }
    Ok(())
}

fn is_verified(line: &str) -> bool {
    line.contains("\"code\":\"verified\"")
}

/// Milliseconds since the `time` of a line's event.
fn delay_ms(line: &str) -> Option<f64> {
    let value: Value = serde_json::from_str(line).ok()?;
    let time: Timestamp = value["time"].as_str()?.parse().ok()?;
    Some(Timestamp::now().duration_since(time).as_secs_f64() * 1000.0)
}

const MODEL: &str =
    "firehose::tests::model::the_follower_does_what_the_model_allows_under_random_schedules";

const PASSES: u32 = 3;
const COMMITS: u64 = 200_000;

/// Events a second, and seconds.
const RATE: u64 = 1_000;
const SECONDS: u64 = 30;

const READ_LEN: usize = 1 << 20;
