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
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atproto::syntax::{Did, Tid};
use crypto::PublicKey;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use verify::repository::{self, RepositoryFault, RepositoryRejection};
use verify::sync::{AccountState, Head, Policy};
use verify::{collections, record};

use super::account_pacer::AccountPacer;
use super::fetch_limit::{FetchLimit, MaxFetches, TooManyWaiting};
use super::keys::host_domain;
use super::resync_options::{Collections, ResyncOptions, ResyncPart};
use super::resynced_repo::{PartRefusal, ResyncError, ResyncResult, ResyncedRepo};
use crate::archive_space::{
    ArchiveFile, ArchiveSpace, ArchiveWriter, SlotTurn, Space, is_out_of_space,
};
use crate::clock::future_window;
use crate::host_pacer::{Answer, HostPacer};
use crate::hosts::{Backoff, BackoffOptions, Jitter};
use crate::http::{Limits, Url, authority};
use crate::identity::{Account, IdentityError, Resolver};
use crate::part_turn::{MAX_LIMITED_PARTS, PartTurn};
use crate::rate_limit::RateLimited;
use crate::xrpc::{
    self, FetchError, FetchedRepo, RequestTurn, WantedPart, WrittenPart, XrpcError, XrpcFault,
};

/// The expected answer of an account's server to a resync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// A repository, or that it does not serve the account, which ends the resync.
    Anything,
    /// A repository: the account is called active again. An answer that it is not is asked for again, as the server may
    /// be behind its own stream.
    Repository,
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

    /// Writes the wanted part of the repository to `out`, unless another is to be fetched or the whole repository: always, if a source
    /// does not say how.
    fn fetch_part<'a>(
        &'a self,
        host: &'a Url,
        did: Did<'a>,
        wanted: WantedPart<'a>,
        turn: &'a dyn RequestTurn,
        out: &'a mut (dyn Write + Send),
    ) -> PartFetch<'a> {
        let _ = (host, did, wanted, turn, out);
        Box::pin(std::future::ready(Ok(Err(None))))
    }
}

pub(super) type AccountLookup<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<Account>, IdentityError>> + Send + 'a>>;

pub(super) type RepoFetch<'a> =
    Pin<Box<dyn Future<Output = Result<FetchedRepo, FetchError>> + Send + 'a>>;

pub(super) type PartFetch<'a> =
    Pin<Box<dyn Future<Output = Result<WrittenPart, FetchError>> + Send + 'a>>;

/// The hosts that DID documents name.
#[derive(Debug)]
struct Hosts {
    client: xrpc::Client,
    resolver: Resolver,
    limits: Limits,
}

impl RepoSource for Hosts {
    fn account<'a>(&'a self, did: Did<'a>, refresh: bool) -> AccountLookup<'a> {
        if refresh {
            return Box::pin(self.resolver.refresh(did));
        }
        Box::pin(self.resolver.account(did))
    }

    fn fetch<'a>(
        &'a self,
        host: &'a Url,
        did: Did<'a>,
        out: &'a mut (dyn Write + Send),
    ) -> RepoFetch<'a> {
        Box::pin(self.client.fetch_repo(host, did, out, &self.limits))
    }

    fn fetch_part<'a>(
        &'a self,
        host: &'a Url,
        did: Did<'a>,
        wanted: WantedPart<'a>,
        turn: &'a dyn RequestTurn,
        out: &'a mut (dyn Write + Send),
    ) -> PartFetch<'a> {
        Box::pin(self.client.write_part(host, did, wanted, &self.limits, turn, out))
    }
}

fn limited(authority: &str, limited: RateLimited) -> XrpcError {
    XrpcError::new(authority, "getRepo", XrpcFault::RateLimited(limited))
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
        let space = ArchiveSpace::new(options.max_bytes_in_use, options.limits.max_bytes);
        Self {
            source,
            options,
            policy,
            fetches,
            space,
            hosts,
            lookups: Semaphore::new(MAX_RESYNC_LOOKUPS),
            verifications: Semaphore::new(1),
            pacer: Mutex::new(AccountPacer::new()),
            queued: AtomicUsize::new(0),
        }
    }

    /// Fetches the repository of `did`, at the revision of the known state or a later one.
    pub(super) async fn resync(&self, did: &str, known: AccountState) -> ResyncResult {
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
        if self.queued.fetch_add(1, Ordering::Relaxed) < self.options.max_queued {
            return Ok(slot);
        }
        Err(ResyncError::QueueFull)
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
        known: AccountState,
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
        known: AccountState,
    ) -> Result<ResyncedRepo, ResyncError> {
        let began = std::time::Instant::now();
        let account = self.account(did, false).await?;
        let (archive, verified) = self.fetch_verified(&account, known).await?;
        let resynced = archive.into_resynced(did, verified, began);
        let head = resynced.head;
        resynced.check_window(future_window(&self.policy))?;
        match known.head {
            Some(Head { rev: known, .. }) if head.rev < known => {
                let host = resynced.host;
                Err(ResyncError::Outdated { host, rev: head.rev, known })
            }
            _ => Ok(resynced),
        }
    }

    /// Fetches the first part that the host serves and proves; the whole repository if there is none.
    async fn fetch_verified(
        &self,
        account: &Account,
        known: AccountState,
    ) -> Result<(Archive, VerifiedArchive), ResyncError> {
        let host = account.host.as_ref().ok_or(ResyncError::NoHost)?;
        let parts = self.options.collections.parts(account.did().as_str(), known);
        let (mut parts, mut refusal) = (&parts[..], None);
        loop {
            let mut archive = self.fetch(account.did(), host, parts).await?;
            let verified = self.verify_by_any_key(account, &archive).await;
            parts = &parts[archive.parts_tried..];
            match (verified, &archive.part) {
                (Ok(verified), Some(part)) if !part.is_of(verified.head) => {}
                (Err(ResyncError::Rejected { rejection, .. }), Some(part)) => {
                    if part.base.is_none() {
                        refusal = Some(PartRefusal::Proof(rejection));
                    }
                }
                (verified, _) => {
                    archive.part_refusal = refusal.or(archive.part_refusal);
                    return Ok((archive, verified?));
                }
            }
        }
    }

    /// Fetches the first of the parts that is served, otherwise the repository; again with room for a whole one if the archives in use
    /// leave it no space.
    async fn fetch(
        &self,
        did: Did<'_>,
        host: &Url,
        parts: &[ResyncPart],
    ) -> Result<Archive, ResyncError> {
        match self.fetch_within(did, host, parts, None).await {
            Err(ResyncError::Fetch(FetchError::Local(error))) if is_out_of_space(&error) => {
                let slot = self.space.slot_turn(&authority(host)).await;
                self.fetch_within(did, host, parts, Some(&slot)).await
            }
            fetched => fetched,
        }
    }

    /// A rejection by the host of a paced fetch that says until when is no failure: the fetch is repeated then, up to
    /// [`MAX_LIMITED`] times. A part that does not fit between two limits is replaced by the whole repository, which is one request.
    async fn fetch_within(
        &self,
        did: Did<'_>,
        host: &Url,
        parts: &[ResyncPart],
        slot: Option<&SlotTurn>,
    ) -> Result<Archive, ResyncError> {
        for attempt in 0..MAX_LIMITED {
            let parts = if attempt < MAX_LIMITED_PARTS { parts } else { &[] };
            let fetched = self.fetch_in_turn(did, host, parts, slot).await;
            if !self.is_limited(host, &fetched) {
                return fetched;
            }
        }
        self.fetch_in_turn(did, host, &[], slot).await
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
        parts: &[ResyncPart],
        slot: Option<&SlotTurn>,
    ) -> Result<Archive, ResyncError> {
        self.pace(host).await.map_err(FetchError::from)?;
        // The slots bound the fetches of archives that have one.
        let permit = match slot {
            Some(_) => None,
            None => Some(self.fetches.acquire(host).await),
        };
        let permit = permit.transpose().map_err(|TooManyWaiting| ResyncError::QueueFull)?;
        // It is returned by verifications and deliveries, which need no permit.
        let space = self.space.acquire(&authority(host), slot).await;
        let turn = PartTurn::new(self.hosts.as_ref(), &authority(host));
        let started = Instant::now();
        let fetched = self.download(did, host, &turn, parts, space).await;
        if let Some(permit) = permit {
            permit.record(started.elapsed().saturating_sub(turn.waited()), fetched.is_ok());
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
    async fn pace(&self, host: &Url) -> Result<(), XrpcError> {
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let authority = authority(host);
        hosts.until_ready(&authority).await.map_err(|error| limited(&authority, error))
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
        turn: &PartTurn<'_>,
        parts: &[ResyncPart],
        space: Space,
    ) -> Result<Archive, ResyncError> {
        let mut out = ArchiveWriter::new(tempfile::tempfile_in(&self.options.folder)?, space);
        let mut refusal = None;
        for (index, part) in parts.iter().enumerate() {
            match self.source.fetch_part(host, did, part.wanted(), turn, &mut out).await? {
                Ok(fetched) => {
                    let (part, parts_tried) = (Some(part.clone()), index + 1);
                    return Archive::new(fetched, out, part, parts_tried, None);
                }
                // The host need not have the blocks of an earlier commit.
                Err(why) if part.base.is_none() => refusal = why.map(PartRefusal::Fetch),
                Err(_) => {}
            }
            turn.wait().await.map_err(FetchError::from)?;
        }
        let fetched = self.source.fetch(host, did, &mut out).await?;
        Archive::new(fetched, out, None, parts.len(), refusal)
    }

    /// Verifies an archive, under the key that the account has now if the known one does not fit.
    async fn verify_by_any_key(
        &self,
        account: &Account,
        archive: &Archive,
    ) -> Result<VerifiedArchive, ResyncError> {
        match self.verify(account, archive).await {
            Err(ResyncError::Rejected { rejection, .. }) if is_wrong_key(&rejection) => {
                let account = self.account(account.did(), true).await?;
                self.verify(&account, archive).await
            }
            verified => verified,
        }
    }

    /// Verifies an archive on a blocking thread.
    async fn verify(
        &self,
        account: &Account,
        archive: &Archive,
    ) -> Result<VerifiedArchive, ResyncError> {
        let key = account.key.clone().ok_or(ResyncError::NoKey)?;
        let did = account.did().as_str().to_owned();
        let file = archive.file.clone();
        let options = self.options.repository;
        let collections = archive.part.as_ref().map(|part| part.collections.clone());
        let _permit = self.verifications.acquire().await;
        let verify = move || match collections {
            Some(collections) => verify_part(&did, &key, file.file(), &options, &collections),
            None => verify_archive(&did, &key, file.file(), &options),
        };
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
    /// The part that it is; `None` for the whole repository.
    part: Option<ResyncPart>,
    /// Number of parts that were asked for.
    parts_tried: usize,
    part_refusal: Option<PartRefusal>,
}

impl Archive {
    fn new(
        fetched: FetchedRepo,
        out: ArchiveWriter,
        part: Option<ResyncPart>,
        parts_tried: usize,
        part_refusal: Option<PartRefusal>,
    ) -> Result<Self, ResyncError> {
        let FetchedRepo { host, bytes, .. } = fetched;
        Ok(Self { host, bytes, file: out.finish()?.into(), part, parts_tried, part_refusal })
    }

    fn into_resynced(
        self,
        did: Did<'_>,
        verified: VerifiedArchive,
        began: std::time::Instant,
    ) -> ResyncedRepo {
        let Self { host, bytes, file, part, part_refusal, .. } = self;
        let VerifiedArchive { head, key, records, invalid_records } = verified;
        let (collections, base) = match part {
            None => (None, None),
            Some(ResyncPart { collections, base }) => {
                (Some(collections), base.map(|base| base.collections))
            }
        };
        ResyncedRepo {
            did: did.as_str().into(),
            head,
            key,
            collections,
            base,
            part_refusal,
            records,
            invalid_records,
            bytes,
            host,
            began,
            file,
        }
    }
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

/// Verifies an archive that has these collections only.
fn verify_part(
    did: &str,
    key: &PublicKey,
    file: &File,
    options: &repository::Options,
    collections: &Collections,
) -> io::Result<Result<VerifiedArchive, RepositoryRejection>> {
    let archive = read(file)?;
    let mut of_part = record::Options::default();
    of_part.archive = options.archive;
    of_part.max_record_bytes = options.max_record_bytes;
    of_part.strict_records = options.strict_records;
    Ok(collections::verify(&archive, collections, Some(did), key, &of_part).map(|proof| {
        let commit = proof.commit();
        let rev = Tid::parse(commit.rev).expect("a commit with another rev is rejected");
        let head = Head { rev, data: commit.data, commit: proof.root() };
        let invalid_records = proof.invalid_records().records;
        let records = proof.records().len() as u64;
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

/// Concurrent lookups in the directory: every lookup holds a connection, some 30 KiB.
pub(super) const MAX_RESYNC_LOOKUPS: usize = 16;

/// Delays between the attempts of one resync.
const ATTEMPT_BACKOFF: BackoffOptions = BackoffOptions {
    initial: Duration::from_secs(2),
    max: Duration::from_secs(32),
    reset_after: Duration::MAX,
    max_requested: Duration::ZERO,
};

/// Limits that one attempt waits for.
const MAX_LIMITED: usize = 16;

/// Minimum delay before a failed resync is repeated.
const MIN_RETRY_DELAY: Duration = Duration::from_secs(12);
