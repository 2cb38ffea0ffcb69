//! The follower under test: the parts of a run, stepped on one thread under a paused clock instead of on threads of
//! their own. So the same schedule has the same outcome every time.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{JoinHandle, yield_now};
use verify::sync::MemoryState;

use super::super::support;
use super::environment::{
    Environment, Incoming, ScriptedFeed, ScriptedHandler, ScriptedJournal, stream_name,
};
use super::schedule::Settings;
use crate::firehose::ack::RunState;
use crate::firehose::checkpoint::Checkpointer;
use crate::firehose::queue::{AccountHasher, WaitTimeout};
use crate::firehose::resync::Resyncer;
use crate::firehose::run::{Parts, Runtime};
use crate::firehose::worker::Worker;
use crate::firehose::*;
use crate::hosts::{HostId, Jitter};
use crate::reconnecting_socket::SocketEvent;
use crate::websocket::{Dialer, SocketError};

/// A run of the follower.
pub(super) struct Follower {
    environment: Environment,
    workers: Vec<Worker<ScriptedHandler, MemoryState>>,
    checkpointer: Option<Checkpointer<ScriptedJournal>>,
    /// Dropped when all workers have ended, and when the checkpointer has.
    alive: [Option<mpsc::Sender<()>>; 2],
    run: Arc<RunState>,
    reading: JoinHandle<Result<RunSummary, RunError>>,
    pub(super) incoming: mpsc::UnboundedSender<Incoming>,
    pub(super) host: HostId,
    pub(super) stop: StopSignal,
    metrics: Arc<RunMetrics>,
}

impl Follower {
    /// Starts a run from the journal, on the connection to a host.
    pub(super) fn start(environment: &Environment, settings: &Settings, host: HostId) -> Self {
        let options = options(environment, settings);
        let metrics = Arc::<RunMetrics>::default();
        let (stored, states, run, hosts) = {
            let of = environment.lock();
            (of.stored.clone(), of.stored_accounts.clone(), of.run, of.world.streams.len())
        };
        let handler = Arc::new(ScriptedHandler { environment: environment.clone(), run });
        let streams: Vec<_> = (0..hosts)
            .map(stream_name)
            .map(|name| (name.clone(), stored.get(&name).copied()))
            .collect();
        let hasher = AccountHasher::new([settings.seed as u8; 16]);
        let state = |_| {
            let mut state = MemoryState::new([0; 16]);
            states.iter().for_each(|(did, known)| state.put(did, *known));
            state
        };
        let journal = ScriptedJournal(environment.clone());
        let (mut runtime, parts) = Runtime::assemble(
            &options,
            &metrics,
            hasher,
            streams.clone(),
            &handler,
            journal,
            state,
        );
        let resync = options.resync.clone().expect("set below");
        let resyncer =
            Resyncer::from_source(Box::new(environment.clone()), resync, Default::default());
        let Parts { workers, checkpointer, mut jobs, submitted, workers_alive, checkpointer_alive } =
            parts;
        jobs.resyncer = Some(resyncer);
        runtime.jobs.spawn(jobs.run(submitted));
        let run = runtime.run.clone();
        let (incoming, received) = mpsc::unbounded_channel();
        let feed = ScriptedFeed {
            feed: feed(&options, &streams),
            incoming: received,
            environment: environment.clone(),
        };
        let stop = StopSignal::new();
        let requested = stop.clone();
        let reading = tokio::task::spawn_local(async move {
            runtime.follow(feed, &handler, &requested, STOP_TIMEOUT).await
        });
        let (checkpointer, alive) =
            (Some(checkpointer), [Some(workers_alive), Some(checkpointer_alive)]);
        let environment = environment.clone();
        let follower = Self {
            environment,
            workers,
            checkpointer,
            alive,
            run,
            reading,
            incoming,
            host,
            stop,
            metrics,
        };
        follower.receive(Incoming::Connect(host));
        follower
    }

    /// Gives something to the connection.
    pub(super) fn receive(&self, incoming: Incoming) {
        // The reading task may have ended.
        let _ = self.incoming.send(incoming);
    }

    /// Ends the connection, and begins the next one.
    pub(super) fn reconnect(&mut self, to: HostId) {
        self.environment.lock().position = None;
        let from = std::mem::replace(&mut self.host, to);
        self.receive(Incoming::Event(
            from,
            SocketEvent::Lost(SocketError::Ended("a fault".into())),
        ));
        if from != to {
            self.receive(Incoming::Event(to, SocketEvent::Rotated { from, to }));
        }
        self.receive(Incoming::Connect(to));
    }

    /// Lets tasks run until all of them wait.
    pub(super) async fn settle(&self) {
        loop {
            for _ in 0..12 {
                yield_now().await;
            }
            let mut of = self.environment.lock();
            of.forget_waiting();
            let waiting = of.repos.len() as u64;
            drop(of);
            // Archives are verified on another thread. At its end, a run does not wait for them.
            if self.is_ending() || self.metrics.resyncs.running.load(Relaxed) <= waiting {
                return;
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    /// One step of a worker.
    pub(super) fn work(&mut self, worker: usize) {
        let Some(at) = self.workers.iter().position(|of| of.index() == worker) else { return };
        if !self.workers[at].step(WaitTimeout::Zero) {
            self.workers.remove(at);
        }
        if self.workers.is_empty() {
            self.alive[0] = None;
        }
        self.environment.lock().model.end_batch();
    }

    /// Writes a checkpoint.
    pub(super) fn checkpoint(&mut self) {
        let Some(checkpointer) = &mut self.checkpointer else { return };
        if !checkpointer.step(Duration::ZERO) {
            (self.checkpointer, self.alive[1]) = (None, None);
        }
    }

    /// Whether the run was stopped or has failed.
    pub(super) fn is_ending(&self) -> bool {
        self.stop.is_requested() || self.run.failure.is_set() || self.reading.is_finished()
    }

    /// Number of events in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.run.in_flight.events()
    }

    /// Lets a run that was stopped or has failed end by itself, in virtual time.
    pub(super) async fn finish(&mut self) -> Option<Result<RunSummary, RunError>> {
        for _ in 0..150 {
            self.settle().await;
            (0..MAX_WORKERS).for_each(|worker| self.work(worker));
            self.checkpoint();
            self.settle().await;
            if self.reading.is_finished() {
                return (&mut self.reading).await.ok();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        None
    }

    /// Kills the run.
    pub(super) async fn kill(mut self) {
        self.reading.abort();
        self.workers.clear();
        for _ in 0..12 {
            yield_now().await;
        }
    }
}

fn options(environment: &Environment, settings: &Settings) -> Options {
    let of = environment.lock();
    let mut resync = support::resync_options();
    resync.attempts = 1;
    resync.on_first_seen = settings.resyncs_new;
    resync.desynchronized = of.desynchronized();
    let mut options = Options::new(vec![], Arc::new(environment.clone()));
    if let Verification::On { cache_bytes, .. } = &mut options.verify {
        *cache_bytes = 64 << 10;
    }
    options.feed.start = StartFrom::Oldest;
    // The schedule makes the connections: none begins because a host sends old events first.
    options.feed.start_after_reset = Some(StartFrom::Live);
    options.workers = settings.workers;
    options.resync = Some(resync);
    options.statuses = Some(Arc::new(environment.clone()));
    options.limits.max_hold = Duration::from_secs(20);
    options.limits.max_events = settings.max_in_flight;
    options.limits.max_account_events = settings.max_parked;
    options.limits.max_batch = settings.max_batch;
    // It would sleep on the clock of the machine.
    options.limits.max_gather = Duration::ZERO;
    options
}

/// A feed that never connects by itself.
fn feed(options: &Options, streams: &[(String, Option<u64>)]) -> Feed {
    let upstream = |(stream, cursor): &(String, Option<u64>)| Upstream {
        url: stream.parse().unwrap(),
        cursor: *cursor,
    };
    let upstreams: Vec<Upstream> = streams.iter().map(upstream).collect();
    Feed::new(Dialer::new(support::http_client()), &upstreams, options.feed, Jitter::new())
}

const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of workers.
pub(super) const MAX_WORKERS: usize = 2;
