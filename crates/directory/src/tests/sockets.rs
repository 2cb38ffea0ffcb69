//! The server over sockets: headers, methods, conditions, and streams that begin in the past.

use std::time::Duration;

use base::StopSignal;
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use super::reference;
use super::support::{TestMirror, parse_lines};
use crate::{Options, Server};

/// A server of a mirror, until it is dropped.
struct TestServer {
    address: std::net::SocketAddr,
    stop: StopSignal,
}

impl TestServer {
    async fn start(mirror: &TestMirror, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::new(mirror.path(), "127.0.0.1:0".parse().unwrap());
        change(&mut options);
        let (server, stop) = (Server::bind(options).await.unwrap(), StopSignal::new());
        let (address, until) = (server.address(), stop.clone());
        tokio::spawn(async move { server.run(&until).await });
        Self { address, stop }
    }

    /// The answers to requests over one connection.
    async fn ask(&self, requests: &[(&str, &str, Option<&str>)]) -> Vec<Response<Bytes>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut answers = Vec::new();
        for (method, path, condition) in requests {
            let mut request = Request::builder().method(*method).uri(*path).header("host", "a");
            if let Some(tag) = condition {
                request = request.header("if-none-match", *tag);
            }
            let request = request.body(Empty::<Bytes>::new()).unwrap();
            let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            answers.push(Response::from_parts(parts, body));
        }
        answers
    }

    /// The first messages of a stream, and the reason of its end, if it ends.
    async fn stream(&self, query: &str, count: usize) -> (Vec<String>, Option<String>) {
        let url = format!("ws://{}/export/stream{query}", self.address);
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        let mut messages = Vec::new();
        while messages.len() < count {
            match socket.next().await.unwrap().unwrap() {
                Message::Text(text) => messages.push(text.to_string()),
                Message::Close(frame) => {
                    return (messages, Some(frame.unwrap().reason.to_string()));
                }
                _ => {}
            }
        }
        (messages, None)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.request();
    }
}

fn header<'r>(response: &'r Response<Bytes>, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_connection_serves_many_requests_with_the_headers_of_the_reference_server() {
    let mirror = reference::mirror(1000);
    let did = mirror.reader().operations_after(0, 1).unwrap()[0].did.clone();
    let server = TestServer::start(&mirror, |_| {}).await;
    let path = format!("/{did}");
    let answers =
        server.ask(&[("GET", &path, None), ("HEAD", &path, None), ("GET", "/", None)]).await;
    let [document, head, home] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(header(document, "content-type"), "application/did+ld+json; charset=utf-8");
    assert_eq!(header(document, "access-control-allow-origin"), "*");
    assert_eq!(header(head, "content-length"), document.body().len().to_string());
    assert!(head.body().is_empty());
    assert_eq!(
        (home.status(), header(home, "location")),
        (302.try_into().unwrap(), crate::answer::HOME)
    );
    let tag = header(document, "etag");
    let again = server.ask(&[("GET", &path, Some(tag)), ("GET", &path, Some("\"x\""))]).await;
    assert_eq!(again.iter().map(|of| of.status().as_u16()).collect::<Vec<_>>(), [304, 200]);
    assert!(again[0].body().is_empty() && again[1].body() == document.body());
}

#[tokio::test]
async fn operations_are_refused_and_the_directory_is_named() {
    let mirror = reference::mirror(1000);
    let server = TestServer::start(&mirror, |_| {}).await;
    let answers = server.ask(&[("POST", "/did:plc:a", None), ("OPTIONS", "/", None)]).await;
    assert_eq!(answers[0].status().as_u16(), 405);
    let body = String::from_utf8_lossy(answers[0].body()).into_owned();
    assert!(body.contains("https://plc.directory"), "{body}");
    assert_eq!(answers[1].status().as_u16(), 204);
}

#[tokio::test]
async fn a_stream_has_the_missed_operations_and_then_the_new_ones_without_a_gap() {
    let whole = reference::mirror(1000);
    let lines = {
        let all = crate::Answer::to(&whole.reader(), "/export", Some("after=0")).unwrap();
        parse_lines(&all.body)
    };
    let mirror = TestMirror::new();
    mirror.apply(&lines[..9]);
    let server = TestServer::start(&mirror, |options| {
        options.stream_window = Duration::from_secs(1 << 40);
    })
    .await;
    let add = async {
        for lines in lines[9..].chunks(3) {
            tokio::time::sleep(Duration::from_millis(30)).await;
            mirror.apply(lines);
        }
    };
    let (seqs, total) = (|messages: Vec<String>| parse_lines(&messages.join("\n")), lines.len());
    let (all, part, new, ()) = tokio::join!(
        server.stream("?cursor=0", total),
        server.stream("?cursor=5", total - 5),
        server.stream("", total - 9),
        add
    );
    assert_eq!(seqs(all.0), lines);
    assert_eq!(seqs(part.0), lines[5..]);
    assert_eq!(seqs(new.0), lines[9..]);
}

#[tokio::test]
async fn a_cursor_before_refused_operations_gets_the_next_one_at_once() {
    let whole = reference::mirror(1000);
    let all = crate::Answer::to(&whole.reader(), "/export", Some("after=0")).unwrap();
    let lines = parse_lines(&all.body);
    let (mirror, next) = (TestMirror::new(), &lines[22..23]);
    mirror.apply(&lines[..5]);
    let refused = lines[5..9].iter().map(|line| atproto::plc::ExportLine {
        stated: Err(atproto::plc::OperationFault::Type),
        ..line.clone()
    });
    let refused: Vec<_> = refused.collect();
    let mut writer = store::PlcMirror::open(&mirror.path(), "https://plc.directory").unwrap();
    assert_eq!(writer.apply(&refused).unwrap().refused.len(), 4);
    drop(writer);
    let server =
        TestServer::start(&mirror, |options| options.stream_window = Duration::from_secs(1 << 40))
            .await;
    let cursor = format!("?cursor={}", lines[6].seq);
    let add = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        mirror.apply(next);
    };
    let stream = tokio::time::timeout(Duration::from_secs(5), server.stream(&cursor, 1));
    let (streamed, ()) = tokio::join!(stream, add);
    assert_eq!(parse_lines(&streamed.expect("at once").0[0]), next);
}

#[tokio::test]
async fn cursors_of_the_future_and_of_long_ago_are_refused_by_name() {
    let mirror = reference::mirror(1000);
    let server = TestServer::start(&mirror, |_| {}).await;
    let newest = mirror.reader().totals().unwrap().cursor;
    let future = server.stream(&format!("?cursor={}", newest + 1), 1).await;
    assert_eq!(future, (vec![], Some("FutureCursor".to_owned())));
    let server = TestServer::start(&mirror, |options| options.stream_window = Duration::ZERO).await;
    let outdated = server.stream("?cursor=0", 1).await;
    assert_eq!(outdated, (vec![], Some("OutdatedCursor".to_owned())));
}

#[tokio::test]
async fn streams_beyond_the_limit_of_an_address_get_a_status() {
    let mirror = reference::mirror(1000);
    let server = TestServer::start(&mirror, |options| options.max_streams_per_address = 1).await;
    let url = format!("ws://{}/export/stream", server.address);
    let _first = tokio_tungstenite::connect_async(&url).await.unwrap();
    let error = tokio_tungstenite::connect_async(&url).await.unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");
}

#[tokio::test]
async fn answers_that_are_kept_are_those_of_the_mirror_after_new_operations() {
    let whole = reference::mirror(1000);
    let all = crate::Answer::to(&whole.reader(), "/export", Some("after=0")).unwrap();
    let lines = parse_lines(&all.body);
    let mirror = TestMirror::new();
    mirror.apply(&lines[..1]);
    let server = TestServer::start(&mirror, |_| {}).await;
    let paths: Vec<String> = lines
        .iter()
        .flat_map(|line| {
            ["", "/data", "/log", "/log/audit", "/log/last"]
                .map(|view| format!("/{}{view}", line.did))
        })
        .collect();
    let requests: Vec<(&str, &str, Option<&str>)> =
        paths.iter().map(|path| ("GET", &**path, None)).collect();
    for lines in lines[1..].chunks(9) {
        mirror.apply(lines);
        // New operations are looked for every 50 milliseconds.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let reader = mirror.reader();
        for _ in 0..2 {
            for (answer, path) in server.ask(&requests).await.iter().zip(&paths) {
                let expected = crate::Answer::to(&reader, path, None).unwrap();
                assert_eq!(answer.status().as_u16(), expected.status, "{path}");
                assert_eq!(answer.body(), expected.body.as_bytes(), "{path}");
                assert_eq!(header(answer, "content-type"), expected.content_type, "{path}");
            }
        }
    }
}
