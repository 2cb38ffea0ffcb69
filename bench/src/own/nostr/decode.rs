//! Bytes into events, one after the other, over one arena.

use std::hint::black_box;

use bumpalo::Bump;
use wireproof::nostr::Limits;
use wireproof::nostr::formats::Format;

use super::clock::ChunkClock;
use super::encoded::Encoded;
use super::{Corpus, Work};
use crate::corpora::nostr::Tally;
use crate::counts::Counts;
use crate::protocol::{CHUNK, Loaded};

pub(super) struct Decode {
    format: Format,
    loaded: Loaded,
    encoded: Encoded,
    arena: Bump,
    limits: Limits,
    clock: ChunkClock,
}

impl Decode {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, String> {
        Ok(Self {
            format,
            loaded: corpus.loaded(),
            encoded: Encoded::events(format, &corpus.events)?,
            arena: Bump::new(),
            limits: Limits::default(),
            clock: ChunkClock::new(),
        })
    }
}

impl Work for Decode {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Counts {
        let mut tally = Tally::default();
        for bytes in self.encoded.iter() {
            self.arena.reset();
            match self.format.decode(bytes, &self.arena, &self.limits) {
                Ok(event) => tally.note(&event),
                Err(_) => tally.note_error(),
            }
        }
        tally.into()
    }

    fn pass(&mut self) {
        self.clock.start();
        for start in (0..self.encoded.len()).step_by(CHUNK) {
            let end = self.encoded.len().min(start + CHUNK);
            for bytes in self.encoded.range(start, end) {
                self.arena.reset();
                let event = self.format.decode(bytes, &self.arena, &self.limits);
                let _ = black_box(&event);
            }
            self.clock.lap();
        }
    }

    fn chunks_ns(&self) -> Vec<u64> {
        self.clock.chunks_ns()
    }

    /// The arena is the only memory of a decoder: it asks for more where it grows.
    fn allocations(&mut self) -> Option<u64> {
        let mut growths = 0;
        for bytes in self.encoded.iter() {
            self.arena.reset();
            let before = self.arena.allocated_bytes();
            let _ = self.format.decode(bytes, &self.arena, &self.limits);
            growths += u64::from(self.arena.allocated_bytes() != before);
        }
        Some(growths)
    }
}
