//! Decoding is the inverse of encoding for any event, and edge cases have an exact outcome in every
//! format.

use bumpalo::Bump;
use nostr::{EncodeError, Event, OwnedEvent, verify_many};
use nostr_formats::Format;
use proptest::prelude::*;

use crate::made;
use crate::made::{encoded, event, raised_limits, there_and_back, with_its_id};

proptest! {
    #[test]
    fn every_event_that_a_format_can_hold_round_trips(event in any_event()) {
        for format in Format::ALL {
            if let Ok(back) = there_and_back(*format, &event) {
                prop_assert_eq!(&back, &event, "{}", format.name());
            }
        }
    }

    #[test]
    fn an_event_encodes_equally_from_text_and_from_digits(event in any_event()) {
        // A value that one format read as bytes is written by the next as if it were text.
        let arena = Bump::new();
        let plain = event.borrow_in(&arena);
        for one in Format::ALL {
            let Ok(bytes) = encoded(*one, &plain) else { continue };
            let read = one.decode(&bytes, &arena, &raised_limits()).unwrap();
            for other in Format::ALL {
                prop_assert_eq!(
                    encoded(*other, &read),
                    encoded(*other, &plain),
                    "{} from {}",
                    other.name(),
                    one.name()
                );
            }
        }
    }

    #[test]
    fn batches_that_a_format_holds_come_back(events in proptest::collection::vec(any_event(), 0..6)) {
        let arena = Bump::new();
        let events: Vec<Event<'_>> = events.iter().map(|event| event.borrow_in(&arena)).collect();
        for format in Format::ALL {
            let mut bytes = Vec::new();
            let singly = events.iter().all(|event| encoded(*format, event).is_ok());
            prop_assert_eq!(format.encode_batch(&events, &mut bytes).is_ok(), singly);
            if singly {
                let back = format.decode_batch(&bytes, &arena, &raised_limits());
                prop_assert_eq!(back, Ok(&events[..]), "{}", format.name());
            }
        }
    }

    #[test]
    fn many_are_judged_as_each_is(events in proptest::collection::vec(any_event(), 0..6)) {
        let arena = Bump::new();
        let events: Vec<Event<'_>> = events.iter().map(|event| event.borrow_in(&arena)).collect();
        let singly: Vec<_> = events.iter().map(Event::verify).collect();
        prop_assert_eq!(verify_many(&events), singly);
    }
}

fn any_event() -> impl Strategy<Value = OwnedEvent> {
    let text = prop_oneof![
        "[ -~]{0,150}",
        "[0-9a-f]{0,70}",
        "[0-9a-fA-F]{0,20}",
        "(x|[0-9a-f]{30,35}|[0-9a-f]{64}| ){0,5}",
        "(?s).{0,20}",
        proptest::sample::select(&["e", "p", "t", "a", "", "root", "wss://nos.lol/"][..])
            .prop_map(str::to_owned),
    ];
    let tags = proptest::collection::vec(proptest::collection::vec(text.clone(), 0..7), 0..8);
    let keys = (any::<[u8; 32]>(), any::<[u8; 32]>(), any::<[u8; 32]>());
    (any::<i64>(), any::<u16>(), tags, text, keys).prop_map(
        |(created_at, kind, tags, content, (pubkey, first, second))| {
            let mut sig = [0; 64];
            sig[..32].copy_from_slice(&first);
            sig[32..].copy_from_slice(&second);
            let id = [0; 32];
            made::with_its_id(OwnedEvent { id, pubkey, created_at, kind, tags, content, sig })
        },
    )
}

#[test]
fn every_edge_comes_back_or_is_refused_as_the_layout_demands() {
    let mut refused = Vec::new();
    for (name, event) in edges() {
        for format in Format::ALL {
            match there_and_back(*format, &event) {
                Ok(back) => assert!(back == event, "{}: {name}", format.name()),
                Err(error) => refused.push((name, format.name(), error.to_string())),
            }
        }
    }
    let expected = REFUSED.iter().flat_map(|(edge, formats, why)| {
        formats.iter().map(|name| (*edge, *name, (*why).to_owned()))
    });
    assert_eq!(refused, expected.collect::<Vec<_>>());
}

#[test]
fn a_format_without_ids_refuses_those_that_are_wrong_and_no_other_does() {
    let mut event = event(&[], "hello");
    event.id[0] ^= 1;
    for format in Format::ALL {
        match there_and_back(*format, &event) {
            Ok(back) => assert_eq!(back, event, "{}", format.name()),
            Err(error) => assert_eq!((format.name(), error), ("wireproof", EncodeError::Id)),
        }
    }
}

fn edges() -> Vec<(&'static str, OwnedEvent)> {
    let (hex, long_hex) = ("ab".repeat(32), "ab".repeat(32 << 10));
    let [x32k, x64k] = [32_768, 65_536].map(|len| "x".repeat(len));
    let large = "\u{e9}x ".repeat((1 << 20) / 4);
    let at = |created_at| with_its_id(OwnedEvent { created_at, ..event(&[], "") });
    let of_kind = |kind| with_its_id(OwnedEvent { kind, ..event(&[], "") });
    let of_tags = |tags| with_its_id(OwnedEvent { tags, ..event(&[], "") });
    let values = |count| of_tags(vec![vec!["x".to_owned(); count]]);
    vec![
        ("hexadecimal in upper case", event(&[&["e", &hex.to_uppercase()]], "")),
        ("hexadecimal in both cases", event(&[&["e", "dEadBeefdEadBeef"]], "")),
        ("an odd number of digits", event(&[&["e", &hex[1..], "abc", "a"]], "")),
        ("few digits", event(&[&["be", "cafe", "2024", "beefca", "beefbeef"]], "")),
        ("content of digits", event(&[], &hex)),
        ("content of digits in upper case", event(&[], &hex.to_uppercase())),
        ("an empty value", event(&[&[""], &["e", "", ""]], "")),
        ("a tag of nothing", event(&[&[], &["x"], &[]], "")),
        ("control characters", event(&[&["x", "\0\u{1}\u{1f}\u{7f}"]], "a\0b\u{8}\u{c}\n\r\t")),
        ("quotes and what escapes them", event(&[&["x", "\\\"\\/\\u0041"]], "\\\"/")),
        ("every plane of Unicode", event(&[&["\u{e9}\u{4e16}"]], "\u{1f30d}\u{10ffff}\u{2028}")),
        ("1 MiB of content", event(&[], &large)),
        ("the first second", at(i64::MIN)),
        ("a second before 1970", at(-1)),
        ("the second zero", at(0)),
        ("the last second", at(i64::MAX)),
        ("the kind zero", of_kind(0)),
        ("the last kind", of_kind(u16::MAX)),
        ("255 values in a tag", values(255)),
        ("256 values in a tag", values(256)),
        ("70,000 values in a tag", values(70_000)),
        ("70,000 tags", of_tags(vec![vec!["x".to_owned()]; 70_000])),
        ("a value of 32,767 bytes", event(&[&["x", &x32k[1..]]], "")),
        ("a value of 32,768 bytes", event(&[&["x", &x32k]], "")),
        ("a value of 65,536 bytes", event(&[&["x", &x64k]], "")),
        ("a value of 65,536 digits", event(&[&["x", &long_hex]], "")),
    ]
}

/// The events that a layout cannot hold, with the formats and their errors.
const REFUSED: &[(&str, &[&str], &str)] = &[
    ("control characters", NOTE, "1 NUL bytes in a value: this format holds at most 0"),
    ("the first second", NOTE, "this format cannot hold `created_at` -9223372036854775808"),
    ("a second before 1970", NOTE, "this format cannot hold `created_at` -1"),
    ("256 values in a tag", OF_ONE_BYTE, "256 values in a tag: this format holds at most 255"),
    ("70,000 values in a tag", OF_ONE_BYTE, "70000 values in a tag: this format holds at most 255"),
    ("70,000 values in a tag", NOTE, "70000 values in a tag: this format holds at most 65535"),
    ("70,000 tags", ENVELOPE, "70000 tags: this format holds at most 65535"),
    ("70,000 tags", NOTE, "70000 tags: this format holds at most 65535"),
    (
        "a value of 32,768 bytes",
        ENVELOPE,
        "32768 bytes in a value: this format holds at most 32767",
    ),
    (
        "a value of 65,536 bytes",
        ENVELOPE,
        "65536 bytes in a value: this format holds at most 32767",
    ),
    (
        "a value of 65,536 digits",
        ENVELOPE,
        "32768 bytes in a value: this format holds at most 32767",
    ),
];

const NOTE: &[&str] = &["ndb-note"];
const ENVELOPE: &[&str] = &["capnp", "capnp-packed"];

/// The formats that store the number of a tag's values in one byte.
const OF_ONE_BYTE: &[&str] = &["dannypack", "capnp", "capnp-packed"];
