//! Who is the account behind a DID or a handle?
//!
//! | asked | answered by |
//! |---|---|
//! | `did:plc:…` | the directory |
//! | `did:web:host` | `https://host/.well-known/did.json`, not redirected |
//! | a handle | the DNS (TXT records of `_atproto.<handle>`) and `https://<handle>/.well-known/atproto-did` |
//!
//! A handle is verified when it leads to the DID and the DID's document claims it; an account whose
//! handle is not verified is an account all the same. A [`Resolver`] remembers answers, asks once when
//! many want to know the same, and goes on with what it knows while a directory is down.
//!
//! What an answer may look like is the business of [`atproto::did_document`].

mod error;
mod handle;
mod location;
mod memory;
mod options;
mod resolver;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use atproto::did_document::DidDocument;
use atproto::syntax::{Did, Handle, HandleBuf};
use crypto::PublicKey;
use reqwest::Url;

pub use error::{IdentityError, IdentityFault};
pub use options::Options;
pub use resolver::{Resolver, ResolverStats};

/// What an account's DID document says.
#[derive(Clone, Debug)]
pub struct Account {
    /// The key that signs its repository. `None` if the document has none, or none that is one: then
    /// [`verify::identity::signing_key`] tells why.
    pub key: Option<PublicKey>,
    /// Where it is hosted, if the document says so.
    pub host: Option<Url>,
    /// The document. The handle in it is a claim.
    pub document: DidDocument,
}

/// An account and its handle.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What its DID document says.
    pub account: Arc<Account>,
    /// The handle that it claims and that leads to it, in lower case, or why there is none. In that
    /// case its handle is to be shown as `handle.invalid`.
    pub handle: Result<HandleBuf, IdentityError>,
}

impl Account {
    fn new(document: DidDocument) -> Self {
        let key = verify::identity::signing_key(&document).ok().flatten();
        let host = document.host().and_then(|host| host.parse().ok());
        Self { key, host, document }
    }

    /// The DID.
    pub fn did(&self) -> Did<'_> {
        self.document.did()
    }
}

impl Identity {
    /// The DID.
    pub fn did(&self) -> Did<'_> {
        self.account.did()
    }

    /// The handle to show: the verified one, or `handle.invalid`.
    pub fn display_handle(&self) -> Handle<'_> {
        self.handle.as_ref().map_or(Handle::INVALID, HandleBuf::as_handle)
    }
}
