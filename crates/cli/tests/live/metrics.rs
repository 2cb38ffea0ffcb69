//! The endpoints of `follow`: metrics, health and readiness.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use simnet::hostile;
use simnet::servers::{Fault, FaultSchedule, Server};

use crate::archives::archive_following;
use crate::jetstream::{self, with_jetstream};
use crate::{Running, follow, lines, quiet, seqs, served, with_commits};

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_series_of_a_firehose_are_served() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &["--metrics", "127.0.0.1:0"]));
    let address = address(&mut running);
    running.take(30);
    // A line is printed before its verdict is counted.
    let page = page_with(&address, "wireproof_verdicts_total{code=\"verified\"} 30");
    let relay = sim.url(Server::Relay(0));
    let expected = [
        format!("wireproof_last_seq{{host=\"{relay}\"}} "),
        format!("wireproof_connections_total{{host=\"{relay}\"}} 1"),
        format!("wireproof_reconnects_total{{host=\"{relay}\"}} 0"),
        "wireproof_lag_seconds ".to_owned(),
        "wireproof_events_total{kind=\"commit\"} 30".to_owned(),
        "wireproof_stage_seconds_bucket{le=\"+Inf\",stage=\"judge\"} ".to_owned(),
        "wireproof_identity_lookups_total{from=\"network\"} ".to_owned(),
        "wireproof_key_cache_total{result=\"hit\"} ".to_owned(),
        "wireproof_queue_events{state=\"under_way\"} ".to_owned(),
        "wireproof_dropped_total 0".to_owned(),
        "wireproof_lines_total 30".to_owned(),
    ];
    for series in expected {
        assert!(page.contains(&series), "{series} is not in\n{page}");
    }
    assert!(get(&address, "/").starts_with("HTTP/1.1 404"));
}

#[test]
fn the_sequence_numbers_that_a_host_skips_are_counted_from_the_cursor_on() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let relay = Server::Relay(0);
    let before = lines(follow(&sim, dir.path(), &["--events", "30", "--workers", "1"]));
    let cursor = seqs(&before).into_iter().max().unwrap();
    sim.faults().enable(relay, Fault::Close, FaultSchedule::ONCE.after(10));
    sim.write_commits(20);
    let mut running = Running::start(follow(&sim, dir.path(), &["--metrics", "127.0.0.1:0"]));
    let address = address(&mut running);
    running.take(20);
    // The numbers after the cursor belong to the 20 events, or were skipped.
    let skipped = sim.last_seq(relay) as u64 - cursor - 20;
    assert!(skipped > 0);
    let host = sim.url(relay);
    page_with(&address, &format!("wireproof_skipped_seqs_total{{host=\"{host}\"}} {skipped}\n"));
}

#[test]
fn invalid_records_of_commits_and_repositories_are_counted() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let set = hostile::CaseSet::generate(&hostile::Spec::default());
    let names =
        ["record/event-unsorted", "event/an-event-left-out", "record/unsorted-in-a-later-commit"];
    for name in names {
        sim.serve_case(set.cases().iter().find(|case| case.name == name).unwrap());
    }
    let args = ["--resync", "--metrics", "127.0.0.1:0"];
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    let address = address(&mut running);
    let page = page_with(&address, "wireproof_invalid_records_total 2");
    assert!(page.contains("wireproof_resyncs_total{result=\"done\"} 1"), "{page}");
}

#[test]
fn what_a_destination_has_not_acknowledged_is_counted() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let args = ["--ack-stdin", "--outbox-events", "15", "--metrics", "127.0.0.1:0"];
    let mut command = follow(&sim, dir.path(), &args);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let address = address(&mut running);
    let printed = running.take(15);
    page_with(&address, "wireproof_outbox_full 1");
    page_with(&address, "wireproof_undelivered_events{destination=\"stdout\"} 15");
    let id = printed[14]["id"].as_str().unwrap();
    writeln!(running.child.stdin.as_mut().unwrap(), "{id}").unwrap();
    let page = page_with(&address, "wireproof_undelivered_events{destination=\"stdout\"} 5");
    assert!(page.contains("wireproof_outbox_full 0"), "{page}");
}

#[test]
fn every_series_of_the_dashboard_is_served() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let to = "ws://127.0.0.1:0";
    let condition: &[&str] = if HAS_CONDITIONS { &["--where", "true"] } else { &[] };
    let args = [&["--to", to, "--metrics", "127.0.0.1:0"], condition].concat();
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    let address = address(&mut running);
    let page = page_with(&address, "wireproof_undelivered_events{destination=\"websocket\"} 20");
    let archive = dir.path().join("archive");
    let mut archiving =
        Running::start(archive_following(&sim, &archive, &["--metrics", "127.0.0.1:0"]));
    let address = self::address(&mut archiving);
    let page = page + &page_with(&address, "wireproof_archive_unsealed_events 20.0");
    assert_eq!(archiving.interrupt().1, Some(130));
    let mut serve = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    serve.args(["archive", "serve"]).arg(&archive);
    serve.args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let mut serving = Running::start(serve);
    let page = page + &page_with(&self::address(&mut serving), "wireproof_archive_clients 0.0");
    let state = tempfile::tempdir().unwrap();
    let mut serve = served::command(&sim, state.path());
    serve.args(["--metrics", "127.0.0.1:0"]);
    let mut serving = Running::start(serve);
    let page = page + &page_with(&self::address(&mut serving), "wireproof_serve_storage_waits 0.0");
    let served: BTreeSet<&str> = page.lines().filter_map(served_name).collect();
    let shown = dashboard_names();
    assert!(shown.len() > 30, "{shown:?}");
    let is_built = |name: &&String| HAS_CONDITIONS || !name.starts_with("wireproof_where");
    let missing: Vec<&String> = shown
        .iter()
        .filter(is_built)
        .filter(|name| !served.contains(without_suffix(name)))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are not on\n{page}");
}

/// Whether this build has `--where`.
const HAS_CONDITIONS: bool = cfg!(feature = "where");

/// The name in a line that declares a series.
fn served_name(line: &str) -> Option<&str> {
    line.strip_prefix("# TYPE ")?.split(' ').next()
}

/// The names of series in the expressions of the dashboard.
fn dashboard_names() -> BTreeSet<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana/wireproof.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let words = targets.flat_map(|target| {
        target["expr"].as_str().unwrap().split(|of: char| !of.is_ascii_alphanumeric() && of != '_')
    });
    words.filter(|word| word.starts_with("wireproof_")).map(str::to_owned).collect()
}

/// The name of a series as it is declared.
fn without_suffix(name: &str) -> &str {
    let suffix = ["_total", "_bucket"].into_iter().find_map(|suffix| name.strip_suffix(suffix));
    suffix.unwrap_or(name)
}

#[test]
fn a_jetstream_has_the_same_series_except_those_of_verification() {
    let (sim, dir) = (with_jetstream(30), tempfile::tempdir().unwrap());
    let jetstream = Server::Jetstream(0);
    sim.faults().enable(jetstream, Fault::UpgradeUnavailable, FaultSchedule::ONCE);
    let count = sim.sent_count(jetstream);
    let args = ["--jetstream", "--metrics", "127.0.0.1:0", "--backoff-first-ms", "10"];
    let mut running = Running::start(jetstream::follow(&sim, dir.path(), &args));
    let address = address(&mut running);
    let printed = running.take(count as usize);
    let host = sim.url(jetstream);
    let last = printed.last().unwrap()["seq"].as_u64().unwrap() as f64;
    // A line is printed before it is acked.
    let page = page_with(&address, &format!("wireproof_cursor{{host=\"{host}\"}} {last:?}"));
    let expected = [
        format!("wireproof_last_seq{{host=\"{host}\"}} {last:?}"),
        format!("wireproof_connections_total{{host=\"{host}\"}} 1"),
        format!("wireproof_reconnects_total{{host=\"{host}\"}} 0"),
        format!("wireproof_refusals_total{{host=\"{host}\",status=\"503\"}} 1"),
        "wireproof_lag_seconds ".to_owned(),
        format!("wireproof_events_total{{kind=\"commit\"}} {count}"),
        format!("wireproof_verdicts_total{{code=\"not-asked\"}} {count}"),
        "wireproof_notices_total{notice=\"connected\"} 1".to_owned(),
        "wireproof_queue_events{state=\"under_way\"} ".to_owned(),
        "wireproof_dropped_total 0".to_owned(),
        format!("wireproof_lines_total {count}"),
    ];
    for series in expected {
        assert!(page.contains(&series), "{series} is not in\n{page}");
    }
    // Without verification there are no series about it.
    assert!(!page.contains("key_lookups") && !page.contains("stage_seconds"), "{page}");
    assert_eq!(running.interrupt().1, Some(130));
    assert_eq!(sim.faults().unfired(), []);
}

#[test]
fn an_address_that_cannot_be_bound_is_exit_code_4_before_any_connection() {
    let (sim, dir) = (with_jetstream(1), tempfile::tempdir().unwrap());
    let args = ["--jetstream", "--metrics", "192.0.2.1:0"];
    let output = jetstream::follow(&sim, dir.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(sim.connection_count(), 0);
}

#[test]
fn a_run_is_ready_while_it_is_connected_and_healthy_in_any_case() {
    let (sim, dir) = (with_commits(5), tempfile::tempdir().unwrap());
    let relay = Server::Relay(0);
    sim.stop_server(relay);
    let mut running = Running::start(follow(&sim, dir.path(), &["--metrics", "127.0.0.1:0"]));
    let address = address(&mut running);
    answers(&address, "/health", "HTTP/1.1 200");
    answers(&address, "/ready", "HTTP/1.1 503");
    assert!(get(&address, "/ready").ends_with("not connected to a host\n"));
    sim.start_server(relay).unwrap();
    running.take(5);
    answers(&address, "/ready", "HTTP/1.1 200");
    sim.stop_server(relay);
    answers(&address, "/ready", "HTTP/1.1 503");
    answers(&address, "/health", "HTTP/1.1 200");
    assert!(get(&address, "/health/").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_run_is_not_ready_while_its_outbox_is_at_a_bound() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let args = ["--ack-stdin", "--outbox-events", "15", "--metrics", "127.0.0.1:0"];
    let mut command = follow(&sim, dir.path(), &args);
    command.stdin(Stdio::piped());
    let mut running = Running::start(command);
    let address = address(&mut running);
    let printed = running.take(15);
    let answer = answers(&address, "/ready", "HTTP/1.1 503");
    assert!(answer.contains("the outbox is at its maximum number of events"), "{answer}");
    let id = printed[14]["id"].as_str().unwrap();
    writeln!(running.child.stdin.as_mut().unwrap(), "{id}").unwrap();
    answers(&address, "/ready", "HTTP/1.1 200");
}

#[test]
fn a_jetstream_is_ready_while_it_is_connected() {
    let (sim, dir) = (with_jetstream(1), tempfile::tempdir().unwrap());
    let args = ["--jetstream", "--metrics", "127.0.0.1:0"];
    let mut running = Running::start(jetstream::follow(&sim, dir.path(), &args));
    let address = address(&mut running);
    answers(&address, "/ready", "HTTP/1.1 200");
    sim.stop_server(Server::Jetstream(0));
    answers(&address, "/ready", "HTTP/1.1 503");
}

#[test]
fn connections_that_send_nothing_leave_room_for_others() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &["--metrics", "127.0.0.1:0"]));
    let address = address(&mut running);
    let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(&address).unwrap()).collect();
    answers(&address, "/health", "HTTP/1.1 200");
    drop(silent);
}

/// The answer of an endpoint, once it begins so.
pub(crate) fn answers(address: &str, path: &str, begin: &str) -> String {
    let answers = std::iter::repeat_with(|| get(address, path)).take(ATTEMPTS);
    let found = answers.inspect(|_| sleep(PAUSE)).find(|answer| answer.starts_with(begin));
    found.unwrap_or_else(|| panic!("{path}: {}", get(address, path)))
}

/// The address in the message of the command.
pub(crate) fn address(running: &mut Running) -> String {
    let line = running.wait_for_stderr("/metrics");
    line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

/// The page, once it has this series.
pub(crate) fn page_with(address: &str, series: &str) -> String {
    let pages = std::iter::repeat_with(|| get(address, "/metrics")).take(ATTEMPTS);
    let page = pages.inspect(|_| sleep(PAUSE)).find(|page| page.contains(series));
    let page = page.unwrap_or_else(|| panic!("{series} is not on\n{}", get(address, "/metrics")));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    page
}

/// Number and interval of the attempts.
const ATTEMPTS: usize = 1_200;
const PAUSE: Duration = Duration::from_millis(50);
