//! The tags and content of events by kind.
//!
//! References are to earlier events, so that a reader can resolve them.

use kernels::hex;

use super::event::{SignedEvent, UnsignedEvent, to_json};
use crate::random::Random;
use crate::text;

/// Writes an event of `kind`, which may refer to `earlier` events.
pub(super) fn write(
    kind: u16,
    created_at: u64,
    earlier: &[SignedEvent],
    random: &mut Random,
) -> UnsignedEvent {
    let (tags, content) = match kind {
        PROFILE => (Vec::new(), profile(random)),
        NOTE => (note_tags(earlier, random), prose(random)),
        CONTACTS => (contacts(random), String::new()),
        REACTION => (about(earlier, random, |_| ""), (*random.pick(&REACTIONS)).to_owned()),
        _ => (about(earlier, random, |random| *random.pick(&GROUNDS)), prose(random)),
    };
    UnsignedEvent { created_at, kind, tags, content }
}

fn profile(random: &mut Random) -> String {
    let (name, about) = (to_json(text::word(random)), to_json(&prose(random)));
    format!(r#"{{"name":{name},"about":{about}}}"#)
}

/// The tags of a reply for three in five notes, and sometimes topics.
fn note_tags(earlier: &[SignedEvent], random: &mut Random) -> Vec<Vec<String>> {
    let mut tags = Vec::new();
    if let (true, Some(root)) = (random.chance(3, 5), pick(earlier, random)) {
        tags.push(tag(["e", &hex::encode(&root.id), "wss://relay.example", "root"]));
        tags.push(tag(["p", &hex::encode(&root.pubkey)]));
    }
    for _ in 0..random.below(4) / 2 {
        tags.push(tag(["t", text::word(random)]));
    }
    tags
}

/// The keys of followed people, none of whom write events here.
fn contacts(random: &mut Random) -> Vec<Vec<String>> {
    (0..random.between(10, 150)).map(|_| tag(["p", &hex::encode(&random.bytes32())])).collect()
}

/// References to an event and its author, both with `grounds` unless empty.
fn about(
    earlier: &[SignedEvent],
    random: &mut Random,
    grounds: impl FnOnce(&mut Random) -> &'static str,
) -> Vec<Vec<String>> {
    let Some(event) = pick(earlier, random) else { return Vec::new() };
    let (id, pubkey) = (hex::encode(&event.id), hex::encode(&event.pubkey));
    match grounds(random) {
        "" => vec![tag(["e", &id]), tag(["p", &pubkey])],
        grounds => vec![tag(["e", &id, grounds]), tag(["p", &pubkey, grounds])],
    }
}

/// Between 20 and 400 bytes.
fn prose(random: &mut Random) -> String {
    let len = random.between(20, 400 - LONGEST_STEP) as usize;
    let mut prose = text::word(random).to_owned();
    while prose.len() < len {
        prose.push_str(random.pick::<&str>(&BREAKS));
        prose.push_str(text::word(random));
    }
    prose
}

fn pick<'e>(events: &'e [SignedEvent], random: &mut Random) -> Option<&'e SignedEvent> {
    (!events.is_empty()).then(|| random.pick(events))
}

fn tag<const N: usize>(values: [&str; N]) -> Vec<String> {
    values.map(str::to_owned).to_vec()
}

/// The shares of kinds, per mille. Reports are more frequent than on live relays.
pub(super) const KINDS: [(u16, u64); 5] =
    [(PROFILE, 70), (NOTE, 550), (CONTACTS, 50), (REACTION, 300), (REPORT, 30)];

const PROFILE: u16 = 0;
const NOTE: u16 = 1;
const CONTACTS: u16 = 3;
const REACTION: u16 = 7;
const REPORT: u16 = 1984;

const REACTIONS: [&str; 5] = ["+", "+", "🤙", "❤️", ":harbour:"];
const GROUNDS: [&str; 4] = ["spam", "spam", "impersonation", "other"];

/// The separators of words. Some line readers take U+2028 for the end of a line; JSON does not.
const BREAKS: [&str; 12] =
    [" ", " ", " ", " ", " ", " ", ", ", "\n", ".\n\n", " \"so\" ", "\\", "\u{2028}"];

/// The length of the longest break and the longest word together, in bytes.
const LONGEST_STEP: u64 = 18;
