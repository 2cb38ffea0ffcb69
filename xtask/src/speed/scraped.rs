//! Passes of a run whose metrics tell how far it is.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use super::running::{INTERVAL, Running};
use super::table::Pass;
use crate::process::{self, Usage};

/// Starts `follow`, which serves its metrics at `metrics`, and measures it from the first tenth of `events` to the last.
/// `done` reads the number of finished events from the page of metrics.
pub(super) fn pass(
    follow: &mut Command,
    metrics: SocketAddr,
    events: u64,
    done: fn(&str) -> f64,
) -> Result<Pass, String> {
    follow.stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Running(process::start(follow)?);
    let pid = process.0.id();
    let first = wait_for(&mut process, metrics, events / 10, done)?;
    let (since, before) = (Instant::now(), Usage::of(pid));
    let last = wait_for(&mut process, metrics, events, done)?;
    let (seconds, after) = (since.elapsed().as_secs_f64(), Usage::of(pid));
    process::terminate(&mut process.0)?;
    let processor_time = after.processor_time().saturating_sub(before.processor_time());
    Ok(Pass { events: last - first, seconds, processor_time, peak_bytes: after.peak_bytes })
}

/// Waits until at least `count` events are done, and returns their number.
fn wait_for(
    follow: &mut Running,
    metrics: SocketAddr,
    count: u64,
    done: fn(&str) -> f64,
) -> Result<f64, String> {
    loop {
        // Before the server listens, nothing is done.
        let done = page(metrics).map_or(0.0, |page| done(&page));
        if done >= count as f64 {
            return Ok(done);
        }
        follow.check()?;
        thread::sleep(INTERVAL);
    }
}

/// The value of a series without labels; 0 if there is none.
pub(super) fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_default()
}

/// The metrics page.
fn page(metrics: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(metrics)?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_read_by_its_name_and_a_missing_one_is_zero() {
        let page = "# HELP wireproof_lines Lines\nwireproof_lines_total 12\nother 3\n";
        assert_eq!(value(page, "wireproof_lines_total"), 12.0);
        assert_eq!(value(page, "missing"), 0.0);
    }
}
