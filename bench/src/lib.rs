//! The benchmark harness: measures several implementations on the same bytes.
//!
//! [`run()`] takes a [`Plan`], makes or opens the corpora, builds the peers of `bench/runners`, compares the counts of
//! their work with those of the corpora, measures them in turn, and returns [`Results`]. [`terminal`] turns those into
//! tables and a summary. `bench/METHOD.md` describes how a run works and what it does not measure, `bench/BIAS.md`
//! the known biases of the suite.
//!
//! Printing, progress bars and arguments are left to the command.

#![forbid(unsafe_code)]

mod build;
mod checkout;
mod claims;
mod connection;
pub mod corpora;
mod error;
mod fingerprint;
mod hostile;
mod machine;
mod measure;
pub mod nostr;
pub mod own;
mod peers;
mod plan;
mod progress;
mod results;
mod run;
mod schedule;
mod task;
pub mod terminal;
mod variant;

pub use claims::{Claims, VariantClaims, prove_claims};
pub use error::{BenchError, CorpusFault};
pub use plan::{Plan, RunnerCommand};
pub use progress::{Estimate, Forecast, Progress};
pub use protocol::{Count, CountComparison, Counts, Difference};
pub use results::{
    CaseOutcome, Chunks, CorpusInfo, EVEN, Expect, Machine, Outcome, Parity, Rate, Results, Row,
    SCHEMA, Settings, Sizes, Unavailable, is_uneven,
};
pub use run::run;
pub use task::Task;

/// How a run works, and what its numbers mean: `bench/METHOD.md`.
pub const METHOD: &str = include_str!("../METHOD.md");
/// The known biases of the suite: `bench/BIAS.md`.
pub const BIAS: &str = include_str!("../BIAS.md");
