//! Arguments of `wireproof capture`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};

use crate::follow::FromArgs;

/// Writes what a stream tells now to files that `bench` and `inspect` read.
///
/// firehose-frames.bin has the commits that change records, in the order in which they came, as they
/// came: nothing of them is checked. A description lies beside it.
///
/// With --sigs the keys of their accounts are looked up. They go to accounts.json, and the signed commit
/// objects to signed-commits.bin, without those whose key is not to be had or did not sign them: how
/// many these are is told.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CaptureArgs {
    /// How long to listen, from the first event on.
    #[arg(long, env = "WIREPROOF_SECONDS", value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) seconds: u64,
    /// How many bytes of frames to take at most; they are kept in memory until the end.
    #[arg(long, env = "WIREPROOF_CAPTURE_BYTES", value_name = "N", default_value_t = 1 << 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) capture_bytes: u64,
    /// Looks up the keys of accounts, and keeps the commits that they signed.
    #[arg(long, env = "WIREPROOF_SIGS", value_parser = FalseyValueParser::new())]
    pub(crate) sigs: bool,
    /// The folder to write to, made if it is not there.
    #[arg(long, env = "WIREPROOF_OUT", value_name = "DIR", default_value = ".")]
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) from: FromArgs,
}

const EXAMPLES: &str = "\
Examples:
  wireproof capture --seconds 60 --out corpus
  wireproof capture --sigs --out corpus && wireproof bench decode commit sigs --corpus corpus
  wireproof inspect corpus/firehose-frames.bin --limit 3";
