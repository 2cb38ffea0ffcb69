//! What is done for workers, so that they need not wait: keys are found out, and repositories fetched.
//!
//! Each job is a task of its own, of which so many run at once; its outcome is a message to the
//! worker. There are no more jobs than accounts that wait.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use verify::sync::Head;

use super::counters::RunMetrics;
use super::inbox::{Inbox, WorkerMessage};
use super::item::Answer;
use super::keys::{FixedKeys, KeyProvider};
use super::options::{Options, Verification};
use super::partition::Job;
use super::resync::{ResyncError, ResyncResult, Resyncer};

/// Runs jobs.
pub(super) struct JobPool {
    inboxes: Arc<[Inbox]>,
    keys: Arc<dyn KeyProvider>,
    counters: Arc<RunMetrics>,
    /// One permit for each lookup at the directory, and one for each elsewhere: hosts that do not answer
    /// do not hold up the directory's accounts.
    lookups: [Semaphore; 2],
    resyncer: Option<Resyncer>,
}

impl JobPool {
    pub(super) fn new(options: &Options, inboxes: Arc<[Inbox]>, counters: Arc<RunMetrics>) -> Self {
        let keys = match &options.verify {
            Verification::On { keys, .. } => keys.clone(),
            Verification::Off { .. } => Arc::new(FixedKeys(|_: &str| None)),
        };
        let lookups = [DIRECTORY_LOOKUPS, OTHER_LOOKUPS].map(Semaphore::new);
        let resyncer = options.resync.clone().map(Resyncer::new);
        Self { inboxes, keys, counters, lookups, resyncer }
    }

    /// Runs jobs until nobody can send one any longer. Those under way end when this does.
    pub(super) async fn run(self, mut jobs: UnboundedReceiver<Job>) {
        let job_pool = Arc::new(self);
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                job = jobs.recv() => match job {
                    Some(job) => drop(running.spawn(job_pool.clone().run_one(job))),
                    None => break,
                },
                Some(_) = running.join_next() => {}
            }
        }
    }

    async fn run_one(self: Arc<Self>, job: Job) {
        match job {
            Job::Key { worker, account, did, is_doubted } => {
                let answer = self.find(&did, is_doubted).await;
                self.inboxes[worker].post(WorkerMessage::Found(account, Arc::new(answer)));
            }
            Job::Repository { worker, account, did, known } => {
                let mended = self.mend(&did, known).await;
                self.inboxes[worker].post(WorkerMessage::ResyncResult(account, mended));
            }
        }
    }

    async fn mend(&self, did: &str, known: Option<Head>) -> ResyncResult {
        let Some(resyncer) = &self.resyncer else { return Err(ResyncError::Crowded) };
        let counters = &self.counters.resyncs;
        counters.running.fetch_add(1, Relaxed);
        let began = Instant::now();
        let mended = resyncer.mend(did, known).await;
        counters.times.count(began.elapsed());
        counters.running.fetch_sub(1, Relaxed);
        let ended = if mended.is_ok() { &counters.done } else { &counters.failed };
        ended.fetch_add(1, Relaxed);
        mended
    }

    async fn find(&self, did: &str, is_doubted: bool) -> Answer {
        let counters = &self.counters.keys;
        counters.asked.fetch_add(1, Relaxed);
        counters.doubted.fetch_add(u64::from(is_doubted), Relaxed);
        let place = usize::from(!did.starts_with("did:plc:"));
        let _permit = self.lookups[place].acquire().await;
        let began = Instant::now();
        let found = self.keys.look_up(did, is_doubted).await;
        counters.times.count(began.elapsed());
        counters.failed.fetch_add(u64::from(found.is_err()), Relaxed);
        Answer { found, is_last: is_doubted }
    }
}

/// How many keys are looked for at once at the directory, and how many elsewhere.
const DIRECTORY_LOOKUPS: usize = 64;
const OTHER_LOOKUPS: usize = 32;
