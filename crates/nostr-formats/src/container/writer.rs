//! Writing a container.

use std::io::{self, Write};

use kernels::sha256;

use super::index::{Entry, Index};
use super::parts::{BlockHead, Header, MAX_BLOCK_EVENTS, Salt, VERSION};
use super::{MAX_EVENT_BYTES, number_of};
use crate::Format;
use nostr::{EncodeError, Event};

/// Writes a container, block by block. It holds the events of one block and the index.
///
/// ```
/// # use wireproof::nostr::{Arena, Limits, formats::Format, container::{Item, StreamReader, Writer}};
/// # let (arena, limits, json) = (Arena::new(), Limits::default(), wireproof::nostr::example::JSON);
/// let event = Format::Json.decode(json.as_bytes(), &arena, &limits)?;
/// let mut writer = Writer::new(Vec::new(), Format::Notepack);
/// writer.push(&event)?;
/// let file = writer.finish()?;
///
/// let mut reader = StreamReader::new(&file[..]);
/// while let Some(item) = reader.next_item()? {
///     match item {
///         Item::Block(block) => {
///             for bytes in block.events() {
///                 assert_eq!(block.format().decode(bytes, &arena, &limits)?, event);
///             }
///         }
///         Item::Damage(damage) => eprintln!("{damage}"),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    format: Format,
    size: BlockSize,
    /// The encoded events of the next block.
    events: Vec<u8>,
    /// Their ends.
    ends: Vec<u32>,
    /// Known from the first block on.
    salt: Option<Salt>,
    /// Bytes written.
    offset: u64,
    index: Index,
}

/// At which of both a block is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockSize {
    pub(super) events: usize,
    pub(super) bytes: usize,
}

/// Why an event cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The format cannot hold the event, or it is too long; the container can be continued without it.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The writer beneath failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<W: Write> Writer<W> {
    /// Writes events in `format`, in blocks of 512 events or 1 MiB.
    pub fn new(out: W, format: Format) -> Self {
        Self::with_block_size(out, format, BLOCK_SIZE)
    }

    /// As [`new`](Self::new), in blocks of another size.
    pub(super) fn with_block_size(out: W, format: Format, size: BlockSize) -> Self {
        debug_assert!((1..=MAX_BLOCK_EVENTS as usize).contains(&size.events));
        let (events, ends) = (Vec::new(), Vec::new());
        Self { out, format, size, events, ends, salt: None, offset: 0, index: Index::default() }
    }

    /// Number of events so far.
    pub fn len(&self) -> u64 {
        self.index.events + self.ends.len() as u64
    }

    /// Whether there are no events so far.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an event.
    ///
    /// # Errors
    /// If the format cannot hold the event, it takes more than [`MAX_EVENT_BYTES`], or the writer beneath fails.
    pub fn push(&mut self, event: &Event<'_>) -> Result<(), WriteError> {
        let start = self.events.len();
        self.format.encode(event, &mut self.events)?;
        let len = self.events.len() - start;
        if let Err(error) = EncodeError::at_most("bytes of an event", len, MAX_EVENT_BYTES) {
            self.events.truncate(start);
            return Err(error.into());
        }
        if start > 0 && self.events.len() > self.size.bytes {
            self.write_block(start)?;
        }
        self.ends.push(self.events.len() as u32);
        if self.ends.len() >= self.size.events || self.events.len() >= self.size.bytes {
            self.write_block(self.events.len())?;
        }
        Ok(())
    }

    /// Writes the last block and the index, and returns the writer beneath.
    ///
    /// # Errors
    /// If the writer beneath fails.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.ends.is_empty() {
            self.write_block(self.events.len())?;
        }
        let salt = self.start(&[], 0)?;
        let section = self.index.to_bytes(salt, self.offset);
        self.out.write_all(&section)?;
        Ok(self.out)
    }

    /// Writes a block of the first `len` bytes, which belong to the events whose ends are known.
    fn write_block(&mut self, len: usize) -> io::Result<()> {
        let ends: Vec<u8> = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        let salt = self.start(&ends, len)?;
        let (first, count) = (self.index.events, self.ends.len() as u32);
        let head = BlockHead {
            salt,
            first,
            count,
            body_len: (ends.len() + len) as u32,
            format: number_of(self.format),
            body_checksum: crc32c::crc32c_append(crc32c::crc32c(&ends), &self.events[..len]),
        };
        let (head, offset) = (head.to_bytes(), self.offset);
        for part in [&head[..], &ends, &self.events[..len]] {
            self.out.write_all(part)?;
            self.offset += part.len() as u64;
        }
        self.index.push(Entry { offset, first }, count);
        self.ends.clear();
        self.events.drain(..len);
        Ok(())
    }

    /// Writes the header, unless it is written; the first body is `ends` and `len` bytes of events. Returns the salt.
    fn start(&mut self, ends: &[u8], len: usize) -> io::Result<Salt> {
        if let Some(salt) = self.salt {
            return Ok(salt);
        }
        let digest = sha256::digest_parts(&[ends, &self.events[..len]]);
        let salt = *digest.first_chunk().expect("a digest is longer");
        let header = Header { version: VERSION, format: number_of(self.format), salt }.to_bytes();
        self.out.write_all(&header)?;
        self.offset += header.len() as u64;
        self.salt = Some(salt);
        Ok(salt)
    }
}

/// As many events as are verified together, and a body that is read in a fraction of a millisecond.
const BLOCK_SIZE: BlockSize = BlockSize { events: 512, bytes: 1 << 20 };
