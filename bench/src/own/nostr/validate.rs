//! Decodes events and verifies their ids and signatures, one event at a time or in batches.

use std::hint::black_box;

use nostr::canonical::ControlChars;
use nostr::{DecodeError, Event, EventFault, IdSerialization, verify_many};
use nostr_formats::Format;
use protocol::{BoxError, CHUNK_UNITS, Loaded, Parts, Proof, Verdict, VerdictCounts, Work};

use super::read::Decoder;
use super::{ChunkClock, Corpus};

type Outcome = Result<Result<ControlChars, EventFault>, DecodeError>;

fn verdict(outcome: Outcome) -> Verdict {
    Verdict::from(&outcome.map(|verified| verified.is_ok()))
}

/// One event after the other.
pub(super) struct Single {
    decoder: Decoder,
    scratch: Vec<u8>,
}

impl Single {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, BoxError> {
        Ok(Self { decoder: Decoder::new(format, corpus)?, scratch: Vec::new() })
    }

    fn each(&mut self, mut visit: impl FnMut(Outcome)) -> ChunkClock {
        let Decoder { format, encoded, arena, limits, .. } = &mut self.decoder;
        let mut clock = ChunkClock::start();
        for start in (0..encoded.len()).step_by(CHUNK_UNITS) {
            let end = encoded.len().min(start + CHUNK_UNITS);
            for bytes in encoded.range(start, end) {
                arena.reset();
                let event = format.decode(bytes, arena, limits);
                visit(
                    event.map(|event| {
                        event.verify_in(IdSerialization::default(), &mut self.scratch)
                    }),
                );
            }
            clock.lap();
        }
        clock
    }
}

impl Work for Single {
    fn loaded(&self) -> Loaded {
        self.decoder.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = VerdictCounts::default();
        self.each(|outcome| counts.add(verdict(outcome)));
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let clock = self.each(|outcome| {
            let _ = black_box(outcome);
        });
        Ok(Parts { chunks_ns: clock.chunks_ns, ..Parts::default() })
    }
}

/// One batch after the other.
pub(super) struct Batched(Decoder);

impl Batched {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, BoxError> {
        Ok(Self(Decoder::new(format, corpus)?))
    }

    fn each(&mut self, mut visit: impl FnMut(Outcome)) {
        let Decoder { format, encoded, arena, limits, .. } = &mut self.0;
        for start in (0..encoded.len()).step_by(BATCH) {
            arena.reset();
            let end = encoded.len().min(start + BATCH);
            let decode = |bytes| format.decode(bytes, arena, limits);
            let mut events: Vec<Event<'_>> = Vec::with_capacity(BATCH);
            for bytes in encoded.range(start, end) {
                match decode(bytes) {
                    Ok(event) => events.push(event),
                    Err(error) => visit(Err(error)),
                }
            }
            verify_many(&events).into_iter().for_each(|outcome| visit(Ok(outcome)));
        }
    }
}

impl Work for Batched {
    fn loaded(&self) -> Loaded {
        self.0.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = VerdictCounts::default();
        self.each(|outcome| counts.add(verdict(outcome)));
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        self.each(|outcome| {
            let _ = black_box(outcome);
        });
        Ok(Parts::default())
    }
}

/// Events verified together.
const BATCH: usize = 512;
