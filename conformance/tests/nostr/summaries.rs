//! Does strfry's summary say of every real event what a relay looks for?

use bumpalo::Bump;
use wireproof::kernels::hex;
use wireproof::nostr::Event;
use wireproof::nostr::formats::packed_event::{self, IndexedTag, PackedEvent};
use wireproof_conformance::fixtures;

use crate::made::{Random, events, mutated};

#[test]
fn the_summary_of_every_real_event_has_its_fields_and_its_short_tags() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let arena = Bump::new();
    let mut refused = Vec::new();
    for event in &events(&file, &arena) {
        let mut bytes = Vec::new();
        if let Err(error) = packed_event::encode(event, &mut bytes) {
            refused.push((hex::encode(&event.id), error.to_string()));
            continue;
        }
        let summary = PackedEvent::new(&bytes).unwrap();
        assert_eq!((*summary.id(), *summary.pubkey()), (event.id, event.pubkey));
        assert_eq!((summary.created_at(), summary.kind()), (event.created_at, event.kind));
        let told: Vec<_> = summary.tags().filter(|tag| tag.name != b'd').map(text_of).collect();
        assert_eq!(told, short_tags(event), "{}", hex::encode(&event.id));
    }
    let refused: Vec<_> = refused.iter().map(|(id, why)| (&id[..], &why[..])).collect();
    assert_eq!(refused, WITHOUT_A_SUMMARY);
}

#[test]
fn a_summary_cut_or_changed_is_refused_or_another_one() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let (arena, mut random) = (Bump::new(), Random(6));
    for event in events(&file, &arena).iter().step_by(7) {
        let mut bytes = Vec::new();
        if packed_event::encode(event, &mut bytes).is_err() {
            continue;
        }
        for len in (0..bytes.len()).take(300) {
            judge(&bytes[..len]);
        }
        for _ in 0..110 {
            judge(&mutated(&bytes, &mut random));
        }
    }
}

/// That what is accepted tells of all its bytes.
fn judge(bytes: &[u8]) {
    match PackedEvent::new(bytes) {
        Ok(summary) => {
            let len: usize = summary.tags().map(|tag| 2 + tag.value.len()).sum();
            assert_eq!(HEAD_BYTES + len, bytes.len());
        }
        Err(error) => assert!(error.offset <= bytes.len(), "{error}"),
    }
}

fn text_of(tag: IndexedTag<'_>) -> (u8, String) {
    let text = match tag.name {
        b'e' | b'p' => hex::encode(tag.value),
        _ => String::from_utf8(tag.value.to_vec()).unwrap(),
    };
    (tag.name, text)
}

/// The tags but `d` whose name is one byte and whose value is short, as they should be told.
fn short_tags(event: &Event<'_>) -> Vec<(u8, String)> {
    let tags = event.tags.iter().filter_map(|tag| {
        let [name] = *tag.first()?.to_text().as_bytes() else { return None };
        let value = tag.get(1).map(|value| value.to_text().into_owned()).unwrap_or_default();
        let value = if let b'e' | b'p' = name { value.to_lowercase() } else { value };
        (name != b'd' && value.len() <= 255).then_some((name, value))
    });
    tags.collect()
}

/// Events that strfry takes no summary of.
const WITHOUT_A_SUMMARY: &[(&str, &str)] = &[
    ("98b8c57c7c04cee148011d758391cfca5903ac0e10f376e5be7ec72d749e74a0", NO_ID),
    ("4b77f5adb6a0ff37c5a4dd6b4a569233c8ec958b6bba41c9b68dc517431d6b1a", NO_ID),
];

const NO_ID: &str = "this format cannot hold a tag `e` or `p` whose value is not an id";

/// Bytes in front of the tags.
const HEAD_BYTES: usize = 88;
