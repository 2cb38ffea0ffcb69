//! Is this the layout that was published, and is nothing else read?

use bumpalo::Bump;

use super::{Fields, decode, encode};
use crate::formats::tests::{assert_fields_agree, golden};
use crate::{DecodeError, EncodeError, Limit, Limits, OwnedEvent, Reason};

fn encoded(event: &OwnedEvent) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&event.borrow_in(&Bump::new()), &mut bytes).unwrap();
    bytes
}

fn reason(bytes: &[u8]) -> Reason {
    decode(bytes, &Bump::new(), &Limits::default()).unwrap_err().reason
}

#[test]
fn the_layout_is_the_published_one() {
    let event = golden();
    let head = [
        &event.id[..],
        &event.pubkey,
        &event.sig,
        &1_700_000_123i64.to_le_bytes(),
        &30_023u16.to_le_bytes(),
    ];
    let tags = [
        b"\x03\x03\x01e\xa0".as_slice(),
        &[0xab; 32],
        b"\x13wss://relay.example\x03\x06custom\x08DEADBEEF\x84\xde\xad\xbe\xef\x00",
    ]
    .concat();
    let content = b"\x11Hello, Nostr \xf0\x9f\x8c\x8d";
    let bytes = [&head.concat(), &[tags.len() as u8][..], &tags, content].concat();
    assert_eq!(encoded(&event), bytes);
}

#[test]
fn content_of_digits_travels_as_bytes() {
    let event = OwnedEvent { tags: vec![], content: "cafe".repeat(200), ..golden() };
    let bytes = encoded(&event);
    assert!(bytes[138..].starts_with(&[1, 0, 0xff, 0x90, 3, 0xca, 0xfe]));
    let arena = Bump::new();
    assert_eq!(decode(&bytes, &arena, &Limits::default()).unwrap().to_owned(), event);
    let limits = Limits { content_bytes: 799, ..Limits::default() };
    let fault = DecodeError { offset: 140, reason: Reason::Limit(Limit::ContentBytes) };
    assert_eq!(decode(&bytes, &arena, &limits), Err(fault));
}

#[test]
fn the_length_of_the_tags_takes_as_many_bytes_as_it_needs() {
    for count in [0, 1, 2, 3, 40, 63, 64, 1000, 8191, 9000] {
        let event = OwnedEvent { tags: vec![vec![]; count], ..golden() };
        let bytes = encoded(&event);
        let back = decode(&bytes, &Bump::new(), &Limits::default()).map(|event| event.to_owned());
        assert_eq!(back, Ok(event), "{count}");
    }
    for len in [100, 122, 123, 124, 126, 127, 128, 16_000] {
        let event = OwnedEvent { tags: vec![vec!["x".repeat(len)]], ..golden() };
        let back =
            decode(&encoded(&event), &Bump::new(), &Limits::default()).map(|it| it.to_owned());
        assert_eq!(back, Ok(event), "{len}");
    }
}

#[test]
fn more_values_than_a_byte_counts_are_refused() {
    let event = OwnedEvent { tags: vec![vec![String::new(); 256]], ..golden() };
    let refused = encode(&event.borrow_in(&Bump::new()), &mut Vec::new());
    let error = EncodeError::TooMany { what: "values of a tag", count: 256, most: 255 };
    assert_eq!(refused, Err(error));
}

#[test]
fn lengths_in_more_bytes_than_they_need_are_refused() {
    let bytes = encoded(&OwnedEvent { tags: vec![], content: "x".to_owned(), ..golden() });
    let behind_head = |rest: &[u8]| reason(&[&bytes[..138], rest].concat());
    assert_eq!(behind_head(b"\x01\x00\x7f\x01x"), Reason::NotMinimal);
    assert_eq!(behind_head(b"\x81\x00\x00\x01x"), Reason::NotMinimal);
    assert_eq!(behind_head(b"\x02\x00\x00\x01x"), Reason::TrailingBytes);
    assert_eq!(behind_head(b"\x00\x00\x01x"), Reason::Truncated);
    assert_eq!(behind_head(b"\x01\x00\x01\xff"), Reason::Utf8);
    assert_eq!(behind_head(b"\x01\x00\x01x\x00"), Reason::TrailingBytes);
}

#[test]
fn single_fields_are_those_of_the_event() {
    assert_fields_agree(encoded, |bytes| {
        let fields = Fields::new(bytes)?;
        let mut tags = Vec::new();
        for tag in fields.tags()? {
            let texts = tag?.map(|value| Ok(value?.to_text().into_owned()));
            tags.push(texts.collect::<Result<_, DecodeError>>()?);
        }
        let (created_at, kind) = (fields.created_at(), fields.kind());
        Ok((*fields.id(), *fields.pubkey(), created_at, kind, tags))
    });
    let event = golden();
    assert_eq!(Fields::new(&encoded(&event)).unwrap().sig(), &event.sig);
}
