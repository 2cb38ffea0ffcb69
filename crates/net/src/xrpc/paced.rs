//! Requests for many repositories: at a rate that adapts to each host, a few at a time to each host and to all.

use std::fs::File;
use std::io::{BufWriter, IntoInnerError};
use std::time::Duration;

use atproto::syntax::Did;
use reqwest::Url;

use super::client::Client;
use super::error::{XrpcError, XrpcFault};
use super::response::{FetchError, FetchedRepo, ListPage, Pages};
use crate::concurrency::{ConcurrencyLimit, Permit};
use crate::host_pacer::{Answer, HostPacer};
use crate::http::{Coding, Limits, authority};

/// A client that keeps to what each host allows: see [`host_pacer`](crate::host_pacer). A limit that a host names is waited
/// for up to an hour, and the request is repeated then. Repositories are asked for compressed with gzip.
#[derive(Debug)]
pub struct PacedClient {
    client: Client,
    pacer: HostPacer,
    permits: ConcurrencyLimit,
}

/// Limits of a [`PacedClient`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaceOptions {
    /// Maximum number of requests a second to one host. 50.
    pub max_rate: f64,
    /// Maximum number of concurrent requests to one host. 4.
    pub max_per_host: usize,
    /// Maximum number of concurrent requests. 256.
    pub max_requests: usize,
}

impl Default for PaceOptions {
    fn default() -> Self {
        Self { max_rate: 50.0, max_per_host: 4, max_requests: 256 }
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
        }
    }

    /// The client whose lists [`next_page`](Self::next_page) reads.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The next page of a list of `host`; `None` after the last.
    ///
    /// # Errors
    /// As [`Pages::next`].
    pub async fn next_page<T>(
        &self,
        host: &Url,
        pages: &mut Pages<'_, T>,
    ) -> Result<Option<ListPage<T>>, XrpcError> {
        let host = authority(host);
        for _ in 0..MAX_LIMITED {
            let page = self.page_in_turn(&host, pages).await;
            if !self.record(&host, page.as_ref().err()) {
                return page;
            }
        }
        self.page_in_turn(&host, pages).await
    }

    async fn page_in_turn<T>(
        &self,
        host: &str,
        pages: &mut Pages<'_, T>,
    ) -> Result<Option<ListPage<T>>, XrpcError> {
        let _permit = self.turn(host, pages.method()).await?;
        pages.next().await
    }

    /// The repository of `did`, in a file without a name that is removed when it is closed.
    ///
    /// # Errors
    /// If the request fails, the response is incomplete, or the file cannot be written.
    pub async fn fetch_repo(
        &self,
        host: &Url,
        did: Did<'_>,
        limits: &Limits,
    ) -> Result<(FetchedRepo, File), FetchError> {
        let authority = authority(host);
        for _ in 0..MAX_LIMITED {
            let fetched = self.repo_in_turn(&authority, host, did, limits).await;
            if !self.record(&authority, remote_error(&fetched)) {
                return fetched;
            }
        }
        self.repo_in_turn(&authority, host, did, limits).await
    }

    async fn repo_in_turn(
        &self,
        authority: &str,
        host: &Url,
        did: Did<'_>,
        limits: &Limits,
    ) -> Result<(FetchedRepo, File), FetchError> {
        let _permit = self.turn(authority, "getRepo").await?;
        let mut out = BufWriter::new(tempfile::tempfile()?);
        let fetched = self.client.fetch_repo(host, did, &mut out, limits).await?;
        Ok((fetched, out.into_inner().map_err(IntoInnerError::into_error)?))
    }

    /// Waits until the host may be asked. The host's permit comes before the token: requests that hold tokens and wait for a permit
    /// of a slow host would exceed its rate when it becomes fast again. While a host is waited for, no permit of the total is held.
    async fn turn(&self, host: &str, method: &'static str) -> Result<Permit, XrpcError> {
        let of_host = self.permits.acquire_key(host).await;
        let ready = self.pacer.until_ready(host).await;
        ready.map_err(|limited| XrpcError::new(host, method, XrpcFault::RateLimited(limited)))?;
        Ok(self.permits.complete(of_host).await)
    }

    /// Records how the host answered. Whether it has said until when it rejects requests, so that this one is repeated then.
    fn record(&self, host: &str, error: Option<&XrpcError>) -> bool {
        let is_limit = error.is_some_and(|error| {
            error.is_rate_limit() || matches!(error.fault, XrpcFault::RateLimited(_))
        });
        let is_limited = is_limit && self.pacer.is_limited(host);
        let answer = match error {
            _ if is_limited => Answer::Limited,
            Some(error) if is_limit || matches!(error.fault, XrpcFault::Http(_)) => {
                Answer::Overloaded
            }
            _ => Answer::InTime,
        };
        self.pacer.record(host, answer);
        is_limited
    }
}

fn remote_error<T>(fetched: &Result<T, FetchError>) -> Option<&XrpcError> {
    match fetched {
        Err(FetchError::Remote(error)) => Some(error),
        _ => None,
    }
}

/// Limits that one request waits for.
const MAX_LIMITED: usize = 16;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::future::{join, join_all};
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::dns::LoopbackDns;
    use crate::egress::EgressPolicy;
    use crate::http;

    #[tokio::test(start_paused = true)]
    async fn requests_that_waited_for_a_slow_host_do_not_exceed_its_rate_when_it_answers_again() {
        let options = PaceOptions { max_rate: 8.0, ..PaceOptions::default() };
        let http = http::Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let paced = PacedClient::new(Client::new(http), &options);
        let turn = || paced.turn("a.test", "getRepo");
        let unanswered = join_all((0..options.max_per_host).map(|_| turn())).await;
        let waiting = join_all((0..100).map(|_| async {
            drop(turn().await.unwrap());
            Instant::now()
        }));
        let answered = async {
            sleep(Duration::from_secs(30)).await;
            drop(unanswered);
            Instant::now()
        };
        let (answered, sent) = join(answered, waiting).await;
        let first = sent.iter().filter(|at| **at < answered + Duration::from_secs(1)).count();
        // A second's tokens, and those of a full bucket.
        assert!((8..=12).contains(&first), "{first}");
    }
}
