//! Which events are in these bytes? Read in groups, so that a file of any length takes little memory.

use std::io::{self, BufRead, BufReader, Read};

use bumpalo::Bump;
use flate2::bufread::MultiGzDecoder;
use wireproof::nostr::{DecodeError, Event, Limits};

use super::Layout;

/// Reads the events of one file.
pub struct Reader<'r> {
    layout: Layout,
    input: Box<dyn BufRead + 'r>,
    limits: Limits,
    // Events taken from `input` so far.
    taken: u64,
    // What stops the reading behind the group that was given.
    fault: Option<FileFault>,
    item: Vec<u8>,
}

/// Why a file cannot be read on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// The system cannot read it.
    #[error("{0}")]
    Io(io::Error),
    /// It is no whole gzip stream.
    #[error("behind event {after}: not a whole gzip stream: {fault}")]
    Gzip {
        /// Events that were read before.
        after: u64,
        /// What the decompressor says.
        fault: io::Error,
    },
    /// It ends inside an event.
    #[error("the file ends inside event {0}")]
    Truncated(u64),
    /// The length before an event is no minimal LEB128 number.
    #[error("event {0}: the length before it is no minimal LEB128 number")]
    Length(u64),
    /// An event is longer than any may be.
    #[error("event {0}: longer than {MOST_BYTES} bytes")]
    TooLong(u64),
    /// What is to be one event is none.
    #[error("event {at}, {fault}")]
    Event {
        /// Its place, from 0.
        at: u64,
        /// The rule that it breaks.
        fault: DecodeError,
    },
    /// The file is no list of its format.
    #[error("{0}")]
    Batch(DecodeError),
}

impl FileFault {
    /// Whether the system failed, and not the bytes.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Io(_))
    }
}

impl<'r> Reader<'r> {
    /// Reads events that stand in `input` as `layout` says.
    pub fn new(layout: Layout, input: impl BufRead + 'r) -> Self {
        let input: Box<dyn BufRead + 'r> = match layout {
            Layout::Records => Box::new(BufReader::new(MultiGzDecoder::new(input))),
            Layout::Lines | Layout::Batch(_) => Box::new(input),
        };
        Self { layout, input, limits: Limits::default(), taken: 0, fault: None, item: Vec::new() }
    }

    /// Events that were read so far.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The next events, `most` at most, in `arena`; none at the end. Those that are none have their faults.
    ///
    /// The list of a format comes as one group.
    ///
    /// # Errors
    /// If what follows cannot be told apart from what is behind it.
    pub fn group<'a>(
        &mut self,
        arena: &'a Bump,
        most: u64,
    ) -> Result<Vec<Result<Event<'a>, DecodeError>>, FileFault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        if let Layout::Batch(_) = self.layout {
            return self.batch(arena, most);
        }
        let (mut group, mut bytes) = (Vec::new(), 0);
        while bytes < GROUP_BYTES && (group.len() as u64) < most.min(GROUP_EVENTS) {
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

    fn batch<'a>(
        &mut self,
        arena: &'a Bump,
        most: u64,
    ) -> Result<Vec<Result<Event<'a>, DecodeError>>, FileFault> {
        self.item.clear();
        if self.taken > 0 || self.input.read_to_end(&mut self.item).map_err(FileFault::Io)? == 0 {
            return Ok(Vec::new());
        }
        let bytes = arena.alloc_slice_copy(&self.item);
        let events = self.layout.format().decode_batch(bytes, arena, &self.limits);
        let events = events.map_err(FileFault::Batch)?;
        self.taken = events.len() as u64;
        Ok(events.iter().take(most as usize).map(|event| Ok(*event)).collect())
    }

    /// Reads the next event into `item`; `false` at the end.
    fn next_item(&mut self) -> Result<bool, FileFault> {
        self.item.clear();
        if self.layout == Layout::Lines { self.next_line() } else { self.next_record() }
    }

    fn next_line(&mut self) -> Result<bool, FileFault> {
        loop {
            self.item.clear();
            let mut bounded = self.input.by_ref().take(MOST_BYTES as u64 + 1);
            if bounded.read_until(b'\n', &mut self.item).map_err(FileFault::Io)? == 0 {
                return Ok(false);
            }
            if self.item.len() > MOST_BYTES {
                return Err(FileFault::TooLong(self.taken));
            }
            if self.item.ends_with(b"\n") {
                self.item.pop();
            }
            if !self.item.starts_with(b"#") {
                return Ok(true);
            }
        }
    }

    fn next_record(&mut self) -> Result<bool, FileFault> {
        let Some(len) = self.length()? else { return Ok(false) };
        if len > MOST_BYTES as u64 {
            return Err(FileFault::TooLong(self.taken));
        }
        let read = self.input.by_ref().take(len).read_to_end(&mut self.item);
        let read = read.map_err(|fault| gzip(self.taken, fault))?;
        if (read as u64) < len { Err(FileFault::Truncated(self.taken)) } else { Ok(true) }
    }

    /// The LEB128 number that follows; nothing at the end.
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

/// What the system could not read, or what is no gzip.
fn gzip(after: u64, fault: io::Error) -> FileFault {
    match fault.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            FileFault::Gzip { after, fault }
        }
        _ => FileFault::Io(fault),
    }
}

/// Bytes of an event in a file, at most: over what the limits of a decoder allow of its content in JSON.
const MOST_BYTES: usize = 16 << 20;

/// Bytes of a length, at most: more than [`MOST_BYTES`] need.
const LENGTH_BYTES: u32 = 5;

/// Events and bytes of a group, about.
const GROUP_EVENTS: u64 = 512;
const GROUP_BYTES: usize = 8 << 20;
