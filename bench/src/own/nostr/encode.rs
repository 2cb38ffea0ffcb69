//! Events into bytes, one after the other, over one buffer.

use std::hint::black_box;

use bumpalo::Bump;
use wireproof::nostr::Event;
use wireproof::nostr::formats::Format;

use super::clock::ChunkClock;
use super::in_order::in_order;
use super::{Corpus, Work};
use crate::counts::Counts;
use crate::protocol::{CHUNK, Loaded};

pub(super) struct Encode<'f> {
    format: Format,
    loaded: Loaded,
    events: Vec<Event<'f>>,
    out: Vec<u8>,
    clock: ChunkClock,
}

impl<'f> Encode<'f> {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>, arena: &'f Bump) -> Self {
        let events = in_order(&corpus.events, arena);
        let loaded = corpus.loaded();
        Self { format, loaded, events, out: Vec::new(), clock: ChunkClock::new() }
    }
}

impl Work for Encode<'_> {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Counts {
        let (mut bytes, mut errors) = (0, 0);
        for event in &self.events {
            self.out.clear();
            errors += u64::from(self.format.encode(event, &mut self.out).is_err());
            bytes += self.out.len() as u64;
        }
        let events = self.events.len() as u64;
        Counts::from_iter([("events", events), ("errors", errors), ("bytes", bytes)])
    }

    fn pass(&mut self) {
        self.clock.start();
        for chunk in self.events.chunks(CHUNK) {
            for event in chunk {
                self.out.clear();
                let _ = black_box(self.format.encode(event, &mut self.out));
                black_box(&self.out);
            }
            self.clock.lap();
        }
    }

    fn chunks_ns(&self) -> Vec<u64> {
        self.clock.chunks_ns()
    }

    /// The buffer is the only memory of an encoder: it asks for more where it grows.
    fn allocations(&mut self) -> Option<u64> {
        let mut growths = 0;
        for event in &self.events {
            let before = self.out.capacity();
            self.out.clear();
            let _ = self.format.encode(event, &mut self.out);
            growths += u64::from(self.out.capacity() != before);
        }
        Some(growths)
    }
}
