//! Reads the events of one file in groups, so that a file of any length takes little memory.

use std::io::{self, BufRead, BufReader, Read};

use bumpalo::Bump;
use flate2::bufread::MultiGzDecoder;
use wireproof::codec::wrapping::Wrapping;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{DecodeError, Event, Limits};

use super::layout::Layout;
use super::message;

/// Reads the events of one file.
pub struct Reader<'r> {
    layout: Layout,
    input: Box<dyn BufRead + Send + 'r>,
    /// Around the events.
    compression: Option<&'static str>,
    /// Entries read from `input` so far, and lines.
    taken: u64,
    lines: u64,
    /// Whether the start of `input` is checked, and whether a list is read.
    is_started: bool,
    is_over: bool,
    /// Ends the reading after the group that was returned.
    fault: Option<FileFault>,
}

/// Entries of a file that were read together, not decoded.
#[derive(Debug)]
pub struct RawGroup {
    layout: Layout,
    /// Index of the first of them in the file.
    pub first: u64,
    bytes: Vec<u8>,
    entries: Vec<RawEntry>,
    /// Maximum number of events of a list.
    limit: usize,
}

#[derive(Clone, Copy, Debug)]
struct RawEntry {
    /// Its end in the bytes of the group.
    end: usize,
    /// Its line, from 1.
    line: u64,
}

/// An entry of a file, which should be an event.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its line, from 1, in JSON lines.
    pub line: Option<u64>,
    /// The JSON of the event in JSON lines, or the whole line if it is none.
    pub json: Option<&'a [u8]>,
    /// The event, or why it is none.
    pub event: Result<Event<'a>, DecodeError>,
}

impl RawGroup {
    /// Decodes the entries.
    ///
    /// # Errors
    /// If they are no list of the format.
    pub fn decode<'a>(&'a self, arena: &'a Bump) -> Result<Vec<Entry<'a>>, FileFault> {
        self.decode_from(&self.bytes, arena)
    }

    /// Decodes the entries of a copy of the bytes in `arena`.
    pub(super) fn decode_in<'a>(&self, arena: &'a Bump) -> Result<Vec<Entry<'a>>, FileFault> {
        self.decode_from(arena.alloc_slice_copy(&self.bytes), arena)
    }

    fn decode_from<'a>(
        &self,
        bytes: &'a [u8],
        arena: &'a Bump,
    ) -> Result<Vec<Entry<'a>>, FileFault> {
        let limits = Limits::default();
        if let Layout::Batch(format) = self.layout {
            let events = format.decode_batch(bytes, arena, &limits).map_err(FileFault::Batch)?;
            let entry = |event: &Event<'a>| Entry { line: None, json: None, event: Ok(*event) };
            return Ok(events.iter().take(self.limit).map(entry).collect());
        }
        let mut start = 0;
        let entry = |RawEntry { end, line }: &RawEntry| {
            let item = &bytes[std::mem::replace(&mut start, *end)..*end];
            match self.layout {
                Layout::Lines => line_entry(item, *line, arena, &limits),
                _ => {
                    let event = self.layout.format().decode(item, arena, &limits);
                    Entry { line: None, json: None, event }
                }
            }
        };
        Ok(self.entries.iter().map(entry).collect())
    }
}

fn line_entry<'a>(item: &'a [u8], line: u64, arena: &'a Bump, limits: &Limits) -> Entry<'a> {
    let (at, json) = message::event_in(item);
    let event = Format::Json.decode(json, arena, limits);
    let event = event.map_err(|error| DecodeError { offset: error.offset + at, ..error });
    Entry { line: Some(line), json: Some(json), event }
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
    #[error("event {0}: longer than {MAX_EVENT_BYTES} bytes")]
    TooLong(u64),
    /// An event is invalid.
    #[error("event {at}, {fault}")]
    Event {
        /// Its index.
        at: u64,
        /// The broken rule.
        fault: DecodeError,
    },
    /// The file is not a list of its format.
    #[error("{0}")]
    Batch(DecodeError),
    /// A byte order mark or compression before JSON.
    #[error("the file {0}")]
    Wrapped(Wrapping),
}

impl FileFault {
    /// Whether the system failed rather than the input.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Io(_))
    }
}

impl<'r> Reader<'r> {
    /// Reads events from `input` in `layout`. JSON lines may be compressed with gzip or Zstandard.
    pub fn new(layout: Layout, input: impl BufRead + Send + 'r) -> Self {
        let mut reader = Self {
            layout,
            input: Box::new(input),
            compression: None,
            taken: 0,
            lines: 0,
            is_started: false,
            is_over: false,
            fault: None,
        };
        if layout == Layout::Records {
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
    /// The list of a format is one group.
    ///
    /// # Errors
    /// If the start of the next event cannot be found.
    pub fn group<'a>(
        &mut self,
        arena: &'a Bump,
        limit: u64,
    ) -> Result<Vec<Result<Event<'a>, DecodeError>>, FileFault> {
        let Some(group) = self.next_group(limit)? else { return Ok(Vec::new()) };
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
        let (bytes, entries) = (Vec::new(), Vec::new());
        let max = usize::try_from(limit).unwrap_or(usize::MAX);
        let group = RawGroup { layout: self.layout, first: self.taken, bytes, entries, limit: max };
        match self.layout {
            Layout::Batch(_) => self.list(group),
            Layout::Lines | Layout::Records => self.entries(group),
        }
    }

    fn entries(&mut self, mut group: RawGroup) -> Result<Option<RawGroup>, FileFault> {
        let max = group.limit.min(GROUP_EVENTS);
        while group.bytes.len() < GROUP_BYTES && group.entries.len() < max {
            let start = group.bytes.len();
            let item = match self.layout {
                Layout::Lines => self.next_line(&mut group.bytes),
                _ => self.next_record(&mut group.bytes),
            };
            match item {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) if group.entries.is_empty() => return Err(fault),
                Err(fault) => {
                    group.bytes.truncate(start);
                    self.fault = Some(fault);
                    break;
                }
            }
            group.entries.push(RawEntry { end: group.bytes.len(), line: self.lines });
            self.taken += 1;
        }
        Ok((!group.entries.is_empty()).then_some(group))
    }

    /// The list of a format.
    fn list(&mut self, mut group: RawGroup) -> Result<Option<RawGroup>, FileFault> {
        if std::mem::replace(&mut self.is_over, true) || group.limit == 0 {
            return Ok(None);
        }
        self.input.read_to_end(&mut group.bytes).map_err(FileFault::Io)?;
        self.taken += 1;
        Ok(Some(group))
    }

    /// Decompresses JSON lines. Rejects JSON after a byte order mark, and a list in compressed form; other formats may begin
    /// with such bytes.
    fn start(&mut self) -> Result<(), FileFault> {
        if !matches!(self.layout, Layout::Lines | Layout::Batch(Format::Json)) {
            return Ok(());
        }
        let wrapping = Wrapping::of(self.input.fill_buf().map_err(FileFault::Io)?);
        match (self.layout, wrapping) {
            (_, None) => Ok(()),
            (Layout::Lines, Some(Wrapping::Gzip)) => {
                self.decompress_gzip();
                Ok(())
            }
            (Layout::Lines, Some(Wrapping::Zstd)) => self.decompress_zstd(),
            (_, Some(wrapping)) => Err(FileFault::Wrapped(wrapping)),
        }
    }

    fn decompress_gzip(&mut self) {
        let input = std::mem::replace(&mut self.input, Box::new(io::empty()));
        self.input = Box::new(BufReader::with_capacity(PLAIN_BYTES, MultiGzDecoder::new(input)));
        self.compression = Some("gzip");
    }

    fn decompress_zstd(&mut self) -> Result<(), FileFault> {
        let input = std::mem::replace(&mut self.input, Box::new(io::empty()));
        let mut decoder = zstd::Decoder::with_buffer(input).map_err(FileFault::Io)?;
        decoder.window_log_max(MAX_WINDOW_LOG).map_err(FileFault::Io)?;
        self.input = Box::new(BufReader::with_capacity(PLAIN_BYTES, decoder));
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
    fn next_record(&mut self, out: &mut Vec<u8>) -> Result<bool, FileFault> {
        let Some(len) = self.length()? else { return Ok(false) };
        if len > MAX_EVENT_BYTES as u64 {
            return Err(FileFault::TooLong(self.taken));
        }
        let read = self.input.by_ref().take(len).read_to_end(out);
        let read = read.map_err(|fault| self.failed(fault))?;
        if (read as u64) < len { Err(FileFault::Truncated(self.taken)) } else { Ok(true) }
    }

    /// Reads a LEB128 number; `None` at the end.
    fn length(&mut self) -> Result<Option<u64>, FileFault> {
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
            Some(name) if fault.raw_os_error().is_none() => {
                FileFault::Compressed { name, after: self.taken, fault }
            }
            _ => FileFault::Io(fault),
        }
    }
}

/// Maximum size of an event in a file in bytes: more than a decoder's default limits allow in JSON.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Maximum size of a length prefix in bytes: more than [`MAX_EVENT_BYTES`] needs.
const LENGTH_BYTES: u32 = 5;

/// Approximate size of a group in events and bytes.
const GROUP_EVENTS: usize = 512;
const GROUP_BYTES: usize = 4 << 20;

/// Decompressed bytes that are held.
const PLAIN_BYTES: usize = 128 << 10;

/// Logarithm of the longest window of Zstandard: 8 MiB, as RFC 8878 recommends. `zstd` writes longer ones with `--ultra` and
/// `--long` alone.
const MAX_WINDOW_LOG: u32 = 23;
