use super::*;
use crate::tests::{decoded, golden, try_encoded};
use nostr::OwnedEvent;

fn with_tags(tags: &[&[&str]]) -> OwnedEvent {
    let tag = |tag: &&[&str]| tag.iter().map(|value| (*value).to_owned()).collect();
    OwnedEvent { tags: tags.iter().map(tag).collect(), ..golden() }
}

#[test]
fn the_layout_is_the_documented_one() {
    let event = OwnedEvent { content: "gm!".to_owned(), ..with_tags(&[&["e", &"ab".repeat(32)]]) };
    let bytes = try_encoded(NdbNote, &event).unwrap();
    let mut expected = vec![1, 0, 0, 0];
    expected.extend(event.id.iter().chain(&event.pubkey).chain(&event.sig));
    expected.extend(1_700_000_123_u64.to_le_bytes());
    expected.extend(30_023_u32.to_le_bytes());
    expected.extend([3, 0, 0, 0, 33, 0, 0, 0, 170, 0, 0, 0, 0, 0, 1, 0]);
    expected.extend([2, 0, b'e', 0, 0, 1, 0, 0, 0, 2]);
    expected.extend([0xab; 32]);
    expected.extend(b"\0gm!\0\0");
    assert_eq!(bytes, expected);
}

#[test]
fn single_fields_are_those_of_the_event() {
    let (event, bytes) = (golden(), try_encoded(NdbNote, &golden()).unwrap());
    let fields = Fields::new(&bytes).unwrap();
    assert_eq!((*fields.id(), *fields.sig()), (event.id, event.sig));
    assert_eq!(fields.pubkey(), Ok(event.pubkey));
    assert_eq!((fields.kind(), fields.created_at()), (Ok(event.kind), Ok(event.created_at)));
}

#[test]
fn content_equal_to_a_value_is_stored_once() {
    let same =
        OwnedEvent { content: "good morning".into(), ..with_tags(&[&["t", "good morning"]]) };
    let other = OwnedEvent { content: "Good morning".into(), ..same.clone() };
    let [same_len, other_len] =
        [&same, &other].map(|event| try_encoded(NdbNote, event).unwrap().len());
    assert!(same_len < other_len);
    assert_eq!(decoded(NdbNote, &try_encoded(NdbNote, &same).unwrap()), Ok(same));
    let digits = "ab".repeat(32);
    let event = OwnedEvent { content: digits.clone(), ..with_tags(&[&["e", &digits]]) };
    assert_eq!(decoded(NdbNote, &try_encoded(NdbNote, &event).unwrap()), Ok(event));
}

#[test]
fn events_that_the_layout_cannot_hold_are_rejected() {
    let past = OwnedEvent { created_at: -1, ..golden() };
    let range = EncodeError::Range { field: Field::CreatedAt, value: -1 };
    assert_eq!(try_encoded(NdbNote, &past), Err(range));
    let zero = EncodeError::TooMany { what: "NUL bytes in a value", count: 1, max: 0 };
    assert_eq!(try_encoded(NdbNote, &with_tags(&[&["x", "a\0b"]])), Err(zero));
    let long = "x".repeat(1 << 20);
    let values = vec![long.as_str(); 17];
    assert!(matches!(
        try_encoded(NdbNote, &with_tags(&[&values])),
        Err(EncodeError::TooMany { .. })
    ));
}

#[test]
fn malformed_headers_are_rejected() {
    let bytes = try_encoded(NdbNote, &golden()).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        decoded(NdbNote, &bytes)
    };
    assert_eq!(with(0, 2), Err(Reason::Version(2)));
    assert_eq!(with(1, 1), Err(NOT_ZERO));
    assert_eq!(with(CREATED_AT + 7, 0x80), Err(Reason::Range(Field::CreatedAt)));
    assert_eq!(with(KIND + 2, 1), Err(Reason::Range(Field::Kind)));
    assert_eq!(with(CONTENT_LEN, 1), Err(Reason::Expected("a zero byte after a string")));
    assert_eq!(with(CONTENT + 3, INLINE), Err(Reason::Length(Field::Content)));
    assert_eq!(with(CONTENT + 3, IS_ID), Err(Reason::Expected("a string of a known kind")));
    assert_eq!(with(POOL + 3, 1), Err(Reason::Expected("a pool in the note")));
    assert_eq!(with(TAGS, 1), Err(NOT_ZERO));
    assert_eq!(with(TAGS + 2, 2), Err(Reason::TrailingBytes));
}

#[test]
fn what_follows_the_zero_of_a_text_in_place_is_not_looked_at() {
    let event = OwnedEvent { content: "c".into(), ..with_tags(&[&["t", "", "ab"]]) };
    let bytes = try_encoded(NdbNote, &event).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        assert_eq!(std::mem::replace(&mut bytes[at], byte), 0);
        decoded(NdbNote, &bytes)
    };
    let values = HEADER_BYTES + 2;
    for third in [values + 2, values + 4 + 2, CONTENT + 2] {
        assert_eq!(with(third, 0xd6), Ok(event.clone()));
    }
    let rule = Reason::Expected("two bytes of text and a zero byte");
    assert_eq!(with(values + 8 + 2, b'c'), Err(rule));
    // A second byte after none.
    assert_eq!(with(values + 4 + 1, b'x'), Err(rule));
    assert_eq!(with(CONTENT + 1, b'd'), Err(Reason::Length(Field::Content)));
}

#[test]
fn bytes_after_the_pool_are_rejected() {
    for padding in [&[0; 8][..], &[0; 1], &[1, 0, 0, 0, 0, 0, 0, 0]] {
        let bytes = [&try_encoded(NdbNote, &golden()).unwrap(), padding].concat();
        decoded(NdbNote, &bytes).unwrap_err();
    }
}

#[test]
fn strings_that_share_bytes_too_often_are_rejected() {
    let long = "x".repeat(10_000);
    let values: Vec<&str> = [long.as_str()].into_iter().chain(["abc"; 100]).collect();
    let mut bytes = try_encoded(NdbNote, &with_tags(&[&values])).unwrap();
    for at in 1..=100 {
        let string = HEADER_BYTES + 2 + 4 * at;
        bytes.copy_within(HEADER_BYTES + 2..HEADER_BYTES + 6, string);
    }
    assert_eq!(decoded(NdbNote, &bytes), Err(Reason::Expected("strings that share fewer bytes")));
}
