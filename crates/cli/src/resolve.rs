//! `wireproof resolve`.

use std::io::Write;

use clap::Args;
use codec::printable::PrintableLines;
use serde::Serialize;

use crate::account::{AccountSummary, ResolvedAccount};
use crate::batch::{self, JobsArgs, Outcome};
use crate::failure::Failure;
use crate::inputs::{InputKind, Inputs};
use crate::names;
use crate::network::{LazyNetwork, NetworkArgs};
use crate::output::{Output, write_json_line};
use crate::stage::Stages;

/// Resolve a handle or a DID to the account: DID, handle, server, signing key.
///
/// Handles are looked up in the DNS and at their host; the DNS takes precedence. DIDs are looked up in the did:plc
/// directory or at their host. A handle is verified if it leads to the DID and the DID document claims it. Exit code 1
/// if the account does not exist, or does not claim the given handle. You can still resolve an account without a
/// verified handle by its DID.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResolveArgs {
    /// The accounts; @LIST is a file with one per line, - is a list on standard input.
    #[arg(value_name = "HANDLE|DID|@LIST|-", required = true)]
    who: Vec<String>,
    /// Print one JSON document; for several accounts, one per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    jobs: JobsArgs,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(crate) fn run(args: &ResolveArgs, output: Output) -> Result<(), Failure> {
    let inputs = Inputs::new(&args.who, InputKind::Names);
    let network = LazyNetwork::new(&args.network, &[], false);
    let Some(who) = inputs.single() else {
        return batch::run(inputs, &args.jobs, "resolved", args.json, output, |who| {
            resolve_one(who, &network, args.json)
        });
    };
    let resolved = output.or_failure_document(args.json, Resolution::of(who, &network));
    let (resolution, claims) = resolved?;
    output.document(&resolution, args.json, Resolution::to_text)?;
    claims
}

/// Resolves one account among others.
fn resolve_one(who: &str, network: &LazyNetwork<'_>, json: bool) -> Result<Outcome, Failure> {
    #[derive(Serialize)]
    struct ResolutionLine<'a> {
        target: &'a str,
        #[serde(flatten)]
        resolution: Option<&'a Resolution>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    }
    let (resolution, result) = match Resolution::of(who, network) {
        Ok((resolution, claims)) => (Some(resolution), claims),
        Err(failure) => (None, Err(failure)),
    };
    let mut printed = Vec::new();
    if json {
        let error = result.as_ref().err().and_then(Failure::message);
        let resolution = resolution.as_ref();
        write_json_line(&mut printed, &ResolutionLine { target: who, resolution, error })?;
    } else if let Some(resolution) = resolution {
        write!(printed, "{}", PrintableLines(&format!("{}\n", resolution.account.to_text())))?;
    }
    Ok(Outcome { printed, result })
}

/// An account and the time of every stage.
#[derive(Serialize)]
struct Resolution {
    #[serde(flatten)]
    account: AccountSummary,
    stages: Stages,
}

impl Resolution {
    /// Resolves an account, and whether it claims the given handle.
    fn of(who: &str, network: &LazyNetwork<'_>) -> Result<(Self, Result<(), Failure>), Failure> {
        let (who, mut stages) = (names::account(who)?, Stages::default());
        let online = network.open()?;
        let lookup = ResolvedAccount::find(&online.network, who, &mut stages);
        let account = online.runtime.block_on(lookup)?;
        let claims = account.check_claims(who);
        Ok((Self { account: AccountSummary::new(&account), stages }, claims))
    }

    fn to_text(&self) -> String {
        format!("{}\n{}", self.account.to_text(), self.stages.to_table())
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof resolve atproto.com
  wireproof resolve did:plc:ewvi7nxzyoun6zhxrhs64oiz --json | jq -r .signing_key
  wireproof resolve @handles.txt --json | jq -r 'select(.error == null) | .did'
  wireproof resolve ada.test --plc http://localhost:4480 --development-port 4481";
