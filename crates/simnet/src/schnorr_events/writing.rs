//! What is in an event of this kind?
//!
//! References are to events that are there, so that a reader may follow them.

use super::event::{Draft, Event, to_json};
use crate::hex::hex;
use crate::random::Random;
use crate::text;

/// Writes an event of `kind`; `earlier` are those that it may refer to.
pub(super) fn draft(kind: u16, created_at: u64, earlier: &[Event], random: &mut Random) -> Draft {
    let (tags, content) = match kind {
        PROFILE => (Vec::new(), profile(random)),
        NOTE => (note_tags(earlier, random), prose(random)),
        CONTACTS => (contacts(random), String::new()),
        REACTION => (about(earlier, random, |_| ""), (*random.pick(&REACTIONS)).to_owned()),
        _ => (about(earlier, random, |random| *random.pick(&GROUNDS)), prose(random)),
    };
    Draft { created_at, kind, tags, content }
}

fn profile(random: &mut Random) -> String {
    let (name, about) = (to_json(text::word(random)), to_json(&prose(random)));
    format!(r#"{{"name":{name},"about":{about}}}"#)
}

/// A reply's tags for three in five notes, and now and then a topic.
fn note_tags(earlier: &[Event], random: &mut Random) -> Vec<Vec<String>> {
    let mut tags = Vec::new();
    if let (true, Some(root)) = (random.chance(3, 5), pick(earlier, random)) {
        tags.push(tag(["e", &hex(&root.id), "wss://relay.example", "root"]));
        tags.push(tag(["p", &hex(&root.pubkey)]));
    }
    for _ in 0..random.below(4) / 2 {
        tags.push(tag(["t", text::word(random)]));
    }
    tags
}

/// The people whom somebody follows, most of whom write nothing here.
fn contacts(random: &mut Random) -> Vec<Vec<String>> {
    (0..random.between(10, 150)).map(|_| tag(["p", &hex(&random.bytes32())])).collect()
}

/// The tags of a word about an event: the event, its author, and `grounds` for either unless empty.
fn about(
    earlier: &[Event],
    random: &mut Random,
    grounds: impl FnOnce(&mut Random) -> &'static str,
) -> Vec<Vec<String>> {
    let Some(event) = pick(earlier, random) else { return Vec::new() };
    let (id, pubkey) = (hex(&event.id), hex(&event.pubkey));
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

fn pick<'e>(events: &'e [Event], random: &mut Random) -> Option<&'e Event> {
    (!events.is_empty()).then(|| random.pick(events))
}

fn tag<const N: usize>(values: [&str; N]) -> Vec<String> {
    values.map(str::to_owned).to_vec()
}

/// How many of a thousand events are of which kind. Reports are more frequent than in life.
pub(super) const KINDS: [(u16, u64); 5] =
    [(PROFILE, 70), (NOTE, 550), (CONTACTS, 50), (REACTION, 300), (REPORT, 30)];

const PROFILE: u16 = 0;
const NOTE: u16 = 1;
const CONTACTS: u16 = 3;
const REACTION: u16 = 7;
const REPORT: u16 = 1984;

const REACTIONS: [&str; 5] = ["+", "+", "🤙", "❤️", ":harbour:"];
const GROUNDS: [&str; 4] = ["spam", "spam", "impersonation", "other"];

/// What stands between two words. U+2028 ends a line for some readers of lines, but not in JSON.
const BREAKS: [&str; 12] =
    [" ", " ", " ", " ", " ", " ", ", ", "\n", ".\n\n", " \"so\" ", "\\", "\u{2028}"];

/// Bytes of the longest break and the longest word.
const LONGEST_STEP: u64 = 18;
