//! The task `commit`: a unit is a frame, judged with what is known of its account.

mod work;

use std::time::SystemTime;

use crate::{Refusal, Task, Variant};

/// A library that can judge commits as they come from a stream.
pub trait Peer: Sized + 'static {
    const VARIANTS: &'static [Variant];

    /// Makes ready to judge the frames of these accounts, a DID and a `did:key` each. `now` is the
    /// clock, if [`Self::time`] tells times or the frames come with one.
    ///
    /// # Errors
    ///
    /// When a key cannot be read.
    fn start(keys: &[(String, String)], now: Option<SystemTime>) -> Result<Self, Refusal>;

    /// The `time` of an event, asked for at load by a peer that asks for a clock.
    fn time(_frame: &[u8]) -> Option<String> {
        None
    }

    /// Forgets the state of all accounts, but not their keys.
    fn forget(&mut self);

    /// Judges the next frame and keeps what it says of its account.
    fn judge(&mut self, frame: &[u8]) -> Verdict;
}

/// What a peer says of a frame.
#[derive(Debug)]
pub enum Verdict {
    /// A `#commit` with so many operations.
    Accepted { ops: usize },
    /// A `#commit`, or what might have been one.
    Refused(Refusal),
    /// A frame of another type.
    Other(Result<(), Refusal>),
}

impl Verdict {
    /// That on a `#commit` with so many operations.
    pub fn of_commit(ops: usize, outcome: Result<(), Refusal>) -> Self {
        match outcome {
            Ok(()) => Verdict::Accepted { ops },
            Err(refusal) => Verdict::Refused(refusal),
        }
    }

    pub(crate) fn into_outcome(self) -> Result<(), Refusal> {
        match self {
            Verdict::Accepted { .. } => Ok(()),
            Verdict::Refused(refusal) => Err(refusal),
            Verdict::Other(outcome) => outcome,
        }
    }
}

/// The task, done by `P`.
pub const fn task<P: Peer>() -> Task {
    Task { name: "commit", variants: P::VARIANTS, load: work::load::<P> }
}
