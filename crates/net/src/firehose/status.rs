//! Account statuses as the accounts' own servers report them.
//!
//! An `#account` event is not signed: a relay can call any account inactive. So the event is only a claim. When
//! a commit arrives from an account that the stream called inactive, the account's own server is asked before
//! the commit is ignored; without its answer the signature alone decides about the commit.

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
    match &named.name {
        ErrorName::RepoNotFound | ErrorName::RepoInactive => {
            Some(ServerStatus { is_active: false, status: None })
        }
        name => name.account_status().map(ServerStatus::inactive),
    }
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
    use std::collections::HashMap;
    use std::sync::Mutex;

    use super::*;
    use crate::dns::LoopbackDns;
    use crate::egress::EgressPolicy;
    use crate::http::{Client, HttpFault};
    use crate::identity::Options;
    use crate::loopback_server::{Request, response, serve};
    use crate::rate_limit::RateLimited;

    const DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

    /// A directory at `plc.test` and servers at other names: their statuses and bodies.
    #[derive(Clone, Default)]
    struct World(Arc<Mutex<HashMap<&'static str, (u16, String)>>>);

    impl World {
        fn set(&self, host: &'static str, status: u16, body: String) {
            self.0.lock().unwrap().insert(host, (status, body));
        }

        fn answer(&self, request: &Request) -> String {
            let answers = self.0.lock().unwrap();
            let (status, body) = answers.get(&*request.host).cloned().unwrap_or_default();
            let body = body.replace("PORT", &request.port.to_string());
            response(status, "content-type: application/json\r\n", &body)
        }

        /// Makes the directory name this server.
        fn move_to(&self, host: &str) {
            let service = format!(
                r##"{{"id": "#atproto_pds", "type": "AtprotoPersonalDataServer",
                    "serviceEndpoint": "http://{host}:PORT"}}"##
            );
            self.set("plc.test", 200, format!(r#"{{"id": "{DID}", "service": [{service}]}}"#));
        }

        async fn start(&self) -> ServerStatuses {
            let world = self.clone();
            let port = serve(move |request| world.answer(request)).await;
            let http = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
            let directory = format!("http://plc.test:{port}").parse().unwrap();
            let options = Options { directory, ..Options::default() };
            let resolver = Resolver::new(http.clone(), Arc::new(LoopbackDns), options);
            ServerStatuses::new(xrpc::Client::new(http), resolver)
        }
    }

    fn active() -> String {
        format!(r#"{{"did": "{DID}", "active": true, "rev": "3jqfcqzm3fo2j"}}"#)
    }

    fn inactive(status: &str) -> String {
        format!(r#"{{"did": "{DID}", "active": false, "status": "{status}"}}"#)
    }

    fn named(error: &str) -> String {
        format!(r#"{{"error": "{error}", "message": "x"}}"#)
    }

    #[tokio::test]
    async fn the_status_is_what_the_accounts_server_says() {
        for (status, body, expected) in [
            (200, active(), (true, None)),
            (200, inactive("takendown"), (false, Some("takendown"))),
            (400, named("RepoDeleted"), (false, Some("deleted"))),
            (400, named("RepoTakendown"), (false, Some("takendown"))),
            (400, named("RepoSuspended"), (false, Some("suspended"))),
            (400, named("RepoDeactivated"), (false, Some("deactivated"))),
            (400, named("RepoNotFound"), (false, None)),
        ] {
            let world = World::default();
            world.move_to("a.test");
            world.set("a.test", status, body.clone());
            let statuses = world.start().await;
            let found = statuses.status(DID).await.unwrap();
            assert_eq!((found.is_active, found.status.as_deref()), expected, "{body}");
            assert_eq!(statuses.look_up(DID).await, Ok(expected.0));
        }
    }

    #[tokio::test]
    async fn a_deletion_is_confirmed_whatever_else_the_server_says_or_leaves_out() {
        let whole = format!(r#""did": "{DID}", "#);
        for rest in [
            "",
            r#""did": null, "#,
            &format!(r#"{whole}"rev": "", "#),
            &format!(r#"{whole}"rev": null, "#),
            &format!(r#"{whole}"rev": 7, "#),
        ] {
            let world = World::default();
            world.move_to("a.test");
            let body = format!(r#"{{{rest}"active": false, "status": "deleted"}}"#);
            world.set("a.test", 200, body.clone());
            let found = world.start().await.status(DID).await.unwrap();
            assert_eq!(
                (found.is_active, found.status.as_deref()),
                (false, Some("deleted")),
                "{body}"
            );
        }
        for refused in [r#"{"active": "false"}"#, r#"{"did": "did:web:b.test", "active": false}"#] {
            let world = World::default();
            world.move_to("a.test");
            world.set("a.test", 200, refused.to_owned());
            let error = world.start().await.status(DID).await.unwrap_err();
            assert!(matches!(error, StatusError::Server(_)), "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_that_the_account_has_left_does_not_decide() {
        let world = World::default();
        world.move_to("a.test");
        world.set("a.test", 200, active());
        world.set("b.test", 200, inactive("suspended"));
        let statuses = world.start().await;
        assert_eq!(statuses.look_up(DID).await, Ok(true));
        world.move_to("b.test");
        assert_eq!(
            statuses.look_up(DID).await,
            Ok(true),
            "an active account needs no other answer"
        );
        world.set("a.test", 200, inactive("deactivated"));
        let found = statuses.status(DID).await.unwrap();
        assert_eq!((found.is_active, found.status.as_deref()), (false, Some("suspended")));
    }

    #[tokio::test]
    async fn an_account_whose_did_is_deleted_is_deleted() {
        let world = World::default();
        world.set("plc.test", 410, named("Gone"));
        let found = world.start().await.status(DID).await.unwrap();
        assert_eq!((found.is_active, found.status.as_deref()), (false, Some("deleted")));
        // Found out only when the server says that it does not have the account.
        world.move_to("a.test");
        world.set("a.test", 400, named("RepoNotFound"));
        let statuses = world.start().await;
        statuses.resolver.account(Did::parse(DID).unwrap()).await.unwrap();
        world.set("plc.test", 410, named("Gone"));
        let found = statuses.status(DID).await.unwrap();
        assert_eq!((found.is_active, found.status.as_deref()), (false, Some("deleted")));
    }

    #[tokio::test]
    async fn without_an_answer_the_status_is_unknown_and_an_outage_may_pass() {
        for (status, body, is_temporary) in [
            (500, String::new(), true),
            (503, named("Unavailable"), true),
            (500, named("InternalServerError"), true),
            (404, String::new(), false),
            (400, named("InvalidRequest"), false),
            (200, "{}".to_owned(), false),
        ] {
            let world = World::default();
            world.move_to("a.test");
            world.set("a.test", status, body.clone());
            let error = world.start().await.status(DID).await.unwrap_err();
            assert!(matches!(error, StatusError::Server(_)), "{error}");
            assert_eq!(error.is_temporary(), is_temporary, "{status} {body}: {error}");
        }
        let world = World::default();
        world.set("plc.test", 500, String::new());
        let error = world.start().await.status(DID).await.unwrap_err();
        assert!(matches!(error, StatusError::Identity(_)) && error.is_temporary(), "{error}");
        let error = world.start().await.status("no DID").await.unwrap_err();
        assert!(matches!(error, StatusError::InvalidDid(_)) && !error.is_temporary(), "{error}");
    }

    #[test]
    fn a_server_that_limits_the_rate_or_cannot_be_reached_may_answer_later() {
        let limited = RateLimited(Duration::ZERO);
        for fault in [XrpcFault::RateLimited(limited), XrpcFault::Http(HttpFault::TooLarge(1))] {
            let error = XrpcError { host: "a.test".into(), method: "getRepoStatus", fault };
            assert!(StatusError::Server(error.into()).is_temporary());
        }
    }

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
