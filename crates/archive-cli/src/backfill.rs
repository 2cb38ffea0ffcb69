//! `wireproof backfill`: the arguments of [`backfill`].

use std::path::PathBuf;
use std::time::Duration;

use ::archive::{Archive, Ledger};
use ::backfill::{Backfill, BackfillOptions, Selection, Summary, read_hosts};
use atproto::syntax::CollectionPatternBuf;
use clap::{Args, Subcommand, ValueHint};
use net::http::Url;

use crate::erasure_key::ErasureKeyArgs;
use crate::failure::Failure;
use crate::network::{self, ContactArgs, DownloadArgs, NetworkArgs};
use crate::output::Output;

/// Fetch the repositories of all accounts of hosts, verify them, and store them in an archive.
///
/// The hosts list their accounts; with --collections and --relay, the relay lists them. A repository is fetched from the host that
/// its account's DID document names, at a rate that adapts to that host, and skipped if the archive has its revision.
/// With --collections, only the part of it is fetched that proves these collections complete.
/// The lists are swept again at the end, up to three times in all, for accounts that failed, have moved or are new.
/// After a stop or a crash, run the same command again: it continues where the last run stopped.
///
/// Exit code 1 if a repository was refused, 3 if a host or an account could not be read.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXAMPLES)]
pub(crate) struct BackfillArgs {
    #[command(subcommand)]
    command: Option<BackfillCommand>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Subcommand)]
enum BackfillCommand {
    Status(StatusArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// The archive: a folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. It is created
    /// if it is missing; a bucket is not.
    #[arg(long, value_name = "ARCHIVE", env = "WIREPROOF_ARCHIVE")]
    to: Option<String>,
    #[command(flatten)]
    erasure_key: ErasureKeyArgs,
    /// The hosts, one per line: names or URLs.
    #[arg(long, value_name = "FILE|-", conflicts_with = "relay", value_hint = ValueHint::FilePath)]
    hosts: Option<PathBuf>,
    /// The relay whose hosts are read; with names in --collections, the relay that lists the accounts that have them.
    #[arg(long, value_name = "URL")]
    relay: Option<Url>,
    /// Only these collections, such as app.bsky.feed.post, or app.bsky.graph.* for all below this name.
    #[arg(long, value_name = "NSID", value_delimiter = ',')]
    collections: Vec<CollectionPatternBuf>,
    /// Fetch whole repositories of the accounts with --collections.
    #[arg(long, requires = "collections")]
    whole: bool,
    /// Only these accounts, one DID per line.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    dids: Option<PathBuf>,
    /// Accounts and hosts to leave out: a DID or the name of a host per line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    exclude: Option<PathBuf>,
    /// Look up keys and hosts in this file of `plc mirror` first, then in the directory.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    plc_mirror: Option<PathBuf>,
    /// The name of the ledger: another name begins another backfill, which skips repositories that the archive has.
    #[arg(long, value_name = "NAME", default_value = "backfill")]
    name: String,
    /// Maximum number of requests per second to one host, at most 50.
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = network::rate)]
    max_rate: f64,
    /// Number of lists that are read at a time.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrent_lists: u16,
    /// Maximum bytes of archives that are received, or wait to be verified and stored; at least --max-bytes and 16 MiB.
    /// They lie in the folder for temporary files [default: 8 GiB].
    #[arg(long, value_name = "N", env = "WIREPROOF_MAX_BYTES_IN_USE")]
    max_bytes_in_use: Option<u64>,
    /// Seconds before the second sweep, if an account or a list failed; before the third, six times as many.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(..=86_400))]
    retry_seconds: u32,
    /// Print one JSON document at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    contact: ContactArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    download: DownloadArgs,
}

/// Show the progress of a backfill from its ledger, even while it runs elsewhere.
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
struct StatusArgs {
    /// The archive, as --to names it.
    #[arg(value_name = "ARCHIVE", env = "WIREPROOF_ARCHIVE")]
    archive: String,
    /// The name of the ledger.
    #[arg(long, value_name = "NAME", default_value = "backfill")]
    name: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &BackfillArgs, output: Output) -> Result<(), Failure> {
    match &args.command {
        Some(BackfillCommand::Status(args)) => {
            network::runtime()?.block_on(print_status(args, output))
        }
        None => start(&args.run, output),
    }
}

async fn print_status(args: &StatusArgs, output: Output) -> Result<(), Failure> {
    let archive = Archive::open(&args.archive)?;
    archive.check_logs().await?;
    let summary = Summary::read(&Ledger::new(&archive, &args.name)?).await?;
    output.document(&summary, args.json, Summary::to_text)
}

fn start(args: &RunArgs, output: Output) -> Result<(), Failure> {
    let to = args.to.as_deref().ok_or_else(|| missing("--to ARCHIVE"))?;
    if args.hosts.is_none() && args.relay.is_none() {
        return Err(missing("--hosts FILE or --relay URL"));
    }
    let hosts = args.hosts.as_deref().map(read_hosts).transpose()?.unwrap_or_default();
    let mut options = BackfillOptions::default();
    options.hosts = hosts;
    options.relay = args.relay.clone();
    options.collections = args.collections.clone();
    options.is_whole = args.whole;
    options.selection = Selection::read(args.dids.as_deref(), args.exclude.as_deref())?;
    options.plc_mirror = args.plc_mirror.clone();
    options.name = args.name.clone();
    options.max_rate = args.max_rate;
    options.concurrent_lists = args.concurrent_lists;
    options.max_bytes_in_use = args.max_bytes_in_use;
    options.retry_delay = Duration::from_secs(args.retry_seconds.into());
    options.limits = args.download.limits();
    options.contact = args.contact.clone();
    options.network = args.network.clone();
    options.prints_progress = true;
    let archive = args.erasure_key.add_to(Archive::open(to)?)?;
    let summary = Backfill::new(archive).with_options(options).run()?;
    output.document(&summary, args.json, Summary::to_text)?;
    summary.result()
}

fn missing(what: &str) -> Failure {
    Failure::Usage(format!(
        "{what} is required; `backfill status ARCHIVE` shows the progress of a backfill"
    ))
}

const EXAMPLES: &str = "\
Examples:
  wireproof backfill --to archive --hosts hosts.txt --contact ops@example.com
  wireproof backfill --to archive --hosts hosts.txt --collections app.bsky.graph.* --contact ops@example.com
  wireproof backfill --to s3://bucket/archive --relay https://relay.example.com --plc-mirror plc.sqlite
  wireproof backfill status archive";

const STATUS_EXAMPLES: &str = "\
Examples:
  wireproof backfill status archive
  wireproof backfill status s3://bucket/archive --json";
