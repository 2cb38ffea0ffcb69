//! Decodes encoded events over one arena: one after the other, group by group, in batches, and single fields.

use std::hint::black_box;

use bumpalo::Bump;
use nostr::{DecodeError, Limits};
use nostr_formats::Format;
use protocol::{
    BoxError, CHUNK_UNITS, EventCounts, EventField, FieldSums, FieldValue, Loaded, Parts, Proof,
    StageClock, Work,
};

use super::{ChunkClock, Corpus, Encoded, add};

/// Encoded events and their decoder.
pub(super) struct Decoder {
    pub(super) format: Format,
    pub(super) loaded: Loaded,
    pub(super) encoded: Encoded,
    pub(super) arena: Bump,
    pub(super) limits: Limits,
}

impl Decoder {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, BoxError> {
        Ok(Self {
            format,
            loaded: corpus.loaded(),
            encoded: Encoded::events(format, &corpus.events)?,
            arena: Bump::new(),
            limits: Limits::default(),
        })
    }
}

/// Decodes all events, timed chunk by chunk or group by group.
pub(super) struct Decode {
    decoder: Decoder,
    /// The names and the ends of the groups; `None` to time chunks.
    groups: Option<Vec<(String, usize)>>,
}

impl Decode {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, BoxError> {
        Ok(Self { decoder: Decoder::new(format, corpus)?, groups: None })
    }

    pub(super) fn grouped(format: Format, corpus: &Corpus<'_>) -> Result<Self, BoxError> {
        let mut end = 0;
        let group = |group: &super::Group<'_>| {
            end += group.lines.len();
            (group.name.to_owned(), end)
        };
        let groups = corpus.groups.iter().map(group).collect();
        Ok(Self { decoder: Decoder::new(format, corpus)?, groups: Some(groups) })
    }

    fn decode(&mut self, start: usize, end: usize) {
        let Decoder { format, encoded, arena, limits, .. } = &mut self.decoder;
        for bytes in encoded.range(start, end) {
            arena.reset();
            let event = format.decode(bytes, arena, limits);
            let _ = black_box(&event);
        }
    }

    /// Allocations of a warm pass: the arena is the decoder's only memory and allocates when it grows.
    fn allocations(&mut self) -> u64 {
        let Decoder { format, encoded, arena, limits, .. } = &mut self.decoder;
        let mut growths = 0;
        for bytes in encoded.iter() {
            arena.reset();
            let before = arena.allocated_bytes();
            let _ = format.decode(bytes, arena, limits);
            growths += u64::from(arena.allocated_bytes() != before);
        }
        growths
    }
}

impl Work for Decode {
    fn loaded(&self) -> Loaded {
        self.decoder.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let Decoder { format, encoded, arena, limits, .. } = &mut self.decoder;
        let mut counts = EventCounts::default();
        for bytes in encoded.iter() {
            arena.reset();
            match format.decode(bytes, arena, limits) {
                Ok(event) => add(&mut counts, &event),
                Err(_) => counts.rejected(1),
            }
        }
        let proof = Proof::from(counts);
        Ok(if self.groups.is_some() { proof } else { proof.with_allocations(self.allocations()) })
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let Some(groups) = self.groups.take() else {
            let len = self.decoder.encoded.len();
            let mut clock = ChunkClock::start();
            for start in (0..len).step_by(CHUNK_UNITS) {
                self.decode(start, len.min(start + CHUNK_UNITS));
                clock.lap();
            }
            return Ok(Parts { chunks_ns: clock.chunks_ns, ..Parts::default() });
        };
        let (mut start, mut clock) = (0, StageClock::start());
        for (name, end) in &groups {
            self.decode(start, *end);
            clock.lap(name.clone());
            start = *end;
        }
        self.groups = Some(groups);
        Ok(clock.into_parts())
    }
}

/// Decodes all events in batches of one length, and again in longer ones.
pub(super) struct Batches {
    format: Format,
    loaded: Loaded,
    encoded: Vec<(usize, Encoded)>,
    arena: Bump,
    limits: Limits,
}

impl Batches {
    pub(super) fn new(format: Format, corpus: &Corpus<'_>) -> Result<Self, BoxError> {
        let of_len = |len| Ok((len, Encoded::batches(format, &corpus.events, len)?));
        Ok(Self {
            format,
            loaded: corpus.loaded(),
            encoded: BATCH_LENS.map(of_len).into_iter().collect::<Result<_, BoxError>>()?,
            arena: Bump::new(),
            limits: Limits::default(),
        })
    }
}

impl Work for Batches {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    /// Counts the longest batches alone.
    fn prove(&mut self) -> Result<Proof, BoxError> {
        let (_, longest) = self.encoded.last().expect("there is one for each length");
        let mut counts = EventCounts::default();
        for bytes in longest.iter() {
            self.arena.reset();
            match self.format.decode_batch(bytes, &self.arena, &self.limits) {
                Ok(events) => events.iter().for_each(|event| add(&mut counts, event)),
                Err(_) => counts.rejected(1),
            }
        }
        Ok(counts.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let mut clock = StageClock::start();
        for (len, encoded) in &self.encoded {
            for bytes in encoded.iter() {
                self.arena.reset();
                let events = self.format.decode_batch(bytes, &self.arena, &self.limits);
                let _ = black_box(&events);
            }
            clock.lap(len.to_string());
        }
        Ok(clock.into_parts())
    }
}

/// Reads single fields of all events.
pub(super) struct Fields {
    decoder: Decoder,
    field: EventField,
}

impl Fields {
    pub(super) fn new(
        format: Format,
        field: EventField,
        corpus: &Corpus<'_>,
    ) -> Result<Self, BoxError> {
        Ok(Self { decoder: Decoder::new(format, corpus)?, field })
    }

    fn each(&mut self, mut visit: impl FnMut(Option<FieldValue>)) {
        let Decoder { format, encoded, arena, limits, .. } = &mut self.decoder;
        for bytes in encoded.iter() {
            arena.reset();
            let fields = format.fields(bytes, arena, limits);
            visit(fields.and_then(|fields| read(self.field, &fields)).ok());
        }
    }
}

/// Reads only the needed fields: the author of an event of another kind cannot match the filter.
#[inline]
fn read(field: EventField, fields: &nostr_formats::Fields<'_>) -> Result<FieldValue, DecodeError> {
    Ok(match field {
        EventField::Kind => FieldValue::Kind(fields.kind()?),
        EventField::Pubkey => FieldValue::Pubkey(fields.pubkey()?),
        EventField::Both => FieldValue::Both(fields.kind()?, fields.pubkey()?),
        EventField::Filter if fields.kind()? != 1 => FieldValue::Filter(false),
        EventField::Filter => FieldValue::filtered(1, fields.pubkey()?),
    })
}

impl Work for Fields {
    fn loaded(&self) -> Loaded {
        self.decoder.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut sums = FieldSums::new(self.field);
        self.each(|value| sums.add(value));
        Ok(sums.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        self.each(|value| {
            black_box(value);
        });
        Ok(Parts::default())
    }
}

/// Lengths of batches in events.
const BATCH_LENS: [usize; 4] = [1, 10, 100, 1_000];
