//! Where does a decoded frame go? In `pass` to an optimisation barrier, in `prove` to the counts.
//!
//! Both are the same generic parameter of the peer's code, so that the path that is proven is the
//! path that is timed, and the timed one carries no counting.

use std::hint::black_box;

use super::Counts;

/// Takes what a peer has decoded, while it is still alive.
pub trait Sink {
    /// A header or a payload.
    fn message<T>(&mut self, message: &T);

    /// A DAG-CBOR block, decoded; `count` adds up what is in it.
    fn block<T>(&mut self, value: &T, count: impl FnOnce(&T, &mut Counts));

    /// A block of another codec, which nobody decodes.
    fn raw_block(&mut self, bytes: &[u8]);
}

/// Makes the optimiser believe that someone reads everything.
pub(crate) struct Barrier;

impl Sink for Barrier {
    #[inline]
    fn message<T>(&mut self, message: &T) {
        black_box(message);
    }

    #[inline]
    fn block<T>(&mut self, value: &T, _: impl FnOnce(&T, &mut Counts)) {
        black_box(value);
    }

    #[inline]
    fn raw_block(&mut self, bytes: &[u8]) {
        black_box(bytes);
    }
}

impl Sink for Counts {
    fn message<T>(&mut self, _: &T) {}

    fn block<T>(&mut self, value: &T, count: impl FnOnce(&T, &mut Counts)) {
        self.blocks += 1;
        count(value, self);
    }

    fn raw_block(&mut self, _: &[u8]) {
        self.blocks += 1;
    }
}
