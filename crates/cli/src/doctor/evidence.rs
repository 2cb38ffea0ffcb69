//! The evidence about an account from the directory, servers and the state. Every host may lie, and every wait is
//! bounded.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atproto::plc::AccountData;
use atproto::syntax::{Did, DidBuf, Handle, HandleBuf, Tid};
use codec::Cid;
use codec::car::{self, HashProof};
use crypto::PublicKey;
use futures_util::future::join_all;
use net::http::{Limits, Url};
use net::identity::{Account, IdentityError};
use net::xrpc::{self, ErrorName, ListedHost, RepoStatus, XrpcError};
use store::{StateReader, StoredKey};
use tokio::time::{Instant, sleep, timeout};
use verify::commit;
use verify::plc::{self, History};
use verify::sync::AccountState;

use crate::failure::Failure;
use crate::network::{self, Network};

/// Everything that is known of an account.
pub(super) struct Evidence {
    pub(super) did: DidBuf,
    pub(super) identity: IdentityEvidence,
    /// The account's server; `None` if its DID document names none.
    pub(super) server: Option<ServerEvidence>,
    pub(super) relays: Vec<RelayEvidence>,
    pub(super) state: Option<StateEvidence>,
}

/// The answer of the directory.
pub(super) struct IdentityEvidence {
    /// URL of the directory; `None` for a did:web.
    pub(super) directory: Option<String>,
    /// The DID document.
    pub(super) account: Result<Arc<Account>, LookupError>,
    /// The verified handle; `None` without a document.
    pub(super) handle: Option<Result<HandleBuf, LookupError>>,
    /// The verified operation log; `None` for a did:web.
    pub(super) log: Option<Result<LogSummary, LogFault>>,
}

/// A lookup without a result.
pub(super) enum LookupError {
    Failed(IdentityError),
    TimedOut,
}

/// The content of a verified log of operations.
pub(super) struct LogSummary {
    pub(super) is_tombstoned: bool,
    pub(super) key: Option<PublicKey>,
    pub(super) server: Option<String>,
    /// The last change of the server: its time in microseconds since 1970.
    pub(super) migrated_micros: Option<i64>,
}

/// Why there is no verified log.
pub(super) enum LogFault {
    /// The directory does not serve it.
    NotServed(String),
    /// It breaks a rule.
    Refused(String),
}

/// The answer of the account's server.
pub(super) struct ServerEvidence {
    pub(super) url: Url,
    pub(super) status: Result<RepoStatus, AskError>,
    /// The newest commit, if the account is active.
    pub(super) commit: Option<Result<ProvedCommit, CommitFault>>,
}

/// A commit that is signed with the account's key.
pub(super) struct ProvedCommit {
    pub(super) rev: Tid,
    pub(super) cid: Cid,
}

/// Why the newest commit is not proved.
pub(super) enum CommitFault {
    Unanswered(AskError),
    /// There is no key to prove it with.
    NoKey,
    /// It breaks a rule.
    Refused {
        is_signature: bool,
        message: String,
    },
}

/// The answer of a relay.
pub(super) struct RelayEvidence {
    pub(super) name: String,
    pub(super) status: Result<RepoStatus, AskError>,
    /// Its answer about the account's server; `None` if it was not asked.
    pub(super) server: Option<Result<ListedHost, AskError>>,
}

/// The content of the state.
pub(super) struct StateEvidence {
    pub(super) path: PathBuf,
    pub(super) account: Option<AccountState>,
    pub(super) key: Option<StoredKey>,
}

/// A host that did not answer a request as expected.
pub(super) enum AskError {
    Failed(XrpcError),
    TimedOut,
}

impl IdentityEvidence {
    /// The account's key, from the verified log, or else from the document.
    pub(super) fn key(&self) -> Option<PublicKey> {
        match &self.log {
            Some(Ok(log)) => log.key.clone(),
            _ => self.account.as_ref().ok()?.key.clone(),
        }
    }

    /// The account's server by its document.
    pub(super) fn server(&self) -> Option<&Url> {
        self.account.as_ref().ok()?.host.as_ref()
    }
}

impl ServerEvidence {
    /// The proved newest revision.
    pub(super) fn newest(&self) -> Option<Tid> {
        self.commit.as_ref()?.as_ref().ok().map(|commit| commit.rev)
    }
}

/// Asks about one account.
pub(super) struct Questions<'n> {
    network: &'n Network,
    client: xrpc::Client,
    did: Did<'n>,
}

impl<'n> Questions<'n> {
    pub(super) fn new(network: &'n Network, did: Did<'n>) -> Self {
        // A host that requests a delay is reported instead of waited for.
        let client = network.xrpc.clone().with_attempts(1);
        Self { network, client, did }
    }

    /// Asks the directory, and whether the given handle, or the claimed one, leads back.
    pub(super) async fn identity(&self, given: Option<Handle<'_>>) -> IdentityEvidence {
        let resolver = &self.network.resolver;
        let log = async { if self.did.is_plc() { Some(self.log().await) } else { None } };
        let (account, log) = tokio::join!(looked_up(resolver.account(self.did)), log);
        let handle = match (&account, given) {
            (Err(_), _) => None,
            (_, Some(handle)) => Some(looked_up(resolver.identity_of_handle(handle)).await),
            (_, None) => Some(looked_up(resolver.identity(self.did)).await),
        };
        let handle = handle.map(|identity| identity?.handle.map_err(LookupError::Failed));
        let directory = self.did.is_plc().then(|| network::origin(&self.network.directory));
        IdentityEvidence { directory, account, handle, log }
    }

    /// Fetches and verifies the operation log.
    async fn log(&self) -> Result<LogSummary, LogFault> {
        let directory = self.network.directory.as_str().trim_end_matches('/');
        let mut options = plc::Options::default();
        options.did = Some(self.did.to_buf());
        let limits = Limits { max_bytes: options.limits.log_bytes as u64, ..Limits::LIST };
        let url = format!("{directory}/{}/log/audit", self.did);
        let url = url.parse().map_err(|_| not_served("its URL cannot be extended by a path"))?;
        let response = within(self.network.http.get(&url, &limits)).await;
        let response = response.map_err(|_| not_served("no answer in time"))?;
        let response = response.map_err(|error| not_served(&error.to_string()))?;
        if response.status != 200 {
            return Err(not_served(&format!("status {}", response.status)));
        }
        let history = plc::verify(&response.body, &options)
            .map_err(|why| LogFault::Refused(format!("{why} ({})", why.code())))?;
        Ok(LogSummary::new(&history))
    }

    /// Asks the account's server, and proves the newest commit.
    pub(super) async fn server(&self, identity: &IdentityEvidence) -> Option<ServerEvidence> {
        let url = identity.server()?.clone();
        let status = asked(self.client.get_repo_status(&url, self.did)).await;
        let is_active = status.as_ref().is_ok_and(|status| status.active);
        let commit =
            if is_active { Some(self.newest_commit(&url, identity.key()).await) } else { None };
        Some(ServerEvidence { url, status, commit })
    }

    /// Proves the newest commit. While it is asked for, another may take its place.
    async fn newest_commit(
        &self,
        server: &Url,
        key: Option<PublicKey>,
    ) -> Result<ProvedCommit, CommitFault> {
        let key = key.ok_or(CommitFault::NoKey)?;
        let mut attempts = 1;
        loop {
            let newest = asked(self.client.get_latest_commit(server, self.did)).await?;
            let blocks = asked(self.client.get_blocks(server, self.did, &[newest.cid])).await;
            match blocks {
                Err(AskError::Failed(error))
                    if error.name() == Some(&ErrorName::BlockNotFound)
                        && attempts < MAX_ATTEMPTS => {}
                blocks => return prove(&blocks?, &newest, self.did, &key),
            }
            attempts += 1;
        }
    }

    /// Asks all relays at once, again and again while they are behind `newest`, for up to `wait`.
    pub(super) async fn relays(
        &self,
        names: &[String],
        identity: &IdentityEvidence,
        newest: Option<Tid>,
        wait: Duration,
    ) -> Vec<RelayEvidence> {
        let server = identity.server();
        let one = |name: &String| self.relay(name.clone(), server, newest, wait);
        join_all(names.iter().map(one)).await
    }

    async fn relay(
        &self,
        name: String,
        server: Option<&Url>,
        newest: Option<Tid>,
        wait: Duration,
    ) -> RelayEvidence {
        // A name of `Hosts` is an origin.
        let Ok(url) = name.parse::<Url>() else {
            return RelayEvidence { name, status: Err(AskError::TimedOut), server: None };
        };
        let until = Instant::now() + wait;
        let mut status = self.status_with_rev(&url).await;
        while is_behind(&status, newest) && Instant::now() < until {
            sleep(POLL_INTERVAL).await;
            status = self.status_with_rev(&url).await;
        }
        let server = match server {
            Some(server) => {
                let (host, port) = (server.host_str().unwrap_or_default(), server.port());
                let host = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
                Some(asked(self.client.get_host_status(&url, &host)).await)
            }
            None => None,
        };
        RelayEvidence { name, status, server }
    }

    /// The status of the account, which need not have the revision.
    async fn status_with_rev(&self, host: &Url) -> Result<RepoStatus, AskError> {
        let mut status = asked(self.client.get_repo_status(host, self.did)).await?;
        if status.active && status.rev.is_none() {
            let newest = asked(self.client.get_latest_commit(host, self.did)).await?;
            status.rev = Some(newest.rev);
        }
        Ok(status)
    }

    /// Reads the state, again and again while it is behind `newest`, for up to `wait`.
    pub(super) async fn state(
        &self,
        state: &StateReader,
        newest: Option<Tid>,
        wait: Duration,
    ) -> Result<StateEvidence, Failure> {
        let until = Instant::now() + wait;
        loop {
            let (account, key) = (state.account(self.did.as_str())?, state.key(self.did.as_str())?);
            let rev = account.and_then(|account| account.head).map(|head| head.rev);
            let is_behind = rev.is_some() && rev < newest;
            if !is_behind || Instant::now() >= until {
                return Ok(StateEvidence { path: state.path().to_owned(), account, key });
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

impl LogSummary {
    fn new(history: &History) -> Self {
        let in_force = history.operations().iter().filter(|operation| !operation.nullified);
        let (mut server, mut migrated_micros) = (None, None);
        for (index, operation) in in_force.enumerate() {
            let next = operation.operation.unsigned().to_data().as_ref().and_then(server_of);
            if index > 0 && next != server {
                migrated_micros = operation.created_at_micros;
            }
            server = next;
        }
        let (is_tombstoned, key) = (history.is_tombstoned(), history.signing_key());
        Self { is_tombstoned, key, server, migrated_micros }
    }
}

/// The origin of the server in the data of an account.
fn server_of(data: &AccountData) -> Option<String> {
    let endpoint = &data.services.get("atproto_pds")?.endpoint;
    Some(endpoint.parse().map_or_else(|_| endpoint.clone(), |url| network::origin(&url)))
}

/// Proves that an archive has the commit, and that `key` signed it.
fn prove(
    archive: &[u8],
    newest: &xrpc::LatestCommit,
    did: Did<'_>,
    key: &PublicKey,
) -> Result<ProvedCommit, CommitFault> {
    let refused = |message: String| CommitFault::Refused { is_signature: false, message };
    let mut options = car::Options::default();
    options.max_blocks = MAX_BLOCKS;
    let archive = car::read(archive, &options).map_err(|error| refused(error.to_string()))?;
    let is_it = |block: &&car::Block<'_>| {
        block.cid == newest.cid.as_cid_ref() && block.proof == HashProof::Checked
    };
    let block = archive.blocks.iter().find(is_it);
    let block = block.ok_or_else(|| refused(format!("the block {} is missing", newest.cid)))?;
    let commit = commit::verify(block.data, key).map_err(|why| CommitFault::Refused {
        is_signature: why.code().starts_with("signature/"),
        message: format!("{why} ({})", why.code()),
    })?;
    if commit.did != did.as_str() {
        return Err(refused(format!("it is a commit of {}", commit.did)));
    }
    if commit.rev != newest.rev.to_string() {
        return Err(refused(format!("its revision is {}, not {}", commit.rev, newest.rev)));
    }
    Ok(ProvedCommit { rev: newest.rev, cid: newest.cid })
}

fn is_behind(status: &Result<RepoStatus, AskError>, newest: Option<Tid>) -> bool {
    status.as_ref().is_ok_and(|status| status.rev.is_some() && status.rev < newest)
}

/// The answer of an XRPC method within the time of a request.
async fn asked<T>(request: impl Future<Output = Result<T, XrpcError>>) -> Result<T, AskError> {
    match within(request).await {
        Ok(answer) => answer.map_err(AskError::Failed),
        Err(_) => Err(AskError::TimedOut),
    }
}

/// The result of a lookup within the time of a request.
async fn looked_up<T>(
    lookup: impl Future<Output = Result<T, IdentityError>>,
) -> Result<T, LookupError> {
    match within(lookup).await {
        Ok(answer) => answer.map_err(LookupError::Failed),
        Err(_) => Err(LookupError::TimedOut),
    }
}

/// The output of `request` within the maximum time of a request.
pub(super) async fn within<F: Future>(
    request: F,
) -> Result<F::Output, tokio::time::error::Elapsed> {
    timeout(MAX_REQUEST, request).await
}

fn not_served(why: &str) -> LogFault {
    LogFault::NotServed(why.to_owned())
}

impl From<AskError> for CommitFault {
    fn from(error: AskError) -> Self {
        Self::Unanswered(error)
    }
}

impl AskError {
    /// The name of the XRPC error, if the host answered with one.
    pub(super) fn name(&self) -> Option<&ErrorName> {
        match self {
            Self::Failed(error) => error.name(),
            Self::TimedOut => None,
        }
    }

    /// Whether the host refuses, instead of being away or overloaded.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Failed(error) => !error.is_retryable(),
            Self::TimedOut => false,
        }
    }
}

impl std::fmt::Display for AskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::TimedOut => f.write_str("no answer in time"),
        }
    }
}

impl LookupError {
    /// Whether a later attempt may have another result.
    pub(super) fn is_outage(&self) -> bool {
        match self {
            Self::Failed(error) => error.is_outage(),
            Self::TimedOut => true,
        }
    }
}

impl std::fmt::Display for LookupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::TimedOut => f.write_str("no answer in time"),
        }
    }
}

/// Maximum time of a request, with its redirects.
const MAX_REQUEST: Duration = Duration::from_secs(20);

/// Time between two questions while a relay or the state is behind.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Attempts to fetch the newest commit.
const MAX_ATTEMPTS: u32 = 3;

/// Maximum number of blocks of an archive that has one commit.
const MAX_BLOCKS: u64 = 64;
