//! Downloads the planned segments and blocks, and reads their events in order.

use std::io;
use std::time::Duration;

use mapping::MappedFile;
use net::http::Limits;
use net::jetstream::{ArchiveClient, PlanPage, PlanRequest, PlannedSegment};
use net::xrpc::{FetchError, XrpcError};
use program::failure::Failure;
use tokio::time::sleep;

use crate::plan::{PlanError, PlanProgress, Planned, planned};
use crate::segment::{Block, Row, Segment, SegmentError};

/// Downloads the events of a plan.
pub(crate) struct Downloads<'d> {
    pub(crate) client: &'d ArchiveClient,
    pub(crate) request: PlanRequest,
    pub(crate) totals: DownloadTotals,
}

/// Numbers of downloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DownloadTotals {
    pub(crate) pages: u64,
    pub(crate) segments: u64,
    pub(crate) blocks: u64,
    pub(crate) bytes: u64,
    pub(crate) requests: u64,
    pub(crate) events: u64,
    /// The end of the archive.
    pub(crate) tip: u64,
}

/// Why the events of an archive cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] XrpcError),
    /// The plan breaks a rule.
    #[error("the plan of the archive: {0}")]
    Plan(#[from] PlanError),
    /// A segment breaks a rule.
    #[error("{name}: {error}")]
    Segment {
        /// The name of the segment, and the number of the block if it came alone.
        name: String,
        /// The broken rule.
        error: SegmentError,
    },
    /// The segment is another one than the planned one.
    #[error("{0}: the segment has been replaced since the plan")]
    Replaced(String),
    /// A segment has no block of a planned number.
    #[error("{0}: the plan names a block that the segment does not have")]
    NoBlock(String),
    /// A temporary file cannot be written.
    #[error("temporary files: {0}")]
    Local(#[from] io::Error),
}

impl ReadError {
    /// The stable code of the broken rule; `None` if a request or this machine failed.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Plan(error) => Some(error.code()),
            Self::Segment { error, .. } => Some(error.code()),
            Self::Replaced(_) => Some("plan/replaced"),
            Self::NoBlock(_) => Some("plan/blocks"),
            Self::Request(_) | Self::Local(_) => None,
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        match (&error, error.code()) {
            (ReadError::Request(_), _) => Self::Network(error.to_string()),
            (ReadError::Local(_), _) => Self::Local(error.to_string()),
            (_, code) => Self::Refused(format!("{error} ({})", code.unwrap_or_default())),
        }
    }
}

impl From<FetchError> for ReadError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::Remote(error) => Self::Request(error),
            FetchError::Local(error) => Self::Local(error),
        }
    }
}

impl Downloads<'_> {
    /// Reads all events of the plan in order. `take` gets the events within the range that was asked for, of all
    /// kinds, accounts and collections.
    pub(crate) async fn read(
        &mut self,
        take: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
        progress: &mut dyn FnMut(&DownloadTotals),
    ) -> Result<(), ReadError> {
        let mut plan = PlanProgress::new(self.request.after_seq, self.request.before_seq);
        let mut last_seq = self.request.after_seq;
        let mut replans = 0;
        loop {
            let start = last_seq;
            match self.page(&mut plan, &mut last_seq, take).await {
                Ok(true) => return Ok(()),
                Ok(false) => replans = 0,
                // The server removes events that are void by now. The others keep their places, so the rest is planned again.
                Err(ReadError::Replaced(_)) if replans < MAX_REPLANS => {
                    replans = if last_seq == start { replans + 1 } else { 0 };
                    plan = PlanProgress::new(last_seq, plan.tip());
                }
                Err(error) => return Err(error),
            }
            progress(&self.totals);
        }
    }

    /// Reads the events of the next page; whether it is the last one.
    async fn page(
        &mut self,
        plan: &mut PlanProgress,
        last_seq: &mut u64,
        take: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
    ) -> Result<bool, ReadError> {
        let after = plan.after();
        let request =
            PlanRequest { after_seq: after, before_seq: plan.tip(), ..self.request.clone() };
        let page = self.plan(&request).await?;
        let is_last = plan.check(&page)?;
        self.totals.pages += 1;
        self.totals.tip = page.sealed_tip_seq;
        for segment in &page.segments {
            let window = (after, page.planned_through_seq);
            self.segment(segment, window, last_seq, take).await?;
        }
        Ok(is_last)
    }

    async fn plan(&mut self, request: &PlanRequest) -> Result<PlanPage, ReadError> {
        let client = self.client;
        Ok(retried(&mut self.totals.requests, async || client.plan(request).await).await?)
    }

    async fn segment(
        &mut self,
        segment: &PlannedSegment,
        window: (u64, u64),
        last_seq: &mut u64,
        take: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
    ) -> Result<(), ReadError> {
        self.totals.segments += 1;
        match planned(segment)? {
            Planned::Whole => self.whole(segment, window, last_seq, take).await,
            Planned::Blocks(ranges) => {
                for number in ranges.iter().flat_map(|range| range.first..=range.last) {
                    self.block(segment, number, window, last_seq, take).await?;
                }
                Ok(())
            }
        }
    }

    async fn whole(
        &mut self,
        planned: &PlannedSegment,
        window: (u64, u64),
        last_seq: &mut u64,
        take: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
    ) -> Result<(), ReadError> {
        let (client, name) = (self.client, &*planned.name);
        let file = retried_fetch(&mut self.totals.requests, async || {
            let file = tempfile::tempfile()?;
            client.fetch_segment(name, &file, &SEGMENT_LIMITS).await.map(|_| file)
        });
        let file = MappedFile::of(&file.await?)?;
        self.totals.bytes += file.len() as u64;
        let refused = |error| ReadError::Segment { name: name.to_owned(), error };
        let segment = Segment::read(&file).map_err(refused)?;
        if format!("{:016x}", segment.header().checksum) != *planned.checksum {
            return Err(ReadError::Replaced(name.to_owned()));
        }
        for number in 0..segment.blocks().len() {
            let block = segment.block(number).map_err(refused)?;
            self.events(&block, name, window, last_seq, take)?;
        }
        Ok(())
    }

    async fn block(
        &mut self,
        planned: &PlannedSegment,
        number: u32,
        window: (u64, u64),
        last_seq: &mut u64,
        take: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
    ) -> Result<(), ReadError> {
        let (client, name) = (self.client, &*planned.name);
        let fetched = retried(&mut self.totals.requests, async || {
            client.fetch_block(name, &planned.checksum, number, &Limits::SLICE).await
        });
        let frame = match fetched.await {
            Err(error) if error.name().is_some_and(|name| name.as_str() == "BlockNotFound") => {
                return Err(ReadError::NoBlock(format!("{name}, block {number}")));
            }
            fetched => fetched?.ok_or_else(|| ReadError::Replaced(name.to_owned()))?,
        };
        self.totals.bytes += frame.len() as u64;
        let place = format!("{name}, block {number}");
        let refused = |error| ReadError::Segment { name: place.clone(), error };
        let block = Block::read(&frame).map_err(refused)?;
        self.events(&block, &place, window, last_seq, take)
    }

    /// Passes the events of a block on. Sequence numbers increase over all blocks.
    fn events(
        &mut self,
        block: &Block,
        name: &str,
        (after, through): (u64, u64),
        last_seq: &mut u64,
        take: &mut dyn FnMut(&Row<'_>) -> io::Result<()>,
    ) -> Result<(), ReadError> {
        self.totals.blocks += 1;
        for row in block.rows() {
            let row = row.map_err(|error| ReadError::Segment { name: name.to_owned(), error })?;
            if row.seq <= after || row.seq > through {
                continue;
            }
            if row.seq <= *last_seq {
                let error = SegmentError::of_seq(row.seq);
                return Err(ReadError::Segment { name: name.to_owned(), error });
            }
            *last_seq = row.seq;
            self.totals.events += 1;
            take(&row)?;
        }
        Ok(())
    }
}

/// Sends a request, again if it fails and may succeed then.
async fn retried<T>(
    requests: &mut u64,
    send: impl AsyncFn() -> Result<T, XrpcError>,
) -> Result<T, XrpcError> {
    for attempt in 0.. {
        *requests += 1;
        match send().await {
            Err(error) if attempt < MAX_RETRIES && error.is_retryable() => {
                sleep(RETRY_DELAY * 2u32.pow(attempt)).await;
            }
            outcome => return outcome,
        }
    }
    unreachable!("the last attempt returns")
}

/// As [`retried`], for a request that writes a file.
async fn retried_fetch<T>(
    requests: &mut u64,
    send: impl AsyncFn() -> Result<T, FetchError>,
) -> Result<T, FetchError> {
    let fetched = retried(requests, async || match send().await {
        Err(FetchError::Remote(error)) => Err(error),
        fetched => Ok(fetched),
    });
    fetched.await?
}

/// For segments: 256 MiB are usual.
const SEGMENT_LIMITS: Limits =
    Limits { max_bytes: 2 << 30, max_time: Duration::from_secs(3600), ..Limits::REPOSITORY };

/// Plans in a row that lead to no event, because segments are replaced.
const MAX_REPLANS: u32 = 8;

const MAX_RETRIES: u32 = 4;

/// Delay before the first retry; the delays double.
const RETRY_DELAY: Duration = Duration::from_millis(500);
