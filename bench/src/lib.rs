//! The benchmark harness: measures several implementations on the same bytes.
//!
//! [`run()`] takes a [`Plan`], makes or opens the corpora, builds the peers of `bench/runners`, compares the counts of
//! their work with the corpora's, measures them in turn, and returns [`Results`]. [`terminal`] turns them into tables
//! and a summary. `bench/METHOD.md` describes how a run works and its limits, `bench/BIAS.md`
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
mod run;
mod schedule;

pub use claims::{Claims, VariantClaims, prove_claims};
pub use error::{BenchError, CorpusFault};
pub use plan::{Plan, RunnerCommand};
pub use progress::{Estimate, Forecast, Progress};
pub use results::terminal;
pub use results::{
    BIAS, CaseOutcome, Chunks, CorpusInfo, Count, CountComparison, Counts, Difference, EVEN,
    Expect, METHOD, Machine, Outcome, Parity, Rate, Results, Row, SCHEMA, Settings, Sizes, Task,
    Unavailable, is_uneven,
};
pub use run::run;
