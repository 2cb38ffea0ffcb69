//! Reading an archive from memory without copying blocks.

use kernels::sha256::{self, Digest};
use kernels::varint::{self, VarintError};

use super::{CarError, CarFault, Options, fail};
use crate::cbor::{DecodeError, KeyOrder, Reader};
use crate::cid::CidRef;

/// A block of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The identifier stored with the data.
    pub cid: CidRef<'a>,
    /// The data.
    pub data: &'a [u8],
    /// Bytes from the start of the archive to the block's length prefix.
    pub offset: u64,
    /// Whether the data is proved to match `cid`.
    pub proof: HashProof,
}

impl Block<'_> {
    /// Bytes from the start of the archive to the block's data.
    pub fn data_offset(&self) -> usize {
        let body_len = self.cid.as_bytes().len() + self.data.len();
        self.offset as usize + varint::len(body_len as u64) + self.cid.as_bytes().len()
    }
}

/// Whether a block's data is proved to match its CID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashProof {
    /// The data matches the CID: its SHA-256 was computed, or the CID has the data itself, under the identity function.
    Checked,
    /// The caller chose to trust the archive.
    Trusted,
    /// The CID uses another hash function; nothing is proved.
    UnknownHash,
}

impl HashProof {
    /// Compares a block, whose SHA-256 is `digest`, with its CID; `None` if they do not match.
    #[inline]
    pub fn of(cid: CidRef<'_>, data: &[u8], digest: &Digest) -> Option<Self> {
        match cid.sha256() {
            Some(expected) => (expected == digest).then_some(Self::Checked),
            None => Self::without_sha256(cid, data),
        }
    }

    #[cold]
    fn without_sha256(cid: CidRef<'_>, data: &[u8]) -> Option<Self> {
        match cid.identity() {
            Some(block) => (block == data).then_some(Self::Checked),
            None => Some(Self::UnknownHash),
        }
    }
}

/// An archive, read whole.
#[derive(Clone, Debug)]
pub struct Car<'a> {
    /// The roots in the header.
    pub roots: Roots<'a>,
    /// The blocks in order.
    pub blocks: Vec<Block<'a>>,
}

/// Reads a whole archive.
///
/// # Errors
/// At the first part that breaks a rule or a limit, or does not match its hash.
///
/// ```
/// use wireproof::codec::{Cid, car, cid::Codec};
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

/// Iterates over the blocks of an archive. Hashes are checked in batches, ahead of the iteration.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    sections: Sections<'a>,
    trust_hashes: bool,
    /// Blocks that are read and checked, in reverse order.
    ready: Vec<Block<'a>>,
    /// The error to report after `ready`.
    fault: Option<CarError>,
}

impl<'a> Blocks<'a> {
    /// Reads the header of `archive`.
    ///
    /// # Errors
    /// If the header breaks a rule or a limit.
    pub fn new(archive: &'a [u8], options: &Options) -> Result<Self, CarError> {
        let sections = Sections::new(archive, options)?;
        let trust_hashes = options.trust_hashes;
        Ok(Self { sections, trust_hashes, ready: Vec::new(), fault: None })
    }

    /// The roots in the header.
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

/// Blocks hashed together. More do not fill the lanes better.
const BATCH: usize = 256;

/// The blocks of most frames: room for more is 12 KiB, which take as long to clear as a block to hash.
const FEW: usize = 16;

/// Compares the SHA-256 hashes of blocks with their CIDs, many at a time, and sets [`Block::proof`].
///
/// # Errors
/// At the first block whose data does not match its CID.
pub fn check_hashes(blocks: &mut [Block<'_>]) -> Result<(), CarError> {
    if blocks.len() <= FEW { check_batches::<FEW>(blocks) } else { check_batches::<BATCH>(blocks) }
}

#[inline(never)]
fn check_batches<const LEN: usize>(blocks: &mut [Block<'_>]) -> Result<(), CarError> {
    let mut messages: [&[u8]; LEN] = [&[]; LEN];
    let mut digests: [Digest; LEN] = [[0; 32]; LEN];
    for batch in blocks.chunks_mut(LEN) {
        let count = batch.len();
        for (message, block) in messages.iter_mut().zip(&*batch) {
            *message = block.data;
        }
        sha256::digest_many_into(&messages[..count], &mut digests[..count]);
        for (block, digest) in batch.iter_mut().zip(&digests) {
            block.proof = match HashProof::of(block.cid, block.data, digest) {
                Some(proof) => proof,
                None => return fail(block.offset, CarFault::HashMismatch),
            };
        }
    }
    Ok(())
}

/// Iterates over the blocks of an archive without hashing them, whatever the options say: every proof is
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
    /// If the header breaks a rule or a limit.
    pub fn new(archive: &'a [u8], options: &Options) -> Result<Self, CarError> {
        if archive.len() as u64 > options.max_total_bytes {
            return fail(0, CarFault::TotalLimit(options.max_total_bytes));
        }
        let limit = options.max_header_bytes;
        let (header, offset) = section(archive, 0, limit, CarFault::HeaderLimit(limit))?;
        let roots = read_header(header, (offset - header.len()) as u64)?;
        let (max_block_bytes, max_blocks) = (options.max_block_bytes, options.max_blocks);
        Ok(Self { roots, archive, offset, max_block_bytes, max_blocks, seen: 0 })
    }

    /// The roots in the header.
    pub fn roots(&self) -> Roots<'a> {
        self.roots
    }

    // Inlined with its callees: as calls they return their results through memory, and validating a frame
    // of eight blocks takes 1.05 times as long.
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

    /// Ends the iteration.
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

/// The root links of an archive, in order; possibly none.
#[derive(Clone, Copy, Debug)]
pub struct Roots<'a> {
    first: Option<CidRef<'a>>,
    /// The items of the root array, all checked to be links.
    items: &'a [u8],
    len: usize,
}

impl<'a> Roots<'a> {
    /// The number of roots.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no roots.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first root: the commit, in a repository's archive.
    pub fn first(&self) -> Option<CidRef<'a>> {
        self.first
    }

    /// The roots in order.
    pub fn iter(&self) -> impl Iterator<Item = CidRef<'a>> + use<'a> {
        let mut reader = Reader::new(self.items);
        (0..self.len).map(move |_| reader.link().expect("checked when the header was read"))
    }
}

/// Reads the header, which is at `offset` of the archive.
pub(super) fn read_header(header: &[u8], offset: u64) -> Result<Roots<'_>, CarError> {
    if let Some(roots) = usual_header(header) {
        return Ok(roots);
    }
    match header_fields(header) {
        Ok((Some(roots), Some(1))) => Ok(roots),
        Ok((_, Some(version))) if version != 1 => fail(offset, CarFault::Version(version)),
        Ok(_) => fail(offset, CarFault::HeaderField),
        Err(error) => fail(offset, CarFault::Header(error)),
    }
}

/// A header with one root, as nearly all archives have it, by comparing bytes.
#[inline]
fn usual_header(header: &[u8]) -> Option<Roots<'_>> {
    let items = header.strip_prefix(b"\xa2\x65roots\x81")?;
    let mut reader = Reader::new(items);
    let first = reader.link().ok()?;
    let is_usual = reader.rest() == b"\x67version\x01";
    is_usual.then_some(Roots { first: Some(first), items, len: 1 })
}

type HeaderFields<'a> = (Option<Roots<'a>>, Option<i64>);

fn header_fields(header: &[u8]) -> Result<HeaderFields<'_>, DecodeError> {
    let mut reader = Reader::new(header);
    let (mut roots, mut version) = (None, None);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "roots" => roots = Some(read_roots(&mut reader)?),
            "version" => version = Some(reader.integer()?),
            _ => reader.skip()?,
        }
    }
    reader.finish()?;
    Ok((roots, version))
}

fn read_roots<'a>(reader: &mut Reader<'a>) -> Result<Roots<'a>, DecodeError> {
    let len = reader.array()?;
    let items = reader.rest();
    let mut first = None;
    for _ in 0..len {
        let link = reader.link()?;
        first.get_or_insert(link);
    }
    Ok(Roots { first, items, len })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cid;
    use crate::cid::Codec;

    #[test]
    fn a_header_with_one_root_is_read_as_any_is_whatever_byte_is_changed() {
        let root = Cid::of(Codec::DagCbor, b"\xa0");
        let link = [b"\xd8\x2a\x58\x25\x00".as_slice(), root.as_bytes()].concat();
        let header = [b"\xa2\x65roots\x81", &link[..], b"\x67version\x01"].concat();
        assert_eq!(usual_header(&header).and_then(|roots| roots.first()), Some(root.as_cid_ref()));
        for at in 0..header.len() {
            assert!(usual_header(&header[..at]).is_none());
            for byte in 0..=255 {
                let mut changed = header.clone();
                changed[at] = byte;
                let Some(usual) = usual_header(&changed) else { continue };
                let (any, version) = header_fields(&changed).unwrap();
                let any = any.unwrap();
                assert_eq!((usual.first(), usual.len()), (any.first(), any.len()));
                assert!(usual.iter().eq(any.iter()) && version == Some(1), "{byte:02x} at {at}");
            }
        }
        assert!(usual_header(&[&header[..], b"\x00"].concat()).is_none());
    }
}
