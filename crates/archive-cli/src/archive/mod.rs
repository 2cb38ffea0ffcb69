//! `wireproof archive`: verified history in open tables, which can be proved again.

mod archived_lines;
mod compact;
mod erasure_key;
mod hide;
mod import;
mod query;
mod replay;
mod seal;
mod serve;
mod stats;
mod verify;

use archive::Archive;
use atproto::syntax::{Datetime, Did};
use clap::{Args, Subcommand};

pub(crate) use self::erasure_key::ErasureKeyArgs;
use crate::failure::Failure;
use crate::follow::{ArchiveFollowArgs, run_to_archive};
use crate::network;
use crate::output::Output;

/// Keep verified history in open tables, and prove it again.
#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    Follow(Box<ArchiveFollowArgs>),
    Import(import::ImportArgs),
    Seal(seal::SealArgs),
    Compact(compact::CompactArgs),
    Thin(compact::ThinArgs),
    Verify(verify::ArchiveVerifyArgs),
    Stats(stats::StatsArgs),
    Replay(replay::ReplayArgs),
    Serve(serve::ServeArgs),
    Query(query::QueryArgs),
    Hide(hide::HideArgs),
    Unhide(hide::UnhideArgs),
    Erase(hide::EraseArgs),
}

/// The archive.
#[derive(Debug, Args)]
pub(crate) struct AddressArgs {
    /// The archive: a folder, file:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. Object stores
    /// take their options from the environment: AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, AWS_REGION and so on.
    #[arg(value_name = "ARCHIVE", env = "WIREPROOF_ARCHIVE")]
    archive: String,
    #[command(flatten)]
    erasure_key: ErasureKeyArgs,
}

impl AddressArgs {
    /// Opens an archive that is there.
    async fn open(&self) -> Result<Archive, Failure> {
        self.erasure_key.add_to(Archive::open_existing(&self.archive).await?)
    }
}

pub(crate) fn run(command: ArchiveCommand, output: Output) -> Result<(), Failure> {
    let runtime = match command {
        ArchiveCommand::Follow(args) => return run_to_archive(*args),
        ArchiveCommand::Query(args) => return query::run(&args, output),
        _ => network::runtime()?,
    };
    match &command {
        ArchiveCommand::Follow(_) => Ok(()),
        ArchiveCommand::Query(_) => Ok(()),
        ArchiveCommand::Import(args) => runtime.block_on(import::run(args, output)),
        ArchiveCommand::Seal(args) => runtime.block_on(seal::run(args, output)),
        ArchiveCommand::Compact(args) => runtime.block_on(compact::compact(args, output)),
        ArchiveCommand::Thin(args) => runtime.block_on(compact::thin(args, output)),
        ArchiveCommand::Verify(args) => runtime.block_on(verify::run(args, output)),
        ArchiveCommand::Stats(args) => runtime.block_on(stats::run(args, output)),
        ArchiveCommand::Replay(args) => runtime.block_on(replay::run(args, output)),
        ArchiveCommand::Serve(args) => runtime.block_on(serve::run(args, output)),
        ArchiveCommand::Hide(args) => runtime.block_on(hide::hide(args, output)),
        ArchiveCommand::Unhide(args) => runtime.block_on(hide::unhide(args, output)),
        ArchiveCommand::Erase(args) => runtime.block_on(hide::erase(args, output)),
    }
}

fn checked_did(text: &str) -> Result<String, Failure> {
    Did::parse(text).map_err(|error| Failure::Usage(format!("--did {text}: {error}")))?;
    Ok(text.to_owned())
}

/// A time as microseconds since 1970.
fn parse_time(text: &str) -> Result<i64, String> {
    Datetime::parse(text).map(|time| time.unix_micros()).map_err(|error| error.to_string())
}

/// Microseconds since 1970, as archives have them.
pub(crate) fn now_micros() -> i64 {
    i64::try_from(base::now_micros()).unwrap_or(i64::MAX)
}
