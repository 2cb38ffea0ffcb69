//! How does a Rust peer become a runner? It implements [`Peer`] and calls [`run`].
//!
//! The shell speaks the protocol of `bench/runners/PROTOCOL.md`, splits the corpus, holds the clock
//! and adds up the counts. A runner is left with one thing: how its libraries decode a frame.

mod corpus;
mod counts;
#[cfg(feature = "experiments")]
pub mod experiments;
mod protocol;
mod sink;

pub use counts::Counts;
pub use protocol::run;
pub use sink::Sink;

/// All Rust peers allocate alike, with what rsky's relay ships: on one core of an EPYC it makes the
/// peers that build values on the heap a third faster than glibc's allocator, and none slower.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Why a frame was refused. Boxed, because nobody pays for it until it happens.
pub type Refusal = Box<dyn std::error::Error>;

/// A way of doing the task, and the checks its measured path makes.
pub struct Variant {
    pub name: &'static str,
    pub checks: &'static [&'static str],
}

/// A stack of libraries that can decode frames.
pub trait Peer: Sized {
    /// The libraries that do the work, with their versions.
    const ENGINE: &'static str;
    /// The version of the peer itself.
    const VERSION: &'static str;
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
