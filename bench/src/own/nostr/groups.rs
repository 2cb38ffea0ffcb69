//! Bytes into events, group by group, each group's time by itself.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use bumpalo::Bump;
use wireproof::nostr::Limits;
use wireproof::nostr::formats::Format;

use super::encoded::Encoded;
use super::{Corpus, Work};
use crate::corpora::nostr::Tally;
use crate::counts::Counts;
use crate::protocol::Loaded;

pub(super) struct Groups {
    format: Format,
    loaded: Loaded,
    encoded: Encoded,
    // Each group's name, and where it ends.
    groups: Vec<(String, usize)>,
    arena: Bump,
    limits: Limits,
    stages_ns: BTreeMap<String, u64>,
}

impl Groups {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, String> {
        let mut end = 0;
        let group = |group: &crate::corpora::nostr::Group<'_>| {
            end += group.lines.len();
            (group.name.to_owned(), end)
        };
        Ok(Self {
            format,
            loaded: corpus.loaded(),
            encoded: Encoded::events(format, &corpus.events)?,
            groups: corpus.groups.iter().map(group).collect(),
            arena: Bump::new(),
            limits: Limits::default(),
            stages_ns: BTreeMap::new(),
        })
    }
}

impl Work for Groups {
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
        let mut start = 0;
        for (name, end) in &self.groups {
            let since = Instant::now();
            for bytes in self.encoded.range(start, *end) {
                self.arena.reset();
                let event = self.format.decode(bytes, &self.arena, &self.limits);
                let _ = black_box(&event);
            }
            self.stages_ns.insert(name.clone(), since.elapsed().as_nanos() as u64);
            start = *end;
        }
    }

    fn stages_ns(&self) -> BTreeMap<String, u64> {
        self.stages_ns.clone()
    }
}
