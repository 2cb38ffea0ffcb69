//! `wireproof plc lookup`: the verified history of an account in a mirror.

use std::path::PathBuf;

use atproto::syntax::DidBuf;
use clap::{Args, ValueHint};
use serde::Serialize;
use store::{PlcMirrorReader, RefusedOperation};

use super::verify::HistorySummary;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Print the history of an account in a mirror, verified again from its first operation on.
///
/// Exit code 1 if the mirror has no operation of the account. The mirror can be read while `plc mirror` writes it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LookupArgs {
    /// The account.
    #[arg(value_name = "DID")]
    did: DidBuf,
    /// The file of the mirror.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    from: PathBuf,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &LookupArgs, output: Output) -> Result<(), Failure> {
    let summary = output.or_failure_document(args.json, look_up(args))?;
    output.document(&summary, args.json, LookupSummary::to_text)
}

fn look_up(args: &LookupArgs) -> Result<LookupSummary, Failure> {
    let (mirror, did) = (PlcMirrorReader::open(&args.from)?, args.did.as_did());
    let Some(history) = mirror.history(did)? else {
        let cursor = mirror.totals()?.cursor;
        let file = files::name(&args.from);
        return Err(Failure::Refused(format!("{file}: no operation of {did} up to {cursor}")));
    };
    Ok(LookupSummary {
        history: HistorySummary::new(&history),
        cursor: mirror.totals()?.cursor,
        refused: mirror.refused(did)?.into_iter().map(RefusedSummary::from).collect(),
    })
}

/// The report, as JSON and text, of an account in a mirror.
#[derive(Serialize)]
struct LookupSummary {
    #[serde(flatten)]
    history: HistorySummary,
    /// The number of the last operation that the mirror has read.
    cursor: u64,
    /// Operations of the account that the directory has and that break a rule.
    refused: Vec<RefusedSummary>,
}

#[derive(Serialize)]
struct RefusedSummary {
    seq: u64,
    code: String,
    message: String,
}

impl From<RefusedOperation> for RefusedSummary {
    fn from(refused: RefusedOperation) -> Self {
        let RefusedOperation { seq, code, message, .. } = refused;
        Self { seq, code, message }
    }
}

impl LookupSummary {
    fn to_text(&self) -> String {
        let mut text = self.history.to_text();
        for RefusedSummary { seq, code, message } in &self.refused {
            text += &format!("operation {seq} of the directory is refused ({code}): {message}\n");
        }
        text + &format!("the mirror is at {}\n", self.cursor)
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof plc lookup did:plc:ewvi7nxzyoun6zhxrhs64oiz --from plc.sqlite";
