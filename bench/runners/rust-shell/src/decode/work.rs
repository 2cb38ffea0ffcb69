//! The frames of a corpus, decoded one after another.

use std::hint::black_box;

use super::corpus::Corpus;
use super::sink::{Barrier, Sink};
use super::{Counts, Peer};
use crate::protocol::{guarded, tell};
use crate::{Parts, Proof, Refusal, Size, Work};

/// A peer made ready, and the frames it will work on.
struct Frames<P> {
    peer: P,
    corpus: Corpus,
}

pub(super) fn load<P: Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, String> {
    let corpus = Corpus::read(files.iter().copied())?;
    Ok(Box::new(Frames { peer: P::start(variant), corpus }))
}

impl<P: Peer> Work for Frames<P> {
    fn size(&self) -> Size {
        Size { units: self.corpus.units().len(), bytes: self.corpus.unit_bytes() }
    }

    fn prove(&mut self) -> Result<Proof, Refusal> {
        let mut total = Counts::default();
        for (number, frame) in self.corpus.units().enumerate() {
            let mut counts = Counts::default();
            match decode(&mut self.peer, frame, &mut counts) {
                Ok(()) => total.add(&counts),
                Err(refusal) => {
                    total.errors += 1;
                    tell(number, total.errors, &refusal);
                }
            }
            total.frames += 1;
        }
        Ok(total.to_json().into())
    }

    fn pass(&mut self) -> Result<Parts, Refusal> {
        for frame in self.corpus.units() {
            let _ = black_box(decode(&mut self.peer, frame, &mut Barrier));
        }
        Ok(Parts::default())
    }
}

pub(super) fn decode<P: Peer>(
    peer: &mut P,
    frame: &[u8],
    sink: &mut impl Sink,
) -> Result<(), Refusal> {
    guarded(|| peer.decode(frame, sink))
}
