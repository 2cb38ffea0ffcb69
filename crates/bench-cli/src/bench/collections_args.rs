//! Arguments of `wireproof bench collections`.

use clap::Args;
use simnet::random::DEFAULT_SEED;

/// Measure what one collection takes of many repositories: bytes and requests, next to the whole repositories.
///
/// Generates repositories one at a time from a seed, with a median of 1 MB and some of 100 MB and more. One record in 200 is in
/// the wanted collection. The collection of each is fetched from a server on loopback as `follow --collections` and `verify
/// --collection` fetch it, and proved. The server counts its answers too: a difference is an error.
///
/// The last rows apply another rule to the same repositories: the whole repository if the root of its tree is in layer 2 or below.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CollectionsArgs {
    /// Number of repositories.
    #[arg(long, value_name = "N", default_value = "20000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(super) repositories: u32,
    /// Most records of a repository, about 420 bytes each.
    #[arg(long, value_name = "N", default_value = "524288", value_parser = clap::value_parser!(u32).range(1..=4_000_000))]
    pub(super) most_records: u32,
    /// Seed of the repositories.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_SEED)]
    pub(super) seed: u64,
    /// Measure 400 repositories of at most 20,000 records, to check that everything works.
    #[arg(long, conflicts_with_all = ["repositories", "most_records"])]
    pub(super) quick: bool,
    /// Print one JSON document.
    #[arg(long)]
    pub(super) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  wireproof bench collections --quick
  wireproof bench collections --repositories 2000 --json | jq .total";
