//! The published vectors equal the example's output, and every format reads and writes them as they say.
//!
//! The file is read with `serde_json`, so that no code which wrote it decides how it is read.

use bumpalo::Bump;
use kernels::{hex, sha256};
use nostr::canonical::{self, ControlChars};
use nostr::{Event, Limits, OwnedEvent};
use nostr_formats::Format;
use serde_json::Value;

use crate::made::encoded;
use crate::vector_file;

const FILE: &str = include_str!("../../../docs/formats/nostr/vectors.json");
const PAGE: &str = include_str!("../../../docs/formats/nostr/vectors.md");

#[test]
fn the_file_is_what_the_example_prints() {
    let command = "cargo run -p wireproof-conformance --example nostr_vectors";
    assert!(PAGE.contains(command));
    // A difference of 100 KB of text is not worth printing.
    assert!(FILE == vector_file::text(), "write the file again: {command}");
}

#[test]
fn every_event_is_written_and_read_in_each_format_or_cannot_be_held_for_the_stated_reason() {
    let file = file();
    let (mut held_count, mut unheld_count) = (0, 0);
    for vector in list(&file, "events") {
        let (owned, arena) = (event(&vector["event"]), Bump::new());
        let event = owned.borrow_in(&arena);
        for format in Format::ALL {
            let (place, name) = (format!("{} in {}", vector["name"], format.name()), format.name());
            match (&vector["encodings"][name], &vector["cannot_hold"][name]) {
                (Value::String(digits), Value::Null) => {
                    let stated = bytes(digits);
                    assert_eq!(encoded(*format, &event).unwrap(), stated, "{place}");
                    let read = format.decode(&stated, &arena, &Limits::default());
                    assert_eq!(read.map(|event| event.to_owned()), Ok(owned.clone()), "{place}");
                    held_count += 1;
                }
                (Value::Null, Value::String(why)) => {
                    assert_eq!(encoded(*format, &event).unwrap_err().to_string(), *why, "{place}");
                    unheld_count += 1;
                }
                other => panic!("{place}: {other:?}"),
            }
        }
    }
    assert_eq!((held_count, unheld_count), (232, 6));
}

#[test]
fn ids_are_hashes_of_the_stated_text_and_signatures_have_the_stated_verdicts() {
    let file = file();
    let mut verdicts = Vec::new();
    for vector in list(&file, "events") {
        let (owned, arena) = (event(&vector["event"]), Bump::new());
        let event = owned.borrow_in(&arena);
        let hashed = text(vector, "hashed");
        let form = match text(vector, "control_characters") {
            "verbatim" => ControlChars::Verbatim,
            "escaped" => ControlChars::Escaped,
            other => panic!("{other}"),
        };
        let mut canonical = Vec::new();
        canonical::write(&event, form, &mut canonical);
        assert_eq!(canonical, hashed.as_bytes());
        let verdict = text(vector, "verdict");
        let is_hash = sha256::digest(hashed.as_bytes()) == event.id;
        assert_eq!(is_hash, verdict != "event/id", "{}", vector["name"]);
        assert_eq!(vector_file::verdict(&event), verdict, "{}", vector["name"]);
        assert!(verdict != "verified" || event.verify() == Ok(form));
        verdicts.push(verdict);
    }
    let refused = ["event/id", "signature/wrong"];
    assert_eq!((verdicts.len(), &verdicts[12..]), (14, &refused[..]));
    assert!(verdicts[..12].iter().all(|verdict| *verdict == "verified"));
}

#[test]
fn batches_are_written_and_read_in_each_format() {
    let (file, arena) = (file(), Bump::new());
    for batch in list(&file, "batches") {
        let named = |name: &Value| {
            let found = list(&file, "events").iter().find(|vector| vector["name"] == *name);
            event(&found.expect("an event of this name")["event"])
        };
        let owned: Vec<OwnedEvent> = list(batch, "events").iter().map(named).collect();
        let events: Vec<Event<'_>> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
        assert!(events.len() > 1);
        for format in Format::ALL {
            let (stated, mut written) =
                (bytes(text(&batch["encodings"], format.name())), Vec::new());
            format.encode_batch(&events, &mut written).unwrap();
            assert_eq!(written, stated, "{}", format.name());
            let read = format.decode_batch(&stated, &arena, &Limits::default());
            assert_eq!(read, Ok(&events[..]), "{}", format.name());
        }
    }
}

#[test]
fn every_refusal_is_refused_for_its_rule_at_its_place() {
    let file = file();
    let refusals = list(&file, "refusals");
    for refusal in refusals {
        let format = Format::from_name(text(refusal, "format")).expect("the name of a format");
        let (encoded, arena) = (bytes(text(refusal, "bytes")), Bump::new());
        let error = format.decode(&encoded, &arena, &Limits::default()).unwrap_err();
        let found = (error.reason.name(), Some(error.offset as u64), error.to_string());
        let stated = (
            text(refusal, "rule"),
            refusal["offset"].as_u64(),
            text(refusal, "message").to_owned(),
        );
        assert_eq!(found, stated, "{}: {}", format.name(), refusal["name"]);
    }
    for format in Format::ALL {
        let of_format = refusals.iter().filter(|refusal| refusal["format"] == format.name());
        assert!(of_format.count() >= 3, "{}", format.name());
    }
}

#[test]
fn the_page_explains_every_rule_and_every_key_of_the_file() {
    let file = file();
    for refusal in list(&file, "refusals") {
        let rule = text(refusal, "rule");
        assert!(PAGE.contains(&format!("| `{rule}` |")), "{rule}");
    }
    for part in ["events", "batches", "refusals"] {
        let Value::Object(vector) = &list(&file, part)[0] else { panic!("{part}") };
        for key in vector.keys() {
            assert!(PAGE.contains(&format!("| `{key}` |")), "{part}: {key}");
        }
    }
}

fn file() -> Value {
    serde_json::from_str(FILE).expect("JSON")
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} is a list"))
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is text"))
}

fn event(value: &Value) -> OwnedEvent {
    OwnedEvent {
        id: fixed(value, "id"),
        pubkey: fixed(value, "pubkey"),
        created_at: value["created_at"].as_i64().expect("an integer"),
        kind: value["kind"].as_u64().expect("an integer").try_into().expect("16 bits"),
        tags: serde_json::from_value(value["tags"].clone()).expect("lists of text"),
        content: text(value, "content").to_owned(),
        sig: fixed(value, "sig"),
    }
}

fn fixed<const N: usize>(value: &Value, name: &str) -> [u8; N] {
    bytes(text(value, name)).try_into().unwrap_or_else(|_| panic!("{name} has {N} bytes"))
}

/// The bytes of hexadecimal.
fn bytes(digits: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(hex::decode_into(digits.as_bytes(), &mut bytes), "{digits}");
    bytes
}
