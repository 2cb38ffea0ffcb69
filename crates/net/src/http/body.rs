//! A response body as a stream, with limits on its size, rate and time.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response as RawResponse;
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use tokio::time::{Instant, timeout_at};

use super::gzip::GzipDecoder;
use super::{Coding, HttpError, HttpFault, Limits};

/// The body of a response, in chunks.
#[derive(Debug)]
pub struct ResponseBody {
    host: String,
    response: RawResponse,
    limits: Limits,
    /// Deadline of the whole response.
    deadline: Instant,
    /// Decodes the body, if it is compressed.
    gzip: Option<GzipDecoder>,
    /// The beginning, which was read but not yet returned.
    start: Bytes,
    /// Number of decoded bytes that were returned.
    decoded: u64,
    /// Number of bytes as they were received.
    wire: u64,
    window: RateWindow,
}

/// A window over which the rate is measured. The minimum rises with the age of the body.
#[derive(Clone, Copy, Debug)]
struct RateWindow {
    body_starts: Instant,
    starts: Instant,
    bytes: u64,
}

impl RateWindow {
    fn new(now: Instant) -> Self {
        Self { body_starts: now, starts: now, bytes: 0 }
    }

    /// Adds bytes. At the end of the window the next one starts; the minimum rate if this one is below.
    fn add(&mut self, bytes: u64, now: Instant, limits: &Limits) -> Result<(), u64> {
        self.bytes += bytes;
        let elapsed = millis(now - self.starts);
        let window = millis(limits.progress_window).max(1);
        if elapsed < window {
            return Ok(());
        }
        let windows = millis(now - self.body_starts) / window;
        let minimum = limits.min_bytes_per_s.saturating_mul(windows);
        if self.bytes < minimum.saturating_mul(elapsed) / 1000 {
            return Err(minimum);
        }
        *self = Self { starts: now, bytes: 0, ..*self };
        Ok(())
    }
}

impl ResponseBody {
    pub(super) fn new(
        host: String,
        response: RawResponse,
        limits: &Limits,
        deadline: Instant,
        coding: Coding,
    ) -> Result<Self, HttpError> {
        let window = RateWindow::new(Instant::now());
        let (limits, gzip, start) = (*limits, None, Bytes::new());
        let (decoded, wire) = (0, 0);
        let mut body =
            Self { host, response, limits, deadline, gzip, start, decoded, wire, window };
        match body.headers().get(CONTENT_ENCODING).filter(|name| *name != "identity") {
            None => {}
            Some(name) if coding == Coding::Gzip && GZIP.iter().any(|gzip| name == gzip) => {
                body.gzip = Some(GzipDecoder::new());
            }
            Some(name) => {
                let name = String::from_utf8_lossy(name.as_bytes());
                let name = name.chars().take(MAX_NAME_CHARS).collect();
                return Err(body.error(HttpFault::Compressed(name)));
            }
        }
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

    /// The length of the body, if the server states it and the body is not compressed.
    pub fn stated_bytes(&self) -> Option<u64> {
        self.response.content_length().filter(|_| self.gzip.is_none())
    }

    /// Number of received bytes, decoded.
    pub fn received(&self) -> u64 {
        self.decoded
    }

    /// Number of bytes as they were received: fewer than [`received`](Self::received) if the body is compressed.
    pub fn wire_bytes(&self) -> u64 {
        self.wire
    }

    /// The next chunk, decoded; `None` at the end.
    ///
    /// # Errors
    /// If the connection fails, a limit is exceeded, or a compressed body is damaged.
    pub async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        if !self.start.is_empty() {
            return Ok(Some(std::mem::take(&mut self.start)));
        }
        let chunk = match self.gzip {
            None => self.next_received().await?,
            Some(_) => self.next_decoded().await?,
        };
        if let Some(chunk) = &chunk {
            self.decoded += chunk.len() as u64;
            self.check_size(self.decoded)?;
        }
        Ok(chunk)
    }

    /// At least the first `len` bytes of a body of which nothing was read, or all of a shorter one. They are returned again by
    /// [`next`](Self::next).
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub async fn peek(&mut self, len: usize) -> Result<&[u8], HttpError> {
        let mut start = BytesMut::new();
        while start.len() < len
            && let Some(chunk) = self.next().await?
        {
            start.extend_from_slice(&chunk);
        }
        self.start = start.freeze();
        Ok(&self.start)
    }

    async fn next_decoded(&mut self) -> Result<Option<Bytes>, HttpError> {
        while let Some(gzip) = &mut self.gzip {
            match gzip.next_piece() {
                Ok(None) => {}
                Ok(piece) => return Ok(piece),
                Err(error) => return Err(self.damaged(&error)),
            }
            let chunk = self.next_received().await?;
            let Some(gzip) = &mut self.gzip else { break };
            match chunk {
                Some(chunk) => gzip.push(chunk),
                None => return gzip.finish().map_err(|error| self.damaged(&error)),
            }
        }
        Ok(None)
    }

    /// The next chunk as it is received; `None` at the end.
    async fn next_received(&mut self) -> Result<Option<Bytes>, HttpError> {
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
        let max = self.decoded.saturating_add(max_bytes);
        self.limits.max_bytes = self.limits.max_bytes.min(max);
        self.read_to_end().await
    }

    fn record(&mut self, bytes: u64) -> Result<(), HttpError> {
        self.wire += bytes;
        self.check_size(self.wire)?;
        let added = self.window.add(bytes, Instant::now(), &self.limits);
        added.map_err(|minimum| self.error(HttpFault::TooSlow(minimum)))
    }

    fn check_size(&self, bytes: u64) -> Result<(), HttpError> {
        if bytes > self.limits.max_bytes { Err(self.too_large()) } else { Ok(()) }
    }

    #[cold]
    fn damaged(&self, error: &io::Error) -> HttpError {
        self.error(HttpFault::DamagedGzip(error.to_string()))
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

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The names of the coding: RFC 9110, section 8.4.1.3.
const GZIP: [&str; 2] = ["gzip", "x-gzip"];

/// Characters kept of the name of a coding.
const MAX_NAME_CHARS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    /// The second in which a body of this constant rate in bytes per second becomes too slow.
    fn too_slow_at(bytes_per_s: u64) -> Option<u64> {
        let (limits, start) = (Limits::REPOSITORY, Instant::now());
        let mut window = RateWindow::new(start);
        let mut seconds = 1..=limits.max_time.as_secs();
        seconds.find(|second| {
            window.add(bytes_per_s, start + Duration::from_secs(*second), &limits).is_err()
        })
    }

    #[test]
    fn the_longer_a_body_takes_the_faster_it_must_be() {
        assert_eq!(too_slow_at(1_200), Some(10));
        assert_eq!(too_slow_at(10 << 10), Some(30));
        assert_eq!(too_slow_at(60 << 10), Some(160));
        assert_eq!(too_slow_at(120 << 10), None);
    }

    #[test]
    fn a_burst_does_not_pay_for_later_silence() {
        let (limits, start) = (Limits::REPOSITORY, Instant::now());
        let mut window = RateWindow::new(start);
        assert_eq!(window.add(100 << 20, start + Duration::from_secs(10), &limits), Ok(()));
        assert_eq!(window.add(1, start + Duration::from_secs(20), &limits), Err(8 << 10));
    }
}
