//! Who works for a run? Workers, a checkpointer, and somebody who runs jobs.

use std::error::Error;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;
use verify::sync::ChainState;

use super::ack::RunState;
use super::acks::AckTracker;
use super::checkpoint::Checkpointer;
use super::counter::Dispatcher;
use super::counters::RunMetrics;
use super::handler::Handler;
use super::inbox::{Inbox, WorkerMessage};
use super::intake::Intake;
use super::item::{Numbers, worker_of};
use super::jobs::JobPool;
use super::journal::Journal;
use super::options::{Options, Verification};
use super::partition::Partition;
use super::room::InFlightLimit;
use super::run::RunError;
use super::worker;

/// Everybody who works for a run.
#[derive(Debug)]
pub(super) struct Runtime {
    pub(super) run_state: Arc<RunState>,
    pub(super) inboxes: Arc<[Inbox]>,
    pub(super) counters: Arc<RunMetrics>,
    pub(super) intake: Intake,
    /// Hears nothing more when all workers have gone.
    pub(super) workers: Receiver<()>,
    /// Who runs jobs.
    pub(super) job_pool: JoinSet<()>,
    /// Who writes the journal.
    pub(super) checkpointer: Option<JoinHandle<()>>,
}

/// The names of the hosts' streams, with their cursors in the journal.
pub(super) type Streams = Vec<(String, Option<u64>)>;

impl Runtime {
    /// Has everybody begin.
    pub(super) fn spawn<H, J, S>(
        options: &Options,
        counters: &Arc<RunMetrics>,
        streams: Streams,
        handler: &Arc<H>,
        journal: J,
        mut states: impl FnMut(usize) -> S,
    ) -> Result<Self, RunError>
    where
        H: Handler,
        J: Journal,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let (jobs, received) = mpsc::unbounded_channel();
        let (gone, workers) = mpsc::channel(1);
        let (numbers, mut pending_states) = (Numbers::default(), Vec::new());
        let mut runtime = Self::gather(options, counters, streams, &numbers, workers);
        let job_pool = JobPool::new(options, runtime.inboxes.clone(), counters.clone());
        runtime.job_pool.spawn(job_pool.run(received));
        let is_judged = matches!(options.verify, Verification::On { .. });
        let keeps_accounts = is_judged && journal.keeps_accounts();
        for number in 0..runtime.inboxes.len() {
            let counter = Dispatcher::new(handler, &runtime.run_state, counters, keeps_accounts);
            pending_states.push(counter.pending_states.clone());
            let (state, jobs) = (states(number), jobs.clone());
            let partition = Partition::new(number, options, counter, state, jobs, &numbers);
            runtime.spawn_worker(partition, gone.clone())?;
        }
        for did in options.resync.iter().flat_map(|resync| &resync.desynchronized) {
            runtime.tell_out_of_step(numbers.of(Some(did)), did);
        }
        let checkpointer =
            Checkpointer::new(journal, &runtime.run_state, pending_states, counters, options);
        runtime.checkpointer =
            Some(spawn("wireproof-journal".to_owned(), move || checkpointer.run())?);
        Ok(runtime)
    }

    /// The run_state and the rooms, in which nobody works yet.
    fn gather(
        options: &Options,
        counters: &Arc<RunMetrics>,
        streams: Streams,
        numbers: &Numbers,
        workers: Receiver<()>,
    ) -> Self {
        let bounds = &options.limits;
        let (streams, cursors): (Vec<String>, Vec<Option<u64>>) = streams.into_iter().unzip();
        let room = InFlightLimit::new(bounds.max_events.max(1), bounds.max_bytes);
        let run_state = RunState::new(streams, AckTracker::new(cursors), room);
        counters.watch(run_state.clone());
        let count = options.workers.max(1);
        let inboxes: Arc<[Inbox]> = (0..count).map(|_| Inbox::default()).collect();
        let intake =
            Intake::new(run_state.clone(), inboxes.clone(), counters.clone(), numbers.clone());
        let (counters, job_pool) = (counters.clone(), JoinSet::new());
        Self { run_state, inboxes, counters, intake, workers, job_pool, checkpointer: None }
    }

    /// Tells its worker that an account was out of step before the run.
    fn tell_out_of_step(&self, account: u64, did: &str) {
        let worker = worker_of(account, self.inboxes.len());
        self.inboxes[worker].post(WorkerMessage::OutOfStep(account, did.into()));
    }

    /// Has somebody work on a partition.
    fn spawn_worker<H, S>(
        &self,
        partition: Partition<H, S>,
        gone: Sender<()>,
    ) -> Result<(), RunError>
    where
        H: Handler,
        S: ChainState + Send + 'static,
        S::Error: Error + Send + Sync + 'static,
    {
        let (inboxes, number) = (self.inboxes.clone(), partition.number);
        let work = move || {
            worker::work(partition, &inboxes[number]);
            drop(gone);
        };
        spawn(format!("wireproof-{number}"), work).map(drop)
    }
}

impl Drop for Runtime {
    /// Sends everybody home.
    fn drop(&mut self) {
        self.run_state.error.set(RunError::Abandoned);
        self.inboxes.iter().for_each(Inbox::close);
        self.job_pool.abort_all();
        self.run_state.checkpoint_signal.request_final();
    }
}

fn spawn<T: Send + 'static>(
    name: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, RunError> {
    std::thread::Builder::new().name(name).spawn(work).map_err(RunError::Thread)
}
