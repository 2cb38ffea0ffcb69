//! All events in batches of one length, and again in longer ones.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use bumpalo::Bump;
use wireproof::nostr::Limits;
use wireproof::nostr::formats::Format;

use super::encoded::Encoded;
use super::{Corpus, Work};
use crate::corpora::nostr::{BATCHES, Tally};
use crate::counts::Counts;
use crate::protocol::Loaded;

pub(super) struct Batches {
    format: Format,
    loaded: Loaded,
    encoded: Vec<(usize, Encoded)>,
    arena: Bump,
    limits: Limits,
    stages_ns: BTreeMap<String, u64>,
}

impl Batches {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, String> {
        let of_len = |len| Ok((len, Encoded::batches(format, &corpus.events, len)?));
        Ok(Self {
            format,
            loaded: corpus.loaded(),
            encoded: BATCHES.map(of_len).into_iter().collect::<Result<_, String>>()?,
            arena: Bump::new(),
            limits: Limits::default(),
            stages_ns: BTreeMap::new(),
        })
    }
}

impl Work for Batches {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Counts {
        let (_, longest) = self.encoded.last().expect("one for each length");
        let mut tally = Tally::default();
        for bytes in longest.iter() {
            self.arena.reset();
            match self.format.decode_batch(bytes, &self.arena, &self.limits) {
                Ok(events) => events.iter().for_each(|event| tally.note(event)),
                Err(_) => tally.note_error(),
            }
        }
        tally.into()
    }

    fn pass(&mut self) {
        for (len, encoded) in &self.encoded {
            let since = Instant::now();
            for bytes in encoded.iter() {
                self.arena.reset();
                let events = self.format.decode_batch(bytes, &self.arena, &self.limits);
                let _ = black_box(&events);
            }
            self.stages_ns.insert(len.to_string(), since.elapsed().as_nanos() as u64);
        }
    }

    fn stages_ns(&self) -> BTreeMap<String, u64> {
        self.stages_ns.clone()
    }
}
