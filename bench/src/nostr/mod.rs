//! Measurements of Nostr events: their statistics, their sizes by format, and a ranking of formats.
//!
//! | item | purpose |
//! |---|---|
//! | [`SizeTable`] | the sizes of events by format, bare and compressed |
//! | [`Unheld`] | the events that a format cannot hold |
//! | [`Analysis`] | statistics of kinds, sizes and tags |
//! | [`Recommendation`] | a ranking of formats by the results of a run |

mod analysis;
mod ranking;
mod sizes;
mod unheld;

pub use analysis::{Analysis, Analyzer, ClassCount, KindSummary, Quantiles, TagNameCount};
pub use ranking::{
    Candidate, Criterion, Incomplete, RankingFault, Recommendation, Weights, recommend,
};
pub(crate) use sizes::size_rows;
pub use sizes::{FormatSizes, SizeTable};
pub use unheld::{Unheld, UnheldEvent};
