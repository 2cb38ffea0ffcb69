//! Decodes frames as any caller does: a reused or a new [`Decoder`], with the options of the variant.

use std::hint::black_box;

use atproto::corpus;
use atproto::event::{Block, Decoder, Event, FrameError, Options, Values};
use codec::cbor;
use kernels::sha256::{self, Backend, Digest};
use protocol::{BoxError, Counts, Loaded, Parts, Proof, Work, checks};
use simnet::firehose::FrameCounts;

use super::Variants;
use results::FORCED;

pub(super) fn variants() -> Variants {
    let [verified, unverified] = [&checks::DECODE[..], &checks::DECODE[1..]].map(checks::names);
    let fixed = [
        ("verified/batch", verified.clone()),
        ("verified/arena-reuse", verified.clone()),
        ("verified/alloc-per-frame", verified.clone()),
        ("unverified/batch", unverified.clone()),
        ("unverified/arena-reuse", unverified.clone()),
        ("unverified/alloc-per-frame", unverified.clone()),
        ("validate", unverified.clone()),
        ("validate/batch", unverified),
        ("hash-only/batch", Vec::new()),
    ];
    let fixed = fixed.into_iter().map(|(name, checks)| (name.to_owned(), checks));
    let forced = Backend::available().map(|backend| (forced_name(backend), verified.clone()));
    fixed.chain(forced).collect()
}

fn forced_name(backend: Backend) -> String {
    format!("verified/batch/{FORCED}{}", backend.name())
}

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let mut frames = Vec::new();
    for file in files {
        frames.extend(corpus::read(file)?);
    }
    let verified = Options::default();
    let mut unverified = verified;
    unverified.trust_hashes = true;
    let mut validating = unverified;
    validating.values = Values::ValidateOnly;
    Ok(Some(match variant {
        "verified/batch" => Box::new(Batched::new(frames, verified)),
        "verified/arena-reuse" => Box::new(Reused::new(frames, verified)),
        "verified/alloc-per-frame" => Box::new(Fresh { frames, options: verified }),
        "unverified/batch" => Box::new(Batched::new(frames, unverified)),
        "unverified/arena-reuse" => Box::new(Reused::new(frames, unverified)),
        "unverified/alloc-per-frame" => Box::new(Fresh { frames, options: unverified }),
        "validate" => Box::new(Reused::new(frames, validating)),
        "validate/batch" => Box::new(Batched::new(frames, validating)),
        "hash-only/batch" => Box::new(HashOnly::new(&frames)),
        _ => match Backend::available().find(|backend| forced_name(*backend) == variant) {
            None => return Ok(None),
            backend => {
                let mut forced = verified;
                forced.hash_backend = backend;
                Box::new(Batched::new(frames, forced))
            }
        },
    }))
}

/// A decoder that checks hashes and builds no values.
fn validating_decoder() -> Decoder {
    let mut options = Options::default();
    options.values = Values::ValidateOnly;
    Decoder::new(options)
}

/// The reference counts of a file: from the strict decoder with every hash checked.
pub(crate) fn counts(frames: &[&[u8]]) -> Counts {
    let mut decoder = validating_decoder();
    let mut counts = FrameCounts::default();
    frames.iter().for_each(|frame| add(&mut counts, decoder.decode(frame)));
    Counts::from_fields(&counts)
}

/// Counts the result of a frame: its values where they were built, else the bytes of its blocks.
fn add(counts: &mut FrameCounts, result: Result<Event<'_>, FrameError>) {
    counts.frames += 1;
    let Some(event) = result.ok().filter(|event| event.blocks().iter().all(is_decoded)) else {
        counts.errors += 1;
        return;
    };
    for block in event.blocks() {
        let mut items = cbor::ItemCounts::default();
        match &block.value {
            _ if !block.is_canonical => {}
            Some(value) => items.add(value),
            None => cbor::count(block.data, &mut items).expect("the decoder validated this block"),
        }
        counts.add_block(&items);
    }
}

/// Whether a block is decoded, or need not be by its codec. The decoder keeps a malformed record and marks it, so that one
/// record does not cost an event; the task counts such a frame as an error.
fn is_decoded(block: &Block<'_>) -> bool {
    block.is_canonical || !block.cid.is_dag_cbor()
}

/// One decoder for all frames, which keeps its memory; it decodes one frame at a time.
struct Reused<'f> {
    frames: Vec<&'f [u8]>,
    decoder: Decoder,
}

impl<'f> Reused<'f> {
    fn new(frames: Vec<&'f [u8]>, options: Options) -> Self {
        Self { frames, decoder: Decoder::new(options) }
    }
}

impl Work for Reused<'_> {
    fn loaded(&self) -> Loaded {
        Loaded::of(self.frames.iter().map(|frame| frame.len()))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = FrameCounts::default();
        for frame in &self.frames {
            add(&mut counts, self.decoder.decode(frame));
        }
        Ok(Counts::from_fields(&counts).into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        for frame in &self.frames {
            let _ = black_box(self.decoder.decode(frame));
        }
        Ok(Parts::default())
    }
}

/// One decoder for all frames, which are decoded in batches.
struct Batched<'f> {
    frames: Vec<&'f [u8]>,
    decoder: Decoder,
}

impl<'f> Batched<'f> {
    fn new(frames: Vec<&'f [u8]>, options: Options) -> Self {
        Self { frames, decoder: Decoder::new(options) }
    }
}

impl Work for Batched<'_> {
    fn loaded(&self) -> Loaded {
        Loaded::of(self.frames.iter().map(|frame| frame.len()))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = FrameCounts::default();
        for batch in self.frames.chunks(BATCH) {
            self.decoder.decode_batch(batch).iter().for_each(|result| add(&mut counts, *result));
        }
        Ok(Counts::from_fields(&counts).into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        for batch in self.frames.chunks(BATCH) {
            black_box(self.decoder.decode_batch(batch));
        }
        Ok(Parts::default())
    }
}

/// A new decoder without memory for every frame.
struct Fresh<'f> {
    frames: Vec<&'f [u8]>,
    options: Options,
}

impl Work for Fresh<'_> {
    fn loaded(&self) -> Loaded {
        Loaded::of(self.frames.iter().map(|frame| frame.len()))
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = FrameCounts::default();
        for frame in &self.frames {
            add(&mut counts, Decoder::new(self.options).decode(frame));
        }
        Ok(Counts::from_fields(&counts).into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        for frame in &self.frames {
            let mut decoder = Decoder::new(self.options);
            let _ = black_box(decoder.decode(frame));
        }
        Ok(Parts::default())
    }
}

/// The lower bound: hashes every block in the batches of [`Batched`] and does nothing else.
struct HashOnly<'f> {
    loaded: Loaded,
    /// The blocks by batch of frames.
    batches: Vec<Vec<&'f [u8]>>,
    errors: u64,
    /// As long as the longest batch.
    digests: Vec<Digest>,
}

impl<'f> HashOnly<'f> {
    fn new(frames: &[&'f [u8]]) -> Self {
        let mut errors = 0;
        let batches: Vec<_> =
            frames.chunks(BATCH).map(|batch| split_blocks(batch, &mut errors)).collect();
        let longest = batches.iter().map(Vec::len).max().unwrap_or(0);
        let loaded = Loaded::of(frames.iter().map(|frame| frame.len()));
        Self { loaded, batches, errors, digests: vec![[0; 32]; longest] }
    }
}

impl Work for HashOnly<'_> {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        self.pass()?;
        let blocks = self.batches.iter().map(|batch| batch.len() as u64).sum();
        let counts = [("frames", self.loaded.units), ("errors", self.errors), ("blocks", blocks)];
        Ok(Counts::from_iter(counts).into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        for batch in &self.batches {
            let digests = &mut self.digests[..batch.len()];
            sha256::digest_many_into(batch, digests);
            black_box(digests);
        }
        Ok(Parts::default())
    }
}

/// The blocks of the frames that decode. They borrow from the frames, which outlive the decoder.
fn split_blocks<'f>(frames: &[&'f [u8]], errors: &mut u64) -> Vec<&'f [u8]> {
    let mut options = Options::default();
    (options.values, options.trust_hashes) = (Values::ValidateOnly, true);
    let mut decoder = Decoder::new(options);
    let mut blocks = Vec::new();
    for frame in frames {
        match decoder.decode(frame) {
            Ok(event) => {
                blocks.extend(event.blocks().iter().map(|block| subslice(frame, block.data)))
            }
            Err(_) => *errors += 1,
        }
    }
    blocks
}

/// `part`, a subslice of `whole`, with the lifetime of `whole`.
fn subslice<'w>(whole: &'w [u8], part: &[u8]) -> &'w [u8] {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    &whole[start..start + part.len()]
}

/// Frames per call, as a consumer reads them from a socket's buffer.
const BATCH: usize = 32;
