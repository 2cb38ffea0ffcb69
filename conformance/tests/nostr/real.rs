//! Round trips of every real event in every format that can hold it; the exceptions are listed.

use std::collections::BTreeMap;

use bumpalo::Bump;
use nostr::{Event, Limits};
use nostr_formats::Format;
use wireproof_conformance::fixtures;

use crate::made::{encoded, events, lines};

#[test]
fn every_real_event_comes_back_from_every_format_that_has_a_place_for_it() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let arena = Bump::new();
    let events = events(&file, &arena);
    assert_eq!(events.len(), EVENTS);
    let mut back = Bump::new();
    for format in Format::ALL {
        let mut refused = BTreeMap::new();
        for event in &events {
            back.reset();
            match encoded(*format, event) {
                Err(error) => drop(refused.insert(id_of(event), error.to_string())),
                Ok(bytes) => assert_eq!(
                    format.decode(&bytes, &back, &Limits::default()).as_ref(),
                    Ok(event),
                    "{} {}",
                    format.name(),
                    id_of(event)
                ),
            }
        }
        let refused: Vec<_> = refused.iter().map(|(id, why)| (&id[..], &why[..])).collect();
        assert_eq!(refused, without_a_place_in(*format), "{}", format.name());
    }
}

#[test]
fn batches_of_real_events_come_back_in_order() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let arena = Bump::new();
    let events = events(&file, &arena);
    for format in Format::ALL {
        let refused = without_a_place_in(*format);
        let has_place = |event: &&Event<'_>| !refused.iter().any(|(id, _)| *id == id_of(event));
        let held: Vec<Event<'_>> = events.iter().filter(has_place).copied().collect();
        for size in [1, 10, 1_000] {
            for chunk in held.chunks(size).take(1_000) {
                let (mut bytes, back) = (Vec::new(), Bump::new());
                format.encode_batch(chunk, &mut bytes).unwrap();
                let read = format.decode_batch(&bytes, &back, &Limits::default());
                assert!(read == Ok(chunk), "{} in batches of {size}", format.name());
            }
        }
    }
}

#[test]
fn a_batch_with_an_event_that_has_no_place_is_refused_whole() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let arena = Bump::new();
    let events = events(&file, &arena);
    for format in Format::ALL {
        for (id, why) in without_a_place_in(*format) {
            let without_place = events.iter().find(|event| id_of(event) == *id).unwrap();
            let mut out = b"before".to_vec();
            let batch = [events[0], *without_place];
            let error = format.encode_batch(&batch, &mut out).unwrap_err();
            assert_eq!((error.to_string().as_str(), &out[..]), (*why, &b"before"[..]), "{id}");
        }
    }
}

#[test]
fn the_json_of_every_real_event_is_written_as_it_was_read() {
    // Every line has the fields in the order of our writer, and was written without spaces.
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let (mut arena, mut written) = (Bump::new(), Vec::new());
    for line in lines(&file) {
        arena.reset();
        let event = Format::Json.decode(line, &arena, &Limits::default()).unwrap();
        written.clear();
        Format::Json.encode(&event, &mut written).unwrap();
        assert!(written == line, "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn a_format_is_found_by_its_name_alone() {
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.name()), Some(*format));
        assert_eq!(Format::from_name(&format.name().to_uppercase()), None);
    }
}

fn id_of(event: &Event<'_>) -> String {
    kernels::hex::encode(&event.id)
}

/// The events that a format has no place for, by their ids, and why.
fn without_a_place_in(format: Format) -> &'static [(&'static str, &'static str)] {
    let row = WITHOUT_A_PLACE.iter().find(|(name, _)| *name == format.name());
    row.map_or(&[], |(_, events)| events)
}

/// A format that is not listed holds every real event.
const WITHOUT_A_PLACE: &[(&str, &[(&str, &str)])] =
    &[("capnp", LONG_VALUE), ("capnp-packed", LONG_VALUE)];

/// A value of a tag whose length does not fit into fifteen bits.
const LONG_VALUE: &[(&str, &str)] = &[(
    "43b392c5423120a4346e2a8c2268e87aa4227dd09cb5148f2f8485b27557589b",
    "41230 bytes in a value: this format holds at most 32767",
)];

/// How many real events there are.
const EVENTS: usize = 6_232;
