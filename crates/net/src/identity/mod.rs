//! Identity resolution: the DID document behind a DID or a handle, verified in both directions, and cached.
//!
//! | name | source |
//! |---|---|
//! | `did:plc:…` | the PLC directory |
//! | `did:web:host` | `https://host/.well-known/did.json`, without redirects |
//! | a handle | DNS (TXT records of `_atproto.<handle>`) and `https://<handle>/.well-known/atproto-did` |
//!
//! A handle is verified when it resolves to the DID and the DID document claims it; an account without a
//! verified handle is still valid. A [`Resolver`] caches answers, coalesces concurrent lookups, and uses
//! stale answers while a directory is down, but none that was purged.
//!
//! DID documents are parsed by [`atproto::did_document`].

mod cache;
mod lookup;
mod resolver;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use atproto::did_document::{DidDocument, DidDocumentError};
use atproto::syntax::{Did, DidBuf, Handle, HandleBuf};
use crypto::PublicKey;
use reqwest::Url;

use crate::dns::DnsError;
use crate::http::{HttpError, HttpFault};
use crate::rate_limit::RateLimited;

pub use resolver::{Resolver, ResolverStats};

/// Options of a [`Resolver`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// URL of the PLC directory. `https://plc.directory`.
    pub directory: Url,
    /// Port of handles and `did:web` hosts under `.test`, without TLS, with
    /// [`EgressPolicy::Loopback`](crate::egress::EgressPolicy::Loopback). None.
    pub development_port: Option<u16>,
    /// How long an answer is fresh. 24 hours.
    pub ttl: Duration,
    /// How long the failure of a handle is fresh. 5 minutes.
    pub invalid_handle_ttl: Duration,
    /// How long another failure is fresh, and a stale answer that is used in an outage. 2 minutes.
    pub error_ttl: Duration,
    /// How long an outage without an earlier answer is fresh: only callers that wait for the same lookup share
    /// it. Half a second.
    pub outage_ttl: Duration,
    /// Minimum time between two forced lookups of one DID. 5 minutes.
    pub min_refresh_interval: Duration,
    /// Maximum number of purges of one DID within [`Options::purge_window`]; further ones take effect at the end
    /// of the window. 10.
    pub max_purges: u32,
    /// Window of [`Options::max_purges`]. One minute.
    pub purge_window: Duration,
    /// Maximum number of concurrent requests to hosts of handles and `did:web` under one domain. 16.
    pub max_concurrent_per_domain: usize,
    /// Maximum number of concurrent requests to all of them. 256.
    pub max_concurrent: usize,
    /// Maximum number of cached DIDs, and of cached handles. 250,000.
    pub capacity: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            directory: "https://plc.directory".parse().expect("a URL"),
            development_port: None,
            ttl: Duration::from_secs(24 * 3600),
            invalid_handle_ttl: Duration::from_secs(5 * 60),
            error_ttl: Duration::from_secs(2 * 60),
            outage_ttl: Duration::from_millis(500),
            min_refresh_interval: Duration::from_secs(5 * 60),
            max_purges: 10,
            purge_window: Duration::from_secs(60),
            max_concurrent_per_domain: 16,
            max_concurrent: 256,
            capacity: 250_000,
        }
    }
}

/// An account, as its DID document describes it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The key that signs its repository; `None` if the document has no usable key. The reason is returned by
    /// [`verify::identity::signing_key`].
    pub key: Option<PublicKey>,
    /// The PDS that hosts it, if the document names one.
    pub host: Option<Url>,
    /// The document. The handle in it is a claim.
    pub document: DidDocument,
}

/// An account and its handle.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The account.
    pub account: Arc<Account>,
    /// The verified handle in lower case, or why there is none; then the account is displayed as
    /// `handle.invalid`.
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

    /// The handle to display: the verified one, or `handle.invalid`.
    pub fn display_handle(&self) -> Handle<'_> {
        self.handle.as_ref().map_or(Handle::INVALID, HandleBuf::as_handle)
    }
}

/// Why a DID or a handle could not be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityError {
    /// The DID or handle.
    pub subject: Box<str>,
    /// The host that was asked, if any.
    pub host: Option<Box<str>>,
    /// The fault.
    pub fault: IdentityFault,
}

/// A fault of an identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityFault {
    /// A DID of a method other than `plc` and `web`.
    #[error("unsupported DID method: use `plc` or `web`")]
    Method,
    /// An identifier that the method does not allow for an account: `did:plc:` without 24 characters of
    /// base32, or `did:web:` with more than a host name.
    #[error("the DID method does not allow this identifier for an account")]
    Identifier,
    /// A `did:web:` with capital letters. Its normal form is another DID, so that no account has two.
    #[error("not the normal form of a did:web: write it in lower case")]
    NotNormal,
    /// A name under a reserved top-level domain.
    #[error("the top-level domain is reserved")]
    Reserved,
    /// The source does not know the name.
    #[error("not found")]
    NotFound,
    /// The account was deleted permanently.
    #[error("the account was deleted")]
    Deleted,
    /// A response with another status.
    #[error("unexpected status {0}")]
    Status(u16),
    /// A redirect where none is allowed.
    #[error("a redirect (status {0}) is not allowed here")]
    Redirect(u16),
    /// The host limits requests.
    #[error(transparent)]
    RateLimited(RateLimited),
    /// No response.
    #[error(transparent)]
    Http(HttpFault),
    /// The DNS lookup failed.
    #[error(transparent)]
    Dns(DnsError),
    /// The DNS lookup timed out.
    #[error("the DNS lookup timed out")]
    DnsTimeout,
    /// The response is not a DID document of this DID.
    #[error(transparent)]
    Document(DidDocumentError),
    /// The TXT records contain several DIDs.
    #[error("the TXT records contain {0} different DIDs")]
    Ambiguous(usize),
    /// The response is not a DID.
    #[error("the response is not a DID")]
    NotADid,
    /// The DID document claims no handle.
    #[error("the DID document claims no handle")]
    NoHandle,
    /// The DID document does not claim the handle that resolves to it.
    #[error("the DID document claims another handle or none")]
    OtherHandle,
    /// The handle resolves to another account.
    #[error("the handle resolves to {0}")]
    OtherDid(DidBuf),
}

impl IdentityError {
    #[cold]
    pub(super) fn new(subject: impl AsRef<str>, fault: IdentityFault) -> Self {
        Self { subject: subject.as_ref().into(), host: None, fault }
    }

    #[cold]
    pub(super) fn at(subject: impl AsRef<str>, host: &str, fault: IdentityFault) -> Self {
        Self { host: Some(host.into()), ..Self::new(subject, fault) }
    }

    #[cold]
    pub(super) fn http(subject: impl AsRef<str>, error: HttpError) -> Self {
        Self::at(subject, &error.host, IdentityFault::Http(error.fault))
    }

    /// Whether the source was unavailable: an earlier answer remains valid, and a retry may succeed.
    pub fn is_outage(&self) -> bool {
        match &self.fault {
            IdentityFault::RateLimited(_) | IdentityFault::Dns(_) | IdentityFault::DnsTimeout => {
                true
            }
            IdentityFault::Http(fault) => !matches!(fault, HttpFault::TooLarge(_)),
            // A source of DID documents answers 404 or 410 for a DID that it does not have; another status
            // says nothing about the DID. The host of a handle is any website.
            IdentityFault::Status(status) => {
                self.subject.starts_with("did:") || matches!(status, 408 | 429 | 500..)
            }
            _ => false,
        }
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.fault)?;
        self.host.as_ref().map_or(Ok(()), |host| write!(f, " (from {host})"))
    }
}

impl std::error::Error for IdentityError {}
