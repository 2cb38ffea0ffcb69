//! The task `decode`: a unit is a frame of the firehose.

use std::hint::black_box;

use protocol::{BoxError, Loaded, Parts, Proof, Work};

use crate::files::Frames;
use crate::{Task, Variant, catch_panic, log_error};

pub use protocol::DecodeCounts;

/// A stack of libraries that can decode frames.
pub trait Peer: Sized + 'static {
    const VARIANTS: &'static [Variant];

    /// Prepares for `variant`, which is one of [`Self::VARIANTS`].
    fn start(variant: &str) -> Self;

    /// Decodes one frame and passes the values to `sink`.
    ///
    /// # Errors
    ///
    /// When any step rejects the frame. Values passed before that are not counted.
    fn decode<S: Sink>(&mut self, frame: &[u8], sink: &mut S) -> Result<(), BoxError>;
}

/// Receives decoded values while they are alive.
///
/// In `pass` this is an optimisation barrier, in `prove` the counts. Both are the same generic parameter of the peer's
/// code, so that the proven path is the timed path, and the timed one carries no counting.
pub trait Sink {
    /// A header or a payload.
    fn message<T>(&mut self, message: &T);

    /// A decoded DAG-CBOR block; `count` counts its values.
    fn block<T>(&mut self, value: &T, count: impl FnOnce(&T, &mut DecodeCounts));

    /// A block of another codec, which is not decoded.
    fn raw_block(&mut self, bytes: &[u8]);
}

/// Keeps the optimiser from removing the work.
struct Barrier;

impl Sink for Barrier {
    #[inline]
    fn message<T>(&mut self, message: &T) {
        black_box(message);
    }

    #[inline]
    fn block<T>(&mut self, value: &T, _: impl FnOnce(&T, &mut DecodeCounts)) {
        black_box(value);
    }

    #[inline]
    fn raw_block(&mut self, bytes: &[u8]) {
        black_box(bytes);
    }
}

impl Sink for DecodeCounts {
    fn message<T>(&mut self, _: &T) {}

    fn block<T>(&mut self, value: &T, count: impl FnOnce(&T, &mut DecodeCounts)) {
        self.blocks += 1;
        count(value, self);
    }

    fn raw_block(&mut self, _: &[u8]) {
        self.blocks += 1;
    }
}

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "decode", variants: P::VARIANTS, load: load::<P> }
}

fn load<P: Peer>(variant: &str, files: &[&str]) -> Result<Box<dyn Work>, BoxError> {
    let frames = Frames::read(files.iter().copied())?;
    Ok(Box::new(Decode { peer: P::start(variant), frames }))
}

struct Decode<P> {
    peer: P,
    frames: Frames,
}

impl<P: Peer> Work for Decode<P> {
    fn loaded(&self) -> Loaded {
        self.frames.loaded()
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        let mut total = DecodeCounts::default();
        for (number, frame) in self.frames.iter().enumerate() {
            let mut counts = total;
            match decode(&mut self.peer, frame, &mut counts) {
                Ok(()) => total = counts,
                Err(error) => {
                    total.errors += 1;
                    log_error(number, total.errors, &error);
                }
            }
            total.frames += 1;
        }
        Ok(total.into())
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        for frame in self.frames.iter() {
            let _ = black_box(decode(&mut self.peer, frame, &mut Barrier));
        }
        Ok(Parts::default())
    }
}

fn decode<P: Peer>(peer: &mut P, frame: &[u8], sink: &mut impl Sink) -> Result<(), BoxError> {
    catch_panic(|| peer.decode(frame, sink))
}
