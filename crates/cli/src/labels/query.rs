//! `wireproof labels query`.

use clap::Args;
use label_follower::Query;

use crate::failure::Failure;
use crate::log::{self, Level};
use crate::names;
use crate::network::{LazyNetwork, NetworkArgs};
use crate::output::Output;

use super::verify::LabelPrinter;

/// Ask a labeler for the labels of subjects, and print them with their verdicts.
///
/// Exit code 1 if a label is refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueryArgs {
    /// The labeler.
    #[arg(value_name = "DID|HANDLE")]
    who: String,
    /// Subjects: at:// URIs and DIDs, or their beginnings with a star at the end.
    #[arg(value_name = "URI|URI*", required = true)]
    patterns: Vec<String>,
    /// Maximum number of labels.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(super) fn run(args: &QueryArgs, output: Output) -> Result<(), Failure> {
    let who = names::account(&args.who)?;
    let network = LazyNetwork::new(&args.network, &[], false);
    let online = network.open()?;
    let query = Query {
        patterns: args.patterns.clone(),
        max_labels: args.limit,
        accept_earlier_keys: false,
    };
    let mut printer = LabelPrinter::new(output);
    let end = online.runtime.block_on(async {
        let labeler = label_follower::find(&online.network.resolver, who).await?;
        query.run(&online.network, &labeler, |line| printer.print(line)).await
    })?;
    if end.has_more {
        let text = "the labeler has more labels: raise --limit, or narrow the subjects";
        log::print(Level::Warning, text)?;
    }
    printer.finish()
}

const EXAMPLES: &str = "\
Examples:
  wireproof labels query moderation.bsky.app did:plc:ewvi7nxzyoun6zhxrhs64oiz
  wireproof labels query moderation.bsky.app 'at://did:plc:ewvi7nxzyoun6zhxrhs64oiz/*'";
