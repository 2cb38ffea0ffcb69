//! Nostr events in files: how are they read and written, what is in them, and which format suits them?
//!
//! | item | question it answers |
//! |---|---|
//! | [`Layout`] | how do events stand in a file? |
//! | [`Input`] | which events are in this file or folder? |
//! | [`Output`] | how do these events become a file? |
//! | [`sizes()`], [`SizeTable`] | how many bytes do they take in each format, alone and compressed? |
//! | [`Analysis`] | of which kinds are they, how long, how tagged? |
//! | [`Recommendation`] | which format do the results of a run speak for? |

mod analysis;
mod input;
mod layout;
mod output;
mod ranking;
mod reader;
mod rows;
mod sizes;
#[cfg(test)]
mod tests;

pub use analysis::{Analysis, Analyzer, ClassCount, KindSummary, Quantiles, TagNameCount};
pub use input::{Group, Input, InputError};
pub use layout::Layout;
pub use output::{Output, OutputError};
pub use ranking::{
    Candidate, Criterion, Incomplete, RankingFault, Recommendation, Weights, recommend,
};
pub use reader::{FileFault, Reader};
pub(crate) use rows::rows;
pub use sizes::{FormatSizes, SizeTable, sizes};
