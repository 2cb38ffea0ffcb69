//! `cargo xtask speed follow`: speed and memory of `follow --verify` to standard output.
//!
//! First the relay sends prepared commits as fast as they are read: commits a second, and of the client alone the processor
//! time, page faults and resident memory. With `--baseline` another build of the client reads the same commits in turn.
//! Then the relay sends a thousand events a second: the delay from an event's `time` to its line.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::relay::Relay;
use crate::process::{self, Usage};

/// What to measure.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Another build of the command, measured in turn with this one.
    #[arg(long, value_name = "PROGRAM")]
    baseline: Option<String>,
    /// Numbers of accounts, each measured with a relay of its own.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "500")]
    accounts: Vec<u64>,
    /// Number of records of each account at the start.
    #[arg(long, default_value_t = 20)]
    records: u32,
    /// Number of measured commits.
    #[arg(long, default_value_t = 180_000)]
    commits: u64,
    /// Number of passes of each build.
    #[arg(long, default_value_t = 3)]
    passes: u32,
    /// Do not measure the delay.
    #[arg(long)]
    no_delay: bool,
}

/// Measures this build of the command.
pub(super) fn measure(program: &str, options: &Options) -> Result<(), String> {
    let mut builds = vec![("this build", program)];
    builds.extend(options.baseline.as_deref().map(|path| ("baseline", path)));
    for accounts in &options.accounts {
        throughput(&builds, *accounts, options)?;
    }
    if options.no_delay { Ok(()) } else { delay(program) }
}

/// Measures builds, by name and program, in turn.
fn throughput(builds: &[(&str, &str)], accounts: u64, options: &Options) -> Result<(), String> {
    // The first commits of an account wait for the lookup of its key; they are not measured.
    let warm_up = (options.commits / 9).max(accounts * 3);
    let (prepared, accounts) = ((warm_up + options.commits).to_string(), accounts.to_string());
    let records = options.records.to_string();
    let size = ["--prepared", &prepared, "--accounts", &accounts, "--records", &records];
    let relay = Relay::start(builds[0].1, &[&size[..], &["--rate", "none"]].concat())?;
    for _ in 0..options.passes {
        for (name, program) in builds {
            let pass = Pass::run(&relay, program, warm_up, options.commits)?;
            println!("{accounts} accounts, {name}: {}", pass.to_text());
        }
    }
    relay.end()
}

/// One reading of the prepared commits.
struct Pass {
    commits: u64,
    seconds: f64,
    before: Usage,
    after: Usage,
    relay_cores: f64,
}

impl Pass {
    fn run(relay: &Relay, program: &str, warm_up: u64, commits: u64) -> Result<Self, String> {
        let mut follow = Follow::start(relay, program)?;
        follow.read_lines(warm_up, |line| {
            if line.contains("\"code\":\"verified\"") {
                Ok(())
            } else {
                Err(format!("a line that is not verified: {line}"))
            }
        })?;
        let pid = follow.process.id();
        let since = Instant::now();
        let relay_before = relay.usage();
        let before = Usage::of(pid);
        follow.skip_lines(commits)?;
        let seconds = since.elapsed().as_secs_f64();
        let (relay_after, after) = (relay.usage(), Usage::of(pid));
        follow.end()?;
        let relay_time = relay_after.processor_time().saturating_sub(relay_before.processor_time());
        let relay_cores = relay_time.as_secs_f64() / seconds;
        Ok(Self { commits, seconds, before, after, relay_cores })
    }

    fn to_text(&self) -> String {
        let Self { before, after, .. } = self;
        let commits = self.commits as f64;
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / commits;
        let user = micros(after.user.saturating_sub(before.user));
        let system = micros(after.system.saturating_sub(before.system));
        format!(
            "{:.0} commits/s; a commit {:.1} µs of a core ({user:.1} user, {system:.1} system), {:.2} page faults; \
             {} MiB resident, at most {} MiB; the relay took {:.2} cores",
            commits / self.seconds,
            user + system,
            (after.page_faults - before.page_faults) as f64 / commits,
            after.resident_bytes >> 20,
            after.peak_bytes >> 20,
            self.relay_cores
        )
    }
}

fn delay(program: &str) -> Result<(), String> {
    let rate = RATE.to_string();
    let size = ["--prepared", "0", "--accounts", "500", "--records", "20", "--rate", &rate];
    let relay = Relay::start(program, &size)?;
    let mut follow = Follow::start(&relay, program)?;
    follow.skip_lines(RATE * 5)?;
    let mut delays = Vec::new();
    follow.read_lines(RATE * SECONDS, |line| {
        delays.extend(delay_ms(line));
        Ok(())
    })?;
    follow.end()?;
    relay.end()?;
    delays.sort_unstable_by(f64::total_cmp);
    let at =
        |part: f64| delays.get((delays.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    let median = at(0.5);
    let most = delays.last().copied().unwrap_or(f64::NAN);
    let len = delays.len();
    println!(
        "at {rate} events/s, from an event's time (in whole milliseconds, rounded down) to its line: \
         median {median:.1} ms, 99 % within {:.1} ms, all {len} within {most:.1} ms",
        at(0.99)
    );
    Ok(())
}

/// A `follow` process.
struct Follow {
    process: Child,
    lines: BufReader<ChildStdout>,
    state: PathBuf,
}

impl Follow {
    /// Starts at the oldest event, without stored state.
    fn start(relay: &Relay, program: &str) -> Result<Self, String> {
        let state = process::target("speed/state");
        let _ = std::fs::remove_dir_all(&state);
        let mut follow = relay.follow(program);
        follow.args(["--cursor", "oldest", "--state"]).arg(&state).stdout(Stdio::piped());
        let mut process = process::start(&mut follow)?;
        let output = process.stdout.take().expect("piped a line up");
        Ok(Self { process, lines: BufReader::with_capacity(READ_LEN, output), state })
    }

    /// Reads `count` lines.
    fn read_lines(
        &mut self,
        count: u64,
        mut visit: impl FnMut(&str) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut line = String::new();
        for _ in 0..count {
            line.clear();
            let len = self.lines.read_line(&mut line).map_err(|error| error.to_string())?;
            if len == 0 {
                return Err(ENDED.to_owned());
            }
            visit(&line)?;
        }
        Ok(())
    }

    /// Skips `count` lines, at little cost compared with the process that writes them.
    fn skip_lines(&mut self, mut count: u64) -> Result<(), String> {
        while count > 0 {
            let read = self.lines.fill_buf().map_err(|error| error.to_string())?;
            if read.is_empty() {
                return Err(ENDED.to_owned());
            }
            let (len, ends) = (read.len(), read.iter().filter(|byte| **byte == b'\n').count());
            count = count.saturating_sub(ends as u64);
            self.lines.consume(len);
        }
        Ok(())
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

/// Milliseconds since the `time` of a line's event.
fn delay_ms(line: &str) -> Option<f64> {
    let value: Value = serde_json::from_str(line).ok()?;
    let time: Timestamp = value["time"].as_str()?.parse().ok()?;
    Some(Timestamp::now().duration_since(time).as_secs_f64() * 1000.0)
}

const ENDED: &str = "`follow` ended early";

/// Events a second, and seconds.
const RATE: u64 = 1_000;
const SECONDS: u64 = 30;

const READ_LEN: usize = 1 << 20;
