//! What layouts stumble over: the exact outcome of each case in each format.
//!
//! What [`REFUSED`] does not list comes back as it was.

use wireproof::nostr::formats::Format;
use wireproof::nostr::{EncodeError, OwnedEvent};

use crate::made::{event, there_and_back, with_its_id};

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

/// The cases that a layout has no place for: in which formats, and what they say.
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

/// Those that tell in one byte how many values a tag has.
const OF_ONE_BYTE: &[&str] = &["dannypack", "capnp", "capnp-packed"];
