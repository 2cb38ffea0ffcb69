//! The lookup of an account by its handle or DID, with the check of its handle.

use std::sync::Arc;

use atproto::syntax::{AtIdentifier, Did, DidBuf, Handle, HandleBuf};
use crypto::PublicKey;
use net::http::Url;
use net::identity::{Account, IdentityError, IdentityFault, Resolver};
use serde::Serialize;
use tokio::runtime::Runtime;
use verify::identity;

use crate::failure::Failure;
use crate::network::{self, Network};
use crate::stage::{Stage, StageTimer, Stages};

/// An account with the result of its handle check.
#[derive(Debug)]
pub struct ResolvedAccount {
    account: Arc<Account>,
    /// The verified handle, or why there is none.
    handle: Result<HandleBuf, IdentityError>,
    /// The directory that was trusted for the DID document; `None` for a did:web, whose host serves it.
    directory: Option<String>,
}

impl ResolvedAccount {
    /// Resolves the account and checks its handle, and times the stages.
    ///
    /// # Errors
    /// If there is no such account, or it cannot be looked up.
    pub async fn find(
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
    ///
    /// # Errors
    /// If there is no such account, it cannot be looked up, or it does not claim the handle.
    pub fn look_up(
        network: &Network,
        runtime: &Runtime,
        who: AtIdentifier<'_>,
        stages: &mut Stages,
    ) -> Result<Self, Failure> {
        let account = runtime.block_on(Self::find(network, who, stages))?;
        account.check_claims(who)?;
        Ok(account)
    }

    /// Checks that the account claims the handle by which it was looked up.
    ///
    /// # Errors
    /// If it does not.
    pub fn check_claims(&self, who: AtIdentifier<'_>) -> Result<(), Failure> {
        match &self.handle {
            Err(error) if who.as_handle().is_some() => Err(error.clone().into()),
            _ => Ok(()),
        }
    }

    /// Its DID.
    pub fn did(&self) -> Did<'_> {
        self.account.did()
    }

    /// The account's signing key.
    ///
    /// # Errors
    /// If its document has none, or one that is not valid.
    pub fn key(&self) -> Result<PublicKey, Failure> {
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

    /// The account, its key, and the server to ask: `from`, or else its own.
    ///
    /// # Errors
    /// If its document has no valid key, or names no server and `from` is none.
    pub fn signer(&self, from: Option<&Url>) -> Result<Signer, Failure> {
        let host = from.map_or_else(|| self.host(), Ok)?.clone();
        Ok(Signer { did: self.did().to_buf(), key: self.key()?, host })
    }

    /// The account's server.
    ///
    /// # Errors
    /// If its document names none.
    pub fn host(&self) -> Result<&Url, Failure> {
        let missing = || {
            let did = self.did();
            Failure::Refused(format!("{did}: the DID document names no server (PDS)"))
        };
        self.account.host.as_ref().ok_or_else(missing)
    }
}

/// The inputs of a proof of an account's data.
#[derive(Clone, Debug)]
pub struct Signer {
    /// The account.
    pub did: DidBuf,
    /// Its signing key.
    pub key: PublicKey,
    /// The server that has its data.
    pub host: Url,
}

/// The account that a handle leads to, and that claims it.
///
/// # Errors
/// If there is none.
pub async fn claimant(resolver: &Resolver, who: AtIdentifier<'_>) -> Result<DidBuf, Failure> {
    let Some(handle) = who.as_handle() else {
        return Ok(who.as_did().expect("an identifier that is no handle is a DID").to_buf());
    };
    let did = resolver.resolve_handle(handle).await?;
    claimed(&*resolver.account(did.as_did()).await?, handle)?;
    Ok(did)
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
    if claimed.as_ref() == Some(&handle) {
        Ok(handle)
    } else {
        Err(IdentityError {
            subject: handle.as_str().into(),
            host: None,
            fault: IdentityFault::OtherHandle,
        })
    }
}

/// The report, as JSON and text, of an account.
#[derive(Debug, Serialize)]
pub struct AccountSummary {
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
    /// The summary of a resolved account.
    pub fn new(ResolvedAccount { account, handle, directory }: &ResolvedAccount) -> Self {
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
    pub fn directory_text(&self) -> &str {
        self.plc.as_deref().unwrap_or("none: the host of the did:web serves its document")
    }

    /// The handle, and whether it is verified.
    pub fn handle_text(&self) -> String {
        match (&self.handle, &self.handle_error) {
            (Some(handle), _) => format!("{handle}, verified"),
            (None, error) => format!("not verified: {}", error.as_deref().unwrap_or_default()),
        }
    }

    /// For a person.
    pub fn to_text(&self) -> String {
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
