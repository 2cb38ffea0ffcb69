//! Every message of a Jetstream becomes at most one item, an event with valid fields or an unrecognized message, and at most one
//! notice, such as that its sequence number is lower than the one before.

use std::sync::{Arc, LazyLock};

use atproto::syntax::Did;
use net::hosts::Jitter;
use net::http;
use net::jetstream::{
    Client, Compression, Event, Filter, JetstreamItem, Notice, Options, Upstream, Version,
};
use net::websocket::Dialer;

use crate::loopback;
use crate::websocket::{BINARY, FINAL, TEXT, frame, options, upgrade};

/// Runs the target on one input: the first byte selects version and compression, the rest are messages, every one after its
/// length in two bytes.
pub(crate) fn run(input: &[u8]) {
    let Some((mode, messages)) = input.split_first() else { return };
    let messages = split(messages);
    let version = if mode & 1 == 0 { Version::V1 } else { Version::V2 };
    let is_compressed = mode & 2 != 0;
    let stream = messages.iter().flat_map(|message| sent(message, *mode)).collect();
    let items = receive(stream, version, is_compressed);
    let (notices, items): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| matches!(item, JetstreamItem::Notice(_)));
    assert!(items.len() <= messages.len() && notices.len() <= messages.len());
    for item in items {
        match item {
            JetstreamItem::Event(event) => assert_valid(&event),
            JetstreamItem::Unrecognized(message) => assert!(!message.reason.is_empty()),
            JetstreamItem::Notice(_) => {}
        }
    }
}

/// The frame of a message: text, or binary, compressed or as it is.
fn sent(message: &[u8], mode: u8) -> Vec<u8> {
    match mode & 6 {
        0 => frame(TEXT | FINAL, message),
        2 => frame(BINARY | FINAL, &compress(message)),
        _ => frame(BINARY | FINAL, message),
    }
}

fn assert_valid(event: &Event) {
    assert_eq!(Did::parse(event.did.as_str()), Ok(event.did.as_did()));
}

/// The items between the first connection and its end.
fn receive(stream: Vec<u8>, version: Version, is_compressed: bool) -> Vec<JetstreamItem> {
    let answer = |head: &str| [upgrade(head).as_bytes(), &stream].concat();
    let read = async |client: &http::Client, url: &http::Url| {
        let mut client = jetstream(client, url, version, is_compressed);
        let mut items = Vec::new();
        loop {
            match client.next().await.expect("a host that is tried again") {
                JetstreamItem::Notice(Notice::Connected { .. }) => {}
                JetstreamItem::Notice(Notice::Disconnected { .. }) => return items,
                item => items.push(item),
            }
        }
    };
    loopback::exchange(answer, read)
}

fn jetstream(
    client: &http::Client,
    url: &http::Url,
    version: Version,
    is_compressed: bool,
) -> Client {
    let upstream = Upstream { url: url.clone(), cursor: None };
    let mut chosen = Options::default();
    (chosen.version, chosen.socket) = (version, options());
    if is_compressed {
        chosen.compression = Compression::Given(Arc::from(&DICTIONARY[..]));
    }
    let (dialer, jitter) = (Dialer::new(client.clone()), Jitter::seeded(7));
    Client::new(dialer, &[upstream], Filter::default(), chosen, jitter).expect("a valid filter")
}

/// The messages, every one after its length in two bytes, little-endian.
fn split(mut input: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while let [low, high, rest @ ..] = input {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (message, rest) = rest.split_at(rest.len().min(len));
        messages.push(message);
        input = rest;
    }
    messages
}

/// A message, compressed as a server does.
fn compress(message: &[u8]) -> Vec<u8> {
    let mut compressor =
        zstd::bulk::Compressor::with_dictionary(1, &DICTIONARY).expect("a valid dictionary");
    compressor.compress(message).expect("memory")
}

static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let sample = |n| format!(r#"{{"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","time_us":{n}}}"#);
    let samples: Vec<String> = (0..2_000).map(sample).collect();
    zstd::dict::from_samples(&samples, 4 << 10).expect("enough samples")
});
