//! Reading a container as a stream: every intact block, and the damage between them.
//!
//! Where a part should begin, the reader checks the head and the body of a block, or the index. If a check fails, it searches
//! for the next sync marker of a block or of the index, and checks the part there. The bytes between are one [`Damage`], with
//! the first fault.
//!
//! The cost is linear in the length of the stream. Stated bodies may overlap, so that one byte could be in many wrong
//! checksums: the reader looks at no body once the bodies with wrong checksums have four times the length of the input read, and
//! 64 MiB more.

use std::io::{self, Read};

use super::index::{Entry, Index, IndexHead};
use super::parts::{
    BLOCK, BLOCK_HEAD_LEN, BlockHead, END_BYTES, HEADER_LEN, Header, INDEX, Salt, VERSION,
};
use super::{Damage, Fault, format_of, number_of};
use crate::Format;

/// Reads a container from `R`, block by block. It holds one block and the index, and allocates memory as bytes arrive, not as
/// lengths are stated.
#[derive(Debug)]
pub struct StreamReader<R> {
    input: Buffer<R>,
    /// The identity of the header. Without one, no block decides for the others, as an event may have a block within it.
    identity: Option<Identity>,
    /// Number of the next event.
    next: u64,
    /// The expected index, as long as there is no damage.
    index: Index,
    /// Where the part that is unreadable begins, and why it is.
    lost: Option<(u64, Fault)>,
    /// A block that follows the damage that was returned.
    held: Option<Block>,
    is_damaged: bool,
    state: State,
    /// Bytes of bodies with wrong checksums.
    pub(super) wasted: u64,
}

/// The data that distinguish one container from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    format: Format,
    salt: Salt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitHeader,
    /// In the blocks, and in the index after them.
    AwaitIndex,
    /// After the index.
    AwaitEnd,
    Over,
}

/// A part of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An intact block.
    Block(Block),
    /// A part that cannot be read.
    Damage(Damage),
}

/// An intact block: encoded events with consecutive numbers. Whether they are events is not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    offset: u64,
    first: u64,
    format: Format,
    events: Vec<u8>,
    // Ascending, the last one events.len().
    ends: Vec<u32>,
}

impl Block {
    /// Bytes from the start of the container to the block.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of the first event.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The format of the events.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of events.
    #[expect(clippy::len_without_is_empty, reason = "a block has an event")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The encoded events in order.
    pub fn events(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let end = *end as usize;
            &self.events[std::mem::replace(&mut start, end)..end]
        })
    }

    /// The encoded events, one after the other, and the ends of all.
    pub fn into_parts(self) -> (Vec<u8>, Vec<u32>) {
        (self.events, self.ends)
    }
}

impl<R: Read> StreamReader<R> {
    /// Reads the container that `input` begins with. Small reads are common.
    pub fn new(input: R) -> Self {
        Self {
            input: Buffer { input, bytes: Vec::new(), start: 0, offset: 0 },
            identity: None,
            next: 0,
            index: Index::default(),
            lost: None,
            held: None,
            is_damaged: false,
            state: State::AwaitHeader,
            wasted: 0,
        }
    }

    /// The next block, or the damage before it; `None` at the end.
    ///
    /// # Errors
    /// If the input fails.
    pub fn next_item(&mut self) -> io::Result<Option<Item>> {
        if let Some(block) = self.held.take() {
            return Ok(Some(Item::Block(block)));
        }
        while self.state != State::Over {
            let found = match self.state {
                State::AwaitHeader => self.header()?.map(Item::Damage),
                _ => self.part()?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Reads the header. Damage of one with right checksum ends the reading.
    fn header(&mut self) -> io::Result<Option<Damage>> {
        self.state = State::AwaitIndex;
        let header = self.input.array().and_then(|bytes| Ok(Header::read(bytes)?));
        let header = match header {
            Ok(header) => header,
            Err(PartError::Io(error)) => return Err(error),
            Err(PartError::Fault(fault)) => {
                self.lost = Some((0, fault));
                return Ok(None);
            }
        };
        let format = match header.version {
            VERSION => format_of(header.format),
            other => Err(Fault::Version(other)),
        };
        match format {
            Ok(format) => {
                self.identity = Some(Identity { format, salt: header.salt });
                self.input.consume(HEADER_LEN);
                Ok(None)
            }
            Err(fault) => {
                self.state = State::Over;
                let len = HEADER_LEN as u64;
                Ok(Some(Damage { offset: 0, len, event: 0, missing: None, fault }))
            }
        }
    }

    /// Reads the expected block or index.
    fn part(&mut self) -> io::Result<Option<Item>> {
        let offset = self.input.offset;
        let marker = self.input.fill(BLOCK.len())?;
        if marker.is_empty() {
            return Ok(self.end().map(Item::Damage));
        }
        let part = if marker == BLOCK {
            self.block()
        } else if marker == INDEX {
            self.index()
        } else {
            Err(PartError::Fault(if marker.len() < BLOCK.len() {
                Fault::Truncated
            } else {
                Fault::Head
            }))
        };
        match part {
            Ok((part, len)) => {
                self.input.consume(len);
                Ok(self.take(part, offset))
            }
            Err(PartError::Io(error)) => Err(error),
            Err(PartError::Fault(fault)) => {
                let fault = if self.state == State::AwaitEnd { Fault::Trailing } else { fault };
                self.lost.get_or_insert((offset, fault));
                self.input.search()?;
                Ok(None)
            }
        }
    }

    /// Reads a block, and returns it with its length.
    fn block(&mut self) -> Result<(IntactPart, usize), PartError> {
        let head = BlockHead::read(self.input.array()?)?;
        self.check_identity(&head)?;
        let (offset, len) = (self.input.offset, BLOCK_HEAD_LEN + head.body_len as usize);
        let body = &self.input.exactly(len)?[BLOCK_HEAD_LEN..];
        if self.wasted > MAX_WASTED_BYTES + MAX_WASTED_RATIO * offset {
            return Err(PartError::Fault(Fault::WorkLimit));
        }
        let ends = head.check_body(body).inspect_err(|_| self.wasted += len as u64)?;
        let format = format_of(head.format)?;
        let events = body[END_BYTES * ends.len()..].to_vec();
        Ok((IntactPart::Block(Block { offset, first: head.first, format, events, ends }), len))
    }

    fn check_identity(&self, head: &BlockHead) -> Result<(), Fault> {
        match self.identity {
            Some(identity) if identity.salt != head.salt => Err(Fault::Salt),
            Some(identity) if number_of(identity.format) != head.format => {
                Err(Fault::Format(head.format))
            }
            _ => Ok(()),
        }
    }

    /// Reads the index, and returns it with its length.
    fn index(&mut self) -> Result<(IntactPart, usize), PartError> {
        let head = IndexHead::read(self.input.array()?)?;
        if self.identity.is_some_and(|identity| identity.salt != head.salt) {
            return Err(PartError::Fault(Fault::Salt));
        }
        let (offset, len) = (self.input.offset, head.section_len());
        let (index, stated) = Index::read(head, self.input.exactly(len)?)?;
        Ok((IntactPart::Index { index, is_moved: stated != offset }, len))
    }

    /// Takes an intact part at `offset`: returns it, or the damage before it.
    fn take(&mut self, part: IntactPart, offset: u64) -> Option<Item> {
        let first = match &part {
            IntactPart::Block(block) => block.first,
            IntactPart::Index { index, .. } => index.events,
        };
        let damage = self.damage_before(&part, first, offset);
        self.is_damaged |= damage.is_some();
        match part {
            IntactPart::Block(block) => {
                self.next = block.first + block.len() as u64;
                self.index.push(Entry { offset, first }, block.len() as u32);
                let Some(damage) = damage else { return Some(Item::Block(block)) };
                self.held = Some(block);
                Some(Item::Damage(damage))
            }
            IntactPart::Index { .. } => {
                self.state = State::AwaitEnd;
                damage.map(Item::Damage)
            }
        }
    }

    /// The damage before an intact part at `offset` whose first event is `first`.
    fn damage_before(&mut self, part: &IntactPart, first: u64, offset: u64) -> Option<Damage> {
        let is_next = first == self.next;
        let (start, fault) = match (self.lost.take(), self.state, part) {
            (Some(lost), ..) => lost,
            (None, State::AwaitEnd, _) => (offset, Fault::Trailing),
            (None, _, _) if first > self.next => (offset, Fault::Order { found: first }),
            (None, _, IntactPart::Block(_)) if !is_next => (offset, Fault::Order { found: first }),
            (None, _, IntactPart::Index { index, is_moved })
                if !self.is_damaged && (*is_moved || *index != self.index) =>
            {
                (offset, Fault::Index)
            }
            _ => return None,
        };
        let missing = first.checked_sub(self.next);
        Some(Damage { offset: start, len: offset - start, event: self.next, missing, fault })
    }

    /// The end of the input: the unreadable part before it, or the lack of an index.
    fn end(&mut self) -> Option<Damage> {
        let (state, end) = (std::mem::replace(&mut self.state, State::Over), self.input.offset);
        let lost = self.lost.take();
        let truncated = (state != State::AwaitEnd).then_some((end, Fault::Truncated));
        let (offset, fault) = lost.or(truncated)?;
        Some(Damage { offset, len: end - offset, event: self.next, missing: None, fault })
    }
}

/// Why a part is not read.
enum PartError {
    Io(io::Error),
    Fault(Fault),
}

impl From<io::Error> for PartError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Fault> for PartError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// An intact part.
enum IntactPart {
    Block(Block),
    /// The index, and whether it states another offset than its own.
    Index {
        index: Index,
        is_moved: bool,
    },
}

/// Bytes that are read and not consumed.
#[derive(Debug)]
struct Buffer<R> {
    input: R,
    bytes: Vec<u8>,
    // start <= bytes.len()
    start: usize,
    /// Bytes from the start of the input to the unconsumed ones.
    offset: u64,
}

impl<R: Read> Buffer<R> {
    /// The next `len` bytes; fewer at the end of the input.
    fn fill(&mut self, len: usize) -> io::Result<&[u8]> {
        let missing = len.saturating_sub(self.bytes.len() - self.start);
        if missing > 0 {
            self.input.by_ref().take(missing as u64).read_to_end(&mut self.bytes)?;
        }
        let rest = &self.bytes[self.start..];
        Ok(&rest[..len.min(rest.len())])
    }

    /// The next `len` bytes.
    fn exactly(&mut self, len: usize) -> Result<&[u8], PartError> {
        let bytes = self.fill(len)?;
        if bytes.len() < len { Err(PartError::Fault(Fault::Truncated)) } else { Ok(bytes) }
    }

    /// The next `N` bytes.
    fn array<const N: usize>(&mut self) -> Result<&[u8; N], PartError> {
        self.fill(N)?.first_chunk().ok_or(PartError::Fault(Fault::Truncated))
    }

    fn consume(&mut self, len: usize) {
        self.start += len;
        self.offset += len as u64;
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start > MAX_CONSUMED_BYTES {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Consumes the bytes before the next sync marker, or all there are. One at the first byte is not found.
    fn search(&mut self) -> io::Result<()> {
        self.consume(self.bytes.len().min(self.start + 1) - self.start);
        loop {
            let rest = &self.bytes[self.start..];
            let found = rest.windows(BLOCK.len()).position(|part| part == BLOCK || part == INDEX);
            if let Some(at) = found {
                self.consume(at);
                return Ok(());
            }
            let kept = rest.len().min(BLOCK.len() - 1);
            let searched = rest.len() - kept;
            self.consume(searched);
            if self.fill(kept + SEARCH_BYTES)?.len() == kept {
                self.consume(kept);
                return Ok(());
            }
        }
    }
}

/// Bytes that a search reads at a time.
const SEARCH_BYTES: usize = 64 << 10;
/// Consumed bytes that remain in the buffer.
const MAX_CONSUMED_BYTES: usize = 1 << 20;
/// Maximum length of bodies with wrong checksums in bytes: per byte that is read, and beyond.
pub(super) const MAX_WASTED_RATIO: u64 = 4;
pub(super) const MAX_WASTED_BYTES: u64 = 64 << 20;
