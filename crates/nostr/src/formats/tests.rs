//! Does every format keep what all of them promise?

mod made;
mod random;

use bumpalo::Bump;

use super::Format;
use crate::{DecodeError, EncodeError, Event, Limits, OwnedEvent};
pub(super) use made::{golden, ordinary};
use random::Random;

/// What the layouts have no place for, by the names of [`made::edges`]. All else comes back.
const CANNOT_HOLD: &[(Format, &[&str])] = &[
    (Format::Capnp, OVER_THE_ENVELOPE),
    (Format::CapnpPacked, OVER_THE_ENVELOPE),
    (Format::Dannypack, &["256 values in a tag", "70,000 values in a tag"]),
    (
        Format::NdbNote,
        &[
            "a time before 1970",
            "the first time",
            "NUL in a value",
            "70,000 values in a tag",
            "70,000 tags",
        ],
    ),
];

/// What the blobs of Cap'n Proto's envelope cannot count.
const OVER_THE_ENVELOPE: &[&str] = &[
    "a value of 32 KiB",
    "a value of 64 KiB",
    "a value of 64 KiB of digits",
    "256 values in a tag",
    "70,000 values in a tag",
    "70,000 tags",
];

#[test]
fn every_ordinary_event_comes_back_from_every_format() {
    for format in Format::ALL {
        for event in made::ordinary() {
            assert_eq!(there_and_back(*format, &event), Ok(event), "{}", format.name());
        }
    }
}

#[test]
fn an_event_that_a_layout_cannot_hold_is_refused_and_no_other() {
    for format in Format::ALL {
        for (name, event) in made::edges() {
            let can_hold = !cannot_hold(*format).contains(&name);
            match there_and_back(*format, &event) {
                Ok(back) if can_hold => assert!(back == event, "{}: {name}", format.name()),
                Err(_) if !can_hold => {}
                told => panic!("{}: {name}: {}", format.name(), told.is_ok()),
            }
        }
    }
}

#[test]
fn what_is_refused_leaves_what_was_written_before() {
    let arena = Bump::new();
    for (format, names) in CANNOT_HOLD {
        for (name, event) in made::edges().into_iter().filter(|(name, _)| names.contains(name)) {
            let (event, mut out) = (event.borrow_in(&arena), b"before".to_vec());
            format.encode(&event, &mut out).unwrap_err();
            format.encode_batch(&[event], &mut out).unwrap_err();
            assert_eq!(out, b"before", "{}: {name}", format.name());
        }
    }
}

#[test]
fn events_are_appended_and_batches_come_back_in_order() {
    let (arena, made) = (Bump::new(), made::ordinary());
    let events: Vec<Event<'_>> = made.iter().map(|event| event.borrow_in(&arena)).collect();
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
fn every_beginning_of_an_event_or_a_batch_is_refused_or_another_event() {
    for format in Format::ALL {
        for event in made::ordinary().iter().take(12) {
            let bytes = encoded(*format, event).unwrap();
            (0..bytes.len()).for_each(|len| judge(*format, &bytes[..len]));
        }
        let batch = encoded_batch(*format, &made::ordinary()[..4]);
        (0..batch.len()).for_each(|len| judge_batch(*format, &batch[..len]));
    }
}

#[test]
fn bytes_behind_an_event_or_a_batch_are_refused() {
    let arena = Bump::new();
    for format in Format::ALL {
        for event in made::ordinary().iter().take(12) {
            for byte in [0, 1, 0x80, 0xff] {
                let mut bytes = encoded(*format, event).unwrap();
                bytes.push(byte);
                format.decode(&bytes, &arena, &Limits::default()).unwrap_err();
            }
        }
        let mut bytes = encoded_batch(*format, &made::ordinary()[..4]);
        bytes.push(1);
        format.decode_batch(&bytes, &arena, &Limits::default()).unwrap_err();
    }
}

#[test]
fn changed_bytes_are_refused_or_another_event() {
    let mut random = Random(0x5eed);
    for format in Format::ALL {
        let events = made::ordinary();
        for event in events.iter().cycle().take(4000) {
            let mut bytes = encoded(*format, event).unwrap();
            random.mutate(&mut bytes);
            judge(*format, &bytes);
        }
        let batch = encoded_batch(*format, &events[..4]);
        for _ in 0..1000 {
            let mut bytes = batch.clone();
            random.mutate(&mut bytes);
            judge_batch(*format, &bytes);
        }
    }
}

#[test]
fn every_limit_is_kept() {
    let (arena, event) = (Bump::new(), made::with_its_id(made::golden()));
    let at = |content_bytes, tags, tag_values, value_bytes| Limits {
        content_bytes,
        tags,
        tag_values,
        value_bytes,
        events: 2,
    };
    for format in Format::ALL {
        let bytes = encoded(*format, &event).unwrap();
        let decode = |limits: &Limits| format.decode(&bytes, &arena, limits).map(|_| ());
        assert_eq!(decode(&at(17, 3, 3, 64)), Ok(()), "{}", format.name());
        for limits in [at(16, 3, 3, 64), at(17, 2, 3, 64), at(17, 3, 2, 64), at(17, 3, 3, 63)] {
            assert!(decode(&limits).is_err(), "{}: {limits:?}", format.name());
        }
        let batch = encoded_batch(*format, &vec![event.clone(); 3]);
        assert!(format.decode_batch(&batch, &arena, &at(17, 3, 3, 64)).is_err());
    }
}

#[test]
fn single_fields_are_those_of_the_event() {
    let (arena, limits) = (Bump::new(), Limits::default());
    for format in Format::ALL {
        for event in made::ordinary() {
            let bytes = encoded(*format, &event).unwrap();
            let fields = format.fields(&bytes, &arena, &limits).unwrap();
            let told = (fields.kind(), fields.pubkey());
            assert_eq!(told, (Ok(event.kind), Ok(event.pubkey)), "{}", format.name());
        }
    }
}

/// Decodes what a stranger may have made: what comes of it is an event, and memory was in proportion.
fn judge(format: Format, bytes: &[u8]) {
    let arena = Bump::new();
    match format.decode(bytes, &arena, &Limits::default()) {
        Ok(event) => assert_is_event(format, &event),
        Err(error) => assert!(error.offset <= bytes.len(), "{}: {error}", format.name()),
    }
    assert_bounded(format, bytes, &arena);
}

fn judge_batch(format: Format, bytes: &[u8]) {
    let arena = Bump::new();
    match format.decode_batch(bytes, &arena, &Limits::default()) {
        Ok(events) => events.iter().for_each(|event| assert_is_event(format, event)),
        Err(error) => assert!(error.offset <= bytes.len(), "{}: {error}", format.name()),
    }
    assert_bounded(format, bytes, &arena);
}

/// That `event` is one that the format can hold, and the same when it comes back.
fn assert_is_event(format: Format, event: &Event<'_>) {
    let event = event.to_owned();
    assert_eq!(there_and_back(format, &event), Ok(event), "{}", format.name());
}

/// That the arena grew with the bytes: a value of one byte takes 24, and an arena may double.
fn assert_bounded(format: Format, bytes: &[u8], arena: &Bump) {
    let most = 128 * bytes.len() + (16 << 10);
    let taken = arena.allocated_bytes();
    assert!(taken <= most, "{}: {taken} bytes for {}", format.name(), bytes.len());
}

#[derive(Debug, PartialEq)]
enum Refusal {
    Encode(EncodeError),
    Decode(DecodeError),
}

/// The event as text that borrows from nothing, after a journey through `format`.
fn there_and_back(format: Format, event: &OwnedEvent) -> Result<OwnedEvent, Refusal> {
    let bytes = encoded(format, event).map_err(Refusal::Encode)?;
    let back = format.decode(&bytes, &Bump::new(), &RAISED).map(|event| event.to_owned());
    // What was written must be read: no format may hide behind a refusal on the way back.
    Ok(back.unwrap_or_else(|error| panic!("{}: {:?}", format.name(), Refusal::Decode(error))))
}

fn encoded(format: Format, event: &OwnedEvent) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    format.encode(&event.borrow_in(&Bump::new()), &mut bytes)?;
    Ok(bytes)
}

fn encoded_batch(format: Format, events: &[OwnedEvent]) -> Vec<u8> {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    let events: Vec<Event<'_>> = events.iter().map(|event| event.borrow_in(&arena)).collect();
    format.encode_batch(&events, &mut bytes).unwrap();
    bytes
}

fn cannot_hold(format: Format) -> &'static [&'static str] {
    CANNOT_HOLD.iter().find(|(other, _)| *other == format).map_or(&[], |(_, names)| names)
}

/// What a lazily read layout says of an event: id, author, time, kind and tags.
pub(super) type Told = ([u8; 32], [u8; 32], i64, u16, Vec<Vec<String>>);

/// That `fields` says of every event what the event says, and bears what is cut off or changed.
pub(super) fn assert_fields_agree(
    encoded: impl Fn(&OwnedEvent) -> Vec<u8>,
    fields: impl Fn(&[u8]) -> Result<Told, DecodeError>,
) {
    let mut random = Random(0xf1e1d);
    for event in made::ordinary() {
        let mut bytes = encoded(&event);
        for len in 0..bytes.len() {
            let _ = fields(&bytes[..len]);
        }
        let told = (event.id, event.pubkey, event.created_at, event.kind, event.tags);
        assert_eq!(fields(&bytes), Ok(told));
        for _ in 0..20 {
            random.mutate(&mut bytes);
            let _ = fields(&bytes);
        }
    }
}

/// Limits that hold every edge.
const RAISED: Limits = Limits {
    content_bytes: 2 << 20,
    tags: 100_000,
    tag_values: 100_000,
    value_bytes: 1 << 20,
    events: 10,
};
