use std::cell::{Cell, RefCell};

use proptest::prelude::*;

use super::*;
use crate::cid::{Cid, CidRef, Codec};

/// Asserts that every way of reading `input` agrees with the reference.
fn assert_matches_reference(input: &[u8]) {
    let expected = reference::check(input);
    assert_eq!(validate(input), expected.map(drop), "validate {input:02x?}");

    let mut counts = ItemCounts::default();
    assert_eq!(count(input, &mut counts), expected.map(drop), "count {input:02x?}");
    assert_eq!(counts, expected.unwrap_or_default());

    let arena = Arena::new();
    let decoded = decode(input, &arena);
    assert_eq!(decoded.map(drop), expected.map(drop), "decode {input:02x?}");
    if let Ok(value) = decoded {
        let mut counts = ItemCounts::default();
        counts.add(&value);
        assert_eq!(counts, expected.unwrap(), "values of {input:02x?}");
        assert_eq!(encode(&value).as_deref(), Ok(input), "encoding is the inverse of decoding");
    }

    let known = known_keys();
    let keys = RefCell::default();
    let unread = Cell::default();
    let sink = Proposing { known: &known, keys: &keys, unread: &unread };
    let built = build_prefix(input, sink, &mut ());
    assert_eq!(built, validate_prefix(input), "proposed keys {input:02x?}");
    if let Ok(value) = decoded {
        let mut expected = Vec::new();
        add_keys(&value, &mut expected);
        assert_eq!(keys.into_inner(), expected, "proposed keys {input:02x?}");
    }
}

/// Keys of all lengths, among them the keys of the tests of key order.
fn known_keys() -> Vec<KnownKey> {
    let texts = [
        "",
        "a",
        "b",
        "aa",
        "ab",
        "ba",
        "bbb",
        "kind",
        "aaaaaaa",
        "abbbbbb",
        "aaaaaaab",
        "abababab",
        "bbbbbbbbb",
    ];
    let long = [22, 23, 24].map(|len| "b".repeat(len));
    texts.into_iter().chain(long.iter().map(|text| &**text)).filter_map(KnownKey::new).collect()
}

/// The keys of all maps in `value`; a key comes after the keys inside its value.
fn add_keys(value: &Value<'_>, keys: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| add_keys(item, keys)),
        Value::Map(map) => map.iter().for_each(|(key, value)| {
            add_keys(value, keys);
            keys.push((*key).to_owned());
        }),
        _ => {}
    }
}

/// A sink that proposes known keys and collects the keys of all maps.
#[derive(Clone, Copy)]
struct Proposing<'s> {
    known: &'s [KnownKey],
    keys: &'s RefCell<Vec<String>>,
    /// Keys that were proposed and not read.
    unread: &'s Cell<usize>,
}

impl<'a> Sink<'a> for Proposing<'_> {
    type Slot = ();
    fn integer(self, _: &mut (), _: i64) {}
    fn wide_integer(self, _: &mut (), _: WideInteger) {}
    fn float(self, _: &mut (), _: f64) {}
    fn boolean(self, _: &mut (), _: bool) {}
    fn null(self, _: &mut ()) {}
    fn text(self, _: &mut (), _: &'a str) {}
    fn bytes(self, _: &mut (), _: &'a [u8]) {}
    fn link(self, _: &mut (), _: CidRef<'a>) {}
    fn array(
        self,
        slot: &mut (),
        count: usize,
        mut read: impl FnMut(usize, &mut ()) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        (0..count).try_for_each(|at| read(at, slot))
    }
    fn map(
        self,
        slot: &mut (),
        count: usize,
        entries: &mut Entries<'a, Self>,
    ) -> Result<(), ItemError> {
        for at in 0..count {
            let mut proposed = None;
            // Every third proposal is a key that cannot be the right one.
            let propose = |word| {
                let is_candidate = |key: &&KnownKey| key.may_start(word) != (at % 3 == 2);
                proposed = self.known.iter().rfind(is_candidate);
                proposed
            };
            assert!(!entries.is_empty());
            let read = entries.next_proposed(propose, slot)?;
            self.unread.update(|unread| unread + usize::from(read.is_none()));
            let key = read.or(proposed.map(KnownKey::text));
            self.keys.borrow_mut().push(key.unwrap_or_default().to_owned());
        }
        assert!(entries.is_empty() && entries.next(slot).is_err());
        Ok(())
    }
}

fn hex(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    assert!(kernels::hex::decode_into(text.replace(' ', "").as_bytes(), &mut bytes));
    bytes
}

#[test]
fn each_broken_rule_is_reported_at_the_item_that_breaks_it() {
    let cases = [
        ("", 0, Reason::Truncated),
        ("18", 0, Reason::Truncated),
        ("1817", 0, Reason::NotMinimal),
        ("1900ff", 0, Reason::NotMinimal),
        ("1a0000ffff", 0, Reason::NotMinimal),
        ("1b00000000ffffffff", 0, Reason::NotMinimal),
        ("3817", 0, Reason::NotMinimal),
        ("5801ff", 0, Reason::NotMinimal),
        ("7801 61", 0, Reason::NotMinimal),
        ("9801 00", 0, Reason::NotMinimal),
        ("b801 616100", 0, Reason::NotMinimal),
        ("d8 2a 58 25", 2, Reason::LengthBeyondInput),
        ("1c", 0, Reason::ReservedHead),
        ("fc", 0, Reason::ReservedHead),
        ("5f 41 00 ff", 0, Reason::IndefiniteLength),
        ("7f 61 61 ff", 0, Reason::IndefiniteLength),
        ("9f ff", 0, Reason::IndefiniteLength),
        ("bf ff", 0, Reason::IndefiniteLength),
        ("82 00 ff", 2, Reason::IndefiniteLength),
        ("42 00", 0, Reason::LengthBeyondInput),
        ("82 00", 0, Reason::LengthBeyondInput),
        ("a1 61 61", 3, Reason::Truncated),
        ("a2 61 61", 0, Reason::LengthBeyondInput),
        ("81 82 00", 1, Reason::LengthBeyondInput),
        ("82 82 00 00", 1, Reason::LengthBeyondInput),
        ("00 00", 1, Reason::TrailingBytes),
        ("a1 00 00", 1, Reason::KeyNotText),
        ("a1 f6 00", 1, Reason::KeyNotText),
        ("a1 41 61 00", 1, Reason::KeyNotText),
        ("a2 61 62 00 61 61 00", 4, Reason::KeyOrder),
        ("a2 62 61 61 00 61 62 00", 5, Reason::KeyOrder),
        ("a2 61 61 00 61 61 00", 4, Reason::DuplicateKey),
        ("a2 60 00 60 00", 3, Reason::DuplicateKey),
        ("a2 68 6161616161616162 00 68 6161616161616161 00", 11, Reason::KeyOrder),
        ("a2 68 6161616161616161 00 68 6161616161616161 00", 11, Reason::DuplicateKey),
        ("61 ff", 0, Reason::NotUtf8),
        ("a1 61 ff 00", 1, Reason::NotUtf8),
        ("63 ed a0 80", 0, Reason::NotUtf8),
        ("c0 00", 0, Reason::Tag),
        ("d8 2b 41 00", 0, Reason::Tag),
        ("d9 00 2a 41 00", 0, Reason::NotMinimal),
        ("d8 2a 00", 0, Reason::Link),
        ("d8 2a 41 00", 0, Reason::Link),
        ("d8 2a 43 01 71 12", 0, Reason::Link),
        ("f7", 0, Reason::Simple),
        ("e0", 0, Reason::Simple),
        ("f8 14", 0, Reason::Simple),
        ("f9 3e00", 0, Reason::FloatWidth),
        ("fa 3fc00000", 0, Reason::FloatWidth),
        ("fb 7ff8000000000000", 0, Reason::FloatValue),
        ("fb fff0000000000000", 0, Reason::FloatValue),
        ("fb 8000000000000000", 0, Reason::FloatValue),
        ("fb 00", 0, Reason::Truncated),
    ];
    for (input, offset, reason) in cases {
        let input = hex(input);
        assert_eq!(validate(&input), Err(DecodeError { offset, reason }), "{input:02x?}");
        assert_matches_reference(&input);
    }
}

#[test]
fn canonical_items_are_accepted_and_encoded_back_byte_for_byte() {
    let cid = Cid::of(Codec::Raw, b"record");
    let mut encoder = Encoder::new();
    encoder.map(3).text("l").link(cid.as_cid_ref()).text("subject").null();
    encoder.text("prevData").array(2).boolean(true).bytes(b"\x00\xff");
    for input in [
        encoder.into_bytes(),
        hex("00"),
        hex("17"),
        hex("1818"),
        hex("18ff"),
        hex("190100"),
        hex("19ffff"),
        hex("1a00010000"),
        hex("1affffffff"),
        hex("1b0000000100000000"),
        hex("1b7fffffffffffffff"),
        hex("3b7fffffffffffffff"),
        hex("1bffffffffffffffff"),
        hex("3bffffffffffffffff"),
        hex("fb3ff8000000000000"),
        hex("60"),
        hex("82 00 81 00"),
        hex("83 00 00 82 00 00"),
        hex("a1 60 00"),
        hex("a2 60 00 61 61 00"),
        hex("64 f0 9f 92 a9"),
        hex("a2 67 61616161616161 00 68 6161616161616161 00"),
        hex("a2 68 6161616161616161 00 68 6161616161616162 00"),
        [hex("78 40"), vec![b'x'; 64]].concat(),
        [hex("78 48"), vec![b'x'; 70], "é".into()].concat(),
    ] {
        assert!(validate(&input).is_ok(), "{input:02x?}");
        assert_matches_reference(&input);
    }
}

#[test]
fn the_deepest_value_is_accepted_and_one_more_level_is_rejected() {
    let levels = MAX_DEPTH as usize;
    // The lowest limit among other readers of DAG-CBOR.
    assert!(levels >= 127);
    for head in [hex("81"), hex("a1 61 61")] {
        let nested = |levels: usize| [head.repeat(levels), hex("00")].concat();
        assert_matches_reference(&nested(levels));
        assert!(validate(&nested(levels)).is_ok());
        let expected = Err(DecodeError { offset: levels * head.len(), reason: Reason::Depth });
        assert_eq!(validate(&nested(levels + 1)), expected);
        assert_matches_reference(&nested(levels + 1));
    }
}

#[test]
fn ten_million_levels_are_rejected_on_a_small_stack() {
    let small = std::thread::Builder::new().stack_size(64 << 10);
    let bomb = || validate(&[0x81].repeat(10_000_000)).unwrap_err();
    let error = small.spawn(bomb).unwrap().join().unwrap();
    assert_eq!(error, DecodeError { offset: MAX_DEPTH as usize, reason: Reason::Depth });
}

#[test]
fn stated_counts_allocate_no_more_than_the_input_could_fill() {
    // Every array states as many items as bytes are left; only the first one can be true.
    let mut input = Vec::new();
    for left in (0..60u32).map(|level| 1_000_000 - 5 * (level + 1)) {
        input.push(0x9a);
        input.extend(left.to_be_bytes());
    }
    input.resize(1_000_000, 0x00);
    let arena = Arena::new();
    let error = decode(&input, &arena).unwrap_err();
    assert_eq!(error, DecodeError { offset: 5, reason: Reason::LengthBeyondInput });
    assert!(arena.allocated_bytes() <= 24 * input.len() + (1 << 20));
}

#[test]
fn a_reader_that_expects_another_kind_reports_what_it_expected() {
    let expected = |kind| Some(DecodeError { offset: 0, reason: Reason::Expected(kind) });
    assert_eq!(Reader::new(b"\x60").integer().err(), expected(ItemKind::Integer));
    assert_eq!(
        Reader::new(&hex("1bffffffffffffffff")).integer().err(),
        expected(ItemKind::Integer)
    );
    assert_eq!(Reader::new(b"\x00").text().err(), expected(ItemKind::Text));
    assert_eq!(Reader::new(b"\x60").bytes().err(), expected(ItemKind::Bytes));
    assert_eq!(Reader::new(b"\x60").link().err(), expected(ItemKind::Link));
    assert_eq!(Reader::new(b"\xf6").boolean().err(), expected(ItemKind::Boolean));
    assert_eq!(Reader::new(b"\xa0").array().err(), expected(ItemKind::Array));
    assert_eq!(Reader::new(b"\x80").map().err(), expected(ItemKind::Map));
    let text = Reader::new(b"\x60").integer().unwrap_err().to_string();
    assert!(text.contains("integer"), "{text}");
    // An item that breaks a rule itself is reported with that rule.
    let broken = Some(DecodeError { offset: 0, reason: Reason::NotMinimal });
    assert_eq!(Reader::new(&hex("1800")).text().err(), broken);
}

#[test]
fn a_reader_accepts_keys_in_canonical_order_only() {
    let input = hex("a3 61 62 00 61 63 00 61 61 00");
    let (mut reader, mut keys) = (Reader::new(&input), KeyOrder::default());
    assert_eq!(reader.map(), Ok(3));
    for expected in ["b", "c"] {
        assert_eq!(reader.key(&mut keys), Ok(expected));
        assert_eq!(reader.integer(), Ok(0));
    }
    let error = DecodeError { offset: 7, reason: Reason::KeyOrder };
    assert_eq!(reader.key(&mut keys), Err(error));
}

#[test]
fn a_map_is_searched_by_key_whatever_its_size() {
    let arena = Arena::new();
    for size in [0, 1, 7, 8, 9, 40] {
        let keys: Vec<String> =
            (0..size).map(|i| format!("{:0width$}", i, width = 1 + i % 9)).collect();
        let entries =
            keys.iter().enumerate().map(|(i, key)| (key.as_str(), Value::Integer(i as i64)));
        let entries = arena.alloc_slice_fill_iter(entries.collect::<Vec<_>>());
        let map = Map::from_entries(entries).expect("no key twice");
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(map.get(key), Some(&Value::Integer(i as i64)));
        }
        assert_eq!(map.get("absent"), None);
        assert_matches_reference(&encode(&Value::Map(map)).unwrap());
    }
    let twice =
        arena.alloc_slice_copy(&[("a", Value::Null), ("b", Value::Null), ("a", Value::Null)]);
    assert_eq!(Map::from_entries(twice), Err(DuplicateKey("a")));
}

#[test]
fn a_proposed_key_that_is_next_is_not_read() {
    let known = known_keys();
    let keys = RefCell::default();
    let unread = Cell::default();
    let sink = Proposing { known: &known, keys: &keys, unread: &unread };
    let text = [&[0x6f][..], &[b'x'; 15]].concat();
    let input = [b"\xa2\x61a", &text[..], b"\x67aaaaaaa", &text].concat();
    assert_eq!(build_prefix(&input, sink, &mut ()), Ok(input.len()));
    assert_eq!((keys.into_inner(), unread.get()), (vec!["a".into(), "aaaaaaa".into()], 2));
}

#[test]
fn a_known_key_is_appended_as_its_text_is() {
    for len in 0..24 {
        let text = &"abcdefghijklmnopqrstuvw"[..len];
        let expected = [b"before", &[0x60 + len as u8][..], text.as_bytes(), b"\xf6"].concat();
        let mut encoder = Encoder::appending_to(b"before".to_vec());
        encoder.known_key(&KnownKey::new(text).unwrap()).null();
        assert_eq!(encoder.as_bytes(), expected);
        encoder.truncate(6);
        assert_eq!(encoder.as_bytes(), b"before");
    }
}

#[test]
fn values_without_canonical_bytes_are_rejected() {
    for float in [f64::NAN, f64::INFINITY, -0.0] {
        assert_eq!(encode(&Value::Float(float)), Err(EncodeError::Float));
    }
    let arena = Arena::new();
    let nested = |levels| (0..levels).fold(Value::Null, |v, _| Value::Array(arena.alloc([v])));
    assert!(encode(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(encode(&nested(MAX_DEPTH + 1)), Err(EncodeError::Depth));
    let in_map = |value| Value::Map(Map::from_entries(arena.alloc([("a", value)])).unwrap());
    let nested = |levels| (0..levels).fold(Value::Null, |value, _| in_map(value));
    assert!(encode(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(encode(&nested(MAX_DEPTH + 1)), Err(EncodeError::Depth));
}

#[test]
fn a_link_whose_sha_256_has_another_length_is_rejected() {
    for (codec, digest_len) in [(0x71, 0x1f), (0x71, 0x21), (0x55, 0x1f), (0x55, 0x00)] {
        let head = [0xd8, 0x2a, 0x58, 0x25, 0x00, 0x01, codec, 0x12, digest_len];
        let input = [&head[..], &[7; 32]].concat();
        assert_eq!(validate(&input), Err(DecodeError { offset: 0, reason: Reason::Link }));
        assert_matches_reference(&input);
    }
}

#[test]
fn an_error_names_its_place_in_an_input_of_any_length() {
    for left in [0, 7, 0xffff_ffff, 0x1_0000_0000, 0x1234_5678_9abc] {
        let error = item::ItemError::new(left, Reason::Truncated).within(left + 5);
        assert_eq!(error, DecodeError { offset: 5, reason: Reason::Truncated });
    }
}

#[test]
fn a_prefix_is_read_up_to_the_end_of_its_item() {
    let input = hex("82 00 61 61 ff ff ff");
    assert_eq!(validate_prefix(&input), Ok(4));
    let arena = Arena::new();
    let (value, len) = decode_prefix(&input, &arena).unwrap();
    assert_eq!((value, len), (decode(&input[..4], &arena).unwrap(), 4));
    let error = DecodeError { offset: 1, reason: Reason::NotMinimal };
    assert_eq!(validate_prefix(&hex("81 18 00")), Err(error));
    assert_eq!(decode_prefix(&hex("81 18 00"), &arena).map(drop), Err(error));
}

#[test]
fn an_item_is_taken_as_its_own_kind_only() {
    let items = [Value::Null];
    assert_eq!(Value::Array(&items).as_array(), Some(&items[..]));
    assert_eq!(Value::Null.as_array(), None);
    assert!(Map::EMPTY.is_empty());
    let mut entries = [("a", Value::Null)];
    assert!(!Map::from_entries(&mut entries).unwrap().is_empty());
}

#[test]
fn decoding_into_a_value_replaces_it() {
    let arena = Arena::new();
    for input in ["f6", "f4", "00", "60", "40", "80", "a0", "fb3ff8000000000000"] {
        let input = hex(input);
        let mut value = Value::Text("before");
        decode_into(&input, &arena, &mut value).unwrap();
        assert_eq!(value, decode(&input, &arena).unwrap());
    }
}

/// Bytes that are mostly canonical: random items.
pub(super) fn items() -> impl Strategy<Value = Vec<u8>> {
    let scalar = prop_oneof![
        any::<i64>().prop_map(|n| Encoder::new().integer(n).as_bytes().to_vec()),
        (0i64..70).prop_map(|n| Encoder::new().integer(-n).as_bytes().to_vec()),
        ".{0,12}".prop_map(|text| Encoder::new().text(&text).as_bytes().to_vec()),
        "[ -~é]{60,80}".prop_map(|text| Encoder::new().text(&text).as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40)
            .prop_map(|bytes| Encoder::new().bytes(&bytes).as_bytes().to_vec()),
        any::<[u8; 4]>().prop_map(|seed| {
            let cid = Cid::of(Codec::DagCbor, &seed);
            Encoder::new().link(cid.as_cid_ref()).as_bytes().to_vec()
        }),
        any::<bool>().prop_map(|b| Encoder::new().boolean(b).as_bytes().to_vec()),
        Just(vec![0xf6]),
        any::<f64>().prop_map(|f| [vec![0xfb], f.to_be_bytes().to_vec()].concat()),
    ];
    scalar.prop_recursive(5, 60, 8, |inner| {
        let key = prop_oneof!["[a-z]{0,3}", "[a-c]{6,9}", "é{0,4}"];
        let maps = proptest::collection::vec((key, inner.clone()), 0..8).prop_map(|mut entries| {
            entries.sort_by_key(|(key, _)| (key.len(), key.clone()));
            let mut out = Encoder::new().map(entries.len()).as_bytes().to_vec();
            for (key, value) in entries {
                out.extend(Encoder::new().text(&key).as_bytes());
                out.extend(value);
            }
            out
        });
        let arrays = proptest::collection::vec(inner, 0..30).prop_map(|items| {
            let head = Encoder::new().array(items.len()).as_bytes().to_vec();
            [head, items.concat()].concat()
        });
        prop_oneof![maps, arrays]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_scanner_matches_the_reference(input in items()) {
        assert_matches_reference(&input);
    }

    #[test]
    fn the_scanner_matches_the_reference_on_damaged_items(
        mut input in items(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        for (at, byte) in damage {
            let at = at.index(input.len());
            input[at] = byte;
        }
        if let Some(cut) = cut {
            input.truncate(cut.index(input.len()));
        }
        assert_matches_reference(&input);
    }

    #[test]
    fn the_scanner_matches_the_reference_on_random_bytes(input in proptest::collection::vec(any::<u8>(), 0..64)) {
        assert_matches_reference(&input);
    }

    #[test]
    fn the_scanner_matches_the_reference_on_keys_in_any_order(
        keys in proptest::collection::vec("[ab]{0,3}|[ab]{7,9}|b{22,26}", 0..6),
    ) {
        let mut out = Encoder::new();
        out.map(keys.len());
        for key in &keys {
            out.text(key).integer(0);
        }
        assert_matches_reference(out.as_bytes());
    }
}
