//! Reading one event by its number.

use std::io::{self, Read, Seek, SeekFrom};

use super::index::{Entry, Index, IndexHead, MAX_SECTION_LEN, TAIL_LEN, offset_in_tail, stride};
use super::parts::{BLOCK_HEAD_LEN, BlockHead, END_BYTES, HEADER_LEN, Header, Salt, VERSION};
use super::{Damage, Fault, format_of};
use crate::Format;

/// Reads events of a container by number: one seek to a block by the index, and the checksum of that block.
///
/// A container of more than 16,384 blocks has entries for some; the heads of the blocks between are read then.
#[derive(Debug)]
pub struct IndexedReader<R> {
    input: R,
    format: Format,
    salt: Salt,
    index: Index,
    /// Offset of the index.
    end: u64,
}

/// An encoded event of a container. Whether it is one is not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    /// The format.
    pub format: Format,
    /// The event.
    pub bytes: Vec<u8>,
}

/// Why an event cannot be looked up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The header, the index or the block is damaged: a [`StreamReader`](super::StreamReader) finds the intact
    /// events.
    #[error("{0}")]
    Damaged(Damage),
    /// The input failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<R: Read + Seek> IndexedReader<R> {
    /// Reads the header and the index.
    ///
    /// # Errors
    /// If one of them is damaged or missing, or the input fails.
    pub fn open(mut input: R) -> Result<Self, LookupError> {
        let (header, _) = read_part(&mut input, 0, HEADER_LEN)?;
        let at_header = |fault| damaged(0, 0, fault);
        let header = header.first_chunk().ok_or_else(|| at_header(Fault::Truncated))?;
        let Header { version, format, salt } = Header::read(header).map_err(at_header)?;
        if version != VERSION {
            return Err(at_header(Fault::Version(version)));
        }
        let format = format_of(format).map_err(at_header)?;
        let len = input.seek(SeekFrom::End(0))?;
        let (index, end) = read_index(&mut input, len, salt)?;
        Ok(Self { input, format, salt, index, end })
    }

    /// Number of events.
    pub fn len(&self) -> u64 {
        self.index.events
    }

    /// Whether the container has no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The format of the events.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Reads the event of this number, from 0; `None` if the container has fewer.
    ///
    /// # Errors
    /// If its block is damaged, or the input fails.
    pub fn event(&mut self, number: u64) -> Result<Option<StoredEvent>, LookupError> {
        if number >= self.len() {
            return Ok(None);
        }
        let no_entry = || damaged(self.end, number, Fault::Index);
        let mut entry = self.index.entry_before(number).ok_or_else(no_entry)?;
        for _ in 0..stride(self.index.blocks) {
            let head = self.head(entry, number)?;
            if number < head.end() {
                return self.event_in(entry.offset, &head, number).map(Some);
            }
            let len = BLOCK_HEAD_LEN as u64 + u64::from(head.body_len);
            entry = Entry { offset: entry.offset + len, first: head.end() };
        }
        Err(damaged(entry.offset, number, Fault::Index))
    }

    /// Reads the head of the block at an entry.
    fn head(
        &mut self,
        Entry { offset, first }: Entry,
        number: u64,
    ) -> Result<BlockHead, LookupError> {
        let (bytes, _) = read_part(&mut self.input, offset, BLOCK_HEAD_LEN)?;
        let fault = |fault| damaged(offset, number, fault);
        let bytes = bytes.first_chunk().ok_or_else(|| fault(Fault::Truncated))?;
        let head = BlockHead::read(bytes).map_err(fault)?;
        if head.salt != self.salt {
            Err(fault(Fault::Salt))
        } else if format_of(head.format) != Ok(self.format) {
            Err(fault(Fault::Format(head.format)))
        } else if head.first != first {
            Err(fault(Fault::Order { found: head.first }))
        } else {
            Ok(head)
        }
    }

    /// Reads the body of a block, and takes the event.
    fn event_in(
        &mut self,
        offset: u64,
        head: &BlockHead,
        number: u64,
    ) -> Result<StoredEvent, LookupError> {
        let start = offset + BLOCK_HEAD_LEN as u64;
        let (body, is_whole) = read_part(&mut self.input, start, head.body_len as usize)?;
        let fault = |fault| damaged(offset, number, fault);
        if !is_whole {
            return Err(fault(Fault::Truncated));
        }
        let ends = head.check_body(&body).map_err(fault)?;
        let events = &body[END_BYTES * ends.len()..];
        // head.first <= number < head.end(), and every event has an end.
        let at = (number - head.first) as usize;
        let start = at.checked_sub(1).map_or(0, |before| ends[before] as usize);
        let bytes = events[start..ends[at] as usize].to_vec();
        Ok(StoredEvent { format: self.format, bytes })
    }
}

/// Reads the index of a container of `len` bytes, and returns it with its offset.
fn read_index<R: Read + Seek>(
    input: &mut R,
    len: u64,
    salt: Salt,
) -> Result<(Index, u64), LookupError> {
    let at_end = |fault| damaged(len, 0, fault);
    let tail_offset = len.checked_sub(TAIL_LEN as u64).ok_or_else(|| at_end(Fault::Truncated))?;
    let (tail, _) = read_part(input, tail_offset, TAIL_LEN)?;
    let tail = tail.first_chunk().ok_or_else(|| at_end(Fault::Truncated))?;
    let offset = offset_in_tail(tail).map_err(at_end)?;
    let section_len = len.checked_sub(offset).filter(|len| *len <= MAX_SECTION_LEN as u64);
    let section_len = section_len.ok_or_else(|| at_end(Fault::Index))? as usize;
    let (section, _) = read_part(input, offset, section_len)?;
    let fault = |fault| damaged(offset, 0, fault);
    let head = section.first_chunk().ok_or_else(|| fault(Fault::Index))?;
    let head = IndexHead::read(head).map_err(fault)?;
    if head.salt != salt {
        return Err(fault(Fault::Salt));
    }
    if head.section_len() != section_len {
        return Err(fault(Fault::Index));
    }
    match Index::read(head, &section).map_err(fault)? {
        (index, stated) if stated == offset => Ok((index, offset)),
        _ => Err(fault(Fault::Index)),
    }
}

/// Reads `len` bytes at `offset`, or as many as there are; `false` if the file ends before.
fn read_part<R: Read + Seek>(
    input: &mut R,
    offset: u64,
    len: usize,
) -> Result<(Vec<u8>, bool), LookupError> {
    let mut bytes = Vec::new();
    input.seek(SeekFrom::Start(offset))?;
    let read = input.by_ref().take(len as u64).read_to_end(&mut bytes)?;
    Ok((bytes, read == len))
}

#[cold]
fn damaged(offset: u64, event: u64, fault: Fault) -> LookupError {
    LookupError::Damaged(Damage { offset, len: 0, event, missing: None, fault })
}
