//! Bytes into events whose id and signature hold, one after the other or many together.

use std::hint::black_box;

use bumpalo::Bump;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{DecodeError, Event, EventFault, Limits, verify_many};

use super::clock::ChunkClock;
use super::encoded::Encoded;
use super::{Corpus, Work};
use crate::counts::Counts;
use crate::protocol::{CHUNK, Loaded};

/// What came of each event.
#[derive(Default)]
struct Verdicts {
    events: u64,
    valid: u64,
    invalid: u64,
    errors: u64,
}

impl Verdicts {
    fn note(&mut self, verdict: Result<Result<(), EventFault>, DecodeError>) {
        self.events += 1;
        *match verdict {
            Ok(Ok(())) => &mut self.valid,
            Ok(Err(_)) => &mut self.invalid,
            Err(_) => &mut self.errors,
        } += 1;
    }
}

impl From<Verdicts> for Counts {
    fn from(verdicts: Verdicts) -> Self {
        Self::from_iter([
            ("events", verdicts.events),
            ("valid", verdicts.valid),
            ("invalid", verdicts.invalid),
            ("errors", verdicts.errors),
        ])
    }
}

/// One event after the other.
pub(super) struct Alone {
    format: Format,
    loaded: Loaded,
    encoded: Encoded,
    arena: Bump,
    scratch: Vec<u8>,
    limits: Limits,
    clock: ChunkClock,
}

impl Alone {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, String> {
        Ok(Self {
            format,
            loaded: corpus.loaded(),
            encoded: Encoded::events(format, &corpus.events)?,
            arena: Bump::new(),
            scratch: Vec::new(),
            limits: Limits::default(),
            clock: ChunkClock::new(),
        })
    }

    fn each(&mut self, mut told: impl FnMut(Result<Result<(), EventFault>, DecodeError>)) {
        self.clock.start();
        for start in (0..self.encoded.len()).step_by(CHUNK) {
            let end = self.encoded.len().min(start + CHUNK);
            for bytes in self.encoded.range(start, end) {
                self.arena.reset();
                let event = self.format.decode(bytes, &self.arena, &self.limits);
                told(event.map(|event| event.verify_in(&mut self.scratch)));
            }
            self.clock.lap();
        }
    }
}

impl Work for Alone {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Counts {
        let mut verdicts = Verdicts::default();
        self.each(|verdict| verdicts.note(verdict));
        verdicts.into()
    }

    fn pass(&mut self) {
        self.each(|verdict| {
            let _ = black_box(verdict);
        });
    }

    fn chunks_ns(&self) -> Vec<u64> {
        self.clock.chunks_ns()
    }
}

/// As many as make a group, and then the next.
pub(super) struct Many {
    format: Format,
    loaded: Loaded,
    encoded: Encoded,
    arena: Bump,
    limits: Limits,
}

impl Many {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, String> {
        Ok(Self {
            format,
            loaded: corpus.loaded(),
            encoded: Encoded::events(format, &corpus.events)?,
            arena: Bump::new(),
            limits: Limits::default(),
        })
    }

    fn each(&mut self, mut told: impl FnMut(Result<Result<(), EventFault>, DecodeError>)) {
        for start in (0..self.encoded.len()).step_by(GROUP) {
            self.arena.reset();
            let end = self.encoded.len().min(start + GROUP);
            let decode = |bytes| self.format.decode(bytes, &self.arena, &self.limits);
            let mut events: Vec<Event<'_>> = Vec::with_capacity(GROUP);
            for bytes in self.encoded.range(start, end) {
                match decode(bytes) {
                    Ok(event) => events.push(event),
                    Err(error) => told(Err(error)),
                }
            }
            verify_many(&events).into_iter().for_each(|verdict| told(Ok(verdict)));
        }
    }
}

impl Work for Many {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Counts {
        let mut verdicts = Verdicts::default();
        self.each(|verdict| verdicts.note(verdict));
        verdicts.into()
    }

    fn pass(&mut self) {
        self.each(|verdict| {
            let _ = black_box(verdict);
        });
    }
}

/// Events that are verified together.
const GROUP: usize = 512;
