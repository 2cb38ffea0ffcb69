//! `wireproof blobs`: the blobs that the records of an archive name.

use std::path::PathBuf;

use ::archive::Archive;
use ::backfill::{BlobFetch, BlobFetchOptions, BlobFinding, BlobSummary, check_blobs};
use atproto::syntax::DidBuf;
use clap::{Args, Subcommand, ValueHint};
use net::http::Limits;
use program::inputs::{InputKind, Inputs};
use program::names;

use crate::archive::arguments::AddressArgs;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::network::{self, ContactArgs, Network, NetworkArgs};
use crate::output::Output;

/// Fetch the blobs that records name, and check them.
///
/// A blob is a file that a record names by the hash of its bytes: a picture or a video. The blobs of an archive are next to its
/// tables, each once for all accounts, and are erased with the last account that has them. `archive verify` hashes them again.
#[derive(Debug, Subcommand)]
pub(crate) enum BlobsCommand {
    Fetch(Box<FetchArgs>),
    Missing(CheckArgs),
    Verify(CheckArgs),
}

/// Fetch the blobs that an archive does not have.
///
/// The newest whole repository of every account in the archive names the blobs, or of the named accounts: if the archive has
/// no whole repository of one, it is fetched, verified and stored first. A blob is stored if its bytes have the hash in its CID.
/// Run the same command again to fetch the missing ones.
///
/// Exit code 1 if a host sent other bytes, 3 if a blob or a repository could not be fetched.
#[derive(Debug, Args)]
#[command(after_help = FETCH_EXAMPLES)]
pub(crate) struct FetchArgs {
    #[command(flatten)]
    selected: SelectedArgs,
    /// A file of `plc mirror` in which keys and hosts are looked up first.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    plc_mirror: Option<PathBuf>,
    /// Maximum number of requests per second to one host, at most 50.
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = network::rate)]
    max_rate: f64,
    /// Maximum number of blobs that are fetched at a time.
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrent_blobs: u16,
    /// Hash the blobs of the archive too, and fetch again what has other bytes.
    #[arg(long)]
    hash: bool,
    /// Maximum size of a blob in bytes [default: 256 MiB].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_blob_bytes: Option<u64>,
    /// Maximum bytes of the blobs that are fetched for one account [default: 64 GiB].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_account_bytes: Option<u64>,
    #[command(flatten)]
    contact: ContactArgs,
}

/// Compare the blobs that records name with the blobs of an archive.
///
/// `missing` looks for them, `verify` hashes them too. Exit code 1 if one has other bytes, 3 if one is missing.
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    selected: SelectedArgs,
}

/// The archive, and the accounts in it.
#[derive(Debug, Args)]
struct SelectedArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// Accounts, or @FILE with one a line [default: all accounts of the archive].
    #[arg(value_name = "DID|HANDLE|@FILE")]
    accounts: Vec<String>,
    /// Show every finding [default: the first 10].
    #[arg(long)]
    all: bool,
    /// Print one JSON document with all findings.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(crate) fn run(command: &BlobsCommand, output: Output) -> Result<(), Failure> {
    follower::keep_memory_small();
    match command {
        BlobsCommand::Fetch(args) => fetch(args, output),
        BlobsCommand::Missing(args) => check(&args.selected, false, output),
        BlobsCommand::Verify(args) => check(&args.selected, true, output),
    }
}

fn fetch(args: &FetchArgs, output: Output) -> Result<(), Failure> {
    let selected = &args.selected;
    let mut options = BlobFetchOptions::default();
    options.accounts = selected.dids()?;
    options.plc_mirror = args.plc_mirror.clone();
    options.max_rate = args.max_rate;
    options.concurrent_blobs = args.concurrent_blobs;
    options.hashes = args.hash;
    options.max_account_bytes = args.max_account_bytes.unwrap_or(options.max_account_bytes);
    let max_bytes = args.max_blob_bytes.unwrap_or(options.limits.max_bytes);
    options.limits = Limits { max_bytes, ..options.limits };
    options.contact = args.contact.clone();
    options.network = selected.network.clone();
    let address = &selected.address;
    let archive = address.erasure_key.add_to(Archive::open(&address.archive)?)?;
    let (sender, found) = std::sync::mpsc::channel();
    let fetch = BlobFetch::new(archive).with_options(options);
    // The run has threads of its own; findings are printed as they come.
    let run = std::thread::spawn(move || {
        fetch.run(move |finding| {
            let _ = sender.send(finding);
        })
    });
    let mut findings = Findings::new(output, selected.json, selected.all);
    for finding in found {
        findings.add(|| finding)?;
    }
    let summary = run.join().map_err(|_| Failure::Local("the run failed".to_owned()))??;
    finish(findings, &summary)
}

fn check(args: &SelectedArgs, hashes: bool, output: Output) -> Result<(), Failure> {
    let accounts = args.dids()?;
    let mut findings = Findings::new(output, args.json, args.all);
    let mut printed = Ok(());
    let on_finding = |finding: BlobFinding| {
        if printed.is_ok() {
            printed = findings.add(|| finding);
        }
    };
    let summary = network::runtime()?.block_on(async {
        let archive = args.address.open().await?;
        check_blobs(&archive, accounts, hashes, on_finding).await
    })?;
    printed?;
    finish(findings, &summary)
}

fn finish(findings: Findings, summary: &BlobSummary) -> Result<(), Failure> {
    findings.finish(summary, BlobSummary::to_text)?;
    summary.result()
}

impl SelectedArgs {
    /// The DIDs of the accounts; handles are looked up.
    fn dids(&self) -> Result<Vec<DidBuf>, Failure> {
        let inputs = Inputs::new(&self.accounts, InputKind::Names);
        let given: Vec<String> =
            inputs.map(|input| input.map(|input| input.name)).collect::<Result<_, _>>()?;
        let mut network = None;
        let mut dids = Vec::new();
        for name in given {
            let account = names::account(&name)?;
            let Some(handle) = account.as_handle() else {
                dids.extend(account.as_did().map(DidBuf::from));
                continue;
            };
            if network.is_none() {
                network = Some((Network::open(&self.network, &[])?, network::runtime()?));
            }
            let Some((network, runtime)) = &network else { continue };
            dids.push(runtime.block_on(network.resolver.resolve_handle(handle))?);
        }
        Ok(dids)
    }
}

const FETCH_EXAMPLES: &str = "\
Examples:
  wireproof blobs fetch archive --contact ops@example.com
  wireproof blobs fetch archive atproto.com did:plc:ewvi7nxzyoun6zhxrhs64oiz --contact ops@example.com
  wireproof blobs fetch s3://bucket/archive @accounts.txt --plc-mirror plc.sqlite --contact ops@example.com";

const CHECK_EXAMPLES: &str = "\
Examples:
  wireproof blobs missing archive --all
  wireproof blobs verify archive atproto.com
  wireproof blobs verify archive --json | jq .missing_count";
