//! What does a run tell of itself while it goes on?

/// A step of a run, for whoever shows progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// Another run uses the same folder; this one waits for it.
    Waiting,
    /// A corpus is being made.
    Corpus {
        /// Its name.
        name: &'a str,
        /// Units made so far.
        done: u64,
        /// Units to make.
        total: u64,
    },
    /// A peer is being built.
    Building {
        /// Its name.
        peer: &'a str,
    },
    /// A row does its work once, to be counted.
    Proving {
        /// The peer.
        peer: &'a str,
        /// The variant.
        variant: &'a str,
    },
    /// A pass is about to be made, warm-up included.
    Pass {
        /// The peer.
        peer: &'a str,
        /// The variant.
        variant: &'a str,
        /// Passes made so far, of all rows.
        done: u64,
        /// Passes of all rows.
        total: u64,
    },
    /// A hostile case was judged.
    Case {
        /// The peer.
        peer: &'a str,
        /// The case.
        case: &'a str,
        /// Cases judged so far by this peer on this path.
        done: u64,
        /// Cases that it is given there.
        total: u64,
    },
}
