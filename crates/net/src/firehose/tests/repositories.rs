//! Accounts that are out of step, and what comes of them until they are in step again.

use std::sync::Arc;
use std::time::Instant;

use atproto::syntax::Tid;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use verify::sync::{Head, MemoryState, SyncState};

use super::super::ack::RunState;
use super::super::acks::AckTracker;
use super::super::counter::Dispatcher;
use super::super::inbox::WorkerMessage;
use super::super::item::{Item, Numbers};
use super::super::partition::{Job, Partition};
use super::super::pending_states::PendingStates;
use super::super::room::InFlightLimit;
use super::super::*;
use super::scene::*;

/// A worker without a thread, whose jobs nobody runs.
struct Alone {
    partition: Partition<Recorder, MemoryState>,
    recorder: Arc<Recorder>,
    pending_states: Arc<PendingStates>,
    jobs: UnboundedReceiver<Job>,
    numbers: Numbers,
}

const MAX_WAITING: usize = 4;

impl Alone {
    fn new(writers: &[&Writer]) -> Self {
        let recorder = Recorder::new(usize::MAX, Manner::Prompt);
        let acks = AckTracker::new([None]);
        let run_state =
            RunState::new(vec![STREAM.to_owned()], acks, InFlightLimit::new(1_000, 1 << 20));
        let counter = Dispatcher::new(&recorder, &run_state, &Arc::default(), true);
        let (pending_states, numbers) = (counter.pending_states.clone(), Numbers::default());
        let limits = FlowLimits { max_account_events: MAX_WAITING, ..FlowLimits::default() };
        let options = Options { limits, ..options(keys(writers.iter().copied())) };
        let (sender, jobs) = unbounded_channel();
        let state = MemoryState::new([7; 16]);
        let mut partition = Partition::new(0, &options, counter, state, sender, &numbers);
        partition.habits.resyncs = true;
        Self { partition, recorder, pending_states, jobs, numbers }
    }

    /// Lets this come, and settles what can be.
    fn comes(&mut self, frames: impl IntoIterator<Item = Vec<u8>>) {
        for frame in frames {
            let arrival = arrival(frame);
            assert!(self.partition.counter.run_state.in_flight.try_acquire(arrival.frame.len()));
            let ticket = self.partition.counter.run_state.acks().begin(HOST, arrival.seq);
            let account = self.numbers.of(arrival.did());
            self.partition.ready.push_back(Item { arrival, ticket, account, answer: None });
        }
        self.settle();
    }

    fn settle(&mut self) {
        while self.partition.step().unwrap() {}
    }

    /// Its repository was fetched, as it is now; or was not.
    fn mended(&mut self, writer: &Writer, head: Option<Head>) {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mended = match head {
            Some(head) => Ok(Arc::new(ResyncedRepo::new(&writer.did, head, path))),
            None => Err(ResyncError::NoHost),
        };
        let number = self.numbers.of(Some(&writer.did));
        self.partition.read(WorkerMessage::ResyncResult(number, mended)).unwrap();
        self.settle();
    }

    /// The jobs since the last look: whose repository, and from which revision on.
    fn jobs(&mut self) -> Vec<(String, Option<Tid>)> {
        let mut jobs = Vec::new();
        while let Ok(job) = self.jobs.try_recv() {
            let Job::Repository { did, known, .. } = job else { panic!("{job:?}") };
            jobs.push((did.into(), known.map(|head| head.rev)));
        }
        jobs
    }

    fn cursor(&self) -> Option<u64> {
        self.partition.counter.run_state.acks().cursors().next().unwrap()
    }

    fn journaled(&self, writer: &Writer) -> Option<SyncState> {
        self.pending_states.take().get(&*writer.did).map(|account| account.sync)
    }
}

#[test]
fn what_comes_after_a_gap_waits_for_the_repository_and_goes_on_from_there() {
    let (mut writer, mut other) = (Writer::new(0), Writer::new(1));
    let mut alone = Alone::new(&[&writer, &other]);
    alone.comes([writer.commit(1), writer.skip().commit(2)]);
    assert_eq!(alone.jobs(), [(writer.did.clone(), writer.rev())]);
    assert_eq!(alone.journaled(&writer), Some(SyncState::Desynchronized));
    alone.comes([writer.commit(3), other.commit(4), writer.commit(5)]);
    assert_eq!((alone.recorder.of(&writer).len(), alone.recorder.of(&other).len()), (2, 1));
    assert_eq!(alone.cursor(), Some(2));
    let fetched = writer.head();
    alone.comes([writer.commit(6)]);
    alone.mended(&writer, Some(fetched));
    let expected = [
        (1, "verified"),
        (2, "verified/broken"),
        (RESYNCED, "resynced"),
        (3, "event/stale-rev"),
        (5, "event/stale-rev"),
        (6, "verified"),
    ];
    assert_eq!(alone.recorder.of(&writer), expected);
    assert_eq!((alone.cursor(), alone.jobs()), (Some(6), vec![]));
    assert_eq!(alone.journaled(&writer), Some(SyncState::Synchronized));
}

#[test]
fn a_sync_of_another_tree_has_the_repository_fetched() {
    let mut writer = Writer::new(0);
    let mut alone = Alone::new(&[&writer]);
    alone.comes([writer.commit(1), writer.sync(2)]);
    assert_eq!(alone.jobs(), [], "the tree is the same");
    writer.replant();
    alone.comes([writer.sync(3)]);
    assert_eq!(alone.jobs(), [(writer.did.clone(), writer.rev())]);
}

#[test]
fn an_account_whose_repository_is_not_to_be_had_goes_on_out_of_step() {
    let mut writer = Writer::new(0);
    let mut alone = Alone::new(&[&writer]);
    alone.comes([writer.commit(1), writer.skip().commit(2)]);
    alone.comes([writer.commit(3)]);
    assert_eq!(alone.jobs().len(), 1);
    alone.mended(&writer, None);
    let expected = [(1, "verified"), (2, "verified/broken"), (3, "verified/unmended")];
    assert_eq!(alone.recorder.of(&writer), expected);
    assert_eq!(alone.jobs(), [(writer.did.clone(), writer.rev())], "it is tried again");
}

#[test]
fn more_events_than_may_wait_do_not_and_the_repository_must_reach_them() {
    let mut writer = Writer::new(0);
    let mut alone = Alone::new(&[&writer]);
    alone.comes([writer.commit(1), writer.skip().commit(2)]);
    let fetched = writer.head();
    alone.comes((3..).take(MAX_WAITING + 1).map(|seq| writer.commit(seq)).collect::<Vec<_>>());
    assert_eq!(alone.recorder.of(&writer).last(), Some(&(7, "verified/unmended")));
    assert_eq!((alone.jobs().len(), alone.cursor()), (1, Some(7)));
    alone.mended(&writer, Some(fetched));
    assert_eq!(alone.jobs(), [(writer.did.clone(), writer.rev())], "it is too old");
    alone.mended(&writer, Some(writer.head()));
    alone.comes([writer.commit(8)]);
    assert_eq!(alone.recorder.of(&writer)[7..], [(RESYNCED, "resynced"), (8, "verified")]);
}

#[test]
fn what_has_waited_for_too_long_does_not_any_longer() {
    let mut writer = Writer::new(0);
    let mut alone = Alone::new(&[&writer]);
    alone.comes([writer.commit(1), writer.skip().commit(2)]);
    alone.comes([writer.commit(3)]);
    let long = Instant::now() + alone.partition.habits.max_hold;
    alone.partition.let_go_of_overdue(long);
    alone.settle();
    assert_eq!(alone.recorder.of(&writer).last(), Some(&(3, "verified/unmended")));
    assert_eq!(alone.jobs().len(), 1, "it is still being fetched");
}

#[test]
fn at_the_end_nothing_waits_for_a_repository() {
    let mut writer = Writer::new(0);
    let mut alone = Alone::new(&[&writer]);
    alone.comes([writer.commit(1), writer.skip().commit(2)]);
    alone.comes([writer.commit(3)]);
    alone.jobs();
    alone.partition.close();
    alone.settle();
    assert_eq!(alone.recorder.of(&writer).last(), Some(&(3, "verified/unmended")));
    assert_eq!((alone.jobs(), alone.cursor()), (vec![], Some(3)));
    assert_eq!(alone.journaled(&writer), Some(SyncState::Desynchronized));
}

#[test]
fn an_account_that_was_out_of_step_before_the_run_is_fetched_at_once() {
    let writer = Writer::new(0);
    let mut alone = Alone::new(&[&writer]);
    let account = alone.numbers.of(Some(&writer.did));
    alone.partition.read(WorkerMessage::OutOfStep(account, writer.did.as_str().into())).unwrap();
    assert_eq!(alone.jobs(), [(writer.did.clone(), None)]);
}

#[test]
fn an_account_that_was_out_of_step_when_the_run_began_is_mended_at_its_next_event() {
    let mut writer = Writer::new(0);
    let mut alone = Alone::new(&[&writer]);
    alone.partition.habits.resyncs = false;
    alone.comes([writer.commit(1), writer.skip().commit(2)]);
    assert_eq!(alone.jobs(), []);
    alone.partition.habits.resyncs = true;
    alone.comes([writer.commit(3)]);
    assert_eq!(alone.jobs(), [(writer.did.clone(), writer.rev())]);
}
