//! A server with clients of every form, and events that are stored as a follower stores them.

mod consumers;
mod cursors;
mod directory;
mod history;
mod jetstreams;
mod page;
mod repositories;
mod slow;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use archive::{ArchivedEvent, JUDGE};
use atproto::event::{Account, Action, Commit, Decoder, Event, Identity, RepoOp, Sync};
use base::StopSignal;
use codec::Cid;
use codec::cbor::Value;
use codec::cid::Codec;
use futures_util::{SinkExt, StreamExt};
use simnet::firehose::{Corpus, Spec};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::event::kind_of;
use crate::log::NewEvent;
use crate::options::Options;
use crate::server::Server;
use crate::shared::Shared;

/// A server that runs.
struct Serving {
    shared: Arc<Shared>,
    address: std::net::SocketAddr,
    stop: StopSignal,
    run: JoinHandle<()>,
}

impl Serving {
    async fn start(folder: &std::path::Path, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::new("127.0.0.1:0".parse().unwrap(), folder.to_owned());
        options.max_clients_per_address = options.max_clients;
        change(&mut options);
        let server = bind(&options).await;
        let (shared, address, stop) = (server.shared(), server.address(), StopSignal::new());
        let of_run = stop.clone();
        let run = tokio::spawn(async move { server.run(of_run).await });
        Self { shared, address, stop, run }
    }

    /// Stores an event that arrived at this time, and returns its arrival.
    async fn store_at(&self, received: i64, event: &Event<'_>) -> i64 {
        self.store_frame(received, event.to_frame()).await
    }

    async fn store_frame(&self, received: i64, frame: Vec<u8>) -> i64 {
        let arrival = self.append(received, &frame).await.unwrap();
        let mut last = self.shared.log.stored();
        last.wait_for(|last| *last >= arrival).await.unwrap();
        arrival
    }

    /// Stores a frame; its arrival comes once it is stored.
    fn append(&self, received: i64, frame: &[u8]) -> oneshot::Receiver<i64> {
        self.append_verified(received, frame, None)
    }

    /// Stores a frame that was verified with a key.
    fn append_verified(
        &self,
        received: i64,
        frame: &[u8],
        key: Option<&str>,
    ) -> oneshot::Receiver<i64> {
        let kind = archive::kind(frame).to_owned();
        let (did, numbers) = match Decoder::new(Default::default()).decode(frame).unwrap() {
            Event::Commit(commit) => (commit.repo.to_owned(), commit.ops.len().max(1) as u16),
            Event::Sync(sync) => (sync.did.to_owned(), 1),
            Event::Identity(identity) => (identity.did.to_owned(), 1),
            Event::Account(account) => (account.did.to_owned(), 1),
            other => panic!("{other:?}"),
        };
        let archived = ArchivedEvent {
            did: Some(&did),
            arrival: 0,
            host: "https://relay.test",
            seq: Some(1),
            kind: &kind,
            received,
            verdict: "verified",
            key,
            judge: JUDGE,
            frame,
        };
        let (stored, is_stored) = oneshot::channel();
        let (kind, frame) = (kind_of(&kind).unwrap(), frame.to_vec().into());
        let new = NewEvent { kind, did: (&*did).into(), frame, numbers };
        self.shared.log.append(&archived, new, move |arrival| {
            // A test that does not wait has dropped the receiver.
            let _ = stored.send(arrival.unwrap());
        });
        is_stored
    }

    /// Stores the frames of a simulated stream, and returns their arrivals.
    async fn store_all(&self, frames: &[Vec<u8>]) -> Vec<i64> {
        let stored: Vec<_> = frames.iter().map(|frame| self.append(NOW, frame)).collect();
        let mut arrivals = Vec::new();
        for is_stored in stored {
            arrivals.push(is_stored.await.unwrap());
        }
        let (last, mut stored) = (arrivals.last().copied(), self.shared.log.stored());
        stored.wait_for(|stored| Some(*stored) >= last).await.unwrap();
        arrivals
    }

    async fn connect(&self, path: &str) -> Client {
        self.request(path, &[]).await.unwrap_or_else(|refused| panic!("{path}: {refused:?}"))
    }

    /// Connects; the status and the name of the error of a refusal.
    async fn request(
        &self,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Client, (u16, String)> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match client_async(request, stream).await {
            Ok((socket, response)) => {
                let protocol = response.headers().get("sec-websocket-protocol");
                let protocol = protocol.map(|value| value.to_str().unwrap().to_owned());
                Ok(Client { socket, protocol, read: VecDeque::new() })
            }
            Err(Error::Http(response)) => {
                let body = response.body().clone().unwrap_or_default();
                let body: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
                let name = body["error"].as_str().unwrap_or_default().to_owned();
                Err((response.status().as_u16(), name))
            }
            Err(other) => panic!("{other}"),
        }
    }

    async fn stop(self) {
        self.stop.request();
        self.run.await.unwrap();
    }
}

/// Binds a server once the threads of the one before have let go of its files, as they have at the end of a process.
async fn bind(options: &Options) -> Server {
    loop {
        match Server::bind(options.clone()).await {
            Err(error) if format!("{error:?}").contains("InUse") => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            bound => return bound.unwrap(),
        }
    }
}

/// A client of a stream.
struct Client {
    socket: WebSocketStream<TcpStream>,
    protocol: Option<String>,
    read: VecDeque<Message>,
}

impl Client {
    /// The next message; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.read.pop_front() {
                return Some(message);
            }
            match self.socket.next().await? {
                Ok(message @ (Message::Text(_) | Message::Binary(_))) => return Some(message),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    async fn frame(&mut self) -> Vec<u8> {
        match self.next().await.expect("the stream goes on") {
            Message::Binary(frame) => frame.to_vec(),
            other => panic!("{other:?}"),
        }
    }

    async fn text(&mut self) -> String {
        match self.next().await.expect("the stream goes on") {
            Message::Text(text) => text.as_str().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    async fn json(&mut self) -> serde_json::Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    async fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    /// The code of the close frame.
    async fn close_code(&mut self) -> Option<u16> {
        loop {
            match self.socket.next().await? {
                Ok(Message::Close(frame)) => return frame.map(|frame| frame.code.into()),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// The sequence number of a frame.
fn seq(frame: &[u8]) -> i64 {
    match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Commit(commit) => commit.seq,
        Event::Sync(sync) => sync.seq,
        Event::Identity(identity) => identity.seq,
        Event::Account(account) => account.seq,
        other => panic!("{other:?}"),
    }
}

/// The name of a message about the stream.
fn name(frame: &[u8]) -> String {
    match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Info(info) => info.name.to_owned(),
        Event::Error(error) => error.error.to_owned(),
        other => panic!("{other:?}"),
    }
}

fn identity(did: &str) -> Event<'_> {
    Event::Identity(Identity { seq: 7, did, time: "2026-07-01T00:00:00Z", handle: Some("a.test") })
}

/// Frames of signed commits.
fn commits() -> Vec<Vec<u8>> {
    Corpus::generate(&Spec::quick(), &mut |_, _| {}).frames().to_vec()
}

/// 2026-07-01T00:00:00Z.
const NOW: i64 = 1_782_864_000_000_000;

const FRAMES: &str = "/xrpc/com.atproto.sync.subscribeRepos";
const V1: &str = "/subscribe";
const V2: &str = "/xrpc/network.bsky.jetstream.subscribeEvents";

/// A path with parameters.
fn with(path: &str, parameters: &[(&str, String)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in parameters {
        query.append_pair(name, value);
    }
    format!("{path}?{}", query.finish())
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_every_form_get_every_event_from_memory_and_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let frames = commits();
    let ops: usize = frames.iter().map(|frame| ops_of(frame)).sum();
    // The second server has a few events in memory, and small segments.
    for memory_bytes in [64 << 20, 20_000] {
        let folder = folder.path().join(memory_bytes.to_string());
        let serving = Serving::start(&folder, |options| {
            options.window.memory_bytes = memory_bytes;
            options.window.max_bytes = 1 << 30;
        })
        .await;
        let mut live = serving.connect(FRAMES).await;
        let arrivals = serving.store_all(&frames).await;
        let seqs: Vec<i64> = arrivals.iter().map(|arrival| crate::seq::seq_of(*arrival)).collect();
        let mut late = serving.connect(&with(FRAMES, &[("cursor", "0".to_owned())])).await;
        for client in [&mut live, &mut late] {
            for (received, expected) in frames.iter().zip(&seqs) {
                let frame = client.frame().await;
                assert_eq!(seq(&frame), *expected);
                assert_eq!(atproto::event::renumbered(&frame, seq(received)).unwrap(), *received);
            }
        }
        let mut v1 = serving.connect(&with(V1, &[("cursor", "0".to_owned())])).await;
        let mut v2 = serving.connect(&with(V2, &[("cursor", "0".to_owned())])).await;
        let (mut last_v1, mut last_v2) = (0, 0);
        for _ in 0..ops {
            let (v1, v2) = (v1.json().await, v2.json().await);
            let (cursor, payload) = (v1["cursor"].as_i64().unwrap(), &v2["payload"]);
            assert!(cursor > last_v1 && payload["seq"].as_i64().unwrap() > last_v2);
            (last_v1, last_v2) = (cursor, payload["seq"].as_i64().unwrap());
            assert_eq!(cursor, last_v2);
            assert_eq!(v1["commit"]["record"], payload["record"]);
            assert_eq!(v1["commit"]["cid"], payload["cid"]);
        }
        serving.stop().await;
    }
}

fn ops_of(frame: &[u8]) -> usize {
    match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Commit(commit) => commit.ops.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn web_pages_connect_only_from_the_named_origins() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |options| {
        options.origins = vec!["https://app.example".to_owned()];
    })
    .await;
    let refused = serving.request(FRAMES, &[("origin", "https://other.example")]).await;
    assert_eq!(refused.map(drop).unwrap_err(), (403, "Forbidden".to_owned()));
    for headers in [&[("origin", "https://app.example")][..], &[]] {
        assert!(serving.request(FRAMES, headers).await.is_ok());
    }
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_a_number_of_clients_and_other_paths_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let serving =
        Serving::start(folder.path(), |options| options.max_clients_per_address = 2).await;
    let (first, second) = (serving.connect(FRAMES).await, serving.connect(V1).await);
    let refused = serving.request(V2, &[]).await.map(drop).unwrap_err();
    assert_eq!(refused, (503, "NotEnoughResources".to_owned()));
    let refused = serving.request("/xrpc/com.example.stream", &[]).await.map(drop).unwrap_err();
    assert_eq!(refused, (404, "MethodNotImplemented".to_owned()));
    drop((first, second));
    // The places are free when the server has seen the ends.
    while serving.request(V2, &[]).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subprotocol_is_chosen_where_the_client_offers_it() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    for (path, offer, chosen) in [
        (FRAMES, "xrpc.v1.json, xrpc.v0.cbor", Some("xrpc.v0.cbor")),
        (V2, "xrpc.v1.json", Some("xrpc.v1.json")),
        (V1, "", None),
        (V2, "", None),
    ] {
        let headers = [("sec-websocket-protocol", offer)];
        let headers = if offer.is_empty() { &[][..] } else { &headers };
        let client = serving.request(path, headers).await.unwrap();
        assert_eq!(client.protocol.as_deref(), chosen, "{path} {offer}");
    }
    serving.stop().await;
}
