//! Ids of events with control characters: both serializations are valid, alone, in batches and in every format.
//!
//! The ids are computed from the JSON of `serde_json`, which escapes as nostr-tools and rust-nostr do, and from the same
//! JSON with the escapes of NIP-01 alone.

use bumpalo::Bump;
use crypto::schnorr::SecretKey;
use kernels::{hex, sha256};
use nostr::canonical::ControlChars::{self, Escaped, Verbatim};
use nostr::{Event, EventFault, IdSerialization, OwnedEvent, verify_many_with};
use nostr_formats::Format;
use serde_json::json;

use crate::made::{encoded, raised_limits};

#[test]
fn an_event_with_any_control_character_is_valid_under_either_serialization() {
    for (form, other) in [(Escaped, Verbatim), (Verbatim, Escaped)] {
        let owned = signed_events(form);
        assert_eq!(owned.len(), 54);
        let arena = Bump::new();
        let events: Vec<Event<'_>> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
        for (ids, expected) in [
            (IdSerialization::Either, Ok(form)),
            (policy(form), Ok(form)),
            (policy(other), Err(EventFault::IdForm(form))),
        ] {
            assert_eq!(
                verify_many_with(&events, ids),
                vec![expected; 54],
                "{form:?} under {ids:?}"
            );
            for event in &events {
                assert_eq!(event.verify_in(ids, &mut Vec::new()), expected, "{form:?} {ids:?}");
            }
        }
    }
}

#[test]
fn the_serializations_of_events_in_one_batch_do_not_affect_each_other() {
    let plain =
        signed("no control character, but \u{7f}, \u{1f30d} and \"\\\n\t\r\u{8}\u{c}", Escaped);
    let mut forged = signed("a\u{1}", Escaped);
    forged.id[0] ^= 1;
    let mut other_kind = signed("a\u{1}", Verbatim);
    other_kind.kind += 1;
    let owned = [plain, signed("a\0", Escaped), forged, signed("a\0", Verbatim), other_kind];
    let arena = Bump::new();
    let events: Vec<Event<'_>> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
    let wrong = Err(EventFault::Id);
    let expected = [Ok(Verbatim), Ok(Escaped), wrong, Ok(Verbatim), wrong];
    assert_eq!(verify_many_with(&events, IdSerialization::Either), expected);
    let expected = [Ok(Verbatim), Ok(Escaped), wrong, Err(EventFault::IdForm(Verbatim)), wrong];
    assert_eq!(verify_many_with(&events, IdSerialization::Escaped), expected);
}

#[test]
fn every_format_holds_events_of_both_serializations_with_their_ids() {
    let owned: Vec<OwnedEvent> =
        signed_events(Escaped).into_iter().chain(signed_events(Verbatim)).collect();
    let arena = Bump::new();
    let events: Vec<Event<'_>> = owned.iter().map(|event| event.borrow_in(&arena)).collect();
    for format in Format::ALL {
        let mut held = Vec::new();
        for event in &events {
            let Ok(bytes) = encoded(*format, event) else {
                // nostrdb's note ends a string at NUL.
                assert_eq!(format.name(), "ndb-note");
                continue;
            };
            let back = format.decode(&bytes, &arena, &raised_limits()).unwrap().to_owned();
            assert_eq!(back, event.to_owned(), "{}", format.name());
            held.push(*event);
        }
        assert!(held.len() >= 106, "{}: {}", format.name(), held.len());
        let mut bytes = Vec::new();
        format.encode_batch(&held, &mut bytes).unwrap();
        let back = format.decode_batch(&bytes, &arena, &raised_limits()).unwrap();
        assert_eq!(back, held, "{}", format.name());
        assert!(verify_many_with(back, IdSerialization::Either).iter().all(Result::is_ok));
    }
}

/// An event for every control character that NIP-01 keeps verbatim, in the content and in a tag.
fn signed_events(form: ControlChars) -> Vec<OwnedEvent> {
    let named = ['\u{8}', '\t', '\n', '\u{c}', '\r'];
    let kept = ('\0'..' ').filter(|character| !named.contains(character));
    kept.flat_map(|character| {
        let text = format!("a{character}\"\\\n\u{7f}\u{1f30d}");
        [signed(&text, form), signed_with(vec![vec!["t".to_owned(), text]], "", form)]
    })
    .collect()
}

fn signed(content: &str, form: ControlChars) -> OwnedEvent {
    signed_with(Vec::new(), content, form)
}

fn signed_with(tags: Vec<Vec<String>>, content: &str, form: ControlChars) -> OwnedEvent {
    let key = SecretKey::from_bytes(&[7; 32]).unwrap();
    let pubkey = key.public_key().to_bytes();
    let created_at = 1_700_000_123;
    let kind = 1;
    let escaped = json!([0, hex::encode(&pubkey), created_at, kind, tags, content]).to_string();
    let canonical = match form {
        Escaped => escaped,
        Verbatim => (0..0x20u8).fold(escaped, |json, byte| {
            json.replace(&format!("\\u{byte:04x}"), &char::from(byte).to_string())
        }),
    };
    let id = sha256::digest(canonical.as_bytes());
    let sig = key.sign(&id, &[0; 32]);
    OwnedEvent { id, pubkey, created_at, kind, tags, content: content.to_owned(), sig }
}

/// The policy that accepts one form.
fn policy(form: ControlChars) -> IdSerialization {
    match form {
        Verbatim => IdSerialization::Verbatim,
        Escaped => IdSerialization::Escaped,
    }
}
