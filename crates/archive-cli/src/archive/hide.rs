//! `wireproof archive hide`, `unhide` and `erase`: hides content of an archive from readers, or erases it.

use std::path::{Path, PathBuf};

use archive::{Archive, Subject};
use atproto::syntax::{Nsid, RecordKey};
use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;

use super::arguments::{AddressArgs, checked_did};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::ProgressLine;
use program::clock::now_micros;

/// Hide an account or a record from readers.
///
/// Replay and readers leave out hidden accounts and records. Their bytes stay, and `archive verify` proves them. A
/// frame with a hidden record is left out as a whole. Other programs that open the tables see all rows: the table
/// `hidden` lists the accounts and records to leave out.
#[derive(Debug, Args)]
#[command(after_help = HIDE_EXAMPLES)]
pub(crate) struct HideArgs {
    #[command(flatten)]
    subject: SubjectArgs,
}

/// Show a hidden account or record again.
#[derive(Debug, Args)]
#[command(after_help = UNHIDE_EXAMPLES)]
pub(crate) struct UnhideArgs {
    #[command(flatten)]
    subject: SubjectArgs,
}

#[derive(Debug, Args)]
struct SubjectArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// The account.
    #[arg(long, value_name = "DID")]
    did: String,
    /// The record: COLLECTION/RKEY [default: the whole account].
    #[arg(long, value_name = "PATH")]
    record: Option<String>,
    /// The reason, which is recorded.
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// Erase an account.
///
/// Readers leave the account out immediately, its rows are removed from every table, with the labels about it, and the files that held them are
/// deleted, and so are blobs that no other account has. Only a hash of the DID under the secret of --erasure-key remains, with reason and time. Events of the
/// account that arrive again are dropped when the write-ahead log is sealed, until a later event arrives and the
/// account's own server confirms to `archive follow` that the account is active. Keep the secret: without it, nothing
/// more can be stored in the archive. A write-ahead log has the account's events until it is sealed: by the run within
/// --seal-minutes, or by `archive seal`.
#[derive(Debug, Args)]
#[command(after_help = ERASE_EXAMPLES)]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    address: AddressArgs,
    /// The account.
    #[arg(long, value_name = "DID")]
    did: String,
    /// Folder of the write-ahead log of an archive that has no tables yet [default: wal in the archive's folder].
    #[arg(long, value_name = "DIR", env = "WIREPROOF_ARCHIVE_WAL", value_hint = ValueHint::DirPath)]
    wal: Option<PathBuf>,
    /// Why the account is erased.
    #[arg(long, value_enum, value_name = "REASON", default_value_t = Reason::Deleted)]
    reason: Reason,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

impl EraseArgs {
    /// The archive. One whose first events are still in the write-ahead log has no tables yet.
    async fn open(&self) -> Result<Archive, Failure> {
        let AddressArgs { archive: address, erasure_key } = &self.address;
        let beside = || Path::new(address.strip_prefix("file://").unwrap_or(address)).join("wal");
        let archive = if self.wal.clone().unwrap_or_else(beside).is_dir() {
            Archive::open(address)?
        } else {
            Archive::open_existing(address).await?
        };
        erasure_key.create_for(archive)
    }
}

/// Why an account is erased.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Reason {
    /// Its owner deleted it.
    Deleted,
    /// A host or a court took it down.
    Takedown,
}

impl SubjectArgs {
    fn subject(&self) -> Result<Subject, Failure> {
        let did = checked_did(&self.did)?;
        let Some(path) = &self.record else { return Ok(Subject::Account(did)) };
        let parts = path.split_once('/').filter(|(collection, rkey)| {
            Nsid::parse(collection).is_ok() && RecordKey::parse(rkey).is_ok()
        });
        let (collection, rkey) = parts
            .ok_or_else(|| Failure::Usage(format!("--record {path}: expected COLLECTION/RKEY")))?;
        Ok(Subject::Record { did, collection: collection.to_owned(), rkey: rkey.to_owned() })
    }
}

pub(super) async fn hide(args: &HideArgs, output: Output) -> Result<(), Failure> {
    let args = &args.subject;
    let archive = args.address.open().await?;
    let subject = args.subject()?;
    archive.hide(&subject, &args.reason, now_micros()).await?;
    print(args, "hidden", output)
}

pub(super) async fn unhide(args: &UnhideArgs, output: Output) -> Result<(), Failure> {
    let args = &args.subject;
    let archive = args.address.open().await?;
    let subject = args.subject()?;
    archive.unhide(&subject, &args.reason, now_micros()).await?;
    print(args, "shown", output)
}

fn print(args: &SubjectArgs, state: &'static str, output: Output) -> Result<(), Failure> {
    let summary = HideSummary { did: &args.did, record: args.record.as_deref(), state };
    output.document(&summary, args.json, HideSummary::to_text)
}

pub(super) async fn erase(args: &EraseArgs, output: Output) -> Result<(), Failure> {
    let archive = args.open().await?;
    let did = checked_did(&args.did)?;
    let reason = match args.reason {
        Reason::Deleted => "deleted",
        Reason::Takedown => "takedown",
    };
    let mut progress = ProgressLine::new();
    progress.step("erasing".to_owned());
    let erased = progress.during(archive.erase(&did, reason, now_micros())).await?;
    progress.end();
    let summary = EraseSummary {
        row_count: erased.rows,
        file_count: erased.files,
        blob_count: erased.blobs,
        bytes: erased.bytes,
        ledger_row_count: erased.ledger_rows,
        uncommitted_file_count: erased.uncommitted_files,
        reason,
    };
    output.document(&summary, args.json, EraseSummary::to_text)
}

/// The report, as JSON and text, of a change of the hide list.
#[derive(Debug, Serialize)]
struct HideSummary<'a> {
    did: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'a str>,
    state: &'static str,
}

impl HideSummary<'_> {
    fn to_text(&self) -> String {
        let record = self.record.map(|record| format!("/{record}")).unwrap_or_default();
        format!("{}{record}: {}\n", self.did, self.state)
    }
}

/// The report, as JSON and text, of an erasure.
#[derive(Debug, Serialize)]
struct EraseSummary {
    row_count: u64,
    file_count: u64,
    /// Blobs that no other account has.
    blob_count: u64,
    bytes: u64,
    /// Rows of ledgers of backfills that named the account.
    ledger_row_count: u64,
    /// Files of the last day that no log names, which can have rows of the account.
    uncommitted_file_count: u64,
    reason: &'static str,
}

impl EraseSummary {
    fn to_text(&self) -> String {
        let uncommitted = match self.uncommitted_file_count {
            0 => String::new(),
            count => format!(
                "{count} files of the last day are not in a log: their writer is still at work, or has ended. Erase the account \
                 again in a day\n"
            ),
        };
        format!(
            "{} rows erased ({}): {} files rewritten, {} blobs deleted, {} bytes less\n{uncommitted}",
            self.row_count, self.reason, self.file_count, self.blob_count, self.bytes
        )
    }
}

const HIDE_EXAMPLES: &str = "\
Examples:
  wireproof archive hide archive --did did:plc:ewvi7nxzyoun6zhxrhs64oiz
  wireproof archive hide archive --did did:web:alice.example --record app.bsky.feed.post/3jt5tqkl6pb2x --reason 'court order'";

const UNHIDE_EXAMPLES: &str = "\
Examples:
  wireproof archive unhide archive --did did:plc:ewvi7nxzyoun6zhxrhs64oiz";

const ERASE_EXAMPLES: &str = "\
Examples:
  wireproof archive erase archive --did did:plc:ewvi7nxzyoun6zhxrhs64oiz
  wireproof archive erase archive --did did:web:alice.example --reason takedown --json";
