//! Real events verify with their authors' keys, and events that differ by one byte do not; strfry's
//! summary of a real event has the fields that a relay indexes.

use bumpalo::Bump;
use kernels::hex;
use nostr::canonical::ControlChars;
use nostr::{Event, EventFault, Limits, OwnedEvent, verify_many};
use nostr_formats::packed_event::{IndexedTag, PackedEvent};
use nostr_formats::{Format, packed_event};
use wireproof_conformance::fixtures;

use crate::made::{Random, events, lines, mutated};

#[test]
fn every_real_event_is_its_authors_alone_and_among_others() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let arena = Bump::new();
    let events = events(&file, &arena);
    assert_eq!(verify_many(&events), vec![Ok(ControlChars::Verbatim); events.len()]);
    for event in &events {
        let verdicts = (event.verify(), event.verify_signature());
        assert_eq!(verdicts, (Ok(ControlChars::Verbatim), Ok(())), "{:x?}", event.id);
    }
}

#[test]
fn an_event_with_one_byte_changed_is_refused_and_its_neighbours_are_not() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let (arena, mut random) = (Bump::new(), Random(1));
    let events = events(&file, &arena);
    for part in ChangedPart::ALL {
        let changed: Vec<Option<OwnedEvent>> =
            events.iter().map(|event| part.changed(event, &mut random)).collect();
        let arena = Bump::new();
        // Every second event is left as it is.
        let asked: Vec<Event<'_>> = events
            .iter()
            .zip(&changed)
            .enumerate()
            .map(|(at, (event, changed))| match changed {
                Some(changed) if at % 2 == 0 => changed.borrow_in(&arena),
                _ => *event,
            })
            .collect();
        for (at, verdict) in verify_many(&asked).into_iter().enumerate() {
            let is_changed = at % 2 == 0 && changed[at].is_some();
            let expected = if is_changed { part.is_refused(&verdict) } else { verdict.is_ok() };
            assert!(expected, "{part:?} of event {at}: {verdict:?}");
            if at % 16 == 0 {
                assert_eq!(asked[at].verify(), verdict, "{part:?} of event {at}");
            }
        }
    }
}

#[test]
fn a_line_with_one_bit_flipped_is_no_event_or_a_forged_one() {
    let file = fixtures!(Captures).bytes("nostr/events.jsonl");
    let mut random = Random(2);
    let mut read = 0;
    for line in lines(&file) {
        let mut line = line.to_vec();
        let at = random.below(line.len());
        line[at] ^= 1 << random.below(8);
        let arena = Bump::new();
        if let Ok(event) = Format::Json.decode(&line, &arena, &Limits::default()) {
            assert!(event.verify().is_err(), "{}", String::from_utf8_lossy(&line));
            read += 1;
        }
    }
    assert!(read > 1_000, "{read} were events");
}

/// The changed part of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangedPart {
    Id,
    Pubkey,
    CreatedAt,
    Kind,
    Value,
    Content,
    Sig,
}

impl ChangedPart {
    const ALL: [Self; 7] = [
        Self::Id,
        Self::Pubkey,
        Self::CreatedAt,
        Self::Kind,
        Self::Value,
        Self::Content,
        Self::Sig,
    ];

    /// The event with one byte of this part changed, if it has any.
    fn changed(self, event: &Event<'_>, random: &mut Random) -> Option<OwnedEvent> {
        let mut event = event.to_owned();
        let bit = 1 << random.below(8);
        match self {
            Self::Id => event.id[random.below(32)] ^= bit,
            Self::Pubkey => event.pubkey[random.below(32)] ^= bit,
            Self::CreatedAt => event.created_at ^= i64::from(bit) << random.below(48),
            Self::Kind => event.kind ^= u16::from(bit) << random.below(8),
            Self::Sig => event.sig[random.below(64)] ^= bit,
            Self::Content => event.content = with_another_letter(&event.content)?,
            Self::Value => {
                let value = event.tags.iter_mut().flatten().find(|value| !value.is_empty())?;
                *value = with_another_letter(value)?;
            }
        }
        Some(event)
    }

    fn is_refused(self, verdict: &Result<ControlChars, EventFault>) -> bool {
        match self {
            Self::Sig => matches!(verdict, Err(EventFault::Signature(_))),
            _ => *verdict == Err(EventFault::Id),
        }
    }
}

/// Text with its first replaceable letter replaced.
fn with_another_letter(text: &str) -> Option<String> {
    let at = text.bytes().position(|byte| byte.is_ascii_alphanumeric())?;
    let other = if text.as_bytes()[at] == b'a' { "b" } else { "a" };
    Some([&text[..at], other, &text[at + 1..]].concat())
}

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
        let listed: Vec<_> = summary.tags().filter(|tag| tag.name != b'd').map(text_of).collect();
        assert_eq!(listed, short_tags(event), "{}", hex::encode(&event.id));
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

/// Asserts that the tags of an accepted summary cover all of its bytes.
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

/// The expected summary tags: all except `d` with a name of one byte and a short value.
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
