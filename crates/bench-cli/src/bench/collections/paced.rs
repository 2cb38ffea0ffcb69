//! The time that one collection of many repositories takes under the limit of their server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use atproto::syntax::Did;
use net::host_pacer::{Answer, HostPacer};
use net::http::{Limits, Url};
use net::rate_limit::RateLimiter;
use net::xrpc::{Client, RequestTurn, SliceError, TurnWait, WantedPart, XrpcError, XrpcFault};
use serde::Serialize;
use simnet::sampled_repositories::{SampledRepository, Spec};
use simnet::servers::{RepositoryHost, RequestLimit};
use tokio::task::JoinSet;

use super::fetched::{client, wanted};
use crate::failure::Failure;
use crate::network;

/// The time under a limit.
#[derive(Debug, Serialize)]
pub(super) struct PacedTime {
    repositories: u64,
    requests: u64,
    /// Requests a second that the server allows on average.
    allowed_per_second: f64,
    seconds: f64,
    /// The time as a multiple of what the server allows for these requests.
    pub(super) ratio: f64,
}

impl PacedTime {
    pub(super) fn to_text(&self) -> String {
        let Self { repositories, requests, allowed_per_second, seconds, ratio } = self;
        format!(
            "time of {repositories} repositories of a server that allows {allowed_per_second:.0} requests a second: {seconds:.0} s for {requests} requests, {ratio:.2} × what it allows\n"
        )
    }
}

/// Fetches the collection of the first repositories, as a history does: with the pacer of the host, a few at a time.
pub(super) fn measure(spec: &Spec, repositories: u64) -> Result<PacedTime, Failure> {
    let runtime = network::runtime()?;
    let host = RepositoryHost::start(runtime.handle(), Some(LIMIT))?;
    let dids: Vec<String> = (0..repositories).map(|number| add(&host, spec, number)).collect();
    let fetcher = Arc::new(PacedFetcher::new(&host)?);
    let (next, dids) = (Arc::new(AtomicU64::new(0)), Arc::new(dids));
    let began = Instant::now();
    runtime.block_on(async {
        let mut workers = JoinSet::new();
        for _ in 0..CONCURRENT {
            let (fetcher, next, dids) = (fetcher.clone(), next.clone(), dids.clone());
            workers.spawn(async move {
                while let Some(did) = dids.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
                    fetcher.fetch(did).await?;
                }
                Ok::<(), Failure>(())
            });
        }
        while let Some(ended) = workers.join_next().await {
            ended.map_err(|error| Failure::Local(error.to_string()))??;
        }
        Ok::<(), Failure>(())
    })?;
    let (seconds, requests) = (began.elapsed().as_secs_f64(), fetcher.requests());
    let allowed_per_second = f64::from(LIMIT.requests) / LIMIT.window.as_secs_f64();
    let ratio = seconds * allowed_per_second / requests as f64;
    Ok(PacedTime { repositories, requests, allowed_per_second, seconds, ratio })
}

fn add(host: &RepositoryHost, spec: &Spec, number: u64) -> String {
    let repository = SampledRepository::generate(spec, number);
    let did = repository.account().did().to_owned();
    host.add(Arc::new(repository));
    did
}

/// Fetches parts within the pace of one host.
#[derive(Debug)]
struct PacedFetcher {
    client: Client,
    pacer: HostPacer,
    url: Url,
    authority: String,
    requests: AtomicU64,
}

impl PacedFetcher {
    fn new(host: &RepositoryHost) -> Result<Self, Failure> {
        let url: Url = host.url().parse().expect("a URL of this machine");
        let authority = format!("localhost:{}", url.port().unwrap_or_default());
        let limiter = RateLimiter::default();
        let client = client(limiter.with_max_wait(Duration::ZERO))?.with_attempts(1);
        let (pacer, requests) = (HostPacer::new(limiter), AtomicU64::new(0));
        Ok(Self { client, pacer, url, authority, requests })
    }

    fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    async fn fetch(&self, did: &str) -> Result<(), Failure> {
        let failed = |error: &dyn ToString| Failure::Local(format!("{did}: {}", error.to_string()));
        let (account, wanted) = (Did::parse(did).map_err(|error| failed(&error))?, wanted());
        loop {
            self.wait().await.map_err(|error| failed(&error))?;
            let wanted = WantedPart { collections: &wanted, commit: None };
            let part = self.client.fetch_part(&self.url, account, wanted, &LIMITS, self).await;
            let is_limited = part.as_ref().is_err_and(is_rate_limit);
            let answer = match is_limited {
                true if self.pacer.is_limited(&self.authority) => Answer::Limited,
                true => Answer::Overloaded,
                false => Answer::InTime,
            };
            self.pacer.record(&self.authority, answer);
            match part {
                Ok(_) => return Ok(()),
                Err(error) if !is_limited => return Err(failed(&error)),
                Err(_) => {}
            }
        }
    }
}

impl RequestTurn for PacedFetcher {
    fn wait(&self) -> TurnWait<'_> {
        self.pacer.record(&self.authority, Answer::InTime);
        Box::pin(async {
            let limited = |wait| XrpcError {
                host: self.authority.as_str().into(),
                method: "getBlocks",
                fault: XrpcFault::RateLimited(wait),
            };
            self.pacer.until_ready(&self.authority).await.map_err(limited)?;
            self.requests.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }
}

fn is_rate_limit(error: &SliceError) -> bool {
    let SliceError::Xrpc(error) = error else { return false };
    match &error.fault {
        XrpcFault::Named(error) => error.status == 429,
        fault => matches!(fault, XrpcFault::RateLimited(_) | XrpcFault::Status(429)),
    }
}

/// The limit of the reference PDS has windows of five minutes; these are shorter, and allow three times as many requests.
const LIMIT: RequestLimit = RequestLimit { requests: 900, window: Duration::from_secs(30) };

const LIMITS: Limits = Limits { max_time: Duration::from_secs(600), ..Limits::REPOSITORY };

/// Repositories that are fetched at once from one host, as histories do.
const CONCURRENT: usize = 4;
