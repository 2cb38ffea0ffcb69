//! The run of a firehose: reads the feed, distributes events to workers, and drains them at the end.

use std::collections::BTreeSet;
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use base::StopSignal;
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedReceiver};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use verify::sync::ChainState;

use super::ack::{AckTracker, InFlightLimit, RunState};
use super::checkpoint::Checkpointer;
use super::error::{PauseSignal, RunError};
use super::feed::{Feed, FeedSource, Upstream};
use super::feed_item::{FeedItem, Notice, ReceivedFrame};
use super::feeds::Feeds;
use super::handler::{Dispatcher, Handler};
use super::jobs::{Job, JobPool};
use super::journal::{Journal, JournalError};
use super::metrics::RunMetrics;
use super::options::{Options, Verification};
use super::queue::{AccountHasher, Inbox, QueuedEvent, ReadAhead, WorkerMessage, worker_of};
use super::worker::{Partition, Worker};
use crate::hosts::{HostId, Jitter};
use crate::http;
use crate::websocket::Dialer;

/// Follows a stream of events; see the [module](super).
#[derive(Debug)]
pub struct Firehose {
    dialer: Dialer,
    options: Options,
    metrics: Arc<RunMetrics>,
}

/// The result of a run that was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunSummary {
    /// Number of delivered events.
    pub delivered: u64,
    /// Number of events that were received but not acknowledged in time. The cursors are before them, so the
    /// next run receives them again.
    pub unacknowledged: usize,
    /// The names of the streams, with their cursors in the journal.
    pub cursors: Vec<(String, Option<u64>)>,
}

/// The names of the hosts' streams, with their cursors in the journal.
pub(super) type StreamCursors = Vec<(String, Option<u64>)>;

impl Firehose {
    /// A firehose that connects through `http`. It starts with [`run`](Self::run) or
    /// [`into_stream`](Self::into_stream).
    pub fn new(http: &http::Client, options: Options) -> Self {
        Self { dialer: Dialer::new(http.clone()), options, metrics: Arc::default() }
    }

    /// The metrics of the run, which can be read at any time.
    pub fn metrics(&self) -> Arc<RunMetrics> {
        self.metrics.clone()
    }

    /// Runs until `stop` is requested or [`Options::max_events`] events are acknowledged, then finishes the
    /// events in flight within [`Options::stop_timeout`]. `states` makes the states of the workers, which only see their own
    /// accounts.
    ///
    /// Must be called in a Tokio runtime with time and I/O. Dropping the future ends the run without
    /// finishing events.
    ///
    /// # Errors
    /// If no host is left, the journal or a state fails, or the handler drops an [`Ack`](super::Ack) or
    /// panics. Acknowledged events are journaled unless the journal has failed.
    ///
    /// # Panics
    /// If there is no host and [`Options::more_hosts`] is `None`, or outside of a runtime.
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
        let journal = Arc::new(journal);
        let (mut upstreams, mut streams) = (Vec::new(), Vec::new());
        for url in &self.options.hosts {
            let mut upstream = Upstream::new(url.clone());
            let stream = upstream.stream_name();
            upstream.cursor = journal.cursor(&stream)?;
            streams.push((stream, upstream.cursor));
            upstreams.push(upstream);
        }
        let feed = || Feed::new(self.dialer.clone(), &upstreams, self.options.feed, Jitter::new());
        let Some(more) = self.options.more_hosts.clone() else {
            let feed = feed();
            return self.run_source(feed, streams, handler, journal, states, stop).await;
        };
        let first = (!upstreams.is_empty()).then(feed);
        let of_streams = journal.clone();
        let cursors = Box::new(move |stream: &str| of_streams.cursor(stream));
        let feeds = Feeds::new(self.dialer.clone(), first, self.options.feed, more, cursors);
        self.run_source(feeds, streams, handler, journal, states, stop).await
    }

    /// Like [`run`](Self::run), with another source of items.
    pub(super) async fn run_source<H, J, S>(
        self,
        source: impl FeedSource,
        streams: StreamCursors,
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
        let Self { options, metrics, .. } = &self;
        let hasher = AccountHasher::default();
        let (mut runtime, parts) =
            Runtime::assemble(options, metrics, hasher, streams, &handler, journal, states);
        parts.start(&mut runtime)?;
        runtime.compare_clocks(self.dialer.client(), options);
        runtime.follow(source, &*handler, &stop, options.stop_timeout).await
    }
}

/// When the steps of a stop end, finished or not.
#[derive(Clone, Copy, Debug)]
struct StopDeadlines {
    /// Delivering and acknowledging events.
    events: Instant,
    /// Releasing the events that are not delivered.
    workers: Instant,
    /// Writing the final checkpoint.
    checkpoint: Instant,
}

impl StopDeadlines {
    fn new(timeout: Duration) -> Self {
        let now = Instant::now();
        let at = |tenths| now + timeout.min(MAX_STOP_TIMEOUT) / 10 * tenths;
        Self { events: at(7), workers: at(8), checkpoint: at(10) }
    }
}

/// The threads and tasks of a run. Dropping it ends them.
#[derive(Debug)]
pub(super) struct Runtime {
    pub(super) run: Arc<RunState>,
    inboxes: Arc<[Inbox]>,
    metrics: Arc<RunMetrics>,
    intake: Intake,
    pause: PauseSignal,
    /// Closed when all workers have ended.
    workers: Receiver<()>,
    pub(super) jobs: JoinSet<()>,
    /// Closed when the checkpointer has ended.
    checkpointer: Receiver<()>,
}

/// The threads and tasks that run next to the reading task.
pub(super) struct Parts<H, J, S> {
    pub(super) workers: Vec<Worker<H, S>>,
    pub(super) checkpointer: Checkpointer<J>,
    pub(super) jobs: JobPool,
    pub(super) submitted: UnboundedReceiver<Job>,
    /// Dropped when all workers have ended.
    pub(super) workers_alive: Sender<()>,
    /// Dropped when the checkpointer has ended.
    pub(super) checkpointer_alive: Sender<()>,
}

impl<H, J, S> Parts<H, J, S>
where
    H: Handler,
    J: Journal,
    S: ChainState + Send + 'static,
    S::Error: Error + Send + Sync + 'static,
{
    /// Starts the threads, and the task of the jobs.
    fn start(self, runtime: &mut Runtime) -> Result<(), RunError> {
        let Self { workers, checkpointer, jobs, submitted, .. } = self;
        runtime.jobs.spawn(jobs.run(submitted));
        for worker in workers {
            let (name, alive) =
                (format!("wireproof-{}", worker.index()), self.workers_alive.clone());
            spawn_thread(name, move || {
                worker.run();
                drop(alive);
            })?;
        }
        let alive = self.checkpointer_alive;
        spawn_thread("wireproof-journal".to_owned(), move || {
            checkpointer.run();
            drop(alive);
        })
    }
}

impl Runtime {
    /// The runtime of a run, and its parts, which are not started.
    pub(super) fn assemble<H, J, S>(
        options: &Options,
        metrics: &Arc<RunMetrics>,
        hasher: AccountHasher,
        streams: StreamCursors,
        handler: &Arc<H>,
        journal: J,
        mut states: impl FnMut(usize) -> S,
    ) -> (Self, Parts<H, J, S>)
    where
        H: Handler,
        J: Journal,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let (submit, submitted) = mpsc::unbounded_channel();
        let ((workers_alive, workers_ended), (checkpointer_alive, checkpointer_ended)) =
            (mpsc::channel(1), mpsc::channel(1));
        let runtime =
            Self::new(options, metrics, streams, &hasher, [workers_ended, checkpointer_ended]);
        let (inboxes, run) = (&runtime.inboxes, &runtime.run);
        let jobs = JobPool::new(options, inboxes.clone(), metrics.clone(), handler.clone());
        let is_verified = matches!(options.verify, Verification::On { .. });
        let keeps_accounts = is_verified && journal.keeps_accounts();
        let (mut workers, mut pending_states) = (Vec::new(), Vec::new());
        for worker in 0..inboxes.len() {
            let dispatcher = Dispatcher::new(handler, run, metrics, keeps_accounts);
            pending_states.push(dispatcher.pending_states.clone());
            let (state, jobs) = (states(worker), submit.clone());
            let partition = Partition::new(worker, options, dispatcher, state, jobs, &hasher);
            workers.push(Worker::new(partition, inboxes.clone()));
        }
        for did in options.resync.iter().flat_map(|resync| &resync.desynchronized) {
            let account = hasher.hash(Some(did));
            let inbox = &inboxes[worker_of(account, inboxes.len())];
            inbox.send(WorkerMessage::Desynchronized(account, did.clone()));
        }
        if let Some(resync) = &options.resync {
            resync.requests.attach(inboxes.clone(), hasher.clone());
        }
        let checkpointer = Checkpointer::new(journal, run, pending_states, metrics, options);
        let parts =
            Parts { workers, checkpointer, jobs, submitted, workers_alive, checkpointer_alive };
        (runtime, parts)
    }

    fn new(
        options: &Options,
        metrics: &Arc<RunMetrics>,
        streams: StreamCursors,
        hasher: &AccountHasher,
        [workers, checkpointer]: [Receiver<()>; 2],
    ) -> Self {
        let limits = &options.limits;
        let (streams, cursors): (Vec<String>, Vec<Option<u64>>) = streams.into_iter().unzip();
        let max_events = limits.max_events.max(1);
        let in_flight = InFlightLimit::new(max_events, limits.max_bytes, options.max_events);
        let run = RunState::new(streams, AckTracker::new(cursors), in_flight);
        metrics.attach(run.clone());
        let count = options.workers.max(1);
        let read_ahead = Arc::new(ReadAhead::new(limits, count));
        let inboxes: Arc<[Inbox]> = (0..count).map(|_| Inbox::new(read_ahead.clone())).collect();
        let metrics = metrics.clone();
        let intake =
            Intake::new(run.clone(), inboxes.clone(), read_ahead, metrics.clone(), hasher.clone());
        let (jobs, pause) = (JoinSet::new(), options.pause.clone());
        Self { run, inboxes, metrics, intake, pause, workers, jobs, checkpointer }
    }

    /// Starts the task that compares the local clock with the clocks of servers.
    fn compare_clocks(&mut self, http: &http::Client, options: &Options) {
        let (run, http) = (self.run.clone(), http.clone());
        let servers = [&options.clock_servers[..], &options.hosts[..]].concat();
        self.jobs.spawn(async move { run.clock.compare(&http, &servers).await });
    }

    /// Reads items until the run ends, and finishes it within `stop_timeout`.
    pub(super) async fn follow(
        mut self,
        mut source: impl FeedSource,
        handler: &impl Handler,
        stop: &StopSignal,
        stop_timeout: Duration,
    ) -> Result<RunSummary, RunError> {
        let ended = self.read(&mut source, handler, stop).await;
        let deadlines = StopDeadlines::new(stop_timeout);
        // Closing is a courtesy to the host.
        let _ = timeout_at(deadlines.events, source.close()).await;
        let summary = self.drain(&deadlines).await?;
        ended.map(|()| summary)
    }

    /// Reads items until a stop is requested, the budget of events is spent, or the run fails.
    async fn read(
        &mut self,
        source: &mut impl FeedSource,
        handler: &impl Handler,
        stop: &StopSignal,
    ) -> Result<(), RunError> {
        let run = self.run.clone();
        let mut end = pin!(async {
            tokio::select! {
                () = stop.requested() => {}
                () = run.failure.wait() => {}
                () = run.in_flight.spent() => {}
            }
        });
        loop {
            tokio::select! {
                biased;
                () = &mut end => break,
                read = self.read_group(source, handler) => read?,
            }
        }
        self.intake.flush();
        Ok(())
    }

    /// Waits until the workers need events, then for an item, and reads as many as are ready.
    async fn read_group(
        &mut self,
        source: &mut impl FeedSource,
        handler: &impl Handler,
    ) -> Result<(), RunError> {
        self.intake.read_ahead.wait().await;
        self.pause.resumed().await;
        let mut next = Some(source.next().await?);
        // A pause may have begun during the wait.
        self.pause.resumed().await;
        while let Some(item) = next.take() {
            match item {
                FeedItem::Frame(received) => self.intake.add(received).await,
                FeedItem::Notice(notice) => self.notice(&notice, handler),
            }
            if !self.intake.is_full() {
                next = source.try_next()?;
            }
        }
        self.intake.flush();
        Ok(())
    }

    fn notice(&mut self, notice: &Notice, handler: &impl Handler) {
        self.metrics.count_notice(notice);
        let (host, name) = (notice.host().0, notice.name());
        tracing::debug!(target: "wireproof::net::firehose", host, name, "notice");
        if let Notice::Connected { host, cursor: None } = notice {
            self.run.tracker().open_live(*host);
        }
        if notice.is_reset() {
            // The events before belong to the sequence that is void now.
            self.intake.flush();
            self.run.tracker().reset(notice.host());
            self.intake.started.remove(&notice.host());
        }
        if let Notice::HostAdded { added, cursor, .. } = notice {
            self.run.add_stream(added, *cursor);
        }
        handler.notice(notice);
    }

    /// Finishes the events in flight and writes the final checkpoint. Unacknowledged events are left
    /// to the next run, and a blocked thread to the process.
    async fn drain(mut self, deadlines: &StopDeadlines) -> Result<RunSummary, RunError> {
        self.inboxes.iter().for_each(Inbox::close);
        // Events that are still unacknowledged are counted in the summary.
        let _ = timeout_at(deadlines.events, self.finish_events()).await;
        self.jobs.abort_all();
        self.inboxes.iter().for_each(|inbox| inbox.send(WorkerMessage::Stop));
        let _ = timeout_at(deadlines.workers, self.workers.recv()).await;
        self.write_final_checkpoint(deadlines.checkpoint).await;
        match self.run.failure.take() {
            Some(error) => Err(error),
            None => Ok(self.summary()),
        }
    }

    /// Waits until all events are delivered and acknowledged.
    async fn finish_events(&mut self) {
        self.workers.recv().await;
        while self.run.outstanding() > 0 && !self.run.failure.is_set() {
            self.run.progress.notified().await;
        }
    }

    async fn write_final_checkpoint(&mut self, deadline: Instant) {
        self.run.checkpoint.request_final();
        if timeout_at(deadline, self.checkpointer.recv()).await.is_err() {
            let reason =
                "the last checkpoint was not written in time: the next run repeats its events";
            self.run.failure.set(RunError::Journal(JournalError::new(reason)));
        }
    }

    fn summary(&self) -> RunSummary {
        let streams = self.run.streams();
        let names = streams.iter().map(|stream| stream.name.clone());
        let tracker = self.run.tracker();
        RunSummary {
            delivered: self.metrics.delivered.load(Relaxed),
            unacknowledged: tracker.outstanding(),
            cursors: names.zip(tracker.cursors()).collect(),
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.run.failure.set(RunError::Abandoned);
        self.inboxes.iter().for_each(Inbox::close);
        self.jobs.abort_all();
        self.run.checkpoint.request_final();
    }
}

/// Gives received events their tickets, and moves them to the inboxes of their workers.
///
/// Events move in groups of as many as are ready, so that every lock is taken once per group; a single event
/// is not delayed.
#[derive(Debug)]
struct Intake {
    run: Arc<RunState>,
    inboxes: Arc<[Inbox]>,
    read_ahead: Arc<ReadAhead>,
    metrics: Arc<RunMetrics>,
    hasher: AccountHasher,
    /// The hosts whose starting cursor is durable.
    started: BTreeSet<HostId>,
    /// Events with a permit of the in-flight limit, in order.
    group: Vec<ReceivedFrame>,
    /// The size of the group in bytes.
    group_bytes: usize,
    /// The events by worker, while the group is distributed.
    partitions: Vec<Vec<QueuedEvent>>,
}

impl Intake {
    fn new(
        run: Arc<RunState>,
        inboxes: Arc<[Inbox]>,
        read_ahead: Arc<ReadAhead>,
        metrics: Arc<RunMetrics>,
        hasher: AccountHasher,
    ) -> Self {
        let partitions = inboxes.iter().map(|_| Vec::new()).collect();
        let (started, group, group_bytes) = Default::default();
        Self { run, inboxes, read_ahead, metrics, hasher, started, group, group_bytes, partitions }
    }

    /// Adds an event to the group, after waiting for a permit. Cancel-safe for events with a permit.
    async fn add(&mut self, received: ReceivedFrame) {
        let bytes = received.frame.len();
        if !self.run.in_flight.try_acquire(bytes) {
            // The events of the group must be acknowledged to release permits.
            self.flush();
            self.run.in_flight.acquire(bytes).await;
        }
        if let Some(seq) = received.seq
            && !self.started.contains(&received.host)
        {
            self.start_stream(received.host, seq).await;
        }
        self.metrics.count_frame(&received);
        self.group_bytes += bytes;
        self.group.push(received);
    }

    /// Makes the cursor before the first event of a stream durable: otherwise a run that is killed before
    /// its first checkpoint would leave no place to resume at.
    async fn start_stream(&mut self, host: HostId, seq: u64) {
        self.flush();
        self.run.tracker().start(host, seq);
        self.run.checkpoint.write_now().await;
        self.started.insert(host);
    }

    fn is_full(&self) -> bool {
        self.group.len() >= MAX_GROUP || self.group_bytes >= MAX_GROUP_BYTES
    }

    /// Moves the group to the inboxes.
    fn flush(&mut self) {
        if self.group.is_empty() {
            return;
        }
        self.group_bytes = 0;
        let mut tracker = self.run.tracker();
        let mut last: Option<(HostId, u64)> = None;
        for received in self.group.drain(..) {
            let seq = received.seq.map(|seq| (received.host, seq));
            // The last number of each host: events of several can be in a group.
            let ended = last.filter(|(host, _)| seq.is_some_and(|(next, _)| next != *host));
            if let Some((host, seq)) = ended {
                self.metrics.set_last_seq(host.0, seq);
            }
            last = seq.or(last);
            let ticket = tracker.track(received.host, received.seq);
            let account = self.hasher.hash(received.did());
            let worker = worker_of(account, self.partitions.len());
            let event =
                QueuedEvent { received, ticket, account, looked_up: None, has_waited: false };
            self.partitions[worker].push(event);
        }
        drop(tracker);
        if let Some((host, seq)) = last {
            self.metrics.set_last_seq(host.0, seq);
        }
        for (inbox, events) in self.inboxes.iter().zip(&mut self.partitions) {
            inbox.push(events);
        }
    }
}

fn spawn_thread(name: String, work: impl FnOnce() + Send + 'static) -> Result<(), RunError> {
    std::thread::Builder::new().name(name).spawn(work).map(drop).map_err(RunError::Thread)
}

/// Number of events, and size in bytes, at which a group ends.
const MAX_GROUP: usize = 256;
const MAX_GROUP_BYTES: usize = 512 << 10;

/// A year, which keeps deadlines representable.
const MAX_STOP_TIMEOUT: Duration = Duration::from_secs(365 * 86_400);
