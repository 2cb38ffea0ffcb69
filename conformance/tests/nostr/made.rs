//! Shared helpers: generated events, real events, and reproducible random numbers.

use bumpalo::Bump;
use nostr::canonical::{self, ControlChars};
use nostr::{DecodeError, EncodeError, Event, Limits, OwnedEvent};
use nostr_formats::Format;

/// The lines of a file of events: split on LF alone, as text may hold every other separator.
pub(crate) fn lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// The events of a file, in order.
pub(crate) fn events<'a>(file: &'a [u8], arena: &'a Bump) -> Vec<Event<'a>> {
    let decode = |line| Format::Json.decode(line, arena, &Limits::default()).unwrap();
    lines(file).map(decode).collect()
}

/// A plain event with a right id and no valid signature.
pub(crate) fn event(tags: &[&[&str]], content: &str) -> OwnedEvent {
    let tag = |tag: &&[&str]| tag.iter().map(|value| (*value).to_owned()).collect();
    with_its_id(OwnedEvent {
        id: [0; 32],
        pubkey: std::array::from_fn(|at| at as u8),
        created_at: 1_700_000_123,
        kind: 1,
        tags: tags.iter().map(tag).collect(),
        content: content.to_owned(),
        sig: std::array::from_fn(|at| 64 + at as u8),
    })
}

/// The event with the id that it must have.
pub(crate) fn with_its_id(mut event: OwnedEvent) -> OwnedEvent {
    let arena = Bump::new();
    event.id = canonical::id(&event.borrow_in(&arena), ControlChars::Verbatim, &mut Vec::new());
    event
}

/// A few events that have something of everything.
pub(crate) fn ordinary() -> Vec<OwnedEvent> {
    let (id, odd) = ("0123456789abcdef".repeat(4), "a".repeat(35));
    vec![
        event(&[], ""),
        event(&[&["e", &id, "wss://relay.test", "root"], &["p", &id], &[]], "Hello, \u{1f30d}\n"),
        event(&[&["custom", "DEADBEEF", "deadbeef", "1", &odd]], &format!("see {id}, {odd}.")),
        event(&[&[""], &["x"], &["a", &format!("30023:{id}:d"), "", "", "", "", ""]], "\0\u{7f}\""),
    ]
}

pub(crate) fn encoded(format: Format, event: &Event<'_>) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = b"before".to_vec();
    let outcome = format.encode(event, &mut bytes);
    assert!(bytes.starts_with(b"before") && (outcome.is_ok() || bytes.len() == 6));
    outcome.map(|()| bytes.split_off(6))
}

/// The event after encoding and decoding, which must succeed.
pub(crate) fn there_and_back(
    format: Format,
    event: &OwnedEvent,
) -> Result<OwnedEvent, EncodeError> {
    let bytes = encoded(format, &event.borrow_in(&Bump::new()))?;
    Ok(decoded(format, &bytes).unwrap_or_else(|error| panic!("{}: {error}", format.name())))
}

fn decoded(format: Format, bytes: &[u8]) -> Result<OwnedEvent, DecodeError> {
    format.decode(bytes, &Bump::new(), &raised_limits()).map(|event| event.to_owned())
}

/// One to three changes: a bit, a byte, a byte more or less, a part moved, an end cut off.
pub(crate) fn mutated(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(8) {
            0..=2 => bytes[at] ^= 1 << random.below(8),
            3 => bytes[at] = random.next() as u8,
            4 => bytes.insert(at, random.next() as u8),
            5 => drop(bytes.remove(at)),
            6 => {
                let end = bytes.len().min(at + 1 + random.below(16));
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Limits above every edge case.
pub(crate) fn raised_limits() -> Limits {
    let mut limits = Limits::default();
    limits.content_bytes = 2 << 20;
    limits.tags = 100_000;
    limits.tag_values = 100_000;
    limits.value_bytes = 2 << 20;
    limits.events = 10_000;
    limits.list_bytes = 16 << 20;
    limits
}

/// Numbers from a seed, by splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
