//! The front door: from hosts to handler, until somebody asks to stop or something fails.

use std::error::Error;
use std::io;
use std::sync::Arc;

use verify::sync::ChainState;

use super::counters::RunMetrics;
use super::feed::{Feed, FeedError, Upstream};
use super::handler::Handler;
use super::journal::{Journal, JournalError};
use super::options::Options;
use super::runtime::{Runtime, Streams};
use super::source::Source;
use super::stop::StopSignal;
use crate::hosts::Jitter;
use crate::http;
use crate::websocket::Dialer;

/// Follows a stream; see the [module](super).
#[derive(Debug)]
pub struct Firehose {
    dialer: Dialer,
    options: Options,
    counters: Arc<RunMetrics>,
}

/// How a run that was asked to stop has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// How many events were handed over.
    pub delivered: u64,
    /// How many came but were not acknowledged in time. The cursors are behind them: they come again.
    pub unacknowledged: usize,
    /// The streams, each with its cursor in the journal.
    pub cursors: Vec<(String, Option<u64>)>,
}

/// Why a run has ended that was not asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Nothing more can come.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The handler dropped an event's word instead of giving it.
    #[error("an event was dropped instead of acknowledged: {stream}, seq {seq:?}")]
    Unacknowledged {
        /// The stream; empty for a repository, which is of none.
        stream: String,
        /// The event's place in it, if it has one.
        seq: Option<u64>,
    },
    /// The journal could not be read or written.
    #[error("the journal failed: {0}")]
    Journal(#[from] JournalError),
    /// What is known of accounts could not be loaded or stored.
    #[error("the state of accounts failed: {0}")]
    State(Box<dyn Error + Send + Sync>),
    /// A worker panicked: the handler, or a fault of ours.
    #[error("a worker panicked")]
    Panicked,
    /// This system gives no more threads.
    #[error("no thread: {0}")]
    Thread(io::Error),
    /// The future of the run was dropped.
    #[error("the run was abandoned")]
    Abandoned,
}

impl Firehose {
    /// A run with these options, which connects as `http` does. It has not begun.
    pub fn new(http: &http::Client, options: Options) -> Self {
        Self { dialer: Dialer::new(http.clone()), options, counters: Arc::default() }
    }

    /// What has happened so far, for as long as one likes to look.
    pub fn metrics(&self) -> Arc<RunMetrics> {
        self.counters.clone()
    }

    /// Runs until `stop` is asked to, and then finishes what is under way. `states` is asked for what
    /// each worker knows of its accounts; of those of other workers it is never asked.
    ///
    /// Runs in a runtime of Tokio with time and I/O. To drop the future stops as well, but finishes
    /// nothing.
    ///
    /// # Errors
    /// If no host is left that would have us, the journal or a state fails, or the handler drops an
    /// event or panics. What is acknowledged by then is journaled, if the journal is not what failed.
    ///
    /// # Panics
    /// If there is no host, or outside of a runtime.
    pub async fn run<H, J, S>(
        self,
        handler: H,
        journal: J,
        states: impl FnMut(usize) -> S,
        stop: StopSignal,
    ) -> Result<RunSummary, RunError>
    where
        H: Handler,
        J: Journal,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let (mut origins, mut streams) = (Vec::new(), Vec::new());
        for url in &self.options.hosts {
            let mut origin = Upstream::new(url.clone());
            let stream = origin.stream();
            origin.cursor = journal.cursor(&stream)?;
            streams.push((stream, origin.cursor));
            origins.push(origin);
        }
        let chance = Jitter::new();
        let feed = Feed::new(self.dialer.clone(), &origins, self.options.feed, chance);
        self.drive(feed, streams, handler, journal, states, stop).await
    }

    /// The same, with what comes from elsewhere.
    pub(super) async fn drive<H, J, S>(
        self,
        mut source: impl Source,
        streams: Streams,
        handler: H,
        journal: J,
        states: impl FnMut(usize) -> S,
        stop: StopSignal,
    ) -> Result<RunSummary, RunError>
    where
        H: Handler,
        J: Journal,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let handler = Arc::new(handler);
        let Self { options, counters, .. } = &self;
        let mut runtime = Runtime::spawn(options, counters, streams, &handler, journal, states)?;
        let ended = runtime.read(&mut source, &*handler, &stop).await;
        source.close().await;
        let summary = runtime.drain(options.drain_timeout).await?;
        ended.map(|()| summary)
    }
}
