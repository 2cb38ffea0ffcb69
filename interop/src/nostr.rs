//! The relay of rust-nostr, with the events of a file.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::program::{Kit, Program, free_port};

/// A running relay of rust-nostr.
#[derive(Debug)]
pub struct NostrRelay {
    port: u16,
    _program: Program,
}

/// The kind of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayKind {
    /// Pages of 500 events, and no other limit.
    Open,
    /// It requires authentication (NIP-42).
    Auth,
    /// It allows two subscriptions of a connection, and refuses the third request.
    Busy,
}

impl NostrRelay {
    /// Starts a relay with the events of a file of JSON lines.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, events: &Path, kind: RelayKind) -> Self {
        let port = free_port();
        let mut relay = Command::new(kit.path("nostr/nostr-relay"));
        relay.arg(port.to_string()).arg(events);
        match kind {
            RelayKind::Open => {}
            RelayKind::Auth => drop(relay.arg("auth")),
            RelayKind::Busy => drop(relay.arg("busy")),
        }
        let mut program = Program::start("nostr-relay", &relay, &kit.log("nostr-relay"));
        let accepts = async || TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        program.wait_until(accepts).await;
        Self { port, _program: program }
    }

    /// The URL of the relay.
    pub fn url(&self) -> String {
        format!("ws://127.0.0.1:{}/", self.port)
    }

    /// Publishes events, as JSON, and returns once the relay has accepted all of them.
    ///
    /// # Panics
    /// If it refuses one, or does not answer.
    pub async fn publish(&self, events: &[&str]) {
        let mut socket = self.connect().await;
        for event in events {
            let message = Message::text(format!(r#"["EVENT",{event}]"#));
            socket.send(message).await.expect("the relay receives an event");
            let answer = next(&mut socket).await;
            assert!(answer[0] == "OK" && answer[2] == true, "{answer}: {event}");
        }
    }

    /// The ids of all stored events that match a filter, in answer to one request.
    ///
    /// # Panics
    /// If the relay does not answer, or sends an event twice.
    pub async fn ids(&self, filter: &Value) -> BTreeSet<String> {
        let mut socket = self.connect().await;
        let mut filter = filter.clone();
        filter["limit"] = json!(1_000_000);
        let request = Message::text(json!(["REQ", "all", filter]).to_string());
        socket.send(request).await.expect("the relay receives a request");
        let mut ids = BTreeSet::new();
        loop {
            let message = next(&mut socket).await;
            match message[0].as_str() {
                Some("EVENT") => {
                    let id = message[2]["id"].as_str().expect("an id").to_owned();
                    assert!(ids.insert(id), "an event comes twice: {message}");
                }
                Some("EOSE") => return ids,
                _ => panic!("{message}"),
            }
        }
    }

    async fn connect(&self) -> Socket {
        tokio_tungstenite::connect_async(self.url()).await.expect("a connection").0
    }
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// The next message of the relay.
async fn next(socket: &mut Socket) -> Value {
    let message = timeout(ANSWER_TIMEOUT, socket.next()).await.expect("an answer in time");
    let message = message.expect("a message").expect("an open connection");
    serde_json::from_str(message.to_text().expect("text")).expect("JSON")
}

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
