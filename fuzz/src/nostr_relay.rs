//! Every message of a relay becomes at most one event, whose text is a part of the message, and few notices with bounded texts.

use std::sync::Arc;

use net::hosts::Jitter;
use net::http;
use net::websocket::Dialer;
use nostr::Filter;
use nostr::negentropy::{Item, Items};
use nostr_relay::{Client, Options, RelayItem, RelayNotice};

use crate::loopback;
use crate::websocket::{FINAL, TEXT, frame, options, upgrade};

/// Runs the target on one input: the first byte decides if ids are compared, the rest are messages, every one after its length
/// in two bytes.
pub(crate) fn run(input: &[u8]) {
    let Some((mode, messages)) = input.split_first() else { return };
    let messages = split(messages);
    let stream: Vec<u8> =
        messages.iter().flat_map(|message| frame(TEXT | FINAL, message.as_bytes())).collect();
    let items = receive(stream, mode & 1 == 1);
    let count = |is: fn(&RelayItem) -> bool| items.iter().filter(|item| is(item)).count();
    assert!(count(|item| matches!(item, RelayItem::Event(_))) <= messages.len());
    assert!(count(|item| matches!(item, RelayItem::Notice(_))) <= 2 * messages.len());
    for item in &items {
        match item {
            RelayItem::Event(event) => {
                let text = event.text.as_str();
                assert!(text.starts_with('{') && text.ends_with('}'));
                assert!(messages.iter().any(|message| message.contains(text)));
            }
            RelayItem::Notice(RelayNotice::Message(text)) => assert!(text.len() <= MAX_TEXT_BYTES),
            _ => {}
        }
    }
}

/// The items between the first connection and its end, or the client's end.
fn receive(stream: Vec<u8>, compares: bool) -> Vec<RelayItem> {
    let answer = |head: &str| [upgrade(head).as_bytes(), &stream].concat();
    let read = async |client: &http::Client, url: &http::Url| {
        let mut client = relay(client, url, compares);
        let mut items = Vec::new();
        loop {
            match client.next().await {
                Ok(RelayItem::Notice(RelayNotice::Connected { .. })) => {}
                Ok(RelayItem::Notice(RelayNotice::Disconnected(_))) | Err(_) => return items,
                Ok(item) => items.push(item),
            }
        }
    };
    loopback::exchange(answer, read)
}

fn relay(client: &http::Client, url: &http::Url, compares: bool) -> Client {
    let mut chosen = Options::default();
    chosen.socket = options();
    let items = || (0..40).map(|byte| Item { created_at: byte.into(), id: [byte; 32] });
    chosen.known = compares.then(|| Arc::new(Items::from_iter(items())));
    let dialer = Dialer::new(client.clone());
    Client::new(dialer, url.clone(), Filter::default(), chosen, Jitter::seeded(7))
}

/// The messages, every one after its length in two bytes, little-endian. A message that is no text ends the connection
/// elsewhere.
fn split(mut input: &[u8]) -> Vec<String> {
    let mut messages = Vec::new();
    while let [low, high, rest @ ..] = input {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (message, rest) = rest.split_at(rest.len().min(len));
        messages.push(String::from_utf8_lossy(message).into_owned());
        input = rest;
    }
    messages
}

/// 300 characters, all escaped.
const MAX_TEXT_BYTES: usize = 300 * 10;
