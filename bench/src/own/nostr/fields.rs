//! Single fields of events, from their bytes.

use std::hint::black_box;

use bumpalo::Bump;
use wireproof::nostr::formats::{self as nostr, Format};
use wireproof::nostr::{DecodeError, Limits};

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
            let answer = format.fields(bytes, arena, limits).and_then(|it| answer(*asked, &it));
            told(answer.ok());
        }
    }
}

/// Reads what is asked and no more: the author of an event of another kind makes no match.
#[inline]
fn answer(asked: Asked, fields: &nostr::Fields<'_>) -> Result<Answer, DecodeError> {
    Ok(match asked {
        Asked::Kind => Answer::kind(fields.kind()?),
        Asked::Pubkey => Answer::pubkey(&fields.pubkey()?),
        Asked::Both => Answer::both((fields.kind()?, fields.pubkey()?)),
        Asked::Filter if fields.kind()? != 1 => Answer::default(),
        Asked::Filter => Answer::filter((1, fields.pubkey()?)),
    })
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
