//! One repository after the other is fetched and proved, or so many at once.

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use atproto::syntax::{Did, Tid};
use crypto::PublicKey;
use tempfile::TempPath;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use verify::repository::{self, RepositoryFault, RepositoryRejection};
use verify::sync::Head;

use super::backoff::BackoffOptions;
use super::{ResyncError, ResyncOptions, ResyncResult, ResyncedRepo};
use crate::hosts::Jitter;
use crate::http::{Url, authority};
use crate::identity::{Account, IdentityError};

/// Fetches repositories and proves them.
#[derive(Debug)]
pub(in super::super) struct Resyncer {
    options: ResyncOptions,
    fetches: Semaphore,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// One repository is in memory at a time.
    proofs: Semaphore,
    backoff: Mutex<BackoffOptions>,
    in_line: AtomicUsize,
    chance: Mutex<Jitter>,
}

impl Resyncer {
    pub(in super::super) fn new(options: ResyncOptions) -> Self {
        let fetches = Semaphore::new(options.max_fetches.max(1));
        let (hosts, backoff, in_line, chance) = Default::default();
        Self { options, fetches, hosts, proofs: Semaphore::new(1), backoff, in_line, chance }
    }

    /// The repository of `did`, of the revision `known` or a later one.
    pub(in super::super) async fn mend(&self, did: &str, known: Option<Head>) -> ResyncResult {
        lock(&self.backoff).take(did, Instant::now()).map_err(ResyncError::TooSoon)?;
        let _place = self.stand_in_line()?;
        let mended = self.try_on(did, known).await;
        match &mended {
            Ok(_) => lock(&self.backoff).succeed(did),
            Err(_) => lock(&self.backoff).fail(did, Instant::now()),
        }
        mended.map(Arc::new)
    }

    fn stand_in_line(&self) -> Result<Place<'_>, ResyncError> {
        let place = Place(&self.in_line);
        match self.in_line.fetch_add(1, Ordering::Relaxed) < self.options.max_queued {
            true => Ok(place),
            false => Err(ResyncError::Crowded),
        }
    }

    async fn try_on(&self, did: &str, known: Option<Head>) -> Result<ResyncedRepo, ResyncError> {
        let did = Did::parse(did).map_err(ResyncError::NotADid)?;
        let mut attempt = 1;
        loop {
            match self.try_once(did, known).await {
                Err(error) if attempt < self.options.attempts && error.may_pass() => {}
                settled => return settled,
            }
            let bound = FIRST_WAIT * 2_u32.pow(attempt.min(MAX_DOUBLINGS));
            let part = lock(&self.chance).fraction();
            tokio::time::sleep(bound.mul_f64(part)).await;
            attempt += 1;
        }
    }

    async fn try_once(
        &self,
        did: Did<'_>,
        known: Option<Head>,
    ) -> Result<ResyncedRepo, ResyncError> {
        let account = self.options.resolver.account(did).await.map_err(identity)?;
        let host = account.host.as_ref().ok_or(ResyncError::NoHost)?;
        let fetched = self.fetch(did, host).await?;
        let proof = match self.prove(&account, &fetched).await {
            Err(ResyncError::Refused { rejection, .. }) if is_of_another_key(&rejection) => {
                let account = self.options.resolver.refresh(did).await.map_err(identity)?;
                self.prove(&account, &fetched).await?
            }
            proof => proof?,
        };
        let (Fetched { host, bytes, path }, Proof { head, records }) = (fetched, proof);
        match known {
            Some(Head { rev: known, .. }) if head.rev < known => {
                Err(ResyncError::Behind { host, rev: head.rev, known })
            }
            _ => Ok(ResyncedRepo { did: did.as_str().into(), head, records, bytes, host, path }),
        }
    }

    async fn fetch(&self, did: Did<'_>, host: &Url) -> Result<Fetched, ResyncError> {
        // Who waits for a busy host keeps no other host's place.
        let _turn = self.turn(&authority(host)).await;
        let _permit = self.fetches.acquire().await;
        let options = &self.options;
        let (file, path) = tempfile::Builder::new()
            .prefix("wireproof-")
            .suffix(".car")
            .tempfile_in(&options.folder)?
            .into_parts();
        let mut out = BufWriter::new(file);
        let fetched = options.client.fetch_repo(host, did, &mut out, &options.limits).await?;
        out.flush()?;
        Ok(Fetched { host: fetched.host, bytes: fetched.bytes, path })
    }

    /// A turn at a host; hosts at which nobody has one are forgotten.
    async fn turn(&self, host: &str) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut hosts = lock(&self.hosts);
            hosts.retain(|_, turns| Arc::strong_count(turns) > 1);
            let most = self.options.max_fetches_per_host.max(1);
            let turns =
                hosts.entry(host.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(most)));
            turns.clone()
        };
        turns.acquire_owned().await.ok()
    }

    /// Proves an archive, on a thread for such work.
    async fn prove(&self, account: &Account, fetched: &Fetched) -> Result<Proof, ResyncError> {
        let key = account.key.clone().ok_or(ResyncError::NoKey)?;
        let did = account.did().as_str().to_owned();
        let (path, options) = (fetched.path.to_path_buf(), self.options.repository);
        let _permit = self.proofs.acquire().await;
        let proof = tokio::task::spawn_blocking(move || prove(&did, &key, &path, &options)).await;
        let host = || fetched.host.clone();
        match proof.map_err(|_| ResyncError::Panicked)?? {
            Ok(proof) => Ok(proof),
            Err(rejection) => {
                Err(ResyncError::Refused { host: host(), rejection: rejection.into() })
            }
        }
    }
}

/// An archive of which nothing is proved.
#[derive(Debug)]
struct Fetched {
    host: Box<str>,
    bytes: u64,
    path: TempPath,
}

/// What was proved of an archive.
#[derive(Clone, Copy, Debug)]
struct Proof {
    head: Head,
    records: u64,
}

fn prove(
    did: &str,
    key: &PublicKey,
    path: &Path,
    options: &repository::Options,
) -> io::Result<Result<Proof, RepositoryRejection>> {
    let archive = std::fs::read(path)?;
    Ok(repository::verify(&archive, Some(did), key, options).map(|whole| {
        let commit = whole.commit();
        let rev = Tid::parse(commit.rev).expect("a repository with another rev is refused");
        let head = Head { rev, data: commit.data, commit: whole.root() };
        Proof { head, records: whole.tree().records }
    }))
}

/// A place in line.
struct Place<'l>(&'l AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_of_another_key(rejection: &RepositoryRejection) -> bool {
    matches!(rejection.fault, RepositoryFault::Signature(_))
}

fn identity(error: IdentityError) -> ResyncError {
    ResyncError::Identity(error.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Between two tries, at random up to this; then twice that, and so on.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_DOUBLINGS: u32 = 5;
