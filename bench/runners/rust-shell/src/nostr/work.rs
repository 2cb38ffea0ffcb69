//! The work loops of the tasks on Nostr events: encoding, decoding, batches, single fields, validation.

use std::hint::black_box;
use std::marker::PhantomData;
use std::time::Instant;

use protocol::{
    BoxError, CHUNK_UNITS, Counts, EventCounts, EventField, FieldSums, FieldValue, Loaded, Parts,
    Proof, StageClock, Verdict, VerdictCounts, Work,
};

use super::corpus::{self, Encoded, Prepared, prepared};
use super::{Codec, Fields, Validate};
use crate::heap::allocations_of;
use crate::{catch_panic, catch_panics, log_error};

/// Encodes events one after the other.
struct Encode<C: Codec> {
    events: Vec<Prepared<C::Event>>,
    loaded: Loaded,
    /// Cleared for every event, so that it grows once.
    out: Vec<u8>,
}

pub(super) fn load_encode<C: Codec>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let (events, loaded) = corpus::load(files, C::parse)?;
    Ok(Box::new(Encode::<C> { events, loaded, out: Vec::new() }))
}

impl<C: Codec> Work for Encode<C> {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let (mut errors, mut bytes) = (0, 0);
        for (number, event) in self.events.iter().enumerate() {
            self.out.clear();
            match catch_panic(|| C::encode(prepared(event)?, &mut self.out)) {
                Ok(()) => bytes += self.out.len() as u64,
                Err(error) => {
                    errors += 1;
                    log_error(number, errors, &error);
                }
            }
        }
        let counts = [("events", self.loaded.units), ("errors", errors), ("bytes", bytes)];
        let allocations = allocations_of(|| self.encode_all(|_| {}));
        Ok(Proof::from(Counts::from_iter(counts)).with_allocations(allocations))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let mut chunks_ns = Vec::with_capacity(self.events.len().div_ceil(CHUNK_UNITS));
        self.encode_all(|ns| chunks_ns.push(ns));
        Ok(Parts { chunks_ns, ..Parts::default() })
    }
}

impl<C: Codec> Encode<C> {
    fn encode_all(&mut self, mut chunk_took: impl FnMut(u64)) {
        for chunk in self.events.chunks(CHUNK_UNITS) {
            let start = Instant::now();
            catch_panics(chunk, |event| {
                let Ok(event) = event else { return };
                self.out.clear();
                let _ = black_box(C::encode(event, &mut self.out));
                black_box(self.out.as_slice());
            });
            chunk_took(start.elapsed().as_nanos() as u64);
        }
    }
}

/// Decodes events one after the other.
struct Decode<C> {
    codec: PhantomData<C>,
    encoded: Encoded,
    /// Whether a pass times groups instead of chunks.
    is_grouped: bool,
}

pub(super) fn load_decode<C: Codec>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let encoded = Encoded::load::<C>(files)?;
    Ok(Box::new(Decode::<C> { codec: PhantomData, encoded, is_grouped: false }))
}

pub(super) fn load_groups<C: Codec>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let encoded = Encoded::load::<C>(files)?;
    Ok(Box::new(Decode::<C> { codec: PhantomData, encoded, is_grouped: true }))
}

impl<C: Codec> Work for Decode<C> {
    fn loaded(&self) -> Loaded {
        self.encoded.loaded
    }

    /// A decoded event is counted as a whole first, so that a late error of a lazy decoder is an error of the event.
    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut total = EventCounts::default();
        for (number, event) in self.encoded.events().enumerate() {
            let mut counts = total;
            match catch_panic(|| decode_and_count::<C>(self.encoded.bytes_of(event)?, &mut counts))
            {
                Ok(()) => total = counts,
                Err(error) => {
                    total.rejected(1);
                    log_error(number, total.errors, &error);
                }
            }
        }
        let allocations = allocations_of(|| self.encoded.each_of_all(C::decode));
        Ok(Proof::from(total).with_allocations(allocations))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        if !self.is_grouped {
            return Ok(self.encoded.each_timed(C::decode));
        }
        let mut clock = StageClock::start();
        for group in &self.encoded.groups {
            self.encoded.each(&group.units, C::decode);
            clock.lap(group.name.clone());
        }
        Ok(clock.into_parts())
    }
}

/// Decodes an event and counts all of it.
pub(super) fn decode_and_count<C: Codec>(
    bytes: &[u8],
    counts: &mut EventCounts,
) -> Result<(), BoxError> {
    let event = C::decode(bytes)?;
    C::count(&event, counts);
    Ok(())
}

/// Decodes events in lists of several lengths.
struct Batches<C> {
    codec: PhantomData<C>,
    /// The lists by [`BATCH_LENS`].
    lists: [Vec<Batch>; 4],
    loaded: Loaded,
    /// Lines that the peer could not parse.
    unparsed: u64,
}

struct Batch {
    events: usize,
    bytes: Vec<u8>,
}

/// Lengths of lists in events, with the names of their stages.
const BATCH_LENS: [(usize, &str); 4] = [(1, "1"), (10, "10"), (100, "100"), (1_000, "1000")];

pub(super) fn load_batches<C: Codec>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let (lines, loaded) = corpus::load(files, C::parse)?;
    let events: Vec<_> = lines.into_iter().flatten().collect();
    let unparsed = loaded.units - events.len() as u64;
    let encode = |events: &[C::Event]| {
        let mut bytes = Vec::new();
        catch_panic(|| C::encode_batch(events, &mut bytes))?;
        Ok(Batch { events: events.len(), bytes })
    };
    let in_lists = |len| events.chunks(len).map(encode).collect::<Result<Vec<_>, BoxError>>();
    let [one, ten, hundred, thousand] = BATCH_LENS.map(|(len, _)| in_lists(len));
    let lists = [one?, ten?, hundred?, thousand?];
    Ok(Box::new(Batches::<C> { codec: PhantomData, lists, loaded, unparsed }))
}

impl<C: Codec> Work for Batches<C> {
    fn loaded(&self) -> Loaded {
        self.loaded
    }

    /// Counts the longest lists alone.
    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut total = EventCounts::default();
        total.rejected(self.unparsed);
        let [.., longest] = &self.lists;
        for (number, batch) in longest.iter().enumerate() {
            let mut counts = total;
            let decoded = catch_panic(|| {
                let events = C::decode_batch(&batch.bytes)?;
                events.iter().for_each(|event| C::count(event, &mut counts));
                Ok(())
            });
            match decoded {
                Ok(()) => total = counts,
                Err(error) => {
                    total.rejected(batch.events as u64);
                    log_error(number, total.errors, &error);
                }
            }
        }
        let pass = || self.lists.iter().for_each(|batches| decode_batches::<C>(batches));
        Ok(Proof::from(total).with_allocations(allocations_of(pass)))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let mut clock = StageClock::start();
        for ((_, name), batches) in BATCH_LENS.iter().zip(&self.lists) {
            decode_batches::<C>(batches);
            clock.lap(*name);
        }
        Ok(clock.into_parts())
    }
}

fn decode_batches<C: Codec>(batches: &[Batch]) {
    catch_panics(batches, |batch| {
        let _ = black_box(C::decode_batch(&batch.bytes));
    });
}

/// Reads single fields of events.
struct ReadFields<F> {
    codec: PhantomData<F>,
    field: EventField,
    encoded: Encoded,
}

pub(super) fn load_fields<F: Fields>(
    variant: &str,
    files: &[&str],
) -> Result<Box<dyn Work>, BoxError> {
    let name = variant.rsplit('/').next().unwrap_or_default();
    let field = EventField::from_name(name).ok_or_else(|| format!("unknown field {name:?}"))?;
    let encoded = Encoded::load::<F>(files)?;
    Ok(Box::new(ReadFields::<F> { codec: PhantomData, field, encoded }))
}

impl<F: Fields> Work for ReadFields<F> {
    fn loaded(&self) -> Loaded {
        self.encoded.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let (mut sums, mut errors) = (FieldSums::new(self.field), 0);
        for (number, event) in self.encoded.events().enumerate() {
            let value = catch_panic(|| read_field::<F>(self.field, self.encoded.bytes_of(event)?));
            if let Err(error) = &value {
                errors += 1;
                log_error(number, errors, error);
            }
            sums.add(value.ok());
        }
        Ok(Proof::from(sums).with_allocations(allocations_of(|| self.read_all())))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        self.read_all();
        Ok(Parts::default())
    }
}

impl<F: Fields> ReadFields<F> {
    fn read_all(&self) {
        match self.field {
            EventField::Kind => self.encoded.each_of_all(F::kind),
            EventField::Pubkey => self.encoded.each_of_all(F::pubkey),
            EventField::Both => self.encoded.each_of_all(F::both),
            EventField::Filter => self.encoded.each_of_all(filter::<F>),
        }
    }
}

fn filter<F: Fields>(bytes: &[u8]) -> Result<FieldValue, BoxError> {
    let (kind, pubkey) = F::both(bytes)?;
    Ok(FieldValue::filtered(kind, pubkey))
}

fn read_field<F: Fields>(field: EventField, bytes: &[u8]) -> Result<FieldValue, BoxError> {
    Ok(match field {
        EventField::Kind => FieldValue::Kind(F::kind(bytes)?),
        EventField::Pubkey => FieldValue::Pubkey(F::pubkey(bytes)?),
        EventField::Both => {
            let (kind, pubkey) = F::both(bytes)?;
            FieldValue::Both(kind, pubkey)
        }
        EventField::Filter => filter::<F>(bytes)?,
    })
}

/// Decodes events and verifies their ids and signatures.
struct ValidateEvents<V> {
    codec: PhantomData<V>,
    encoded: Encoded,
}

pub(super) fn load_validate<V: Validate>(
    _: &str,
    files: &[&str],
) -> Result<Box<dyn Work>, BoxError> {
    Ok(Box::new(ValidateEvents::<V> { codec: PhantomData, encoded: Encoded::load::<V>(files)? }))
}

impl<V: Validate> Work for ValidateEvents<V> {
    fn loaded(&self) -> Loaded {
        self.encoded.loaded
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut counts = VerdictCounts::default();
        for (number, event) in self.encoded.events().enumerate() {
            let outcome = catch_panic(|| V::validate(self.encoded.bytes_of(event)?));
            counts.add(Verdict::from(&outcome));
            if let Err(error) = outcome {
                log_error(number, counts.errors, &error);
            }
        }
        let allocations = allocations_of(|| self.encoded.each_of_all(V::validate));
        Ok(Proof::from(counts).with_allocations(allocations))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        Ok(self.encoded.each_timed(V::validate))
    }
}
