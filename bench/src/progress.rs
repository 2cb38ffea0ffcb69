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
        /// Peers built so far.
        done: u64,
        /// Peers to build.
        total: u64,
    },
    /// All peers have said what they can do, and so it is known what there is to do.
    Known {
        /// Rows to measure.
        rows: u64,
        /// Hostile cases to judge, of all peers on all paths.
        cases: u64,
    },
    /// A row does its work once, to be counted.
    Proving {
        /// The peer.
        peer: &'a str,
        /// The variant.
        variant: &'a str,
        /// Which of the rows it is, from 0.
        row: u64,
        /// Rows of all tasks.
        rows: u64,
    },
    /// A pass is about to be made, warm-up included.
    Pass {
        /// The peer.
        peer: &'a str,
        /// The variant.
        variant: &'a str,
        /// Which of the rows it is, from 0.
        row: u64,
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
        /// Cases judged so far, of all peers.
        done: u64,
        /// Cases of all peers.
        total: u64,
    },
}
