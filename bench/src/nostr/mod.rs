//! Measurements of Nostr events: their statistics, their sizes by format, and a ranking of formats.
//!
//! | item | purpose |
//! |---|---|
//! | `SizeTable` | the sizes of events by format, bare and compressed (feature `formats`) |
//! | [`Unheld`] | the events that a format cannot hold |
//! | [`Analysis`] | statistics of kinds, sizes and tags |
//! | [`Recommendation`] | a ranking of formats by the results of a run |

mod analysis;
mod ranking;
#[cfg(feature = "formats")]
mod sizes;
#[cfg(not(feature = "formats"))]
#[path = "without_sizes.rs"]
mod sizes;
mod unheld;

pub use analysis::{Analysis, Analyzer, ClassCount, KindSummary, Quantiles, TagNameCount};
pub use ranking::{
    Candidate, Criterion, Incomplete, RankingFault, Recommendation, Weights, recommend,
};
pub(crate) use sizes::size_rows;
#[cfg(feature = "formats")]
pub use sizes::{FormatSizes, SizeTable};
pub use unheld::{Unheld, UnheldEvent};
