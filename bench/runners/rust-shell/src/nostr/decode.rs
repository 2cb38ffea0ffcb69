//! The events of a corpus, read one after another, group after group where it has some.

use std::marker::PhantomData;
use std::time::Instant;

use super::corpus::{Encoded, Group};
use super::{Codec, Tally};
use crate::protocol::{guarded, tell};
use crate::{Parts, Proof, Refusal, Size, Work, heap};

struct Events<C> {
    codec: PhantomData<C>,
    encoded: Encoded,
    /// Whether a pass tells the time of each group, or else of each chunk.
    is_grouped: bool,
}

pub(super) fn load<C: Codec>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let encoded = Encoded::load::<C>(files)?;
    Ok(Box::new(Events::<C> { codec: PhantomData, encoded, is_grouped: false }))
}

pub(super) fn load_groups<C: Codec>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let encoded = Encoded::load::<C>(files)?;
    Ok(Box::new(Events::<C> { codec: PhantomData, encoded, is_grouped: true }))
}

impl<C: Codec> Work for Events<C> {
    fn size(&self) -> Size {
        self.encoded.size
    }

    /// What is decoded is walked whole before it counts, so that a late refusal of a lazy decoder is one.
    fn prove(&mut self) -> Result<Proof, Refusal> {
        let mut tally = Tally::default();
        for (number, event) in self.encoded.events().enumerate() {
            let mut told = tally;
            match guarded(|| walk::<C>(self.encoded.bytes_of(event)?, &mut told)) {
                Ok(()) => tally = told,
                Err(refusal) => {
                    tally.refused(1);
                    tell(number, tally.errors, &refusal);
                }
            }
        }
        let allocations = heap::asked_by(|| self.encoded.each_of_all(C::decode));
        Ok(Proof { allocations: Some(allocations), ..tally.to_json().into() })
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        Ok(match self.is_grouped {
            true => self.group_times(),
            false => self.encoded.each_timed(C::decode),
        })
    }
}

impl<C: Codec> Events<C> {
    fn group_times(&self) -> Parts {
        let timed = |group: &Group<_>| {
            let start = Instant::now();
            self.encoded.each(&group.units, C::decode);
            (group.name.clone().into(), start.elapsed().as_nanos() as u64)
        };
        self.encoded.groups.iter().map(timed).collect::<Vec<_>>().into()
    }
}

/// Reads an event and walks all of it.
pub(super) fn walk<C: Codec>(bytes: &[u8], tally: &mut Tally) -> Result<(), Refusal> {
    let event = C::decode(bytes)?;
    C::tell(&event, tally);
    Ok(())
}
