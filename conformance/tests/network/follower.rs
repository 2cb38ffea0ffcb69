//! A client that follows a network to the end and records the events that it delivers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use net::cursors::{CursorStore, MemoryCursors};
use net::dns::LoopbackDns;
use net::egress::EgressPolicy;
use net::firehose::{
    Ack, CursorsOnly, DeliveredEvent, Firehose, FrameKind, Handler, Notice, Options, ResolverKeys,
    ResyncError, ResyncOptions, ResyncedRepo, RunError, RunMetrics, RunSummary, StopSignal,
};
use net::http::Client;
use net::identity::{self, Resolver};
use net::xrpc;
use simnet::servers::{Server, Simulation};
use tokio::task::JoinHandle;
use verify::sync::{Head, MemoryState};

use crate::setup::{self, RELAY};

/// An event, or a repository, as it was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedEvent {
    pub(crate) did: String,
    /// None for a repository.
    pub(crate) seq: Option<u64>,
    pub(crate) kind: Option<FrameKind>,
    pub(crate) code: &'static str,
    pub(crate) head: Option<Head>,
}

/// The delivered events, in order.
#[derive(Debug, Default)]
pub(crate) struct EventRecorder {
    lines: Mutex<Vec<RecordedEvent>>,
    failures: Mutex<Vec<(String, String)>>,
    notices: Mutex<Vec<Notice>>,
    barrier: Barrier,
}

/// Blocks the handler while it is shut.
#[derive(Debug, Default)]
struct Barrier {
    is_shut: Mutex<bool>,
    opening: Condvar,
    waiting: AtomicUsize,
}

impl EventRecorder {
    pub(crate) fn lines(&self) -> Vec<RecordedEvent> {
        self.lines.lock().unwrap().clone()
    }

    /// The sequence numbers, in order.
    pub(crate) fn seqs(&self) -> Vec<u64> {
        let mut seqs: Vec<u64> = self.lines().iter().filter_map(|line| line.seq).collect();
        seqs.sort_unstable();
        seqs
    }

    /// The deliveries of an account: sequence numbers and codes.
    pub(crate) fn of(&self, did: &str) -> Vec<(Option<u64>, &'static str)> {
        let lines = self.lines().into_iter().filter(|line| line.did == did);
        lines.map(|line| (line.seq, line.code)).collect()
    }

    /// How many lines have this code.
    pub(crate) fn count(&self, code: &str) -> usize {
        self.lines().iter().filter(|line| line.code == code).count()
    }

    /// The number of lines by code.
    pub(crate) fn codes(&self) -> BTreeMap<&'static str, usize> {
        let mut codes = BTreeMap::new();
        self.lines().iter().for_each(|line| *codes.entry(line.code).or_default() += 1);
        codes
    }

    /// The accounts that were given up, and why.
    pub(crate) fn failures(&self) -> Vec<(String, String)> {
        self.failures.lock().unwrap().clone()
    }

    /// The names of the notices of all connections.
    pub(crate) fn notices(&self) -> Vec<&'static str> {
        self.notices.lock().unwrap().iter().map(Notice::name).collect()
    }

    /// Blocks all deliveries.
    pub(crate) fn shut(&self) {
        *self.barrier.is_shut.lock().unwrap() = true;
    }

    pub(crate) fn open(&self) {
        *self.barrier.is_shut.lock().unwrap() = false;
        self.barrier.opening.notify_all();
    }
}

impl Handler for EventRecorder {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        let mut is_shut = self.barrier.is_shut.lock().unwrap();
        self.barrier.waiting.fetch_add(1, Ordering::Relaxed);
        while *is_shut {
            is_shut = self.barrier.opening.wait(is_shut).unwrap();
        }
        drop(is_shut);
        let did = event.did.unwrap_or_default().to_owned();
        let seq = event.seq;
        let kind = Some(event.kind);
        let code = event.verdict.code();
        self.lines.lock().unwrap().push(RecordedEvent { did, seq, kind, code, head: None });
        ack.done();
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        let did = resynced.did.clone().into();
        let (code, head) = ("resynced", Some(resynced.head));
        assert_eq!(resynced.file().metadata().unwrap().len(), resynced.bytes);
        self.lines.lock().unwrap().push(RecordedEvent { did, seq: None, kind: None, code, head });
        ack.done();
    }

    fn resync_failed(&self, did: &str, why: &ResyncError) {
        self.failures.lock().unwrap().push((did.to_owned(), why.to_string()));
    }

    fn notice(&self, notice: &Notice) {
        self.notices.lock().unwrap().push(notice.clone());
    }
}

/// A running client and its recorder.
pub(crate) struct Follower {
    pub(crate) recorder: Arc<EventRecorder>,
    pub(crate) counters: Arc<RunMetrics>,
    pub(crate) cursors: Arc<MemoryCursors>,
    stop: StopSignal,
    run: JoinHandle<Result<RunSummary, RunError>>,
}

impl Follower {
    /// Follows the relay from its oldest event on.
    pub(crate) fn start(sim: &Simulation) -> Self {
        Self::start_with(sim, |_| ())
    }

    /// The same, with other options.
    pub(crate) fn start_with(sim: &Simulation, change: impl FnOnce(&mut Options)) -> Self {
        Self::go_on(sim, Arc::default(), Arc::default(), change)
    }

    /// The same, with the cursors of another run, and the rest of its recorder.
    pub(crate) fn go_on(
        sim: &Simulation,
        cursors: Arc<MemoryCursors>,
        recorder: Arc<EventRecorder>,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let http = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).expect("TLS");
        let mut options = options(sim, &http);
        change(&mut options);
        let firehose = Firehose::new(&http, options);
        let (counters, stop) = (firehose.metrics(), StopSignal::new());
        let (handler, journal) = (recorder.clone(), CursorsOnly(Shared(cursors.clone())));
        let ended = stop.clone();
        let states = |_| MemoryState::new([7; 16]);
        let run = tokio::spawn(async move { firehose.run(handler, journal, states, ended).await });
        Self { recorder, counters, cursors, stop, run }
    }

    /// Waits until the condition holds for the recorder.
    pub(crate) async fn until(&self, is_enough: impl Fn(&EventRecorder) -> bool) {
        let patience = tokio::time::Instant::now() + PATIENCE;
        while !is_enough(&self.recorder) {
            assert!(tokio::time::Instant::now() < patience, "{:?}", self.recorder.codes());
            assert!(!self.run.is_finished(), "the run has ended");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Waits until all events of the relay up to the last one were delivered.
    pub(crate) async fn until_the_end(&self, sim: &Simulation) {
        let last = sim.last_seq(RELAY) as u64;
        let is_there = |recorder: &EventRecorder| {
            recorder.lines.lock().unwrap().iter().any(|l| l.seq == Some(last))
        };
        self.until(|recorder| is_there(recorder) && self.counters.snapshot().in_flight == 0).await;
    }

    /// Stops, and returns the result of the run.
    pub(crate) async fn stop(self) -> RunSummary {
        self.stop.request();
        self.run.await.expect("no panic").expect("a run that ends well")
    }

    /// Waits for a run that ends without a stop request.
    pub(crate) async fn fails(self) -> RunError {
        let ended = tokio::time::timeout(PATIENCE, self.run).await.expect("an end");
        ended.expect("no panic").expect_err("a failure")
    }
}

/// Cursors that the test looks at as well.
struct Shared(Arc<MemoryCursors>);

impl CursorStore for Shared {
    fn load(&self, stream: &str) -> Result<Option<u64>, net::cursors::CursorError> {
        self.0.load(stream)
    }

    fn store(&self, cursors: &[(&str, u64)]) -> Result<(), net::cursors::CursorError> {
        self.0.store(cursors)
    }
}

/// Options of a run on the relay, with keys from the directory.
fn options(sim: &Simulation, http: &Client) -> Options {
    let keys = Arc::new(ResolverKeys::new(resolver(sim, http)));
    let hosts = vec![setup::url(sim, RELAY, "")];
    let mut options = Options::new(hosts, keys);
    (options.feed, options.workers) = (setup::options(), 2);
    options
}

/// The resync settings for this simulation.
pub(crate) fn resync(sim: &Simulation) -> ResyncOptions {
    let http = Client::new(EgressPolicy::Loopback, Arc::new(LoopbackDns)).expect("TLS");
    ResyncOptions::new(xrpc::Client::new(http.clone()), resolver(sim, &http))
}

fn resolver(sim: &Simulation, http: &Client) -> Resolver {
    let directory = setup::url(sim, Server::Plc, "");
    let mut options = identity::Options::default();
    options.directory = directory;
    Resolver::new(http.clone(), Arc::new(LoopbackDns), options)
}

/// The timeout for expected events.
const PATIENCE: Duration = Duration::from_secs(60);
