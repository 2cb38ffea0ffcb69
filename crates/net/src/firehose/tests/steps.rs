//! One step of a worker, and how long it waits for the next.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::super::queue::{Inbox, ReadAhead, WaitTimeout, WorkerMessage};
use super::super::worker::{TICK, Worker};
use super::super::*;
use super::support::*;
use super::test_worker::TestWorker;

fn inboxes() -> Arc<[Inbox]> {
    let read_ahead = Arc::new(ReadAhead::new(&FlowLimits::default(), 1));
    Arc::new([Inbox::new(read_ahead)])
}

/// A worker with an event that awaits a repository: the third.
fn with_parked_event(writer: &mut Writer) -> TestWorker {
    let mut worker = TestWorker::new(&[writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.receive([writer.commit(3)]);
    assert_eq!(worker.recorder.of(writer).len(), 2);
    worker
}

#[test]
fn a_worker_waits_only_while_it_has_nothing_to_do() {
    let (mut writer, mut keyless) = (Writer::new(0), Writer::new(1));
    let idle = TestWorker::new(&[&writer]);
    assert_eq!(idle.partition.wait_timeout(), WaitTimeout::Never);
    let mut worker = with_parked_event(&mut writer);
    assert_eq!(worker.partition.wait_timeout(), WaitTimeout::After(TICK), "it may be overdue");
    worker.receive([keyless.commit(4)]);
    worker.partition.start_draining();
    assert_eq!(worker.partition.wait_timeout(), WaitTimeout::Zero, "an event was released");
    worker.process();
    assert_eq!(worker.partition.wait_timeout(), WaitTimeout::Never, "a key is looked up");
    let mut drained = idle;
    drained.partition.start_draining();
    assert_eq!(drained.partition.wait_timeout(), WaitTimeout::Zero, "nothing more comes");
}

#[test]
fn a_batch_has_no_more_events_than_its_limit() {
    let mut writers = [0, 1, 2].map(Writer::new);
    let mut worker = TestWorker::new(&writers.each_ref());
    worker.partition.config.max_batch = 2;
    worker.receive_ready((1..).zip(&mut writers).map(|(seq, writer)| writer.commit(seq)));
    assert!(worker.partition.process_batch().unwrap());
    assert_eq!((worker.recorder.events().len(), worker.partition.ready.len()), (2, 1));
}

#[test]
fn a_worker_abandons_its_events_when_it_is_stopped_and_not_before() {
    let mut writer = Writer::new(0);
    let partition = with_parked_event(&mut writer).partition;
    let (run, inboxes) = (partition.dispatcher.run.clone(), inboxes());
    let mut worker = Worker::new(partition, inboxes.clone());
    assert!(worker.step(WaitTimeout::Zero));
    assert_eq!(run.outstanding(), 1);
    inboxes[0].send(WorkerMessage::Stop);
    assert!(!worker.step(WaitTimeout::Zero));
    assert_eq!(run.outstanding(), 0);
}

#[test]
fn overdue_events_are_looked_for_once_a_tick() {
    let mut writer = Writer::new(0);
    let TestWorker { mut partition, recorder, .. } = with_parked_event(&mut writer);
    partition.config.max_hold = Duration::ZERO;
    let mut worker = Worker::new(partition, inboxes());
    worker.last_tick = Instant::now() + TICK;
    assert!(worker.step(WaitTimeout::Zero));
    assert_eq!(recorder.of(&writer).len(), 2, "the tick is not due");
    worker.last_tick = Instant::now() - TICK;
    assert!(worker.step(WaitTimeout::Zero));
    assert_eq!(recorder.of(&writer).len(), 3, "the tick is due");
}

#[test]
fn a_worker_whose_inbox_is_closed_goes_on_while_events_await_the_clock() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    writer.skip_to(SystemTime::now() + Duration::from_secs(86_400));
    worker.receive([writer.commit(1)]);
    let inboxes = inboxes();
    inboxes[0].close();
    let mut worker = Worker::new(worker.partition, inboxes);
    assert_eq!(worker.partition.wait_timeout(), WaitTimeout::After(TICK));
    assert!(worker.step(WaitTimeout::Zero));
    assert_eq!(worker.partition.ready.len(), 1);
}
