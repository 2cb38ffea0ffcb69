//! Reading an archive from a stream, with memory bounded by one batch of blocks.

use std::io::{self, BufReader, Read};

use kernels::sha256;
use kernels::varint;

use super::slice::{HashProof, Roots, read_header};
use super::{CarError, CarFault, Options};
use crate::cid::CidRef;

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

/// Reads an archive from `R`, block by block. It holds the header, 64 KiB of blocks and one more block,
/// whatever the archive's length; memory is allocated as bytes arrive, not as lengths are stated.
///
/// The iteration ends after the first error.
#[derive(Debug)]
pub struct StreamReader<R> {
    source: BufReader<R>,
    options: Options,
    header: Vec<u8>,
    header_offset: u64,
    /// Bytes read so far.
    offset: u64,
    /// Blocks read so far.
    seen: u64,
    /// Blocks that are read and checked, in reverse order.
    ready: Vec<OwnedBlock>,
    /// The error to report after `ready`.
    fault: Option<StreamError>,
    ended: bool,
}

impl<R: Read> StreamReader<R> {
    /// Reads the header from `source`.
    ///
    /// # Errors
    /// If the header breaks a rule or a limit, or the stream fails.
    pub fn new(source: R, options: &Options) -> Result<Self, StreamError> {
        let mut reader = Self {
            source: BufReader::new(source),
            options: *options,
            header: Vec::new(),
            header_offset: 0,
            offset: 0,
            seen: 0,
            ready: Vec::new(),
            fault: None,
            ended: false,
        };
        let limit = options.max_header_bytes;
        let Some(header) = reader.section(limit, CarFault::HeaderLimit(limit))? else {
            return Err(fault(0, CarFault::Truncated));
        };
        reader.header_offset = reader.offset - header.len() as u64;
        read_header(&header, reader.header_offset)?;
        reader.header = header;
        Ok(reader)
    }

    /// The roots in the header.
    pub fn roots(&self) -> Roots<'_> {
        read_header(&self.header, self.header_offset).expect("checked when the stream was opened")
    }

    fn refill(&mut self) {
        let mut held = 0;
        while held < BATCH_BYTES && !self.ended {
            match self.block() {
                Ok(Some(block)) => {
                    held += block.body.len();
                    self.ready.push(block);
                }
                Ok(None) => self.ended = true,
                Err(error) => self.stop(error),
            }
        }
        if !self.options.trust_hashes {
            self.check_hashes();
        }
        self.ready.reverse();
    }

    fn stop(&mut self, error: StreamError) {
        self.fault = Some(error);
        self.ended = true;
    }

    fn check_hashes(&mut self) {
        let messages: Vec<&[u8]> = self.ready.iter().map(OwnedBlock::data).collect();
        let digests = sha256::digest_many(&messages);
        for (at, digest) in digests.iter().enumerate() {
            let block = &mut self.ready[at];
            block.proof = match block.cid().sha256() {
                Some(expected) if expected == digest => HashProof::Checked,
                None => HashProof::UnknownHash,
                Some(_) => {
                    let error = fault(block.offset, CarFault::HashMismatch);
                    self.ready.truncate(at);
                    return self.stop(error);
                }
            };
        }
    }

    fn block(&mut self) -> Result<Option<OwnedBlock>, StreamError> {
        let offset = self.offset;
        let limit = self.options.max_block_bytes;
        let Some(body) = self.section(limit, CarFault::BlockLimit(limit))? else { return Ok(None) };
        if self.seen == self.options.max_blocks {
            return Err(fault(offset, CarFault::BlockCountLimit(self.options.max_blocks)));
        }
        self.seen += 1;
        let Some((_, data)) = CidRef::from_prefix(&body) else {
            return Err(fault(offset, CarFault::Cid));
        };
        let cid_len = body.len() - data.len();
        Ok(Some(OwnedBlock { body, cid_len, offset, proof: HashProof::Trusted }))
    }

    /// The next length-prefixed section; `None` at the end of the stream.
    fn section(
        &mut self,
        limit: usize,
        over_limit: CarFault,
    ) -> Result<Option<Vec<u8>>, StreamError> {
        let start = self.offset;
        let Some(len) = self.length()? else { return Ok(None) };
        if len > limit as u64 {
            return Err(fault(start, over_limit));
        }
        if self.offset + len > self.options.max_total_bytes {
            return Err(fault(start, CarFault::TotalLimit(self.options.max_total_bytes)));
        }
        let mut section = Vec::new();
        self.source.by_ref().take(len).read_to_end(&mut section)?;
        self.offset += section.len() as u64;
        if (section.len() as u64) < len {
            return Err(fault(start, CarFault::Truncated));
        }
        Ok(Some(section))
    }

    fn length(&mut self) -> Result<Option<u64>, StreamError> {
        let start = self.offset;
        let mut bytes = [0; varint::MAX_LEN];
        let mut len = 0;
        for byte in self.source.by_ref().bytes().take(varint::MAX_LEN) {
            bytes[len] = byte?;
            len += 1;
            if bytes[len - 1] < 0x80 {
                break;
            }
        }
        self.offset += len as u64;
        match varint::read(&bytes[..len]) {
            _ if len == 0 => Ok(None),
            Ok((value, _)) => Ok(Some(value)),
            Err(varint::VarintError::Truncated) => Err(fault(start, CarFault::Truncated)),
            Err(_) => Err(fault(start, CarFault::Varint)),
        }
    }
}

impl<R: Read> Iterator for StreamReader<R> {
    type Item = Result<OwnedBlock, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() && !self.ended {
            self.refill();
        }
        match self.ready.pop() {
            Some(block) => Some(Ok(block)),
            None => self.fault.take().map(Err),
        }
    }
}

fn fault(offset: u64, fault: CarFault) -> StreamError {
    StreamError::Car(CarError { offset, fault })
}

/// Bytes of blocks that are read ahead and hashed together.
const BATCH_BYTES: usize = 64 << 10;
