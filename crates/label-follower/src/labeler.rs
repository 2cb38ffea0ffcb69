//! A labeler: its DID, and the service that its DID document names.

use std::sync::Arc;

use atproto::syntax::{AtIdentifier, Did, DidBuf};
use net::http::Url;
use net::identity::{Account, IdentityError, Resolver};
use program::failure::Failure;

/// A labeler and its service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Labeler {
    /// Its DID.
    pub did: DidBuf,
    /// Its service: scheme, host and port.
    pub host: Url,
}

impl Labeler {
    /// The origin of its service: scheme, host, and a port that is not the usual one.
    pub fn origin(&self) -> String {
        self.host.origin().ascii_serialization()
    }

    /// The URL of a method of its service.
    pub(crate) fn method(&self, name: &str) -> Url {
        let mut url = self.host.clone();
        url.set_path(&format!("/xrpc/{name}"));
        url
    }
}

/// Finds the labeler with this DID or handle.
///
/// # Errors
/// If it cannot be looked up, does not claim the handle, or its document names no service for labels.
pub async fn find(resolver: &Resolver, who: AtIdentifier<'_>) -> Result<Labeler, Failure> {
    let account = account(resolver, who).await?;
    let did = account.did();
    let named = account.document.labeler().and_then(|host| host.parse().ok());
    let host = named.ok_or_else(|| {
        Failure::Refused(format!(
            "{did}: the DID document names no service for labels (#atproto_labeler)"
        ))
    })?;
    Ok(Labeler { did: did.to_buf(), host })
}

async fn account(
    resolver: &Resolver,
    who: AtIdentifier<'_>,
) -> Result<Arc<Account>, IdentityError> {
    match (who.as_handle(), who.as_did()) {
        (Some(handle), _) => {
            let identity = resolver.identity_of_handle(handle).await?;
            identity.handle.map(|_| identity.account)
        }
        (None, did) => {
            let did: Did<'_> = did.expect("an identifier that is no handle is a DID");
            resolver.account(did).await
        }
    }
}
