//! Reads the events of one file in groups, so that a file of any length takes little memory.

use std::io::{self, BufRead, BufReader, Read};

use bumpalo::Bump;
use codec::wrapping::Wrapping;
use nostr::Event;
use nostr_formats::Format;
use nostr_formats::container::{Item, MAX_EVENT_BYTES, StreamReader};

use crate::fault::{EntryFault, FileFault};
use crate::group::{Content, GROUP_BYTES, GROUP_EVENTS, RawEntry, RawGroup};
use crate::gzip::GzipMembers;
use crate::layout::{Layout, Prefix, Records};
use crate::stream::ByteSource;

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

    /// Entries read so far; the entries of a list count as one.
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

    /// Up to `max` entries, read by `next`, which returns `false` at the end.
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

    /// The next block of a container, or the damage before it.
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

/// Decompressed bytes that are held.
const PLAIN_BYTES: usize = 128 << 10;

/// Logarithm of the longest window of Zstandard: 8 MiB, as RFC 8878 recommends. `zstd` writes longer ones with `--ultra` and
/// `--long` alone.
const MAX_WINDOW_LOG: u32 = 23;
