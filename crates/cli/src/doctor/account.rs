//! `wireproof doctor DID|HANDLE`: arguments, and the order of the requests.

use std::path::PathBuf;
use std::time::Duration;

use atproto::syntax::DidBuf;
use clap::{Args, ValueHint};
use store::StateReader;

use super::evidence::{Evidence, Questions, within};
use super::findings::{Kind, diagnose};
use super::report::Report;
use crate::failure::Failure;
use crate::names;
use crate::network::{self, Network, NetworkArgs};
use crate::output::Output;
use crate::stream::{DEFAULT_RELAY, Hosts};
use follower::state_folder;

#[derive(Debug, Args)]
pub(super) struct AccountArgs {
    /// The account.
    #[arg(value_name = "DID|HANDLE", required = true)]
    who: Option<String>,
    /// A relay to compare with the account's server; can be repeated [default: bsky.network].
    #[arg(long, env = "WIREPROOF_HOST", value_name = "URL", value_delimiter = ',')]
    host: Vec<String>,
    /// The state folder of `follow` [default: its default folder, if there is one].
    #[arg(long, env = "WIREPROOF_STATE", value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
    /// Seconds for which relays and the state may stay behind the account's server.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=600))]
    wait_seconds: u64,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(super) fn run(args: &AccountArgs, output: Output) -> Result<(), Failure> {
    let state = open_state(args)?;
    let hosts = Hosts::new(&args.host, DEFAULT_RELAY)?;
    let network = Network::open(&args.network, &hosts.urls)?;
    let evidence = network::runtime()?.block_on(gather(args, &network, &hosts, state))?;
    let findings = diagnose(&evidence);
    let summary = findings.iter().map(|found| found.code).collect::<Vec<_>>().join(", ");
    let is_wrong = findings.iter().any(|found| found.kind == Kind::Wrong);
    let report = Report::new(&evidence, findings);
    output.document(&report, args.json, Report::to_text)?;
    match (summary.is_empty(), is_wrong) {
        (true, _) => Ok(()),
        (_, true) => Err(Failure::Refused(format!("{}: {summary}", evidence.did))),
        (_, false) => Err(Failure::Network(format!("{}: {summary}", evidence.did))),
    }
}

/// The state file in the given folder, or in the default one if it has one.
fn open_state(args: &AccountArgs) -> Result<Option<StateReader>, Failure> {
    let path = match &args.state {
        Some(folder) => folder.join(STATE_FILE),
        None => match state_folder(None).map(|folder| folder.join(STATE_FILE)) {
            Ok(path) if path.exists() => path,
            _ => return Ok(None),
        },
    };
    Ok(Some(StateReader::open(&path)?))
}

/// Asks the directory, then the account's server, and then the places that should have the server's state.
async fn gather(
    args: &AccountArgs,
    network: &Network,
    hosts: &Hosts,
    state: Option<StateReader>,
) -> Result<Evidence, Failure> {
    let who = args.who.as_deref().unwrap_or_default();
    let given = names::account(who)?;
    let did = match given.as_handle() {
        Some(handle) => within(network.resolver.resolve_handle(handle))
            .await
            .map_err(|_| Failure::Network(format!("{who}: no answer about the handle")))??,
        None => DidBuf::from(given.as_did().expect("an identifier that is no handle is a DID")),
    };
    let questions = Questions::new(network, did.as_did());
    let identity = questions.identity(given.as_handle()).await;
    let server = questions.server(&identity).await;
    let newest = server.as_ref().and_then(|server| server.newest());
    let wait = Duration::from_secs(args.wait_seconds);
    let relays = questions.relays(&hosts.names, &identity, newest, wait).await;
    let state = match state {
        Some(state) => Some(questions.state(&state, newest, wait).await?),
        None => None,
    };
    Ok(Evidence { did, identity, server, relays, state })
}

const STATE_FILE: &str = "state.sqlite";
