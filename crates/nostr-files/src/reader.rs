//! Reads the events of one file in groups, so that a file of any length takes little memory.

use std::io::{self, BufRead, BufReader, Read};

use bumpalo::Bump;
use codec::wrapping::Wrapping;
use flate2::bufread::GzDecoder;
use kernels::hex;
use nostr::{DecodeError, Event, Limits};
use nostr_formats::container::{Damage, Item, MAX_EVENT_BYTES, StreamReader};
use nostr_formats::{Format, notepack};
#[cfg(feature = "nostr-lmdb")]
use nostr_lmdb::DatabaseError;

use crate::database;
use crate::layout::{Layout, Prefix, Records};
use crate::message;
use crate::stream::Stream;

/// Reads the events of one file.
pub struct Reader<'r> {
    layout: Layout,
    input: ByteSource<'r>,
    /// The blocks of a container, which are read from the input.
    blocks: Option<StreamReader<ByteSource<'r>>>,
    /// Around the events.
    compression: Option<&'static str>,
    /// Entries read so far, and lines.
    taken: u64,
    lines: u64,
    /// Whether the start of `input` is checked, and whether a list or a single event is read.
    is_started: bool,
    is_over: bool,
    /// Ends the reading after the group that was returned.
    fault: Option<FileFault>,
}

/// What a file is read from.
pub(crate) enum ByteSource<'r> {
    /// Bytes that do not wait long.
    Plain(Box<dyn BufRead + Send + 'r>),
    Stream(Stream),
}

impl<'r> ByteSource<'r> {
    fn plain(input: impl BufRead + Send + 'r) -> Self {
        Self::Plain(Box::new(input))
    }

    /// Whether the next line is there. One of a plain source is.
    fn has_line(&mut self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Stream(stream) => stream.has_line(),
        }
    }
}

impl Read for ByteSource<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(buf),
            Self::Stream(stream) => stream.read(buf),
        }
    }
}

impl BufRead for ByteSource<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Plain(input) => input.fill_buf(),
            Self::Stream(stream) => stream.fill_buf(),
        }
    }

    fn consume(&mut self, len: usize) {
        match self {
            Self::Plain(input) => input.consume(len),
            Self::Stream(stream) => stream.consume(len),
        }
    }
}

/// Entries of a file that were read together, not decoded, or a part of a container that is damaged.
#[derive(Debug)]
pub struct RawGroup {
    /// Index of the first of them in the file.
    pub first: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Lines with events.
    Lines {
        bytes: Vec<u8>,
        entries: Vec<RawEntry>,
    },
    /// Events of a format.
    Events {
        format: Format,
        bytes: Vec<u8>,
        entries: Vec<RawEntry>,
    },
    /// Records of a database.
    #[cfg_attr(
        not(any(feature = "nostr-lmdb", test)),
        expect(dead_code, reason = "only databases have records")
    )]
    Records {
        format: Format,
        bytes: Vec<u8>,
        records: Vec<RawRecord>,
    },
    /// A list, and the maximum number of its events.
    List {
        format: Format,
        bytes: Vec<u8>,
        limit: usize,
    },
    Damage(Damage),
}

#[derive(Clone, Copy, Debug)]
struct RawEntry {
    /// Its end in the bytes of the group.
    end: usize,
    /// Its line, from 1, if it is one.
    line: u64,
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
    /// The event, or why it is none.
    pub event: Result<Event<'a>, EntryFault>,
}

/// Why an entry is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryFault {
    /// Its bytes cannot be decoded.
    #[error(transparent)]
    Unreadable(#[from] DecodeError),
    /// A row of strfry's table `Event` with the summary of the event with this id, and no payload.
    #[error("table Event has the event {}, and EventPayload has no payload", hex::encode(.0))]
    NoPayload([u8; 32]),
    /// A payload in a database of strfry without a row in the table `Event`.
    #[error("table EventPayload has this event, and Event has no row")]
    NoRow,
    /// A row in the table `Event` that is no summary.
    #[error("the row in table Event is no summary of an event")]
    MalformedRow,
    /// The payload is that of another event than the row in the table `Event`, by this field.
    #[error("the payload is of another event than the row in table Event, by its {0}")]
    OtherEvent(&'static str),
}

impl EntryFault {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unreadable(_) => "event/unreadable",
            Self::NoPayload(_) => "database/no-payload",
            Self::NoRow => "database/no-row",
            Self::MalformedRow => "database/malformed-row",
            Self::OtherEvent(_) => "database/other-event",
        }
    }
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

/// The event, if it is that of its row.
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

/// Why a file cannot be read further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// The system cannot read it.
    #[error("{0}")]
    Io(io::Error),
    /// It is not a complete compressed stream.
    #[error("after event {after}: not a complete {name} stream: {fault}")]
    Compressed {
        /// The compression: `gzip` or `Zstandard`.
        name: &'static str,
        /// Events read before.
        after: u64,
        /// The decompressor's error.
        fault: io::Error,
    },
    /// It ends inside an event.
    #[error("the file ends inside event {0}")]
    Truncated(u64),
    /// The length prefix of an event is not a minimal LEB128 number.
    #[error("event {0}: its length prefix is not a minimal LEB128 number")]
    Length(u64),
    /// An event exceeds the size limit.
    #[error(
        "event {0}: longer than {MAX_EVENT_BYTES} bytes; `jq -c .` puts events without line breaks on lines"
    )]
    TooLong(u64),
    /// An event is invalid.
    #[error("event {at}, {fault}")]
    Event {
        /// Its index.
        at: u64,
        /// The broken rule.
        fault: EntryFault,
    },
    /// The file is not a list of its format.
    #[error("{0}")]
    Batch(DecodeError),
    /// A part of a container is damaged.
    #[error("{0}")]
    Damaged(Damage),
    /// A byte order mark or compression before JSON.
    #[error("the file {0}")]
    Wrapped(Wrapping),
    /// A JSON array where one event a line is expected.
    #[error("a JSON array, not an event on each line: --from json reads it")]
    Array,
    /// Text in UTF-16.
    #[error("the file is UTF-16: convert it with `iconv -f UTF-16 -t UTF-8`")]
    Utf16,
    /// The file ends in NUL bytes, as after a power cut.
    #[error("after event {0}: the rest is NUL bytes")]
    Nul(u64),
    /// An LMDB database cannot be opened or read.
    #[cfg(feature = "nostr-lmdb")]
    #[error("{0}")]
    Database(DatabaseError),
    /// A database in a build without the feature `nostr-lmdb`.
    #[cfg(not(feature = "nostr-lmdb"))]
    #[error("an LMDB database needs the feature `nostr-lmdb`")]
    NoDatabases,
}

impl FileFault {
    /// The stable code of what ends the reading of a database.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "nostr-lmdb")]
            Self::Database(fault) => fault.code(),
            _ => None,
        }
    }

    /// Whether the system failed rather than the input.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Io(_) => true,
            #[cfg(feature = "nostr-lmdb")]
            Self::Database(fault) => fault.is_local(),
            _ => false,
        }
    }
}

impl<'r> Reader<'r> {
    /// Reads events from `input` in `layout`. Lines may be compressed with gzip or Zstandard.
    pub fn new(layout: Layout, input: impl BufRead + Send + 'r) -> Self {
        Self::of_source(layout, ByteSource::plain(input))
    }

    /// Reads events from `input`. A group of lines from a stream ends where the next line has not arrived.
    pub(crate) fn of_source(layout: Layout, input: ByteSource<'r>) -> Self {
        let mut reader = Self {
            layout,
            input,
            blocks: None,
            compression: None,
            taken: 0,
            lines: 0,
            is_started: false,
            is_over: false,
            fault: None,
        };
        if matches!(layout, Layout::Records(records) if records.is_gzip) {
            reader.decompress_gzip();
        }
        reader
    }

    /// Entries read so far; those of a list count as one.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The next events, at most `limit`, in `arena`, or why an event is invalid; none at the end.
    ///
    /// The list of a format is one group, and so is a block of a container; their events beyond `limit` are skipped.
    ///
    /// # Errors
    /// If the start of the next event cannot be found, or a container is damaged.
    pub fn group<'a>(
        &mut self,
        arena: &'a Bump,
        limit: u64,
    ) -> Result<Vec<Result<Event<'a>, EntryFault>>, FileFault> {
        let Some(group) = self.next_group(limit)? else { return Ok(Vec::new()) };
        if let Some(damage) = group.damage() {
            return Err(FileFault::Damaged(damage));
        }
        Ok(group.decode_in(arena)?.into_iter().map(|entry| entry.event).collect())
    }

    /// The next entries, at most `limit`; `None` at the end.
    ///
    /// # Errors
    /// If the start of the next entry cannot be found.
    pub fn next_group(&mut self, limit: u64) -> Result<Option<RawGroup>, FileFault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if !std::mem::replace(&mut self.is_started, true) {
            self.start()?;
        }
        let first = self.taken;
        let max = usize::try_from(limit).unwrap_or(usize::MAX);
        let content = match self.layout {
            _ if limit == 0 => return Ok(None),
            Layout::Lines | Layout::Strings => {
                let (bytes, entries) = self.entries(max, Self::next_line)?;
                Content::Lines { bytes, entries }
            }
            Layout::Records(records) => {
                let next = |reader: &mut Self, out: &mut Vec<u8>| reader.next_record(records, out);
                let (bytes, entries) = self.entries(max, next)?;
                Content::Events { format: records.format, bytes, entries }
            }
            Layout::Container(_) => return self.block(max),
            Layout::Batch(_) | Layout::Single(_) if self.is_over => return Ok(None),
            Layout::Batch(format) => {
                Content::List { format, bytes: self.rest(u64::MAX)?, limit: max }
            }
            Layout::Single(format) => {
                let bytes = self.rest(MAX_EVENT_BYTES as u64)?;
                let entries = vec![RawEntry { end: bytes.len(), line: 0 }];
                Content::Events { format, bytes, entries }
            }
        };
        let is_empty = match &content {
            Content::Lines { entries, .. } | Content::Events { entries, .. } => entries.is_empty(),
            Content::Records { records, .. } => records.is_empty(),
            Content::List { .. } | Content::Damage(_) => false,
        };
        Ok((!is_empty).then_some(RawGroup { first, content }))
    }

    /// Up to `max` entries, each read by `next`, which returns `false` at the end.
    fn entries(
        &mut self,
        max: usize,
        mut next: impl FnMut(&mut Self, &mut Vec<u8>) -> Result<bool, FileFault>,
    ) -> Result<(Vec<u8>, Vec<RawEntry>), FileFault> {
        let is_lines = matches!(self.layout, Layout::Lines | Layout::Strings);
        let (mut bytes, mut entries) = (Vec::new(), Vec::new());
        while bytes.len() < GROUP_BYTES && entries.len() < max.min(GROUP_EVENTS) {
            let start = bytes.len();
            match next(self, &mut bytes) {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) if entries.is_empty() => return Err(fault),
                Err(fault) => {
                    bytes.truncate(start);
                    self.fault = Some(fault);
                    break;
                }
            }
            let ends = if is_lines { ends_of_events(&bytes[start..]) } else { Vec::new() };
            for end in &ends {
                entries.push(RawEntry { end: start + end, line: self.lines });
            }
            if ends.is_empty() {
                entries.push(RawEntry { end: bytes.len(), line: self.lines });
            }
            self.taken += ends.len().max(1) as u64;
            if is_lines && !self.input.has_line() {
                break;
            }
        }
        Ok((bytes, entries))
    }

    /// All bytes, which are one entry, up to `max`.
    fn rest(&mut self, max: u64) -> Result<Vec<u8>, FileFault> {
        let mut bytes = Vec::new();
        let mut bounded = self.input.by_ref().take(max.saturating_add(1));
        bounded.read_to_end(&mut bytes).map_err(FileFault::Io)?;
        if bytes.len() as u64 > max {
            return Err(FileFault::TooLong(0));
        }
        self.is_over = true;
        self.taken += 1;
        Ok(bytes)
    }

    /// The next block of a container, or what is damaged before it.
    fn block(&mut self, max: usize) -> Result<Option<RawGroup>, FileFault> {
        let Some(blocks) = &mut self.blocks else { return Ok(None) };
        Ok(match blocks.next_item().map_err(FileFault::Io)? {
            None => None,
            Some(Item::Damage(damage)) => {
                Some(RawGroup { first: damage.event, content: Content::Damage(damage) })
            }
            Some(Item::Block(block)) => {
                let (first, format) = (block.first(), block.format());
                let (bytes, ends) = block.into_parts();
                let entry = |end: u32| RawEntry { end: end as usize, line: 0 };
                let entries: Vec<_> = ends.into_iter().take(max).map(entry).collect();
                self.taken += entries.len() as u64;
                Some(RawGroup { first, content: Content::Events { format, bytes, entries } })
            }
        })
    }

    /// Decompresses lines, and opens a container. Rejects JSON after a byte order mark, and a list in compressed form; other
    /// formats may begin with such bytes.
    fn start(&mut self) -> Result<(), FileFault> {
        let is_lines = match self.layout {
            Layout::Lines | Layout::Strings => true,
            Layout::Batch(Format::Json) | Layout::Single(Format::Json) => false,
            Layout::Container(_) => {
                self.blocks = Some(StreamReader::new(self.take_input()));
                return Ok(());
            }
            _ => return Ok(()),
        };
        let start = self.input.fill_buf().map_err(FileFault::Io)?;
        // RFC 8878, 3.1.2: skippable frames may come first, as pzstd writes them.
        let is_skippable = matches!(start, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        if matches!(start, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
            return Err(FileFault::Utf16);
        }
        let wrapping = if is_skippable { Some(Wrapping::Zstd) } else { Wrapping::of(start) };
        match (is_lines, wrapping) {
            (_, None) => Ok(()),
            (true, Some(Wrapping::Gzip)) => {
                self.decompress_gzip();
                Ok(())
            }
            (true, Some(Wrapping::Zstd)) => self.decompress_zstd(),
            (_, Some(wrapping)) => Err(FileFault::Wrapped(wrapping)),
        }
    }

    fn take_input(&mut self) -> ByteSource<'r> {
        std::mem::replace(&mut self.input, ByteSource::plain(io::empty()))
    }

    fn decompress_gzip(&mut self) {
        let input = self.take_input();
        self.input =
            ByteSource::plain(BufReader::with_capacity(PLAIN_BYTES, GzipMembers::new(input)));
        self.compression = Some("gzip");
    }

    fn decompress_zstd(&mut self) -> Result<(), FileFault> {
        let input = self.take_input();
        let mut decoder = zstd::Decoder::with_buffer(input).map_err(FileFault::Io)?;
        decoder.window_log_max(MAX_WINDOW_LOG).map_err(FileFault::Io)?;
        self.input = ByteSource::plain(BufReader::with_capacity(PLAIN_BYTES, decoder));
        self.compression = Some("Zstandard");
        Ok(())
    }

    /// Appends the next line that is neither blank nor the name of a group; `false` at the end.
    fn next_line(&mut self, out: &mut Vec<u8>) -> Result<bool, FileFault> {
        let start = out.len();
        loop {
            out.truncate(start);
            let mut bounded = self.input.by_ref().take(MAX_EVENT_BYTES as u64 + 1);
            let read = bounded.read_until(b'\n', out).map_err(|fault| self.failed(fault))?;
            if read == 0 {
                return Ok(false);
            }
            let is_nul = out.len() > start && out[start..].iter().all(|byte| *byte == 0);
            if is_nul {
                return Err(FileFault::Nul(self.taken));
            }
            if self.taken == 0 && is_array(&out[start..]) {
                return Err(FileFault::Array);
            }
            if read > MAX_EVENT_BYTES {
                return Err(FileFault::TooLong(self.taken));
            }
            self.lines += 1;
            if out.ends_with(b"\n") {
                out.pop();
            }
            let line = &out[start..];
            if !line.starts_with(b"#") && !line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// Appends the next record; `false` at the end.
    fn next_record(&mut self, records: Records, out: &mut Vec<u8>) -> Result<bool, FileFault> {
        let len = match records.prefix {
            Prefix::Varint => self.varint()?,
            Prefix::Fixed => self.fixed_length()?,
        };
        let Some(len) = len else { return Ok(false) };
        if len > MAX_EVENT_BYTES as u64 {
            return Err(FileFault::TooLong(self.taken));
        }
        let read = self.input.by_ref().take(len).read_to_end(out);
        let read = read.map_err(|fault| self.failed(fault))?;
        if (read as u64) < len { Err(FileFault::Truncated(self.taken)) } else { Ok(true) }
    }

    /// Reads four bytes, little-endian; `None` at the end.
    fn fixed_length(&mut self) -> Result<Option<u64>, FileFault> {
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(4).read_to_end(&mut bytes);
        read.map_err(|fault| self.failed(fault))?;
        match bytes.first_chunk() {
            Some(len) => Ok(Some(u32::from_le_bytes(*len).into())),
            None if bytes.is_empty() => Ok(None),
            None => Err(FileFault::Truncated(self.taken)),
        }
    }

    /// Reads a LEB128 number; `None` at the end.
    fn varint(&mut self) -> Result<Option<u64>, FileFault> {
        let mut len = 0;
        for at in 0..LENGTH_BYTES {
            let mut byte = [0];
            if self.input.read(&mut byte).map_err(|fault| self.failed(fault))? == 0 {
                return if at == 0 { Ok(None) } else { Err(FileFault::Truncated(self.taken)) };
            }
            let [byte] = byte;
            len |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                let is_minimal = byte > 0 || at == 0;
                return is_minimal.then_some(Some(len)).ok_or(FileFault::Length(self.taken));
            }
        }
        Err(FileFault::TooLong(self.taken))
    }

    /// Separates errors of the system from malformed compression.
    fn failed(&self, fault: io::Error) -> FileFault {
        match self.compression {
            Some(name) if fault.to_string().contains("too much memory") => {
                let text = "its window is longer than 8 MiB: `zstd -d --long=31` decompresses it";
                FileFault::Compressed { name, after: self.taken, fault: io::Error::other(text) }
            }
            Some(name) if fault.raw_os_error().is_none() => {
                FileFault::Compressed { name, after: self.taken, fault }
            }
            _ => FileFault::Io(fault),
        }
    }
}

/// The members of a gzip file, one after the other. Zeros after a member are padding, as `gzip` takes them.
struct GzipMembers<R> {
    /// `None` once the file has ended.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(input: R) -> Self {
        Self { member: Some(GzDecoder::new(input)) }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.member else { return Ok(0) };
            let read = member.read(buf)?;
            if read > 0 || buf.is_empty() {
                return Ok(read);
            }
            let rest = self.member.take().map(GzDecoder::into_inner);
            self.member = rest.map(next_member).transpose()?.flatten();
        }
    }
}

/// The next member after zeros, if there is one.
fn next_member<R: BufRead>(mut input: R) -> io::Result<Option<GzDecoder<R>>> {
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let is_padding = zeros == bytes.len();
        input.consume(zeros);
        if !is_padding {
            return Ok(Some(GzDecoder::new(input)));
        }
    }
}

/// Whether a line begins an array of objects.
fn is_array(line: &[u8]) -> bool {
    let inner = line.trim_ascii_start().strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    inner.is_some_and(|inner| inner.is_empty() || inner.starts_with(b"{"))
}

/// The ends of the events in a line that has several; none in any other line.
fn ends_of_events(line: &[u8]) -> Vec<usize> {
    let is_joint = |pair: &[u8]| pair[0] == b'}' && matches!(pair[1], b'{' | b' ' | b'\t');
    if !line.starts_with(b"{") || !line.windows(2).any(is_joint) {
        return Vec::new();
    }
    let mut values =
        serde_json::Deserializer::from_slice(line).into_iter::<serde::de::IgnoredAny>();
    let mut ends = Vec::new();
    while let Some(value) = values.next() {
        if value.is_err() {
            return Vec::new();
        }
        ends.push(values.byte_offset());
    }
    if ends.len() < 2 { Vec::new() } else { ends }
}

/// Maximum size of a length prefix in bytes: more than [`MAX_EVENT_BYTES`] needs.
const LENGTH_BYTES: u32 = 5;

/// Approximate size of a group in events and bytes.
pub(crate) const GROUP_EVENTS: usize = 512;
pub(crate) const GROUP_BYTES: usize = 4 << 20;

/// Decompressed bytes that are held.
const PLAIN_BYTES: usize = 128 << 10;

/// Logarithm of the longest window of Zstandard: 8 MiB, as RFC 8878 recommends. `zstd` writes longer ones with `--ultra` and
/// `--long` alone.
const MAX_WINDOW_LOG: u32 = 23;
