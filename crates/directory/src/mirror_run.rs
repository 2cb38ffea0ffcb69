//! Fills a mirror from a directory: page by page up to the last operation, then from its stream.
//!
//! ```text
//! pages of /export ──► /export/stream after the mirror's cursor ──► pages …
//!        ▲                     │ a skipped number: one page is compared
//!        └─────────────────────┘ the stream ends, or is silent
//! ```
//!
//! The cursor of the mirror is the only state, and moves with the operations that are stored. So there is no gap at a seam: pages
//! and streams both begin after it. Numbers that have no operation are usual, so a stream that leaves operations out cannot be
//! told from its numbers alone: after a skipped number the page from there on is read, and it decides. Pages and streams may come
//! from servers of which one is behind the other: a directory has lost lines only if its export does not reach the cursor for
//! 15 seconds.

use std::time::Duration;

use atproto::plc::ExportLine;
use base::StopSignal;
use net::http::{Client, Url};
use net::plc_export::{ExportError, ExportFault, PAGE_LINES, PlcExport};
use net::plc_stream::{OpenPlcStream, PlcStream, PlcStreamFault, QUIET_TIME};
use net::websocket::{DialError, DialFault};
use store::{PlcMirror, RefusedOperation, StoreError};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep, timeout, timeout_at};

/// Fills a mirror.
#[derive(Debug)]
pub struct MirrorRun {
    export: PlcExport,
    stream: PlcStream,
    mirror: PlcMirror,
    options: MirrorOptions,
    turns: Interval,
    counts: MirrorCounts,
}

/// Delays and limits of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MirrorOptions {
    /// Maximum number of pages that are requested per second. Default: 1.
    pub max_rate: f64,
    /// Interval of the pages while the directory has no stream. Default: 5 seconds.
    pub poll_interval: Duration,
    /// Time without a message after which a stream is compared with the export. Default: 1 minute.
    pub quiet_time: Duration,
    /// Maximum delay between two attempts at a stream or a page. Default: 1 minute.
    pub max_retry: Duration,
}

impl Default for MirrorOptions {
    fn default() -> Self {
        Self {
            max_rate: 1.0,
            poll_interval: Duration::from_secs(5),
            quiet_time: QUIET_TIME,
            max_retry: MAX_RETRY,
        }
    }
}

/// The numbers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MirrorCounts {
    /// Number of requests for pages.
    pub requests: u64,
    /// Number of opened streams.
    pub streams: u64,
    /// Number of accepted operations.
    pub accepted: u64,
    /// Number of refused operations.
    pub refused: u64,
    /// Number of operations that a stream left out and a page had.
    pub left_out: u64,
}

/// News of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum MirrorNews<'n> {
    /// Operations are stored up to this number. These are refused.
    Stored {
        /// The number of the last operation.
        cursor: u64,
        /// The numbers of the run.
        counts: MirrorCounts,
        /// The refused operations.
        refused: &'n [RefusedOperation],
    },
    /// A stream begins after this number.
    Streaming(u64),
    /// The stream ended, and pages are read from here on.
    StreamEnded(&'n PlcStreamFault),
    /// The stream was silent while the directory had operations.
    StreamStalled,
    /// The stream had this number or skipped to it, and the export does not have it yet: pages are read until it has.
    ExportBehind(u64),
    /// Number of operations that the stream has left out by now.
    LeftOut(u64),
    /// The directory has no stream at the moment.
    NoStream(&'n DialError),
    /// A page cannot be read, and is requested again after the delay.
    PageFailed(&'n ExportError, Duration),
}

/// Why a run ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The export cannot be read, or has lost lines.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The mirror cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MirrorRun {
    /// A run that fills the mirror from the directory at this URL.
    pub fn new(http: Client, directory: Url, mirror: PlcMirror, options: MirrorOptions) -> Self {
        let mut turns = interval(Duration::from_secs_f64(1.0 / options.max_rate));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let export = PlcExport::new(http.clone(), directory.clone());
        let stream = PlcStream::new(http, directory);
        Self { export, stream, mirror, options, turns, counts: MirrorCounts::default() }
    }

    /// The mirror.
    pub fn mirror(&self) -> &PlcMirror {
        &self.mirror
    }

    /// The numbers of the run.
    pub fn counts(&self) -> MirrorCounts {
        self.counts
    }

    /// Reads pages up to the last one. An outage is passed over some times.
    ///
    /// # Errors
    /// If a page cannot be read, the directory has lost lines, or the mirror cannot be written.
    pub async fn catch_up(
        &mut self,
        news: &mut impl FnMut(MirrorNews<'_>),
    ) -> Result<(), MirrorError> {
        let from = self.cursor();
        self.pages(news, Some(ATTEMPTS)).await?;
        if from > 0 && self.cursor() == from {
            self.check_reaches(news, Some(ATTEMPTS)).await?;
        }
        Ok(())
    }

    /// Catches up, and stores new operations from then on until a stop is requested. Outages of the directory are waited for.
    ///
    /// # Errors
    /// If the export breaks a rule or has lost lines, or the mirror cannot be written.
    pub async fn follow(
        &mut self,
        stop: &StopSignal,
        news: &mut impl FnMut(MirrorNews<'_>),
    ) -> Result<(), MirrorError> {
        tokio::select! {
            () = stop.requested() => Ok(()),
            ended = self.follow_forever(news) => ended.map(|never| match never {}),
        }
    }

    async fn follow_forever(
        &mut self,
        news: &mut impl FnMut(MirrorNews<'_>),
    ) -> Result<std::convert::Infallible, MirrorError> {
        let mut backoff = Backoff::new(self.options.max_retry);
        loop {
            let before = self.cursor();
            self.pages(news, None).await?;
            let end = match self.stream.open(self.cursor()).await {
                Ok(stream) => self.read_stream(stream, news).await?,
                Err(error) => {
                    let delay = self.no_stream_delay(&error, &mut backoff);
                    news(MirrorNews::NoStream(&error));
                    sleep(delay).await;
                    continue;
                }
            };
            if let StreamEnd::Fault(fault) = &end {
                news(MirrorNews::StreamEnded(fault));
                if fault.is_closed_with("FutureCursor") {
                    self.check_reaches(news, None).await?;
                }
            }
            if self.cursor() > before {
                backoff.reset();
            }
            sleep(backoff.next()).await;
        }
    }

    /// Checks that the export has the last stored operation or a later one. One that is behind the stream gets time. Without a
    /// number of attempts an outage is waited for.
    async fn check_reaches(
        &mut self,
        news: &mut impl FnMut(MirrorNews<'_>),
        attempts: Option<u32>,
    ) -> Result<(), MirrorError> {
        let (mut delays, mut outages) = (Backoff::new(self.options.max_retry), 0);
        let (cursor, mut behind) = (self.cursor(), 0);
        loop {
            self.turns.tick().await;
            self.counts.requests += 1;
            let Err(error) = self.export.check_reaches(cursor).await else { return Ok(()) };
            let is_behind = matches!(error.fault, ExportFault::Behind(_));
            behind += u32::from(is_behind);
            outages += u32::from(error.is_retryable());
            let delay = delays.next();
            match is_behind {
                true if behind < CHECKS => news(MirrorNews::ExportBehind(cursor)),
                false
                    if error.is_retryable()
                        && attempts.is_none_or(|attempts| outages < attempts) =>
                {
                    news(MirrorNews::PageFailed(&error, delay));
                }
                _ => return Err(error.into()),
            }
            sleep(delay).await;
        }
    }

    /// The delay until pages are read again. A directory without a stream is polled.
    fn no_stream_delay(&self, error: &DialError, backoff: &mut Backoff) -> Duration {
        match &error.fault {
            DialFault::Refused(refused) if refused.retry_after.is_some() => {
                refused.retry_after.unwrap_or_default().min(MAX_REQUESTED_DELAY)
            }
            DialFault::Refused(_) => self.options.poll_interval,
            _ => backoff.next().max(self.options.poll_interval.min(FIRST_RETRY)),
        }
    }

    /// Stores the lines of a stream until it ends.
    async fn read_stream(
        &mut self,
        mut stream: OpenPlcStream,
        news: &mut impl FnMut(MirrorNews<'_>),
    ) -> Result<StreamEnd, MirrorError> {
        self.counts.streams += 1;
        news(MirrorNews::Streaming(self.cursor()));
        // The number up to which stream and mirror agree that nothing was left out.
        let mut expected = self.cursor();
        loop {
            let first = match timeout(self.options.quiet_time, stream.next()).await {
                Ok(Ok(line)) => line,
                Ok(Err(fault)) => return Ok(StreamEnd::Fault(fault)),
                Err(_) => {
                    let before = self.cursor();
                    self.page(news, None).await?;
                    if self.cursor() == before {
                        continue;
                    }
                    news(MirrorNews::StreamStalled);
                    stream.close().await;
                    return Ok(StreamEnd::Stalled);
                }
            };
            let (lines, end) = gather(&mut stream, first).await;
            for run in lines.chunk_by(|line, next| next.seq == line.seq + 1) {
                let begins = run.first().map_or(expected, |line| line.seq);
                let is_skipped = begins > expected.saturating_add(1) && begins > self.cursor();
                if is_skipped && !self.compare(begins, news).await? {
                    news(MirrorNews::ExportBehind(begins));
                    stream.close().await;
                    return Ok(StreamEnd::Stalled);
                }
                self.apply(run, news)?;
                expected = run.last().map_or(expected, |line| line.seq);
            }
            if let Some(fault) = end {
                return Ok(StreamEnd::Fault(fault));
            }
        }
    }

    /// Stores the operations before a number that a stream has skipped to, if the export has some. Whether the export reaches the
    /// number: one that is behind the stream cannot say.
    async fn compare(
        &mut self,
        until: u64,
        news: &mut impl FnMut(MirrorNews<'_>),
    ) -> Result<bool, MirrorError> {
        let mut attempts = COMPARISONS;
        while attempts > 0 {
            let lines = self.request(news, None).await?;
            let left_out: Vec<ExportLine> =
                lines.iter().filter(|line| line.seq < until).cloned().collect();
            if left_out.is_empty() {
                attempts -= 1;
            } else {
                self.apply(&left_out, news)?;
                self.counts.left_out += left_out.len() as u64;
                news(MirrorNews::LeftOut(self.counts.left_out));
            }
            if lines.last().is_some_and(|last| last.seq >= until) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads pages up to the last one.
    async fn pages(
        &mut self,
        news: &mut impl FnMut(MirrorNews<'_>),
        attempts: Option<u32>,
    ) -> Result<(), MirrorError> {
        while self.page(news, attempts).await? == PAGE_LINES {}
        Ok(())
    }

    /// Reads and stores the next page. The number of its lines.
    async fn page(
        &mut self,
        news: &mut impl FnMut(MirrorNews<'_>),
        attempts: Option<u32>,
    ) -> Result<usize, MirrorError> {
        let lines = self.request(news, attempts).await?;
        self.apply(&lines, news)?;
        Ok(lines.len())
    }

    /// The page after the cursor of the mirror. Without a number of attempts an outage is waited for.
    async fn request(
        &mut self,
        news: &mut impl FnMut(MirrorNews<'_>),
        attempts: Option<u32>,
    ) -> Result<Vec<ExportLine>, MirrorError> {
        let mut backoff = Backoff::new(self.options.max_retry);
        for attempt in 1.. {
            self.turns.tick().await;
            self.counts.requests += 1;
            match self.export.page(self.cursor()).await {
                Ok(lines) => return Ok(lines),
                Err(error)
                    if error.is_retryable()
                        && attempts.is_none_or(|attempts| attempt < attempts) =>
                {
                    let delay = backoff.next();
                    news(MirrorNews::PageFailed(&error, delay));
                    sleep(delay).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Vec::new())
    }

    fn apply(
        &mut self,
        lines: &[ExportLine],
        news: &mut impl FnMut(MirrorNews<'_>),
    ) -> Result<(), MirrorError> {
        let applied = self.mirror.apply(lines)?;
        self.counts.accepted += applied.accepted;
        self.counts.refused += applied.refused.len() as u64;
        let (cursor, counts) = (self.cursor(), self.counts);
        news(MirrorNews::Stored { cursor, counts, refused: &applied.refused });
        Ok(())
    }

    fn cursor(&self) -> u64 {
        self.mirror.totals().cursor
    }
}

/// The end of a stream.
enum StreamEnd {
    Fault(PlcStreamFault),
    Stalled,
}

/// The lines that arrive within a moment of the first one, so that they share a transaction; and the end of the stream, if it
/// ended.
async fn gather(
    stream: &mut OpenPlcStream,
    first: ExportLine,
) -> (Vec<ExportLine>, Option<PlcStreamFault>) {
    let (mut lines, until) = (vec![first], Instant::now() + GATHER_TIME);
    while lines.len() < PAGE_LINES {
        let next = match stream.next_ready() {
            Some(next) => next,
            None => match timeout_at(until, stream.next()).await {
                Ok(next) => next,
                Err(_) => break,
            },
        };
        match next {
            Ok(line) => lines.push(line),
            Err(fault) => return (lines, Some(fault)),
        }
    }
    (lines, None)
}

/// Delays that double up to a maximum.
#[derive(Debug)]
struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    fn new(max: Duration) -> Self {
        Self { next: FIRST_RETRY.min(max), max }
    }

    fn reset(&mut self) {
        *self = Self::new(self.max);
    }

    fn next(&mut self) -> Duration {
        let next = self.next;
        self.next = self.max.min(2 * next);
        next
    }
}

/// Attempts at a page of a run that ends, two minutes in all.
const ATTEMPTS: u32 = 8;
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Looks for the last stored operation in the export, 15 seconds in all.
const CHECKS: u32 = 5;
const MAX_RETRY: Duration = Duration::from_secs(60);

/// Number of pages without news that are read for a number that a stream has skipped to.
const COMPARISONS: u32 = 3;

/// Maximum delay that a directory can request.
const MAX_REQUESTED_DELAY: Duration = Duration::from_secs(3600);

/// Time in which lines of a stream share a transaction.
const GATHER_TIME: Duration = Duration::from_millis(50);
