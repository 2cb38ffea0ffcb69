//! Is this the MessagePack that was published, and is nothing else read?

use bumpalo::Bump;
use kernels::{hex, sha256};

use super::{Fields, decode, encode};
use crate::formats::tests::{assert_fields_agree, golden};
use crate::{DecodeError, Field, Limits, OwnedEvent, Reason};

fn encoded(event: &OwnedEvent) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&event.borrow_in(&Bump::new()), &mut bytes).unwrap();
    bytes
}

/// Why the golden event is refused with `old`, which is in it once, made `new`.
fn reason(old: &[u8], new: &[u8]) -> Reason {
    let bytes = encoded(&golden());
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
    let [at] = places[..] else { panic!("{} times", places.len()) };
    let changed = [&bytes[..at], new, &bytes[at + old.len()..]].concat();
    decode(&changed, &Bump::new(), &Limits::default()).unwrap_err().reason
}

#[test]
fn the_bytes_are_the_published_ones() {
    let bytes = encoded(&golden());
    assert!(
        bytes.starts_with(b"\x97\xc4\x20\x00\x01")
            && bytes[69..].starts_with(b"\xce\x65\x53\xf1\x7b")
    );
    let digest = "401d554c7a3808bf180f9ef37d707649992b8024185f0446e77bc1267398fce6";
    assert_eq!(hex::encode(&sha256::digest(&bytes)), digest);
}

#[test]
fn an_event_has_one_encoding() {
    let digits = reason(b"\xc4\x04\xde\xad\xbe\xef", b"\xa8deadbeef");
    assert_eq!(digits, Reason::NotCanonical("digits that must be bytes"));
    let bytes = reason(b"\xc4\x04\xde\xad\xbe\xef", b"\xc4\x02\xde\xad");
    assert_eq!(bytes, Reason::NotCanonical("bytes that must be digits"));
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
        assert_eq!(reason(old, new), Reason::NotMinimal, "{new:02x?}");
    }
}

#[test]
fn fields_that_are_out_of_range_are_refused() {
    assert_eq!(reason(b"\xcd\x75\x47", b"\xce\0\x01\0\0"), Reason::Range(Field::Kind));
    assert_eq!(reason(b"\xcd\x75\x47", b"\xff"), Reason::Range(Field::Kind));
    assert_eq!(reason(b"\xcd\x75\x47", b"\xc0"), Reason::Expected("an integer"));
    let beyond = b"\xcf\x80\0\0\0\0\0\0\0";
    assert_eq!(reason(b"\xce\x65\x53\xf1\x7b", beyond), Reason::Range(Field::CreatedAt));
    assert_eq!(reason(b"\xc4\x40", b"\xc4\x3f"), Reason::Length(Field::Sig));
    assert_eq!(reason(b"\x97\xc4", b"\x96\xc4"), Reason::Expected("seven items"));
    assert_eq!(reason(b"\xf0\x9f\x8c\x8d", b"\xf0\x9f\x8cx"), Reason::Utf8);
    assert_eq!(reason(b"\xa8DEAD", b"\x08DEAD"), Reason::Expected("text or binary"));
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
}
