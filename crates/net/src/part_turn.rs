//! The turns of the requests for a part of a repository: at the pace of their host, in one fetch.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::host_pacer::{Answer, HostPacer};
use crate::rate_limit::RateLimited;
use crate::xrpc::{RequestTurn, TurnWait, XrpcError, XrpcFault};

/// The turns of a fetch whose first request may be sent.
#[derive(Debug)]
pub(crate) struct PartTurn<'p> {
    /// `None` if requests are not paced.
    pacer: Option<&'p HostPacer>,
    host: Box<str>,
    times: Mutex<Times>,
}

#[derive(Debug)]
struct Times {
    /// For how long requests have waited.
    waited: Duration,
    /// When the request under way was sent; `None` while one waits.
    sent: Option<Instant>,
}

impl<'p> PartTurn<'p> {
    /// The turns of requests to a host, named by authority.
    pub(crate) fn new(pacer: Option<&'p HostPacer>, host: &str) -> Self {
        let times = Times { waited: Duration::ZERO, sent: Some(Instant::now()) };
        Self { pacer, host: host.into(), times: Mutex::new(times) }
    }

    /// For how long requests have waited.
    pub(crate) fn waited(&self) -> Duration {
        self.lock().waited
    }

    /// Waits until a request has taken so long. The waits between requests do not count.
    pub(crate) async fn until_slow(&self, time: Duration) {
        loop {
            let sent = self.lock().sent;
            let taken = sent.map_or(Duration::ZERO, |sent| sent.elapsed());
            if taken >= time {
                return;
            }
            sleep(time - taken).await;
        }
    }

    async fn wait_for(&self, pacer: &HostPacer) -> Result<(), XrpcError> {
        let remaining = pacer.remaining(&self.host);
        if remaining > MAX_TURN_WAIT {
            return Err(self.limited(RateLimited(remaining)));
        }
        let began = Instant::now();
        self.lock().sent = None;
        let ready = pacer.until_ready(&self.host).await;
        let mut times = self.lock();
        times.waited += began.elapsed();
        times.sent = Some(Instant::now());
        drop(times);
        ready.map_err(|error| self.limited(error))
    }

    fn limited(&self, limited: RateLimited) -> XrpcError {
        XrpcError::new(&self.host, "getBlocks", XrpcFault::RateLimited(limited))
    }

    fn lock(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestTurn for PartTurn<'_> {
    /// The request before was answered. A limit that the host has named is waited for if it ends soon; otherwise it is an error, so that
    /// the fetch holds no permit meanwhile.
    fn wait(&self) -> TurnWait<'_> {
        let Some(pacer) = self.pacer else { return Box::pin(std::future::ready(Ok(()))) };
        pacer.record(&self.host, Answer::InTime);
        Box::pin(self.wait_for(pacer))
    }
}

/// Limits after which the whole repository is fetched in the place of a part: it is one request.
pub(crate) const MAX_LIMITED_PARTS: usize = 2;

/// Maximum time for which a fetch that has begun waits for a limit of its host.
const MAX_TURN_WAIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::rate_limit::RateLimiter;

    #[tokio::test(start_paused = true)]
    async fn only_the_time_of_a_request_counts_as_slow() {
        let pacer = HostPacer::new(RateLimiter::default()).with_max_rate(1.0);
        let turn = PartTurn::new(Some(&pacer), "host.test");
        for _ in 0..20 {
            turn.wait().await.unwrap();
        }
        assert!(turn.waited() >= Duration::from_secs(10), "{:?}", turn.waited());
        let slow = Duration::from_secs(10);
        sleep(slow / 2).await;
        assert!(turn.until_slow(slow).now_or_never().is_none());
        let began = Instant::now();
        turn.until_slow(slow).await;
        assert_eq!(began.elapsed(), slow / 2);
    }
}
