//! Fetches the blobs that records name, a few at a time, and stores those whose bytes have the hash in their CID.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archive::{Accounts, Archive, HideList, StoredBlob};
use atproto::syntax::{Did, DidBuf};
use codec::Cid;
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use net::http::{Limits, Url};
use net::xrpc::{FetchError, PaceOptions, PacedClient};
use program::clock::now_micros;
use program::failure::Failure;
use program::network::{ContactArgs, Network, NetworkArgs, runtime};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio::task::spawn_blocking;

use super::named::{NamedBlobs, named_blobs};
use super::report::{BlobFinding, BlobProblem, BlobSummary};
use super::repository::store_repository;
use crate::identities::{Identities, Identity};

/// The accounts whose blobs are fetched, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlobFetchOptions {
    /// The accounts; all accounts of the archive, if there is none.
    pub accounts: Vec<DidBuf>,
    /// A file of `plc mirror` in which keys and hosts are looked up first.
    pub plc_mirror: Option<PathBuf>,
    /// Maximum number of requests per second to one host, at most 50. 10.
    pub max_rate: f64,
    /// Maximum number of blobs that are fetched at a time. 8.
    pub concurrent_blobs: u16,
    /// Whether stored blobs are hashed, and fetched again if they have other bytes. `false`.
    pub hashes: bool,
    /// Maximum bytes of the blobs that are fetched for one account. 64 GiB.
    pub max_account_bytes: u64,
    /// Limits of one blob. 256 MiB; otherwise as of repositories.
    pub limits: Limits,
    /// A contact for the operators of the hosts. Required for public hosts.
    pub contact: ContactArgs,
    /// The directory, and where connections may go.
    pub network: NetworkArgs,
}

impl Default for BlobFetchOptions {
    fn default() -> Self {
        Self {
            accounts: Vec::new(),
            plc_mirror: None,
            max_rate: 10.0,
            concurrent_blobs: 8,
            hashes: false,
            max_account_bytes: 64 << 30,
            limits: Limits { max_bytes: 256 << 20, ..Limits::REPOSITORY },
            contact: ContactArgs::default(),
            network: NetworkArgs::default(),
        }
    }
}

/// Fetches the blobs that the records of accounts name, and stores them next to the records.
///
/// The records are of the newest whole repository of an account in the archive; if it has none, the repository is fetched from the
/// account's server, verified and stored first. A blob that the archive has, of any account, is not fetched again. After any end, the
/// same call goes on with the blobs that are missing.
#[derive(Debug)]
pub struct BlobFetch {
    archive: Archive,
    options: BlobFetchOptions,
}

impl BlobFetch {
    /// A fetch into an archive, with the default options.
    pub fn new(archive: Archive) -> Self {
        Self { archive, options: BlobFetchOptions::default() }
    }

    /// The same with these options.
    #[must_use]
    pub fn with_options(mut self, options: BlobFetchOptions) -> Self {
        self.options = options;
        self
    }

    /// Runs to the end. Blocks the calling thread, which must not be one of an asynchronous runtime.
    ///
    /// # Errors
    /// If the archive cannot be read or written. What hosts do not send are findings.
    pub fn run(
        self,
        on_finding: impl FnMut(BlobFinding) + Send + 'static,
    ) -> Result<BlobSummary, Failure> {
        let Self { archive, options } = self;
        let network = Network::open_with_contact(&options.network, &options.contact, &[])?;
        let pace = PaceOptions { max_rate: options.max_rate, ..PaceOptions::default() };
        let run = Arc::new(Run {
            identities: Identities::new(options.plc_mirror.as_deref(), &network)?,
            client: PacedClient::new(network.xrpc, &pace),
            limits: options.limits,
            hashes: options.hashes,
            max_account_bytes: options.max_account_bytes,
            places: Semaphore::new(options.concurrent_blobs.max(1).into()),
            reads: Semaphore::new(MAX_READS),
            names: Semaphore::new(MAX_NAMES as usize),
            archive,
            unsealed: AsyncMutex::default(),
            summary: Mutex::default(),
            on_finding: Mutex::new(Box::new(on_finding)),
        });
        runtime()?.block_on(run.clone().accounts(options.accounts))?;
        let summary = run.lock().clone();
        Ok(summary)
    }
}

struct Run {
    identities: Identities,
    client: PacedClient,
    limits: Limits,
    hashes: bool,
    max_account_bytes: u64,
    /// Places for blobs that are being fetched.
    places: Semaphore,
    /// Places for what the archive has: the records of an account, or a blob that is hashed.
    reads: Semaphore,
    /// Places for named blobs, all of them for an account with more.
    names: Semaphore,
    archive: Archive,
    /// Blobs that are stored, and whose rows are not.
    unsealed: AsyncMutex<Vec<StoredBlob>>,
    summary: Mutex<BlobSummary>,
    on_finding: Mutex<Box<dyn FnMut(BlobFinding) + Send>>,
}

/// An account whose blobs are being fetched.
struct FetchedAccount<'a> {
    did: Did<'a>,
    host: Url,
    /// Bytes that were fetched for it.
    bytes: AtomicU64,
}

impl Run {
    async fn accounts(self: Arc<Self>, accounts: Vec<DidBuf>) -> Result<(), Failure> {
        self.archive.sweep_temporary_files()?;
        let hidden = self.archive.hide_list().await?;
        let all = if accounts.is_empty() { Some(self.archive.accounts().await?) } else { None };
        let dids = match all {
            Some(all) => stored_accounts(all).boxed(),
            None => stream::iter(accounts).map(Ok).boxed(),
        };
        let run = &self;
        let shown = dids.try_filter(|did| std::future::ready(is_shown(&hidden, did.as_did())));
        shown
            .try_for_each_concurrent(
                MAX_ACCOUNTS,
                |did| async move { run.account(did.as_did()).await },
            )
            .await?;
        self.seal(0).await
    }

    async fn account(self: &Arc<Self>, did: Did<'_>) -> Result<(), Failure> {
        self.lock().account_count += 1;
        let named = match self.named(did).await? {
            Ok(named) => named,
            Err(message) => {
                self.lock().unknown_account_count += 1;
                self.report(BlobFinding::of_account(did.as_str(), message));
                return Ok(());
            }
        };
        let count = named.records.len().min(MAX_NAMES as usize) as u32;
        let _names = self.names.acquire_many(count).await;
        let stored = self.archive.blobs_of(did.as_str()).await?;
        self.lock().blob_count += named.records.len() as u64;
        if named.has_more {
            self.lock().missing_count += 1;
            self.report(BlobFinding::of_many(did.as_str()));
        }
        let mut missing = Vec::new();
        for (cid, record) in named.records {
            match self.size(&cid).await? {
                Some(size) => {
                    self.lock().present_count += 1;
                    if stored.get(&cid) != Some(&size) {
                        self.add(did, cid, size, "").await?;
                    }
                }
                None => missing.push((cid, record, !stored.contains_key(&cid))),
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let host = match self.host(did).await {
            Ok((_, host)) => host,
            Err(message) => {
                self.lock().missing_count += missing.len() as u64;
                self.report(BlobFinding::of_account(did.as_str(), message));
                return Ok(());
            }
        };
        let account = FetchedAccount { did, host, bytes: AtomicU64::new(0) };
        let fetches = stream::iter(missing).map(Ok);
        fetches
            .try_for_each_concurrent(MAX_OF_ACCOUNT, |(cid, record, is_new)| {
                let (run, account) = (self, &account);
                async move { run.blob(account, cid, &record, is_new).await }
            })
            .await
    }

    /// The size of the content of a blob; `None` if it is to be fetched.
    async fn size(&self, cid: &Cid) -> Result<Option<u64>, Failure> {
        Ok(if self.hashes {
            let _read = self.reads.acquire().await;
            self.archive.check_blob(cid).await?.ok()
        } else {
            self.archive.blob_size(cid).await?
        })
    }

    /// The blobs that the records of an account name; the error says why they are not known.
    async fn named(self: &Arc<Self>, did: Did<'_>) -> Result<Result<NamedBlobs, String>, Failure> {
        if let Some(named) = self.stored_names(did).await? {
            return Ok(Ok(named));
        }
        let fetched = match self.host(did).await {
            Ok((key, host)) => {
                store_repository(&self.archive, &self.client, did, &key, &host).await
            }
            Err(message) => Err(message),
        };
        let named = match fetched {
            Ok(()) => self.stored_names(did).await?,
            Err(message) => return Ok(Err(message)),
        };
        Ok(named.ok_or_else(|| "the archive does not have its whole repository".to_owned()))
    }

    /// The same from the archive, on a thread of its own: it takes processor time.
    async fn stored_names(self: &Arc<Self>, did: Did<'_>) -> Result<Option<NamedBlobs>, Failure> {
        let _read = self.reads.acquire().await;
        let (run, did, runtime) = (self.clone(), did.as_str().to_owned(), Handle::current());
        let named = spawn_blocking(move || runtime.block_on(named_blobs(&run.archive, &did)));
        Ok(named.await.map_err(crate::backfill_run::ended_early)??)
    }

    /// The key and the host of an account; the error says why they are not known.
    async fn host(&self, did: Did<'_>) -> Result<(crypto::PublicKey, Url), String> {
        match self.identities.get(did).await {
            Ok(Identity::Known { key: Some(key), host: Some(host) }) => Ok((key, host)),
            Ok(Identity::Known { .. }) => {
                Err("its DID document names no host, or no usable key".to_owned())
            }
            Ok(Identity::Deleted) => Err("the account was deleted".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Fetches a blob, and stores it.
    async fn blob(
        &self,
        account: &FetchedAccount<'_>,
        cid: Cid,
        record: &str,
        is_new: bool,
    ) -> Result<(), Failure> {
        let did = account.did;
        match self.download(account, &cid).await? {
            Ok((size, from)) => {
                account.bytes.fetch_add(size, Relaxed);
                {
                    let mut summary = self.lock();
                    summary.fetched_count += 1;
                    summary.byte_count += size;
                }
                if is_new { self.add(did, cid, size, &from).await } else { Ok(()) }
            }
            Err(problem) => {
                let is_refusal = problem.is_refusal();
                {
                    let mut summary = self.lock();
                    summary.refused_count += u64::from(is_refusal);
                    summary.missing_count += u64::from(!is_refusal);
                }
                self.report(BlobFinding::of_blob(did.as_str(), record, &cid, &problem));
                Ok(())
            }
        }
    }

    /// The size of a stored blob and the origin that sent it, or the fault of the answer.
    async fn download(
        &self,
        account: &FetchedAccount<'_>,
        cid: &Cid,
    ) -> Result<Result<(u64, Box<str>), BlobProblem>, Failure> {
        let (did, host) = (account.did, &account.host);
        let _place = self.places.acquire().await;
        if account.bytes.load(Relaxed) >= self.max_account_bytes {
            return Ok(Err(BlobProblem::AccountLimit(self.max_account_bytes)));
        }
        let (archive, limits) = (&self.archive, &self.limits);
        let received = self.client.request(host, "getBlob", async |client| {
            let mut content = match archive.stage_blob() {
                Ok(content) => content,
                Err(error) => return Ok(Err(Failure::from(error))),
            };
            match client.fetch_blob(host, did, cid, &mut content, limits).await {
                Ok(fetched) => Ok(Ok((content, fetched.host))),
                Err(FetchError::Remote(error)) => Err(error),
                Err(FetchError::Local(error)) => {
                    Ok(Err(Failure::Local(format!("a blob cannot be stored: {error}"))))
                }
            }
        });
        let (content, from) = match received.await {
            Ok(received) => received?,
            Err(error) => return Ok(Err(BlobProblem::NotSent((&error).into()))),
        };
        let size = content.size();
        let is_it = archive.put_blob(cid, content).await?;
        Ok(if is_it { Ok((size, from)) } else { Err(BlobProblem::OtherBytesSent(from)) })
    }

    /// Adds a row, which is stored together with others.
    async fn add(&self, did: Did<'_>, cid: Cid, size: u64, host: &str) -> Result<(), Failure> {
        let (did, host) = (did.as_str().to_owned(), host.to_owned());
        self.unsealed.lock().await.push(StoredBlob { did, cid, size, host, fetched: now_micros() });
        self.seal(MAX_UNSEALED).await
    }

    /// Stores the rows if there are more than `max`.
    async fn seal(&self, max: usize) -> Result<(), Failure> {
        let mut unsealed = self.unsealed.lock().await;
        if unsealed.len() > max {
            self.archive.seal_blobs(std::mem::take(&mut unsealed)).await?;
        }
        Ok(())
    }

    fn report(&self, finding: BlobFinding) {
        (self.on_finding.lock().unwrap_or_else(PoisonError::into_inner))(finding);
    }

    fn lock(&self) -> MutexGuard<'_, BlobSummary> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stored_accounts(accounts: Accounts) -> impl Stream<Item = Result<DidBuf, Failure>> {
    stream::try_unfold(accounts, async |mut accounts| {
        while let Some(did) = accounts.next().await? {
            // The archive has no other ones.
            if let Ok(did) = did.parse::<DidBuf>() {
                return Ok(Some((did, accounts)));
            }
        }
        Ok(None)
    })
}

fn is_shown(hidden: &HideList, did: Did<'_>) -> bool {
    !hidden.has_account(did.as_str())
}

/// Accounts that are processed at a time.
const MAX_ACCOUNTS: usize = 8;

/// Reads of the archive at a time: each takes megabytes.
const MAX_READS: usize = 2;

/// Named blobs in memory, unless one account has more.
const MAX_NAMES: u32 = 100_000;

/// Blobs of one account that are fetched at a time.
const MAX_OF_ACCOUNT: usize = 4;

/// Rows that are not stored yet, up to which more are waited for.
const MAX_UNSEALED: usize = 1_000;
