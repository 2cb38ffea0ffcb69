//! Hostile bytes yield an error, or an event that can be encoded again, with memory use proportional to the input.

use bumpalo::Bump;
use nostr::{DecodeError, Event, Limits};
use nostr_formats::Format;
use wireproof_conformance::fixtures;

use crate::made::{Random, encoded, events, mutated, ordinary};

#[test]
fn an_event_cut_anywhere_is_refused_or_another_event() {
    for format in Format::ALL {
        for event in ordinary() {
            let bytes = encoded(*format, &event.borrow_in(&Bump::new())).unwrap();
            (0..bytes.len()).for_each(|len| judge(*format, &bytes[..len]));
        }
    }
}

#[test]
fn a_real_event_cut_anywhere_is_refused_or_another_event() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let arena = Bump::new();
    for event in events(&file, &arena).iter().step_by(200) {
        for format in Format::ALL {
            let Ok(bytes) = encoded(*format, event) else { continue };
            let step = bytes.len().div_ceil(1_000);
            (0..bytes.len()).step_by(step).for_each(|len| judge(*format, &bytes[..len]));
        }
    }
}

#[test]
fn a_batch_cut_anywhere_is_refused_or_another_batch() {
    let (arena, events) = (Bump::new(), ordinary());
    let events: Vec<Event<'_>> = events.iter().map(|event| event.borrow_in(&arena)).collect();
    for format in Format::ALL {
        let mut bytes = Vec::new();
        format.encode_batch(&events, &mut bytes).unwrap();
        (0..bytes.len()).for_each(|len| judge_batch(*format, &bytes[..len]));
    }
}

#[test]
fn a_hundred_thousand_mutations_of_events_never_do_harm() {
    let owned = ordinary();
    for format in Format::ALL {
        let arena = Bump::new();
        let all = owned.iter().map(|event| encoded(*format, &event.borrow_in(&arena)).unwrap());
        let all: Vec<Vec<u8>> = all.collect();
        let mut random = Random(3);
        for turn in 0..80_000 {
            judge(*format, &mutated(&all[turn % all.len()], &mut random));
        }
    }
}

#[test]
fn twenty_thousand_mutations_of_real_events_never_verify() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let (arena, mut scratch) = (Bump::new(), Bump::new());
    let events = events(&file, &arena);
    for format in Format::ALL {
        let mut random = Random(4);
        for turn in 0..20_000 {
            let event = &events[turn % events.len()];
            let Ok(bytes) = encoded(*format, event) else { continue };
            let bytes = mutated(&bytes, &mut random);
            scratch.reset();
            let read = format.decode(&bytes, &scratch, &Limits::default());
            let Ok(read) = read else { continue };
            assert_told_again(*format, &read);
            // Skipped bytes may differ; the event is then the same.
            assert!(read == *event || read.verify().is_err(), "{}", format.name());
        }
    }
}

#[test]
fn mutations_of_batches_never_do_harm() {
    let (arena, events) = (Bump::new(), ordinary());
    let events: Vec<Event<'_>> = events.iter().map(|event| event.borrow_in(&arena)).collect();
    for format in Format::ALL {
        let (mut bytes, mut random) = (Vec::new(), Random(5));
        format.encode_batch(&events, &mut bytes).unwrap();
        for _ in 0..20_000 {
            judge_batch(*format, &mutated(&bytes, &mut random));
        }
    }
}

/// A number near the largest, at the place of every byte in turn: as a length or a count it is refused before
/// memory is taken.
#[test]
fn a_large_number_anywhere_takes_no_memory() {
    for format in Format::ALL {
        for event in ordinary() {
            let bytes = encoded(*format, &event.borrow_in(&Bump::new())).unwrap();
            for at in 0..bytes.len() {
                for large in
                    [&[0xff; 9][..], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0xfe; 4], &[0x7f; 8]]
                {
                    let end = bytes.len().min(at + large.len());
                    judge(*format, &[&bytes[..at], large, &bytes[end..]].concat());
                    judge(*format, &[&bytes[..at], large, &bytes[at + 1..]].concat());
                }
            }
        }
    }
}

/// Decodes untrusted bytes.
fn judge(format: Format, bytes: &[u8]) {
    let arena = Bump::new();
    let read = format.decode(bytes, &arena, &Limits::default());
    assert_bounded(format, bytes, &arena, read.err());
    read.iter().for_each(|event| assert_told_again(format, event));
}

fn judge_batch(format: Format, bytes: &[u8]) {
    let arena = Bump::new();
    let read = format.decode_batch(bytes, &arena, &Limits::default());
    assert_bounded(format, bytes, &arena, read.err());
    read.into_iter().flatten().for_each(|event| assert_told_again(format, event));
}

fn assert_told_again(format: Format, event: &Event<'_>) {
    let bytes = encoded(format, event)
        .unwrap_or_else(|error| panic!("{} read it, but cannot tell it: {error}", format.name()));
    let arena = Bump::new();
    let again = format.decode(&bytes, &arena, &Limits::default());
    assert_eq!(again.as_ref(), Ok(event), "{}", format.name());
}

fn assert_bounded(format: Format, bytes: &[u8], arena: &Bump, error: Option<DecodeError>) {
    let most = BYTES_EACH * bytes.len() + SLACK_BYTES;
    let taken = arena.allocated_bytes();
    assert!(taken <= most, "{}: {taken} bytes for {}", format.name(), bytes.len());
    assert!(error.is_none_or(|error| error.offset <= bytes.len()), "{}: {error:?}", format.name());
}

/// A value takes 24 bytes and at least one byte of input, and an arena may be twice as large as its content.
const BYTES_EACH: usize = 128;
const SLACK_BYTES: usize = 64 << 10;
