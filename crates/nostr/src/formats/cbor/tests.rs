//! Are these the CBOR encodings that were published, and is nothing else read?

use bumpalo::Bump;
use kernels::{hex, sha256};

use super::{intkey, packed, schemaless};
use crate::formats::tests::{assert_fields_agree, golden};
use crate::{DecodeError, EncodeError, Event, Field, Limit, Limits, OwnedEvent, Reason, Value};

type Decode = for<'a> fn(&'a [u8], &'a Bump, &Limits) -> Result<Event<'a>, DecodeError>;

fn encoded(encode: impl Fn(&Event<'_>, &mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&golden().borrow_in(&Bump::new()), &mut bytes);
    bytes
}

fn packed() -> Vec<u8> {
    encoded(|event, out| packed::encode(event, out).unwrap())
}

fn intkey() -> Vec<u8> {
    encoded(|event, out| intkey::encode(event, out).unwrap())
}

fn schemaless() -> Vec<u8> {
    encoded(|event, out| schemaless::encode(event, out).unwrap())
}

fn reason(decode: Decode, bytes: &[u8]) -> Reason {
    decode(bytes, &Bump::new(), &Limits::default()).unwrap_err().reason
}

/// `bytes` with `old`, which is in it once, made `new`.
fn with(bytes: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    let [at] = places[..] else { panic!("{} times", places.len()) };
    [&bytes[..at], new, &bytes[at + old.len()..]].concat()
}

#[test]
fn the_packed_form_is_the_published_one() {
    let id = "5820000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    let pubkey = "5820202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f";
    let tags = [
        "838361655820",
        &"ab".repeat(32),
        "737773733a2f2f72656c61792e6578616d706c65",
        "8366637573746f6d68444541444245454644deadbeef80",
    ];
    let bytes = packed();
    let text = hex::encode(&bytes);
    assert!(text.starts_with(&["87", id, pubkey, "1a6553f17b197547", &tags.concat()].concat()));
    let digest = "ff123b5122cc773369ecaabf90d24834f1676bb93c9a3a54c82bac22fd844c2e";
    assert_eq!(hex::encode(&sha256::digest(&bytes)), digest);
}

#[test]
fn the_maps_begin_as_published() {
    assert!(schemaless().starts_with(b"\xa7\x62id\x58\x20\x00\x01"));
    assert!(schemaless().windows(18).any(|part| part == b"\x68DEADBEEF\x68deadbeef"));
    assert!(intkey().starts_with(&[0xa7, 0, 0x58, 0x20, 0, 1]));
    assert!(intkey().windows(14).any(|part| part == b"\x68DEADBEEF\x44\xde\xad\xbe\xef"));
}

#[test]
fn the_packed_form_has_one_encoding() {
    let must = |old: &[u8], new: &[u8]| reason(packed::decode, &with(&packed(), old, new));
    let digits = must(b"\x44\xde\xad\xbe\xef", b"\x68deadbeef");
    assert_eq!(digits, Reason::NotCanonical("digits that must be bytes"));
    let bytes = must(b"\x44\xde\xad\xbe\xef", b"\x42\xde\xad");
    assert_eq!(bytes, Reason::NotCanonical("bytes that must be digits"));
    assert_eq!(must(&[0x87, 0x58], &[0x98, 7, 0x58]), Reason::NotMinimal);
    assert_eq!(must(&[0x87, 0x58], &[0x86, 0x58]), Reason::Expected("seven items"));
    assert_eq!(must(&[0x87, 0x58], &[0x9f, 0x58]), Reason::Expected("a definite length"));
    assert_eq!(
        must(b"\x1a\x65\x53\xf1\x7b", b"\xfb\x65\x53\xf1\x7b\0\0\0\0"),
        Reason::Expected("an integer")
    );
}

#[test]
fn fields_that_are_out_of_range_are_refused() {
    let must = |old: &[u8], new: &[u8]| reason(packed::decode, &with(&packed(), old, new));
    assert_eq!(must(b"\x19\x75\x47", b"\x1a\0\x01\0\0"), Reason::Range(Field::Kind));
    assert_eq!(must(b"\x19\x75\x47", b"\x20"), Reason::Expected("an unsigned integer"));
    let beyond = b"\x1b\x80\0\0\0\0\0\0\0";
    assert_eq!(must(b"\x1a\x65\x53\xf1\x7b", beyond), Reason::Range(Field::CreatedAt));
    assert_eq!(must(b"\x58\x40", b"\x58\x3f"), Reason::Length(Field::Sig));
    assert_eq!(must(b"\xf0\x9f\x8c\x8d", b"\xf0\x9f\x8cx"), Reason::Utf8);
}

#[test]
fn bytes_of_any_number_are_read_from_the_numbered_form() {
    let arena = Bump::new();
    let bytes = with(&intkey(), b"\x44\xde\xad\xbe\xef", b"\x42\xde\xad");
    let event = intkey::decode(&bytes, &arena, &Limits::default()).unwrap();
    assert_eq!(event.tags[1][2].to_text(), "dead");
    let bytes = with(&schemaless(), b"\x68deadbeef", b"\x44\xde\xad\xbe\xef");
    assert_eq!(reason(schemaless::decode, &bytes), Reason::Expected("text"));
}

#[test]
fn fields_of_a_map_come_in_any_order_and_once() {
    let arena = Bump::new();
    let bytes = with(&schemaless(), b"\xa7\x62id", b"\xa7");
    let (id, rest) = bytes[1..].split_at(34);
    let moved = [b"\xa7", rest, b"\x62id", id].concat();
    let event = schemaless::decode(&moved, &arena, &Limits::default()).unwrap();
    assert_eq!(event.to_owned(), golden());

    let twice = [b"\xa8", &schemaless()[1..], b"\x62id", id].concat();
    assert_eq!(reason(schemaless::decode, &twice), Reason::Duplicate(Field::Id));
    let none = [b"\xa6", rest].concat();
    assert_eq!(reason(schemaless::decode, &none), Reason::Missing(Field::Id));
    let twice = [b"\xa8", &intkey()[1..], b"\x03\x01"].concat();
    assert_eq!(reason(intkey::decode, &twice), Reason::Duplicate(Field::Kind));
}

#[test]
fn unknown_keys_of_a_map_are_passed_over_to_a_depth() {
    let arena = Bump::new();
    let more = |value: &[u8]| [b"\xa8", &schemaless()[1..], b"\x61x", value].concat();
    for value in
        [&b"\xf6"[..], b"\x82\x01\x20", b"\xa1\x01\x43abc", b"\xc0\x61t", b"\xf9\0\0", b"\xf8\x20"]
    {
        let event = more(value);
        let event = schemaless::decode(&event, &arena, &Limits::default());
        assert_eq!(event.unwrap().to_owned(), golden(), "{value:02x?}");
    }
    let refused = |value: &[u8]| reason(schemaless::decode, &more(value));
    let deep = more(&[[0x81; 64].as_slice(), &[0]].concat());
    assert!(schemaless::decode(&deep, &arena, &Limits::default()).is_ok());
    assert_eq!(refused(&[0x81; 70]), Reason::Limit(Limit::Depth));
    assert_eq!(refused(b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff"), Reason::Truncated);
    assert_eq!(refused(b"\xf8\x14"), Reason::Expected("a known simple value"));
    assert_eq!(refused(b"\xe0"), Reason::Expected("a known simple value"));
    assert_eq!(refused(b"\x61\xff"), Reason::Utf8);
    let more = |key: &[u8]| [b"\xa8", &intkey()[1..], key, b"\xf6"].concat();
    for key in [&b"\x07"[..], b"\x20"] {
        assert!(intkey::decode(&more(key), &arena, &Limits::default()).is_ok());
    }
    assert_eq!(reason(intkey::decode, &more(b"\x61x")), Reason::Expected("an integer key"));
}

#[test]
fn single_fields_of_the_packed_form_are_those_of_the_event() {
    assert_fields_agree(by(packed::encode), |bytes| {
        let fields = packed::Fields::new(bytes)?;
        let (created_at, kind) = (fields.created_at()?, fields.kind()?);
        Ok((*fields.id(), *fields.pubkey(), created_at, kind, told(fields.tags()?)?))
    });
}

#[test]
fn single_fields_of_a_map_are_those_of_the_event() {
    assert_fields_agree(by(schemaless::encode), |bytes| {
        let arena = Bump::new();
        let fields = schemaless::Fields::new(bytes, &arena);
        let (created_at, kind) = (fields.created_at()?, fields.kind()?);
        Ok((fields.id()?, fields.pubkey()?, created_at, kind, told(fields.tags()?)?))
    });
    assert_fields_agree(by(intkey::encode), |bytes| {
        let arena = Bump::new();
        let fields = intkey::Fields::new(bytes, &arena);
        let (created_at, kind) = (fields.created_at()?, fields.kind()?);
        Ok((fields.id()?, fields.pubkey()?, created_at, kind, told(fields.tags()?)?))
    });
}

#[test]
fn a_field_that_a_map_lacks_is_missed_and_one_behind_a_fault_is_not_reached() {
    let (arena, without) = (Bump::new(), with(&intkey(), b"\x02\x1a", b"\x09\x1a"));
    let fields = intkey::Fields::new(&without, &arena);
    let missing = fields.created_at().unwrap_err().reason;
    assert_eq!(missing, Reason::Missing(Field::CreatedAt));
    assert_eq!(fields.kind(), Ok(golden().kind));
    let broken = with(&schemaless(), b"\x64kind", b"\x7fkind");
    let fields = schemaless::Fields::new(&broken, &arena);
    assert_eq!(fields.created_at(), Ok(golden().created_at));
    assert!(fields.kind().is_err() && fields.tags().is_err());
}

fn by(
    encode: impl Fn(&Event<'_>, &mut Vec<u8>) -> Result<(), EncodeError>,
) -> impl Fn(&OwnedEvent) -> Vec<u8> {
    move |event| {
        let mut bytes = Vec::new();
        encode(&event.borrow_in(&Bump::new()), &mut bytes).unwrap();
        bytes
    }
}

fn told<'a>(
    tags: impl Iterator<
        Item = Result<impl Iterator<Item = Result<Value<'a>, DecodeError>>, DecodeError>,
    >,
) -> Result<Vec<Vec<String>>, DecodeError> {
    let mut told = Vec::new();
    for tag in tags {
        let texts = tag?.map(|value| Ok(value?.to_text().into_owned()));
        told.push(texts.collect::<Result<_, DecodeError>>()?);
    }
    Ok(told)
}
