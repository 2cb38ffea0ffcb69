//! Cursors outside of the window of `wireproof serve`, and requests that it refuses by name: what clients of other projects make
//! of them, and the answers to handshakes by hand.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Error;
use wireproof_interop::kit;
use wireproof_interop::reader::{Reader, StreamOptions};

use crate::served::Served;

#[test]
fn clients_of_frames_are_told_that_a_cursor_is_outside_of_the_window() {
    let kit = kit!(Relay);
    let served = small_window();
    let plc = served.sim.url(simnet::servers::Server::Plc);
    let reader = Reader::indigo(&kit, &served.url(), &plc, 1);
    assert_eq!(reader.next()["name"], "OutdatedCursor");
    assert_eq!(reader.next()["kind"], "commit");
    let future = Reader::indigo(&kit, &served.url(), &plc, i64::MAX - 1);
    assert_eq!(future.next()["name"], "FutureCursor");
    assert_eq!(future.next_or_end(), None);
}

#[test]
fn clients_of_version_1_begin_with_the_first_event_of_the_window() {
    let kit = kit!(JetstreamClient, Readers);
    let served = small_window();
    for compress in [false, true] {
        let options = StreamOptions { compress, ..StreamOptions::from(1) };
        let first = Reader::jetstream_client(&kit, &served.url(), &options).next();
        assert_eq!(first["kind"], "commit");
        // A time, before the window.
        let options = StreamOptions { cursor: OLD_TIME, ..options };
        assert_eq!(Reader::jetstream_client(&kit, &served.url(), &options).next(), first);
        assert_eq!(Reader::skyware_jetstream(&kit, &served.url(), &options).next(), first);
        assert_eq!(Reader::atcute_jetstream(&kit, &served.url(), &options).next(), first);
    }
}

#[test]
fn clients_of_version_2_are_told_that_a_cursor_is_before_the_window() {
    let kit = kit!(SdkPython, SdkRust);
    let served = small_window();
    for compress in [false, true] {
        let options = StreamOptions { compress, ..StreamOptions::from(1) };
        let python = Reader::atproto_jetstream_of_python(&kit, &served.url(), &options);
        assert_eq!(python.next()["name"], "CursorTooOld");
        assert_eq!(python.next_or_end(), None);
        let rust = Reader::sdk_of_rust(&kit, "shrike-jetstream", &served.url(), &options);
        assert_eq!(rust.next()["name"], "CursorTooOld");
        assert_eq!(rust.next_or_end(), None);
        // A time is not refused: the stream begins with the first event of the window.
        let options = StreamOptions { cursor: OLD_TIME, ..options };
        let python = Reader::atproto_jetstream_of_python(&kit, &served.url(), &options);
        assert_eq!(python.next()["name"], "OutdatedCursor");
        assert_eq!(python.next()["kind"], "commit");
    }
}

#[tokio::test]
async fn a_handshake_that_breaks_a_rule_of_version_2_is_refused_by_name() {
    let served = Served::start();
    for (query, name) in [
        ("zstdDictionary=7", "UnknownZstdDictionary"),
        ("zstdDictionary=x", "InvalidRequest"),
        ("kinds=identity&collections=app.bsky.feed.post", "InvalidRequest"),
        ("kinds=post", "InvalidRequest"),
        ("collections=post", "InvalidRequest"),
        ("dids=alice", "InvalidRequest"),
        ("compress=true", "InvalidRequest"),
        ("wantedDids=did:web:a.test", "InvalidRequest"),
    ] {
        let url = format!("{}/xrpc/network.bsky.jetstream.subscribeEvents?{query}", served.url());
        let (status, body) = refusal(&url).await;
        assert_eq!((status, &body["error"]), (400, &name.into()), "{query}");
    }
    let dictionary =
        |id: &str| served.get(&format!("/xrpc/network.bsky.jetstream.getZstdDictionary{id}"));
    assert!(dictionary("").starts_with("HTTP/1.1 200 OK"));
    let unknown = dictionary("?id=7");
    assert!(
        unknown.starts_with("HTTP/1.1 404") && unknown.contains("DictionaryNotFound"),
        "{unknown}"
    );
}

/// The status and the body of the answer to a handshake.
async fn refusal(url: &str) -> (u16, Value) {
    match connect_async(url).await {
        Err(Error::Http(response)) => {
            let body = response.body().as_deref().expect("a body");
            (response.status().as_u16(), serde_json::from_slice(body).expect("JSON"))
        }
        other => panic!("{url} is not refused: {other:?}"),
    }
}

/// A server whose first events have been deleted, and whose others are in files.
fn small_window() -> Served {
    let mut served = Served::start_with(&["--window-mib", "1"]);
    let deadline = Instant::now() + TIMEOUT;
    let query = "/xrpc/network.bsky.jetstream.subscribeEvents?cursor=1";
    while !served.get(query).contains("CursorTooOld") {
        assert!(Instant::now() < deadline, "no event is deleted");
        served.sim.write_commits(100);
        sleep(Duration::from_millis(100));
    }
    served.kill_and_restart();
    served
}

/// In microseconds since 1970, in 2025.
const OLD_TIME: i64 = 1_735_689_600_000_000;
const TIMEOUT: Duration = Duration::from_secs(120);
