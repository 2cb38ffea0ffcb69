//! Results of the benchmark: the document of a run, the names in it, and its tables for a terminal.
//!
//! | item | purpose |
//! |---|---|
//! | [`Results`], [`Row`] | the document `results.json` |
//! | [`Task`], [`PEER`], [`FORCED`], [`REAL`] | the names of tasks, peers and variants |
//! | [`terminal`] | tables and summaries |
//! | [`METHOD`], [`BIAS`] | how a run works, and its known biases |
//!
//! Measuring is left to `bench`, pages and charts to `report`, which needs no codec for them.

#![forbid(unsafe_code)]

mod peer;
mod results;
mod sizes;
mod task;
pub mod terminal;
mod unavailable;
mod variant;

pub use peer::{PEER, is_ours};
pub use protocol::{Count, CountComparison, Counts, Difference};
pub use results::{
    CaseOutcome, Chunks, CorpusInfo, EVEN, Expect, Machine, Outcome, Parity, Rate, Results, Row,
    SCHEMA, Settings, Sizes, is_uneven, middle_spread,
};
pub use sizes::{REAL, is_real, percent_of_json};
pub use task::Task;
pub use unavailable::Unavailable;
pub use variant::FORCED;

/// How a run works, and the meaning of its numbers: `bench/METHOD.md`.
pub const METHOD: &str = include_str!("../METHOD.md");
/// The known biases of the suite: `bench/BIAS.md`.
pub const BIAS: &str = include_str!("../BIAS.md");
