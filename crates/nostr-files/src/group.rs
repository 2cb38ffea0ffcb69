//! The entries of a file that are read together, and decoding them.

use bumpalo::Bump;
use nostr::{DecodeError, Event, Limits};
use nostr_formats::container::Damage;
use nostr_formats::{Format, notepack};

use crate::database;
use crate::fault::{EntryFault, FileFault};
use crate::message;

/// Entries of a file that were read together, not decoded, or a part of a container that is damaged.
#[derive(Debug)]
pub struct RawGroup {
    /// Index of the first of them in the file.
    pub first: u64,
    pub(crate) content: Content,
}

/// The form of the bytes of a group.
#[derive(Debug)]
pub(crate) enum Content {
    /// Lines with events.
    Lines { bytes: Vec<u8>, entries: Vec<RawEntry> },
    /// Events of a format.
    Events { format: Format, bytes: Vec<u8>, entries: Vec<RawEntry> },
    /// Records of a database.
    #[cfg_attr(
        not(any(feature = "nostr-lmdb", test)),
        expect(dead_code, reason = "only databases have records")
    )]
    Records { format: Format, bytes: Vec<u8>, records: Vec<RawRecord> },
    /// A list, and the maximum number of its events.
    List { format: Format, bytes: Vec<u8>, limit: usize },
    /// No entries.
    Damage(Damage),
}

/// An entry that is not decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawEntry {
    /// Its end in the bytes of the group.
    pub(crate) end: usize,
    /// Its line, from 1, if it is one.
    pub(crate) line: u64,
}

/// A record of a database.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRecord {
    /// The end of its event in the bytes of the group.
    pub(crate) end: usize,
    /// Length in bytes of the summary after it, with which the event is compared. 0 if there is none.
    pub(crate) summary_len: usize,
    pub(crate) key: u64,
    /// Why it is no event of the database.
    pub(crate) fault: Option<EntryFault>,
}

/// An entry of a file, which should be an event.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its line, from 1, in a file of lines.
    pub line: Option<u64>,
    /// Its key in a database.
    pub key: Option<u64>,
    /// The JSON of the event in a line, or the whole line if it is no event. A string `notepack_…` has none. The JSON in a
    /// record of a database, unless it has several lines.
    pub json: Option<&'a [u8]>,
    /// The event, or the reason why it is invalid.
    pub event: Result<Event<'a>, EntryFault>,
}

impl RawGroup {
    /// The damage, if this is no group of entries.
    pub fn damage(&self) -> Option<Damage> {
        match self.content {
            Content::Damage(damage) => Some(damage),
            _ => None,
        }
    }

    #[cfg(any(feature = "nostr-lmdb", test))]
    pub(crate) fn of_records(
        first: u64,
        format: Format,
        bytes: Vec<u8>,
        records: Vec<RawRecord>,
    ) -> Self {
        Self { first, content: Content::Records { format, bytes, records } }
    }

    /// Decodes the entries.
    ///
    /// # Errors
    /// If they are no list of the format.
    pub fn decode<'a>(&'a self, arena: &'a Bump) -> Result<Vec<Entry<'a>>, FileFault> {
        self.decode_from(self.bytes(), arena)
    }

    /// Decodes the entries of a copy of the bytes in `arena`.
    pub(crate) fn decode_in<'a>(&self, arena: &'a Bump) -> Result<Vec<Entry<'a>>, FileFault> {
        self.decode_from(arena.alloc_slice_copy(self.bytes()), arena)
    }

    fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Lines { bytes, .. }
            | Content::Events { bytes, .. }
            | Content::Records { bytes, .. }
            | Content::List { bytes, .. } => bytes,
            Content::Damage(_) => &[],
        }
    }

    fn decode_from<'a>(
        &self,
        bytes: &'a [u8],
        arena: &'a Bump,
    ) -> Result<Vec<Entry<'a>>, FileFault> {
        let mut limits = Limits::default();
        match &self.content {
            Content::Damage(_) => Ok(Vec::new()),
            Content::List { format, limit, .. } => {
                let events =
                    format.decode_batch(bytes, arena, &limits).map_err(FileFault::Batch)?;
                let entry = |event: &Event<'a>| Entry::of(Ok::<_, DecodeError>(*event));
                Ok(events.iter().take(*limit).map(entry).collect())
            }
            Content::Lines { entries, .. } => {
                let entry = |(item, line)| line_entry(item, line, arena, &limits);
                Ok(items(bytes, entries).map(entry).collect())
            }
            Content::Events { format, entries, .. } => {
                let entry = |(item, _): (&'a [u8], u64)| {
                    let event = format.decode(item, arena, &limits);
                    // Events that are small on disk and large in memory share one allowance.
                    let _ = event.map(|event| limits.charge(&event, item.len()));
                    Entry::of(event)
                };
                Ok(items(bytes, entries).map(entry).collect())
            }
            Content::Records { format, records, .. } => {
                let mut start = 0;
                let entry = |record: &RawRecord| {
                    let next = record.end + record.summary_len;
                    let item = &bytes[std::mem::replace(&mut start, next)..record.end];
                    let event = match record.fault {
                        Some(fault) => Err(fault),
                        None => decode_record(*format, item, arena, &mut limits)
                            .and_then(|event| same_as_row(event, &bytes[record.end..next])),
                    };
                    let is_line =
                        *format == Format::Json && !item.is_empty() && !item.contains(&b'\n');
                    let json = is_line.then_some(item);
                    Entry { key: Some(record.key), json, ..Entry::of(event) }
                };
                Ok(records.iter().map(entry).collect())
            }
        }
    }
}

impl<'a> Entry<'a> {
    /// An entry that is known by its index alone.
    fn of(event: Result<Event<'a>, impl Into<EntryFault>>) -> Self {
        Self { line: None, key: None, json: None, event: event.map_err(Into::into) }
    }
}

/// Decodes an event of a database. Events that are small on disk and large in memory share one allowance.
fn decode_record<'a>(
    format: Format,
    item: &'a [u8],
    arena: &'a Bump,
    limits: &mut Limits,
) -> Result<Event<'a>, EntryFault> {
    let event = format.decode(item, arena, limits)?;
    limits.charge(&event, item.len());
    Ok(event)
}

/// The event, if it matches its row.
fn same_as_row<'a>(event: Event<'a>, summary: &[u8]) -> Result<Event<'a>, EntryFault> {
    let other = Some(summary).filter(|summary| !summary.is_empty());
    other.and_then(|summary| database::difference(&event, summary)).map_or(Ok(event), Err)
}

/// The bytes of entries, with their lines.
fn items<'a>(bytes: &'a [u8], entries: &[RawEntry]) -> impl Iterator<Item = (&'a [u8], u64)> {
    let mut start = 0;
    entries.iter().map(move |RawEntry { end, line }| {
        (&bytes[std::mem::replace(&mut start, *end)..*end], *line)
    })
}

fn line_entry<'a>(item: &'a [u8], line: u64, arena: &'a Bump, limits: &Limits) -> Entry<'a> {
    let line = Some(line);
    if let Some(text) = notepack_string(item) {
        let event = notepack::decode_string(text, arena, limits);
        return Entry { line, json: event.is_err().then_some(item), ..Entry::of(event) };
    }
    let (at, json) = message::event_in(item);
    let event = Format::Json.decode(json, arena, limits);
    let event = event.map_err(|error| DecodeError { offset: error.offset + at, ..error });
    Entry { line, json: Some(json), ..Entry::of(event) }
}

/// The string form of an event in a line.
fn notepack_string(line: &[u8]) -> Option<&str> {
    let text = line.trim_ascii();
    if text.starts_with(b"notepack_") { str::from_utf8(text).ok() } else { None }
}

/// Approximate size of a group in events and bytes.
pub(crate) const GROUP_EVENTS: usize = 512;
pub(crate) const GROUP_BYTES: usize = 4 << 20;
