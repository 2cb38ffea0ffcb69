//! The top level of the command line. A command's arguments are next to its code.

use clap::{Parser, Subcommand};
use program::args::{EXIT_CODES, GlobalArgs};

use crate::bench::BenchArgs;
use crate::corpus::CorpusCommand;
use crate::report::ReportArgs;
use crate::sim::SimCommand;

/// The benchmark of Wireproof, its corpora and reports, and the simulated network.
#[derive(Debug, Parser)]
#[command(name = "wireproof", bin_name = "wireproof", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Bench(Box<BenchArgs>),
    Report(ReportArgs),
    #[command(subcommand)]
    Corpus(CorpusCommand),
    #[command(subcommand)]
    Sim(SimCommand),
    /// Serve the benchmark harness: requests on standard input, responses on standard output.
    #[command(hide = true)]
    Runner,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use program::programs::BENCH;

    use super::*;

    #[test]
    fn the_other_programs_know_the_arguments() {
        BENCH.check_description(&Args::command()).unwrap();
    }
}
