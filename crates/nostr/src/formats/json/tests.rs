use super::*;
use crate::formats::tests::{golden, ordinary};
use crate::{Field, Reason};

fn encoded(event: &crate::OwnedEvent) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&event.borrow_in(&Bump::new()), &mut bytes).unwrap();
    bytes
}

#[test]
fn single_fields_are_those_of_the_event_wherever_they_stand() {
    for event in ordinary() {
        let bytes = encoded(&event);
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        // By the names, in the order of the alphabet.
        let sorted = serde_json::to_string_pretty(&value).unwrap().into_bytes();
        for bytes in [bytes, sorted] {
            let arena = Bump::new();
            let fields = Fields::new(&bytes, &arena).unwrap();
            assert_eq!((fields.id(), fields.pubkey()), (Ok(event.id), Ok(event.pubkey)));
            let told = (fields.created_at(), fields.kind());
            assert_eq!(told, (Ok(event.created_at), Ok(event.kind)));
        }
    }
}

#[test]
fn what_stands_before_a_field_is_held_to_the_rules_and_what_stands_behind_it_is_not() {
    let kind = |json: &str| Fields::new(json.as_bytes(), &Bump::new()).unwrap().kind();
    assert_eq!(kind(r#"{"x":[{"kind":3},"kind",1e5,null],"\u006bind":7,"#), Ok(7));
    assert_eq!(kind(r#"{"kind":7,"kind":8}"#), Ok(7));
    let reason = |json: &str| kind(json).unwrap_err().reason;
    assert_eq!(reason("{}"), Reason::Missing(Field::Kind));
    assert_eq!(reason(r#"{"id":1}"#), Reason::Missing(Field::Kind));
    assert_eq!(reason(r#"{"id":01,"kind":7}"#), Reason::Expected("`,` or `}`"));
    assert_eq!(reason(r#"{"kind":65536}"#), Reason::Range(Field::Kind));
    assert_eq!(reason(r#"{"kind":"7"}"#), Reason::Expected("a number"));
    assert_eq!(reason(r#"{"kind""#), Reason::Truncated);
    assert_eq!(Fields::new(b"{\xff", &Bump::new()).unwrap_err().reason, Reason::Utf8);
}

#[test]
fn every_beginning_of_an_event_is_borne() {
    let bytes = encoded(&golden());
    for len in 0..bytes.len() {
        let arena = Bump::new();
        let Ok(fields) = Fields::new(&bytes[..len], &arena) else { continue };
        let (_, whole) = (fields.kind(), fields.pubkey());
        assert!(whole.is_err() || whole == Ok(golden().pubkey), "{len}");
    }
}
