//! The events of a corpus in lists of several sizes, each list read as a whole.

use std::hint::black_box;
use std::marker::PhantomData;
use std::time::Instant;

use super::corpus;
use super::{Codec, Tally};
use crate::protocol::{each_guarded, guarded, tell};
use crate::{Parts, Proof, Refusal, Size, Work, heap};

/// How many events are in a list, and the stage that is named so.
const SIZES: [(usize, &str); 4] = [(1, "1"), (10, "10"), (100, "100"), (1_000, "1000")];

struct Batches<C> {
    codec: PhantomData<C>,
    /// For each of [`SIZES`] the lists of that size.
    sizes: [Vec<Batch>; 4],
    size: Size,
    /// Lines that the peer could not read or write.
    unread: u64,
}

struct Batch {
    events: usize,
    bytes: Vec<u8>,
}

pub(super) fn load<C: Codec>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let (lines, size) = corpus::load(files, C::parse)?;
    let events: Vec<_> = lines.into_iter().flatten().collect();
    let unread = (size.units - events.len()) as u64;
    let encoded = |events: &[C::Event]| {
        let mut bytes = Vec::new();
        guarded(|| C::encode_batch(events, &mut bytes)).map_err(|refusal| refusal.to_string())?;
        Ok(Batch { events: events.len(), bytes })
    };
    let in_batches = |size| events.chunks(size).map(encoded).collect::<Result<Vec<_>, String>>();
    let [one, ten, hundred, thousand] = SIZES.map(|(size, _)| in_batches(size));
    let sizes = [one?, ten?, hundred?, thousand?];
    Ok(Box::new(Batches::<C> { codec: PhantomData, sizes, size, unread }))
}

impl<C: Codec> Work for Batches<C> {
    fn size(&self) -> Size {
        self.size
    }

    /// Counts the longest lists alone.
    fn prove(&mut self) -> Result<Proof, Refusal> {
        let mut tally = Tally::default();
        tally.refused(self.unread);
        let [.., longest] = &self.sizes;
        for (number, batch) in longest.iter().enumerate() {
            let mut told = tally;
            let decoded = guarded(|| {
                let events = C::decode_batch(&batch.bytes)?;
                events.iter().for_each(|event| C::tell(event, &mut told));
                Ok(())
            });
            match decoded {
                Ok(()) => tally = told,
                Err(refusal) => {
                    tally.refused(batch.events as u64);
                    tell(number, tally.errors, &refusal);
                }
            }
        }
        let work = || self.sizes.iter().for_each(|batches| decode_all::<C>(batches));
        Ok(Proof { allocations: Some(heap::asked_by(work)), ..tally.to_json().into() })
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        let timed = |((_, name), batches): ((usize, &'static str), &Vec<Batch>)| {
            let start = Instant::now();
            decode_all::<C>(batches);
            (name.into(), start.elapsed().as_nanos() as u64)
        };
        Ok(SIZES.into_iter().zip(&self.sizes).map(timed).collect::<Vec<_>>().into())
    }
}

fn decode_all<C: Codec>(batches: &[Batch]) {
    each_guarded(batches, |batch| {
        let _ = black_box(C::decode_batch(&batch.bytes));
    });
}
