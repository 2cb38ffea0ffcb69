use kernels::{hex, sha256};

use super::*;
use crate::fields::ReadFields;
use crate::tests::{assert_fields_agree, decoded, encoded, golden, reason, replace_once, texts};
use nostr::Limit;
use nostr::limits::MAX_DEPTH;

fn packed() -> Vec<u8> {
    encoded(Packed, &golden())
}

fn int_key() -> Vec<u8> {
    encoded(IntKey, &golden())
}

fn schemaless() -> Vec<u8> {
    encoded(Schemaless, &golden())
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
fn the_maps_start_as_published() {
    assert!(schemaless().starts_with(b"\xa7\x62id\x58\x20\x00\x01"));
    assert!(schemaless().windows(18).any(|part| part == b"\x68DEADBEEF\x68deadbeef"));
    assert!(int_key().starts_with(&[0xa7, 0, 0x58, 0x20, 0, 1]));
    assert!(int_key().windows(14).any(|part| part == b"\x68DEADBEEF\x44\xde\xad\xbe\xef"));
}

#[test]
fn the_packed_form_has_one_encoding() {
    let reason_with = |old: &[u8], new: &[u8]| reason(Packed, &replace_once(&packed(), old, new));
    let digits = reason_with(b"\x44\xde\xad\xbe\xef", b"\x68deadbeef");
    assert_eq!(digits, Reason::NotCanonical("digits must be stored as bytes"));
    let bytes = reason_with(b"\x44\xde\xad\xbe\xef", b"\x42\xde\xad");
    assert_eq!(bytes, Reason::NotCanonical("bytes must be stored as digits"));
    assert_eq!(reason_with(&[0x87, 0x58], &[0x98, 7, 0x58]), Reason::NotMinimal);
    assert_eq!(reason_with(&[0x87, 0x58], &[0x86, 0x58]), Reason::Expected("seven items"));
    assert_eq!(reason_with(&[0x87, 0x58], &[0x9f, 0x58]), Reason::Expected("a definite length"));
    assert_eq!(
        reason_with(b"\x1a\x65\x53\xf1\x7b", b"\xfb\x65\x53\xf1\x7b\0\0\0\0"),
        Reason::Expected("an integer")
    );
}

#[test]
fn fields_out_of_range_are_rejected() {
    let reason_with = |old: &[u8], new: &[u8]| reason(Packed, &replace_once(&packed(), old, new));
    assert_eq!(reason_with(b"\x19\x75\x47", b"\x1a\0\x01\0\0"), Reason::Range(Field::Kind));
    assert_eq!(reason_with(b"\x19\x75\x47", b"\x20"), Reason::Expected("an unsigned integer"));
    let beyond = b"\x1b\x80\0\0\0\0\0\0\0";
    assert_eq!(reason_with(b"\x1a\x65\x53\xf1\x7b", beyond), Reason::Range(Field::CreatedAt));
    assert_eq!(reason_with(b"\x58\x40", b"\x58\x3f"), Reason::Length(Field::Sig));
    assert_eq!(reason_with(b"\xf0\x9f\x8c\x8d", b"\xf0\x9f\x8cx"), Reason::Utf8);
}

#[test]
fn byte_strings_of_any_length_are_accepted_in_maps_with_integer_keys() {
    let bytes = replace_once(&int_key(), b"\x44\xde\xad\xbe\xef", b"\x42\xde\xad");
    assert_eq!(decoded(IntKey, &bytes).unwrap().tags[1][2], "dead");
    let bytes = replace_once(&schemaless(), b"\x68deadbeef", b"\x44\xde\xad\xbe\xef");
    assert_eq!(reason(Schemaless, &bytes), Reason::Expected("text"));
}

#[test]
fn keys_of_a_map_are_accepted_in_any_order_but_only_once() {
    let bytes = replace_once(&schemaless(), b"\xa7\x62id", b"\xa7");
    let (id, rest) = bytes[1..].split_at(34);
    let moved = [b"\xa7", rest, b"\x62id", id].concat();
    assert_eq!(decoded(Schemaless, &moved), Ok(golden()));

    let twice = [b"\xa8", &schemaless()[1..], b"\x62id", id].concat();
    assert_eq!(reason(Schemaless, &twice), Reason::Duplicate(Field::Id));
    let none = [b"\xa6", rest].concat();
    assert_eq!(reason(Schemaless, &none), Reason::Missing(Field::Id));
    let twice = [b"\xa8", &int_key()[1..], b"\x03\x01"].concat();
    assert_eq!(reason(IntKey, &twice), Reason::Duplicate(Field::Kind));
}

#[test]
fn unknown_keys_of_a_map_are_skipped_up_to_a_depth() {
    let more = |value: &[u8]| [b"\xa8", &schemaless()[1..], b"\x61x", value].concat();
    for value in
        [&b"\xf6"[..], b"\x82\x01\x20", b"\xa1\x01\x43abc", b"\xc0\x61t", b"\xf9\0\0", b"\xf8\x20"]
    {
        assert_eq!(decoded(Schemaless, &more(value)), Ok(golden()), "{value:02x?}");
    }
    let reason_of = |value: &[u8]| reason(Schemaless, &more(value));
    let deep = more(&[[0x81; MAX_DEPTH].as_slice(), &[0]].concat());
    assert!(decoded(Schemaless, &deep).is_ok());
    assert_eq!(reason_of(&[0x81; MAX_DEPTH + 1]), Reason::Limit(Limit::Depth));
    assert_eq!(reason_of(b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff"), Reason::Truncated);
    assert_eq!(reason_of(b"\xf8\x14"), Reason::Expected("a known simple value"));
    assert_eq!(reason_of(b"\xe0"), Reason::Expected("a known simple value"));
    assert_eq!(reason_of(b"\x61\xff"), Reason::Utf8);
    let more = |key: &[u8]| [b"\xa8", &int_key()[1..], key, b"\xf6"].concat();
    for key in [&b"\x07"[..], b"\x20"] {
        assert!(decoded(IntKey, &more(key)).is_ok());
    }
    assert_eq!(reason(IntKey, &more(b"\x61x")), Reason::Expected("an integer key"));
}

#[test]
fn single_fields_are_those_of_the_event() {
    assert_fields_agree(Packed, |fields| Ok((*fields.id(), texts(fields.tags()?)?)));
    assert_fields_agree(Schemaless, |fields| Ok((fields.id()?, texts(fields.tags()?)?)));
    assert_fields_agree(IntKey, |fields| Ok((fields.id()?, texts(fields.tags()?)?)));
}

#[test]
fn reading_a_field_that_is_missing_or_after_an_error_fails() {
    let (arena, without) = (Bump::new(), replace_once(&int_key(), b"\x02\x1a", b"\x09\x1a"));
    let fields = MapFields::<IntKey>::new(&without, &arena).unwrap();
    let missing = fields.created_at().unwrap_err().reason;
    assert_eq!(missing, Reason::Missing(Field::CreatedAt));
    assert_eq!(fields.kind(), Ok(golden().kind));
    let broken = replace_once(&schemaless(), b"\x64kind", b"\x7fkind");
    let fields = MapFields::<Schemaless>::new(&broken, &arena).unwrap();
    assert_eq!(fields.created_at(), Ok(golden().created_at));
    assert!(fields.kind().is_err() && fields.tags().is_err());
}
