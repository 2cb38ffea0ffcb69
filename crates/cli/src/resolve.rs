//! `wireproof resolve`, and the account lookup that `verify` and `bench verify` begin with.

use std::io::Write;
use std::sync::Arc;

use atproto::syntax::{AtIdentifier, Did, DidBuf, Handle, HandleBuf};
use clap::Args;
use codec::printable::PrintableLines;
use crypto::PublicKey;
use net::http::Url;
use net::identity::{Account, IdentityError, IdentityFault};
use serde::Serialize;
use tokio::runtime::Runtime;
use verify::identity;

use crate::batch::{self, JobsArgs, Outcome};
use crate::failure::Failure;
use crate::inputs::{InputKind, Inputs};
use crate::network::{self, LazyNetwork, Network, NetworkArgs};
use crate::output::{Output, write_json_line};
use crate::stage::{Stage, StageTimer, Stages};

/// Resolve a handle or a DID to the account: DID, handle, server, signing key.
///
/// A handle is looked up in the DNS and at its host, and the DNS takes precedence; a DID in the did:plc
/// directory or at its host. A handle is verified if it leads to the DID and the DID document claims it.
/// Exit code 1 if there is no such account, or if the account does not claim the given handle. An account
/// without a verified handle is still resolved by its DID.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResolveArgs {
    /// The accounts; @LIST names one a line, - is a list on standard input.
    #[arg(value_name = "HANDLE|DID|@LIST|-", required = true)]
    who: Vec<String>,
    /// Print one JSON document; of several accounts one a line.
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

/// An account and the time that each stage took.
#[derive(Serialize)]
struct Resolution {
    #[serde(flatten)]
    account: AccountSummary,
    stages: Stages,
}

impl Resolution {
    /// Resolves an account, and whether it claims the given handle.
    fn of(who: &str, network: &LazyNetwork<'_>) -> Result<(Self, Result<(), Failure>), Failure> {
        let (who, mut stages) = (identifier(who)?, Stages::default());
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

/// Parses a handle or a DID.
pub(crate) fn identifier(text: &str) -> Result<AtIdentifier<'_>, Failure> {
    let usage = |error| Failure::Usage(format!("{text}: neither a DID nor a handle: {error}"));
    AtIdentifier::parse(text).map_err(usage)
}

/// An account with the result of its handle check.
#[derive(Debug)]
pub(crate) struct ResolvedAccount {
    account: Arc<Account>,
    /// The verified handle, or why there is none.
    handle: Result<HandleBuf, IdentityError>,
    /// The directory that was trusted for the DID document; `None` for a did:web, whose host serves it.
    directory: Option<String>,
}

impl ResolvedAccount {
    /// Resolves the account and checks its handle, and times the stages.
    async fn find(
        network: &Network,
        who: AtIdentifier<'_>,
        stages: &mut Stages,
    ) -> Result<Self, IdentityError> {
        let (resolver, mut timer) = (&network.resolver, StageTimer::start(stages));
        let Some(handle) = who.as_handle() else {
            let did = who.as_did().expect("an identifier that is no handle is a DID");
            let account = resolver.account(did).await?;
            timer.finish(Stage::ResolveDid);
            let handle = resolver.identity(did).await?.handle;
            timer.finish(Stage::CheckHandle);
            return Ok(Self { directory: directory_of(network, &account), account, handle });
        };
        let did = resolver.resolve_handle(handle).await?;
        timer.finish(Stage::ResolveHandle);
        let account = resolver.account(did.as_did()).await?;
        timer.finish(Stage::ResolveDid);
        let directory = directory_of(network, &account);
        Ok(Self { handle: claimed(&account, handle), account, directory })
    }

    /// Resolves the account, and refuses it if it does not claim the given handle.
    pub(crate) fn look_up(
        network: &Network,
        runtime: &Runtime,
        who: AtIdentifier<'_>,
        stages: &mut Stages,
    ) -> Result<Self, Failure> {
        let account = runtime.block_on(Self::find(network, who, stages))?;
        account.check_claims(who)?;
        Ok(account)
    }

    fn check_claims(&self, who: AtIdentifier<'_>) -> Result<(), Failure> {
        match &self.handle {
            Err(error) if who.as_handle().is_some() => Err(error.clone().into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn did(&self) -> Did<'_> {
        self.account.did()
    }

    /// The account's signing key.
    pub(crate) fn key(&self) -> Result<PublicKey, Failure> {
        let did = self.did();
        match identity::signing_key(&self.account.document) {
            Ok(Some(key)) => Ok(key),
            Ok(None) => {
                Err(Failure::Refused(format!("{did}: the DID document has no signing key")))
            }
            Err(error) => Err(Failure::Refused(format!(
                "{did}: the signing key of the DID document: {error}"
            ))),
        }
    }

    /// The account's server.
    pub(crate) fn host(&self) -> Result<&Url, Failure> {
        let missing = || {
            let did = self.did();
            Failure::Refused(format!("{did}: the DID document names no server (PDS)"))
        };
        self.account.host.as_ref().ok_or_else(missing)
    }
}

/// The account that a handle leads to, and that claims it.
pub(crate) async fn claimant(network: &Network, who: AtIdentifier<'_>) -> Result<DidBuf, Failure> {
    let account = ResolvedAccount::find(network, who, &mut Stages::default()).await?;
    account.check_claims(who)?;
    Ok(account.did().to_buf())
}

/// The directory that served the account's document.
fn directory_of(network: &Network, account: &Account) -> Option<String> {
    let url = network.directory.as_str().trim_end_matches('/');
    account.did().is_plc().then(|| url.to_owned())
}

/// The given handle, if the account claims it.
fn claimed(account: &Account, handle: Handle<'_>) -> Result<HandleBuf, IdentityError> {
    let handle = handle.to_normalized();
    let claimed = account.document.handle().map(Handle::to_normalized);
    match claimed.as_ref() == Some(&handle) {
        true => Ok(handle),
        false => Err(IdentityError {
            subject: handle.as_str().into(),
            host: None,
            fault: IdentityFault::OtherHandle,
        }),
    }
}

/// What JSON and text say of an account.
#[derive(Debug, Serialize)]
pub(crate) struct AccountSummary {
    did: String,
    /// The verified handle.
    handle: Option<String>,
    /// Why no handle is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    handle_error: Option<String>,
    claimed_handle: Option<String>,
    pds: Option<String>,
    signing_key: Option<String>,
    /// URL of the trusted directory; `None` for a did:web.
    plc: Option<String>,
}

impl AccountSummary {
    pub(crate) fn new(ResolvedAccount { account, handle, directory }: &ResolvedAccount) -> Self {
        Self {
            did: account.did().to_string(),
            handle: handle.as_ref().ok().map(ToString::to_string),
            handle_error: handle.as_ref().err().map(ToString::to_string),
            claimed_handle: account.document.handle().map(|handle| handle.to_string()),
            pds: account.host.as_ref().map(network::origin),
            signing_key: account.key.as_ref().map(|key| key.to_did_key()),
            plc: directory.clone(),
        }
    }

    /// The source of the DID document, which the proof trusts.
    pub(crate) fn directory_text(&self) -> &str {
        self.plc.as_deref().unwrap_or("none: the host of the did:web serves its document")
    }

    pub(crate) fn handle_text(&self) -> String {
        match (&self.handle, &self.handle_error) {
            (Some(handle), _) => format!("{handle}, verified"),
            (None, error) => format!("not verified: {}", error.as_deref().unwrap_or_default()),
        }
    }

    fn to_text(&self) -> String {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let (handle, did) = (self.handle_text(), &self.did);
        let [pds, key] = [&self.pds, &self.signing_key].map(or_none);
        format!(
            "did          {did}\nhandle       {handle}\npds          {pds}\nsigning key  {key}\n\
             directory    {}\n",
            self.directory_text()
        )
    }
}

const EXAMPLES: &str = "\
Examples:
  wireproof resolve atproto.com
  wireproof resolve did:plc:ewvi7nxzyoun6zhxrhs64oiz --json | jq -r .signing_key
  wireproof resolve @handles.txt --json | jq -r 'select(.error == null) | .did'
  wireproof resolve ada.test --plc http://localhost:4480 --development-port 4481";
