//! The events of a corpus, written one after another.

use std::hint::black_box;
use std::time::Instant;

use serde_json::json;

use super::corpus::{self, Given, given};
use super::{CHUNK, Codec};
use crate::protocol::{each_guarded, guarded, tell};
use crate::{Parts, Proof, Refusal, Size, Work, heap};

struct Events<C: Codec> {
    events: Vec<Given<C::Event>>,
    size: Size,
    /// Cleared for each event, so that it grows once.
    out: Vec<u8>,
}

pub(super) fn load<C: Codec>(_: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let (events, size) = corpus::load(files, C::parse)?;
    Ok(Box::new(Events::<C> { events, size, out: Vec::new() }))
}

impl<C: Codec> Work for Events<C> {
    fn size(&self) -> Size {
        self.size
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let (mut errors, mut bytes) = (0, 0);
        for (number, event) in self.events.iter().enumerate() {
            self.out.clear();
            match guarded(|| C::encode(given(event)?, &mut self.out)) {
                Ok(()) => bytes += self.out.len() as u64,
                Err(refusal) => {
                    errors += 1;
                    tell(number, errors, &refusal);
                }
            }
        }
        let counts = json!({ "events": self.size.units, "errors": errors, "bytes": bytes });
        let allocations = heap::asked_by(|| self.work(|_| {}));
        Ok(Proof { allocations: Some(allocations), ..counts.into() })
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        let mut chunks_ns = Vec::with_capacity(self.events.len().div_ceil(CHUNK));
        self.work(|ns| chunks_ns.push(ns));
        Ok(Parts { chunks_ns, ..Parts::default() })
    }
}

impl<C: Codec> Events<C> {
    fn work(&mut self, mut took: impl FnMut(u64)) {
        for chunk in self.events.chunks(CHUNK) {
            let start = Instant::now();
            each_guarded(chunk, |event| {
                let Ok(event) = event else { return };
                self.out.clear();
                let _ = black_box(C::encode(event, &mut self.out));
                black_box(self.out.as_slice());
            });
            took(start.elapsed().as_nanos() as u64);
        }
    }
}
