//! A run as an asynchronous stream of verdicts, as an alternative to the callbacks of a handler.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use atproto::event::{Decoder, Event, FrameError};
use base::StopSignal;
use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use verify::sync::{ChainState, Outcome};

use super::ack::Ack;
use super::error::RunError;
use super::feed_item::{FrameKind, Notice};
use super::handler::{DeliveredEvent, Handler, Verdict};
use super::journal::Journal;
use super::resynced_repo::{ResyncError, ResyncedRepo};
use super::run::{Firehose, RunSummary};
use crate::hosts::HostId;

/// The items of a run, in order per account. Made by [`Firehose::into_stream`].
///
/// The buffer is bounded: while it is full, workers wait, and at the in-flight limit the server does too
/// (backpressure). An event counts as handled when its [`Ack`] is used, not when it is yielded. Dropping the
/// stream ends the run; acknowledged events are journaled.
///
/// An item is `Err` if the run failed, and the stream ends after it.
#[derive(Debug)]
pub struct VerdictStream {
    items: Receiver<StreamItem>,
    run: Option<JoinHandle<Result<RunSummary, RunError>>>,
    stop: StopSignal,
    summary: Option<RunSummary>,
}

/// An item of a [`VerdictStream`].
#[derive(Debug)]
#[non_exhaustive]
pub enum StreamItem {
    /// An event.
    Event(StreamedEvent, Ack),
    /// A resynced repository, between the account's events before and after it.
    Resynced(Arc<ResyncedRepo>, Ack),
    /// A failed resync: the account stays desynchronized.
    ResyncFailed {
        /// The account.
        did: Box<str>,
        /// The reason.
        error: String,
    },
    /// A notice about the connection. Notices are dropped while the buffer is full.
    Notice(Notice),
}

/// An event that was verified, without borrows of the verifier.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StreamedEvent {
    /// The host that sent it.
    pub host: HostId,
    /// The sequence number in the stream of that host, if it has one.
    pub seq: Option<u64>,
    /// The kind of message.
    pub kind: FrameKind,
    /// The account that it is about, unvalidated.
    pub did: Option<Box<str>>,
    /// The bytes of the frame.
    pub frame: Bytes,
    /// The time of arrival.
    pub received: SystemTime,
    /// The stable code of the verdict, by [`Verdict::code`].
    pub code: &'static str,
    /// Whether the event is verified to be its account's.
    pub is_verified: bool,
    /// The text of a rejection.
    pub reason: Option<Box<str>>,
}

impl StreamedEvent {
    fn new(event: &DeliveredEvent<'_>) -> Self {
        let reason = match &event.verdict {
            Verdict::Judged(Outcome::Rejected(rejection)) => Some(rejection.to_string().into()),
            Verdict::UnknownKey(error) => Some(error.to_string().into()),
            Verdict::Undecodable(error) => Some(error.to_string().into()),
            _ => None,
        };
        Self {
            host: event.host,
            seq: event.seq,
            kind: event.kind,
            did: event.did.map(Box::from),
            frame: event.frame.clone(),
            received: event.received,
            code: event.verdict.code(),
            is_verified: event.verdict.is_verified(),
            reason,
        }
    }

    /// Decodes the event.
    ///
    /// # Errors
    /// If the frame breaks a rule or a limit of the decoder.
    pub fn decode<'d>(&'d self, decoder: &'d mut Decoder) -> Result<Event<'d>, FrameError> {
        decoder.decode(&self.frame)
    }
}

impl Firehose {
    /// Starts the run as a task, and returns its items as a stream with a buffer of `capacity` items, at
    /// least one.
    ///
    /// ```no_run
    /// # async fn follow(
    /// #     http: &wireproof::net::http::Client,
    /// #     options: wireproof::net::firehose::Options,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// use futures_util::StreamExt;
    /// use wireproof::verify::sync::MemoryState;
    /// use wireproof::net::cursors::FileCursors;
    /// use wireproof::net::firehose::{CursorsOnly, Firehose, StreamItem};
    ///
    /// let journal = CursorsOnly(FileCursors::open("cursors.json")?);
    /// let states = |_worker| MemoryState::new([7; 16]);
    /// let mut items = Firehose::new(http, options).into_stream(journal, states, 256);
    /// while let Some(item) = items.next().await {
    ///     if let StreamItem::Event(event, ack) = item? {
    ///         println!("{:?} {:?} {}", event.seq, event.did, event.code);
    ///         ack.done();
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// If there is no host, or outside of a Tokio runtime.
    pub fn into_stream<J, S>(
        self,
        journal: J,
        states: impl FnMut(usize) -> S + Send + 'static,
        capacity: usize,
    ) -> VerdictStream
    where
        J: Journal,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        VerdictStream::spawn(capacity, |handler, stop| self.run(handler, journal, states, stop))
    }
}

impl VerdictStream {
    /// Spawns a run with a handler that sends to the stream.
    pub(super) fn spawn<R>(
        capacity: usize,
        run: impl FnOnce(StreamHandler, StopSignal) -> R,
    ) -> Self
    where
        R: Future<Output = Result<RunSummary, RunError>> + Send + 'static,
    {
        let (sender, items) = mpsc::channel(capacity.max(1));
        let stop = StopSignal::new();
        let run = tokio::spawn(run(StreamHandler(sender), stop.clone()));
        Self { items, run: Some(run), stop, summary: None }
    }

    /// The signal that stops the run. The stream then yields the remaining items, and ends.
    pub fn stop_signal(&self) -> StopSignal {
        self.stop.clone()
    }

    /// The summary of the run, once the stream has ended without an error.
    pub fn summary(&self) -> Option<&RunSummary> {
        self.summary.as_ref()
    }
}

impl Stream for VerdictStream {
    type Item = Result<StreamItem, RunError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(item) = ready!(self.items.poll_recv(context)) {
            return Poll::Ready(Some(Ok(item)));
        }
        let Some(run) = &mut self.run else { return Poll::Ready(None) };
        let ended = ready!(Pin::new(run).poll(context));
        self.run = None;
        match ended.unwrap_or(Err(RunError::Panicked)) {
            Ok(summary) => {
                self.summary = Some(summary);
                Poll::Ready(None)
            }
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

impl Drop for VerdictStream {
    fn drop(&mut self) {
        if let Some(run) = &self.run {
            run.abort();
        }
    }
}

/// Sends the events that it handles to a [`VerdictStream`].
pub(super) struct StreamHandler(Sender<StreamItem>);

impl StreamHandler {
    /// Waits for space in the buffer. Fails only when the stream is dropped, and the run with it.
    fn send(&self, item: StreamItem) {
        let _ = self.0.blocking_send(item);
    }
}

impl Handler for StreamHandler {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        self.send(StreamItem::Event(StreamedEvent::new(event), ack));
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        self.send(StreamItem::Resynced(Arc::clone(resynced), ack));
    }

    fn resync_failed(&self, did: &str, error: &ResyncError) {
        self.send(StreamItem::ResyncFailed { did: did.into(), error: error.to_string() });
    }

    fn notice(&self, notice: &Notice) {
        // Called by the task that reads, which must not block.
        let _ = self.0.try_send(StreamItem::Notice(notice.clone()));
    }
}
