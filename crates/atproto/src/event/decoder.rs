//! Decoding frames, one or many at a time, into memory that is kept between calls: the header, the payload,
//! and the hashes of all blocks together.

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use codec::car::CarFault;
use codec::cbor::{KeyOrder, Reader};
use kernels::sha256::{self, Digest};

use super::error::{FrameError, FrameFault, fail};
use super::{Block, Event, Header, Options, payload};

/// Decodes frames, and keeps its memory for the next ones: after the first few, no call allocates.
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
        frames: &[&'d [u8]],
    ) -> &'d [Result<Event<'d>, FrameError>] {
        self.arena.reset();
        let arena = &self.arena;
        let options = &self.options;
        let events = frames.iter().map(|frame| decode_unhashed(frame, options, arena));
        let mut batch = ArenaVec::with_capacity_in(frames.len(), arena);
        batch.extend(events);
        if !options.trust_hashes {
            check_hashes(frames, &mut batch, options.hash_backend, arena);
        }
        batch.into_bump_slice()
    }
}

fn decode_unhashed<'a>(
    frame: &'a [u8],
    options: &Options,
    arena: &'a Bump,
) -> Result<Event<'a>, FrameError> {
    if frame.len() > options.max_frame_bytes {
        return fail(0, FrameFault::FrameLimit(options.max_frame_bytes));
    }
    let mut reader = Reader::new(frame);
    let header = read_header(&mut reader)?;
    payload::read(header, reader, options, arena)
}

/// Hashes the blocks of all events together, and rejects each event with a wrong one.
fn check_hashes<'a>(
    frames: &[&[u8]],
    batch: &mut [Result<Event<'a>, FrameError>],
    backend: Option<sha256::Backend>,
    arena: &'a Bump,
) {
    let blocks = || batch.iter().flatten().flat_map(|event| event.blocks());
    let mut messages = ArenaVec::with_capacity_in(blocks().count(), arena);
    messages.extend(blocks().map(|block| block.data));
    let digests = arena.alloc_slice_fill_copy(messages.len(), [0; 32]);
    let backend = backend.unwrap_or_else(|| sha256::Backend::for_batch(messages.len()));
    backend.digest_into(&messages, digests);
    let mut digests = &*digests;
    for (result, frame) in batch.iter_mut().zip(frames) {
        let Ok(event) = result else { continue };
        let (own, others) = digests.split_at(event.blocks().len());
        digests = others;
        let wrong = event.blocks().iter().zip(own).find(|(block, digest)| is_wrong(block, digest));
        if let Some((block, _)) = wrong {
            *result = mismatch(frame, block);
        }
    }
}

/// Whether a block's CID has another SHA-256 than its data.
#[inline]
fn is_wrong(block: &Block<'_>, digest: &Digest) -> bool {
    block.cid.sha256().is_some_and(|expected| expected != digest)
}

#[cold]
fn mismatch<'a>(frame: &[u8], block: &Block<'_>) -> Result<Event<'a>, FrameError> {
    // The block was cut from this frame, so the distance of their starts is its offset.
    let offset = block.data.as_ptr().addr() - frame.as_ptr().addr();
    fail(offset, FrameFault::Car(CarFault::HashMismatch))
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
