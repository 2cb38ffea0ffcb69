//! `wireproof plc verify`: verifies the operation log of a did:plc identity.

use std::path::PathBuf;

use atproto::plc::UnsignedOperation;
use atproto::syntax::DidBuf;
use clap::{Args, ValueHint};
use net::http::Url;
use serde::Serialize;
use verify::plc::{self, AcceptedOperation, History, Options};

use crate::failure::Failure;
use crate::files;
use crate::network;
use crate::output::Output;

/// Verify an operation log, as a directory serves it at /log/audit or /log.
///
/// The first operation must hash to the DID, every later one must be signed by a rotation key of its predecessor, and a
/// fork must come from a key of higher priority within 72 hours. Exit code 0 if everything holds.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlcVerifyArgs {
    /// The log, a JSON file; `-` for standard input.
    #[arg(value_name = "LOG|-", value_hint = ValueHint::FilePath)]
    log: PathBuf,
    /// Require the log to belong to this DID.
    #[arg(long, value_name = "DID")]
    did: Option<String>,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &PlcVerifyArgs, output: Output) -> Result<(), Failure> {
    let mut options = Options::default();
    options.did = did(args)?;
    let log = output.or_failure_document(args.json, read(args, &options))?;
    match plc::verify(&log, &options) {
        Ok(history) => {
            output.document(&HistorySummary::new(&history), args.json, HistorySummary::to_text)
        }
        Err(rejection) => {
            let (code, message) = (rejection.code(), rejection.to_string());
            let refused = format!("{}: refused ({code}): {message}", files::name(&args.log));
            if args.json {
                let findings = [RefusedLog { code, message }];
                output.document(&Refused { findings }, true, |_| String::new())?;
            }
            Err(Failure::Refused(refused))
        }
    }
}

fn read(args: &PlcVerifyArgs, options: &Options) -> Result<Vec<u8>, Failure> {
    let log = files::read_at_most(&args.log, options.limits.log_bytes)?;
    files::refuse_wrapping(files::name(&args.log), &log)?;
    Ok(log)
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

const EXAMPLES: &str = "\
Examples:
  wireproof plc verify log.json
  curl -s https://plc.directory/$DID/log/audit | wireproof plc verify - --did $DID";
