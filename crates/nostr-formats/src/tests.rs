//! Tests of every format, and helpers for the tests of single formats.

mod events;
mod memory;

use bumpalo::Bump;

use super::{Codec, Format, Meaning, ReadFields, Span};
pub(super) use events::with_its_id;
pub(crate) use events::{Random, golden, ordinary};
use nostr::{DecodeError, EncodeError, Event, Limits, OwnedEvent, Reason, Value};

/// The events that the layouts cannot hold, by the names of [`events::edges`]. All other events round-trip.
const CANNOT_HOLD: &[(Format, &[&str])] = &[
    #[cfg(feature = "capnp")]
    (Format::Capnp, OVER_THE_ENVELOPE),
    #[cfg(feature = "capnp")]
    (Format::CapnpPacked, OVER_THE_ENVELOPE),
    (Format::Dannypack, &["256 values in a tag", "70,000 values in a tag"]),
    (
        Format::NdbNote,
        &[
            "a time before 1970",
            "the minimum time",
            "NUL in a value",
            "70,000 values in a tag",
            "70,000 tags",
        ],
    ),
];

/// The events whose sizes the blobs of the Cap'n Proto envelope cannot count.
#[cfg(feature = "capnp")]
const OVER_THE_ENVELOPE: &[&str] = &[
    "a value of 32 KiB",
    "a value of 64 KiB",
    "a value of 64 KiB of digits",
    "256 values in a tag",
    "70,000 values in a tag",
    "70,000 tags",
];

#[test]
fn every_ordinary_event_round_trips_in_every_format() {
    for format in Format::ALL {
        for event in ordinary() {
            assert_eq!(round_trip(*format, &event), Ok(event), "{}", format.name());
        }
    }
}

#[test]
fn only_events_that_a_layout_cannot_hold_are_rejected() {
    for format in Format::ALL {
        for (name, event) in events::edges() {
            let can_hold = !cannot_hold(*format).contains(&name);
            match round_trip(*format, &event) {
                Ok(back) if can_hold => assert!(back == event, "{}: {name}", format.name()),
                Err(_) if !can_hold => {}
                result => panic!("{}: {name}: {}", format.name(), result.is_ok()),
            }
        }
    }
}

#[test]
fn a_rejected_event_leaves_the_output_unchanged() {
    let arena = Bump::new();
    for (format, names) in CANNOT_HOLD {
        for (name, event) in events::edges().into_iter().filter(|(name, _)| names.contains(name)) {
            let (event, mut out) = (event.borrow_in(&arena), b"before".to_vec());
            format.encode(&event, &mut out).unwrap_err();
            format.encode_batch(&[event], &mut out).unwrap_err();
            assert_eq!(out, b"before", "{}: {name}", format.name());
        }
    }
}

#[test]
fn batches_are_appended_and_round_trip_in_order() {
    let (arena, owned) = (Bump::new(), ordinary());
    let events: Vec<Event<'_>> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
    for format in Format::ALL {
        for count in [0, 1, 2, 40] {
            let mut bytes = b"before".to_vec();
            format.encode_batch(&events[..count], &mut bytes).unwrap();
            let back = format.decode_batch(&bytes[6..], &arena, &Limits::default());
            assert_eq!(back, Ok(&events[..count]), "{} {count}", format.name());
        }
    }
}

#[test]
fn every_prefix_of_an_event_or_a_batch_is_rejected_or_another_event() {
    for format in Format::ALL {
        for event in ordinary().iter().take(12) {
            let bytes = encode(*format, event).unwrap();
            (0..bytes.len()).for_each(|len| check_untrusted(*format, &bytes[..len]));
        }
        let batch = encode_batch(*format, &ordinary()[..4]);
        (0..batch.len()).for_each(|len| check_untrusted_batch(*format, &batch[..len]));
    }
}

#[test]
fn bytes_after_an_event_or_a_batch_are_rejected() {
    let arena = Bump::new();
    for format in Format::ALL {
        for event in ordinary().iter().take(12) {
            for byte in [0, 1, 0x80, 0xff] {
                let mut bytes = encode(*format, event).unwrap();
                bytes.push(byte);
                format.decode(&bytes, &arena, &Limits::default()).unwrap_err();
            }
        }
        let mut bytes = encode_batch(*format, &ordinary()[..4]);
        bytes.push(1);
        format.decode_batch(&bytes, &arena, &Limits::default()).unwrap_err();
    }
}

#[test]
fn changed_bytes_are_rejected_or_another_event() {
    let mut random = Random(0x5eed);
    for format in Format::ALL {
        let events = ordinary();
        for event in events.iter().cycle().take(4000) {
            let mut bytes = encode(*format, event).unwrap();
            random.mutate(&mut bytes);
            check_untrusted(*format, &bytes);
        }
        let batch = encode_batch(*format, &events[..4]);
        for _ in 0..1000 {
            let mut bytes = batch.clone();
            random.mutate(&mut bytes);
            check_untrusted_batch(*format, &bytes);
        }
    }
}

#[test]
fn every_limit_is_enforced() {
    let (arena, event) = (Bump::new(), with_its_id(golden()));
    let at = |content_bytes, tags, tag_values, value_bytes| {
        let mut limits = Limits::default();
        limits.content_bytes = content_bytes;
        limits.tags = tags;
        limits.tag_values = tag_values;
        limits.value_bytes = value_bytes;
        limits.events = 2;
        limits.list_bytes = 0;
        limits
    };
    for format in Format::ALL {
        let bytes = encode(*format, &event).unwrap();
        let decode = |limits: &Limits| format.decode(&bytes, &arena, limits).map(|_| ());
        assert_eq!(decode(&at(17, 3, 3, 64)), Ok(()), "{}", format.name());
        for limits in [at(16, 3, 3, 64), at(17, 2, 3, 64), at(17, 3, 2, 64), at(17, 3, 3, 63)] {
            assert!(decode(&limits).is_err(), "{}: {limits:?}", format.name());
        }
        let batch = encode_batch(*format, &vec![event.clone(); 3]);
        assert!(format.decode_batch(&batch, &arena, &at(17, 3, 3, 64)).is_err());
    }
}

#[test]
fn every_byte_of_an_event_is_explained_and_every_value_of_it_is_named() {
    for format in Format::ALL {
        for event in ordinary() {
            let bytes = encode(*format, &event).unwrap();
            let explained = explain(*format, &bytes).unwrap();
            // Packed messages are explained as they are unpacked.
            let is_packed = format.name().ends_with("packed") && format.name().starts_with("capnp");
            if !is_packed {
                assert!(explained.bytes == bytes, "{}", format.name());
            }
            assert_names_fields(*format, &event, &explained.fields);
        }
    }
}

#[test]
fn explaining_changed_bytes_does_no_harm() {
    let mut random = Random(0xe4_91a1);
    for format in Format::ALL {
        for event in ordinary().iter().cycle().take(1000) {
            let mut bytes = encode(*format, event).unwrap();
            random.mutate(&mut bytes);
            let decoded = format.decode(&bytes, &Bump::new(), &Limits::default()).is_ok();
            assert_eq!(explain(*format, &bytes).is_ok(), decoded, "{}", format.name());
        }
    }
}

/// An explanation: all bytes, and the text of every field.
#[derive(Default)]
struct Explained {
    bytes: Vec<u8>,
    fields: std::collections::BTreeMap<String, String>,
}

fn explain(format: Format, bytes: &[u8]) -> Result<Explained, DecodeError> {
    let mut explained = Explained::default();
    format.explain(bytes, &Limits::default(), &mut |span: Span<'_>| {
        assert!(!span.bytes.is_empty());
        if span.offset == explained.bytes.len() {
            explained.bytes.extend(span.bytes);
        }
        let text = match span.meaning {
            Meaning::Layout(words) => words
                .split_once(": \"")
                .map_or("", |(_, word)| word.trim_end_matches('"'))
                .to_owned(),
            Meaning::Integer(value) => value.to_string(),
            Meaning::Text => str::from_utf8(span.bytes).unwrap().to_owned(),
            Meaning::Hex => kernels::hex::encode(span.bytes),
        };
        for field in span.field.split(", ") {
            *explained.fields.entry(field.to_owned()).or_default() += &text;
        }
    })?;
    Ok(explained)
}

/// Asserts that the fields of an event are named with their values, if the bytes have them unescaped.
fn assert_names_fields(
    format: Format,
    event: &OwnedEvent,
    fields: &std::collections::BTreeMap<String, String>,
) {
    let hex = kernels::hex::encode;
    let mut expected = vec![
        ("pubkey".to_owned(), hex(&event.pubkey)),
        ("sig".to_owned(), hex(&event.sig)),
        ("content".to_owned(), event.content.clone()),
    ];
    if format.name() != "wireproof" {
        expected.push(("id".to_owned(), hex(&event.id)));
    }
    // Integers that have their default are not written by some.
    expected.extend((event.kind > 0).then(|| ("kind".to_owned(), event.kind.to_string())));
    expected.extend(
        (event.created_at > 0).then(|| ("created_at".to_owned(), event.created_at.to_string())),
    );
    for (at, tag) in event.tags.iter().enumerate() {
        for (index, value) in tag.iter().enumerate() {
            expected.push((format!("tags[{at}][{index}]"), value.clone()));
        }
    }
    for (field, text) in expected {
        // Text is as written: escaped in JSON. Names of the table and strings of two letters are words.
        let is_elsewhere = text.contains(['"', '\\', '\n']) || text.is_empty();
        let is_named = field.ends_with("[0]") && format.name() == "wireproof";
        if !is_elsewhere && !is_named {
            let found = fields.get(&field).map(String::as_str);
            assert_eq!(found, Some(text.as_str()), "{} {field}", format.name());
        }
    }
}

#[test]
fn names_are_unique_and_restrictions_are_stated() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(*format));
        assert!(cannot_hold(*format).is_empty() || format.restriction().is_some());
    }
}

#[test]
fn single_fields_are_those_of_the_event() {
    let (arena, limits) = (Bump::new(), Limits::default());
    for format in Format::ALL {
        for event in ordinary() {
            let bytes = encode(*format, &event).unwrap();
            let fields = format.fields(&bytes, &arena, &limits).unwrap();
            let found = (fields.kind(), fields.pubkey(), fields.created_at());
            let expected = (Ok(event.kind), Ok(event.pubkey), Ok(event.created_at));
            assert_eq!(found, expected, "{}", format.name());
        }
    }
}

/// Decodes untrusted bytes: a result is an event of the format, and memory is in proportion.
fn check_untrusted(format: Format, bytes: &[u8]) {
    let arena = Bump::new();
    match format.decode(bytes, &arena, &Limits::default()) {
        Ok(event) => assert_is_event(format, &event),
        Err(error) => assert!(error.offset <= bytes.len(), "{}: {error}", format.name()),
    }
    assert_bounded(format, bytes, &arena);
}

fn check_untrusted_batch(format: Format, bytes: &[u8]) {
    let arena = Bump::new();
    match format.decode_batch(bytes, &arena, &Limits::default()) {
        Ok(events) => events.iter().for_each(|event| assert_is_event(format, event)),
        Err(error) => assert!(error.offset <= bytes.len(), "{}: {error}", format.name()),
    }
    assert_bounded(format, bytes, &arena);
}

/// Asserts that the format can hold `event` and that it round-trips.
fn assert_is_event(format: Format, event: &Event<'_>) {
    let event = event.to_owned();
    assert_eq!(round_trip(format, &event), Ok(event), "{}", format.name());
}

/// Asserts that the arena grew in proportion to the bytes.
fn assert_bounded(format: Format, bytes: &[u8], arena: &Bump) {
    let max = 16 * bytes.len() + (16 << 10);
    let taken = arena.allocated_bytes();
    assert!(taken <= max, "{}: {taken} bytes for {}", format.name(), bytes.len());
}

#[derive(Debug, PartialEq)]
enum Rejection {
    Encode(EncodeError),
    Decode(DecodeError),
}

/// Encodes and decodes an event.
fn round_trip(format: Format, event: &OwnedEvent) -> Result<OwnedEvent, Rejection> {
    let bytes = encode(format, event).map_err(Rejection::Encode)?;
    let back = format.decode(&bytes, &Bump::new(), &raised()).map(|event| event.to_owned());
    // Decoding an encoded event must not fail.
    Ok(back.unwrap_or_else(|error| panic!("{}: {:?}", format.name(), Rejection::Decode(error))))
}

fn encode(format: Format, event: &OwnedEvent) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    format.encode(&event.borrow_in(&Bump::new()), &mut bytes)?;
    Ok(bytes)
}

fn encode_batch(format: Format, events: &[OwnedEvent]) -> Vec<u8> {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    let events: Vec<Event<'_>> = events.iter().map(|event| event.borrow_in(&arena)).collect();
    format.encode_batch(&events, &mut bytes).unwrap();
    bytes
}

fn cannot_hold(format: Format) -> &'static [&'static str] {
    CANNOT_HOLD.iter().find(|(other, _)| *other == format).map_or(&[], |(_, names)| names)
}

/// The encoding of an event that the codec can hold.
pub(super) fn encoded(codec: impl Codec, event: &OwnedEvent) -> Vec<u8> {
    try_encoded(codec, event).unwrap()
}

pub(super) fn try_encoded(codec: impl Codec, event: &OwnedEvent) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    codec.encode(&event.borrow_in(&Bump::new()), &mut bytes).map(|()| bytes)
}

pub(super) fn decoded(codec: impl Codec, bytes: &[u8]) -> Result<OwnedEvent, Reason> {
    let arena = Bump::new();
    let event = codec.decode(bytes, &arena, &Limits::default());
    event.map(|event| event.to_owned()).map_err(|error| error.reason)
}

/// Why `bytes` are rejected.
pub(super) fn reason(codec: impl Codec, bytes: &[u8]) -> Reason {
    decoded(codec, bytes).unwrap_err()
}

/// Replaces `old`, which `bytes` contain once, by `new`.
pub(super) fn replace_once(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    let [at] = places[..] else { panic!("{} times", places.len()) };
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

/// The texts of tags that are read one by one.
pub(super) fn texts<'a>(
    tags: impl Iterator<
        Item = Result<impl Iterator<Item = Result<Value<'a>, DecodeError>>, DecodeError>,
    >,
) -> Result<Vec<Vec<String>>, DecodeError> {
    let text = |value: Result<Value<'a>, DecodeError>| Ok(value?.to_text().into_owned());
    tags.map(|tag| tag?.map(text).collect()).collect()
}

/// An id and the texts of tags.
type IdAndTags = ([u8; 32], Vec<Vec<String>>);

/// Asserts that single fields match the event, `id_and_tags` included, and that truncated and changed
/// bytes do not make them panic.
pub(super) fn assert_fields_agree<C: Codec>(
    codec: C,
    id_and_tags: impl Fn(&C::Fields<'_>) -> Result<IdAndTags, DecodeError>,
) {
    let limits = Limits::default();
    let read = |bytes: &[u8]| {
        let arena = Bump::new();
        let fields = codec.fields(bytes, &arena, &limits)?;
        let (id, tags) = id_and_tags(&fields)?;
        Ok::<_, DecodeError>((id, fields.pubkey()?, fields.created_at()?, fields.kind()?, tags))
    };
    let mut random = Random(0xf1e1d);
    for event in ordinary() {
        let mut bytes = encoded(codec, &event);
        for len in 0..bytes.len() {
            let _ = read(&bytes[..len]);
        }
        let expected = (event.id, event.pubkey, event.created_at, event.kind, event.tags);
        assert_eq!(read(&bytes), Ok(expected));
        for _ in 0..20 {
            random.mutate(&mut bytes);
            let _ = read(&bytes);
        }
    }
}

/// Limits above every edge case.
fn raised() -> Limits {
    let mut limits = Limits::default();
    limits.content_bytes = 2 << 20;
    limits.tags = 100_000;
    limits.tag_values = 100_000;
    limits.value_bytes = 1 << 20;
    limits.events = 10;
    limits.list_bytes = 16 << 20;
    limits
}
