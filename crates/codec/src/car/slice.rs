//! Reading an archive that lies in memory, without copying a block.

use kernels::sha256::{self, Digest};
use kernels::varint::{self, VarintError};

use super::Options;
use super::error::{CarError, CarFault, fail};
use super::header::{self, Roots};
use crate::cid::CidRef;

/// A block of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The identifier that stands beside the data.
    pub cid: CidRef<'a>,
    /// The data.
    pub data: &'a [u8],
    /// Bytes from the start of the archive to the block's length prefix.
    pub offset: u64,
    /// What is known of the data being what `cid` names.
    pub proof: HashProof,
}

impl Block<'_> {
    /// Bytes from the start of the archive to the block's data.
    pub fn data_offset(&self) -> usize {
        let body_len = self.cid.as_bytes().len() + self.data.len();
        self.offset as usize + varint::len(body_len as u64) + self.cid.as_bytes().len()
    }
}

/// What is known of a block's data being what its CID names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashProof {
    /// The SHA-256 was computed and is the one in the CID.
    Checked,
    /// The caller chose to trust the archive.
    Trusted,
    /// The CID names another hash function than SHA-256, or another length of digest than its 32
    /// bytes; nothing is proved.
    UnknownHash,
}

/// An archive, read whole.
#[derive(Clone, Debug)]
pub struct Car<'a> {
    /// The roots that the header names.
    pub roots: Roots<'a>,
    /// The blocks in the order in which they stand.
    pub blocks: Vec<Block<'a>>,
}

/// Reads a whole archive.
///
/// # Errors
/// At the first part that breaks a rule or a bound, or whose hash is wrong.
///
/// ```
/// use wireproof_codec::{Cid, car, cid::Codec};
/// let block = b"\xa2\x61e\x80\x61l\xf6";
/// let cid = Cid::of(Codec::DagCbor, block);
/// let mut writer = car::Writer::new(Vec::new(), &[cid])?;
/// writer.block(&cid, block)?;
/// let bytes = writer.into_inner();
///
/// let archive = car::read(&bytes, &car::Options::default()).unwrap();
/// assert_eq!(archive.roots.first(), Some(cid.as_cid_ref()));
/// assert_eq!(archive.blocks[0].data, block);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn read<'a>(archive: &'a [u8], options: &Options) -> Result<Car<'a>, CarError> {
    let blocks = Blocks::new(archive, options)?;
    let roots = blocks.roots();
    Ok(Car { roots, blocks: blocks.collect::<Result<_, _>>()? })
}

/// The blocks of an archive, one by one. Hashes are checked a batch at a time, ahead of what is
/// handed over.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    sections: Sections<'a>,
    trust_hashes: bool,
    /// Blocks that are split off and checked, in reverse.
    ready: Vec<Block<'a>>,
    /// The fault to report when `ready` is used up.
    fault: Option<CarError>,
}

impl<'a> Blocks<'a> {
    /// Reads the header of `archive`.
    ///
    /// # Errors
    /// If the header breaks a rule or a bound.
    pub fn new(archive: &'a [u8], options: &Options) -> Result<Self, CarError> {
        let sections = Sections::new(archive, options)?;
        let trust_hashes = options.trust_hashes;
        Ok(Self { sections, trust_hashes, ready: Vec::new(), fault: None })
    }

    /// The roots that the header names.
    pub fn roots(&self) -> Roots<'a> {
        self.sections.roots
    }

    fn refill(&mut self) {
        while self.ready.len() < BATCH && self.fault.is_none() {
            match self.sections.next() {
                Some(Ok(block)) => self.ready.push(block),
                Some(Err(error)) => self.fault = Some(error),
                None => break,
            }
        }
        if !self.trust_hashes
            && let Err(error) = check_hashes(&mut self.ready)
        {
            self.ready.retain(|block| block.offset < error.offset);
            self.fault = Some(error);
        }
        self.ready.reverse();
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>, CarError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() && self.fault.is_none() {
            self.refill();
        }
        match self.ready.pop() {
            Some(block) => Some(Ok(block)),
            None => {
                self.sections.end();
                self.fault.take().map(Err)
            }
        }
    }
}

/// Blocks that share the lanes of the hash. More fill the lanes no better.
const BATCH: usize = 256;

/// Compares the SHA-256 of each block with its CID, many at a time, and notes the proof.
///
/// # Errors
/// At the first block whose data is not what its CID names.
pub fn check_hashes(blocks: &mut [Block<'_>]) -> Result<(), CarError> {
    let mut messages: [&[u8]; BATCH] = [&[]; BATCH];
    let mut digests: [Digest; BATCH] = [[0; 32]; BATCH];
    for batch in blocks.chunks_mut(BATCH) {
        let count = batch.len();
        for (message, block) in messages.iter_mut().zip(&*batch) {
            *message = block.data;
        }
        sha256::digest_many_into(&messages[..count], &mut digests[..count]);
        for (block, digest) in batch.iter_mut().zip(&digests) {
            block.proof = match block.cid.sha256() {
                Some(expected) if expected == digest => HashProof::Checked,
                Some(_) => return fail(block.offset, CarFault::HashMismatch),
                None => HashProof::UnknownHash,
            };
        }
    }
    Ok(())
}

/// The blocks of an archive, split but not hashed, whatever the options say: every block's proof is
/// [`HashProof::Trusted`]. For callers that hash the blocks of several archives together.
#[derive(Clone, Debug)]
pub struct Sections<'a> {
    roots: Roots<'a>,
    archive: &'a [u8],
    // offset <= archive.len()
    offset: usize,
    max_block_bytes: usize,
    max_blocks: u64,
    seen: u64,
}

impl<'a> Sections<'a> {
    /// Reads the header of `archive`.
    ///
    /// # Errors
    /// If the header breaks a rule or a bound.
    pub fn new(archive: &'a [u8], options: &Options) -> Result<Self, CarError> {
        if archive.len() as u64 > options.max_total_bytes {
            return fail(0, CarFault::TotalLimit(options.max_total_bytes));
        }
        let limit = options.max_header_bytes;
        let (header, offset) = section(archive, 0, limit, CarFault::HeaderLimit(limit))?;
        let roots = header::read(header, (offset - header.len()) as u64)?;
        let (max_block_bytes, max_blocks) = (options.max_block_bytes, options.max_blocks);
        Ok(Self { roots, archive, offset, max_block_bytes, max_blocks, seen: 0 })
    }

    /// The roots that the header names.
    pub fn roots(&self) -> Roots<'a> {
        self.roots
    }

    // Inlined with what it calls: as functions of their own they hand their results through memory,
    // and a validated frame of eight blocks takes 1.05 times as long.
    #[inline(always)]
    fn block(&mut self) -> Result<Block<'a>, CarError> {
        let start = self.offset;
        if self.seen == self.max_blocks {
            return fail(start as u64, CarFault::BlockCountLimit(self.max_blocks));
        }
        let limit = self.max_block_bytes;
        let (body, end) = section(self.archive, start, limit, CarFault::BlockLimit(limit))?;
        let Some((cid, data)) = CidRef::from_prefix(body) else {
            return fail(start as u64, CarFault::Cid);
        };
        self.offset = end;
        self.seen += 1;
        Ok(Block { cid, data, offset: start as u64, proof: HashProof::Trusted })
    }

    /// Reads no further.
    fn end(&mut self) {
        self.offset = self.archive.len();
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Result<Block<'a>, CarError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.offset == self.archive.len() {
            return None;
        }
        let block = self.block();
        if block.is_err() {
            self.end();
        }
        Some(block)
    }
}

/// The length-prefixed section at `start`, and the offset of its end.
#[inline(always)]
fn section(
    archive: &[u8],
    start: usize,
    limit: usize,
    over_limit: CarFault,
) -> Result<(&[u8], usize), CarError> {
    let (len, prefix) = match varint::read(&archive[start..]) {
        Ok(read) => read,
        Err(VarintError::Truncated) => return fail(start as u64, CarFault::Truncated),
        Err(_) => return fail(start as u64, CarFault::Varint),
    };
    if len > limit as u64 {
        return fail(start as u64, over_limit);
    }
    let body = start + prefix;
    match archive[body..].get(..len as usize) {
        Some(section) => Ok((section, body + section.len())),
        None => fail(start as u64, CarFault::Truncated),
    }
}
