//! Reading an archive from a stream, with memory bounded by one batch of blocks.

use std::io::{self, Read};
use std::mem;

use kernels::varint::{self, VarintError};

use super::slice::{Block, HashProof, Roots, check_hashes, read_header};
use super::{CarError, CarFault, Options};
use crate::cid::{AnyCid, CidRef};

/// A block that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedBlock {
    /// The CID, then the data.
    body: Vec<u8>,
    cid_len: usize,
    /// Bytes from the start of the archive to the block's length prefix.
    pub offset: u64,
    /// Whether the data is proved to match the CID.
    pub proof: HashProof,
}

impl OwnedBlock {
    /// The identifier stored with the data.
    pub fn cid(&self) -> CidRef<'_> {
        CidRef::from_bytes(&self.body[..self.cid_len]).expect("checked when the block was read")
    }

    /// The data.
    pub fn data(&self) -> &[u8] {
        &self.body[self.cid_len..]
    }
}

impl From<Block<'_>> for OwnedBlock {
    fn from(block: Block<'_>) -> Self {
        let Block { cid, data, offset, proof } = block;
        let cid_len = cid.as_bytes().len();
        Self { body: [cid.as_bytes(), data].concat(), cid_len, offset, proof }
    }
}

/// Consecutive blocks of a stream in one buffer, checked together.
#[derive(Clone, Debug, Default)]
pub struct BlockBatch {
    /// The sections of the blocks.
    bytes: Vec<u8>,
    /// Bytes from the start of the archive to `bytes`.
    offset: u64,
    /// A span is the place of a section in `bytes` that was read before.
    spans: Vec<Span>,
}

/// The place of a block in the buffer of its batch.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Start of the section.
    start: usize,
    /// Start of the CID.
    body: usize,
    end: usize,
    proof: HashProof,
}

impl BlockBatch {
    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The block at `index`; `None` after the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Block<'_>> {
        self.spans.get(index).map(|span| self.block(*span))
    }

    /// The blocks in the order of the archive.
    pub fn iter(&self) -> impl Iterator<Item = Block<'_>> {
        self.spans.iter().map(|span| self.block(*span))
    }

    #[inline]
    fn block(&self, Span { start, body, end, proof }: Span) -> Block<'_> {
        let (cid, data) =
            CidRef::from_prefix(&self.bytes[body..end]).expect("checked when the block was read");
        Block { cid, data, offset: self.offset + start as u64, proof }
    }

    /// Checks the hashes of all blocks. The blocks before one with a wrong hash remain.
    fn check_hashes(&mut self) -> Result<(), Mismatch> {
        let mut blocks: Vec<Block<'_>> = self.iter().collect();
        let checked = check_hashes(&mut blocks);
        let sound = match checked {
            Ok(()) => blocks.len(),
            Err(error) => blocks.iter().take_while(|block| block.offset < error.offset).count(),
        };
        let cid = blocks.get(sound).map(|block| AnyCid::from(block.cid));
        let proofs: Vec<HashProof> = blocks[..sound].iter().map(|block| block.proof).collect();
        self.spans.truncate(sound);
        for (span, proof) in self.spans.iter_mut().zip(proofs) {
            span.proof = proof;
        }
        checked.map_err(|error| Mismatch { error, cid })
    }
}

/// A block with a wrong hash.
struct Mismatch {
    error: CarError,
    cid: Option<AnyCid>,
}

/// Why a stream could not be read to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The bytes are not an archive.
    #[error(transparent)]
    Car(#[from] CarError),
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads an archive from `R`, block by block, or in [batches](Self::next_batch). It holds the header, 64 KiB of
/// blocks and one more block, whatever the archive's length; memory is allocated as bytes arrive, not as lengths are
/// stated.
///
/// The iteration ends after the first error, except one of the kind [`WouldBlock`](io::ErrorKind::WouldBlock), which only
/// says that the source has no more bytes now: the same call continues once it has.
#[derive(Debug)]
pub struct StreamReader<R> {
    input: Buffered<R>,
    options: Options,
    header: Vec<u8>,
    header_offset: u64,
    /// Blocks read so far.
    seen: u64,
    /// Blocks that are read and checked, in reverse order.
    ready: Vec<OwnedBlock>,
    /// The error to report after the blocks before it.
    fault: Option<StreamError>,
    /// The CID of the block that made `fault`, if its hash is wrong.
    mismatch: Option<AnyCid>,
    ended: bool,
}

impl<R: Read> StreamReader<R> {
    /// Reads the header from `source`.
    ///
    /// # Errors
    /// If the header breaks a rule or a limit, or the stream fails.
    pub fn new(source: R, options: &Options) -> Result<Self, StreamError> {
        let mut input = Buffered::new(source);
        let limit = options.max_header_bytes;
        let Some(section) = input.section(0, limit, CarFault::HeaderLimit(limit), options)? else {
            return Err(fault(0, CarFault::Truncated));
        };
        let (header, header_offset) =
            (input.filled()[section.body..section.end].to_vec(), section.body as u64);
        read_header(&header, header_offset)?;
        input.consume(section.end);
        let (options, ready) = (*options, Vec::new());
        let fault = None;
        let mismatch = None;
        let ended = false;
        Ok(Self { input, options, header, header_offset, seen: 0, ready, fault, mismatch, ended })
    }

    /// The roots in the header.
    pub fn roots(&self) -> Roots<'_> {
        read_header(&self.header, self.header_offset).expect("checked when the stream was opened")
    }

    /// The source, for one that has to be given its bytes.
    pub fn source_mut(&mut self) -> &mut R {
        &mut self.input.source
    }

    /// The number of bytes of the archive up to the last block that was read.
    pub fn position(&self) -> u64 {
        self.input.offset
    }

    /// The CID of the block at which reading ended because its hash is wrong.
    pub fn mismatched_cid(&self) -> Option<CidRef<'_>> {
        self.mismatch.as_ref().map(AnyCid::as_cid_ref)
    }

    /// The next blocks, some 64 KiB of them; `None` after the last, or after an error. Blocks that the iterator has
    /// read ahead are not among them.
    ///
    /// # Errors
    /// If the stream fails, or at the first part of the archive that breaks a rule or a limit or does not match its
    /// hash, after the blocks before it; if the source would block.
    pub fn next_batch(&mut self) -> Result<Option<BlockBatch>, StreamError> {
        if !self.ended {
            let batch = self.read_batch()?;
            if !batch.is_empty() {
                return Ok(Some(batch));
            }
        }
        match self.fault.take() {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// The next blocks, or the error of a source that would block.
    fn read_batch(&mut self) -> io::Result<BlockBatch> {
        self.input.read_ahead(BATCH_BYTES)?;
        let (mut spans, mut at) = (Vec::new(), 0);
        while !self.ended && (spans.is_empty() || self.input.is_ready(at)) {
            match self.block(at) {
                Ok(Some(span)) => {
                    at = span.end;
                    spans.push(span);
                }
                Ok(None) => self.ended = true,
                // Only of the first block: nothing is consumed.
                Err(StreamError::Io(error)) if would_block(&error) => return Err(error),
                Err(error) => self.stop(error),
            }
        }
        let offset = self.input.offset;
        let mut batch = BlockBatch { bytes: self.input.consume(at), offset, spans };
        if !self.options.trust_hashes
            && let Err(Mismatch { error, cid }) = batch.check_hashes()
        {
            self.mismatch = cid;
            self.stop(error.into());
        }
        Ok(batch)
    }

    fn stop(&mut self, error: StreamError) {
        self.fault = Some(error);
        self.ended = true;
    }

    /// The block at `at` of the buffer; `None` at the end of the stream.
    fn block(&mut self, at: usize) -> Result<Option<Span>, StreamError> {
        let start = self.input.offset + at as u64;
        if self.input.is_at_end(at)? {
            return Ok(None);
        }
        if self.seen == self.options.max_blocks {
            return Err(fault(start, CarFault::BlockCountLimit(self.options.max_blocks)));
        }
        let limit = self.options.max_block_bytes;
        let section = self.input.section(at, limit, CarFault::BlockLimit(limit), &self.options)?;
        let Some(SectionSpan { body, end }) = section else { return Ok(None) };
        if CidRef::from_prefix(&self.input.filled()[body..end]).is_none() {
            return Err(fault(start, CarFault::Cid));
        }
        self.seen += 1;
        Ok(Some(Span { start: at, body, end, proof: HashProof::Trusted }))
    }

    fn refill(&mut self) -> Result<(), StreamError> {
        if let Some(batch) = self.next_batch()? {
            self.ready.extend(batch.iter().map(OwnedBlock::from));
            self.ready.reverse();
        }
        Ok(())
    }
}

impl<R: Read> Iterator for StreamReader<R> {
    type Item = Result<OwnedBlock, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && let Err(error) = self.refill()
        {
            return Some(Err(error));
        }
        self.ready.pop().map(Ok)
    }
}

/// A source, and the bytes that were read from it and not consumed.
#[derive(Debug)]
struct Buffered<R> {
    source: R,
    /// The read bytes, then room for more.
    buffer: Vec<u8>,
    // filled <= buffer.len()
    filled: usize,
    /// Bytes from the start of the stream to the buffer.
    offset: u64,
    /// Why the source failed: the error of the next read.
    failure: Option<io::Error>,
    /// Whether the source has ended.
    ended: bool,
}

/// The place of a section's body in the buffer.
struct SectionSpan {
    body: usize,
    end: usize,
}

impl<R: Read> Buffered<R> {
    fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), filled: 0, offset: 0, failure: None, ended: false }
    }

    fn filled(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Reads until the buffer has `len` bytes, or the source ends.
    fn fill(&mut self, len: usize) -> io::Result<()> {
        while self.filled < len && !self.ended {
            if let Some(error) = self.failure.take() {
                return Err(error);
            }
            if self.filled == self.buffer.len() {
                // Grows with the bytes that arrived, whatever length is claimed.
                let arrived = self.offset.min(BATCH_BYTES as u64) as usize;
                let room = arrived.max(2 * self.filled).max(FIRST_READ_BYTES);
                self.buffer.resize(room.min(len.max(BATCH_BYTES)), 0);
            }
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads until the buffer has `len` bytes, or the source ends or fails. A failure is reported where more is
    /// needed, but at once if the source would block.
    fn read_ahead(&mut self, len: usize) -> io::Result<()> {
        match self.fill(len) {
            Err(error) if would_block(&error) => return Err(error),
            filled => self.failure = filled.err(),
        }
        Ok(())
    }

    /// Whether the stream ends at `at`.
    fn is_at_end(&mut self, at: usize) -> io::Result<bool> {
        self.fill(at + 1)?;
        Ok(at == self.filled)
    }

    /// Whether the section at `at`, or the end of the stream, is in the buffer.
    fn is_ready(&self, at: usize) -> bool {
        match varint::read(&self.filled()[at..]) {
            Ok((len, prefix)) => len <= (self.filled - at - prefix) as u64,
            Err(_) => self.ended,
        }
    }

    /// The length-prefixed section at `at`; `None` at the end of the stream.
    fn section(
        &mut self,
        at: usize,
        limit: usize,
        over_limit: CarFault,
        options: &Options,
    ) -> Result<Option<SectionSpan>, StreamError> {
        let start = self.offset + at as u64;
        if self.is_at_end(at)? {
            return Ok(None);
        }
        let (len, prefix) = self.length(at)?;
        if len > limit as u64 {
            return Err(fault(start, over_limit));
        }
        if start + prefix as u64 + len > options.max_total_bytes {
            return Err(fault(start, CarFault::TotalLimit(options.max_total_bytes)));
        }
        let body = at + prefix;
        let end = body + len as usize;
        self.fill(end)?;
        if self.filled < end {
            return Err(fault(start, CarFault::Truncated));
        }
        Ok(Some(SectionSpan { body, end }))
    }

    /// The varint at `at`, and its length.
    fn length(&mut self, at: usize) -> Result<(u64, usize), StreamError> {
        loop {
            match varint::read(&self.filled()[at..]) {
                Ok(read) => return Ok(read),
                Err(VarintError::Truncated) if !self.ended => self.fill(self.filled + 1)?,
                Err(VarintError::Truncated) => {
                    return Err(fault(self.offset + at as u64, CarFault::Truncated));
                }
                Err(_) => return Err(fault(self.offset + at as u64, CarFault::Varint)),
            }
        }
    }

    /// Removes the first `len` bytes of the buffer, and returns the buffer that begins with them.
    fn consume(&mut self, len: usize) -> Vec<u8> {
        let rest = self.buffer[len..self.filled].to_vec();
        self.offset += len as u64;
        self.filled = rest.len();
        let mut consumed = mem::replace(&mut self.buffer, rest);
        consumed.truncate(len);
        consumed
    }
}

fn would_block(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn fault(offset: u64, fault: CarFault) -> StreamError {
    StreamError::Car(CarError { offset, fault })
}

/// Bytes of blocks that are read ahead and hashed together.
const BATCH_BYTES: usize = 64 << 10;

/// Size of the first read.
const FIRST_READ_BYTES: usize = 8 << 10;
