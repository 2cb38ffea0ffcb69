//! Some dozens of Nostr events in every format: one JSON object a line, for readers in other
//! languages: `format`, `events` as JSON, whether `bytes` is a `batch` of them, and `bytes` in hexadecimal.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};

use bumpalo::Bump;
use kernels::hex;
use nostr::canonical::{self, ControlChars};
use nostr::{Event, Limits, OwnedEvent};
use nostr_formats::Format;
use wireproof_conformance::Source;

fn main() -> Result<(), Box<dyn Error>> {
    let (arena, made) = (Bump::new(), made_events());
    let data = Source::Captures.open("readers in Python: real events");
    let real = data.map(|data| data.bytes("nostr/events.jsonl")).unwrap_or_default();
    let mut events: Vec<Event<'_>> = made.iter().map(|event| event.borrow_in(&arena)).collect();
    let lines = real.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for line in lines.step_by(REAL_STEP) {
        events.push(Format::Json.decode(line, &arena, &Limits::default())?);
    }
    let mut out = io::stdout().lock();
    for format in Format::ALL {
        for group in events.iter().map(std::slice::from_ref).chain([&events[..20]]) {
            write_line(*format, group, &mut out)?;
        }
    }
    Ok(out.flush()?)
}

/// One event, or several as a batch. Events that the format cannot hold are omitted.
fn write_line(format: Format, events: &[Event<'_>], out: &mut impl Write) -> io::Result<()> {
    let has_place = |event: &&Event<'_>| format.encode(event, &mut Vec::new()).is_ok();
    let is_batch = events.len() > 1;
    let events: Vec<Event<'_>> = events.iter().filter(has_place).copied().collect();
    let mut bytes = Vec::new();
    let outcome = match &events[..] {
        [event] if !is_batch => format.encode(event, &mut bytes),
        events => format.encode_batch(events, &mut bytes),
    };
    outcome.expect("what has no place was left out");
    let mut json = Vec::new();
    Format::Json.encode_batch(&events, &mut json).expect("JSON has a place for every event");
    let (name, json) = (format.name(), String::from_utf8(json).expect("JSON is text"));
    let bytes = hex::encode(&bytes);
    if events.is_empty() {
        return Ok(());
    }
    writeln!(out, r#"{{"format":"{name}","events":{json},"batch":{is_batch},"bytes":"{bytes}"}}"#)
}

/// Twenty events with the properties in which formats differ.
fn made_events() -> Vec<OwnedEvent> {
    let key = "0123456789abcdef".repeat(4);
    let upper = key.to_uppercase();
    let texts =
        ["", "x", "cafe", "deadbeef", "DEADBEEF", &key, &upper, &key[1..], "\0\n\"\\", "\u{1f30d}"];
    let times = [0, -1, 1, 1_700_000_123, i64::MAX, i64::MIN];
    let event = |at: usize| {
        let value = |more: usize| texts[(at + more) % texts.len()].to_owned();
        let mut event = OwnedEvent {
            id: [0; 32],
            pubkey: [at as u8; 32],
            created_at: times[at % times.len()],
            kind: [0, 1, 23, 24, 255, 256, 30_023, 65_535][at % 8],
            tags: (0..at).map(|tag| (0..tag % 5).map(|more| value(tag + more)).collect()).collect(),
            content: value(0).repeat(at),
            sig: [0xff; 64],
        };
        event.id =
            canonical::id(&event.borrow_in(&Bump::new()), ControlChars::Verbatim, &mut Vec::new());
        event
    };
    (0..20).map(event).collect()
}

/// Every how many real events one is used.
const REAL_STEP: usize = 100;
