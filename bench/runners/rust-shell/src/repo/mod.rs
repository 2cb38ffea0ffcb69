//! The task `repo`: the unit is a whole repository, from the bytes of its CAR to the verdict.

mod sink;
mod work;

use std::fmt::Display;

pub use crate::files::Owner;
use crate::{Refusal, Task, Variant};

/// A library that can verify repositories.
pub trait Peer: Sized + 'static {
    const VARIANTS: &'static [Variant];

    /// Makes ready to verify a repository of `owner` as `variant`, which is one of [`Self::VARIANTS`].
    ///
    /// # Errors
    ///
    /// When the key cannot be read.
    fn start(variant: &str, owner: &Owner) -> Result<Self, Refusal>;

    /// Verifies the repository in a CAR, stage by stage, and hands over what came out of it.
    ///
    /// # Errors
    ///
    /// When any stage refuses the repository.
    fn verify<S: Sink>(&mut self, car: &[u8], sink: &mut S) -> Result<(), Refusal>;
}

/// Takes what a peer has found. In `pass` it holds a clock, in `prove` the counts.
pub trait Sink {
    /// Whether what is handed over is counted. A peer whose call tells nothing of its records may look
    /// for them then, and only then.
    fn is_counting(&self) -> bool;

    /// A stage is over.
    fn ended(&mut self, stage: Stage);

    /// The number of blocks in the CAR, whether needed or not.
    fn blocks(&mut self, count: usize);

    /// The signature was verified and is good.
    fn valid(&mut self);

    /// The block of a record.
    fn record(&mut self, block: &[u8]);

    /// The root of the tree that the commit names.
    fn root(&mut self, data: &impl Display);

    /// The root of the tree that was built anew.
    fn rebuilt_root(&mut self, root: &impl Display);
}

/// What is told apart of the work. A stage that a peer cannot tell apart belongs to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Parse,
    Signature,
    Walk,
    Rebuild,
}

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "repo", variants: P::VARIANTS, load: work::load::<P> }
}
