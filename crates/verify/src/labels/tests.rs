//! The judge compared with an oracle: a second, naive encoder, and the rules once more, one label at a time.

use std::collections::HashMap;

use crypto::{Curve, SecretKey};

use super::*;
use crate::commit::tests::high_s_twin;

const SRC: &str = "did:web:labels.example.com";
const OTHER: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";
/// 2026-06-01T00:00:00Z.
const NOW: i64 = 1_780_272_000_000_000;

/// A value of an entry of a made label.
#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Text(String),
    Number(i64),
    Flag(bool),
    Null,
    Bytes(Vec<u8>),
}

fn text(text: &str) -> Entry {
    Entry::Text(text.to_owned())
}

/// A head of CBOR in its shortest form.
fn head(major: u8, number: u64) -> Vec<u8> {
    let major = major << 5;
    match number {
        0..=23 => vec![major | number as u8],
        24..=0xff => vec![major | 24, number as u8],
        _ => [&[major | 25][..], &(number as u16).to_be_bytes()].concat(),
    }
}

/// The naive encoder: entries sorted by length and bytes of their keys.
fn encode(entries: &[(&str, Entry)]) -> Vec<u8> {
    let mut sorted = entries.to_vec();
    sorted.sort_by(|a, b| a.0.len().cmp(&b.0.len()).then(a.0.as_bytes().cmp(b.0.as_bytes())));
    encode_in_order(&sorted)
}

fn encode_in_order(entries: &[(&str, Entry)]) -> Vec<u8> {
    let mut bytes = head(5, entries.len() as u64);
    for (key, value) in entries {
        bytes.extend(head(3, key.len() as u64));
        bytes.extend_from_slice(key.as_bytes());
        match value {
            Entry::Text(text) => {
                bytes.extend(head(3, text.len() as u64));
                bytes.extend_from_slice(text.as_bytes());
            }
            Entry::Number(number @ 0..) => bytes.extend(head(0, *number as u64)),
            Entry::Number(number) => bytes.extend(head(1, (-1 - number) as u64)),
            Entry::Flag(flag) => bytes.push(if *flag { 0xf5 } else { 0xf4 }),
            Entry::Null => bytes.push(0xf6),
            Entry::Bytes(data) => {
                bytes.extend(head(2, data.len() as u64));
                bytes.extend_from_slice(data);
            }
        }
    }
    bytes
}

/// A generator of numbers: xorshift.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}

/// The keys of the test.
struct Keys {
    current: SecretKey,
    earlier: SecretKey,
    other: SecretKey,
    stranger: SecretKey,
    known: HashMap<Box<str>, SourceKeys>,
}

impl Keys {
    fn new(curve: Curve) -> Self {
        let secret = |byte| SecretKey::from_bytes(curve, &[byte; 32]).unwrap();
        let [current, earlier, other, stranger] = [7, 8, 9, 10].map(secret);
        let public = |key: &SecretKey| *key.public_key().as_compressed();
        let keys = SourceKeys { current: Some(public(&current)), earlier: vec![public(&earlier)] };
        let known = [
            (SRC, keys),
            (OTHER, SourceKeys::of(public(&other))),
            ("did:web:keyless.example", SourceKeys::default()),
        ];
        let known = known.into_iter().map(|(did, keys)| (did.into(), keys)).collect();
        Self { current, earlier, other, stranger, known }
    }
}

/// A made label, and the verdict of the oracle.
struct Case {
    bytes: Vec<u8>,
    service: Option<&'static str>,
    expected: Result<Standing, &'static str>,
    what: String,
}

/// Fields that are well formed.
fn good_fields(draw: &mut Draw) -> Vec<(&'static str, Entry)> {
    let uris = [
        "did:plc:ewvi7nxzyoun6zhxrhs64oiz",
        "at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/app.bsky.feed.post/3k",
        "https://example.com/page?a=b#c",
    ];
    let mut fields = vec![
        ("src", text(draw.pick(&[SRC, SRC, SRC, OTHER]))),
        ("uri", text(draw.pick(&uris))),
        ("val", text(draw.pick(&["spam", "!warn", "x", "ünï-cødé ☃"]))),
        ("cts", text(draw.pick(&["2026-01-01T00:00:00.000Z", "2025-12-31T23:59:59.123456+01:00"]))),
        ("ver", Entry::Number(1)),
    ];
    if draw.one_in(10) {
        fields[2].1 = text(&"v".repeat(1 + draw.below(128) as usize));
    }
    if draw.one_in(3) {
        let cid = "bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454";
        fields.push(("cid", text(cid)));
    }
    if draw.one_in(3) {
        fields.push(("neg", Entry::Flag(draw.one_in(2))));
    }
    if draw.one_in(3) {
        let exp = draw.pick(&[
            "2026-05-31T23:59:59Z",
            "2026-06-01T00:00:00Z",
            "2026-06-01T00:00:00.001Z",
        ]);
        fields.push(("exp", text(exp)));
    }
    fields
}

/// The order in which rules are judged: kinds while the bytes are read, absent fields, the version, the signature's form, syntax.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Kind,
    Absent,
    Version,
    Form,
    Syntax,
}

/// Replaces a field with one that breaks a rule; returns the code of that rule.
fn break_field(draw: &mut Draw, fields: &mut Vec<(&'static str, Entry)>) -> (Stage, &'static str) {
    let faults: [(&str, Option<Entry>, &str); 27] = [
        ("src", None, "label/missing"),
        ("uri", None, "label/missing"),
        ("val", None, "label/missing"),
        ("cts", None, "label/missing"),
        ("ver", None, "label/version"),
        ("ver", Some(Entry::Number(0)), "label/version"),
        ("ver", Some(Entry::Number(2)), "label/version"),
        ("ver", Some(Entry::Number(-1)), "label/version"),
        ("ver", Some(text("1")), "label/field"),
        ("ver", Some(Entry::Null), "label/field"),
        ("src", Some(text("labels.example.com")), "label/field"),
        ("src", Some(Entry::Null), "label/field"),
        ("uri", Some(text("no uri")), "label/field"),
        ("uri", Some(text("")), "label/field"),
        ("uri", Some(Entry::Number(3)), "label/field"),
        ("cid", Some(text("no cid")), "label/field"),
        ("cid", Some(Entry::Null), "label/field"),
        ("val", Some(text("")), "label/value"),
        ("val", Some(text(&"v".repeat(129))), "label/value"),
        ("val", Some(text(&"é".repeat(65))), "label/value"),
        ("neg", Some(Entry::Null), "label/field"),
        ("neg", Some(Entry::Number(1)), "label/field"),
        ("cts", Some(text("yesterday")), "label/field"),
        ("cts", Some(text("2026-01-01")), "label/field"),
        ("exp", Some(text("2026-02-30T00:00:00Z")), "label/field"),
        ("exp", Some(Entry::Null), "label/field"),
        ("exp", Some(Entry::Number(1)), "label/field"),
    ];
    let (name, entry, code) = draw.pick(&faults);
    let stage = match (code, &entry) {
        ("label/field", Some(Entry::Text(_))) if name != "ver" => Stage::Syntax,
        ("label/field", _) => Stage::Kind,
        ("label/missing", _) => Stage::Absent,
        ("label/version", _) => Stage::Version,
        _ => Stage::Syntax,
    };
    fields.retain(|(key, _)| *key != name);
    fields.extend(entry.map(|entry| (name, entry)));
    (stage, code)
}

/// Makes a case. The oracle knows the verdict from how the label is made.
fn make(draw: &mut Draw, keys: &Keys, curve: Curve) -> Case {
    let mut fields = good_fields(draw);
    let broken = draw.one_in(4).then(|| break_field(draw, &mut fields));
    let src = fields.iter().find(|(key, _)| *key == "src").map(|(_, src)| src.clone());
    let is_other = src == Some(text(OTHER));
    let service = draw.pick(&[Some(SRC), Some(SRC), Some(OTHER), None]);
    let is_foreign = match service {
        Some(service) => src != Some(text(service)),
        None => false,
    };
    let right = if is_other { &keys.other } else { &keys.current };
    let refused = |code| if is_foreign { "label/source" } else { code };
    let mut signed = fields.clone();
    let mut what = "signed as it is";
    let (mut key, mut signature_code) = (right, None);
    if draw.one_in(2) {
        let wrong = Some(refused("signature/wrong"));
        match draw.below(7) {
            0 => (what, key, signature_code) = ("signed by a stranger", &keys.stranger, wrong),
            1 if !is_other => {
                let code = Some(refused("label/earlier-key"));
                (what, key, signature_code) = ("signed by an earlier key", &keys.earlier, code);
            }
            2 => {
                signed.push(("$type", text("com.atproto.label.defs#label")));
                (what, signature_code) = ("signed with $type", wrong);
            }
            3 => {
                signed.retain(|(key, _)| *key != "ver");
                signed.push(("sig", Entry::Null));
                (what, signature_code) = ("signed without a version and with null", wrong);
            }
            4 => {
                // Another reading of an absent `neg`: the best practice is to leave out what is false.
                let had = signed.iter().any(|(key, _)| *key == "neg");
                signed.retain(|(key, _)| *key != "neg");
                if !had {
                    signed.push(("neg", Entry::Flag(false)));
                }
                (what, signature_code) = ("signed with another neg", wrong);
            }
            5 => {
                signed.retain(|(key, _)| *key != "val");
                signed.push(("val", text("another-value")));
                (what, signature_code) = ("signed for another value", wrong);
            }
            _ => {
                signed.push(("note", text("unspecified")));
                (what, signature_code) = ("signed with an unspecified field", wrong);
            }
        }
    }
    let mut signature = key.sign(&encode(&signed));
    if signature_code.is_none() && draw.one_in(8) {
        let (altered, code) = alter(draw, curve, signature);
        (signature, signature_code) = (altered, Some(refused(code)));
        what = "with an altered signature";
    }
    let mut label = fields;
    let (sig, sig_code) = match draw.below(24) {
        0 => (None, Some((Stage::Form, "label/unsigned"))),
        1 => (Some(Entry::Bytes(signature[..63].to_vec())), LENGTH),
        2 => (Some(Entry::Bytes([&signature[..], &[0]].concat())), LENGTH),
        3 => (Some(text("c2ln")), Some((Stage::Kind, "label/field"))),
        4 => (Some(Entry::Null), Some((Stage::Kind, "label/field"))),
        _ => (Some(Entry::Bytes(signature.to_vec())), None),
    };
    label.extend(sig.map(|sig| ("sig", sig)));
    // Entries that are not of the specification are not signed, and do not count.
    for (name, entry) in [("$type", text("com.atproto.label.defs#label")), ("a", Entry::Null)] {
        if draw.one_in(4) {
            label.push((name, entry));
        }
    }
    let mut bytes = encode(&label);
    let mut cbor_code = None;
    if draw.one_in(16) {
        bytes = uncanonical(draw, &label, bytes);
        cbor_code = Some("label/cbor");
    }
    let first = broken.into_iter().chain(sig_code).min_by_key(|(stage, _)| *stage);
    let code = cbor_code.or(first.map(|(_, code)| code)).or(signature_code);
    let is_negation = label.iter().any(|(key, value)| *key == "neg" && *value == Entry::Flag(true));
    let has_passed = |exp: &Entry| *exp != text("2026-06-01T00:00:00.001Z");
    let is_expired = label.iter().any(|(key, value)| *key == "exp" && has_passed(value));
    let standing = match (is_negation, is_expired) {
        (true, _) => Standing::Negation,
        (false, true) => Standing::Expired,
        (false, false) => Standing::InForce,
    };
    let expected = code.map_or(Ok(standing), Err);
    Case { bytes, service, expected, what: format!("{what}: {label:?} served by {service:?}") }
}

const LENGTH: Option<(Stage, &str)> = Some((Stage::Form, "label/signature-length"));

/// A signature that is altered, and the code of the rule that it breaks.
fn alter(draw: &mut Draw, curve: Curve, mut signature: [u8; 64]) -> ([u8; 64], &'static str) {
    match draw.below(4) {
        0 => (high_s_twin(curve, signature), "signature/high-s"),
        1 => ([0; 64], "signature/range"),
        2 => {
            signature[32..].fill(0);
            (signature, "signature/range")
        }
        _ => {
            // The lowest bits of r: it stays in range.
            signature[31] ^= 1 << draw.below(8);
            (signature, "signature/wrong")
        }
    }
}

/// The same label in bytes that are not canonical.
fn uncanonical(draw: &mut Draw, label: &[(&str, Entry)], bytes: Vec<u8>) -> Vec<u8> {
    match draw.below(4) {
        0 => {
            let mut twice = label.to_vec();
            twice.sort_by_key(|(key, _)| (key.len(), *key));
            twice.push(twice[twice.len() - 1].clone());
            encode_in_order(&twice)
        }
        1 => {
            let mut reversed = label.to_vec();
            reversed.sort_by_key(|(key, _)| std::cmp::Reverse((key.len(), *key)));
            encode_in_order(&reversed)
        }
        2 => [&[0xb8, bytes[0] & 0x1f][..], &bytes[1..]].concat(),
        _ => [&bytes[..], &[0x00]].concat(),
    }
}

/// Whether two codes name the same verdict: where a label breaks two rules, the oracle does not know which is seen first.
fn agrees(expected: &Result<Standing, &str>, found: &Result<Standing, &str>) -> bool {
    match (expected, found) {
        (Err("label/cbor"), Err(code)) => matches!(*code, "label/cbor" | "label/field"),
        _ => expected == found,
    }
}

#[test]
fn no_made_label_is_falsely_accepted_or_refused() {
    let (mut accepted, mut refused, mut codes) = (0, 0, HashMap::<&str, u32>::new());
    for curve in Curve::ALL {
        let keys = Keys::new(curve);
        let mut draw = Draw(0x5eed_0000_0000_0051 ^ curve as u64);
        let mut judge = LabelJudge::new([1; 16], false);
        for batch in 0..80 {
            let cases: Vec<Case> =
                (0..1 + batch * 2).map(|_| make(&mut draw, &keys, curve)).collect();
            let labels: Vec<ReceivedLabel<'_>> = cases
                .iter()
                .map(|case| ReceivedLabel { bytes: &case.bytes, service: case.service })
                .collect();
            let outcomes = judge.judge(&labels, &keys.known, NOW);
            for (case, outcome) in cases.iter().zip(&outcomes) {
                let found = outcome.map(|judged| judged.standing).map_err(|why| why.code());
                assert!(
                    agrees(&case.expected, &found),
                    "{:?} but {found:?}: {}",
                    case.expected,
                    case.what
                );
                *if found.is_ok() { &mut accepted } else { &mut refused } += 1;
                *codes.entry(found.map_or_else(|code| code, Standing::code)).or_default() += 1;
            }
        }
    }
    assert!(accepted >= 2_000 && refused >= 2_000, "{accepted} accepted, {refused} refused");
    let expected = [
        "verified",
        "verified/negation",
        "verified/expired",
        "label/cbor",
        "label/field",
        "label/missing",
        "label/version",
        "label/unsigned",
        "label/signature-length",
        "label/value",
        "label/source",
        "label/earlier-key",
        "signature/wrong",
        "signature/high-s",
        "signature/range",
    ];
    for code in expected {
        assert!(codes.get(code).is_some_and(|count| *count >= 10), "{code}: {codes:?}");
    }
}

/// A label of `src` with this value, signed.
fn signed(key: &SecretKey, src: &str, cts: &str, neg: Option<bool>) -> Vec<u8> {
    let unsigned = atproto::label::UnsignedLabel {
        src,
        uri: OTHER,
        val: "spam",
        cts,
        neg,
        ..Default::default()
    };
    unsigned.with_signature(&key.sign(&unsigned.to_bytes()))
}

fn code_of(
    judge: &mut LabelJudge,
    bytes: &[u8],
    service: Option<&str>,
    keys: &impl LabelKeys,
) -> &'static str {
    let outcome = judge.judge(&[ReceivedLabel { bytes, service }], keys, NOW);
    outcome[0].map_or_else(|why| why.code(), |judged| judged.standing.code())
}

#[test]
fn a_label_with_any_flipped_bit_is_refused_or_says_the_same() {
    let keys = Keys::new(Curve::K256);
    let bytes = signed(&keys.current, SRC, "2026-01-01T00:00:00Z", None);
    let forged: Vec<Vec<u8>> = (0..bytes.len() * 8)
        .map(|at| {
            let mut forged = bytes.clone();
            forged[at / 8] ^= 1 << (at % 8);
            forged
        })
        .collect();
    let labels: Vec<_> =
        forged.iter().map(|bytes| ReceivedLabel { bytes, service: Some(SRC) }).collect();
    let outcomes = LabelJudge::new([1; 16], true).judge(&labels, &keys.known, NOW);
    assert!(outcomes.iter().all(Result::is_err));
}

#[test]
fn a_source_without_a_key_or_that_is_unknown_proves_nothing() {
    let keys = Keys::new(Curve::K256);
    let mut judge = LabelJudge::new([1; 16], true);
    for src in ["did:web:keyless.example", "did:web:unknown.example"] {
        let label = signed(&keys.current, src, "2026-01-01T00:00:00Z", None);
        assert_eq!(code_of(&mut judge, &label, Some(src), &keys.known), "signature/no-key");
        assert_eq!(code_of(&mut judge, &label, None, &keys.known), "signature/no-key");
        assert_eq!(code_of(&mut judge, &label, Some(SRC), &keys.known), "label/source");
    }
}

#[test]
fn a_label_of_another_source_counts_if_that_source_signed_it() {
    let keys = Keys::new(Curve::P256);
    let mut judge = LabelJudge::new([1; 16], false);
    let label = signed(&keys.other, OTHER, "2026-01-01T00:00:00Z", None);
    assert_eq!(code_of(&mut judge, &label, Some(SRC), &keys.known), "verified");
    // The service signs it with its own key.
    let forged = signed(&keys.current, OTHER, "2026-01-01T00:00:00Z", None);
    assert_eq!(code_of(&mut judge, &forged, Some(SRC), &keys.known), "label/source");
}

#[test]
fn an_earlier_key_counts_only_by_request() {
    let keys = Keys::new(Curve::K256);
    let label = signed(&keys.earlier, SRC, "2026-01-01T00:00:00Z", None);
    for (accept, code) in [(false, "label/earlier-key"), (true, "verified")] {
        let mut judge = LabelJudge::new([1; 16], accept);
        assert_eq!(code_of(&mut judge, &label, Some(SRC), &keys.known), code);
    }
}

#[test]
fn the_label_that_was_created_last_counts_in_whatever_order_labels_come() {
    let keys = Keys::new(Curve::K256);
    let at = |day: u32| format!("2026-01-{day:02}T00:00:00Z");
    let steps = [(1, None), (2, Some(true)), (3, Some(false)), (4, Some(true))];
    let labels: Vec<Vec<u8>> =
        steps.iter().map(|(day, neg)| signed(&keys.current, SRC, &at(*day), *neg)).collect();
    let received: Vec<_> =
        labels.iter().map(|bytes| ReceivedLabel { bytes, service: Some(SRC) }).collect();
    let outcomes = LabelJudge::new([1; 16], false).judge(&received, &keys.known, NOW);
    let judged: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    for last in 1..=judged.len() {
        let mut orders = vec![(0..last).collect::<Vec<_>>()];
        orders.push((0..last).rev().collect());
        for order in orders {
            let mut set = LabelSet::new(1);
            for at in &order {
                set.apply(&judged[*at], *at as u64).unwrap();
            }
            let expected = usize::from(last % 2 == 1);
            assert_eq!(set.in_force(NOW).len(), expected, "{order:?}");
        }
    }
}

#[test]
fn of_labels_with_the_same_time_the_last_number_counts_and_a_full_set_takes_no_other() {
    let keys = Keys::new(Curve::K256);
    let labels = [
        signed(&keys.current, SRC, "2026-01-01T00:00:00Z", None),
        signed(&keys.current, SRC, "2026-01-01T00:00:00Z", Some(true)),
        signed(&keys.other, OTHER, "2026-01-01T00:00:00Z", None),
    ];
    let received: Vec<_> =
        labels.iter().map(|bytes| ReceivedLabel { bytes, service: None }).collect();
    let outcomes = LabelJudge::new([1; 16], false).judge(&received, &keys.known, NOW);
    let judged: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    let mut set = LabelSet::new(1);
    assert!(set.is_empty());
    assert_eq!(set.apply(&judged[1], 2), Ok(LabelChange::New));
    assert_eq!(set.apply(&judged[0], 1), Ok(LabelChange::Outdated));
    assert_eq!(set.in_force(NOW), []);
    assert_eq!(set.apply(&judged[0], 3), Ok(LabelChange::Replaced));
    assert_eq!(set.in_force(NOW), [LabelPlace { src: SRC, uri: OTHER, val: "spam" }]);
    assert_eq!(set.apply(&judged[2], 4), Err(SetFull(1)));
    assert_eq!(set.len(), 1);
}
