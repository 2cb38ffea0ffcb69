//! Which events are there to encode and decode, and what must come of it? The units of the tasks
//! `nostr-…`.

use bumpalo::Bump;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{Event, Limits, verify_many};

use crate::Task;
use crate::counts::Counts;
use crate::error::CorpusFault;

/// Lines of events that stand under one name.
#[derive(Clone, Debug)]
pub(crate) struct Group<'f> {
    /// Empty before the first line that names one.
    pub(crate) name: &'f str,
    pub(crate) lines: Vec<&'f str>,
}

/// The groups of a file. A line ends at a line feed and at nothing else; one that begins with `#` names
/// the group of those behind it. `None` if it is not UTF-8.
pub(crate) fn groups(file: &[u8]) -> Option<Vec<Group<'_>>> {
    let mut groups = vec![Group { name: "", lines: Vec::new() }];
    for line in str::from_utf8(file).ok()?.split_terminator('\n') {
        match line.strip_prefix('#') {
            Some(name) => groups.push(Group { name, lines: Vec::new() }),
            None => groups.last_mut().expect("it begins with one").lines.push(line),
        }
    }
    groups.retain(|group| !group.lines.is_empty());
    Some(groups)
}

/// The events of all groups, or which of them is none.
pub(crate) fn events<'f>(
    groups: &[Group<'f>],
    arena: &'f Bump,
) -> Result<Vec<Event<'f>>, CorpusFault> {
    let lines = groups.iter().flat_map(|group| &group.lines);
    let event = |(at, line): (usize, &&'f str)| {
        let event = Format::Json.decode(line.as_bytes(), arena, &Limits::default());
        event.map_err(|fault| CorpusFault::Event { at, fault })
    };
    lines.enumerate().map(event).collect()
}

/// What a decoder has found so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    events: u64,
    errors: u64,
    tags: u64,
    values: u64,
    value_bytes: u64,
    content_bytes: u64,
    kinds: u64,
    seconds: u64,
}

impl Tally {
    /// Counts what is in these events.
    pub(crate) fn of(events: &[Event<'_>]) -> Self {
        let mut tally = Self::default();
        events.iter().for_each(|event| tally.note(event));
        tally
    }

    /// Counts what is in `event`.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        self.events += 1;
        self.tags += event.tags.len() as u64;
        for tag in event.tags {
            self.values += tag.len() as u64;
            self.value_bytes += tag.iter().map(|value| value.text_len() as u64).sum::<u64>();
        }
        self.content_bytes += event.content.len() as u64;
        self.kinds += u64::from(event.kind);
        self.seconds = self.seconds.wrapping_add_signed(event.created_at);
    }

    /// Counts bytes that are no event.
    pub(crate) fn note_error(&mut self) {
        self.events += 1;
        self.errors += 1;
    }
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Self {
        Self::from_iter([
            ("events", tally.events),
            ("errors", tally.errors),
            ("tags", tally.tags),
            ("values", tally.values),
            ("value_bytes", tally.value_bytes),
            ("content_bytes", tally.content_bytes),
            ("kinds", tally.kinds),
            ("seconds", tally.seconds),
        ])
    }
}

/// How many events are in a batch of the task `nostr-batch`.
pub(crate) const BATCHES: [usize; 4] = [1, 10, 100, 1_000];

/// A field, or a question that two fields answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Kind,
    Pubkey,
    Both,
    /// Whether the kind is 1 and the author among the first quarter of all keys.
    Filter,
}

impl Asked {
    pub(crate) const ALL: [Self; 4] = [Self::Kind, Self::Pubkey, Self::Both, Self::Filter];

    /// What stands behind the format's name in a variant.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Pubkey => "pubkey",
            Self::Both => "both",
            Self::Filter => "filter",
        }
    }

    /// The counts of the task `nostr-fields` over all answers, each `None` where bytes had none.
    pub(crate) fn counts(self, answers: impl Iterator<Item = Option<Answer>>) -> Counts {
        let (mut events, mut sums) = (0, Answer::default());
        for answer in answers {
            events += 1;
            sums.add(answer.unwrap_or_default());
        }
        let counts = Counts::from_iter([("events", events)]);
        match self {
            Self::Kind => counts.with("kinds", sums.kind),
            Self::Pubkey => counts.with("pubkeys", sums.pubkey),
            Self::Both => counts.with("kinds", sums.kind).with("pubkeys", sums.pubkey),
            Self::Filter => counts.with("matched", sums.matched),
        }
    }
}

/// What was asked of one event; zero where it was not asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    kind: u64,
    // The first four bytes, big-endian.
    pubkey: u64,
    matched: u64,
}

impl Answer {
    pub(crate) fn kind(kind: u16) -> Self {
        Self { kind: kind.into(), ..Self::default() }
    }

    pub(crate) fn pubkey(pubkey: &[u8; 32]) -> Self {
        let [a, b, c, d, ..] = *pubkey;
        Self { pubkey: u32::from_be_bytes([a, b, c, d]).into(), ..Self::default() }
    }

    pub(crate) fn both((kind, pubkey): (u16, [u8; 32])) -> Self {
        Self { kind: kind.into(), ..Self::pubkey(&pubkey) }
    }

    pub(crate) fn filter((kind, pubkey): (u16, [u8; 32])) -> Self {
        let is_match = kind == 1 && pubkey[0] < 0x40;
        Self { matched: is_match.into(), ..Self::default() }
    }

    fn add(&mut self, other: Self) {
        self.kind += other.kind;
        self.pubkey = (self.pubkey + other.pubkey) & u64::from(u32::MAX);
        self.matched += other.matched;
    }
}

/// What every peer must find that does `task`.
pub(crate) fn usual(task: Task, events: &[Event<'_>]) -> Counts {
    let len = events.len() as u64;
    match task {
        Task::NostrSerialize => Counts::from_iter([("events", len), ("errors", 0)]),
        Task::NostrFields => Counts::from_iter([("events", len)]),
        Task::NostrValidated => {
            let valid = verify_many(events).iter().filter(|verdict| verdict.is_ok()).count() as u64;
            let counts =
                [("events", len), ("valid", valid), ("invalid", len - valid), ("errors", 0)];
            Counts::from_iter(counts)
        }
        _ => Tally::of(events).into(),
    }
}

/// What each variant of `task` must find in these events, by its name, where it is more than that.
pub(crate) fn expected(task: Task, events: &[Event<'_>]) -> Vec<(String, Counts)> {
    match task {
        Task::NostrSerialize => Format::ALL.iter().map(|format| written(*format, events)).collect(),
        Task::NostrFields => {
            let asked = |format: &'static Format| Asked::ALL.map(|asked| (*format, asked));
            let each = Format::ALL.iter().flat_map(asked);
            each.map(|(format, asked)| answered(format, asked, events)).collect()
        }
        _ => Vec::new(),
    }
}

fn written(format: Format, events: &[Event<'_>]) -> (String, Counts) {
    let (mut out, mut bytes, mut errors) = (Vec::new(), 0, 0);
    for event in events {
        out.clear();
        errors += u64::from(format.encode(event, &mut out).is_err());
        bytes += out.len() as u64;
    }
    let counts = [("events", events.len() as u64), ("errors", errors), ("bytes", bytes)];
    (format.name().to_owned(), Counts::from_iter(counts))
}

fn answered(format: Format, asked: Asked, events: &[Event<'_>]) -> (String, Counts) {
    let both = |event: &Event<'_>| (event.kind, event.pubkey);
    let answers = events.iter().map(|event| {
        Some(match asked {
            Asked::Filter => Answer::filter(both(event)),
            _ => Answer::both(both(event)),
        })
    });
    (format!("{}/{}", format.name(), asked.name()), asked.counts(answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_with_a_hash_names_the_group_of_those_behind_it() {
        let groups = groups(b"a\n#kind-1\nb\nc\n#empty\n#kind-7\nd\n").unwrap();
        let told: Vec<_> = groups.iter().map(|it| (it.name, it.lines.as_slice())).collect();
        assert_eq!(told, [("", &["a"][..]), ("kind-1", &["b", "c"]), ("kind-7", &["d"])]);
    }

    #[test]
    fn a_filter_matches_notes_of_the_first_quarter_of_all_keys() {
        let matched = |kind, first| {
            let mut pubkey = [0xff; 32];
            pubkey[0] = first;
            Answer::filter((kind, pubkey)).matched
        };
        assert_eq!([matched(1, 0x3f), matched(1, 0x40), matched(7, 0)], [1, 0, 0]);
    }
}
