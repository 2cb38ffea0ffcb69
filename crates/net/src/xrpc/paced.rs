//! Requests for many repositories: at a rate that adapts to the host, a few at a time to one host and to all, and within one
//! bound for the bytes of all archives in use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atproto::syntax::{CollectionPatternBuf, Did};
use reqwest::Url;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

use super::WrittenPart;
use super::client::Client;
use super::error::{XrpcError, XrpcFault};
use super::response::{FetchError, FetchedRepo, ListPage, Pages};
use super::slice::{SliceError, WantedPart};
use crate::archive_space::{ArchiveFile, ArchiveSpace, ArchiveWriter, SlotTurn, is_out_of_space};
use crate::bounded_map::BoundedMap;
use crate::concurrency::{ConcurrencyLimit, Permit};
use crate::host_pacer::{Answer, HostPacer};
use crate::http::{Coding, HttpFault, Limits, authority};
use crate::part_turn::{MAX_LIMITED_PARTS, PartTurn};

/// A client that keeps to the limits of every host: see [`host_pacer`](crate::host_pacer). A limit that a host names is
/// waited for up to an hour, and the request is repeated then. Repositories are asked for compressed with gzip.
///
/// A host is slow for ten minutes after a request that took longer than ten seconds, or until one that did not: it is asked one
/// request at a time, and all slow hosts together hold at most a quarter of the requests. A request that takes so long makes
/// room for one to another host, up to half as many more.
#[derive(Debug)]
pub struct PacedClient {
    client: Client,
    pacer: HostPacer,
    permits: ConcurrencyLimit,
    slow_permits: ConcurrencyLimit,
    /// Requests that took long and have made room for others.
    overdue: Arc<Semaphore>,
    /// Until when hosts are slow.
    slow_hosts: Mutex<BoundedMap<Box<str>, Instant>>,
    space: ArchiveSpace,
}

/// The permission for one request.
#[derive(Debug)]
struct Turn {
    /// Of the host.
    _host: OwnedSemaphorePermit,
    /// Of all hosts; `None` for an archive with a slot.
    shared: Option<SharedPermit>,
}

/// The part of a permission that is shared with other hosts.
#[derive(Debug)]
enum SharedPermit {
    Fast(#[expect(dead_code, reason = "held")] Permit),
    Slow(#[expect(dead_code, reason = "held")] Permit),
    Overdue(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit),
}

/// The part of a repository that proves some collections, or why there is none.
#[derive(Debug)]
pub enum PacedPart {
    /// The part, as a repository is returned.
    Part(FetchedRepo, ArchiveFile),
    /// The whole repository costs less, or the server has no `getBlocks`, or its limits interrupted the part twice.
    Whole,
    /// The answers of the server were refused.
    Refused(SliceError),
}

/// Limits of a [`PacedClient`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceOptions {
    /// Maximum number of requests per second to one host. 50.
    pub max_rate: f64,
    /// Maximum number of concurrent requests to one host. 4.
    pub max_per_host: usize,
    /// Maximum number of concurrent requests, not counting requests that have taken long. 256.
    pub max_requests: usize,
    /// Bound of the bytes of all archives that are received or in use: see [`ArchiveSpace`]. 8 GiB.
    pub max_bytes_in_use: u64,
    /// Maximum size of one archive in bytes, for which there is always room. The limit of [`Limits::REPOSITORY`].
    pub max_archive_bytes: u64,
}

impl Default for PaceOptions {
    fn default() -> Self {
        Self {
            max_rate: 50.0,
            max_per_host: 4,
            max_requests: 256,
            max_bytes_in_use: 8 << 30,
            max_archive_bytes: Limits::REPOSITORY.max_bytes,
        }
    }
}

impl PacedClient {
    /// A client that sends the requests of `client`, whose rate limiter it shares.
    pub fn new(client: Client, options: &PaceOptions) -> Self {
        let limiter = client.rate_limiter().clone();
        // Limits are waited for before a request: within it, the wait would hold its permit.
        let client = client.with_rate_limiter(limiter.with_max_wait(Duration::ZERO));
        Self {
            client: client.with_attempts(1).with_repo_coding(Coding::Gzip),
            pacer: HostPacer::new(limiter).with_max_rate(options.max_rate),
            permits: ConcurrencyLimit::new(options.max_per_host, options.max_requests),
            slow_permits: ConcurrencyLimit::new(1, options.max_requests / 4),
            overdue: Arc::new(Semaphore::new(options.max_requests / 2)),
            slow_hosts: Mutex::new(BoundedMap::new(MAX_SLOW_HOSTS)),
            space: ArchiveSpace::new(options.max_bytes_in_use, options.max_archive_bytes),
        }
    }

    /// The space of the archives that it fetches.
    pub fn space(&self) -> &ArchiveSpace {
        &self.space
    }

    /// The client whose lists [`next_page`](Self::next_page) reads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The next page of a list of `host`; `None` after the last. The time in which the host answered is added to `answering`:
    /// waits for its pace and for limits that it named are not in it.
    ///
    /// # Errors
    /// As [`Pages::next`].
    pub async fn next_page<T>(
        &self,
        host: &Url,
        pages: &mut Pages<'_, T>,
        answering: &mut Duration,
    ) -> Result<Option<ListPage<T>>, XrpcError> {
        let host = authority(host);
        for _ in 0..MAX_LIMITED {
            let page = self.page_in_turn(&host, pages, answering).await;
            if !self.record(&host, page.as_ref().err()) {
                return page;
            }
        }
        self.page_in_turn(&host, pages, answering).await
    }

    async fn page_in_turn<T>(
        &self,
        host: &str,
        pages: &mut Pages<'_, T>,
        answering: &mut Duration,
    ) -> Result<Option<ListPage<T>>, XrpcError> {
        let of_host = self.host_turn(host, pages.method()).await?;
        let turn = self.shared_turn(host, of_host).await;
        let started = Instant::now();
        let page = self.in_turn(host, turn, sleep(SLOW_REQUEST), pages.next()).await;
        *answering += started.elapsed();
        page
    }

    /// The repository of `did`, in a file without a name that is removed when it is closed. It holds its
    /// [space](Self::space) until the file is dropped; an archive that runs out of space while it is received is fetched again
    /// with room for a whole one.
    ///
    /// # Errors
    /// If the request fails, the response is incomplete, or the file cannot be written.
    pub async fn fetch_repo(
        &self,
        host: &Url,
        did: Did<'_>,
        limits: &Limits,
    ) -> Result<(FetchedRepo, ArchiveFile), FetchError> {
        match self.fetch_within(host, did, limits, None).await {
            Err(FetchError::Local(error)) if is_out_of_space(&error) => {
                let slot = self.space.slot_turn(&authority(host)).await;
                self.fetch_within(host, did, limits, Some(&slot)).await
            }
            fetched => fetched,
        }
    }

    /// The part of a repository that proves these collections, as [`fetch_repo`](Self::fetch_repo) returns a whole one. The pace holds for
    /// each of its requests.
    ///
    /// # Errors
    /// If a request fails so that the whole repository is not served either, or the file cannot be written.
    pub async fn fetch_part(
        &self,
        host: &Url,
        did: Did<'_>,
        collections: &[CollectionPatternBuf],
        limits: &Limits,
    ) -> Result<PacedPart, FetchError> {
        match self.fetch_part_within(host, did, collections, limits, None).await {
            Err(FetchError::Local(error)) if is_out_of_space(&error) => {
                let slot = self.space.slot_turn(&authority(host)).await;
                self.fetch_part_within(host, did, collections, limits, Some(&slot)).await
            }
            fetched => fetched,
        }
    }

    async fn fetch_part_within(
        &self,
        host: &Url,
        did: Did<'_>,
        collections: &[CollectionPatternBuf],
        limits: &Limits,
        slot: Option<&SlotTurn>,
    ) -> Result<PacedPart, FetchError> {
        let authority = authority(host);
        for _ in 0..MAX_LIMITED_PARTS {
            let turn = self.repo_turn(&authority, "getBlocks", slot).await?;
            let space = self.space.acquire(&authority, slot).await;
            let mut out = ArchiveWriter::new(tempfile::tempfile()?, space);
            let requests = PartTurn::new(Some(&self.pacer), &authority);
            let slow = requests.until_slow(SLOW_REQUEST);
            let wanted = WantedPart { collections, commit: None };
            let fetch = self.client.write_part(host, did, wanted, limits, &requests, &mut out);
            let written: Result<WrittenPart, _> = self.in_turn(&authority, turn, slow, fetch).await;
            if self.record(&authority, remote_error(&written)) {
                continue;
            }
            return Ok(match written? {
                Ok(fetched) => PacedPart::Part(fetched, out.finish()?),
                Err(None) => PacedPart::Whole,
                Err(Some(error)) => PacedPart::Refused(error),
            });
        }
        Ok(PacedPart::Whole)
    }

    async fn fetch_within(
        &self,
        host: &Url,
        did: Did<'_>,
        limits: &Limits,
        slot: Option<&SlotTurn>,
    ) -> Result<(FetchedRepo, ArchiveFile), FetchError> {
        let authority = authority(host);
        for _ in 0..MAX_LIMITED {
            let fetched = self.repo_in_turn(&authority, host, did, limits, slot).await;
            if !self.record(&authority, remote_error(&fetched)) {
                return fetched;
            }
        }
        self.repo_in_turn(&authority, host, did, limits, slot).await
    }

    async fn repo_in_turn(
        &self,
        authority: &str,
        host: &Url,
        did: Did<'_>,
        limits: &Limits,
        slot: Option<&SlotTurn>,
    ) -> Result<(FetchedRepo, ArchiveFile), FetchError> {
        let turn = self.repo_turn(authority, "getRepo", slot).await?;
        let space = self.space.acquire(authority, slot).await;
        let mut out = ArchiveWriter::new(tempfile::tempfile()?, space);
        let fetch = self.client.fetch_repo(host, did, &mut out, limits);
        let fetched = self.in_turn(authority, turn, sleep(SLOW_REQUEST), fetch).await?;
        Ok((fetched, out.finish()?))
    }

    /// Waits for the permission of an archive. Space is returned without a permit, and the slots bound the requests that have one.
    async fn repo_turn(
        &self,
        authority: &str,
        method: &'static str,
        slot: Option<&SlotTurn>,
    ) -> Result<Turn, XrpcError> {
        let of_host = self.host_turn(authority, method).await?;
        Ok(match slot {
            Some(_) => Turn { _host: of_host, shared: None },
            None => self.shared_turn(authority, of_host).await,
        })
    }

    /// Sends a small request to `host` in its turn, and again after limits whose end the host states.
    ///
    /// # Errors
    /// If the request fails.
    pub async fn request<T>(
        &self,
        host: &Url,
        method: &'static str,
        send: impl AsyncFn(&Client) -> Result<T, XrpcError>,
    ) -> Result<T, XrpcError> {
        let host = authority(host);
        for _ in 0..MAX_LIMITED {
            let answer = self.request_in_turn(&host, method, &send).await;
            if !self.record(&host, answer.as_ref().err()) {
                return answer;
            }
        }
        self.request_in_turn(&host, method, &send).await
    }

    async fn request_in_turn<T>(
        &self,
        host: &str,
        method: &'static str,
        send: &impl AsyncFn(&Client) -> Result<T, XrpcError>,
    ) -> Result<T, XrpcError> {
        let of_host = self.host_turn(host, method).await?;
        let turn = self.shared_turn(host, of_host).await;
        self.in_turn(host, turn, sleep(SLOW_REQUEST), send(&self.client)).await
    }

    /// Waits until the host may be asked. The host's permit comes before the token: requests that hold tokens and wait for a permit
    /// of a slow host would exceed its rate when it becomes fast again. While a host is waited for, no permit of the total is held.
    async fn host_turn(
        &self,
        host: &str,
        method: &'static str,
    ) -> Result<OwnedSemaphorePermit, XrpcError> {
        let of_host = self.permits.acquire_key(host).await;
        let ready = self.pacer.until_ready(host).await;
        ready.map_err(|limited| XrpcError::new(host, method, XrpcFault::RateLimited(limited)))?;
        Ok(of_host)
    }

    /// Waits for the permit that is shared with other hosts: slow hosts share permits of their own.
    async fn shared_turn(&self, host: &str, of_host: OwnedSemaphorePermit) -> Turn {
        let shared = if self.is_slow(host) {
            SharedPermit::Slow(self.slow_permits.acquire(host).await)
        } else {
            SharedPermit::Fast(self.permits.acquire_shared().await)
        };
        Turn { _host: of_host, shared: Some(shared) }
    }

    /// Makes a request. One that takes long, when `slow` ends, makes room for others, and its host counts as slow.
    async fn in_turn<T>(
        &self,
        host: &str,
        mut turn: Turn,
        slow: impl Future<Output = ()>,
        request: impl Future<Output = T>,
    ) -> T {
        let mut request = std::pin::pin!(request);
        tokio::select! {
            biased;
            done = &mut request => {
                self.lock_slow().remove(host);
                return done;
            }
            () = slow => {}
        }
        self.lock_slow().insert(host.into(), Instant::now() + SLOW_TIME);
        if let Some(SharedPermit::Fast(_)) = turn.shared
            && let Ok(overdue) = self.overdue.clone().try_acquire_owned()
        {
            turn.shared = Some(SharedPermit::Overdue(overdue));
        }
        request.await
    }

    fn is_slow(&self, host: &str) -> bool {
        self.lock_slow().peek(host).is_some_and(|until| Instant::now() < *until)
    }

    fn lock_slow(&self) -> MutexGuard<'_, BoundedMap<Box<str>, Instant>> {
        self.slow_hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records how the host answered. Whether it has said until when it rejects requests, so that this one is repeated then.
    fn record(&self, host: &str, error: Option<&XrpcError>) -> bool {
        let is_limit = error.is_some_and(|error| {
            error.is_rate_limit() || matches!(error.fault, XrpcFault::RateLimited(_))
        });
        let is_limited = is_limit && self.pacer.is_limited(host);
        let answer = match error {
            _ if is_limited => Answer::Limited,
            Some(error) if is_limit || is_overload(&error.fault) => Answer::Overloaded,
            _ => Answer::InTime,
        };
        self.pacer.record(host, answer);
        is_limited
    }
}

/// Whether the host did not answer as fast as it was asked. An answer that is too large, or that must not be asked for, says nothing of that.
fn is_overload(fault: &XrpcFault) -> bool {
    let XrpcFault::Http(fault) = fault else { return false };
    !matches!(fault, HttpFault::TooLarge(_) | HttpFault::Egress(_))
}

fn remote_error<T>(fetched: &Result<T, FetchError>) -> Option<&XrpcError> {
    match fetched {
        Err(FetchError::Remote(error)) => Some(error),
        _ => None,
    }
}

/// Limits that one request waits for.
const MAX_LIMITED: usize = 16;

/// Time after which a request makes room for others, and the time for which its host is slow.
const SLOW_REQUEST: Duration = Duration::from_secs(10);
const SLOW_TIME: Duration = Duration::from_secs(600);

const MAX_SLOW_HOSTS: usize = 4096;

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::{join, join_all, pending};

    use super::*;
    use crate::dns::LoopbackDns;
    use crate::egress::EgressPolicy;
    use crate::http;

    fn paced(options: &PaceOptions) -> PacedClient {
        let http = http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        PacedClient::new(Client::new(http), options)
    }

    impl PacedClient {
        async fn turn(&self, host: &str) -> Turn {
            let of_host = self.host_turn(host, "getRepo").await.unwrap();
            self.shared_turn(host, of_host).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_that_answer_slowly_leave_requests_to_the_others() {
        let paced = Arc::new(paced(&PaceOptions::default()));
        // Four requests per host are all requests.
        for number in 0..64 {
            for _ in 0..4 {
                let paced = paced.clone();
                tokio::spawn(async move {
                    let host = format!("slow{number}.test");
                    let turn = paced.turn(&host).await;
                    paced.in_turn(&host, turn, sleep(SLOW_REQUEST), pending::<()>()).await
                });
            }
        }
        sleep(Duration::from_secs(1)).await;
        assert!(paced.turn("honest.test").now_or_never().is_none(), "nothing is known of them yet");
        sleep(SLOW_REQUEST).await;
        let honest: Vec<Turn> = join_all((0..4).map(|_| paced.turn("honest.test"))).await;
        assert_eq!(honest.len(), 4);
        for number in 0..400 {
            let paced = paced.clone();
            tokio::spawn(async move {
                let host = format!("slow{}.test", number % 64);
                let turn = paced.turn(&host).await;
                paced.in_turn(&host, turn, sleep(SLOW_REQUEST), pending::<()>()).await
            });
        }
        sleep(Duration::from_secs(60)).await;
        drop(honest);
        assert!(paced.turn("another.test").now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_host_has_one_request_until_it_answers_in_time() {
        let paced = paced(&PaceOptions::default());
        let turn = paced.turn("a.test").await;
        paced.in_turn("a.test", turn, sleep(SLOW_REQUEST), sleep(SLOW_REQUEST * 2)).await;
        let turn = paced.turn("a.test").await;
        assert!(paced.turn("a.test").now_or_never().is_none());
        assert!(paced.turn("b.test").now_or_never().is_some());
        paced.in_turn("a.test", turn, sleep(SLOW_REQUEST), async {}).await;
        let _turns = [paced.turn("a.test").await, paced.turn("a.test").await];
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_waited_for_a_slow_host_do_not_exceed_its_rate_when_it_answers_again() {
        let options = PaceOptions { max_rate: 8.0, ..PaceOptions::default() };
        let paced = paced(&options);
        let turn = || paced.turn("a.test");
        let unanswered = join_all((0..options.max_per_host).map(|_| turn())).await;
        let waiting = join_all((0..100).map(|_| async {
            drop(turn().await);
            Instant::now()
        }));
        let answered = async {
            sleep(Duration::from_secs(30)).await;
            drop(unanswered);
            Instant::now()
        };
        let (answered, sent) = join(answered, waiting).await;
        let first = sent.iter().filter(|at| **at < answered + Duration::from_secs(1)).count();
        // A second's tokens, and the tokens of a full bucket.
        assert!((8..=12).contains(&first), "{first}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_is_silent_is_asked_more_slowly_and_one_whose_answer_is_too_large_is_not() {
        let options = PaceOptions { max_rate: 8.0, ..PaceOptions::default() };
        for (fault, seconds) in
            [(HttpFault::TooLarge(1_000), 4), (HttpFault::Idle(Duration::from_secs(30)), 8)]
        {
            let paced = paced(&options);
            let error = XrpcError::new("a.test", "getBlob", XrpcFault::Http(fault));
            drop(paced.turn("a.test").await);
            paced.record("a.test", Some(&error));
            let started = Instant::now();
            // The first ones find a bucket that is nearly full.
            for _ in 0..36 {
                drop(paced.turn("a.test").await);
            }
            let elapsed = started.elapsed().as_secs_f64();
            assert_eq!(elapsed.round(), f64::from(seconds), "{error}");
        }
    }
}
