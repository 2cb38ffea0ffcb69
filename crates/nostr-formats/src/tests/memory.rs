//! The memory of decoding: at most 16 bytes per byte of input, and 2 MiB, whatever the layout.

use bumpalo::Bump;

use super::{encode, golden, with_its_id};
use crate::{Codec, Format, notepack, proto, wireproof};
use nostr::input::write_varint;
use nostr::{Event, Limits, OwnedEvent};

#[test]
fn lists_of_tiny_items_take_memory_in_proportion_in_every_format() {
    for (name, tags) in tiny_lists() {
        let event = with_its_id(OwnedEvent { tags, ..golden() });
        for format in Format::ALL {
            let Ok(bytes) = encode(*format, &event) else { continue };
            assert_decoding_is_bounded(&format!("{} {name}", format.name()), &bytes, |arena| {
                format.decode(&bytes, arena, &Limits::default()).is_ok()
            });
            let arena = Bump::new();
            let mut batch = Vec::new();
            let events = vec![event.borrow_in(&arena); 20];
            if format.encode_batch(&events, &mut batch).is_err() {
                continue;
            }
            assert_decoding_is_bounded(
                &format!("{} batch {name}", format.name()),
                &batch,
                |arena| format.decode_batch(&batch, arena, &Limits::default()).is_ok(),
            );
        }
    }
}

#[test]
fn a_framed_batch_reserves_no_memory_for_events_that_cannot_follow() {
    let bytes = [&100_000u32.to_le_bytes()[..], &vec![0; 400_000]].concat();
    assert_decoding_is_bounded("a claim of events", &bytes, |arena| {
        notepack::Notepack.decode_batch(&bytes, arena, &Limits::default()).is_ok()
    });
}

#[test]
fn the_events_of_a_framed_batch_share_one_allowance_of_lists() {
    let event = with_its_id(OwnedEvent { tags: vec![vec![String::new(); 9_000]], ..golden() });
    let arena = Bump::new();
    let (one, mut bytes) = (event.borrow_in(&arena), Vec::new());
    notepack::Notepack.encode_batch(&vec![one; 100], &mut bytes).unwrap();
    let arena = Bump::new();
    let decoded = notepack::Notepack.decode_batch(&bytes, &arena, &Limits::default());
    assert_eq!(decoded.unwrap_err().reason, nostr::Reason::Limit(nostr::Limit::ListBytes));
    let mut few = Vec::new();
    notepack::Notepack.encode_batch(&[one; 4], &mut few).unwrap();
    notepack::Notepack.decode_batch(&few, &arena, &Limits::default()).unwrap();
}

#[test]
fn fields_between_tags_and_values_cost_no_memory() {
    // An unknown field after every tag, and after every value of a tag.
    let unknown = [0x40, 0];
    let tag = [&[0x2a, 0][..], &unknown].concat();
    let values = [&[0x0a, 0][..], &unknown].concat().repeat(60_000);
    let mut mixed = vec![0x2a];
    write_varint(values.len() as u64, &mut mixed);
    mixed.extend_from_slice(&values);
    for (name, fields) in [("tags", tag.repeat(100_000)), ("values", mixed.repeat(2))] {
        assert_decoding_is_bounded(name, &fields, |arena| {
            proto::Schema::Binary.decode(&fields, arena, &unlimited_counts()).is_ok()
        });
    }
}

#[test]
fn numbers_of_earlier_keys_and_values_expand_to_memory_in_proportion() {
    let [key, value] = ["ab".repeat(32), "x".repeat(64)];
    let tag = |item: &str| vec!["p".to_owned(), item.to_owned()];
    let follows = OwnedEvent { tags: vec![tag(&key); 9_000], ..golden() };
    let values = OwnedEvent { tags: vec![tag(&value); 9_000], ..golden() };
    let long = OwnedEvent { tags: vec![vec![value.clone(); 9_000]; 10], ..golden() };
    let quoted = OwnedEvent { content: format!("{key} ").repeat(10_000), ..golden() };
    for (name, event) in
        [("keys", follows), ("values", values), ("a long event", long), ("text", quoted)]
    {
        let (event, arena) = (with_its_id(event), Bump::new());
        let events: Vec<Event<'_>> = vec![event.borrow_in(&arena); 60];
        let mut bytes = Vec::new();
        wireproof::Wireproof.encode_batch(&events, &mut bytes).unwrap();
        assert_decoding_is_bounded(name, &bytes, |arena| {
            let back = wireproof::Wireproof.decode_batch(&bytes, arena, &unlimited_counts());
            assert_eq!(back, Ok(&events[..]), "{name}");
            true
        });
    }
}

#[test]
fn numbers_that_an_encoder_would_not_use_are_refused_before_they_expand() {
    // One key, then events of nothing but text with runs that name it.
    let (count, runs) = (400, 10_000);
    let mut heads = Vec::new();
    for event in 0..count {
        heads.extend_from_slice(if event == 0 { &[0x70] } else { &[0xc0, 0] });
        heads.extend_from_slice(&[0, 1, 0, 0x73]);
        write_varint(runs as u64, &mut heads);
        heads.extend_from_slice(&[1, 0xc0, 0].repeat(runs));
        heads.push(0);
    }
    let mut bytes = vec![0x81];
    for number in [count, 1, heads.len()] {
        write_varint(number as u64, &mut bytes);
    }
    bytes.extend_from_slice(&vec![7; 64 * count + 32]);
    bytes.extend_from_slice(&heads);
    bytes.extend_from_slice(&vec![b'-'; count * runs]);
    assert_decoding_is_bounded("runs", &bytes, |arena| {
        let result = wireproof::Wireproof.decode_batch(&bytes, arena, &unlimited_counts());
        let reason = result.unwrap_err().reason;
        assert_eq!(reason, nostr::Reason::Limit(nostr::Limit::ListBytes));
        false
    });
}

#[test]
fn escaped_text_takes_memory_in_proportion() {
    let json = |tags: &str| format!("{{\"tags\":[{tags}[]],");
    for (name, tags) in [
        ("short values", format!("[{}\"\"],", "\"\\n\",".repeat(9_000)).repeat(10)),
        ("tags of a short value", "[\"\\n\"],".repeat(9_000)),
        ("empty tags", "[],".repeat(9_900)),
    ] {
        let text = json(&tags);
        assert_decoding_is_bounded(name, text.as_bytes(), |arena| {
            Format::Json.decode(text.as_bytes(), arena, &Limits::default()).is_ok()
        });
    }
}

/// Tags within the default limits whose items take few bytes in one of the formats.
fn tiny_lists() -> Vec<(&'static str, Vec<Vec<String>>)> {
    let values = |value: &str, count| vec![value.to_owned(); count];
    vec![
        ("empty tags", vec![vec![]; 10_000]),
        ("empty values", vec![values("", 10_000); 20]),
        ("tags of an empty value", vec![values("", 1); 10_000]),
        ("tags of two short values", vec![values("t", 2); 10_000]),
        ("words", vec![vec!["e".to_owned(), "root".to_owned()]; 10_000]),
        ("numbered values", (0..10_000).map(|at| vec![format!("{at:04x}")]).collect()),
    ]
}

/// Limits whose counts are beyond the tests.
fn unlimited_counts() -> Limits {
    let mut limits = Limits::default();
    limits.tags = usize::MAX;
    limits.tag_values = usize::MAX;
    limits
}

fn assert_decoding_is_bounded(name: &str, bytes: &[u8], decode: impl FnOnce(&Bump) -> bool) {
    let arena = Bump::new();
    decode(&arena);
    let (taken, max) = (arena.allocated_bytes(), 16 * bytes.len() + (2 << 20));
    assert!(taken <= max, "{name}: {taken} bytes for {}", bytes.len());
}
