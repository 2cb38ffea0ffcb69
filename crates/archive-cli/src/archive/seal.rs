//! `wireproof archive seal`: moves the events of the write-ahead log into the tables.

use std::path::{Path, PathBuf};

use archive::{Archive, NoConfirmation, Wal, WalOptions};
use clap::{Args, ValueHint};
use serde::Serialize;

use super::arguments::AddressArgs;
use crate::failure::Failure;
use crate::follow::{seal_all, wal_folder};
use crate::output::Output;
use crate::progress::ProgressLine;

/// Move the events of the write-ahead log into the tables.
///
/// `archive follow` does so every hour, and when it ends. Use this command after a crash, or before you switch off the
/// machine. It asks no server, so events of an erased account are dropped even if the account is active again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SealArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// Folder of the write-ahead log [default: wal in the archive's folder].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_ARCHIVE_WAL", value_hint = ValueHint::DirPath)]
    wal: Option<PathBuf>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

impl SealArgs {
    /// The archive. One whose first events are still in the log has no tables yet.
    async fn open(&self) -> Result<Archive, Failure> {
        let address = &self.address.archive;
        let beside = || Path::new(address.strip_prefix("file://").unwrap_or(address)).join("wal");
        if self.wal.clone().unwrap_or_else(beside).is_dir() {
            return self.address.erasure_key.add_to(Archive::open(address)?);
        }
        self.address.open().await
    }
}

pub(super) async fn run(args: &SealArgs, output: Output) -> Result<(), Failure> {
    let archive = args.open().await?;
    archive.check_logs().await?;
    let folder = wal_folder(args.wal.as_deref(), &archive)?;
    let (wal, dropped_bytes) = Wal::open(&folder, WalOptions::default())?;
    let mut progress = ProgressLine::new();
    progress.step(format!("{} events", wal.unsealed().events));
    let sealed = progress.during(seal_all(&wal, &archive, &NoConfirmation)).await?;
    progress.end();
    let summary = SealSummary {
        event_count: sealed.events,
        stored_files: sealed.files,
        stored_bytes: sealed.bytes,
        dropped_bytes,
    };
    output.document(&summary, args.json, SealSummary::to_text)
}

/// The report, as JSON and text, of a sealing.
#[derive(Debug, Serialize)]
struct SealSummary {
    event_count: u64,
    stored_files: u64,
    stored_bytes: u64,
    /// Bytes of events that a crash cut off, which were never acknowledged.
    dropped_bytes: u64,
}

impl SealSummary {
    fn to_text(&self) -> String {
        let dropped = match self.dropped_bytes {
            0 => String::new(),
            bytes => format!(
                "{bytes} bytes of an incomplete group were dropped: its events were not acknowledged\n"
            ),
        };
        format!(
            "{dropped}{} events sealed: {} bytes in {} files\n",
            self.event_count, self.stored_bytes, self.stored_files
        )
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof archive seal archive
  wireproof archive seal archive --json | jq .event_count";
