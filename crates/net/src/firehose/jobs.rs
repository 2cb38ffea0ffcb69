//! Jobs that workers do not wait for: lookups of keys and statuses, and resyncs.
//!
//! Each job is a task, with a limit on concurrent ones; its result is a message to the worker. There is at
//! most one job per parked account.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use verify::sync::{Head, Policy};

use super::keys::{FixedKeys, KeyProvider};
use super::metrics::RunMetrics;
use super::options::{Options, Verification};
use super::queue::{Inbox, LookedUpKey, WorkerMessage};
use super::resync::{ResyncError, ResyncResult, Resyncer};
use super::status::{StatusError, StatusProvider};

/// A job for an account of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Look up a key.
    LookUpKey { worker: usize, account: u64, did: Box<str>, refresh: bool },
    /// Resync a repository, to the revision of `known` or a later one.
    Resync { worker: usize, account: u64, did: Box<str>, known: Option<Head> },
    /// Ask an account's own server whether the account is active.
    LookUpStatus { worker: usize, account: u64, did: Box<str> },
}

/// Runs jobs.
pub(super) struct JobPool {
    inboxes: Arc<[Inbox]>,
    keys: Arc<dyn KeyProvider>,
    metrics: Arc<RunMetrics>,
    /// Permits for lookups at the PLC directory, and elsewhere: slow hosts do not delay the directory's
    /// accounts.
    lookups: [Semaphore; 2],
    resyncer: Option<Resyncer>,
    statuses: Option<Arc<dyn StatusProvider>>,
    /// Deadline of a status lookup.
    max_hold: Duration,
}

impl JobPool {
    pub(super) fn new(options: &Options, inboxes: Arc<[Inbox]>, metrics: Arc<RunMetrics>) -> Self {
        let (keys, policy) = match &options.verify {
            Verification::On { keys, policy, .. } => (keys.clone(), *policy),
            Verification::Off { .. } => {
                (Arc::new(FixedKeys(|_: &str| None)) as _, Policy::default())
            }
        };
        let lookups = [DIRECTORY_LOOKUPS, OTHER_LOOKUPS].map(Semaphore::new);
        let resyncer = options.resync.clone().map(|resync| Resyncer::new(resync, policy));
        let (statuses, max_hold) = (options.statuses.clone(), options.limits.max_hold);
        Self { inboxes, keys, metrics, lookups, resyncer, statuses, max_hold }
    }

    /// Runs jobs until all senders are dropped. Running jobs end with this future.
    pub(super) async fn run(self, mut jobs: UnboundedReceiver<Job>) {
        let pool = Arc::new(self);
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(job) => drop(running.spawn(pool.clone().run_job(job))),
                    None => break,
                },
                Some(_) = running.join_next() => {}
            }
        }
    }

    async fn run_job(self: Arc<Self>, job: Job) {
        match job {
            Job::LookUpKey { worker, account, did, refresh } => {
                let key = Arc::new(self.look_up_key(&did, refresh).await);
                self.inboxes[worker].send(WorkerMessage::KeyLookedUp(account, key));
            }
            Job::Resync { worker, account, did, known } => {
                let result = self.resync(&did, known).await;
                self.inboxes[worker].send(WorkerMessage::Resynced(account, result));
            }
            Job::LookUpStatus { worker, account, did } => {
                let result = timeout(self.max_hold, self.look_up_status(&did)).await;
                let result = result.unwrap_or(Err(StatusError::TimedOut));
                self.metrics.count_status_lookup(&result);
                self.inboxes[worker].send(WorkerMessage::StatusLookedUp(account, result));
            }
        }
    }

    async fn look_up_status(&self, did: &str) -> Result<bool, StatusError> {
        let provider = self.statuses.as_ref().ok_or(StatusError::NoProvider)?;
        for attempt in 1..STATUS_ATTEMPTS {
            match provider.look_up(did).await {
                Err(error) if error.is_temporary() => sleep(STATUS_RETRY * attempt).await,
                result => return result,
            }
        }
        provider.look_up(did).await
    }

    async fn resync(&self, did: &str, known: Option<Head>) -> ResyncResult {
        let Some(resyncer) = &self.resyncer else { return Err(ResyncError::QueueFull) };
        let metrics = &self.metrics.resyncs;
        metrics.running.fetch_add(1, Relaxed);
        let started = Instant::now();
        let result = resyncer.resync(did, known).await;
        metrics.time.count(started.elapsed());
        metrics.running.fetch_sub(1, Relaxed);
        let ended = if result.is_ok() { &metrics.done } else { &metrics.failed };
        ended.fetch_add(1, Relaxed);
        result
    }

    async fn look_up_key(&self, did: &str, refresh: bool) -> LookedUpKey {
        let metrics = &self.metrics.key_lookups;
        metrics.started.fetch_add(1, Relaxed);
        metrics.refreshes.fetch_add(u64::from(refresh), Relaxed);
        let source = usize::from(!did.starts_with("did:plc:"));
        let _permit = self.lookups[source].acquire().await;
        let started = Instant::now();
        let key = self.keys.look_up(did, refresh).await;
        metrics.time.count(started.elapsed());
        metrics.failed.fetch_add(u64::from(key.is_err()), Relaxed);
        LookedUpKey { key, is_final: refresh }
    }
}

/// Concurrent key lookups at the PLC directory, and elsewhere.
const DIRECTORY_LOOKUPS: usize = 64;
const OTHER_LOOKUPS: usize = 32;

/// Attempts of a status lookup, and the delay after the first; it grows with each.
const STATUS_ATTEMPTS: u32 = 4;
const STATUS_RETRY: Duration = Duration::from_secs(1);
