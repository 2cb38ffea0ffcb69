use bumpalo::Bump;
use proptest::prelude::*;

use super::head::BATCH_VERSION;
use super::*;
use crate::json::Json;
use crate::tests::{decoded, encoded, reason, with_its_id};
use nostr::{OwnedEvent, Reason, example};

#[test]
fn the_layout_is_the_documented_one() {
    let event = example_event();
    let mut expected = vec![VERSION];
    expected.extend(event.pubkey);
    expected.extend(event.sig);
    // 2 × 1,698,632,753, kind 1, one tag `t` with a value of text, and the content as text.
    expected.extend([0xe2, 0xd0, 0xf8, 0xd3, 0x0c, 1, 1, 0x02, 2, b'g', b'm', 12]);
    expected.extend(b"good morning");
    assert_eq!(encoded(Wireproof, &event), expected);
    assert_eq!(decoded(Wireproof, &expected), Ok(event));
}

#[test]
fn a_batch_stores_keys_ids_and_strings_once() {
    let key = "ab".repeat(32);
    let first = signed(vec![vec!["p", &key], vec!["r", "wss://relay.test"]], "first");
    let id = kernels::hex::encode(&first.id);
    let second = signed(
        vec![vec!["e", &id, "wss://relay.test"], vec!["p", &key]],
        &format!("of {id} and {}", "12".repeat(64)),
    );
    let arena = Bump::new();
    let events = [first.borrow_in(&arena), second.borrow_in(&arena)];
    let mut bytes = Vec::new();
    Wireproof.encode_batch(&events, &mut bytes).unwrap();
    // Two signatures, two keys, the digits that are not a key, and 68 bytes for the rest.
    assert_eq!(bytes.len(), 2 * 64 + 2 * 32 + 64 + 68);
    assert_eq!(Wireproof.decode_batch(&bytes, &arena, &Limits::default()), Ok(&events[..]));
}

#[test]
fn an_event_with_a_wrong_id_is_rejected() {
    let mut event = example_event();
    event.id[5] ^= 1;
    let arena = Bump::new();
    let mut out = b"before".to_vec();
    assert_eq!(Wireproof.encode(&event.borrow_in(&arena), &mut out), Err(EncodeError::Id));
    assert_eq!(Wireproof.encode_batch(&[event.borrow_in(&arena)], &mut out), Err(EncodeError::Id));
    assert_eq!(out, b"before");
}

#[test]
fn single_fields_are_those_of_the_event() {
    let event = example_event();
    let bytes = encoded(Wireproof, &event);
    let (arena, limits) = (Bump::new(), Limits::default());
    let open = |bytes| Wireproof.fields(bytes, &arena, &limits);
    let fields = open(&bytes).unwrap();
    assert_eq!((fields.pubkey(), *fields.sig()), (Ok(event.pubkey), event.sig));
    assert_eq!((fields.created_at(), fields.kind()), (Ok(event.created_at), Ok(event.kind)));
    assert_eq!(open(&bytes[..96]).unwrap_err().reason, Reason::Truncated);
    assert_eq!(open(&bytes[..97]).unwrap().kind().unwrap_err().reason, Reason::Truncated);
    assert_eq!(open(&[3; 97]).unwrap_err().reason, Reason::Version(3));
}

#[test]
fn other_encodings_of_an_event_are_rejected() {
    let key = [7; 32];
    let run = |head: &[u8], digits: usize, after: &[u8]| {
        [&[0x73, 1, 1, b'x'], head, &vec![7; digits / 2], after].concat()
    };
    let mut two_runs = run(&[0x6f], 32, &[&[0, 0x6f][..], &[7; 16], &[0]].concat());
    two_runs[1] = 2;
    assert!(decoded(Wireproof, &with_content(&run(&[0x70], 64, &[1, b'-']))).is_ok());
    for (name, content) in [
        ("a string that has a number, as text", b"\x04root".to_vec()),
        ("digits as text", b"\x02ff".to_vec()),
        ("a run as text", [&b"\x21x"[..], &[b'0'; 32]].concat()),
        ("a key as other digits", [&[0x71, 32 - 17][..], &key].concat()),
        ("text with runs that has none", b"\x73\x00\x01x".to_vec()),
        ("digits alone as text with runs", [&[0x73, 1, 0, 0x70][..], &key, &[0]].concat()),
        ("a run that goes on", run(&[0x6f], 32, &[2, b'a', b'b'])),
        ("a short run", run(&[0x6e], 30, &[0])),
        ("two runs in a row", two_runs),
        ("a run within a run", run(&[0x70], 64, &[&[32][..], &[b'0'; 32]].concat())),
    ] {
        let found = reason(Wireproof, &with_content(&content));
        assert!(matches!(found, Reason::NotCanonical(_)), "{name}: {found}");
    }
    for (name, tag) in [
        ("a name that has a number, as text", &b"\x3f\x01p\x00"[..]),
        ("a count that fits the head", &[0xc0, 2, 0, 0]),
        ("no values, with a name", &[0xc0, 0]),
    ] {
        let bytes = [&head_of_an_event(1), tag, &[0]].concat();
        let found = reason(Wireproof, &bytes);
        assert!(matches!(found, Reason::NotCanonical(_)), "{name}: {found}");
    }
}

#[test]
fn malformed_values_are_rejected() {
    let number = Reason::Expected("the number of an earlier key or value");
    for (content, expected) in [
        (&b"\x74"[..], Reason::Expected("the head of a value")),
        (&[0xc0, 0], number),
        (&[0xe0, 0], number),
        (&[0x73, 1, 0, 0xc0, 0, 0], number),
        (&[0x73, 1, 0, 0x01, b'x', 0], Reason::Expected("a head of digits")),
        (b"\x01\xff", Reason::Utf8),
        (b"\x01x\x00", Reason::TrailingBytes),
        (b"\x02x", Reason::Truncated),
        (b"\x73\xff\x01\x00", Reason::Truncated),
    ] {
        assert_eq!(reason(Wireproof, &with_content(content)), expected, "{content:x?}");
    }
    let mut bytes = with_content(b"\x01x");
    bytes[0] = BATCH_VERSION;
    assert_eq!(reason(Wireproof, &bytes), Reason::Version(0x81));
}

#[test]
fn a_flag_of_the_kind_selects_the_form_of_the_id_and_must_make_a_difference() {
    let (mut verbatim, plain) = (signed(vec![vec!["t", "\u{1}"]], ""), with_content(b"\x01x"));
    let flagged = |bytes: &[u8], at: usize| {
        // Kind 1 plus 65,536, in three bytes.
        [&bytes[..at], &[0x81, 0x80, 0x04], &bytes[at + 1..]].concat()
    };
    let bytes = encoded(Wireproof, &verbatim);
    let escaped = decoded(Wireproof, &flagged(&bytes, 97 + 5)).unwrap();
    assert_ne!(escaped.id, verbatim.id);
    assert_eq!(encoded(Wireproof, &escaped), flagged(&bytes, 97 + 5));
    verbatim.id = escaped.id;
    assert_eq!(escaped, verbatim);
    let arena = Bump::new();
    let events = [escaped.borrow_in(&arena)];
    let mut batch = Vec::new();
    Wireproof.encode_batch(&events, &mut batch).unwrap();
    assert_eq!(Wireproof.decode_batch(&batch, &arena, &Limits::default()), Ok(&events[..]));
    let error = Wireproof.decode(&flagged(&plain, 98), &arena, &Limits::default()).unwrap_err();
    assert!(matches!(error.reason, Reason::NotCanonical(_)), "{error}");
    assert_eq!(error.offset, 98);
}

#[test]
fn a_run_of_odd_length_leaves_its_last_digit_as_text() {
    let event = signed(vec![], &format!("x{}y", "a".repeat(33)));
    let bytes = encoded(Wireproof, &event);
    let tail = [&[0x73, 1, 1, b'x', 0x6f][..], &[0xaa; 16], &[2, b'a', b'y']].concat();
    assert!(bytes.ends_with(&tail), "{bytes:x?}");
    assert_eq!(decoded(Wireproof, &bytes), Ok(event));
}

#[test]
fn times_far_apart_and_numbers_beyond_two_bytes_round_trip() {
    let times = [i64::MIN, i64::MAX, 0, -1, i64::MIN];
    let tag = |at: usize| vec!["p".to_owned(), format!("{at:064x}"), format!("text {}", at / 2)];
    let owned: Vec<OwnedEvent> = times
        .iter()
        .map(|time| {
            let mut event = OwnedEvent { created_at: *time, ..example_event() };
            event.tags = (0..7_000).map(tag).collect();
            with_its_id(event)
        })
        .collect();
    let arena = Bump::new();
    let events: Vec<_> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
    let mut bytes = Vec::new();
    Wireproof.encode_batch(&events, &mut bytes).unwrap();
    assert_eq!(Wireproof.decode_batch(&bytes, &arena, &Limits::default()), Ok(&events[..]));
}

proptest! {
    #[test]
    fn encoded_events_and_batches_round_trip(events in proptest::collection::vec(any_event(), 0..4)) {
        let arena = Bump::new();
        for event in &events {
            prop_assert_eq!(decoded(Wireproof, &encoded(Wireproof, event)), Ok(event.clone()));
        }
        let events: Vec<_> = events.iter().map(|event| event.borrow_in(&arena)).collect();
        let mut bytes = Vec::new();
        Wireproof.encode_batch(&events, &mut bytes).unwrap();
        prop_assert_eq!(Wireproof.decode_batch(&bytes, &arena, &Limits::default()), Ok(&events[..]));
    }

    #[test]
    fn accepted_bytes_encode_to_themselves(tail in any_tail()) {
        let mut bytes = head_of_an_event(0);
        *bytes.last_mut().unwrap() = 1;
        bytes.extend(tail);
        if let Ok(event) = decoded(Wireproof, &bytes) {
            prop_assert_eq!(encoded(Wireproof, &event), bytes);
        }
    }
}

/// A tag and a content that are likely to be read.
fn any_tail() -> impl Strategy<Value = Vec<u8>> {
    let value = prop_oneof![
        "[a-g0]{0,40}".prop_map(|text| [&[text.len() as u8], text.as_bytes()].concat()),
        (0x60..0x74u8, any::<[u8; 3]>()).prop_map(|(head, more)| [&[head], &more[..]].concat()),
        (0..3u8, 0..40u8).prop_map(|(before, digits)| {
            let mut bytes = vec![0x73, 1, before];
            bytes.extend(vec![b'x'; before.into()]);
            bytes.extend(if digits < 16 { vec![0x60 | digits] } else { vec![0x71, digits - 16] });
            bytes.extend(vec![7; usize::from(digits) + 1]);
            bytes.extend([1, b'y']);
            bytes
        }),
        (0x80..0xc0u8).prop_map(|word| vec![word]),
    ];
    (any::<u8>(), proptest::collection::vec(value, 0..4))
        .prop_map(|(head, values)| [vec![head], values.concat()].concat())
}

fn any_event() -> impl Strategy<Value = OwnedEvent> {
    let text = prop_oneof![
        "[ -~]{0,100}",
        "[0-9a-f]{0,70}",
        "(x|[0-9a-f]{30,35}|[0-9a-f]{64}| ){0,5}",
        "\\PC{0,8}",
        proptest::sample::select(&words::STRINGS[..]).prop_map(str::to_owned),
        proptest::sample::select(&words::NAMES[..]).prop_map(str::to_owned),
    ];
    let tags = proptest::collection::vec(proptest::collection::vec(text.clone(), 0..7), 0..6);
    (any::<i64>(), any::<u16>(), tags, text, any::<[u8; 32]>()).prop_map(
        |(created_at, kind, tags, content, pubkey)| {
            with_its_id(OwnedEvent { created_at, kind, tags, content, pubkey, ..example_event() })
        },
    )
}

/// An event of no tags with this content.
fn with_content(content: &[u8]) -> Vec<u8> {
    [&head_of_an_event(0), content].concat()
}

/// Version, key and signature, time, kind, and a number of tags.
fn head_of_an_event(tags: u8) -> Vec<u8> {
    [&[VERSION][..], &[9; 96], &[0, 1, tags]].concat()
}

fn signed(tags: Vec<Vec<&str>>, content: &str) -> OwnedEvent {
    let tag = |tag: Vec<&str>| tag.into_iter().map(str::to_owned).collect();
    let tags = tags.into_iter().map(tag).collect();
    with_its_id(OwnedEvent { tags, content: content.to_owned(), ..example_event() })
}

fn example_event() -> OwnedEvent {
    decoded(Json, example::JSON.as_bytes()).unwrap()
}
