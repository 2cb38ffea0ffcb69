//! Resync: fetches and verifies the repository of an account that missed an event.
//!
//! An account is desynchronized when a valid event does not continue its known state. Its repository is then
//! fetched from its own host, as a relay would only redirect there, and verified as a whole. Later events of
//! the account are parked meanwhile, in order and within limits, and continue from the fetched commit.
//!
//! Fetches are limited by [`FetchLimit`]. An account has a few attempts a minute, and an exponential
//! backoff after failures.
//!
//! Source: the sync specification, version 1.1, on recovery.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atproto::syntax::{Did, SyntaxError, Tid};
use crypto::PublicKey;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use verify::repository::{self, RepositoryFault, RepositoryRejection};
use verify::sync::{FutureWindow, Head, Policy};

use super::account_set::AccountSet;
use super::fetch_limit::{FetchLimit, MaxFetches, TooManyWaiting};
use super::jobs::Expected;
use super::keys::host_domain;
use super::resync_requests::ResyncRequests;
use crate::DurationText;
use crate::archive_space::{
    ArchiveFile, ArchiveSpace, ArchiveWriter, SlotTurn, Space, is_out_of_space,
};
use crate::bounded_map::BoundedMap;
use crate::clock::future_window;
use crate::host_pacer::{Answer, HostPacer};
use crate::hosts::{Backoff, BackoffOptions, Jitter};
use crate::http::{HttpFault, Limits, Url, authority};
use crate::identity::{Account, IdentityError, Resolver};
use crate::xrpc::{self, FetchError, FetchedRepo, XrpcError, XrpcFault};

/// Options of resyncs. Start from [`ResyncOptions::new`] and assign fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ResyncOptions {
    /// The client that fetches repositories.
    pub client: xrpc::Client,
    /// The resolver of accounts' hosts and keys.
    pub resolver: Resolver,
    /// Folder for archives while they are in use. The system's folder for temporary files.
    pub folder: PathBuf,
    /// Limits of an archive. [`Limits::REPOSITORY`].
    pub limits: Limits,
    /// Bound of the bytes of all archives that are received, wait for their verification, or are held by the program as a
    /// [`ResyncedRepo`]; at least the maximum size of one and 16 MiB: see [`ArchiveSpace`]. 1 GiB.
    pub max_bytes_in_use: u64,
    /// Options of the verification of a repository.
    pub repository: repository::Options,
    /// Maximum number of concurrent fetches. 16.
    pub max_fetches: usize,
    /// Maximum number of concurrent fetches from the hosts of one registrable domain; if they were slow a short
    /// time ago, one. Eight.
    pub max_fetches_per_domain: usize,
    /// Maximum number of concurrent fetches from one host. Two.
    pub max_fetches_per_host: usize,
    /// Maximum number of queued accounts; others stay desynchronized until their next event. 4,096.
    pub max_queued: usize,
    /// Number of attempts before an account backs off. Three.
    pub attempts: u32,
    /// Number of times for which a failed resync is repeated during the run, after the backoff of its account: a minute,
    /// then twice as long each time, up to 64 minutes. Meanwhile the account's events wait as for the first one. Without,
    /// the account's next event starts another resync. None.
    pub retries: u32,
    /// Whether to fetch the repository of an account that was not known before. No.
    pub on_first_seen: bool,
    /// Accounts that were desynchronized at the end of an earlier run: they are fetched at the start, as
    /// their next event may be far away. None.
    pub desynchronized: Vec<Box<str>>,
    /// The only accounts whose repositories are fetched; others stay desynchronized. `None` for all accounts.
    pub accounts: Option<AccountSet>,
    /// Requests of the program.
    pub requests: ResyncRequests,
    /// Whether requests to each host have a rate that adapts to it, for many repositories: 8 a second at first, doubled with
    /// each second of answers until the host is overloaded, at most 50.
    /// Limits that hosts name are waited for up to an hour. No.
    pub is_paced: bool,
}

impl ResyncOptions {
    /// Default options with this client and resolver.
    pub fn new(client: xrpc::Client, resolver: Resolver) -> Self {
        Self {
            client,
            resolver,
            folder: std::env::temp_dir(),
            limits: Limits::REPOSITORY,
            max_bytes_in_use: 1 << 30,
            repository: repository::Options::default(),
            max_fetches: 16,
            max_fetches_per_domain: 8,
            max_fetches_per_host: 2,
            max_queued: 4096,
            attempts: 3,
            retries: 0,
            on_first_seen: false,
            desynchronized: Vec::new(),
            accounts: None,
            requests: ResyncRequests::default(),
            is_paced: false,
        }
    }
}

/// A fetched and verified repository. Its archive counts among [those in use](ResyncOptions::max_bytes_in_use) until this value is
/// dropped: a program that keeps many leaves no space for other resyncs.
#[derive(Debug)]
pub struct ResyncedRepo {
    /// The account.
    pub did: Box<str>,
    /// Its commit, from which later events continue.
    pub head: Head,
    /// The key under which it was verified.
    pub key: PublicKey,
    /// Number of records.
    pub records: u64,
    /// Number of [invalid](verify::InvalidRecord) records among them.
    pub invalid_records: u64,
    /// Size of the archive in bytes.
    pub bytes: u64,
    /// The host that served it.
    pub host: Box<str>,
    /// When its fetch began: it has at least what the host had then.
    pub began: std::time::Instant,
    file: Arc<ArchiveFile>,
}

impl ResyncedRepo {
    /// Checks that the revision is in the window: after one ahead of it, all events would be stale.
    pub(super) fn check_window(&self, window: FutureWindow) -> Result<(), ResyncError> {
        let (host, rev) = (&self.host, self.head.rev);
        match window.admits(rev) {
            true => Ok(()),
            false => Err(ResyncError::FutureRev { host: host.clone(), rev }),
        }
    }

    /// A repository without verification.
    #[cfg(test)]
    pub(super) fn new(did: &str, head: Head) -> io::Result<Self> {
        let (records, invalid_records, bytes) = (0, 0, 0);
        let space = futures_util::FutureExt::now_or_never(
            ArchiveSpace::new(0, 0).acquire("pds.test", None),
        );
        let writer = ArchiveWriter::new(tempfile::tempfile()?, space.ok_or(io::ErrorKind::Other)?);
        let (did, host, file) = (did.into(), "pds.test".into(), writer.finish()?.into());
        let key =
            PublicKey::from_did_key("did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme");
        let key = key.map_err(io::Error::other)?;
        let began = std::time::Instant::now();
        Ok(Self { did, head, key, records, invalid_records, bytes, host, began, file })
    }

    /// The file of the archive, with all records of the account: they replace what a consumer has of it. A record can be
    /// [invalid](verify::InvalidRecord), unless the options are strict about records.
    ///
    /// The file has no name: nothing is left of it when this value is dropped or the process is killed. Rewind it
    /// before you read it.
    ///
    /// ```no_run
    /// # fn store(_: &str, _: wireproof::codec::Cid, _: &[u8]) {}
    /// # fn replace(
    /// #     resynced: &wireproof::net::firehose::ResyncedRepo,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::{Read, Seek};
    ///
    /// use wireproof::atproto::repo::Repository;
    /// use wireproof::codec::car;
    ///
    /// let (mut file, mut archive) = (resynced.file(), Vec::new());
    /// file.rewind()?;
    /// file.read_to_end(&mut archive)?;
    /// let repository = Repository::read(&archive, &car::Options::default())?;
    /// for record in repository.records() {
    ///     let record = record?;
    ///     store(&record.path, record.cid, record.block);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn file(&self) -> &File {
        self.file.file()
    }
}

/// The result of resyncing an account.
pub(super) type ResyncResult = Result<Arc<ResyncedRepo>, ResyncError>;

/// Why a repository was not fetched, or was rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResyncError {
    /// The account is not a valid DID.
    #[error("not a DID: {0}")]
    InvalidDid(SyntaxError),
    /// The DID document could not be resolved.
    #[error(transparent)]
    Identity(Box<IdentityError>),
    /// The DID document names no host.
    #[error("the account's DID document names no host")]
    NoHost,
    /// The DID document has no usable key.
    #[error("the account's DID document has no usable key")]
    NoKey,
    /// The host did not serve the repository.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The repository was rejected.
    #[error("{host}: {rejection}")]
    Rejected {
        /// The host.
        host: Box<str>,
        /// The reason.
        rejection: Box<RepositoryRejection>,
    },
    /// The repository is older than the known state.
    #[error("{host}: the repository is at {rev}, but {known} is known")]
    Outdated {
        /// The host.
        host: Box<str>,
        /// The revision of the repository.
        rev: Tid,
        /// The known revision.
        known: Tid,
    },
    /// The revision of the repository is further ahead of the clock than the policy allows.
    #[error("{host}: the repository is at {rev}, which is ahead of the clock")]
    FutureRev {
        /// The host.
        host: Box<str>,
        /// The revision of the repository.
        rev: Tid,
    },
    /// The account backs off after earlier attempts.
    #[error("resynced a short time ago: retry in {text}", text = DurationText(*.0))]
    TooSoon(Duration),
    /// The queue of accounts is full.
    #[error("too many accounts are desynchronized")]
    QueueFull,
    /// The archive could not be written.
    #[error("cannot write the archive: {0}")]
    File(#[from] io::Error),
    /// The verification panicked: a bug of this crate.
    #[error("the verification of the repository panicked")]
    Panicked,
}

impl ResyncError {
    /// Whether it says that there is nothing to fetch.
    fn is_answer(&self) -> bool {
        match self {
            Self::InvalidDid(_) => true,
            Self::Fetch(FetchError::Remote(error)) => match &error.fault {
                XrpcFault::Named(named) => named.name.account_status().is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether another attempt may succeed.
    fn is_retryable(&self) -> bool {
        match self {
            Self::Identity(error) => error.is_outage(),
            // A slow host is asked again after the backoff of the account.
            Self::Fetch(FetchError::Remote(error)) => match &error.fault {
                XrpcFault::Http(
                    HttpFault::TooSlow(_) | HttpFault::Idle(_) | HttpFault::Timeout(_),
                ) => false,
                _ => error.is_retryable(),
            },
            // A host may lag behind its own stream, or have been cut off.
            Self::Rejected { .. } | Self::Outdated { .. } => true,
            _ => false,
        }
    }
}

/// A source of repositories, and of the documents that name their hosts and keys.
pub(super) trait RepoSource: fmt::Debug + Send + Sync + 'static {
    /// The account; with `refresh`, as its document is now.
    fn account<'a>(&'a self, did: Did<'a>, refresh: bool) -> AccountLookup<'a>;

    /// Writes the repository to `out`.
    fn fetch<'a>(
        &'a self,
        host: &'a Url,
        did: Did<'a>,
        out: &'a mut (dyn Write + Send),
    ) -> RepoFetch<'a>;
}

pub(super) type AccountLookup<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<Account>, IdentityError>> + Send + 'a>>;

pub(super) type RepoFetch<'a> =
    Pin<Box<dyn Future<Output = Result<FetchedRepo, FetchError>> + Send + 'a>>;

/// The hosts that DID documents name.
#[derive(Debug)]
struct Hosts {
    client: xrpc::Client,
    resolver: Resolver,
    limits: Limits,
}

impl RepoSource for Hosts {
    fn account<'a>(&'a self, did: Did<'a>, refresh: bool) -> AccountLookup<'a> {
        match refresh {
            true => Box::pin(self.resolver.refresh(did)),
            false => Box::pin(self.resolver.account(did)),
        }
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Url,
        did: Did<'a>,
        out: &'a mut (dyn Write + Send),
    ) -> RepoFetch<'a> {
        Box::pin(self.client.fetch_repo(host, did, out, &self.limits))
    }
}

/// Fetches and verifies repositories.
#[derive(Debug)]
pub(super) struct Resyncer {
    source: Box<dyn RepoSource>,
    options: ResyncOptions,
    policy: Policy,
    fetches: FetchLimit,
    space: ArchiveSpace,
    /// `None` if requests are not paced.
    hosts: Option<HostPacer>,
    /// Permits for lookups in the directory.
    lookups: Semaphore,
    /// Verification holds one repository in memory at a time.
    verifications: Semaphore,
    pacer: Mutex<AccountPacer>,
    queued: AtomicUsize,
}

impl Resyncer {
    /// Fetches from the hosts that DID documents name.
    pub(super) fn new(options: ResyncOptions, policy: Policy) -> Self {
        let ResyncOptions { mut client, resolver, limits, is_paced, .. } = options.clone();
        if is_paced {
            // Limits are waited for before a fetch: within, the wait would hold its permit, and count as slowness.
            let limiter = client.rate_limiter().with_max_wait(Duration::ZERO);
            client = client.with_rate_limiter(limiter).with_attempts(1);
        }
        Self::from_source(Box::new(Hosts { client, resolver, limits }), options, policy)
    }

    /// Fetches from this source.
    pub(super) fn from_source(
        source: Box<dyn RepoSource>,
        options: ResyncOptions,
        policy: Policy,
    ) -> Self {
        let fetches = FetchLimit::new(MaxFetches {
            total: options.max_fetches.max(1),
            per_domain: options.max_fetches_per_domain.max(1),
            per_host: options.max_fetches_per_host.max(1),
            waiting_per_domain: options.max_queued / 4,
        });
        let limiter = options.client.rate_limiter().clone();
        let hosts = options.is_paced.then(|| HostPacer::new(limiter));
        let (pacer, queued) = (Mutex::new(AccountPacer::new()), AtomicUsize::new(0));
        let (lookups, verifications) = (Semaphore::new(MAX_RESYNC_LOOKUPS), Semaphore::new(1));
        let space = ArchiveSpace::new(options.max_bytes_in_use, options.limits.max_bytes);
        Self {
            source,
            options,
            policy,
            fetches,
            space,
            hosts,
            lookups,
            verifications,
            pacer,
            queued,
        }
    }

    /// Fetches the repository of `did`, at the revision of `known` or a later one.
    pub(super) async fn resync(&self, did: &str, known: Option<Head>) -> ResyncResult {
        lock(&self.pacer).start(did, Instant::now()).map_err(ResyncError::TooSoon)?;
        let _slot = self.enqueue()?;
        let result = self.try_attempts(did, known).await;
        match &result {
            Ok(_) => lock(&self.pacer).succeeded(did),
            Err(_) => lock(&self.pacer).failed(did, Instant::now()),
        }
        result.map(Arc::new)
    }

    /// The space of the archives that it fetches.
    pub(super) fn space(&self) -> &ArchiveSpace {
        &self.space
    }

    pub(super) fn enqueue(&self) -> Result<QueueSlot<'_>, ResyncError> {
        let slot = QueueSlot(&self.queued);
        match self.queued.fetch_add(1, Ordering::Relaxed) < self.options.max_queued {
            true => Ok(slot),
            false => Err(ResyncError::QueueFull),
        }
    }

    /// When a failed resync is repeated, if it is: after so many retries, or when its host says that it does not serve the
    /// account, the account's next event starts another one.
    pub(super) fn retry_delay(
        &self,
        did: &str,
        error: &ResyncError,
        retries: u32,
        expected: Expected,
    ) -> Option<Duration> {
        let is_answer = error.is_answer() && expected == Expected::Anything;
        let is_repeated = retries < self.options.retries && !is_answer;
        is_repeated.then(|| lock(&self.pacer).wait(did, Instant::now()).max(MIN_RETRY_DELAY))
    }

    async fn try_attempts(
        &self,
        did: &str,
        known: Option<Head>,
    ) -> Result<ResyncedRepo, ResyncError> {
        let did = Did::parse(did).map_err(ResyncError::InvalidDid)?;
        let mut backoff = Backoff::new(ATTEMPT_BACKOFF, Jitter::new());
        for _ in 1..self.options.attempts {
            match self.try_once(did, known).await {
                Err(error) if error.is_retryable() => {}
                result => return result,
            }
            tokio::time::sleep(backoff.next_delay(Duration::ZERO)).await;
        }
        self.try_once(did, known).await
    }

    async fn try_once(
        &self,
        did: Did<'_>,
        known: Option<Head>,
    ) -> Result<ResyncedRepo, ResyncError> {
        let began = std::time::Instant::now();
        let account = self.account(did, false).await?;
        let host = account.host.as_ref().ok_or(ResyncError::NoHost)?;
        let archive = self.fetch(did, host).await?;
        let verified = match self.verify(&account, &archive).await {
            Err(ResyncError::Rejected { rejection, .. }) if is_wrong_key(&rejection) => {
                let account = self.account(did, true).await?;
                self.verify(&account, &archive).await?
            }
            verified => verified?,
        };
        let Archive { host, bytes, file } = archive;
        let VerifiedArchive { head, key, records, invalid_records } = verified;
        let did = did.as_str().into();
        let resynced =
            ResyncedRepo { did, head, key, records, invalid_records, bytes, host, began, file };
        resynced.check_window(future_window(&self.policy))?;
        match known {
            Some(Head { rev: known, .. }) if head.rev < known => {
                let host = resynced.host;
                Err(ResyncError::Outdated { host, rev: head.rev, known })
            }
            _ => Ok(resynced),
        }
    }

    /// Fetches the repository; again with room for a whole one if the archives in use leave it no space.
    async fn fetch(&self, did: Did<'_>, host: &Url) -> Result<Archive, ResyncError> {
        match self.fetch_within(did, host, None).await {
            Err(ResyncError::Fetch(FetchError::Local(error))) if is_out_of_space(&error) => {
                let slot = self.space.slot_turn(&authority(host)).await;
                self.fetch_within(did, host, Some(&slot)).await
            }
            fetched => fetched,
        }
    }

    /// A rejection by the host of a paced fetch that says until when is no failure: the fetch is repeated then, up to
    /// [`MAX_LIMITED`] times.
    async fn fetch_within(
        &self,
        did: Did<'_>,
        host: &Url,
        slot: Option<&SlotTurn>,
    ) -> Result<Archive, ResyncError> {
        for _ in 0..MAX_LIMITED {
            let fetched = self.fetch_in_turn(did, host, slot).await;
            if !self.is_limited(host, &fetched) {
                return fetched;
            }
        }
        self.fetch_in_turn(did, host, slot).await
    }

    /// Looks up an account. A host of a `did:web` account must not delay the directory, and is asked once a resync.
    async fn account(&self, did: Did<'_>, refresh: bool) -> Result<Arc<Account>, ResyncError> {
        let permit = match host_domain(did.as_str()) {
            None => self.lookups.acquire().await.ok(),
            Some(_) => None,
        };
        let account = self.source.account(did, refresh).await.map_err(identity);
        drop(permit);
        account
    }

    async fn fetch_in_turn(
        &self,
        did: Did<'_>,
        host: &Url,
        slot: Option<&SlotTurn>,
    ) -> Result<Archive, ResyncError> {
        self.pace(host).await?;
        // The slots bound the fetches of archives that have one.
        let permit = match slot {
            Some(_) => None,
            None => Some(self.fetches.acquire(host).await),
        };
        let permit = permit.transpose().map_err(|TooManyWaiting| ResyncError::QueueFull)?;
        // It is returned by verifications and deliveries, which need no permit.
        let space = self.space.acquire(&authority(host), slot).await;
        let started = Instant::now();
        let fetched = self.download(did, host, space).await;
        if let Some(permit) = permit {
            permit.record(started.elapsed(), fetched.is_ok());
        }
        self.record_pace(host, &fetched);
        fetched
    }

    /// Whether the host of a paced fetch has said until when it rejects requests.
    fn is_limited(&self, host: &Url, fetched: &Result<Archive, ResyncError>) -> bool {
        let Err(ResyncError::Fetch(FetchError::Remote(error))) = fetched else { return false };
        let is_limit = error.is_rate_limit() || matches!(error.fault, XrpcFault::RateLimited(_));
        is_limit && self.hosts.as_ref().is_some_and(|hosts| hosts.is_limited(&authority(host)))
    }

    /// Waits for the pace of the host.
    async fn pace(&self, host: &Url) -> Result<(), ResyncError> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let authority = authority(host);
        let limited = |limited| {
            let fault = XrpcFault::RateLimited(limited);
            FetchError::Remote(XrpcError::new(&authority, "getRepo", fault))
        };
        Ok(hosts.until_ready(&authority).await.map_err(limited)?)
    }

    fn record_pace(&self, host: &Url, fetched: &Result<Archive, ResyncError>) {
        let Some(hosts) = &self.hosts else { return };
        let answer = match fetched {
            _ if self.is_limited(host, fetched) => Answer::Limited,
            Err(ResyncError::Fetch(FetchError::Remote(error))) => match &error.fault {
                XrpcFault::Http(_) => Answer::Overloaded,
                _ if error.is_rate_limit() => Answer::Overloaded,
                _ => Answer::InTime,
            },
            _ => Answer::InTime,
        };
        hosts.record(&authority(host), answer);
    }

    async fn download(
        &self,
        did: Did<'_>,
        host: &Url,
        space: Space,
    ) -> Result<Archive, ResyncError> {
        let mut out = ArchiveWriter::new(tempfile::tempfile_in(&self.options.folder)?, space);
        let fetched = self.source.fetch(host, did, &mut out).await?;
        let file = out.finish()?.into();
        Ok(Archive { host: fetched.host, bytes: fetched.bytes, file })
    }

    /// Verifies an archive on a blocking thread.
    async fn verify(
        &self,
        account: &Account,
        archive: &Archive,
    ) -> Result<VerifiedArchive, ResyncError> {
        let key = account.key.clone().ok_or(ResyncError::NoKey)?;
        let did = account.did().as_str().to_owned();
        let (file, options) = (archive.file.clone(), self.options.repository);
        let _permit = self.verifications.acquire().await;
        let verify = move || verify_archive(&did, &key, file.file(), &options);
        let verified = tokio::task::spawn_blocking(verify).await;
        let host = archive.host.clone();
        verified
            .map_err(|_| ResyncError::Panicked)??
            .map_err(|rejection| ResyncError::Rejected { host, rejection: rejection.into() })
    }
}

/// A fetched archive that is not verified.
#[derive(Debug)]
struct Archive {
    host: Box<str>,
    bytes: u64,
    file: Arc<ArchiveFile>,
}

/// The result of verifying an archive.
#[derive(Clone, Debug)]
struct VerifiedArchive {
    head: Head,
    key: PublicKey,
    records: u64,
    invalid_records: u64,
}

fn verify_archive(
    did: &str,
    key: &PublicKey,
    file: &File,
    options: &repository::Options,
) -> io::Result<Result<VerifiedArchive, RepositoryRejection>> {
    let archive = read(file)?;
    Ok(repository::verify(&archive, Some(did), key, options).map(|whole| {
        let commit = whole.commit();
        let rev = Tid::parse(commit.rev).expect("a repository with another rev is rejected");
        let head = Head { rev, data: commit.data, commit: whole.root() };
        let invalid_records = whole.invalid_records().records;
        let records = whole.tree().records;
        VerifiedArchive { head, key: key.clone(), records, invalid_records }
    }))
}

/// The whole content of a file.
fn read(mut file: &File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A place in the queue of accounts.
pub(super) struct QueueSlot<'q>(&'q AtomicUsize);

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_wrong_key(rejection: &RepositoryRejection) -> bool {
    matches!(rejection.fault, RepositoryFault::Signature(_))
}

fn identity(error: IdentityError) -> ResyncError {
    ResyncError::Identity(error.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Limits how often an account is resynced: a token bucket, and an exponential backoff after failures.
#[derive(Debug)]
struct AccountPacer(BoundedMap<Box<str>, AccountPace>);

#[derive(Clone, Copy, Debug)]
struct AccountPace {
    /// When the bucket will be full: each start takes [`REFILL_TIME`].
    full_at: Instant,
    failures: u32,
    /// When the backoff after the last failure ends.
    backoff_until: Instant,
}

impl AccountPacer {
    fn new() -> Self {
        Self(BoundedMap::new(MAX_PACED_ACCOUNTS))
    }

    /// Takes a token for a resync, or returns how long there is none.
    fn start(&mut self, did: &str, now: Instant) -> Result<(), Duration> {
        let (pace, full_at, wait) = self.next_start(did, now);
        if wait > Duration::ZERO {
            return Err(wait);
        }
        self.0.insert(did.into(), AccountPace { full_at, ..pace });
        Ok(())
    }

    /// How long there is no token for a resync.
    fn wait(&mut self, did: &str, now: Instant) -> Duration {
        self.next_start(did, now).2
    }

    /// The pace of an account, when its bucket will be full after one more resync, and the wait for that one.
    fn next_start(&mut self, did: &str, now: Instant) -> (AccountPace, Instant, Duration) {
        let new = AccountPace { full_at: now, failures: 0, backoff_until: now };
        let pace = self.0.get_mut(did).copied().unwrap_or(new);
        let full_at = pace.full_at.max(now) + REFILL_TIME;
        let available_at = full_at.checked_sub(REFILL_TIME * MAX_TOKENS).unwrap_or(now);
        let wait = available_at.max(pace.backoff_until).saturating_duration_since(now);
        (pace, full_at, wait)
    }

    fn succeeded(&mut self, did: &str) {
        if let Some(pace) = self.0.get_mut(did) {
            pace.failures = 0;
        }
    }

    fn failed(&mut self, did: &str, now: Instant) {
        if let Some(pace) = self.0.get_mut(did) {
            pace.backoff_until = now + ACCOUNT_BACKOFF.bound(pace.failures);
            pace.failures += 1;
        }
    }
}

/// Concurrent lookups in the directory: each holds a connection, some 30 KiB.
pub(super) const MAX_RESYNC_LOOKUPS: usize = 16;

/// Delays between the attempts of one resync.
const ATTEMPT_BACKOFF: BackoffOptions = BackoffOptions {
    initial: Duration::from_secs(2),
    max: Duration::from_secs(32),
    reset_after: Duration::MAX,
    max_requested: Duration::ZERO,
};

/// Delays after failed resyncs of one account, without jitter.
const ACCOUNT_BACKOFF: BackoffOptions = BackoffOptions {
    initial: Duration::from_secs(60),
    max: Duration::from_secs(3840),
    ..ATTEMPT_BACKOFF
};

/// Resyncs of one account that may start at once.
const MAX_TOKENS: u32 = 5;

/// Time until one more may start.
const REFILL_TIME: Duration = Duration::from_secs(12);

const MAX_PACED_ACCOUNTS: usize = 16 << 10;

/// Limits that one attempt waits for.
const MAX_LIMITED: usize = 16;

/// Minimum delay before a failed resync is repeated.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(12);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_resyncs_may_start_at_once_and_one_more_every_twelve_seconds() {
        let (mut pacer, now) = (AccountPacer::new(), Instant::now());
        let seconds = |seconds| now + Duration::from_secs(seconds);
        for _ in 0..5 {
            assert_eq!(pacer.start("a", now), Ok(()));
        }
        assert_eq!(pacer.start("a", now), Err(REFILL_TIME));
        assert_eq!(pacer.start("b", now), Ok(()));
        assert_eq!(pacer.start("a", seconds(12)), Ok(()));
        assert_eq!(pacer.start("a", seconds(13)), Err(Duration::from_secs(11)));
        for _ in 0..5 {
            assert_eq!(pacer.start("a", seconds(600)), Ok(()));
        }
        assert!(pacer.start("a", seconds(600)).is_err());
    }

    #[test]
    fn a_failing_account_backs_off_twice_as_long_each_time_until_it_succeeds() {
        let (mut pacer, mut now) = (AccountPacer::new(), Instant::now());
        for seconds in [60, 120, 240, 480, 960, 1920, 3840, 3840] {
            pacer.start("a", now).unwrap();
            pacer.failed("a", now);
            let delay = Duration::from_secs(seconds);
            assert_eq!(pacer.start("a", now), Err(delay));
            now += delay;
        }
        pacer.start("a", now).unwrap();
        pacer.succeeded("a");
        pacer.failed("a", now);
        assert_eq!(pacer.start("a", now), Err(Duration::from_secs(60)));
    }

    #[test]
    fn the_number_of_remembered_accounts_is_bounded() {
        let (mut pacer, now) = (AccountPacer::new(), Instant::now());
        for number in 0..2 * MAX_PACED_ACCOUNTS {
            pacer.start(&number.to_string(), now).unwrap();
            assert!(pacer.0.len() <= MAX_PACED_ACCOUNTS);
        }
    }
}
