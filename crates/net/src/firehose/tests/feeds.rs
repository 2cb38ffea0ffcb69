//! The end of a feed, as a server sees it.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::super::feed::FeedSource;
use super::super::*;
use crate::dns::LoopbackDns;
use crate::egress::EgressPolicy;
use crate::hosts::Jitter;
use crate::http::Client;
use crate::websocket::Dialer;

/// Accepts a WebSocket.
async fn accept(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        request.push(char::from(stream.read_u8().await.unwrap()));
    }
    let key = request.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("sec-websocket-key").then_some(value)
    });
    let accept = derive_accept_key(key.unwrap().as_bytes());
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(response.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_feed_that_is_closed_sends_a_close_frame() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let server = tokio::spawn(async move {
        let mut stream = accept(&listener).await;
        let mut received = Vec::new();
        // The client ends the connection without an answer, after a second.
        let _ = stream.read_to_end(&mut received).await;
        received
    });
    let client = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
    let upstreams = [Upstream::new(url)];
    let mut feed =
        Feed::new(Dialer::new(client), &upstreams, FeedOptions::default(), Jitter::seeded(7));
    let item = feed.next().await.unwrap();
    assert!(matches!(item, FeedItem::Notice(Notice::Connected { .. })), "{item:?}");
    FeedSource::close(feed).await;
    let received = server.await.unwrap();
    assert_eq!(received.first(), Some(&CLOSE), "{received:02x?}");
}

/// The first byte of a close frame.
const CLOSE: u8 = 0x88;
