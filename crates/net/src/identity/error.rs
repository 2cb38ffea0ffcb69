//! Why an account or a handle could not be resolved.

use std::fmt;

use atproto::did_document::DidDocumentError;
use atproto::syntax::DidBuf;

use crate::dns::DnsError;
use crate::http::{HttpError, HttpFault};
use crate::rate_limit::RateLimited;

/// Why there is no answer about a DID or a handle, and whom we asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityError {
    /// The DID or handle.
    pub subject: Box<str>,
    /// The host that was asked, if one was.
    pub host: Option<Box<str>>,
    /// What went wrong.
    pub fault: IdentityFault,
}

/// What can go wrong with an identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityFault {
    /// A DID of a method other than `plc` and `web`.
    #[error("DIDs of this method are not resolved: `plc` and `web` are")]
    Method,
    /// A DID that its method does not allow here: `did:plc:` and not 24 symbols of base32, or
    /// `did:web:` and not a host name alone.
    #[error("not a DID that its method allows for an account")]
    Identifier,
    /// A name that is never resolved.
    #[error("the top-level domain is reserved")]
    Reserved,
    /// Nobody knows it.
    #[error("not known there")]
    NotFound,
    /// There was an account, and it is deleted for good.
    #[error("deleted for good")]
    Deleted,
    /// An answer with another status.
    #[error("the answer's status is {0}")]
    Status(u16),
    /// A redirect where none is allowed.
    #[error("a redirect (status {0}) where none is allowed")]
    Redirect(u16),
    /// The host asked us to come later.
    #[error(transparent)]
    RateLimited(RateLimited),
    /// No answer.
    #[error(transparent)]
    Http(HttpFault),
    /// No answer of the DNS.
    #[error(transparent)]
    Dns(DnsError),
    /// No answer of the DNS in time.
    #[error("no answer of the DNS in time")]
    DnsTimeout,
    /// An answer that is no DID document of this DID.
    #[error(transparent)]
    Document(DidDocumentError),
    /// The DNS names several DIDs.
    #[error("the DNS names {0} different DIDs")]
    Ambiguous(usize),
    /// Where a DID is expected is another text.
    #[error("what stands where a DID should is none")]
    NotADid,
    /// The account claims no handle.
    #[error("the account's document claims no handle")]
    NoHandle,
    /// The account's document does not claim the handle that leads to it.
    #[error("the account's document claims another handle or none")]
    OtherHandle,
    /// The handle leads to another account.
    #[error("the handle leads to {0}")]
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

    /// Whether the next answer may well be another, because nobody answered the question: what was
    /// known before goes on being true.
    pub fn is_outage(&self) -> bool {
        match &self.fault {
            IdentityFault::RateLimited(_)
            | IdentityFault::Dns(_)
            | IdentityFault::DnsTimeout
            | IdentityFault::Http(_) => true,
            IdentityFault::Status(status) => *status == 408 || *status == 429 || *status >= 500,
            _ => false,
        }
    }
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.fault)?;
        self.host.as_ref().map_or(Ok(()), |host| write!(f, " (asked {host})"))
    }
}

impl std::error::Error for IdentityError {}
