//! A response body as a stream, with limits on its size, rate and time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response as RawResponse;
use reqwest::header::HeaderMap;
use tokio::time::{Instant, timeout_at};

use super::{HttpError, HttpFault, Limits};

/// The body of a response, in chunks.
#[derive(Debug)]
pub struct ResponseBody {
    host: String,
    response: RawResponse,
    limits: Limits,
    /// Deadline of the whole response.
    deadline: Instant,
    received: u64,
    window: RateWindow,
}

/// A window over which the rate is measured.
#[derive(Clone, Copy, Debug)]
struct RateWindow {
    ends: Instant,
    bytes: u64,
}

impl ResponseBody {
    pub(super) fn new(
        host: String,
        response: RawResponse,
        limits: &Limits,
        deadline: Instant,
    ) -> Result<Self, HttpError> {
        let window = RateWindow { ends: Instant::now() + limits.progress_window, bytes: 0 };
        let body = Self { host, response, limits: *limits, deadline, received: 0, window };
        match body.response.content_length() {
            Some(stated) if stated > limits.max_bytes => Err(body.too_large()),
            _ => Ok(body),
        }
    }

    /// The status code.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The length of the body, if the server states it and does not compress.
    pub fn stated_bytes(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// Number of received bytes.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The next chunk; `None` at the end.
    ///
    /// # Errors
    /// If the connection fails or a limit is exceeded.
    pub async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        let idle_deadline = Instant::now() + self.limits.idle_timeout;
        let chunk = match timeout_at(idle_deadline.min(self.deadline), self.response.chunk()).await
        {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return Err(HttpError::of(&self.host, &error)),
            Err(_) if Instant::now() >= self.deadline => {
                return Err(self.error(HttpFault::Timeout(self.limits.max_time)));
            }
            Err(_) => return Err(self.error(HttpFault::Idle(self.limits.idle_timeout))),
        };
        if let Some(chunk) = &chunk {
            self.record(chunk.len() as u64)?;
        }
        Ok(chunk)
    }

    /// The rest of the body.
    ///
    /// # Errors
    /// If the connection fails or a limit is exceeded.
    pub async fn read_to_end(&mut self) -> Result<Bytes, HttpError> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.next().await? {
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// The rest of the body, of at most `max_bytes`; more is not read.
    ///
    /// # Errors
    /// If the connection fails or a limit is exceeded, including this one.
    pub async fn read_at_most(&mut self, max_bytes: u64) -> Result<Bytes, HttpError> {
        let max = self.received.saturating_add(max_bytes);
        self.limits.max_bytes = self.limits.max_bytes.min(max);
        self.read_to_end().await
    }

    fn record(&mut self, bytes: u64) -> Result<(), HttpError> {
        self.received += bytes;
        if self.received > self.limits.max_bytes {
            return Err(self.too_large());
        }
        self.window.bytes += bytes;
        let now = Instant::now();
        if now < self.window.ends {
            return Ok(());
        }
        let min_bytes = self.limits.min_bytes_per_s * seconds(self.limits.progress_window);
        if self.window.bytes < min_bytes {
            return Err(self.error(HttpFault::TooSlow(self.limits.min_bytes_per_s)));
        }
        self.window = RateWindow { ends: now + self.limits.progress_window, bytes: 0 };
        Ok(())
    }

    #[cold]
    fn too_large(&self) -> HttpError {
        self.error(HttpFault::TooLarge(self.limits.max_bytes))
    }

    #[cold]
    fn error(&self, fault: HttpFault) -> HttpError {
        HttpError { host: self.host.clone(), fault }
    }
}

fn seconds(window: Duration) -> u64 {
    window.as_secs().max(1)
}
