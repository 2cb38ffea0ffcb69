use kernels::{hex, sha256};

use super::*;
use crate::tests::{assert_fields_agree, encoded, golden, reason, replace_once, texts};

/// Why the golden event is rejected with `old` replaced by `new`.
fn reason_with(old: &[u8], new: &[u8]) -> Reason {
    reason(Msgpack, &replace_once(&encoded(Msgpack, &golden()), old, new))
}

#[test]
fn the_bytes_are_the_published_ones() {
    let bytes = encoded(Msgpack, &golden());
    assert!(
        bytes.starts_with(b"\x97\xc4\x20\x00\x01")
            && bytes[69..].starts_with(b"\xce\x65\x53\xf1\x7b")
    );
    let digest = "401d554c7a3808bf180f9ef37d707649992b8024185f0446e77bc1267398fce6";
    assert_eq!(hex::encode(&sha256::digest(&bytes)), digest);
}

#[test]
fn an_event_has_one_encoding() {
    let digits = reason_with(b"\xc4\x04\xde\xad\xbe\xef", b"\xa8deadbeef");
    assert_eq!(digits, Reason::NotCanonical("digits must be stored as bytes"));
    let bytes = reason_with(b"\xc4\x04\xde\xad\xbe\xef", b"\xc4\x02\xde\xad");
    assert_eq!(bytes, Reason::NotCanonical("bytes must be stored as digits"));
    for (old, new) in [
        (&b"\xc4\x04\xde"[..], &b"\xc5\x00\x04\xde"[..]),
        (b"\xa8DEAD", b"\xd9\x08DEAD"),
        (b"\xa8DEAD", b"\xda\x00\x08DEAD"),
        (b"\x93\xa6", b"\xdc\x00\x03\xa6"),
        (b"\x97\xc4", b"\xdd\x00\x00\x00\x07\xc4"),
        (b"\xce\x65\x53\xf1\x7b", b"\xd2\x65\x53\xf1\x7b"),
        (b"\xce\x65\x53\xf1\x7b", b"\xcf\x00\x00\x00\x00\x65\x53\xf1\x7b"),
        (b"\xce\x65\x53\xf1\x7b", b"\xcc\x7f"),
        (b"\xce\x65\x53\xf1\x7b", b"\xd0\xe0"),
        (b"\xce\x65\x53\xf1\x7b", b"\xd1\xff\x80"),
    ] {
        assert_eq!(reason_with(old, new), Reason::NotMinimal, "{new:02x?}");
    }
}

#[test]
fn fields_out_of_range_are_rejected() {
    assert_eq!(reason_with(b"\xcd\x75\x47", b"\xce\0\x01\0\0"), Reason::Range(Field::Kind));
    assert_eq!(reason_with(b"\xcd\x75\x47", b"\xff"), Reason::Range(Field::Kind));
    assert_eq!(reason_with(b"\xcd\x75\x47", b"\xc0"), Reason::Expected("an integer"));
    let beyond = b"\xcf\x80\0\0\0\0\0\0\0";
    assert_eq!(reason_with(b"\xce\x65\x53\xf1\x7b", beyond), Reason::Range(Field::CreatedAt));
    assert_eq!(reason_with(b"\xc4\x40", b"\xc4\x3f"), Reason::Length(Field::Sig));
    assert_eq!(reason_with(b"\x97\xc4", b"\x96\xc4"), Reason::Expected("seven items"));
    assert_eq!(reason_with(b"\xf0\x9f\x8c\x8d", b"\xf0\x9f\x8cx"), Reason::Utf8);
    assert_eq!(reason_with(b"\xa8DEAD", b"\x08DEAD"), Reason::Expected("text or binary"));
}

#[test]
fn single_fields_are_those_of_the_event() {
    assert_fields_agree(Msgpack, |fields| Ok((*fields.id(), texts(fields.tags()?)?)));
}
