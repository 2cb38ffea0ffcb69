//! The benchmark harness: which implementation does the same work in how much time?
//!
//! [`run()`] takes a [`Plan`], makes or takes the corpora, builds the peers of `bench/runners`, holds
//! what each decodes against what the corpus holds, measures them in turn, and answers [`Results`].
//! [`terminal`] turns those into a table and a verdict. How a run works and what it does not measure is
//! in `bench/METHOD.md`; in whose favour the suite may lean, in `bench/BIAS.md`.
//!
//! Printing, progress bars and arguments are left to the command.

#![forbid(unsafe_code)]

pub mod corpora;
mod counts;
mod error;
mod exchange;
mod forecast;
mod hostile;
mod machine;
pub mod nostr;
pub mod own;
mod peers;
mod pin;
mod plan;
mod progress;
mod protocol;
mod results;
mod run;
mod stamp;
mod task;
pub mod terminal;

pub use counts::{Count, CountComparison, Counts, Difference};
pub use error::{BenchError, CorpusFault};
pub use forecast::{Estimate, Forecast};
pub use plan::{Plan, RunnerCommand};
pub use progress::Progress;
pub use results::{
    CaseOutcome, Chunks, CorpusInfo, Expect, Machine, Outcome, Parity, Rate, Results, Row, SCHEMA,
    Settings, Sizes, Unavailable,
};
pub use run::run;
pub use task::Task;

/// How a run works, and what its numbers mean: `bench/METHOD.md`.
pub const METHOD: &str = include_str!("../METHOD.md");
/// In whose favour the suite may lean: `bench/BIAS.md`.
pub const BIAS: &str = include_str!("../BIAS.md");
