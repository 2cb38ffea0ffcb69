//! How fast does `follow --verify` follow a relay on the same machine, and how late are its lines?
//!
//! Both ends are processes of the release build. First a relay that has prepared its commits sends
//! them as fast as they are read: commits a second, and the processor's seconds of either end, which tell
//! what bounds it. Then a relay tells a thousand a second: how long behind its `time` an event's line
//! is read, which counts the relay's own way to the socket too.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::process;

/// Builds, measures and prints.
pub(crate) fn measure() -> Result<(), String> {
    process::run(&mut process::command("cargo", &["build", "--release", "-p", "wireproof-cli"]))?;
    let program = binary()?;
    throughput(&program)?;
    latency(&program)
}

fn throughput(program: &str) -> Result<(), String> {
    let prepared = COMMITS.to_string();
    let relay = Relay::start(program, &["--prepared", &prepared, "--rate", "none"])?;
    for _ in 0..PASSES {
        let mut follow = relay.follow()?;
        // Keys are looked up for the first of an account's commits; from then on they are known.
        follow.read_lines(COMMITS / 10, |_| ())?;
        let used = || [processor_time(relay.process.id()), processor_time(follow.process.id())];
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
    let mut late = Vec::new();
    follow.read_lines(RATE * SECONDS, |line| late.extend(lateness_ms(line)))?;
    follow.end()?;
    relay.end()?;
    late.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| late.get((late.len() as f64 * part) as usize).copied().unwrap_or(f64::NAN);
    let (median, most, len) = (at(0.5), late.last().copied().unwrap_or(f64::NAN), late.len());
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
    /// How `follow` finds it.
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
        let (host, plc) = (text(&opening["relays"][0]), text(&opening["plc"]));
        let port = text(&opening["pds"][0]).rsplit(':').next().unwrap_or_default().to_owned();
        let args = [("--host", host), ("--plc", plc), ("--development-port", port)];
        let args = args.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        Ok(Self { process, program: program.to_owned(), args })
    }

    /// Follows it from the oldest event, without a state of earlier times.
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

/// Who follows it.
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
        // Whoever writes has to be read until the end.
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

/// Reads so many lines.
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
            return Err("`follow` ended before it had told all".to_owned());
        }
        visit(&line);
    }
    Ok(())
}

/// The command of the release build, wherever cargo puts it.
fn binary() -> Result<String, String> {
    let metadata = process::command("cargo", &["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .map_err(|error| error.to_string())?;
    let metadata: Value =
        serde_json::from_slice(&metadata.stdout).map_err(|error| error.to_string())?;
    let target = metadata["target_directory"].as_str().ok_or("cargo metadata without a target")?;
    Ok(format!("{target}/release/wireproof"))
}

fn is_verified(line: &str) -> bool {
    line.contains("\"code\":\"verified\"")
}

/// How long ago the event of a line was told, by its own `time`.
fn lateness_ms(line: &str) -> Option<f64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs_f64() * 1000.0;
    let value: Value = serde_json::from_str(line).ok()?;
    Some(now - millis_of(value["time"].as_str()?)?)
}

/// Milliseconds since 1970 of `2026-07-01T00:00:00.000Z`.
fn millis_of(time: &str) -> Option<f64> {
    let number = |range: std::ops::Range<usize>| time.get(range)?.parse::<f64>().ok();
    let [year, month, day] = [number(0..4)?, number(5..7)?, number(8..10)?];
    // Days by counting months from March, so that a leap day is the last of its year.
    let (year, month) = if month > 2.0 { (year, month - 3.0) } else { (year - 1.0, month + 9.0) };
    let leap_days = (year / 4.0).floor() - (year / 100.0).floor() + (year / 400.0).floor();
    let in_year = ((153.0 * month + 2.0) / 5.0).floor() + day - 1.0;
    let days = 365.0 * year + leap_days + in_year - 719_468.0;
    let seconds = time.get(17..time.len() - 1)?.parse::<f64>().ok()?;
    Some((days * 86_400.0 + number(11..13)? * 3600.0 + number(14..16)? * 60.0 + seconds) * 1000.0)
}

/// User's and system's time of a process; nothing where there is no `/proc`.
fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Behind the name, which may hold spaces, these are the 12th and the 13th.
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = behind_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|number| number.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

const PASSES: u32 = 3;
const COMMITS: u64 = 200_000;

/// Events a second, and for how long.
const RATE: u64 = 1_000;
const SECONDS: u64 = 30;

const READ_LEN: usize = 1 << 20;

/// What Linux tells programs, whatever its own clock does.
const TICKS_PER_SECOND: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datetime_is_milliseconds_since_1970() {
        assert_eq!(millis_of("1970-01-01T00:00:00.000Z"), Some(0.0));
        assert_eq!(millis_of("2026-07-01T00:00:00.250Z"), Some(1_782_864_000_250.0));
        assert_eq!(millis_of("2024-02-29T23:59:59Z"), Some(1_709_251_199_000.0));
        assert_eq!(millis_of("soon"), None);
    }

    #[test]
    fn a_process_that_is_not_there_has_used_nothing() {
        assert_eq!(processor_time(u32::MAX), Duration::ZERO);
    }
}
