//! Minimal clients, and the keys of the accounts.

use std::time::Duration;

use crypto::PublicKey;
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use simnet::servers::{AccountInfo, Server, Simulation, Spec};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// A small network.
pub(crate) fn sim(change: impl FnOnce(&mut Spec)) -> Simulation {
    let mut spec = Spec { accounts: 6, records: 20, ..Spec::default() };
    change(&mut spec);
    Simulation::start(spec).expect("ports for a small network")
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("JSON")
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).expect("UTF-8")
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().expect("text")
    }
}

/// Asks a server, without following redirects.
pub(crate) async fn get(sim: &Simulation, server: Server, path: &str) -> Answer {
    try_get(sim, server, path, &[]).await.expect("an answer")
}

/// The same, with headers, where the answer may break off.
pub(crate) async fn try_get(
    sim: &Simulation,
    server: Server,
    path: &str,
    headers: &[(&str, &str)],
) -> reqwest::Result<Answer> {
    let redirect = reqwest::redirect::Policy::none();
    let client = reqwest::Client::builder().redirect(redirect).no_proxy().build()?;
    let request = client.get(format!("{}{path}", sim.url(server)));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    let response = request.timeout(PATIENCE).send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Answer { status, headers, bytes: response.bytes().await?.to_vec() })
}

/// The name of the XRPC method's path.
pub(crate) async fn xrpc(sim: &Simulation, server: Server, method_and_query: &str) -> Answer {
    get(sim, server, &format!("/xrpc/com.atproto.sync.{method_and_query}")).await
}

/// A reader of a stream.
pub(crate) struct Reader(WebSocketStream<MaybeTlsStream<tokio::net::TcpStream>>);

impl Reader {
    /// Follows `subscribeRepos`.
    pub(crate) async fn follow(sim: &Simulation, server: Server, cursor: Option<i64>) -> Self {
        Self::try_follow(sim, server, cursor).await.expect("an upgrade")
    }

    pub(crate) async fn try_follow(
        sim: &Simulation,
        server: Server,
        cursor: Option<i64>,
    ) -> Result<Self, Error> {
        let query = cursor.map_or(String::new(), |cursor| format!("?cursor={cursor}"));
        Self::connect(sim, server, &format!("/xrpc/com.atproto.sync.subscribeRepos{query}")).await
    }

    pub(crate) async fn connect(
        sim: &Simulation,
        server: Server,
        path: &str,
    ) -> Result<Self, Error> {
        let url = format!("ws://127.0.0.1:{}{path}", sim.port(server));
        let (socket, _) = connect_async(url.into_client_request()?).await?;
        Ok(Self(socket))
    }

    /// The next message that is not about the connection; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<Message, Error>> {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.0.next()).await;
            match next.expect("a message, or an end") {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Close(_))) | None => return None,
                other => return other,
            }
        }
    }

    /// The next message, whatever it is about.
    pub(crate) async fn any(&mut self) -> Message {
        let next = tokio::time::timeout(PATIENCE, self.0.next()).await;
        next.expect("a message").expect("no end yet").expect("no error")
    }

    /// The next `count` binary messages.
    pub(crate) async fn frames(&mut self, count: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while frames.len() < count {
            frames.push(
                self.next().await.expect("no end yet").expect("no error").into_data().to_vec(),
            );
        }
        frames
    }

    /// The next `count` JSON messages.
    pub(crate) async fn documents(&mut self, count: usize) -> Vec<Value> {
        let mut documents = Vec::new();
        while documents.len() < count {
            let message = self.next().await.expect("no end yet").expect("no error");
            documents.push(serde_json::from_str(message.to_text().expect("text")).expect("JSON"));
        }
        documents
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.expect("a reader may speak");
    }

    /// Whether no message is received within the timeout.
    pub(crate) async fn hears_nothing(&mut self) -> bool {
        tokio::time::timeout(A_WHILE, self.0.next()).await.is_err()
    }

    /// All messages until the timeout or the end.
    pub(crate) async fn messages(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Ok(Some(Ok(message))) = tokio::time::timeout(A_WHILE, self.0.next()).await {
            messages.push(message);
        }
        messages
    }
}

/// The key of an account.
pub(crate) fn key(account: &AccountInfo) -> PublicKey {
    PublicKey::from_did_key(&account.signing_key).expect("a key of the protocol")
}

/// The timeout for expected messages.
const PATIENCE: Duration = Duration::from_secs(30);

/// The timeout for messages that must not be sent.
const A_WHILE: Duration = Duration::from_millis(300);
