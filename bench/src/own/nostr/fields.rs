//! Single fields of events, from their bytes.

use std::hint::black_box;

use bumpalo::Bump;
use wireproof::nostr::Limits;
use wireproof::nostr::formats::Format;

use super::encoded::Encoded;
use super::{Corpus, Work};
use crate::corpora::nostr::{Answer, Asked};
use crate::counts::Counts;
use crate::protocol::Loaded;

pub(super) struct Fields {
    format: Format,
    asked: Asked,
    loaded: Loaded,
    encoded: Encoded,
    arena: Bump,
    limits: Limits,
}

impl Fields {
    pub(super) fn new(format: Format, asked: Asked, corpus: &Corpus<'_>) -> Result<Self, String> {
        Ok(Self {
            format,
            asked,
            loaded: corpus.loaded(),
            encoded: Encoded::events(format, &corpus.events)?,
            arena: Bump::new(),
            limits: Limits::default(),
        })
    }

    fn each(&mut self, mut told: impl FnMut(Option<Answer>)) {
        let Self { format, asked, encoded, arena, limits, .. } = self;
        for bytes in encoded.iter() {
            arena.reset();
            told(match asked {
                Asked::Kind => format.kind(bytes, arena, limits).ok().map(Answer::kind),
                Asked::Pubkey => {
                    format.pubkey(bytes, arena, limits).ok().map(|it| Answer::pubkey(&it))
                }
                Asked::Both => format.kind_and_pubkey(bytes, arena, limits).ok().map(Answer::both),
                Asked::Filter => {
                    format.kind_and_pubkey(bytes, arena, limits).ok().map(Answer::filter)
                }
            });
        }
    }
}

impl Work for Fields {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Counts {
        let asked = self.asked;
        let mut answers = Vec::with_capacity(self.encoded.len());
        self.each(|answer| answers.push(answer));
        asked.counts(answers.into_iter())
    }

    fn pass(&mut self) {
        self.each(|answer| {
            black_box(answer);
        });
    }
}
