//! Nostr events in files: reading and writing them, their statistics and sizes, and a ranking of formats.
//!
//! | item | purpose |
//! |---|---|
//! | [`Layout`] | the layout of events in a file |
//! | [`Input`] | the events of files and folders |
//! | [`ReaderProcess`] | the process that reads a database |
//! | [`Output`] | writing a file of events |
//! | [`SizeTable`] | the sizes of events in each format, bare and compressed |
//! | [`Unheld`] | the events that a format cannot hold |
//! | [`Analysis`] | statistics of kinds, sizes and tags |
//! | [`Recommendation`] | a ranking of formats by the results of a run |

mod analysis;
#[cfg_attr(not(feature = "nostr-lmdb"), path = "no_database.rs")]
mod database;
mod input;
mod layout;
mod message;
mod ranking;
mod reader;
mod sizes;
mod stream;
#[cfg(test)]
mod tests;
mod unheld;

pub use analysis::{Analysis, Analyzer, ClassCount, KindSummary, Quantiles, TagNameCount};
pub use input::{Group, Input, InputError, ReaderProcess};
pub use layout::{Layout, Output, OutputError, Records};
pub use ranking::{
    Candidate, Criterion, Incomplete, RankingFault, Recommendation, Weights, recommend,
};
pub use reader::{Entry, EntryFault, FileFault, RawGroup, Reader};
pub(crate) use sizes::size_rows;
pub use sizes::{FormatSizes, SizeTable, is_real, percent_of_json};
pub use unheld::{Unheld, UnheldEvent};
