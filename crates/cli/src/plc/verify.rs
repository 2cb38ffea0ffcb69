//! `wireproof plc verify`: verifies the operation log of a did:plc identity.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use atproto::plc::UnsignedOperation;
use atproto::syntax::DidBuf;
use clap::{Args, ValueHint};
use net::http::Url;
use serde::Serialize;
use verify::checkpoint::{Checkpoint, Proof, verify_proof};
use verify::plc::{self, AcceptedOperation, History, Options};

use super::checkpoint::ExpectedArgs;

use crate::failure::Failure;
use crate::files;
use crate::network;
use crate::output::Output;

/// Verify an operation log, as a directory serves it at /log/audit or /log.
///
/// The first operation must hash to the DID, every later one must be signed by a rotation key of its predecessor, and a
/// fork must come from a key of higher priority within 72 hours. With a checkpoint and a proof, the log must be exactly the
/// history that the checkpoint's operator saw. Exit code 0 if everything holds.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlcVerifyArgs {
    /// The log, a JSON file; `-` for standard input.
    #[arg(value_name = "LOG|-", value_hint = ValueHint::FilePath, required_unless_present = "proof")]
    log: Option<PathBuf>,
    /// Require the log to belong to this DID.
    #[arg(long, value_name = "DID")]
    did: Option<String>,
    /// Require this checkpoint to have exactly the history of the log, an audit log, by --proof; without a log, to have none of
    /// --did.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, requires = "proof")]
    checkpoint: Option<PathBuf>,
    /// The proof, which `plc prove` makes.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, requires = "checkpoint")]
    proof: Option<PathBuf>,
    #[command(flatten)]
    expected: ExpectedArgs,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PlcVerifyArgs, output: Output) -> Result<(), Failure> {
    let mut options = Options::default();
    options.did = did(args)?;
    let checked = output.or_failure_document(args.json, check(args, &options))?;
    match checked {
        Ok(summary) => output.document(&summary, args.json, VerifySummary::to_text),
        Err(Rejected { name, code, message }) => {
            let refused = format!("{name}: refused ({code}): {message}");
            if args.json {
                let findings = [RefusedLog { code, message }];
                output.document(&Refused { findings }, true, |_| String::new())?;
            }
            Err(Failure::Refused(refused))
        }
    }
}

/// A log or a proof that is refused.
struct Rejected {
    name: String,
    code: &'static str,
    message: String,
}

impl Rejected {
    fn of(file: &Path, code: &'static str, why: &dyn Display) -> Self {
        Self { name: files::name(file).to_string(), code, message: why.to_string() }
    }
}

/// Verifies the log, and the proof if there is one.
fn check(
    args: &PlcVerifyArgs,
    options: &Options,
) -> Result<Result<VerifySummary, Rejected>, Failure> {
    let history = match &args.log {
        None => None,
        Some(file) => match plc::verify(&read(file, options)?, options) {
            Ok(history) => Some(history),
            Err(why) => return Ok(Err(Rejected::of(file, why.code(), &why))),
        },
    };
    let checkpoint = match (&args.checkpoint, &args.proof) {
        (Some(checkpoint), Some(proof)) => {
            let verified = args.expected.read(checkpoint)?;
            let json = files::read_at_most(proof, MAX_PROOF_BYTES)?;
            let did = match (&history, &options.did) {
                (Some(history), _) => history.did().to_buf(),
                (None, Some(did)) => did.clone(),
                (None, None) => return Err(Failure::Usage(WITHOUT_DID.to_owned())),
            };
            let verdict = Proof::parse(&json)
                .and_then(|of| verify_proof(&of, &verified, did.as_did(), history.as_ref()));
            if let Err(why) = verdict {
                return Ok(Err(Rejected::of(proof, why.code(), &why)));
            }
            Some(CheckpointSummary::new(did, &verified, history.is_none()))
        }
        _ => None,
    };
    Ok(Ok(VerifySummary { history: history.as_deref().map(HistorySummary::new), checkpoint }))
}

fn read(file: &Path, options: &Options) -> Result<Vec<u8>, Failure> {
    let log = files::read_at_most(file, options.limits.log_bytes)?;
    files::refuse_wrapping(files::name(file), &log)?;
    Ok(log)
}

/// The report, as JSON and text, of a valid log and a valid proof.
#[derive(Serialize)]
struct VerifySummary {
    #[serde(flatten)]
    history: Option<HistorySummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<CheckpointSummary>,
}

/// The part of the report on a checkpoint.
#[derive(Serialize)]
struct CheckpointSummary {
    did: String,
    directory: String,
    key: String,
    created_at: String,
    cursor: u64,
    /// Whether the checkpoint is proved to have no history of the account.
    is_absent: bool,
}

impl CheckpointSummary {
    fn new(did: DidBuf, checkpoint: &Checkpoint, is_absent: bool) -> Self {
        let content = checkpoint.content();
        Self {
            did: did.to_string(),
            directory: content.directory.clone(),
            key: content.key.clone(),
            created_at: content.created_at.as_str().to_owned(),
            cursor: content.cursor,
            is_absent,
        }
    }
}

impl VerifySummary {
    fn to_text(&self) -> String {
        let mut text = self.history.as_ref().map_or(String::new(), HistorySummary::to_text);
        if let Some(CheckpointSummary { did, directory, key, created_at, cursor, is_absent }) =
            &self.checkpoint
        {
            let what = if *is_absent { "no history of it" } else { "exactly this history" };
            text += &format!(
                "{did}: the checkpoint has {what}\n{directory} up to {cursor}, signed on {created_at} by {key}\n"
            );
        }
        text
    }
}

/// The report, as JSON, of a refused log.
#[derive(Serialize)]
struct Refused {
    findings: [RefusedLog; 1],
}

#[derive(Serialize)]
struct RefusedLog {
    code: &'static str,
    message: String,
}

fn did(args: &PlcVerifyArgs) -> Result<Option<DidBuf>, Failure> {
    let Some(text) = &args.did else { return Ok(None) };
    text.parse().map(Some).map_err(|error| Failure::Usage(format!("--did {text}: {error}")))
}

/// The report, as JSON and text, of a valid history.
#[derive(Serialize)]
pub(super) struct HistorySummary {
    did: String,
    tombstoned: bool,
    claimed_handle: Option<String>,
    signing_key: Option<String>,
    pds: Option<String>,
    rotation_keys: Vec<String>,
    operations: Vec<OperationSummary>,
}

#[derive(Serialize)]
struct OperationSummary {
    cid: String,
    action: &'static str,
    /// Index of the signing key among the rotation keys of the predecessor.
    rotation_key_index: usize,
    nullified: bool,
}

impl HistorySummary {
    pub(super) fn new(history: &History) -> Self {
        let data = history.data();
        Self {
            did: history.did().to_string(),
            tombstoned: history.is_tombstoned(),
            claimed_handle: data.and_then(|data| data.handle()).map(|handle| handle.to_string()),
            signing_key: history.signing_key().map(|key| key.to_did_key()),
            pds: data.and_then(|data| data.host()).map(origin),
            rotation_keys: data.map_or(Vec::new(), |data| data.rotation_keys.clone()),
            operations: history.operations().iter().map(OperationSummary::new).collect(),
        }
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = format!("{}: valid\n", self.did);
        for (index, operation) in self.operations.iter().enumerate() {
            let OperationSummary { cid, action, rotation_key_index: key, nullified } = operation;
            let nullified = if *nullified { ", nullified" } else { "" };
            text += &format!("  {index:>3} {action:<9} {cid} by rotation key {key}{nullified}\n");
        }
        if self.tombstoned {
            return text + "the identity is tombstoned\n";
        }
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let [handle, key, pds] = [&self.claimed_handle, &self.signing_key, &self.pds].map(or_none);
        text += &format!("handle       {handle}\nsigning key  {key}\npds          {pds}\n");
        for key in &self.rotation_keys {
            text += &format!("rotation key {key}\n");
        }
        text
    }
}

impl OperationSummary {
    fn new(accepted: &AcceptedOperation) -> Self {
        Self {
            cid: accepted.cid.to_string(),
            action: match accepted.operation.unsigned() {
                UnsignedOperation::Update(_) => "update",
                UnsignedOperation::Tombstone { .. } => "tombstone",
                UnsignedOperation::Create(_) => "create",
            },
            rotation_key_index: accepted.signer,
            nullified: accepted.nullified,
        }
    }
}

/// The origin of a server's endpoint; an endpoint that is no URL as it is.
fn origin(endpoint: &str) -> String {
    Url::parse(endpoint).map_or_else(|_| endpoint.to_owned(), |url| network::origin(&url))
}

const WITHOUT_DID: &str =
    "without a log, --did names the account that the checkpoint must not have";

/// Maximum length of a proof that is read, in bytes.
const MAX_PROOF_BYTES: usize = 64 << 10;

const EXAMPLES: &str = "\
Examples:
  wireproof plc verify log.json
  curl -s https://plc.directory/$DID/log/audit | wireproof plc verify - --did $DID
  wireproof plc verify log.json --checkpoint checkpoint.json --proof proof.json --checkpoint-key $KEY";
