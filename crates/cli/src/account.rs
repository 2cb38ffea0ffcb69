//! Who is it? The way from a handle or a DID to an account, step by step.

use std::sync::Arc;

use serde::Serialize;
use wireproof::atproto::syntax::{AtIdentifier, Did, Handle, HandleBuf};
use wireproof::crypto::PublicKey;
use wireproof::net::http::Url;
use wireproof::net::identity::{Account, IdentityError, IdentityFault, Resolver};
use wireproof::verify::identity;

use crate::failure::Failure;
use crate::stage::{Stage, Stages, Watch};

/// An account that was found, and how.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) account: Arc<Account>,
    /// The handle that is verified, or why there is none.
    pub(crate) handle: Result<HandleBuf, IdentityError>,
}

/// Reads a handle or a DID.
pub(crate) fn identifier(text: &str) -> Result<AtIdentifier<'_>, Failure> {
    let told = |error| Failure::Usage(format!("{text}: neither a DID nor a handle: {error}"));
    AtIdentifier::parse(text).map_err(told)
}

/// Who it is, by way of the handle if that is what is known.
pub(crate) async fn find(
    resolver: &Resolver,
    who: AtIdentifier<'_>,
    stages: &mut Stages,
) -> Result<Found, IdentityError> {
    let watch = Watch::start(stages);
    match (who.as_did(), who.as_handle()) {
        (Some(did), _) => by_did(resolver, did, watch).await,
        (None, Some(handle)) => by_handle(resolver, handle, watch).await,
        (None, None) => unreachable!("an identifier is a DID or a handle"),
    }
}

async fn by_did(
    resolver: &Resolver,
    did: Did<'_>,
    mut watch: Watch<'_>,
) -> Result<Found, IdentityError> {
    let account = resolver.account(did).await?;
    watch.ended(Stage::ResolveDid);
    let handle = resolver.identity(did).await?.handle;
    watch.ended(Stage::CheckHandle);
    Ok(Found { account, handle })
}

async fn by_handle(
    resolver: &Resolver,
    handle: Handle<'_>,
    mut watch: Watch<'_>,
) -> Result<Found, IdentityError> {
    let did = resolver.resolve_handle(handle).await?;
    watch.ended(Stage::ResolveHandle);
    let account = resolver.account(did.as_did()).await?;
    watch.ended(Stage::ResolveDid);
    Ok(Found { handle: claimed(&account, handle), account })
}

/// The handle that led to the account, if the account claims it.
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

impl Found {
    /// Whoever is asked for by handle must claim it.
    pub(crate) fn must_claim(&self, who: AtIdentifier<'_>) -> Result<(), Failure> {
        match &self.handle {
            Err(error) if who.as_handle().is_some() => Err(error.clone().into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn did(&self) -> Did<'_> {
        self.account.did()
    }

    /// The key that signs for the account, or why there is none.
    pub(crate) fn key(&self) -> Result<PublicKey, Failure> {
        let did = self.did();
        match identity::signing_key(&self.account.document) {
            Ok(Some(key)) => Ok(key),
            Ok(None) => {
                Err(Failure::Refused(format!("{did}: the document names no key for repositories")))
            }
            Err(error) => Err(Failure::Refused(format!(
                "{did}: the document's key for repositories: {error}"
            ))),
        }
    }

    /// Where the account is hosted.
    pub(crate) fn host(&self) -> Result<&Url, Failure> {
        let did = self.did();
        let none =
            || Failure::Refused(format!("{did}: the document names no server of the account"));
        self.account.host.as_ref().ok_or_else(none)
    }
}

/// What is told of an account.
#[derive(Debug, Serialize)]
pub(crate) struct Told {
    pub(crate) did: String,
    pub(crate) handle: Option<String>,
    /// Why there is no verified handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    handle_fault: Option<String>,
    claimed_handle: Option<String>,
    pds: Option<String>,
    signing_key: Option<String>,
}

impl Told {
    pub(crate) fn of(Found { account, handle }: &Found) -> Self {
        Self {
            did: account.did().to_string(),
            handle: handle.as_ref().ok().map(ToString::to_string),
            handle_fault: handle.as_ref().err().map(ToString::to_string),
            claimed_handle: account.document.handle().map(|handle| handle.to_string()),
            pds: account.host.as_ref().map(|host| host.origin().ascii_serialization()),
            signing_key: account.key.as_ref().map(|key| key.to_did_key()),
        }
    }

    /// Whether there is a handle, and why not.
    pub(crate) fn handle_text(&self) -> String {
        match (&self.handle, &self.handle_fault) {
            (Some(handle), _) => format!("{handle}, verified"),
            (None, fault) => format!("not verified: {}", fault.as_deref().unwrap_or_default()),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
        let Self { did, pds, signing_key, .. } = self;
        let (handle, pds, key) = (self.handle_text(), or_none(pds), or_none(signing_key));
        format!(
            "did          {did}\nhandle       {handle}\nserver       {pds}\nsigning key  {key}\n"
        )
    }
}
