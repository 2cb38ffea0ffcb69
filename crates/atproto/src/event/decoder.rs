//! Decoding frames, one or many at a time, into memory that is kept between calls.

use bumpalo::Bump;
use bumpalo::collections::Vec as ArenaVec;
use codec::CidRef;
use codec::car::{self, CarFault, HashProof};
use codec::cbor::Reader;
use kernels::sha256::{self, Digest};

use super::error::{FrameError, FrameFault, fail};
use super::{Block, Event, header, payload};

/// Limits and trust for decoding frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Leaves out the hashing: a block is then whatever its CID claims, and only frames that were
    /// checked before may be read so.
    pub trust_hashes: bool,
    /// The SHA-256 back end, for measuring them; `None` takes the fastest for each batch. Decoding
    /// panics if this machine does not have the one that is forced.
    pub hash_backend: Option<sha256::Backend>,
    /// Whether blocks become values.
    pub values: Values,
    /// The longest frame, in bytes.
    pub max_frame_bytes: usize,
    /// The longest CAR slice, in bytes.
    pub max_blocks_bytes: usize,
    /// The most operations in a commit.
    pub max_ops: usize,
    /// The longest record, in bytes.
    pub max_record_bytes: usize,
}

/// Whether blocks become values. They are checked to be canonical either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Every DAG-CBOR block gets its [`Block::value`].
    Build,
    /// No block does.
    ValidateOnly,
}

impl Default for Options {
    /// Hashes checked, values built; frame 5,000,000 bytes, CAR slice 2,000,000, 200 operations,
    /// record 1,000,000: the bounds of the sync specification.
    fn default() -> Self {
        Self {
            trust_hashes: false,
            hash_backend: None,
            values: Values::Build,
            max_frame_bytes: 5_000_000,
            max_blocks_bytes: 2_000_000,
            max_ops: 200,
            max_record_bytes: 1_000_000,
        }
    }
}

impl Options {
    pub(super) fn car(&self) -> car::Options {
        car::Options { max_total_bytes: self.max_blocks_bytes as u64, ..car::Options::default() }
    }

    /// What will be known of a block under `cid` when the decoder hands it over.
    #[inline]
    pub(super) fn proof_of(&self, cid: CidRef<'_>) -> HashProof {
        match cid.sha256() {
            _ if self.trust_hashes => HashProof::Trusted,
            Some(_) => HashProof::Checked,
            None => HashProof::UnknownHash,
        }
    }
}

/// Decodes frames, and keeps its memory for the next ones: after the first few, no call allocates.
///
/// Frames are hashed a batch at a time, which is what makes checking nearly as fast as trusting: a
/// consumer that has several frames should hand them over together.
#[derive(Debug)]
pub struct Decoder {
    options: Options,
    arena: Bump,
}

impl Decoder {
    /// A decoder with no memory yet.
    pub fn new(options: Options) -> Self {
        Self { options, arena: Bump::new() }
    }

    /// Decodes one frame. The event lives until the next call.
    ///
    /// # Errors
    /// If the frame breaks a rule or a bound: which, and where.
    ///
    /// # Panics
    /// If the options force a hash back end that this machine does not have.
    pub fn decode<'d>(&'d mut self, frame: &'d [u8]) -> Result<Event<'d>, FrameError> {
        self.decode_batch(&[frame])[0]
    }

    /// Decodes frames together, each on its own: one that is refused does not touch the others. The
    /// events live until the next call.
    ///
    /// # Panics
    /// If the options force a hash back end that this machine does not have.
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
    let header = header::read(&mut reader)?;
    payload::read(header, reader, options, arena)
}

/// Hashes the blocks of all events together, and refuses each event that has a wrong one.
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

/// Whether a block's CID names another SHA-256 than its data has.
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
