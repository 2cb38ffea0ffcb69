//! The task `decode`: a unit is a frame of the firehose.

mod corpus;
mod counts;
#[cfg(feature = "experiments")]
pub mod experiments;
mod sink;
mod work;

pub(crate) use corpus::Corpus;
pub use counts::Counts;
pub use sink::Sink;

use crate::{Refusal, Task, Variant};

/// A stack of libraries that can decode frames.
pub trait Peer: Sized + 'static {
    const VARIANTS: &'static [Variant];

    /// Makes ready to work as `variant`, which is one of [`Self::VARIANTS`].
    fn start(variant: &str) -> Self;

    /// Decodes one frame and hands over what came out of it.
    ///
    /// # Errors
    ///
    /// When any step refuses the frame. What was handed over before that is not counted.
    fn decode<S: Sink>(&mut self, frame: &[u8], sink: &mut S) -> Result<(), Refusal>;
}

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "decode", variants: P::VARIANTS, load: work::load::<P> }
}
