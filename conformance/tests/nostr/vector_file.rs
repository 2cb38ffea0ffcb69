//! The file `docs/formats/nostr/vectors.json`: signed events, their encodings in every format, and bytes that a decoder refuses.
//!
//! Keys, times and texts are constants, so the file is the same on every machine.

use std::collections::BTreeMap;

use bumpalo::Bump;
use crypto::schnorr::SecretKey;
use kernels::hex;
use nostr::canonical::{self, ControlChars};
use nostr::{Event, EventFault, OwnedEvent};
use nostr_formats::Format;
use serde::Serialize;

use crate::vector_refusals::{self, RefusedVector};

/// The text of the file.
pub(crate) fn text() -> String {
    let events = events();
    let (_, note) = &events[0];
    let vectors = Vectors {
        explained_in: "vectors.md",
        refusals: vector_refusals::of(note),
        batches: vec![batch(&events[..BATCH_EVENTS])],
        events: events.iter().map(|(name, event)| vector(name, event)).collect(),
    };
    let text = serde_json::to_string_pretty(&vectors).expect("every key is text");
    text + "\n"
}

#[derive(Serialize)]
struct Vectors {
    explained_in: &'static str,
    events: Vec<EventVector>,
    batches: Vec<BatchVector>,
    refusals: Vec<RefusedVector>,
}

#[derive(Serialize)]
struct EventVector {
    name: &'static str,
    event: Fields,
    /// The text whose SHA-256 should be the id.
    hashed: String,
    /// The form of its control characters; the verbatim one if the id matches neither form.
    control_characters: &'static str,
    /// `verified`, or the code of the broken rule.
    verdict: &'static str,
    encodings: Encodings,
    cannot_hold: BTreeMap<&'static str, String>,
}

/// The fields of NIP-01, in its order.
#[derive(Serialize)]
struct Fields {
    id: String,
    pubkey: String,
    created_at: i64,
    kind: u16,
    tags: Vec<Vec<String>>,
    content: String,
    sig: String,
}

#[derive(Serialize)]
struct BatchVector {
    events: Vec<&'static str>,
    encodings: Encodings,
}

/// Bytes in hexadecimal by format.
type Encodings = BTreeMap<&'static str, String>;

fn vector(name: &'static str, owned: &OwnedEvent) -> EventVector {
    let arena = Bump::new();
    let event = owned.borrow_in(&arena);
    let form = canonical::id_form(&event, &mut Vec::new()).unwrap_or_default();
    let mut hashed = Vec::new();
    canonical::write(&event, form, &mut hashed);
    let (mut encodings, mut cannot_hold) = (Encodings::new(), BTreeMap::new());
    for format in Format::ALL {
        let mut bytes = Vec::new();
        match format.encode(&event, &mut bytes) {
            Ok(()) => drop(encodings.insert(format.name(), hex::encode(&bytes))),
            Err(why) => drop(cannot_hold.insert(format.name(), why.to_string())),
        }
    }
    EventVector {
        name,
        event: fields(owned),
        hashed: String::from_utf8(hashed).expect("text is hashed"),
        control_characters: form.name(),
        verdict: verdict(&event),
        encodings,
        cannot_hold,
    }
}

fn fields(event: &OwnedEvent) -> Fields {
    Fields {
        id: hex::encode(&event.id),
        pubkey: hex::encode(&event.pubkey),
        created_at: event.created_at,
        kind: event.kind,
        tags: event.tags.clone(),
        content: event.content.clone(),
        sig: hex::encode(&event.sig),
    }
}

/// `verified`, or the code of the broken rule.
pub(crate) fn verdict(event: &Event<'_>) -> &'static str {
    match event.verify() {
        Ok(_) => "verified",
        Err(EventFault::Signature(_)) => "signature/wrong",
        Err(_) => "event/id",
    }
}

/// A batch of events that every format holds.
fn batch(named: &[(&'static str, OwnedEvent)]) -> BatchVector {
    let arena = Bump::new();
    let events: Vec<Event<'_>> = named.iter().map(|(_, event)| event.borrow_in(&arena)).collect();
    let encoding = |format: &Format| {
        let mut bytes = Vec::new();
        format.encode_batch(&events, &mut bytes).expect("every format holds these events");
        (format.name(), hex::encode(&bytes))
    };
    BatchVector {
        events: named.iter().map(|(name, _)| *name).collect(),
        encodings: Format::ALL.iter().map(encoding).collect(),
    }
}

/// Events by name; the first ones are in the batch.
fn events() -> Vec<(&'static str, OwnedEvent)> {
    let note = signed(1, NOON, 1, &[&["t", "gm"], &["x", "deadbeef"]], "good morning \u{1f30d}");
    let (author, id) = (hex::encode(&note.pubkey), hex::encode(&note.id));
    let address = format!("30023:{author}:a title");
    let reply: [&[&str]; 4] = [
        &["e", &id, "wss://relay.example", "root"],
        &["p", &author],
        &["a", &address, ""],
        &["imeta", "url https://media.example/1.jpg", &format!("x {id}")],
    ];
    let quoting = format!("as I said in {id}:\n\"good morning\"\\ {author}");
    let digits: [&[&str]; 2] = [
        &["", "b", "be", "cafe", "deadbee", "deadbeef", "DEADBEEF", "DeadBeef", "deadbeeg"],
        &["x", &"0123456789abcdef".repeat(3), &id.to_uppercase(), &id[1..], &id.repeat(2)],
    ];
    let empty_values = [""; 256];
    vec![
        ("a note", note.clone()),
        ("a reply", signed(2, NOON + 60, 1, &reply, &quoting)),
        ("digits", signed(1, NOON, 1_111, &digits, "deadbeefcafe2024")),
        ("empty", signed(1, 0, 0, &[], "")),
        ("empty tags", signed(1, 1, 23, &[&[], &[""], &["x"], &["", ""], &[]], "x")),
        ("escaped characters", signed(2, NOON, 1, &[&["x", ESCAPED]], ESCAPED)),
        (
            "the largest kind",
            signed(2, 9_007_199_254_740_991, u16::MAX, &[], "in 285 million years"),
        ),
        ("a time before 1970", signed(2, -1, 24, &[], "in the last second of 1969")),
        ("256 values in a tag", signed(2, NOON, 256, &[&empty_values], "")),
        (
            "control characters, verbatim in the hashed text",
            signed(1, NOON, 1, CONTROLS, "a\u{1}\u{1f}"),
        ),
        (
            "control characters, escaped in the hashed text",
            signed_in(ControlChars::Escaped, 1, NOON, 1, CONTROLS, "a\u{1}\u{1f}"),
        ),
        ("NUL in a value", signed(1, NOON, 1, &[&["t", "a\0b"]], "a\0b")),
        (
            "another content under a right signature of its id",
            changed(&note, |event| event.content += "!"),
        ),
        ("a signature of another key", changed(&note, |event| event.sig = sign(2, &event.id))),
    ]
}

fn signed(secret: u8, created_at: i64, kind: u16, tags: &[&[&str]], content: &str) -> OwnedEvent {
    signed_in(ControlChars::Verbatim, secret, created_at, kind, tags, content)
}

fn signed_in(
    form: ControlChars,
    secret: u8,
    created_at: i64,
    kind: u16,
    tags: &[&[&str]],
    content: &str,
) -> OwnedEvent {
    let tag = |tag: &&[&str]| tag.iter().map(|value| (*value).to_owned()).collect();
    let mut event = OwnedEvent {
        id: [0; 32],
        pubkey: key(secret).public_key().to_bytes(),
        created_at,
        kind,
        tags: tags.iter().map(tag).collect(),
        content: content.to_owned(),
        sig: [0; 64],
    };
    event.id = canonical::id(&event.borrow_in(&Bump::new()), form, &mut Vec::new());
    event.sig = sign(secret, &event.id);
    event
}

fn changed(event: &OwnedEvent, change: impl FnOnce(&mut OwnedEvent)) -> OwnedEvent {
    let mut event = event.clone();
    change(&mut event);
    event
}

/// A BIP-340 signature with auxiliary random data of zero bytes.
fn sign(secret: u8, id: &[u8; 32]) -> [u8; 64] {
    key(secret).sign(id, &[0; 32])
}

/// The secret key of 32 equal bytes.
fn key(secret: u8) -> SecretKey {
    SecretKey::from_bytes(&[secret; 32]).expect("a number below the order of the curve")
}

/// Number of events in the batch.
const BATCH_EVENTS: usize = 3;

/// Seconds since 1970.
const NOON: i64 = 1_700_000_000;

/// Characters with an escape in JSON or in other formats, and such that need none.
const ESCAPED: &str = "\u{8}\t\n\u{c}\r\"\\/\u{7f}\u{e9}\u{2028}\u{fffd}\u{1f30d}";

const CONTROLS: &[&[&str]] = &[&["t", "\u{2}"]];
