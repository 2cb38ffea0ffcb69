//! Encodes and decodes Nostr events as any caller does, in every format, with one arena that is reset between events; and
//! the reference counts of these tasks.

mod read;
mod validate;
mod write;

use std::time::Instant;

use bumpalo::Bump;
use nostr::{EncodeError, Event, Limits, verify_many};
use nostr_formats::Format;
use protocol::{
    BoxError, Counts, EventCounts, EventField, FieldSums, FieldValue, Loaded, VerdictCounts, Work,
    checks,
};

use super::Variants;
use crate::Task;
use crate::error::CorpusFault;
use crate::nostr::Unheld;

pub(super) fn variants(task: Task) -> Variants {
    let decode = checks::names(&checks::EVENT);
    let checks = match task {
        Task::NostrSerialize => Vec::new(),
        Task::NostrFields => vec!["kind-range"],
        Task::NostrValidated => [decode, checks::names(&checks::VALIDATED)].concat(),
        _ => decode,
    };
    let names = Format::ALL.iter().flat_map(|format| names(task, *format));
    names.map(|name| (name, checks.clone())).collect()
}

/// The variants of a task in a format.
fn names(task: Task, format: Format) -> Vec<String> {
    match task {
        Task::NostrFields => EventField::ALL.map(|field| field_variant(format, field)).into(),
        Task::NostrValidated => vec![format.name().to_owned(), format!("{}/batch", format.name())],
        Task::NostrSize => Vec::new(),
        _ => vec![format.name().to_owned()],
    }
}

fn field_variant(format: Format, field: EventField) -> String {
    format!("{}/{}", format.name(), field.name())
}

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    task: Task,
    variant: &str,
    files: &'f [Vec<u8>],
    arena: &'f Bump,
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let (name, suffix) = variant.split_once('/').unwrap_or((variant, ""));
    let Some(format) = Format::from_name(name) else { return Ok(None) };
    let corpus = Corpus::read(files, arena)?.held_by(format);
    Ok(match (task, suffix) {
        (Task::NostrSerialize, "") => Some(Box::new(write::Encode::new(format, &corpus, arena))),
        (Task::NostrDeserialize, "") => Some(Box::new(read::Decode::new(format, &corpus)?)),
        (Task::NostrValidated, "") => Some(Box::new(validate::Single::new(format, &corpus)?)),
        (Task::NostrValidated, "batch") => Some(Box::new(validate::Batched::new(format, &corpus)?)),
        (Task::NostrByKind | Task::NostrByCategory, "") => {
            Some(Box::new(read::Decode::grouped(format, &corpus)?))
        }
        (Task::NostrBatch, "") => Some(Box::new(read::Batches::new(format, &corpus)?)),
        (Task::NostrFields, suffix) => match EventField::from_name(suffix) {
            Some(field) => Some(Box::new(read::Fields::new(format, field, &corpus)?)),
            None => None,
        },
        _ => None,
    })
}

/// The lines of events with one group name.
#[derive(Clone, Debug)]
pub(crate) struct Group<'f> {
    /// Empty before the first line that names a group.
    pub(crate) name: &'f str,
    pub(crate) lines: Vec<&'f str>,
}

/// The groups of a file. A line ends at a line feed only; one that begins with `#` names the group of the lines after
/// it. `None` if the file is not UTF-8.
pub(crate) fn groups(file: &[u8]) -> Option<Vec<Group<'_>>> {
    let mut groups = vec![Group { name: "", lines: Vec::new() }];
    for line in str::from_utf8(file).ok()?.split_terminator('\n') {
        match line.strip_prefix('#') {
            Some(name) => groups.push(Group { name, lines: Vec::new() }),
            None => groups.last_mut().expect("there is a group from the start").lines.push(line),
        }
    }
    groups.retain(|group| !group.lines.is_empty());
    Some(groups)
}

/// The events of all groups.
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

/// The reference counts of `task` for all variants without counts of their own.
pub(crate) fn counts(task: Task, events: &[Event<'_>]) -> Counts {
    let len = events.len() as u64;
    match task {
        Task::NostrSerialize => Counts::from_iter([("events", len), ("errors", 0)]),
        Task::NostrFields => Counts::from_iter([("events", len)]),
        Task::NostrValidated => {
            let valid = verify_many(events).iter().filter(|outcome| outcome.is_ok()).count() as u64;
            VerdictCounts { events: len, valid, invalid: len - valid, errors: 0 }.into()
        }
        _ => {
            let mut counts = EventCounts::default();
            events.iter().for_each(|event| add(&mut counts, event));
            counts.into()
        }
    }
}

/// The variants of `task` in a format, with their reference counts if these are not the task's.
pub(crate) fn counts_by_variant(
    task: Task,
    format: Format,
    events: &[Event<'_>],
) -> Vec<(String, Option<Counts>)> {
    match task {
        Task::NostrSerialize => vec![(format.name().to_owned(), Some(encoded(format, events)))],
        Task::NostrFields => EventField::ALL
            .map(|field| (field_variant(format, field), Some(sums(field, events))))
            .into(),
        _ => names(task, format).into_iter().map(|name| (name, None)).collect(),
    }
}

/// Events as a format holds them.
pub(crate) struct Held<'f> {
    /// Whether the format can hold them, event by event.
    pub(crate) is_held: Vec<bool>,
    /// The events that it can hold.
    pub(crate) events: Vec<Event<'f>>,
    /// The others.
    pub(crate) unheld: Unheld,
}

/// Divides events into the ones that a format can hold and the others.
pub(crate) fn held<'f>(format: Format, events: &[Event<'f>]) -> Held<'f> {
    let (mut held, mut out) = (Vec::with_capacity(events.len()), Vec::new());
    let mut unheld = Unheld::default();
    let encode = |event: &Event<'f>| {
        out.clear();
        let encoded = format.encode(event, &mut out);
        match &encoded {
            Ok(()) => held.push(*event),
            Err(error) => unheld.add(event, error),
        }
        encoded.is_ok()
    };
    let is_held = events.iter().map(encode).collect();
    Held { is_held, events: held, unheld }
}

fn encoded(format: Format, events: &[Event<'_>]) -> Counts {
    let mut out = Vec::new();
    let mut bytes = 0;
    let mut errors = 0;
    for event in events {
        out.clear();
        errors += u64::from(format.encode(event, &mut out).is_err());
        bytes += out.len() as u64;
    }
    Counts::from_iter([("events", events.len() as u64), ("errors", errors), ("bytes", bytes)])
}

fn sums(field: EventField, events: &[Event<'_>]) -> Counts {
    let mut sums = FieldSums::new(field);
    for Event { kind, pubkey, .. } in events {
        sums.add(Some(match field {
            EventField::Filter => FieldValue::filtered(*kind, *pubkey),
            _ => FieldValue::Both(*kind, *pubkey),
        }));
    }
    sums.into()
}

/// Counts a decoded event.
fn add(counts: &mut EventCounts, event: &Event<'_>) {
    counts.event(event.kind, event.created_at, event.content);
    for tag in event.tags {
        counts.tag();
        tag.iter().for_each(|value| counts.value(value.text_len()));
    }
}

/// The events of a corpus in the type that we decode to.
struct Corpus<'f> {
    groups: Vec<Group<'f>>,
    events: Vec<Event<'f>>,
}

impl<'f> Corpus<'f> {
    fn read(files: &'f [Vec<u8>], arena: &'f Bump) -> Result<Self, BoxError> {
        let [file] = files else { return Err("not one file of events".into()) };
        let groups = groups(file).ok_or("not lines of UTF-8")?;
        let events = events(&groups, arena)?;
        Ok(Self { groups, events })
    }

    /// The same without the events that a format cannot hold.
    fn held_by(mut self, format: Format) -> Self {
        let Held { is_held, events, .. } = held(format, &self.events);
        let mut is_held = is_held.into_iter();
        for group in &mut self.groups {
            group.lines.retain(|_| is_held.next().unwrap_or_default());
        }
        self.groups.retain(|group| !group.lines.is_empty());
        Self { events, ..self }
    }

    fn loaded(&self) -> Loaded {
        Loaded::of(self.groups.iter().flat_map(|group| &group.lines).map(|line| line.len()))
    }
}

/// Events or batches in a format, one after the other in one buffer.
#[derive(Default)]
struct Encoded {
    bytes: Vec<u8>,
    /// The ends of the items in `bytes`.
    ends: Vec<usize>,
}

impl Encoded {
    /// The events, one by one.
    fn events(format: Format, events: &[Event<'_>]) -> Result<Self, BoxError> {
        let mut encoded = Self::default();
        for event in events {
            encoded.push(|out| format.encode(event, out))?;
        }
        Ok(encoded)
    }

    /// Batches of `len` events; the last may be shorter.
    fn batches(format: Format, events: &[Event<'_>], len: usize) -> Result<Self, BoxError> {
        let mut encoded = Self::default();
        for batch in events.chunks(len) {
            encoded.push(|out| format.encode_batch(batch, out))?;
        }
        Ok(encoded)
    }

    fn push(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) -> Result<(), BoxError> {
        let at = self.ends.len();
        write(&mut self.bytes).map_err(|error| format!("item {at}: {error}"))?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    /// All items in order.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.range(0, self.len())
    }

    /// The items from `start` up to `end`.
    fn range(&self, start: usize, end: usize) -> impl Iterator<Item = &[u8]> {
        let mut from = start.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends[start..end]
            .iter()
            .map(move |to| &self.bytes[std::mem::replace(&mut from, *to)..*to])
    }
}

/// Times consecutive chunks of a pass.
struct ChunkClock {
    since: Instant,
    chunks_ns: Vec<u64>,
}

impl ChunkClock {
    fn start() -> Self {
        Self { since: Instant::now(), chunks_ns: Vec::new() }
    }

    /// Ends a chunk.
    #[inline]
    fn lap(&mut self) {
        let now = Instant::now();
        self.chunks_ns.push((now - self.since).as_nanos() as u64);
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_begins_with_a_hash_names_the_group_of_the_lines_after_it() {
        let groups = groups(b"a\n#kind-1\nb\nc\n#empty\n#kind-7\nd\n").unwrap();
        let found: Vec<_> = groups.iter().map(|it| (it.name, it.lines.as_slice())).collect();
        assert_eq!(found, [("", &["a"][..]), ("kind-1", &["b", "c"]), ("kind-7", &["d"])]);
    }
}
