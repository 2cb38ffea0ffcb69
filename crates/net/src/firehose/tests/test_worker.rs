//! A worker without a thread.

use std::sync::Arc;

use atproto::syntax::Tid;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use verify::sync::{AccountState, Head, MemoryState, SyncState};

use super::super::ack::{AckTracker, InFlightLimit, RunState};
use super::super::checkpoint::PendingStates;
use super::super::handler::Dispatcher;
use super::super::jobs::Job;
use super::super::queue::{AccountHasher, LookedUpKey, QueuedEvent, WorkerMessage};
use super::super::worker::Partition;
use super::super::*;
use super::support::*;

/// A worker without a thread, whose jobs are not run.
pub(super) struct TestWorker {
    pub(super) partition: Partition<Recorder, MemoryState>,
    pub(super) recorder: Arc<Recorder>,
    pending_states: Arc<PendingStates>,
    pub(super) jobs: UnboundedReceiver<Job>,
    pub(super) hasher: AccountHasher,
}

/// Maximum number of parked events of an account.
pub(super) const MAX_PARKED: usize = 4;

impl TestWorker {
    /// A worker that knows the keys of these accounts.
    pub(super) fn new(writers: &[&Writer]) -> Self {
        Self::with_state(writers, MemoryState::new([7; 16]))
    }

    /// A worker with this state.
    pub(super) fn with_state(writers: &[&Writer], state: MemoryState) -> Self {
        Self::with_options(options(keys(writers.iter().copied())), state)
    }

    /// A worker with these options and this state.
    pub(super) fn with_options(options: Options, state: MemoryState) -> Self {
        let recorder = Recorder::new(usize::MAX, AckMode::Immediate);
        let tracker = AckTracker::new([None]);
        let run_state = RunState::new(
            vec![STREAM.to_owned()],
            tracker,
            InFlightLimit::new(1_000, 1 << 20, None),
        );
        let dispatcher = Dispatcher::new(&recorder, &run_state, &Arc::default(), true);
        let (pending_states, hasher) =
            (dispatcher.pending_states.clone(), AccountHasher::default());
        let limits = FlowLimits { max_account_events: MAX_PARKED, ..FlowLimits::default() };
        let options = Options { limits, ..options };
        let (sender, jobs) = unbounded_channel();
        let mut partition = Partition::new(0, &options, dispatcher, state, sender, &hasher);
        partition.config.resyncs = true;
        Self { partition, recorder, pending_states, jobs, hasher }
    }

    /// Receives frames, and processes the unparked events.
    pub(super) fn receive(&mut self, frames: impl IntoIterator<Item = Vec<u8>>) {
        self.receive_looked_up(frames.into_iter().map(|frame| (frame, None)));
    }

    /// Receives frames without processing them.
    pub(super) fn receive_ready(&mut self, frames: impl IntoIterator<Item = Vec<u8>>) {
        frames.into_iter().for_each(|frame| self.push_ready(frame, None));
    }

    /// Receives frames with the results of key lookups, and processes the unparked events.
    pub(super) fn receive_looked_up(
        &mut self,
        frames: impl IntoIterator<Item = (Vec<u8>, Option<Arc<LookedUpKey>>)>,
    ) {
        frames.into_iter().for_each(|(frame, looked_up)| self.push_ready(frame, looked_up));
        self.process();
    }

    fn push_ready(&mut self, frame: Vec<u8>, looked_up: Option<Arc<LookedUpKey>>) {
        let received = received(frame);
        assert!(self.partition.dispatcher.run.in_flight.try_acquire(received.frame.len()));
        let ticket = self.partition.dispatcher.run.tracker().track(HOST, received.seq);
        let account = self.hasher.hash(received.did());
        let has_waited = false;
        let event = QueuedEvent { received, ticket, account, looked_up, has_waited };
        self.partition.ready.push_back(event);
    }

    /// Processes the unparked events.
    pub(super) fn process(&mut self) {
        while self.partition.process_batch().unwrap() {}
    }

    /// Requests a resync, as the program does.
    pub(super) fn request(&mut self, writer: &Writer) {
        let account = self.hasher.hash(Some(&writer.did));
        let request = WorkerMessage::Desynchronized(account, writer.did.as_str().into());
        self.partition.handle(request).unwrap();
    }

    /// Ends a resync: at this head, or with an error.
    pub(super) fn resynced(&mut self, writer: &Writer, head: Option<Head>) {
        let repository = head.map(|head| ResyncedRepo::new(&writer.did, head).unwrap());
        self.finish(writer, repository.ok_or(ResyncError::NoHost));
    }

    /// Ends a resync at this head with collections that were added.
    pub(super) fn resynced_added(&mut self, writer: &Writer, head: Head) {
        let repository = ResyncedRepo::new(&writer.did, head).unwrap();
        self.finish(writer, Ok(ResyncedRepo { base: Some([].into()), ..repository }));
    }

    fn finish(&mut self, writer: &Writer, result: Result<ResyncedRepo, ResyncError>) {
        let result = result.map(Arc::new);
        let account = self.hasher.hash(Some(&writer.did));
        self.partition.handle(WorkerMessage::Resynced(account, result)).unwrap();
        self.process();
    }

    /// The submitted resyncs since the last call: account, and known revision.
    pub(super) fn jobs(&mut self) -> Vec<(String, Option<Tid>)> {
        let jobs = self.known_states().into_iter();
        jobs.map(|(did, known)| (did, known.head.map(|head| head.rev))).collect()
    }

    /// The submitted resyncs since the last call: account, and known state.
    pub(super) fn known_states(&mut self) -> Vec<(String, AccountState)> {
        let mut jobs = Vec::new();
        while let Ok(job) = self.jobs.try_recv() {
            let Job::Resync { did, known, .. } = job else { panic!("{job:?}") };
            jobs.push((did.into(), known));
        }
        jobs
    }

    /// The cursor of the stream.
    pub(super) fn cursor(&self) -> Option<u64> {
        self.partition.dispatcher.run.tracker().cursors().next().unwrap()
    }

    /// The changed state of an account, for the journal.
    pub(super) fn journaled(&self, writer: &Writer) -> Option<SyncState> {
        self.pending_states.take().get(&*writer.did).map(|account| account.sync)
    }
}
