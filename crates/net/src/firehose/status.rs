//! Account statuses as the accounts' own servers report them.
//!
//! An `#account` event is not signed: a relay can call any account inactive. So the event is only a claim. When
//! a commit arrives from an account that the stream called inactive, the account's own server is asked before
//! the commit is ignored; without its answer the commit counts as what its signature says.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atproto::syntax::{Did, SyntaxError};
use tokio::time::Instant;

use crate::bounded_map::BoundedMap;
use crate::concurrency::{ConcurrencyLimit, registrable_domain};
use crate::http::Url;
use crate::identity::{Account, IdentityError, IdentityFault, Resolver};
use crate::xrpc::{self, ErrorName, XrpcError, XrpcFault};

/// Provides the statuses of accounts.
pub trait StatusProvider: fmt::Debug + Send + Sync + 'static {
    /// Asks the account's own server whether the account is active.
    fn look_up<'a>(&'a self, did: &'a str) -> StatusLookup<'a>;
}

/// The future of a status lookup: whether the account is active.
pub type StatusLookup<'a> = Pin<Box<dyn Future<Output = Result<bool, StatusError>> + Send + 'a>>;

/// Why the status of an account is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// The account is not a valid DID.
    #[error("not a DID: {0}")]
    InvalidDid(SyntaxError),
    /// The DID document could not be resolved.
    #[error(transparent)]
    Identity(Box<IdentityError>),
    /// The DID document names no server.
    #[error("the account's DID document names no server")]
    NoHost,
    /// The server did not answer.
    #[error(transparent)]
    Server(Box<XrpcError>),
    /// The run has no [provider](super::Options::statuses) of statuses.
    #[error("this run does not ask the accounts' servers")]
    NoProvider,
    /// The run did not wait any longer.
    #[error("the account's server did not answer in time")]
    TimedOut,
}

impl StatusError {
    /// Whether another attempt may succeed.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Identity(error) => error.is_outage(),
            Self::Server(error) => match &error.fault {
                XrpcFault::RateLimited(_) | XrpcFault::Http(_) => true,
                XrpcFault::Status(status) => *status >= 500,
                XrpcFault::Named(named) => named.status >= 500,
                _ => false,
            },
            Self::InvalidDid(_) | Self::NoHost | Self::NoProvider | Self::TimedOut => false,
        }
    }
}

/// Statuses from the servers that DID documents name, by `getRepoStatus`.
#[derive(Clone, Debug)]
pub struct ServerStatuses {
    client: xrpc::Client,
    resolver: Resolver,
    limit: ConcurrencyLimit,
}

impl ServerStatuses {
    /// Statuses that `client` requests from the servers that `resolver` finds.
    pub fn new(client: xrpc::Client, resolver: Resolver) -> Self {
        Self { client, resolver, limit: ConcurrencyLimit::new(DOMAIN_LOOKUPS, LOOKUPS) }
    }

    /// Asks the account's own server for the status of the account. An account whose DID is deleted is too.
    ///
    /// # Errors
    /// If the server cannot be found, or does not answer.
    pub async fn status(&self, did: &str) -> Result<ServerStatus, StatusError> {
        let did = Did::parse(did).map_err(StatusError::InvalidDid)?;
        let Some(host) = host_of(self.resolver.account(did).await)? else {
            return Ok(ServerStatus::inactive("deleted"));
        };
        let status = self.ask(&host, did).await?;
        if status.is_active {
            return Ok(status);
        }
        // The document may be older than a migration: its server no longer has the account.
        match host_of(self.resolver.refresh(did).await)? {
            Some(current) if current != host => self.ask(&current, did).await,
            Some(_) => Ok(status),
            None => Ok(ServerStatus::inactive("deleted")),
        }
    }

    async fn ask(&self, host: &Url, did: Did<'_>) -> Result<ServerStatus, StatusError> {
        let domain = registrable_domain(host.host_str().unwrap_or_default());
        let _permit = self.limit.acquire(domain).await;
        match self.client.get_repo_status(host, did).await {
            Ok(found) => Ok(ServerStatus { is_active: found.active, status: found.status }),
            Err(error) => inactive_by(&error).ok_or_else(|| StatusError::Server(error.into())),
        }
    }
}

/// The status of an account at its own server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// Whether the server serves the account's repository.
    pub is_active: bool,
    /// The reason if it does not and names one, such as `deleted` or `takendown`.
    pub status: Option<Box<str>>,
}

impl ServerStatus {
    fn inactive(status: &str) -> Self {
        Self { is_active: false, status: Some(status.into()) }
    }
}

impl StatusProvider for ServerStatuses {
    fn look_up<'a>(&'a self, did: &'a str) -> StatusLookup<'a> {
        Box::pin(async move { Ok(self.status(did).await?.is_active) })
    }
}

/// The server of an account; `None` if the account was deleted.
fn host_of(account: Result<Arc<Account>, IdentityError>) -> Result<Option<Url>, StatusError> {
    match account {
        Ok(account) => account.host.clone().map(Some).ok_or(StatusError::NoHost),
        Err(error) if error.fault == IdentityFault::Deleted => Ok(None),
        Err(error) => Err(StatusError::Identity(error.into())),
    }
}

/// The status of an account if its server says by an error that it does not serve the account.
fn inactive_by(error: &XrpcError) -> Option<ServerStatus> {
    let XrpcFault::Named(named) = &error.fault else { return None };
    let status = match named.name {
        ErrorName::RepoDeleted => "deleted",
        ErrorName::RepoTakendown => "takendown",
        ErrorName::RepoSuspended => "suspended",
        ErrorName::RepoDeactivated => "deactivated",
        ErrorName::RepoNotFound | ErrorName::RepoInactive => {
            return Some(ServerStatus { is_active: false, status: None });
        }
        _ => return None,
    };
    Some(ServerStatus::inactive(status))
}

/// Answers that still hold, by hashed account.
#[derive(Debug)]
pub(super) struct StatusAnswers(BoundedMap<u64, (bool, Instant)>);

impl StatusAnswers {
    pub(super) fn new() -> Self {
        Self(BoundedMap::new(MAX_ANSWERS))
    }

    /// Whether the account is active, if an answer still holds.
    pub(super) fn get(&mut self, account: u64, now: Instant) -> Option<bool> {
        let (is_active, until) = *self.0.get_mut(&account)?;
        (now < until).then_some(is_active)
    }

    pub(super) fn insert(&mut self, account: u64, is_active: bool, now: Instant) {
        let validity = if is_active { ACTIVE_VALIDITY } else { INACTIVE_VALIDITY };
        self.0.insert(account, (is_active, now + validity));
    }
}

/// How long an account counts as active whatever the stream says: a limit on lookups of one account.
const ACTIVE_VALIDITY: Duration = Duration::from_secs(60);

/// How long an account counts as inactive, unless the stream says that it is active again.
const INACTIVE_VALIDITY: Duration = Duration::from_secs(600);

/// Maximum number of answers of one worker.
const MAX_ANSWERS: usize = 16 << 10;

/// Concurrent lookups at the servers of one registrable domain, and at all servers.
const DOMAIN_LOOKUPS: usize = 4;
const LOOKUPS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_for_a_bounded_time() {
        let (mut answers, now) = (StatusAnswers::new(), Instant::now());
        answers.insert(1, true, now);
        answers.insert(2, false, now);
        let at = |answers: &mut StatusAnswers, seconds| {
            [1, 2, 3].map(|account| answers.get(account, now + Duration::from_secs(seconds)))
        };
        assert_eq!(at(&mut answers, 59), [Some(true), Some(false), None]);
        assert_eq!(at(&mut answers, 61), [None, Some(false), None]);
        assert_eq!(at(&mut answers, 600), [None, None, None]);
    }
}
