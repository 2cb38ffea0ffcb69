//! The labels of a run, by verdict.

use std::fmt::Write as _;

/// The labels of a run, by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// All that were received.
    pub received: u64,
    /// Verified labels, negations and expired ones included.
    pub verified: u64,
    /// Verified negations.
    pub negations: u64,
    /// Labels that are not valid.
    pub refused: u64,
    /// Messages that could not be read.
    pub unreadable: u64,
}

impl Counts {
    /// The counts as text.
    pub(crate) fn to_text(self) -> String {
        let Self { received, verified, negations, refused, unreadable } = self;
        let mut text = format!("{received} labels: {verified} verified");
        let rest = [(negations, "negations"), (refused, "refused"), (unreadable, "unreadable")];
        for (count, name) in rest {
            if count > 0 {
                let _ = write!(text, ", {count} {name}");
            }
        }
        text
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.received += other.received;
        self.verified += other.verified;
        self.negations += other.negations;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
    }
}
