//! Reads the events of one file in groups, so that a file of any length takes little memory.

use std::io::{self, BufRead, BufReader, Read};

use bumpalo::Bump;
use flate2::bufread::MultiGzDecoder;
use wireproof::codec::wrapping::Wrapping;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{DecodeError, Event, Limits};

use super::layout::Layout;

/// Reads the events of one file.
pub struct Reader<'r> {
    layout: Layout,
    input: Box<dyn BufRead + 'r>,
    limits: Limits,
    /// Events read from `input` so far.
    taken: u64,
    /// Whether the start of `input` is checked.
    is_started: bool,
    /// Ends the reading after the group that was returned.
    fault: Option<FileFault>,
    item: Vec<u8>,
}

/// Why a file cannot be read further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// The system cannot read it.
    #[error("{0}")]
    Io(io::Error),
    /// It is not a complete gzip stream.
    #[error("after event {after}: not a complete gzip stream: {fault}")]
    Gzip {
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
    /// Reads events from `input` in `layout`.
    pub fn new(layout: Layout, input: impl BufRead + 'r) -> Self {
        let input: Box<dyn BufRead + 'r> = match layout {
            Layout::Records => Box::new(BufReader::new(MultiGzDecoder::new(input))),
            Layout::Lines | Layout::Batch(_) => Box::new(input),
        };
        let limits = Limits::default();
        Self { layout, input, limits, taken: 0, is_started: false, fault: None, item: Vec::new() }
    }

    /// Events read so far.
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
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if !std::mem::replace(&mut self.is_started, true) {
            self.check_start()?;
        }
        if let Layout::Batch(_) = self.layout {
            return self.batch(arena, limit);
        }
        let (mut group, mut bytes) = (Vec::new(), 0);
        while bytes < GROUP_BYTES && (group.len() as u64) < limit.min(GROUP_EVENTS) {
            match self.next_item() {
                Ok(true) => {}
                Ok(false) => break,
                Err(fault) if group.is_empty() => return Err(fault),
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            }
            let item = arena.alloc_slice_copy(&self.item);
            bytes += item.len();
            group.push(self.layout.format().decode(item, arena, &self.limits));
            self.taken += 1;
        }
        Ok(group)
    }

    /// Rejects JSON after a byte order mark or in compressed form. Other formats may begin with such bytes.
    fn check_start(&mut self) -> Result<(), FileFault> {
        if !matches!(self.layout, Layout::Lines | Layout::Batch(Format::Json)) {
            return Ok(());
        }
        let start = self.input.fill_buf().map_err(FileFault::Io)?;
        Wrapping::of(start).map_or(Ok(()), |wrapping| Err(FileFault::Wrapped(wrapping)))
    }

    fn batch<'a>(
        &mut self,
        arena: &'a Bump,
        limit: u64,
    ) -> Result<Vec<Result<Event<'a>, DecodeError>>, FileFault> {
        if self.taken > 0 {
            return Ok(Vec::new());
        }
        let mut item = Vec::new();
        self.input.read_to_end(&mut item).map_err(FileFault::Io)?;
        let bytes = arena.alloc_slice_copy(&item);
        // Decoding takes memory, too.
        drop(item);
        let events = self.layout.format().decode_batch(bytes, arena, &self.limits);
        let events = events.map_err(FileFault::Batch)?;
        self.taken = events.len() as u64;
        Ok(events.iter().take(limit as usize).map(|event| Ok(*event)).collect())
    }

    /// Reads the next event into `item`; `false` at the end.
    fn next_item(&mut self) -> Result<bool, FileFault> {
        self.item.clear();
        if self.layout == Layout::Lines { self.next_line() } else { self.next_record() }
    }

    fn next_line(&mut self) -> Result<bool, FileFault> {
        loop {
            self.item.clear();
            let mut bounded = self.input.by_ref().take(MAX_EVENT_BYTES as u64 + 1);
            if bounded.read_until(b'\n', &mut self.item).map_err(FileFault::Io)? == 0 {
                return Ok(false);
            }
            if self.item.len() > MAX_EVENT_BYTES {
                return Err(FileFault::TooLong(self.taken));
            }
            if self.item.ends_with(b"\n") {
                self.item.pop();
            }
            if self.item.trim_ascii().is_empty() && self.is_at_end()? {
                return Ok(false);
            }
            if !self.item.starts_with(b"#") {
                return Ok(true);
            }
        }
    }

    fn is_at_end(&mut self) -> Result<bool, FileFault> {
        Ok(self.input.fill_buf().map_err(FileFault::Io)?.is_empty())
    }

    fn next_record(&mut self) -> Result<bool, FileFault> {
        let Some(len) = self.length()? else { return Ok(false) };
        if len > MAX_EVENT_BYTES as u64 {
            return Err(FileFault::TooLong(self.taken));
        }
        let read = self.input.by_ref().take(len).read_to_end(&mut self.item);
        let read = read.map_err(|fault| gzip(self.taken, fault))?;
        if (read as u64) < len { Err(FileFault::Truncated(self.taken)) } else { Ok(true) }
    }

    /// Reads a LEB128 number; `None` at the end.
    fn length(&mut self) -> Result<Option<u64>, FileFault> {
        let mut len = 0;
        for at in 0..LENGTH_BYTES {
            let mut byte = [0];
            if self.input.read(&mut byte).map_err(|fault| gzip(self.taken, fault))? == 0 {
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
}

/// Separates errors of the system from malformed gzip.
fn gzip(after: u64, fault: io::Error) -> FileFault {
    match fault.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            FileFault::Gzip { after, fault }
        }
        _ => FileFault::Io(fault),
    }
}

/// Maximum size of an event in a file in bytes: more than a decoder's default limits allow in JSON.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Maximum size of a length prefix in bytes: more than [`MAX_EVENT_BYTES`] needs.
const LENGTH_BYTES: u32 = 5;

/// Approximate size of a group in events and bytes.
const GROUP_EVENTS: u64 = 512;
const GROUP_BYTES: usize = 8 << 20;
