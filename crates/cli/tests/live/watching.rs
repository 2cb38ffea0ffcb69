//! What does Prometheus get?

use std::io::{Read, Write};
use std::net::TcpStream;

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
    let page = get(&address, "/metrics");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let relay = world.url(simnet::servers::Server::Relay(0));
    let expected = [
        format!("wireproof_last_seq{{host=\"{relay}\"}} "),
        format!("wireproof_connections_total{{host=\"{relay}\"}} 1"),
        format!("wireproof_reconnects_total{{host=\"{relay}\"}} 0"),
        "wireproof_lag_seconds ".to_owned(),
        "wireproof_events_total{kind=\"commit\"} 30".to_owned(),
        "wireproof_verdicts_total{code=\"verified\"} 30".to_owned(),
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
