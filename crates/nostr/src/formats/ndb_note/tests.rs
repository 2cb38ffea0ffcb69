use super::*;
use crate::formats::tests::golden;
use crate::{Field, OwnedEvent, Reason};

fn encoded(event: &OwnedEvent) -> Result<Vec<u8>, EncodeError> {
    let (arena, mut bytes) = (Bump::new(), Vec::new());
    encode(&event.borrow_in(&arena), &mut bytes).map(|()| bytes)
}

fn decoded(bytes: &[u8]) -> Result<OwnedEvent, Reason> {
    let arena = Bump::new();
    let event = decode(bytes, &arena, &Limits::default());
    event.map(|event| event.to_owned()).map_err(|error| error.reason)
}

fn with_tags(tags: &[&[&str]]) -> OwnedEvent {
    let tag = |tag: &&[&str]| tag.iter().map(|value| (*value).to_owned()).collect();
    OwnedEvent { tags: tags.iter().map(tag).collect(), ..golden() }
}

#[test]
fn the_layout_is_as_it_is_drawn() {
    let event = OwnedEvent { content: "gm!".to_owned(), ..with_tags(&[&["e", &"ab".repeat(32)]]) };
    let bytes = encoded(&event).unwrap();
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
fn single_fields_are_what_the_whole_event_says() {
    let (event, bytes) = (golden(), encoded(&golden()).unwrap());
    let fields = Fields::new(&bytes).unwrap();
    assert_eq!(
        (*fields.id(), *fields.pubkey(), *fields.sig()),
        (event.id, event.pubkey, event.sig)
    );
    assert_eq!((fields.kind(), fields.created_at()), (Ok(event.kind), Ok(event.created_at)));
}

#[test]
fn content_that_a_value_says_is_kept_once() {
    let same =
        OwnedEvent { content: "good morning".into(), ..with_tags(&[&["t", "good morning"]]) };
    let other = OwnedEvent { content: "Good morning".into(), ..same.clone() };
    let [same_len, other_len] = [&same, &other].map(|event| encoded(event).unwrap().len());
    assert!(same_len < other_len);
    assert_eq!(decoded(&encoded(&same).unwrap()), Ok(same));
    let digits = "ab".repeat(32);
    let event = OwnedEvent { content: digits.clone(), ..with_tags(&[&["e", &digits]]) };
    assert_eq!(decoded(&encoded(&event).unwrap()), Ok(event));
}

#[test]
fn what_has_no_place_is_refused() {
    let past = OwnedEvent { created_at: -1, ..golden() };
    let range = EncodeError::Range { field: Field::CreatedAt, value: -1 };
    assert_eq!(encoded(&past), Err(range));
    let zero = EncodeError::TooMany { what: "zeros in a value", count: 1, most: 0 };
    assert_eq!(encoded(&with_tags(&[&["x", "a\0b"]])), Err(zero));
    let long = "x".repeat(1 << 20);
    let values = vec![long.as_str(); 17];
    assert!(matches!(encoded(&with_tags(&[&values])), Err(EncodeError::TooMany { .. })));
}

#[test]
fn a_header_that_is_not_ours_is_refused() {
    let bytes = encoded(&golden()).unwrap();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        decoded(&bytes)
    };
    assert_eq!(with(0, 2), Err(Reason::Version(2)));
    assert_eq!(with(1, 1), Err(Reason::NotCanonical("a zero that is none")));
    assert_eq!(with(CREATED_AT + 7, 0x80), Err(Reason::Range(Field::CreatedAt)));
    assert_eq!(with(KIND + 2, 1), Err(Reason::Range(Field::Kind)));
    assert_eq!(with(CONTENT_LEN, 1), Err(Reason::Expected("a zero behind a string")));
    assert_eq!(with(CONTENT + 3, INLINE), Err(Reason::Length(Field::Content)));
    assert_eq!(with(CONTENT + 3, IS_ID), Err(Reason::Expected("a string of a known kind")));
    assert_eq!(with(POOL + 3, 1), Err(Reason::Expected("a pool in the note")));
    assert_eq!(with(TAGS, 1), Err(Reason::NotCanonical("a zero that is none")));
    assert_eq!(with(TAGS + 2, 2), Err(Reason::TrailingBytes));
}

#[test]
fn bytes_behind_the_pool_are_refused() {
    for behind in [&[0; 8][..], &[0; 1], &[1, 0, 0, 0, 0, 0, 0, 0]] {
        let bytes = [&encoded(&golden()).unwrap(), behind].concat();
        decoded(&bytes).unwrap_err();
    }
}

#[test]
fn strings_that_are_read_again_and_again_are_refused() {
    let long = "x".repeat(10_000);
    let values: Vec<&str> = [long.as_str()].into_iter().chain(["abc"; 100]).collect();
    let mut bytes = encoded(&with_tags(&[&values])).unwrap();
    for at in 1..=100 {
        let string = HEADER_BYTES + 2 + 4 * at;
        bytes.copy_within(HEADER_BYTES + 2..HEADER_BYTES + 6, string);
    }
    assert_eq!(decoded(&bytes), Err(Reason::Expected("a note whose strings are read once")));
}
