//! `wireproof serve` passes on every verified commit, even those that a repository has already.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::Value;
use simnet::servers::{EventKind, SentEvent};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::served::{RELAY, Served};

#[tokio::test(flavor = "multi_thread")]
async fn every_commit_of_an_account_that_was_reactivated_is_served_before_and_after_a_kill() {
    // Its programs are all ours.
    let mut served = Served::start();
    served.change();
    let did = served.sim.account(2).did;
    let sent = served.sim.sent_events(RELAY);
    let is_commit =
        |sent: &&SentEvent| sent.subject.did == did && sent.subject.kind == EventKind::Commit;
    let operations =
        |sent: &SentEvent| vec![sent.subject.rev.clone(); sent.subject.jetstream_events as usize];
    let expected: Vec<String> = sent.iter().filter(is_commit).flat_map(operations).collect();
    assert_eq!(served_revs(&served, &did, expected.len()).await, expected);
    served.kill_and_restart();
    assert_eq!(served_revs(&served, &did, expected.len()).await, expected);
}

/// The revisions of the first operations of an account on a Jetstream.
async fn served_revs(served: &Served, did: &str, count: usize) -> Vec<String> {
    let url = format!("{}/subscribe?cursor=1&wantedDids={did}", served.url());
    let (mut socket, _) = connect_async(url).await.expect("a connection");
    let mut revs = Vec::new();
    while revs.len() < count {
        let event = timeout(TIMEOUT, next_event(&mut socket)).await;
        let event = event.unwrap_or_else(|_| panic!("{} of {count} commits arrive", revs.len()));
        revs.extend(event["commit"]["rev"].as_str().map(str::to_owned));
    }
    revs
}

/// The next event. Pings are none.
async fn next_event(socket: &mut WebSocketStream<MaybeTlsStream<TcpStream>>) -> Value {
    loop {
        let message = socket.next().await.expect("a message").expect("an open connection");
        if let Message::Text(text) = message {
            return serde_json::from_str(&text).expect("JSON");
        }
    }
}

const TIMEOUT: Duration = Duration::from_secs(60);
