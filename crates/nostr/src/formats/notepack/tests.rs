//! Is this the layout that was published, and is nothing else read?

use bumpalo::Bump;

use super::{Fields, decode, decode_string, encode, encode_string};
use crate::formats::tests::{assert_fields_agree, golden};
use crate::{DecodeError, Field, Limits, OwnedEvent, Reason};

/// The event of the specification's vector.
fn vector() -> OwnedEvent {
    let tag = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
    OwnedEvent {
        id: [0; 32],
        pubkey: [0x11; 32],
        created_at: 1_720_000_000,
        kind: 0,
        tags: vec![
            tag(&["e", &"aa".repeat(32), "wss://relay.example.com"]),
            tag(&["p", &"bb".repeat(32)]),
        ],
        content: "hello".to_owned(),
        sig: [0x22; 64],
    }
}

fn encoded(event: &OwnedEvent) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&event.borrow_in(&Bump::new()), &mut bytes).unwrap();
    bytes
}

fn reason(bytes: &[u8]) -> Reason {
    decode(bytes, &Bump::new(), &Limits::default()).unwrap_err().reason
}

#[test]
fn the_vector_of_the_specification_is_written_and_read() {
    let bytes = [
        &[1][..],
        &[0; 32],
        &[0x11; 32],
        &[0x22; 64],
        b"\x80\xbc\x94\xb4\x06\x00\x05hello\x02\x03\x02e\x41",
        &[0xaa; 32],
        b"\x2ewss://relay.example.com\x02\x02p\x41",
        &[0xbb; 32],
    ]
    .concat();
    assert_eq!(encoded(&vector()), bytes);
    let arena = Bump::new();
    assert_eq!(decode(&bytes, &arena, &Limits::default()).unwrap().to_owned(), vector());
}

#[test]
fn few_digits_are_bytes_too_and_content_never_is() {
    let tags = vec![["be", "cafe", "2024", "a", ""].map(str::to_owned).to_vec()];
    let event = OwnedEvent { tags, content: "cafebabe".to_owned(), ..vector() };
    let bytes = encoded(&event);
    assert!(bytes.ends_with(b"\x08cafebabe\x01\x05\x03\xbe\x05\xca\xfe\x05\x20\x24\x02a\x00"));
    assert_eq!(decode(&bytes, &Bump::new(), &Limits::default()).unwrap().to_owned(), event);
}

#[test]
fn a_time_before_1970_takes_ten_bytes() {
    let bytes = encoded(&OwnedEvent { created_at: -1, ..vector() });
    assert!(
        bytes[129..].starts_with(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0])
    );
    assert_eq!(decode(&bytes, &Bump::new(), &Limits::default()).unwrap().created_at, -1);
}

#[test]
fn other_versions_kinds_out_of_range_and_long_varints_are_refused() {
    let bytes = encoded(&OwnedEvent { tags: vec![], ..vector() });
    assert_eq!(reason(&[&[2], &bytes[1..]].concat()), Reason::Version(2));
    assert_eq!(reason(&[&[0x81, 0], &bytes[1..]].concat()), Reason::NotMinimal);
    let behind_time = |rest: &[u8]| reason(&[&bytes[..134], rest].concat());
    assert_eq!(behind_time(b"\x80\x80\x04\x05hello\x00"), Reason::Range(Field::Kind));
    assert_eq!(behind_time(b"\x00\x85\x00hello\x00"), Reason::NotMinimal);
    assert_eq!(behind_time(b"\x00\x05hell\xff\x00"), Reason::Utf8);
    assert_eq!(behind_time(b"\x00\x05hello\x01\x01\x02\xff"), Reason::Utf8);
    assert_eq!(behind_time(b"\x00\x05hello\x02\x00"), Reason::Truncated);
    assert_eq!(behind_time(b"\x00\x05hello\x00\x00"), Reason::TrailingBytes);
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
        let (created_at, kind) = (fields.created_at()?, fields.kind()?);
        Ok((*fields.id(), *fields.pubkey(), created_at, kind, tags))
    });
    let event = golden();
    assert_eq!(Fields::new(&encoded(&event)).unwrap().sig(), &event.sig);
}

#[test]
fn the_string_form_comes_back_and_no_other_is_read() {
    let arena = Bump::new();
    let decode = |text: &str| decode_string(text, &arena, &Limits::default());
    for content in ["", "a", "ab", "abc"] {
        let event = OwnedEvent { content: content.to_owned(), ..vector() };
        let mut text = "> ".to_owned();
        encode_string(&event.borrow_in(&arena), &mut text).unwrap();
        let text = &text[2..];
        assert!(text.starts_with("notepack_AQAAAAAA") && !text.ends_with('='), "{text}");
        assert_eq!(decode(text).unwrap().to_owned(), event);
        assert_eq!(decode(&text[1..]).unwrap_err().offset, 0);
        for changed in
            [text.replace('A', "-"), format!("{text}="), text[..text.len() - 1].to_owned()]
        {
            decode(&changed).unwrap_err();
        }
    }
    let fault = decode("notepack_AQ*A").unwrap_err();
    assert_eq!((fault.offset, fault.reason), (11, Reason::Expected("base64 without padding")));
    assert_eq!(decode("notepack_AQ").unwrap_err().reason, Reason::Truncated);
}
