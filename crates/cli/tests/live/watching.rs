//! What does Prometheus get?

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

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
    let (world, dir) = (with_commits(30), tempfile::tempdir().unwrap());
    let mut running = Running::start(follow(&world, dir.path(), &["--metrics", "127.0.0.1:0"]));
    let line = running.told("/metrics");
    let address = line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    running.take(30);
    // A line comes before its verdict is counted, and the line of a batch before those behind it.
    let verified = "wireproof_verdicts_total{code=\"verified\"} 30";
    let page = std::iter::repeat_with(|| get(&address, "/metrics")).take(PATIENCE);
    let page = page.inspect(|_| sleep(PAUSE)).find(|page| page.contains(verified));
    let page = page.expect("every verdict is counted in the end");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let relay = world.url(simnet::servers::Server::Relay(0));
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

/// How often, and how long apart, the page is asked for what is not yet on it.
const PATIENCE: usize = 1_200;
const PAUSE: Duration = Duration::from_millis(50);
