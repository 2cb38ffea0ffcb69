//! What does Prometheus get?

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use simnet::servers::{Fault, FaultSchedule, Server};

use crate::jetstreams::{self, with_jetstream};
use crate::running::{Running, follow, with_commits};

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn the_series_that_operators_watch_are_there() {
    let (sim, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&sim, dir.path(), &["--metrics", "127.0.0.1:0"]));
    let address = address(&mut running);
    running.take(30);
    // A line comes before its verdict is counted, and the line of a batch before those behind it.
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
fn the_series_of_a_jetstream_are_the_same_as_far_as_it_tells_anything() {
    let (sim, dir) = (with_jetstream(30), tempfile::tempdir().unwrap());
    let jetstream = Server::Jetstream(0);
    sim.faults().enable(jetstream, Fault::UpgradeUnavailable, FaultSchedule::ONCE);
    let count = sim.sent_count(jetstream);
    let args = ["--jetstream", "--metrics", "127.0.0.1:0", "--backoff-first-ms", "10"];
    let mut running = Running::start(jetstreams::follow(&sim, dir.path(), &args));
    let address = address(&mut running);
    let printed = running.take(count as usize);
    let host = sim.url(jetstream);
    let last = printed.last().unwrap()["seq"].as_u64().unwrap() as f64;
    // A line is out before it is acknowledged.
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
    // What nobody judges has no series of judges.
    assert!(!page.contains("key_lookups") && !page.contains("stage_seconds"), "{page}");
    assert_eq!(running.interrupt().1, Some(130));
    assert_eq!(sim.faults().unfired(), []);
}

#[test]
fn an_address_that_is_not_ours_is_refused_for_a_jetstream_too() {
    let (sim, dir) = (with_jetstream(1), tempfile::tempdir().unwrap());
    let args = ["--jetstream", "--metrics", "192.0.2.1:0"];
    let output = jetstreams::follow(&sim, dir.path(), &args).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(sim.connection_count(), 0);
}

/// Where a command says that its metrics are.
fn address(running: &mut Running) -> String {
    let line = running.told("/metrics");
    line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
}

/// The page, when this is on it.
fn page_with(address: &str, series: &str) -> String {
    let pages = std::iter::repeat_with(|| get(address, "/metrics")).take(PATIENCE);
    let page = pages.inspect(|_| sleep(PAUSE)).find(|page| page.contains(series));
    let page = page.unwrap_or_else(|| panic!("{series} is not on\n{}", get(address, "/metrics")));
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    page
}

/// How often, and how long apart, the page is asked for what is not yet on it.
const PATIENCE: usize = 1_200;
const PAUSE: Duration = Duration::from_millis(50);
