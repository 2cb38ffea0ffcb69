//! Decoding frames, one or many at a time, into memory that is kept between calls: the header, the payload,
//! and the hashes of all blocks together.

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use codec::car::{CarFault, HashProof};
use codec::cbor::{KeyOrder, Reader};
use kernels::sha256::{self, Digest};

use super::error::{FrameError, FrameFault, fail};
use super::{Block, Event, Header, Options, payload};

/// Decodes frames, and keeps its memory for the next ones, up to 16 MiB: after the first few, no call allocates.
///
/// The blocks of a batch of frames are hashed together, which makes checking nearly as fast as trusting:
/// a consumer that has several frames should pass them together.
#[derive(Debug)]
pub struct Decoder {
    options: Options,
    arena: Bump,
}

impl Decoder {
    /// A decoder without memory yet.
    pub fn new(options: Options) -> Self {
        Self { options, arena: Bump::new() }
    }

    /// Decodes one frame. The event lives until the next call.
    ///
    /// # Errors
    /// If the frame breaks a rule or a limit: which, and where.
    ///
    /// # Panics
    /// If the options force a hash back end that this machine does not support.
    pub fn decode<'d>(&'d mut self, frame: &'d [u8]) -> Result<Event<'d>, FrameError> {
        self.decode_batch(&[frame])[0]
    }

    /// Decodes frames together: a malformed frame does not affect the others. The events live until the
    /// next call.
    ///
    /// # Panics
    /// If the options force a hash back end that this machine does not support.
    pub fn decode_batch<'d>(
        &'d mut self,
        frames: &[impl Into<Frame<'d>> + Copy],
    ) -> &'d [Result<Event<'d>, FrameError>] {
        self.clear();
        let arena = &self.arena;
        let options = &self.options;
        let events = frames.iter().map(|frame| decode_unhashed((*frame).into(), options, arena));
        let mut batch = ArenaVec::with_capacity_in(frames.len(), arena);
        batch.extend(events);
        if !options.trust_hashes {
            let bytes = |at: usize| frames[at].into().bytes;
            check_hashes(bytes, &mut batch, options.hash_backend, arena);
        }
        batch.into_bump_slice()
    }

    /// The memory that is kept, in bytes.
    #[cfg(test)]
    pub(super) fn retained_bytes(&self) -> usize {
        self.arena.allocated_bytes()
    }

    /// Empties the arena, and returns the memory that an unusually large batch took.
    fn clear(&mut self) {
        self.arena.reset();
        if self.arena.allocated_bytes() > MAX_RETAINED_BYTES {
            self.arena = Bump::new();
        }
    }
}

/// Maximum size of an arena that is kept for the next batch, in bytes.
pub(super) const MAX_RETAINED_BYTES: usize = 16 << 20;

fn decode_unhashed<'a>(
    frame: Frame<'a>,
    options: &Options,
    arena: &'a Bump,
) -> Result<Event<'a>, FrameError> {
    if frame.bytes.len() > options.max_frame_bytes {
        return fail(0, FrameFault::FrameLimit(options.max_frame_bytes));
    }
    let (header, reader) = frame.split()?;
    payload::read(header, reader, options, arena)
}

/// Hashes the blocks of all events together, and rejects events with a wrong one.
fn check_hashes<'a>(
    frame: impl Fn(usize) -> &'a [u8],
    batch: &mut [Result<Event<'a>, FrameError>],
    backend: Option<sha256::Backend>,
    arena: &'a Bump,
) {
    let blocks = || batch.iter().flatten().flat_map(|event| event.blocks());
    let mut messages = ArenaVec::with_capacity_in(blocks().count(), arena);
    messages.extend(blocks().map(|block| block.data));
    #[cfg(test)]
    HASHED_BLOCKS.set(HASHED_BLOCKS.get() + messages.len());
    let digests = arena.alloc_slice_fill_copy(messages.len(), [0; 32]);
    let backend = backend.unwrap_or_else(|| sha256::Backend::for_batch(messages.len()));
    backend.digest_into(&messages, digests);
    let mut digests = &*digests;
    for (at, result) in batch.iter_mut().enumerate() {
        let Ok(event) = result else { continue };
        let (own, others) = digests.split_at(event.blocks().len());
        digests = others;
        let wrong = event.blocks().iter().zip(own).find(|(block, digest)| is_wrong(block, digest));
        if let Some((block, _)) = wrong {
            *result = mismatch(frame(at), block);
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Blocks that were hashed on this thread.
    pub(super) static HASHED_BLOCKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Whether a block's CID has another SHA-256 than its data.
#[inline]
fn is_wrong(block: &Block<'_>, digest: &Digest) -> bool {
    HashProof::of(block.cid, block.data, digest).is_none()
}

#[cold]
fn mismatch<'a>(frame: &[u8], block: &Block<'_>) -> Result<Event<'a>, FrameError> {
    // The block was cut from this frame, so the distance of their starts is its offset.
    let offset = block.data.as_ptr().addr() - frame.as_ptr().addr();
    fail(offset, FrameFault::Car(CarFault::HashMismatch))
}

/// A frame for the decoder, with its header if that was read before.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    header: Option<ParsedHeader>,
}

/// The result of reading a header, without a borrow of the frame: a router reads it, and the decoder
/// continues from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedHeader {
    op: i64,
    /// Offset and length of the type.
    kind: Option<(usize, usize)>,
    payload_offset: usize,
}

impl ParsedHeader {
    /// Reads the header of a frame.
    ///
    /// # Errors
    /// As [`peek`].
    pub fn read(frame: &[u8]) -> Result<Self, FrameError> {
        let (Header { op, kind }, payload_offset) = peek(frame)?;
        // The type was cut from this frame, so the distance of their starts is its offset.
        let place = |kind: &str| (kind.as_ptr().addr() - frame.as_ptr().addr(), kind.len());
        Ok(Self { op, kind: kind.map(place), payload_offset })
    }

    /// The header, where `frame` is the frame that it was read from.
    pub fn header<'a>(&self, frame: &'a [u8]) -> Header<'a> {
        let text = |(at, len): (usize, usize)| str::from_utf8(frame.get(at..at + len)?).ok();
        Header { op: self.op, kind: self.kind.and_then(text) }
    }

    /// The offset of the payload in the frame.
    pub fn payload_offset(&self) -> usize {
        self.payload_offset
    }
}

impl<'a> Frame<'a> {
    /// A frame whose header was read from the same bytes; `None` has the decoder read it.
    pub fn new(bytes: &'a [u8], header: Option<ParsedHeader>) -> Self {
        Self { bytes, header }
    }

    /// The header, and a reader of the payload.
    fn split(self) -> Result<(Header<'a>, Reader<'a>), FrameError> {
        if let Some(parsed) = self.header {
            let reader = Reader::starting_at(self.bytes, parsed.payload_offset);
            return Ok((parsed.header(self.bytes), reader));
        }
        let mut reader = Reader::new(self.bytes);
        Ok((read_header(&mut reader)?, reader))
    }
}

impl<'a> From<&'a Vec<u8>> for Frame<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self { bytes, header: None }
    }
}

impl<'a> From<&'a [u8]> for Frame<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self { bytes, header: None }
    }
}

/// Reads the header of a frame; returns it with the offset of the payload, which is not read.
///
/// # Errors
/// If the frame does not begin with a canonical header.
///
/// ```
/// use wireproof::atproto::event::peek;
/// let (header, payload_at) = peek(b"\xa2\x61t\x67#commit\x62op\x01\xa0")?;
/// assert_eq!((header.op, header.kind, payload_at), (1, Some("#commit"), 15));
/// # Ok::<(), wireproof::atproto::event::FrameError>(())
/// ```
pub fn peek(frame: &[u8]) -> Result<(Header<'_>, usize), FrameError> {
    let mut reader = Reader::new(frame);
    let header = read_header(&mut reader)?;
    Ok((header, reader.offset()))
}

fn read_header<'a>(reader: &mut Reader<'a>) -> Result<Header<'a>, FrameError> {
    let (mut op, mut kind) = (None, None);
    let mut keys = KeyOrder::new();
    for _ in 0..reader.map()? {
        match reader.key(&mut keys)? {
            "t" => kind = Some(reader.text()?),
            "op" => op = Some(reader.integer()?),
            _ => reader.skip()?,
        }
    }
    match op {
        None => fail(0, FrameFault::Missing("op")),
        Some(Header::MESSAGE) if kind.is_none() => fail(0, FrameFault::Missing("t")),
        Some(op) => Ok(Header { op, kind }),
    }
}
