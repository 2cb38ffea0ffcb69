//! Tests of a codec's claimed checks with hand-made events that break one rule each.
//!
//! [`assert_claims`] is the test of every runner, so that `describe` cannot drift from the libraries' behaviour.

use super::work::decode_and_count;
use super::{Codec, EventCounts, Fields, Validate};
use crate::{BoxError, catch_panic};

/// Compares the claims with the rejections, and the counts of a valid event with its content.
///
/// # Panics
///
/// When a claim is false, when a check that is made is not claimed, or when the valid event is rejected.
pub fn assert_claims<C: Codec>() {
    let good = encoded::<C>(LINE).expect("the event can be encoded");
    let bad = bad_events(C::FORMAT, &good);
    assert_eq!(counts_of::<C>(&good), Some(counts_of_line()), "{}", C::FORMAT);
    for (check, samples) in &bad {
        let accepted = samples.iter().filter(|bytes| counts_of::<C>(bytes).is_some()).count();
        println!("{}: {check}: accepted {accepted}/{}", C::FORMAT, samples.len());
        assert_eq!(accepted == 0, C::CHECKS.contains(check), "{}: {check}", C::FORMAT);
    }
    for claim in C::CHECKS {
        assert!(bad.iter().any(|(check, _)| check == claim), "{}: {claim} is untested", C::FORMAT);
    }
    assert_batches::<C>();
}

/// Compares single fields with a valid event's fields.
///
/// # Panics
///
/// When one differs.
pub fn assert_fields<F: Fields>() {
    let good = encoded::<F>(LINE).expect("the event can be encoded");
    let (kind, pubkey) = (u16::MAX, [0xcd; 32]);
    assert_eq!(F::kind(&good).expect("a kind"), kind);
    assert_eq!(F::pubkey(&good).expect("a pubkey"), pubkey);
    assert_eq!(F::both(&good).expect("both"), (kind, pubkey));
    for (check, samples) in bad_events(F::FORMAT, &good) {
        let is_read = |bytes: &Vec<u8>| F::kind(bytes).is_ok() || F::both(bytes).is_ok();
        assert!(check != "kind-range" || !samples.iter().any(is_read), "{}", F::FORMAT);
    }
}

/// Compares verdicts of a valid event, a wrong id and a wrong signature.
///
/// # Panics
///
/// When one differs.
pub fn assert_verdicts<V: Validate>() {
    let wrong_id = VALID.replace("good morning", "good night");
    let wrong_sig = VALID.replace("8916", "8917");
    for (line, verdict) in [(VALID, true), (&wrong_id, false), (&wrong_sig, false)] {
        let bytes = encoded::<V>(line).expect("the event can be encoded");
        assert_eq!(catch_panic(|| V::validate(&bytes)).unwrap_or(false), verdict, "{line}");
    }
}

fn assert_batches<C: Codec>() {
    let events = [C::parse(LINE).expect("an event"), C::parse(LINE).expect("an event")];
    let mut bytes = Vec::new();
    C::encode_batch(&events, &mut bytes).expect("a list");
    let mut counts = EventCounts::default();
    C::decode_batch(&bytes).expect("a list").iter().for_each(|event| C::count(event, &mut counts));
    let mut twice = counts_of_line();
    add_line(&mut twice);
    assert_eq!(counts, twice, "{}", C::FORMAT);
}

/// The bytes of a line's event, made by the codec itself.
fn encoded<C: Codec>(line: &str) -> Result<Vec<u8>, BoxError> {
    let mut bytes = Vec::new();
    C::encode(&C::parse(line)?, &mut bytes)?;
    Ok(bytes)
}

fn counts_of<C: Codec>(bytes: &[u8]) -> Option<EventCounts> {
    let mut counts = EventCounts::default();
    catch_panic(|| decode_and_count::<C>(bytes, &mut counts)).ok()?;
    Some(counts)
}

fn counts_of_line() -> EventCounts {
    let mut counts = EventCounts::default();
    add_line(&mut counts);
    counts
}

fn add_line(counts: &mut EventCounts) {
    counts.event(u16::MAX, 1_700_000_123, "h\u{e9}llo");
    counts.texts(["e", &"ab".repeat(32), "n\u{f6}pe", "DEADBEEF", "deadbeef", ""]);
}

type Samples = Vec<(&'static str, Vec<Vec<u8>>)>;

/// Events that break the rule of one check each, where the format has such a rule.
fn bad_events(format: &str, good: &[u8]) -> Samples {
    let changed = |from: &[u8], to: &[u8]| changed(good, from, to);
    let after = |tail: &[u8]| [good, tail].concat();
    let utf8 = vec![changed(b"\xc3\xa9", b"\xff\xa9"), changed(b"\xc3\xb6", b"\xff\xb6")];
    let mut samples: Samples = vec![("utf8", utf8)];
    let mut add = |check, events| samples.push((check, events));
    let upper = || [b"abab", b"cdcd", b"efef"].map(|it| changed(it, &it.to_ascii_uppercase()));
    match format {
        "json" => {
            add("trailing-bytes", vec![after(b"x"), after(b"{}")]);
            add("hex-lower", upper().into());
            add("kind-range", vec![changed(b"65535", b"65536"), changed(b"65535", b"-1")]);
            let twice = br#""kind":1,"kind":65535"#;
            add("duplicate-fields", vec![changed(br#""kind":65535"#, twice)]);
        }
        "proto-string" | "proto-binary" | "proto-binary-hex" => {
            add("trailing-bytes", vec![after(b"\x78\x01")]);
            if format == "proto-string" {
                add("hex-lower", upper().into());
            }
            add("kind-range", vec![changed(b"\x20\xff\xff\x03", b"\x20\x80\x80\x04")]);
            add("minimal-heads", vec![changed(b"\x20\xff\xff\x03", b"\x20\xff\xff\x83\x00")]);
            add("duplicate-fields", vec![after(b"\x20\x01")]);
        }
        "notepack" => {
            add("trailing-bytes", vec![after(b"\0")]);
            add("kind-range", vec![changed(b"\xff\xff\x03", b"\x80\x80\x04")]);
            add("minimal-heads", vec![changed(b"\xff\xff\x03", b"\xff\xff\x83\x00")]);
        }
        "msgpack" => {
            add("trailing-bytes", vec![after(b"\0")]);
            let kind = b"\xcd\xff\xff";
            add("kind-range", vec![changed(kind, b"\xce\0\x01\0\0"), changed(kind, b"\xff")]);
            add("minimal-heads", vec![changed(kind, b"\xce\0\0\xff\xff")]);
        }
        _ => {
            add("trailing-bytes", vec![after(b"\0")]);
            let kind = b"\x19\xff\xff";
            add("kind-range", vec![changed(kind, b"\x1a\0\x01\0\0"), changed(kind, b"\x20")]);
            let text = [b"\x66".as_slice(), "h\u{e9}llo".as_bytes()].concat();
            let longer = [b"\x78\x06".as_slice(), "h\u{e9}llo".as_bytes()].concat();
            add("minimal-heads", vec![changed(kind, b"\x1a\0\0\xff\xff"), changed(&text, &longer)]);
            if format != "cbor-packed" {
                let key = if format == "cbor-intkey" { b"\x03".as_slice() } else { b"\x64kind" };
                let (_, entries) = good.split_first().expect("a map");
                add("duplicate-fields", vec![[b"\xa8", entries, key, kind].concat()]);
            }
        }
    }
    samples
}

/// With the first `from` replaced.
fn changed(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from);
    let at = at.unwrap_or_else(|| panic!("{from:02x?} is not in {bytes:02x?}"));
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

/// An event that is well formed but not valid.
const LINE: &str = concat!(
    r#"{"id":"abababababababababababababababababababababababababababababababab","#,
    r#""pubkey":"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd","#,
    r#""created_at":1700000123,"kind":65535,"tags":[["e","#,
    r#""abababababababababababababababababababababababababababababababab","#,
    r#""nöpe","DEADBEEF","deadbeef",""]],"content":"héllo","sig":"#,
    r#""efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef"#,
    r#"efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef"}"#,
);

/// A valid event.
const VALID: &str = concat!(
    r#"{"id":"e20978737ab7cd36eca300a65f11738176123f2e0c23054544b18fe493e2aa1a","#,
    r#""pubkey":"c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5","#,
    r#""created_at":1698632753,"kind":1,"tags":[["t","gm"]],"content":"good morning","sig":"#,
    r#""5687c1a97066c349cb3bde0c0719fd1652a13403ba6aca7557b646307ee67185"#,
    r#"28cd86989db08bf6a7fd04bea0b0b87c1dd1b78c2d21b80b80eebab7f40b8916"}"#,
);
