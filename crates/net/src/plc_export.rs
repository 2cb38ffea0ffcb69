//! The export of a did:plc directory: all operations in the order of their numbers, page by page.
//!
//! `GET /export?count=1000&after=SEQ` answers with JSON lines. A page is read line by line, with limits on every line,
//! on their number and on the whole; its numbers must rise, by at most [`MAX_STEP`]. The directory's claims about an
//! operation are not verified here.

use std::time::Duration;

use atproto::plc::{ExportLine, OperationFault};
use bytes::Bytes;
use reqwest::Url;

use crate::http::{Client, HttpError, HttpFault, Limits, ResponseBody, authority};
use crate::rate_limit::{RateLimited, RateLimiter};

/// Reads the export of a directory. Clones share connections and rate limits.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use wireproof::net::plc_export::PlcExport;
/// use wireproof::net::{dns::SystemDns, egress::EgressPolicy, http::Client};
///
/// let http = Client::new(EgressPolicy::Public, Arc::new(SystemDns::new()?))?;
/// let export = PlcExport::new(http.with_contact("ops@example.com".parse()?), "https://plc.directory".parse()?);
/// for line in export.page(0).await? {
///     println!("{} {}", line.seq, line.did);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PlcExport {
    http: Client,
    /// The URL without parameters.
    url: Url,
    rate_limiter: RateLimiter,
}

/// Why a page could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host}: the page of the export after {after}: {fault}")]
pub struct ExportError {
    /// The host.
    pub host: Box<str>,
    /// The number after which the page begins.
    pub after: u64,
    /// The reason.
    pub fault: ExportFault,
}

/// A fault of a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportFault {
    /// The directory limits requests.
    #[error(transparent)]
    RateLimited(RateLimited),
    /// There is no complete response.
    #[error(transparent)]
    Http(HttpFault),
    /// A response with another status than 200.
    #[error("status {0}")]
    Status(u16),
    /// A line is not a line of an export.
    #[error("line {number}: {fault}")]
    Line {
        /// The line, from 1.
        number: usize,
        /// The broken rule.
        fault: OperationFault,
    },
    /// A line is longer than any operation.
    #[error("line {0} is longer than {max} bytes", max = MAX_LINE_BYTES)]
    LongLine(usize),
    /// A number is not greater than the one before it.
    #[error("line {number}: the number {seq} is not greater than {last}")]
    Order {
        /// The line, from 1.
        number: usize,
        /// Its number.
        seq: u64,
        /// The number before.
        last: u64,
    },
    /// A number is more than [`MAX_STEP`] greater than the one before it.
    #[error("line {number}: the number {seq} is more than {MAX_STEP} greater than {last}")]
    Step {
        /// The line, from 1.
        number: usize,
        /// Its number.
        seq: u64,
        /// The number before.
        last: u64,
    },
    /// The directory has neither a line of this number, which was read before, nor a later one.
    #[error(
        "the newest line is below {0}, which was read before: the directory has lost lines, or has renumbered them"
    )]
    Behind(u64),
    /// The page has more lines than requested.
    #[error("more than the {max} lines that were requested", max = PAGE_LINES)]
    ManyLines,
}

impl ExportError {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match &self.fault {
            ExportFault::RateLimited(_) => true,
            ExportFault::Status(status) => matches!(status, 408 | 429 | 500..),
            ExportFault::Http(fault) => !matches!(
                fault,
                HttpFault::Egress(_) | HttpFault::TooLarge(_) | HttpFault::Compressed(_)
            ),
            _ => false,
        }
    }
}

impl PlcExport {
    /// The export of the directory at this URL. Delays that it requests are waited for up to an hour.
    pub fn new(http: Client, directory: Url) -> Self {
        let mut url = directory;
        url.set_path(&format!("{}/export", url.path().trim_end_matches('/')));
        url.set_query(None);
        url.set_fragment(None);
        Self { http, url, rate_limiter: RateLimiter::new(MAX_WAIT) }
    }

    /// The operations with the next numbers after this one, at most [`PAGE_LINES`]. Fewer are the last ones. 0 begins with
    /// the first.
    ///
    /// # Errors
    /// If the request fails, or the response is not a page of an export. Nothing of such a page is returned.
    pub async fn page(&self, after: u64) -> Result<Vec<ExportLine>, ExportError> {
        let page = self.try_page(after).await;
        page.map_err(|fault| ExportError { host: authority(&self.url).into(), after, fault })
    }

    /// Checks that the directory has a line of this number, which was read before, or a later one.
    ///
    /// # Errors
    /// As [`page`](Self::page), or if it has none.
    pub async fn check_reaches(&self, seq: u64) -> Result<(), ExportError> {
        let Some(after) = seq.checked_sub(1) else { return Ok(()) };
        let host = || authority(&self.url).into();
        if self.page(after).await?.is_empty() {
            Err(ExportError { host: host(), after, fault: ExportFault::Behind(seq) })
        } else {
            Ok(())
        }
    }

    async fn try_page(&self, after: u64) -> Result<Vec<ExportLine>, ExportFault> {
        let host = authority(&self.url);
        self.rate_limiter.until_ready(&host).await.map_err(ExportFault::RateLimited)?;
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .append_pair("count", &PAGE_LINES.to_string())
            .append_pair("after", &after.to_string());
        let mut body = self.http.open_direct(&url, &Limits::EXPORT).await?;
        self.rate_limiter.record_response(&host, body.status(), body.headers());
        match body.status() {
            200 => read_page(&mut body, after).await,
            status => Err(ExportFault::Status(status)),
        }
    }
}

impl From<HttpError> for ExportFault {
    fn from(error: HttpError) -> Self {
        Self::Http(error.fault)
    }
}

async fn read_page(body: &mut ResponseBody, after: u64) -> Result<Vec<ExportLine>, ExportFault> {
    let mut page = PageReader { last: after, ..PageReader::default() };
    while let Some(chunk) = body.next().await? {
        page.read(&chunk)?;
    }
    page.finish()
}

/// The lines of a page as far as they are received.
#[derive(Default)]
struct PageReader {
    lines: Vec<ExportLine>,
    /// The number of the last line.
    last: u64,
    /// Number of ended lines, empty ones included.
    ended: usize,
    /// The beginning of a line whose end is not received.
    begun: Vec<u8>,
}

impl PageReader {
    fn read(&mut self, chunk: &Bytes) -> Result<(), ExportFault> {
        let mut pieces = chunk.split(|byte| *byte == b'\n');
        // There is at least one piece, and the last one has no end yet.
        let begun = pieces.next_back().unwrap_or_default();
        for piece in pieces {
            self.extend(piece)?;
            self.end_line()?;
        }
        self.extend(begun)
    }

    fn extend(&mut self, piece: &[u8]) -> Result<(), ExportFault> {
        if self.begun.len() + piece.len() > MAX_LINE_BYTES {
            return Err(ExportFault::LongLine(self.ended + 1));
        }
        self.begun.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), ExportFault> {
        self.ended += 1;
        let (number, last) = (self.ended, self.last);
        if !self.begun.trim_ascii().is_empty() {
            let line = ExportLine::parse(&self.begun);
            let line = line.map_err(|fault| ExportFault::Line { number, fault })?;
            if line.seq <= last {
                return Err(ExportFault::Order { number, seq: line.seq, last });
            }
            if line.seq - last > MAX_STEP {
                return Err(ExportFault::Step { number, seq: line.seq, last });
            }
            if self.lines.len() == PAGE_LINES {
                return Err(ExportFault::ManyLines);
            }
            self.last = line.seq;
            self.lines.push(line);
        }
        self.begun.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<ExportLine>, ExportFault> {
        self.end_line()?;
        Ok(self.lines)
    }
}

/// Maximum number of operations of a page, which the directory sets.
pub const PAGE_LINES: usize = 1000;

/// Maximum step from the number of a line to the next. A directory skips the numbers of transactions that fail: with a
/// hundred a second it takes a day to skip these. A reader of a line continues after its number, so one of any number
/// would hide all later lines.
pub const MAX_STEP: u64 = 10_000_000;

/// Maximum length of a line in bytes: an operation has at most 7,500 in DAG-CBOR, and escapes in JSON take six for one.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 10;

/// Maximum wait for the limit of the directory.
const MAX_WAIT: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dns::LoopbackDns;
    use crate::egress::EgressPolicy;

    /// The page that a server with this response gives after 10.
    async fn page(response: String) -> Result<Vec<ExportLine>, ExportFault> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://localhost:{}", listener.local_addr().unwrap().port());
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let len = stream.read(&mut head).await.unwrap();
            let head = String::from_utf8_lossy(&head[..len]).into_owned();
            assert!(head.starts_with("GET /export?count=1000&after=10 HTTP/1.1"), "{head}");
            let name = concat!("wireproof/", env!("CARGO_PKG_VERSION"));
            assert!(
                head.contains(&format!("user-agent: {name} (contact: ops@a.test)\r\n")),
                "{head}"
            );
            let _ = stream.write_all(response.as_bytes()).await;
        });
        let http = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).unwrap();
        let http = http.with_contact("ops@a.test".parse().unwrap());
        let export = PlcExport::new(http, url.parse().unwrap());
        export.page(10).await.map_err(|error| error.fault)
    }

    fn ok(body: &str) -> String {
        let len = body.len();
        format!("HTTP/1.1 200 x\r\nconnection: close\r\ncontent-length: {len}\r\n\r\n{body}")
    }

    fn line(seq: u64) -> String {
        format!(
            "{{\"type\":\"sequenced_op\",\"seq\":{seq},\"did\":\"did:plc:ewvi7nxzyoun6zhxrhs64oiz\",\"operation\":{{}},\
             \"cid\":\"\",\"createdAt\":\"\"}}"
        )
    }

    fn seqs(lines: &[ExportLine]) -> Vec<u64> {
        lines.iter().map(|line| line.seq).collect()
    }

    #[tokio::test]
    async fn lines_are_read_with_and_without_a_last_line_feed_and_a_malformed_operation_is_one_of_them()
     {
        for end in ["", "\n", "\n\n"] {
            let lines = page(ok(&format!("{}\n{}{end}", line(11), line(15)))).await.unwrap();
            assert_eq!(seqs(&lines), [11, 15]);
            assert_eq!(lines[0].stated, Err(OperationFault::Missing("sig")));
        }
        assert_eq!(page(ok("")).await, Ok(Vec::new()));
    }

    #[tokio::test]
    async fn a_page_whose_numbers_do_not_rise_from_the_requested_one_is_rejected() {
        let fault = |number, seq, last| Err(ExportFault::Order { number, seq, last });
        assert_eq!(page(ok(&line(10))).await, fault(1, 10, 10));
        assert_eq!(page(ok(&format!("{}\n{}", line(12), line(12)))).await, fault(2, 12, 12));
    }

    #[tokio::test]
    async fn a_number_may_skip_ten_million_and_no_more() {
        let last = 10 + MAX_STEP;
        assert_eq!(seqs(&page(ok(&line(last))).await.unwrap()), [last]);
        let body = format!("{}\n{}", line(last), line(last + MAX_STEP));
        assert_eq!(seqs(&page(ok(&body)).await.unwrap()), [last, last + MAX_STEP]);
        for seq in [last + 1, i64::MAX as u64, u64::MAX] {
            let fault = ExportFault::Step { number: 1, seq, last: 10 };
            assert_eq!(page(ok(&line(seq))).await, Err(fault));
        }
        let body = format!("{}\n{}", line(12), line(i64::MAX as u64));
        let fault = page(ok(&body)).await.unwrap_err();
        assert_eq!(
            fault.to_string(),
            "line 2: the number 9223372036854775807 is more than 10000000 greater than 12"
        );
    }

    #[tokio::test]
    async fn lines_of_something_else_and_more_or_longer_lines_than_requested_are_rejected() {
        let of = |number, fault| Err(ExportFault::Line { number, fault });
        let unnumbered = line(11).replace("\"seq\":11,", "");
        assert_eq!(page(ok(&unnumbered)).await, of(1, OperationFault::Missing("seq")));
        let other = line(12).replace("did:plc:", "");
        let body = format!("{}\n{other}", line(11));
        assert_eq!(page(ok(&body)).await, of(2, OperationFault::Field("did")));
        assert!(matches!(page(ok("<html>")).await, Err(ExportFault::Line { number: 1, .. })));
        let lines: Vec<String> = (11..1012).map(line).collect();
        assert_eq!(page(ok(&lines.join("\n"))).await, Err(ExportFault::ManyLines));
        let long = format!("{}\n{}", line(11), "x".repeat(MAX_LINE_BYTES + 1));
        assert_eq!(page(ok(&long)).await, Err(ExportFault::LongLine(2)));
    }

    #[tokio::test]
    async fn a_page_that_breaks_off_is_an_error_that_may_pass() {
        let whole = ok(&format!("{}\n{}", line(11), line(12)));
        let fault = page(whole[..whole.len() - 9].to_owned()).await.unwrap_err();
        assert!(matches!(fault, ExportFault::Http(_)), "{fault:?}");
        let error = ExportError { host: "a.test".into(), after: 10, fault };
        assert!(error.is_retryable());
        let status = page("HTTP/1.1 404 x\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
        assert_eq!(status, Err(ExportFault::Status(404)));
        assert!(!ExportError { fault: ExportFault::Status(404), ..error }.is_retryable());
    }
}
