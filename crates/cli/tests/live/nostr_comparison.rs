//! `nostr follow --negentropy`: the events that it fetches, and its bytes on the wire.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use nostr::OwnedEvent;
use simnet::nostr_relay::{NostrRelay, Options};

use crate::nostr_relays::{all, corpus, follow, forged, json, output, sorted, text};
use crate::stderr;

/// A proxy in front of a relay that counts the bytes of its connections, both ways, including WebSocket framing.
struct CountingProxy {
    port: u16,
    bytes: Arc<AtomicU64>,
}

impl CountingProxy {
    fn start(relay: &NostrRelay) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (port, bytes) = (listener.local_addr().unwrap().port(), Arc::<AtomicU64>::default());
        let (counted, relay) = (bytes.clone(), relay.url());
        let relay = relay.trim_start_matches("ws://").trim_end_matches('/').to_owned();
        thread::spawn(move || {
            for client in listener.incoming().map(Result::unwrap) {
                let server = TcpStream::connect(&*relay).unwrap();
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let counted = counted.clone();
                    thread::spawn(move || copy(from, to, &counted));
                }
            }
        });
        Self { port, bytes }
    }

    fn url(&self) -> String {
        format!("ws://localhost:{}/", self.port)
    }

    /// The bytes since the last call. All that a client has received is counted.
    fn take_bytes(&self) -> u64 {
        self.bytes.swap(0, Relaxed)
    }
}

/// Copies until an end, and counts before a byte is passed on.
fn copy(mut from: TcpStream, mut to: TcpStream, counted: &AtomicU64) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let len = from.read(&mut buffer)?;
        if len == 0 {
            return to.shutdown(Shutdown::Write);
        }
        counted.fetch_add(len as u64, Relaxed);
        to.write_all(&buffer[..len])?;
    }
}

/// The number of events of a relay: 10,000, or ten times as many with `WIREPROOF_SOAK=1`, which `cargo xtask soak` sets.
fn event_count() -> usize {
    let is_whole = std::env::var_os("WIREPROOF_SOAK").is_some_and(|value| value == "1");
    if is_whole { 100_000 } else { 10_000 }
}

#[test]
fn where_one_event_in_a_hundred_is_missing_at_most_3_percent_of_all_bytes_are_on_the_wire() {
    let (events, dir) = (corpus(event_count()).events().to_vec(), tempfile::tempdir().unwrap());
    let relay = NostrRelay::start(&events, Options::default()).unwrap();
    let proxy = CountingProxy::start(&relay);
    let follow = |args: &[&str]| {
        let mut command = follow(&[], dir.path(), args);
        command.arg(proxy.url());
        output(command)
    };
    let full = text(&follow(&["--stored"]).stdout);
    assert_eq!(full.len(), events.len());
    let (full_bytes, full_requests) = (proxy.take_bytes(), relay.requests().len());
    let full_sent = relay.sent_bytes();
    assert!(full_bytes > full_sent, "{full_bytes}, of which {full_sent} in messages");

    let is_missing = |index: usize| index % 100 == 57;
    let numbered = events.iter().enumerate();
    let known: Vec<String> =
        numbered.clone().filter(|(index, _)| !is_missing(*index)).map(|(_, it)| json(it)).collect();
    let have = dir.path().join("have.jsonl.zst");
    // A forged event does not hide the one that is missing.
    let forged = forged(&events[57], "sig");
    let file = known.join("\n") + "\n" + &forged + "\n";
    fs::write(&have, zstd::encode_all(file.as_bytes(), 3).unwrap()).unwrap();
    let output = follow(&["--stored", "--negentropy", "--have", have.to_str().unwrap()]);
    let bytes = proxy.take_bytes();
    let missing: Vec<OwnedEvent> =
        numbered.filter(|(index, _)| is_missing(*index)).map(|(_, event)| event.clone()).collect();
    assert_eq!(sorted(text(&output.stdout)), all(&missing));
    let printed = stderr(&output);
    assert!(printed.contains("events that are not valid and do not count: 1"), "{printed}");
    let count = format!("{} events are missing, after ", missing.len());
    assert!(printed.contains(&count), "{printed}");

    assert!(bytes * 100 <= full_bytes * 3, "{bytes} of {full_bytes}");
    let requests: usize = relay.requests()[full_requests..].iter().map(String::len).sum();
    let received = relay.sent_bytes() - full_sent;
    let totals = format!("; {requests} bytes sent, {received} received");
    assert!(printed.contains(&totals), "{totals}: {printed}");
    assert!(bytes > requests as u64 + received, "{bytes}: {totals}");
    println!("figure: {bytes} bytes on the wire, of {full_bytes} for all {} events", full.len());
}
