//! Jobs that workers do not wait for: lookups of keys and statuses, and resyncs.
//!
//! Every job is a task, with a limit on concurrent ones; its result is a message to the worker. There is at
//! most one job per parked account, and a key lookup ends when its account is released.
//!
//! A key lookup that fails temporarily is repeated. At a host of a `did:web` account that ends with a deadline.
//! At the directory, on which nearly all accounts depend, it ends when the directory answers; only when it
//! answers others and not this lookup, several times, the lookup is given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use verify::sync::{AccountKey, AccountState, Policy};

use super::handler::{Handler, Warning};
use super::keys::{FixedKeys, KeyError, KeyProvider, host_domain};
use super::metrics::RunMetrics;
use super::options::{Options, Verification};
use super::queue::{Inbox, LookedUpKey, LookupHandle, WorkerMessage};
use super::resync::{Expected, Resyncer};
use super::resynced_repo::{ResyncError, ResyncResult};
use super::status::{StatusError, StatusProvider};
use crate::concurrency::ConcurrencyLimit;
use crate::hosts::BackoffOptions;

/// A job for an account of a worker.
#[derive(Debug)]
pub(super) enum Job {
    /// Look up a key.
    LookUpKey { worker: usize, account: u64, did: Box<str>, refresh: bool, lookup: LookupHandle },
    /// Resync a repository, to the revision of the known state or a later one.
    Resync { worker: usize, account: u64, did: Box<str>, known: AccountState, expected: Expected },
    /// Ask an account's own server whether the account is active.
    LookUpStatus { worker: usize, account: u64, did: Box<str> },
}

/// Runs jobs.
pub(super) struct JobPool {
    inboxes: Arc<[Inbox]>,
    keys: KeyLookups,
    metrics: Arc<RunMetrics>,
    pub(super) resyncer: Option<Resyncer>,
    statuses: Option<Arc<dyn StatusProvider>>,
    /// Deadline of a status lookup.
    max_hold: Duration,
}

impl JobPool {
    /// A pool that reports warnings for the operator to `handler`.
    pub(super) fn new(
        options: &Options,
        inboxes: Arc<[Inbox]>,
        metrics: Arc<RunMetrics>,
        handler: Arc<dyn Handler>,
    ) -> Self {
        let keys = KeyLookups::new(options, metrics.clone(), handler);
        let policy = match &options.verify {
            Verification::On { policy, .. } => *policy,
            Verification::Off { .. } => Policy::default(),
        };
        let resyncer = options.resync.clone().map(|resync| Resyncer::new(resync, policy));
        if let Some(resyncer) = &resyncer {
            // A run has one pool.
            let _ = metrics.resyncs.space.set(resyncer.space().clone());
        }
        let statuses = options.statuses.clone();
        let max_hold = options.limits.max_hold;
        Self { inboxes, keys, metrics, resyncer, statuses, max_hold }
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
            Job::LookUpKey { worker, account, did, refresh, lookup } => {
                let key = tokio::select! {
                    biased;
                    _ = lookup.released => return,
                    key = self.keys.look_up(&did, refresh) => Arc::new(key),
                };
                let lookup = lookup.number;
                self.inboxes[worker].send(WorkerMessage::KeyLookedUp { account, lookup, key });
            }
            Job::Resync { worker, account, did, known, expected } => {
                let result = self.resync_repeatedly(worker, account, &did, known, expected).await;
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

    /// Resyncs until it succeeds or is given up. The worker learns of every failure.
    async fn resync_repeatedly(
        &self,
        worker: usize,
        account: u64,
        did: &str,
        known: AccountState,
        expected: Expected,
    ) -> ResyncResult {
        for retries in 0.. {
            let error = match self.resync(did, known).await {
                Err(error) => error,
                done => return done,
            };
            let resyncer = self.resyncer.as_ref();
            let delay =
                resyncer.and_then(|resyncer| resyncer.retry_delay(did, &error, retries, expected));
            let Some((delay, _delayed)) = delay.zip(self.delay_one()) else { return Err(error) };
            self.inboxes[worker].send(WorkerMessage::ResyncDelayed(account, error, delay));
            sleep(delay).await;
        }
        Err(ResyncError::QueueFull)
    }

    /// Counts a resync that is delayed, unless too many are.
    fn delay_one(&self) -> Option<DelayedResync<'_>> {
        let delayed = DelayedResync(&self.metrics.resyncs.delayed);
        (delayed.0.fetch_add(1, Relaxed) < MAX_DELAYED).then_some(delayed)
    }

    async fn resync(&self, did: &str, known: AccountState) -> ResyncResult {
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
}

/// A resync that is delayed after a failure.
struct DelayedResync<'m>(&'m AtomicU64);

impl Drop for DelayedResync<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Looks up keys: with limits on concurrent lookups, and repeated while their source is unavailable.
struct KeyLookups {
    provider: Arc<dyn KeyProvider>,
    handler: Arc<dyn Handler>,
    metrics: Arc<RunMetrics>,
    /// Permits for the directory.
    directory: ConcurrencyLimit,
    /// Permits for hosts of `did:web` accounts, by registrable domain: one that does not answer delays neither
    /// others nor the directory.
    hosts: ConcurrencyLimit,
    max_wait: Duration,
}

impl KeyLookups {
    fn new(options: &Options, metrics: Arc<RunMetrics>, handler: Arc<dyn Handler>) -> Self {
        let provider = match &options.verify {
            Verification::On { keys, .. } => keys.clone(),
            Verification::Off { .. } => Arc::new(FixedKeys(|_: &str| None)),
        };
        let directory = ConcurrencyLimit::new(DIRECTORY_LOOKUPS, DIRECTORY_LOOKUPS);
        let hosts = ConcurrencyLimit::new(DOMAIN_LOOKUPS, HOST_LOOKUPS);
        let max_wait = options.limits.max_key_wait;
        Self { provider, handler, metrics, directory, hosts, max_wait }
    }

    async fn look_up(&self, did: &str, refresh: bool) -> LookedUpKey {
        let metrics = &self.metrics.key_lookups;
        metrics.started.fetch_add(1, Relaxed);
        metrics.refreshes.fetch_add(u64::from(refresh), Relaxed);
        let key = match host_domain(did) {
            None => self.look_up_in_directory(did, refresh).await,
            Some(domain) => {
                let lookup = self.look_up_at_host(&domain, did, refresh);
                timeout(self.max_wait, lookup)
                    .await
                    .unwrap_or(Err(KeyError::TimedOut(self.max_wait)))
            }
        };
        metrics.failed.fetch_add(u64::from(key.is_err()), Relaxed);
        LookedUpKey { key, is_final: refresh }
    }

    /// Asks until the host answers; the caller sets the deadline.
    async fn look_up_at_host(
        &self,
        domain: &str,
        did: &str,
        refresh: bool,
    ) -> Result<AccountKey, KeyError> {
        let mut attempt = 0;
        loop {
            let permit = self.hosts.acquire(domain).await;
            let key = self.ask(did, refresh).await;
            drop(permit);
            if !is_temporary(&key) {
                return key;
            }
            sleep(RETRY.bound(attempt)).await;
            attempt += 1;
        }
    }

    /// Asks until the directory answers, or refuses this lookup while it answers others.
    async fn look_up_in_directory(&self, did: &str, refresh: bool) -> Result<AccountKey, KeyError> {
        let mut attempt = 0;
        let mut refusals = 0;
        let mut answers = self.provider.directory_answers();
        loop {
            // Kept during the delay, which so limits the rate of requests to a directory that fails.
            let _permit = self.directory.acquire("").await;
            let key = self.ask(did, refresh).await;
            let Some(error) = key.as_ref().err().filter(|error| error.is_temporary()) else {
                return key;
            };
            let answers_now = self.provider.directory_answers();
            refusals += u32::from(answers_now > answers && !error.is_rate_limit());
            if refusals >= MAX_REFUSALS {
                return key;
            }
            answers = answers_now;
            sleep(RETRY.bound(attempt)).await;
            attempt += 1;
        }
    }

    /// Asks once.
    async fn ask(&self, did: &str, refresh: bool) -> Result<AccountKey, KeyError> {
        let started = Instant::now();
        let key = timeout(self.max_wait, self.provider.look_up(did, refresh)).await;
        let key = key.unwrap_or(Err(KeyError::TimedOut(self.max_wait)));
        self.metrics.key_lookups.time.count(started.elapsed());
        if let Err(error) = &key
            && error.is_temporary()
        {
            self.metrics.key_lookups.retries.fetch_add(1, Relaxed);
            self.handler.warning(&Warning::KeyUnavailable { did, error });
        }
        key
    }
}

fn is_temporary(key: &Result<AccountKey, KeyError>) -> bool {
    key.as_ref().is_err_and(KeyError::is_temporary)
}

/// Concurrent lookups at the directory, at the hosts of one registrable domain, and at all hosts.
const DIRECTORY_LOOKUPS: usize = 64;
const DOMAIN_LOOKUPS: usize = 8;
const HOST_LOOKUPS: usize = 256;

/// Failed attempts of a lookup, while the directory answers others, after which it is given up.
const MAX_REFUSALS: u32 = 8;

/// Delays before a lookup is repeated, without jitter: the permits spread the requests.
const RETRY: BackoffOptions = BackoffOptions {
    initial: Duration::from_secs(1),
    max: Duration::from_secs(5),
    reset_after: Duration::MAX,
    max_requested: Duration::ZERO,
};

/// Maximum number of delayed resyncs; others are repeated at the next event of their accounts.
const MAX_DELAYED: u64 = 16 << 10;

/// Attempts of a status lookup, and the delay after the first; it grows with every attempt.
const STATUS_ATTEMPTS: u32 = 4;
const STATUS_RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::FutureExt;

    use super::super::ack::Ack;
    use super::super::handler::DeliveredEvent;
    use super::super::keys::KeyLookup;
    use super::super::resync_options::ResyncOptions;
    use super::super::status::StatusLookup;
    use super::*;
    use crate::dns::LoopbackDns;
    use crate::egress::EgressPolicy;
    use crate::http::Client;
    use crate::identity::{IdentityError, IdentityFault, Resolver};
    use crate::xrpc::{self, XrpcError, XrpcFault};

    /// A directory and hosts. An account `ok` is found; others are unavailable, `silent` ones without an answer.
    #[derive(Default)]
    struct Sources {
        asked: Mutex<Vec<Box<str>>>,
        is_back: Mutex<bool>,
        answers_others: bool,
        limits_rate: bool,
        answers: AtomicU64,
    }

    impl Sources {
        fn asked(&self) -> usize {
            self.asked.lock().unwrap().len()
        }
    }

    impl KeyProvider for Arc<Sources> {
        fn cached(&self, _: &str) -> AccountKey {
            AccountKey::Unknown
        }

        fn look_up<'a>(&'a self, did: &'a str, _: bool) -> KeyLookup<'a> {
            self.asked.lock().unwrap().push(did.into());
            self.answers.fetch_add(u64::from(self.answers_others), Relaxed);
            let is_back = *self.is_back.lock().unwrap();
            Box::pin(async move {
                if did.contains("silent") {
                    std::future::pending::<()>().await;
                }
                let fault = IdentityFault::Status(if self.limits_rate { 429 } else { 503 });
                let error = || IdentityError { subject: did.into(), host: None, fault };
                if is_back || did.contains("ok") {
                    return Ok(AccountKey::OtherHost);
                }
                Err(KeyError::Identity(Box::new(error())))
            })
        }

        fn invalidate(&self, _: &str) {}

        fn directory_answers(&self) -> u64 {
            self.answers.load(Relaxed)
        }
    }

    #[derive(Default)]
    struct Warnings(AtomicU64);

    impl Handler for Warnings {
        fn event(&self, _: &DeliveredEvent<'_>, ack: Ack) {
            ack.done();
        }

        fn warning(&self, _: &Warning<'_>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn lookups(sources: &Arc<Sources>) -> (Arc<KeyLookups>, Arc<Warnings>) {
        let options = Options::new(vec![], Arc::new(sources.clone()));
        let warnings = Arc::<Warnings>::default();
        (Arc::new(KeyLookups::new(&options, Arc::default(), warnings.clone())), warnings)
    }

    const DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

    #[tokio::test(start_paused = true)]
    async fn a_directory_that_is_away_is_asked_until_it_is_back() {
        let sources = Arc::<Sources>::default();
        let (lookups, warnings) = lookups(&sources);
        let asking = lookups.clone();
        let lookup = tokio::spawn(async move { asking.look_up(DID, false).await.key });
        sleep(Duration::from_secs(3600)).await;
        assert!(!lookup.is_finished());
        let attempts = sources.asked();
        assert!((720..730).contains(&attempts), "every five seconds: {attempts}");
        *sources.is_back.lock().unwrap() = true;
        assert_eq!(lookup.await.unwrap(), Ok(AccountKey::OtherHost));
        assert_eq!(warnings.0.load(Relaxed), attempts as u64, "one for each failure");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_that_fails_while_the_directory_answers_others_is_given_up() {
        let sources = Arc::new(Sources { answers_others: true, ..Sources::default() });
        let (lookups, _) = lookups(&sources);
        let error = lookups.look_up(DID, false).await.key.unwrap_err();
        assert!(error.is_temporary(), "{error}");
        assert_eq!(sources.asked(), MAX_REFUSALS as usize);
    }

    #[tokio::test(start_paused = true)]
    async fn a_directory_that_limits_the_rate_is_asked_until_it_answers() {
        let sources =
            Arc::new(Sources { answers_others: true, limits_rate: true, ..Sources::default() });
        let (lookups, _) = lookups(&sources);
        let lookup = tokio::spawn(async move { lookups.look_up(DID, false).await.key });
        sleep(Duration::from_secs(3600)).await;
        assert!(!lookup.is_finished());
        *sources.is_back.lock().unwrap() = true;
        assert_eq!(lookup.await.unwrap(), Ok(AccountKey::OtherHost));
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_asked_until_the_deadline() {
        let sources = Arc::<Sources>::default();
        let (lookups, _) = lookups(&sources);
        let wait = Duration::from_secs(30);
        for did in ["did:web:silent.test", "did:web:failing.test"] {
            let start = tokio::time::Instant::now();
            assert_eq!(lookups.look_up(did, false).await.key, Err(KeyError::TimedOut(wait)));
            assert_eq!(start.elapsed(), wait);
        }
        // The silent one once; the other after delays of 1, 2, 4 and then 5 seconds.
        assert_eq!(sources.asked(), 1 + 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_domain_delays_neither_other_domains_nor_the_directory() {
        let sources = Arc::<Sources>::default();
        let (lookups, _) = lookups(&sources);
        for number in 0..10_000 {
            let asking = lookups.clone();
            let did = format!("did:web:a{number}.silent.test");
            tokio::spawn(async move { asking.look_up(&did, false).await });
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(sources.asked(), DOMAIN_LOOKUPS);
        for did in ["did:web:ok.test", "did:plc:ok"] {
            let key = lookups.look_up(did, false).now_or_never().map(|looked_up| looked_up.key);
            assert_eq!(key, Some(Ok(AccountKey::OtherHost)), "{did}");
        }
    }

    /// A server that fails `left` times, and then calls every account active.
    #[derive(Debug)]
    struct Failing {
        left: AtomicU64,
        error: StatusError,
    }

    impl StatusProvider for Failing {
        fn look_up<'a>(&'a self, _: &'a str) -> StatusLookup<'a> {
            let fails = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            let result = fails.map_or(Ok(true), |_| Err(self.error.clone()));
            Box::pin(async move { result })
        }
    }

    fn pool(options: &Options) -> JobPool {
        JobPool::new(options, Arc::new([]), Arc::default(), Arc::<Warnings>::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_is_asked_for_four_times_with_growing_delays_while_that_may_help() {
        let host = "pds.test".into();
        let method = "getRepoStatus";
        let fault = XrpcFault::Status(503);
        let unavailable = StatusError::Server(Box::new(XrpcError { host, method, fault }));
        let cases = [
            (&unavailable, 3, 1 + 2 + 3, true),
            (&unavailable, 4, 1 + 2 + 3, false),
            (&StatusError::NoHost, 1, 0, false),
        ];
        for (error, times, seconds, is_found) in cases {
            let failing = Failing { left: AtomicU64::new(times), error: error.clone() };
            let mut options = Options::new(vec![], Arc::new(Arc::<Sources>::default()));
            options.statuses = Some(Arc::new(failing));
            let start = tokio::time::Instant::now();
            let status = pool(&options).look_up_status(DID).await;
            assert_eq!(status, if is_found { Ok(true) } else { Err(error.clone()) });
            assert_eq!(start.elapsed(), Duration::from_secs(seconds), "{error}, {times} times");
        }
    }

    #[test]
    fn delayed_resyncs_are_counted_and_limited() {
        let pool = pool(&Options::new(vec![], Arc::new(Arc::<Sources>::default())));
        let delayed = &pool.metrics.resyncs.delayed;
        delayed.store(MAX_DELAYED - 1, Relaxed);
        let last = pool.delay_one();
        assert!(last.is_some() && pool.delay_one().is_none());
        assert_eq!(delayed.load(Relaxed), MAX_DELAYED, "the refused one does not count");
        drop(last);
        assert_eq!(delayed.load(Relaxed), MAX_DELAYED - 1);
    }

    #[tokio::test]
    async fn a_resync_that_fails_is_counted_as_failed() {
        let http = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let resolver = Resolver::new(http.clone(), Arc::new(LoopbackDns), Default::default());
        let mut options = Options::new(vec![], Arc::new(Arc::<Sources>::default()));
        options.resync = Some(ResyncOptions::new(xrpc::Client::new(http), resolver));
        let pool = pool(&options);
        assert!(pool.resync("no DID", AccountState::UNKNOWN).await.is_err());
        let metrics = &pool.metrics.resyncs;
        let counts = [&metrics.running, &metrics.done, &metrics.failed];
        assert_eq!(counts.map(|count| count.load(Relaxed)), [0, 0, 1]);
    }
}
