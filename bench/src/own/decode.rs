//! How do we decode frames when measured? Through the same calls as anyone: a [`Decoder`], kept or
//! made anew, with what the variant asks for in its options.

use std::hint::black_box;

use wireproof::atproto::corpus;
use wireproof::atproto::event::{Decoder, Event, FrameError, Options, Values};
use wireproof::codec::cbor;
use wireproof::kernels::sha256::{self, Backend, Digest};

use super::Work;
use crate::corpora::frames::Tally;
use crate::counts::Counts;
use crate::protocol::Loaded;

/// The variants by name, each with the checks that its measured path makes.
pub(super) fn variants() -> impl Iterator<Item = (String, &'static [&'static str])> {
    let fixed = [
        ("verified/arena-reuse", VERIFIED),
        ("verified/alloc-per-frame", VERIFIED),
        ("unverified/arena-reuse", UNVERIFIED),
        ("unverified/alloc-per-frame", UNVERIFIED),
        ("validate", UNVERIFIED),
        ("hash-only", &[]),
    ];
    let forced = Backend::available().map(|backend| (forced_name(backend), VERIFIED));
    fixed.into_iter().map(|(name, checks)| (name.to_owned(), checks)).chain(forced)
}

fn forced_name(backend: Backend) -> String {
    format!("verified/{}", backend.name())
}

/// Makes ready for `variant`; `None` if there is no such one.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, String> {
    let mut frames = Vec::new();
    for file in files {
        frames.extend(corpus::read(file).map_err(|error| error.to_string())?);
    }
    let verified = Options::default();
    let unverified = Options { trust_hashes: true, ..verified };
    Ok(Some(match variant {
        "verified/arena-reuse" => Box::new(Kept::new(frames, verified)),
        "verified/alloc-per-frame" => Box::new(Fresh { frames, options: verified }),
        "unverified/arena-reuse" => Box::new(Kept::new(frames, unverified)),
        "unverified/alloc-per-frame" => Box::new(Fresh { frames, options: unverified }),
        "validate" => {
            Box::new(Kept::new(frames, Options { values: Values::ValidateOnly, ..unverified }))
        }
        "hash-only" => Box::new(HashOnly::new(&frames)),
        _ => match Backend::available().find(|backend| forced_name(*backend) == variant) {
            None => return Ok(None),
            backend => Box::new(Kept::new(frames, Options { hash_backend: backend, ..verified })),
        },
    }))
}

/// One decoder over all frames, which are handed over in batches.
struct Kept<'f> {
    frames: Vec<&'f [u8]>,
    decoder: Decoder,
}

impl<'f> Kept<'f> {
    fn new(frames: Vec<&'f [u8]>, options: Options) -> Self {
        Self { frames, decoder: Decoder::new(options) }
    }
}

impl Work for Kept<'_> {
    fn loaded(&self) -> Loaded {
        loaded(&self.frames)
    }

    fn prove(&mut self) -> Counts {
        let mut tally = Tally::default();
        for batch in self.frames.chunks(BATCH) {
            for result in self.decoder.decode_batch(batch) {
                note(&mut tally, *result);
            }
        }
        tally.into()
    }

    fn pass(&mut self) {
        for batch in self.frames.chunks(BATCH) {
            black_box(self.decoder.decode_batch(batch));
        }
    }
}

/// A new decoder, with no memory yet, for every frame.
struct Fresh<'f> {
    frames: Vec<&'f [u8]>,
    options: Options,
}

impl Work for Fresh<'_> {
    fn loaded(&self) -> Loaded {
        loaded(&self.frames)
    }

    fn prove(&mut self) -> Counts {
        let mut tally = Tally::default();
        for frame in &self.frames {
            note(&mut tally, Decoder::new(self.options).decode(frame));
        }
        tally.into()
    }

    fn pass(&mut self) {
        for frame in &self.frames {
            let mut decoder = Decoder::new(self.options);
            let _ = black_box(decoder.decode(frame));
        }
    }
}

/// The floor: every block hashed in the batches of [`Kept`], and nothing else done.
struct HashOnly<'f> {
    loaded: Loaded,
    /// The blocks of each batch of frames.
    batches: Vec<Vec<&'f [u8]>>,
    errors: u64,
    // As long as the longest batch.
    digests: Vec<Digest>,
}

impl<'f> HashOnly<'f> {
    fn new(frames: &[&'f [u8]]) -> Self {
        let mut errors = 0;
        let batches: Vec<_> =
            frames.chunks(BATCH).map(|batch| split_blocks(batch, &mut errors)).collect();
        let longest = batches.iter().map(Vec::len).max().unwrap_or(0);
        Self { loaded: loaded(frames), batches, errors, digests: vec![[0; 32]; longest] }
    }
}

impl Work for HashOnly<'_> {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Counts {
        self.pass();
        let blocks = self.batches.iter().map(|batch| batch.len() as u64).sum();
        let counts = [("frames", self.loaded.units), ("errors", self.errors), ("blocks", blocks)];
        counts.into_iter().collect()
    }

    fn pass(&mut self) {
        for batch in &self.batches {
            let digests = &mut self.digests[..batch.len()];
            sha256::digest_many_into(batch, digests);
            black_box(digests);
        }
    }
}

/// The blocks of the frames that decode. The frame outlives the decoder, and blocks borrow from it.
fn split_blocks<'f>(frames: &[&'f [u8]], errors: &mut u64) -> Vec<&'f [u8]> {
    let mut decoder = Decoder::new(Options { values: Values::ValidateOnly, ..Options::default() });
    let mut blocks = Vec::new();
    for frame in frames {
        match decoder.decode(frame) {
            Ok(event) => {
                blocks.extend(event.blocks().iter().map(|block| within(frame, block.data)))
            }
            Err(_) => *errors += 1,
        }
    }
    blocks
}

/// `part`, which was cut from `whole`, with the lifetime of `whole`.
fn within<'w>(whole: &'w [u8], part: &[u8]) -> &'w [u8] {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    &whole[start..start + part.len()]
}

/// Counts what a frame decoded to: its values where they were built, else its blocks' bytes.
fn note(tally: &mut Tally, result: Result<Event<'_>, FrameError>) {
    tally.frame(result, |block, counts| match &block.value {
        Some(value) => counts.add(value),
        None => cbor::count(block.data, counts).expect("the decoder validated this block"),
    });
}

fn loaded(frames: &[&[u8]]) -> Loaded {
    let bytes = frames.iter().map(|frame| frame.len() as u64).sum();
    Loaded { units: frames.len() as u64, bytes }
}

/// Frames handed over together, as a consumer that reads from a socket's buffer would have them.
const BATCH: usize = 32;

const VERIFIED: &[&str] = &[
    "cid-sha256",
    "key-order",
    "duplicate-keys",
    "minimal-heads",
    "utf8",
    "indefinite-lengths",
    "float-canonical",
    "only-tag-42",
    "link-shape",
    "trailing-bytes",
    "depth-bound",
];
const UNVERIFIED: &[&str] = VERIFIED.split_at(1).1;
