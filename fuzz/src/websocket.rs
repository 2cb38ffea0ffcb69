//! A WebSocket returns exactly the messages that were framed, within its limits; other frames end the connection.

use net::http::{Client, Url};
use net::websocket::{Dialer, SocketMessage, SocketOptions};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::loopback::{self, LIMITS};

/// Runs the target on one input: the first byte decides if the rest is the stream or the plan that it is made
/// from.
pub(crate) fn run(input: &[u8]) {
    match input.split_first() {
        Some((0..128, stream)) => {
            receive(stream.to_vec());
        }
        Some((_, plan)) => {
            let (stream, expected) = framed(plan);
            assert_eq!(receive(stream), expected);
        }
        None => {}
    }
}

/// Receives the messages of a stream up to its end.
fn receive(stream: Vec<u8>) -> Vec<Vec<u8>> {
    let answer = |head: &str| [upgrade(head).as_bytes(), &stream].concat();
    let read = async |client: &Client, url: &Url| {
        let dialer = Dialer::new(client.clone());
        let mut socket = dialer.dial(url, &options()).await.expect("an upgrade");
        let mut messages = Vec::new();
        loop {
            match socket.next().await {
                Ok(SocketMessage::Binary(bytes)) => messages.push(bytes.to_vec()),
                Ok(SocketMessage::Text(text)) => messages.push(text.as_bytes().to_vec()),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return messages;
                }
            }
            assert!(messages.last().is_none_or(|message| message.len() as u64 <= LIMITS.max_bytes));
        }
    };
    loopback::exchange(answer, read)
}

/// The response that accepts an upgrade.
pub(crate) fn upgrade(head: &str) -> String {
    let key = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("sec-websocket-key").then_some(value)
    });
    let accept = derive_accept_key(key.unwrap_or_default().as_bytes());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    )
}

pub(crate) fn options() -> SocketOptions<'static> {
    SocketOptions { max_message_bytes: 4 << 10, ..SocketOptions::default() }
}

/// A stream of binary messages and pings, and the messages. A part of the plan is a length and a first byte
/// that says how its message is fragmented.
fn framed(mut plan: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (mut stream, mut messages) = (Vec::new(), Vec::new());
    while let [len, split, rest @ ..] = plan {
        let (message, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        let (first, second) = message.split_at(message.len().min(usize::from(*split)));
        stream.extend(frame(BINARY, first));
        stream.extend(frame(PING | FINAL, &[*split]));
        stream.extend(frame(CONTINUATION | FINAL, second));
        messages.push(message.to_vec());
        plan = rest;
    }
    (stream, messages)
}

/// A frame of RFC 6455, section 5.2, as a server sends it.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len();
    let head = match (u8::try_from(len), u16::try_from(len)) {
        (Ok(short @ ..126), _) => vec![first, short],
        (_, Ok(long)) => [&[first, 126][..], &long.to_be_bytes()].concat(),
        _ => [&[first, 127][..], &(len as u64).to_be_bytes()].concat(),
    };
    [&head, payload].concat()
}

pub(crate) const FINAL: u8 = 0x80;
pub(crate) const TEXT: u8 = 1;
pub(crate) const BINARY: u8 = 2;
const CONTINUATION: u8 = 0;
const PING: u8 = 9;
