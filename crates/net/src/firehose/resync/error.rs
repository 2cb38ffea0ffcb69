//! Why is an account still out of step?

use std::io;
use std::time::Duration;

use atproto::syntax::{SyntaxError, Tid};
use verify::repository::RepositoryRejection;

use crate::identity::IdentityError;
use crate::xrpc::{FetchError, XrpcFault};

/// Why a repository could not be fetched, or is not the one that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResyncError {
    /// The account's DID is none.
    #[error("not a DID: {0}")]
    NotADid(SyntaxError),
    /// Its DID document is not to be had.
    #[error(transparent)]
    Identity(Box<IdentityError>),
    /// Its DID document names no host.
    #[error("the account's DID document names no host")]
    NoHost,
    /// Its DID document names no key.
    #[error("the account's DID document has no key that can be used")]
    NoKey,
    /// The host does not give it.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The host gives something else.
    #[error("{host}: {rejection}")]
    Refused {
        /// The host.
        host: Box<str>,
        /// What is wrong with it.
        rejection: Box<RepositoryRejection>,
    },
    /// The host gives an older one.
    #[error("{host}: the repository is at {rev}, but {known} is known")]
    Behind {
        /// The host.
        host: Box<str>,
        /// The revision that it gives.
        rev: Tid,
        /// The one that is known.
        known: Tid,
    },
    /// It was tried a short time ago.
    #[error("not again for {0:?}")]
    TooSoon(Duration),
    /// Too many accounts are in line.
    #[error("too many accounts are out of step")]
    Crowded,
    /// The archive could not be kept.
    #[error("keeping the archive: {0}")]
    File(#[from] io::Error),
    /// A fault of ours.
    #[error("proving the repository panicked")]
    Panicked,
}

impl ResyncError {
    /// Whether another try may well end otherwise.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Identity(error) => error.is_outage(),
            Self::Fetch(FetchError::Remote(error)) => match &error.fault {
                XrpcFault::RateLimited(_) | XrpcFault::Http(_) => true,
                XrpcFault::Status(status) => *status >= 500,
                XrpcFault::Named(named) => named.status >= 500,
                _ => false,
            },
            // A host may be behind its own stream, or have been cut off.
            Self::Refused { .. } | Self::Behind { .. } => true,
            _ => false,
        }
    }
}
