//! Arguments of `wireproof bench archive`, which is built with the feature `archive`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Measure archives: bytes of the full and the compact form, and the speed of proofs and queries.
///
/// Archives the frames that `bench commit` measures, with the repositories of their accounts, and commits of accounts
/// that begin with them, in full and in compact form. Prints the bytes per commit next to the size of the same frames
/// under zstd. `archive verify` of both forms is measured in turn with the verdicts of `bench commit full/batch`, on
/// one core, from files that are cached. Queries are measured on all cores, over operations of unsigned commits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ArchiveArgs {
    /// More frames to archive, from captures, with one file of --keys per file.
    #[arg(long, value_name = "FRAMES", requires = "keys", value_hint = ValueHint::FilePath)]
    pub(super) frames: Vec<PathBuf>,
    /// The keys of their accounts, in the same order: JSON, an object of DID to did:key, or an array of objects with did and
    /// didDoc.
    #[arg(long, value_name = "accounts.json", requires = "frames", value_hint = ValueHint::FilePath)]
    pub(super) keys: Vec<PathBuf>,
    /// Number of measured passes, after one warm-up pass.
    #[arg(long, value_name = "N", default_value = "5")]
    pub(super) passes: NonZeroU32,
    /// Number of operations that are queried, in thousands [default: 10000, with --quick 100].
    #[arg(long, value_name = "THOUSANDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) operations: Option<u32>,
    /// Use a corpus a tenth the size, to check that everything works.
    #[arg(long)]
    pub(super) quick: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(super) json: bool,
    /// Folder for the archives, which are deleted at the end [default: as in `bench`].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_BENCH_WORK_DIR", value_hint = ValueHint::DirPath)]
    pub(super) work_dir: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  wireproof bench archive
  wireproof bench archive --frames capture/firehose-frames.bin --keys capture/accounts.json
  wireproof bench archive --quick --json | jq '.corpora[0].full_bytes'";
