//! Consumers that acknowledge events, on the port of the streams.

use std::collections::BTreeSet;
use std::path::Path;

use delivery::WebSocketOptions;
use net::http_server::AccessToken;
use serde_json::{Value, json};

use super::*;
use crate::consumers::Consumers;

const TOKEN: &str = "a-token-of-these-tests";

async fn serving(folder: &Path, names: &[&str]) -> Serving {
    serving_with(folder, names, |_| ()).await
}

async fn serving_with(
    folder: &Path,
    names: &[&str],
    change: impl FnOnce(&mut Consumers),
) -> Serving {
    Serving::start(folder, |options| {
        let mut of_clients = WebSocketOptions::default();
        of_clients.token = Some(AccessToken::new(TOKEN).unwrap());
        of_clients.takeover_timeout = Duration::from_secs(20);
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let mut consumers = Consumers::new(names, of_clients);
        change(&mut consumers);
        options.consumers = Some(consumers);
    })
    .await
}

impl Serving {
    async fn consumer(&self, path: &str) -> Client {
        let token = format!("Bearer {TOKEN}");
        let connected = self.request(path, &[("authorization", &token)]).await;
        connected.unwrap_or_else(|refused| panic!("{path}: {refused:?}"))
    }
}

/// Acknowledges as many events of tap, and returns their paths or kinds.
async fn acknowledge(client: &mut Client, count: usize) -> Vec<String> {
    let mut received = Vec::new();
    while received.len() < count {
        let event = client.json().await;
        received.push(path_of(&event));
        client.send(&json!({ "type": "ack", "id": event["id"] }).to_string()).await;
    }
    received
}

fn path_of(event: &Value) -> String {
    let of = |name: &str| event["record"][name].as_str().unwrap_or_default().to_owned();
    format!("{}/{}/{} {}", of("did"), of("collection"), of("rkey"), of("rev"))
}

fn paths(frames: &[Vec<u8>]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for frame in frames {
        let mut decoder = Decoder::new(Default::default());
        let Event::Commit(commit) = decoder.decode(frame).unwrap() else { panic!("a commit") };
        for op in commit.ops {
            paths.insert(format!("{}/{} {}", commit.repo, op.path, commit.rev));
        }
    }
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_tap_gets_every_record_once_it_acknowledges_also_over_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let frames = commits();
    let (first, second) = frames.split_at(frames.len() / 2);
    let server = serving(folder.path(), &["tap"]).await;
    server.store_all(first).await;
    let mut client = server.consumer("/channel").await;
    let expected = paths(first);
    let mut received = acknowledge(&mut client, expected.len() / 2).await;
    drop(client);
    server.stop().await;
    let server = serving(folder.path(), &["tap"]).await;
    server.store_all(second).await;
    let mut client = server.consumer("/channel").await;
    let all: BTreeSet<String> = expected.union(&paths(second)).cloned().collect();
    let mut distinct: BTreeSet<String> = received.iter().cloned().collect();
    while distinct.len() < all.len() {
        let more = acknowledge(&mut client, 1).await;
        distinct.extend(more.iter().cloned());
        received.extend(more);
    }
    assert_eq!(distinct, all);
    // Acknowledgements of the last moment may be lost with the connection.
    assert!(
        received.len() <= all.len() + expected.len() / 2,
        "{} of {}",
        received.len(),
        all.len()
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_lines_gets_the_lines_of_proved_events() {
    let folder = tempfile::tempdir().unwrap();
    let frames = commits();
    let server = serving(folder.path(), &["lines"]).await;
    let mut client = server.consumer("/lines?consumer=lines").await;
    server.store_all(&frames).await;
    let mut revs = BTreeSet::new();
    while revs.len() < frames.len() {
        let line = client.json().await;
        let of = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        assert_eq!((of("verdict").as_str(), &line["live"]), ("verified", &json!(true)), "{line}");
        revs.insert((of("did"), of("rev")));
        client.send(&of("id")).await;
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_that_acknowledges_nothing_delays_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let frames = commits();
    let server = serving(folder.path(), &["silent", "other"]).await;
    let mut silent = server.consumer("/lines?consumer=silent").await;
    let mut reading = server.connect(&format!("{FRAMES}?cursor=0")).await;
    server.store_all(&frames).await;
    silent.text().await;
    for _ in 0..frames.len() {
        reading.frame().await;
    }
    let mut other = server.consumer("/channel?consumer=other").await;
    assert_eq!(acknowledge(&mut other, paths(&frames).len()).await.len(), paths(&frames).len());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_the_outbox_is_full_loses_no_event() {
    let folder = tempfile::tempdir().unwrap();
    let frames = commits();
    let start =
        async || serving_with(folder.path(), &["tap"], |consumers| consumers.max_events = 10).await;
    let server = start().await;
    server.store_all(&frames).await;
    let is_full = || {
        let status = server.shared.consumers.as_ref().unwrap().status();
        status.reached.is_some()
    };
    while !is_full() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.stop().await;
    let server = start().await;
    let mut client = server.consumer("/channel").await;
    let expected = paths(&frames);
    let received = acknowledge(&mut client, expected.len()).await;
    assert_eq!(received.into_iter().collect::<BTreeSet<_>>(), expected);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn consumers_need_a_token_and_a_name_that_the_server_has() {
    let folder = tempfile::tempdir().unwrap();
    let server = serving(folder.path(), &["a", "b"]).await;
    let token = format!("Bearer {TOKEN}");
    for (path, token, status) in [
        ("/channel?consumer=a", "", 401),
        ("/channel?consumer=a", "Bearer another-token-of-tests", 401),
        ("/channel?consumer=c", &*token, 404),
        ("/channel", &*token, 400),
    ] {
        let refused = server.request(path, &[("authorization", token)]).await;
        assert_eq!(refused.err().map(|(status, _)| status), Some(status), "{path} {token}");
    }
    server.stop().await;
    // Without consumers there is no such path.
    let without = tempfile::tempdir().unwrap();
    let server = Serving::start(without.path(), |_| ()).await;
    let refused = server.request("/channel", &[]).await;
    assert_eq!(refused.err().map(|(status, _)| status), Some(404));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_goes_on_with_events_that_the_window_has_deleted_and_the_archive_has() {
    let folder = tempfile::tempdir().unwrap();
    let frames = commits();
    let start = async |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        Serving::start(&folder.path().join("state"), |options| {
            options.window.max_bytes = 200_000;
            options.window.memory_bytes = 1;
            let address = folder.path().join("archive").display().to_string();
            let archive = archive::Archive::open(&address).unwrap();
            let servers = Arc::new(archive::NoConfirmation);
            options.archive = Some(crate::history::ServedArchive { archive, servers });
            let of_clients = WebSocketOptions::default();
            options.consumers = (!names.is_empty()).then(|| Consumers::new(names, of_clients));
        })
        .await
    };
    start(&["tap"]).await.stop().await;
    let server = start(&[]).await;
    let mut stored = Vec::new();
    for part in frames.chunks(8) {
        server.store_all(part).await;
        stored.extend_from_slice(part);
    }
    while server.shared.log.wal.floor() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    server.stop().await;
    let server = start(&["tap"]).await;
    let mut client = server.connect("/channel").await;
    let expected = paths(&stored);
    let received = acknowledge(&mut client, expected.len()).await;
    assert_eq!(received.into_iter().collect::<BTreeSet<_>>(), expected);
    server.stop().await;
}
