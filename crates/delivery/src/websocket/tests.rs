//! The server over real sockets: events, acknowledgements and refusals.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::*;
use crate::event::{EventId, NewEvent};
use crate::outbox::StartAt;
use crate::outbox_options::Options;

/// A server with an outbox of its own.
struct Server {
    outbox: Outbox,
    address: SocketAddr,
    metrics: Arc<WebSocketMetrics>,
    stop: StopSignal,
    running: JoinHandle<Result<(), OutboxError>>,
}

impl Server {
    fn start(folder: &Path, consumers: &[&str], options: WebSocketOptions) -> Self {
        let outbox = Outbox::open(&folder.join("outbox.sqlite"), Options::default()).unwrap();
        for name in consumers {
            outbox.register(name, StartAt::Oldest).unwrap();
        }
        let address = (std::net::Ipv4Addr::LOCALHOST, 0).into();
        let consumers = WebSocketConsumers::new(outbox.clone(), consumers, options);
        let server = WebSocketServer::bind(consumers, address).unwrap();
        let address = server.address();
        let metrics = server.metrics();
        let stop = StopSignal::new();
        let running = tokio::spawn(server.run(stop.clone()));
        Self { outbox, address, metrics, stop, running }
    }

    async fn stop(self) {
        self.stop.request();
        self.running.await.unwrap().unwrap();
        tokio::task::spawn_blocking(move || drop(self.outbox)).await.unwrap();
    }

    fn url(&self, path: &str) -> String {
        format!("ws://{}{path}", self.address)
    }

    async fn connect(&self, path: &str) -> Client {
        Client(connect_async(self.url(path)).await.unwrap().0)
    }

    /// The status with which a request is refused.
    async fn refusal(&self, request: impl IntoClientRequest + Unpin) -> u16 {
        match connect_async(request).await {
            Err(Error::Http(response)) => response.status().as_u16(),
            other => panic!("{other:?}"),
        }
    }

    fn request(&self, path: &str, name: &'static str, value: &str) -> Request {
        let mut request = self.url(path).into_client_request().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    }

    async fn append(&self, events: Vec<NewEvent>) {
        let outbox = self.outbox.clone();
        tokio::task::spawn_blocking(move || outbox.append_all(events)).await.unwrap().unwrap();
    }

    fn behind(&self, consumer: &str) -> u64 {
        let consumers = self.outbox.status().consumers;
        consumers.iter().find(|of| of.name == consumer).unwrap().behind
    }

    async fn wait_for_delivery(&self, consumer: &str) {
        while self.behind(consumer) > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

struct Client(WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Client {
    async fn text(&mut self) -> String {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// The number of the next event.
    async fn number(&mut self) -> u64 {
        let line: Value = serde_json::from_str(&self.text().await).unwrap();
        line["n"].as_u64().unwrap()
    }

    /// Whether no message is there; a pong that was asked for after it has passed all of them.
    async fn is_quiet(&mut self) -> bool {
        self.0.send(Message::Ping(vec![7].into())).await.unwrap();
        loop {
            match self.0.next().await.unwrap().unwrap() {
                Message::Pong(bytes) if *bytes == [7] => return true,
                Message::Text(_) => return false,
                _ => {}
            }
        }
    }

    async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// The code with which the server ends the connection; 1006 without a close frame.
    async fn end(&mut self) -> u16 {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Close(frame))) => return frame.unwrap().code.into(),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return 1006,
            }
        }
    }
}

fn id(account: &str, number: u64) -> String {
    format!("did:web:{account}.test/{number}")
}

fn event(account: &str, number: u64) -> NewEvent {
    let did = format!("did:web:{account}.test");
    let payload = json!({
        "v": 1, "id": id(account, number), "live": true, "host": "https://a", "code": "verified", "n": number, "kind": "commit", "did": did,
        "rev": number.to_string(), "verdict": "verified",
        "ops": [
            {"action": "create", "collection": "a.b.c", "rkey": "1", "cid": "bafy", "record": {"n": number}},
            {"action": "delete", "collection": "a.b.c", "rkey": "2"},
        ],
    });
    NewEvent::new(EventId::of_commit(&did, &number.to_string()), &did, payload.to_string()).unwrap()
}

fn options() -> WebSocketOptions {
    WebSocketOptions { takeover_timeout: Duration::from_millis(200), ..Default::default() }
}

#[tokio::test]
async fn an_account_is_delivered_in_order_and_others_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["one"], options());
    server.append(vec![event("a", 1), event("a", 2), event("b", 3)]).await;
    let mut client = server.connect("/lines").await;
    assert_eq!((client.number().await, client.number().await), (1, 3));
    client.send(&id("b", 3)).await;
    client.send(&id("a", 2)).await;
    assert!(client.is_quiet().await, "2 was not sent, so it is not acknowledged");
    client.send(&id("a", 1)).await;
    assert_eq!(client.number().await, 2);
    assert_eq!(server.behind("one"), 1);
    client.send(&id("a", 2)).await;
    server.wait_for_delivery("one").await;
    assert_eq!(server.metrics.ignored.load(Relaxed), 1);
    server.stop().await;
}

#[tokio::test]
async fn a_channel_of_tap_has_an_event_for_each_operation_and_completes_a_line_with_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["one"], options());
    let info = json!({"v": 1, "host": "https://a", "kind": "info", "name": "a", "verdict": "unchecked", "code": "unchecked"});
    let info = NewEvent::new(EventId::of_message("", "https://a", 1), "", info.to_string());
    server.append(vec![info.unwrap(), event("a", 1), event("a", 2)]).await;
    let mut client = server.connect("/channel").await;
    let mut ids = Vec::new();
    for (number, action) in [(1, "create"), (1, "delete"), (2, "create"), (2, "delete")] {
        let event: Value = serde_json::from_str(&client.text().await).unwrap();
        assert_eq!(
            (&event["type"], &event["record"]["action"]),
            (&json!("record"), &json!(action))
        );
        assert_eq!(event["record"]["rev"], number.to_string());
        assert!(client.is_quiet().await);
        assert_eq!(server.behind("one"), 3 - number);
        let ack = json!({"type": "ack", "id": event["id"]});
        client.send(&ack.to_string()).await;
        ids.push(event["id"].as_u64().unwrap());
    }
    assert_eq!(ids, [2 << 12, (2 << 12) + 1, 3 << 12, (3 << 12) + 1]);
    server.wait_for_delivery("one").await;
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_acknowledged_is_sent_to_the_next_connection_and_after_a_restart_with_the_same_ids()
 {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["one"], options());
    server.append((1..=6).map(|number| event(&format!("a{number}"), number)).collect()).await;
    let mut client = server.connect("/lines?consumer=one").await;
    let mut first = Vec::new();
    for _ in 0..6 {
        first.push(client.text().await);
    }
    client.send(&format!("{}\n{}", id("a2", 2), id("a4", 4))).await;
    assert!(client.is_quiet().await);
    drop(client);
    let rest: Vec<String> = [0, 2, 4, 5].map(|at| first[at].clone()).into();
    let mut client = server.connect("/lines").await;
    for line in &rest {
        assert_eq!(client.text().await, *line);
    }
    drop(client);
    server.stop().await;

    let server = Server::start(dir.path(), &["one"], options());
    let mut client = server.connect("/lines").await;
    for line in &rest {
        assert_eq!(client.text().await, *line);
        let line: Value = serde_json::from_str(line).unwrap();
        client.send(line["id"].as_str().unwrap()).await;
    }
    server.wait_for_delivery("one").await;
    server.stop().await;
    let server = Server::start(dir.path(), &["one"], options());
    assert!(server.connect("/lines").await.is_quiet().await);
    server.stop().await;
}

#[tokio::test]
async fn acknowledgements_count_when_the_client_leaves_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["one"], options());
    for round in 0..20 {
        let events = (0..30).map(|number| event(&format!("{number}"), round));
        server.append(events.collect()).await;
        let mut client = server.connect("/lines").await;
        for _ in 0..30 {
            client.number().await;
        }
        for number in 0..30 {
            client.send(&id(&number.to_string(), round)).await;
        }
        drop(client);
        server.wait_for_delivery("one").await;
    }
    server.stop().await;
}

#[tokio::test]
async fn each_consumer_has_its_own_cursor_and_one_connection() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["one", "two"], options());
    server.append(vec![event("a", 1), event("b", 2)]).await;
    let mut one = server.connect("/lines?consumer=one").await;
    let mut two = server.connect("/channel?consumer=two").await;
    assert_eq!((one.number().await, one.number().await), (1, 2));
    one.send(&format!("{}\n{}", id("a", 1), id("b", 2))).await;
    server.wait_for_delivery("one").await;
    assert_eq!(server.behind("two"), 2);
    two.text().await;
    for path in ["/lines?consumer=one", "/channel?consumer=one", "/lines?consumer=two"] {
        assert_eq!(server.refusal(server.url(path)).await, 409, "{path}");
    }
    drop(one);
    server.connect("/channel?consumer=one").await;
    assert_eq!(server.refusal(server.url("/lines")).await, 400, "no name, and there are two");
    assert_eq!(server.refusal(server.url("/lines?consumer=three")).await, 404);
    assert_eq!(server.metrics.refused.load(Relaxed), 5);
    server.stop().await;
}

#[tokio::test]
async fn strangers_web_pages_and_other_requests_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = WebSocketOptions {
        token: Some(net::http_server::AccessToken::new("0123456789abcdef").unwrap()),
        origins: vec!["https://app.example".to_owned()],
        ..options()
    };
    let server = Server::start(dir.path(), &["one"], options);
    let bearer = "Bearer 0123456789abcdef";
    let authorized = || server.request("/lines", "authorization", bearer);
    assert_eq!(server.refusal(server.url("/lines")).await, 401);
    let wrong = server.request("/lines", "authorization", "Bearer 0123456789abcdeF");
    assert_eq!(server.refusal(wrong).await, 401);
    assert_eq!(server.refusal(server.request("/", "authorization", bearer)).await, 404);
    for origin in ["https://evil.example", "null", "http://127.0.0.1", ""] {
        let mut page = authorized();
        page.headers_mut().insert("origin", origin.parse().unwrap());
        assert_eq!(server.refusal(page).await, 403, "{origin}");
    }
    let mut old = authorized();
    old.headers_mut().insert("sec-websocket-version", "8".parse().unwrap());
    assert_eq!(server.refusal(old).await, 426);
    assert!(!server.outbox.status().consumers[0].is_in_use);
    let mut page = authorized();
    page.headers_mut().insert("origin", "https://app.example".parse().unwrap());
    connect_async(page).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn an_unacknowledged_event_is_sent_again_after_the_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let options = WebSocketOptions { ack_timeout: Duration::from_millis(100), ..options() };
    let server = Server::start(dir.path(), &["one"], options);
    server.append(vec![event("a", 1), event("a", 2)]).await;
    let mut client = server.connect("/lines").await;
    for _ in 0..3 {
        assert_eq!(client.number().await, 1);
    }
    client.send(&id("a", 1)).await;
    while client.number().await == 1 {}
    client.send(&id("a", 2)).await;
    server.wait_for_delivery("one").await;
    assert!(server.metrics.repeated.load(Relaxed) >= 2);
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_breaks_the_protocol_is_disconnected_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(dir.path(), &["one"], options());
    server.append(vec![event("a", 1)]).await;
    let long = "x".repeat((64 << 10) + 1);
    let cases = [
        ("/lines", Message::binary(vec![1]), 1008),
        ("/lines", Message::text(long.clone()), 1008),
        ("/channel", Message::text("{"), 1006),
        ("/channel", Message::text(r#"{"type":"ack","id":"x"}"#), 1006),
        ("/channel", Message::text("[".repeat(60_000)), 1006),
    ];
    for (path, message, code) in cases {
        let mut client = server.connect(path).await;
        client.text().await;
        client.0.send(message).await.unwrap();
        assert_eq!(client.end().await, code, "{path}");
    }
    // Bytes that are no frame: reserved bits, and a length of 2⁶³ bytes.
    for bytes in [&[0xff; 64][..], b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0xxxx"] {
        let mut client = server.connect("/lines").await;
        client.text().await;
        let MaybeTlsStream::Plain(stream) = client.0.get_mut() else { panic!("no TLS") };
        stream.write_all(bytes).await.unwrap();
        client.end().await;
    }
    assert_eq!(server.behind("one"), 1);
    let mut client = server.connect("/lines").await;
    for unknown in ["", "never sent", "did:web:a.test/2", &long[..60_000], &"\n".repeat(60_000)] {
        client.send(unknown).await;
    }
    assert_eq!(client.number().await, 1);
    client.send(&id("a", 1)).await;
    server.wait_for_delivery("one").await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_a_bounded_part_and_is_disconnected() {
    let dir = tempfile::tempdir().unwrap();
    let options = WebSocketOptions {
        idle_timeout: Duration::from_millis(300),
        max_bytes: 64 << 20,
        ..options()
    };
    let server = Server::start(dir.path(), &["one"], options);
    let large = |number: u64| {
        let did = format!("did:web:{number}.test");
        let text = json!({"n": number, "text": "x".repeat(100_000)}).to_string();
        NewEvent::new(EventId::of_commit(&did, "1"), &did, text).unwrap()
    };
    // More than the buffers of a connection take.
    server.append((0..400).map(large).collect()).await;
    let mut client = server.connect("/lines").await;
    // It sends all the time, and takes nothing.
    let MaybeTlsStream::Plain(stream) = client.0.get_mut() else { panic!("no TLS") };
    let start = Instant::now();
    loop {
        match stream.write_all(b"\x81\x81\0\0\0\0x").await {
            Ok(()) => tokio::time::sleep(Duration::from_millis(5)).await,
            Err(error) => {
                assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset));
                break;
            }
        }
    }
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert!(server.metrics.sent.load(Relaxed) < 400, "no more than it has room for was sent");
    assert_eq!((server.behind("one"), server.metrics.violations.load(Relaxed)), (400, 1));
    let mut client = server.connect("/lines").await;
    assert_eq!(client.number().await, 0);
    server.stop().await;
}

#[tokio::test]
async fn a_silent_client_is_disconnected_and_one_that_answers_pings_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let options = WebSocketOptions { idle_timeout: Duration::from_millis(200), ..options() };
    let server = Server::start(dir.path(), &["live", "silent"], options);
    let mut live = server.connect("/lines?consumer=live").await;
    let silent = server.connect("/lines?consumer=silent").await;
    let reading = tokio::spawn(async move { live.end().await });
    while server.metrics.violations.load(Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(silent);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!reading.is_finished());
    server.stop().await;
    assert_eq!(reading.await.unwrap(), u16::from(CloseCode::Away));
}

#[tokio::test]
async fn a_client_that_acknowledges_nothing_gives_way_and_one_that_has_everything_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let options = WebSocketOptions { ack_timeout: Duration::from_millis(200), ..options() };
    let server = Server::start(dir.path(), &["one"], options);
    let mut idle = server.connect("/lines").await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(server.refusal(server.url("/lines")).await, 409, "it has acknowledged everything");
    server.append(vec![event("a", 1)]).await;
    assert_eq!(idle.number().await, 1);
    // It reads, and so answers pings.
    let reading = tokio::spawn(async move { idle.end().await });
    let mut next = loop {
        match connect_async(server.url("/lines")).await {
            Ok((socket, _)) => break Client(socket),
            Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), 409),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(next.number().await, 1);
    next.send(&id("a", 1)).await;
    server.wait_for_delivery("one").await;
    assert_eq!(reading.await.unwrap(), u16::from(CloseCode::Policy));
    server.stop().await;
}

#[tokio::test]
async fn requests_that_do_not_arrive_are_ended_and_delay_others_no_longer() {
    let dir = tempfile::tempdir().unwrap();
    let options = WebSocketOptions {
        handshake_timeout: Duration::from_millis(200),
        max_handshakes: 2,
        ..options()
    };
    let server = Server::start(dir.path(), &["one"], options);
    let mut silent = Vec::new();
    for start in ["", "GET /lines HTTP/1.1\r\n", "\x16\x03\x01garbage\r\n\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    let long = format!("GET /lines?{} HTTP/1.1\r\n", "x".repeat(100_000));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // It may be refused before all of it is sent.
    let _ = stream.write_all(long.as_bytes()).await;
    silent.push(stream);
    assert!(server.connect("/lines").await.is_quiet().await);
    for mut stream in silent {
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn a_stop_waits_for_the_acknowledgements_of_what_was_sent_and_sends_nothing_more() {
    let dir = tempfile::tempdir().unwrap();
    let options = WebSocketOptions { stop_timeout: Duration::from_secs(60), ..options() };
    let server = Server::start(dir.path(), &["one"], options);
    server.append(vec![event("a", 1), event("a", 2)]).await;
    let mut client = server.connect("/lines").await;
    assert_eq!(client.number().await, 1);
    server.stop.request();
    client.send(&id("a", 1)).await;
    assert_eq!(client.end().await, u16::from(CloseCode::Away));
    assert_eq!(server.behind("one"), 1);
    server.stop().await;
}
