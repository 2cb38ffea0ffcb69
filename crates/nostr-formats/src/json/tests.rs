use super::*;
use crate::tests::{encoded, golden, ordinary};
use nostr::{Field, Reason};

fn open<'a>(bytes: &'a [u8], arena: &'a Bump) -> Result<Fields<'a>, DecodeError> {
    Json.fields(bytes, arena, &Limits::default())
}

#[test]
fn single_fields_are_those_of_the_event_in_any_order() {
    for event in ordinary() {
        let bytes = encoded(Json, &event);
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        // The same object with its names in alphabetical order.
        let sorted = serde_json::to_string_pretty(&value).unwrap().into_bytes();
        for bytes in [bytes, sorted] {
            let arena = Bump::new();
            let fields = open(&bytes, &arena).unwrap();
            assert_eq!((fields.id(), fields.pubkey()), (Ok(event.id), Ok(event.pubkey)));
            assert_eq!(
                (fields.created_at(), fields.kind()),
                (Ok(event.created_at), Ok(event.kind))
            );
        }
    }
}

#[test]
fn a_read_checks_what_precedes_its_field_and_ignores_what_follows() {
    let kind = |json: &str| open(json.as_bytes(), &Bump::new()).unwrap().kind();
    assert_eq!(kind(r#"{"x":[{"kind":3},"kind",1e5,null],"\u006bind":7,"#), Ok(7));
    assert_eq!(kind(r#"{"kind":7,"kind":8}"#), Ok(7));
    let reason = |json: &str| kind(json).unwrap_err().reason;
    assert_eq!(reason("{}"), Reason::Missing(Field::Kind));
    assert_eq!(reason(r#"{"id":1}"#), Reason::Missing(Field::Kind));
    assert_eq!(reason(r#"{"id":01,"kind":7}"#), Reason::Expected("`,` or `}`"));
    assert_eq!(reason(r#"{"kind":65536}"#), Reason::Range(Field::Kind));
    assert_eq!(reason(r#"{"kind":"7"}"#), Reason::Expected("a number"));
    assert_eq!(reason(r#"{"kind""#), Reason::Truncated);
    assert_eq!(open(b"{\xff", &Bump::new()).unwrap_err().reason, Reason::Utf8);
}

#[test]
fn no_prefix_of_an_event_panics_or_has_another_pubkey() {
    let bytes = encoded(Json, &golden());
    for len in 0..bytes.len() {
        let arena = Bump::new();
        let Ok(fields) = open(&bytes[..len], &arena) else { continue };
        let (_, pubkey) = (fields.kind(), fields.pubkey());
        assert!(pubkey.is_err() || pubkey == Ok(golden().pubkey), "{len}");
    }
}
