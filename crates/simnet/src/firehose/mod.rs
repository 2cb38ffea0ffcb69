//! Which frames does the calibrated stream hold, and what is in them?
//!
//! ```text
//! Spec ── plan ──> accounts, and for each the slots of the stream in which it commits
//!                  └── each account alone: its repository, then its commits one by one
//! Corpus <── the frames in the order of their slots, with what was written into them
//! ```
//!
//! The stream follows measurements of the live one: how high the trees are, what is done to which
//! collections, how large records are. Sizes of nodes and frames are not drawn: they come out of
//! real trees.
//!
//! ```
//! use wireproof_simnet::firehose::{Corpus, Spec};
//! let corpus = Corpus::generate(&Spec::quick(), &mut |_done, _total| {});
//! assert_eq!(corpus.frames().len(), 160);
//! ```

mod corpus;
mod manifest;
mod plan;
#[cfg(test)]
mod tests;
mod writes;

pub use corpus::{Corpus, FrameCounts, VerdictCounts};
pub use manifest::{AccountKey, Manifest};
pub use plan::Spec;
