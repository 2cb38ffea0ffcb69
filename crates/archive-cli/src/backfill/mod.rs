//! `wireproof backfill`: the repositories of all accounts of hosts, verified, into an archive.
//!
//! ```text
//! hosts ── lists.rs: pages of accounts ── account.rs: key, host, download ── part.rs: proof, tables ── ledger
//! ```
//!
//! A page of a list is the unit of work: its repositories are in the tables of the archive before its row is in the ledger, which
//! lies beside them. So a run that ends at any time goes on with the page after the last row, and takes from that page what
//! the tables do not have yet.

mod account;
mod identities;
mod lease;
mod lists;
mod part;
mod place;
mod progress;
mod run;
mod selection;
mod stored;
mod summary;

use std::path::PathBuf;
use std::time::Duration;

use archive::{Archive, Ledger};
use atproto::syntax::NsidBuf;
use clap::{Args, Subcommand, ValueHint};
use net::http::Url;
use net::xrpc::{PaceOptions, PacedClient};

use crate::archive::ErasureKeyArgs;
use crate::failure::Failure;
use crate::network::{self, ContactArgs, DownloadArgs, Network, NetworkArgs};
use crate::output::Output;
use identities::Identities;
use lease::Holder;
use run::{Run, RunParts};
use selection::Selection;
use summary::Summary;

/// Fetch the repositories of all accounts of hosts, verify them, and store them in an archive.
///
/// Accounts are listed by each host, or by a relay for --collections; each repository is fetched from the host that its
/// account's DID document names, at a rate that adapts to that host. A repository whose revision the archive has is skipped. The
/// lists are swept again at the end, up to three times in all, for accounts that failed, have moved or are new. After any end, the
/// same command goes on where the last one has stopped.
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
    /// The hosts, one a line: names or URLs.
    #[arg(long, value_name = "FILE|-", conflicts_with = "relay", value_hint = ValueHint::FilePath)]
    hosts: Option<PathBuf>,
    /// The relay whose hosts are read; with --collections, the one that lists their accounts.
    #[arg(long, value_name = "URL")]
    relay: Option<Url>,
    /// Only accounts that have records in these collections, by the relay.
    #[arg(long, value_name = "NSID", value_delimiter = ',', requires = "relay")]
    collections: Vec<NsidBuf>,
    /// Only these accounts, one DID a line.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    dids: Option<PathBuf>,
    /// Neither these accounts nor accounts of these hosts: a DID or the name of a host a line.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    exclude: Option<PathBuf>,
    /// Look up keys and hosts in this file of `plc mirror` first, and in the directory what it does not have.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    plc_mirror: Option<PathBuf>,
    /// The name of the ledger: another name begins another backfill, which skips what the archive has.
    #[arg(long, value_name = "NAME", default_value = "backfill")]
    name: String,
    /// Maximum number of requests a second to one host, at most 50.
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

/// Show how far a backfill is, from its ledger, also while it runs elsewhere.
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
    let hosts = args.hosts.as_deref().map(lists::read_hosts).transpose()?.unwrap_or_default();
    let selection = Selection::read(args.dids.as_deref(), args.exclude.as_deref())?;
    let named: Vec<Url> = hosts.iter().chain(&args.relay).cloned().collect();
    let network = Network::open_with_contact(&args.network, &args.contact, &named)?;
    let archive = args.erasure_key.add_to(Archive::open(to)?)?;
    let ledger = Ledger::new(&archive, &args.name)?;
    // Collections share accounts, each of which is fetched for the first list that has it.
    let concurrent_lists = if args.collections.is_empty() { args.concurrent_lists } else { 1 };
    let (pace, limits) = (PaceOptions::default(), args.download.limits());
    let max_bytes_in_use =
        args.max_bytes_in_use.unwrap_or(pace.max_bytes_in_use.max(2 * limits.max_bytes));
    if max_bytes_in_use < limits.max_bytes.saturating_add(MIN_OTHER_BYTES) {
        return Err(Failure::Usage(format!(
            "--max-bytes-in-use {max_bytes_in_use} has no room for an archive of --max-bytes {} and {MIN_OTHER_BYTES} bytes of others",
            limits.max_bytes
        )));
    }
    let max_archive_bytes = limits.max_bytes;
    let pace = PaceOptions { max_rate: args.max_rate, max_bytes_in_use, max_archive_bytes, ..pace };
    let run = Run::new(RunParts {
        identities: Identities::new(args.plc_mirror.as_deref(), &network)?,
        client: PacedClient::new(network.xrpc, &pace),
        limits,
        archive,
        ledger,
        holder: Holder::new()?,
        selection,
        concurrent_lists: concurrent_lists.into(),
        retry_delay: Duration::from_secs(args.retry_seconds.into()),
    });
    let source =
        lists::Source { hosts, relay: args.relay.clone(), collections: args.collections.clone() };
    let summary = run.complete(source)?;
    output.document(&summary, args.json, Summary::to_text)?;
    summary.result()
}

fn missing(what: &str) -> Failure {
    Failure::Usage(format!(
        "{what} is required; `backfill status ARCHIVE` shows how far a backfill is"
    ))
}

/// Bytes for other archives than the largest.
const MIN_OTHER_BYTES: u64 = 16 << 20;

const EXAMPLES: &str = "\
Examples:
  wireproof backfill --to archive --hosts hosts.txt --contact ops@example.com
  wireproof backfill --to s3://bucket/archive --relay https://relay.example.com --plc-mirror plc.sqlite
  wireproof backfill status archive";

const STATUS_EXAMPLES: &str = "\
Examples:
  wireproof backfill status archive
  wireproof backfill status s3://bucket/archive --json";
