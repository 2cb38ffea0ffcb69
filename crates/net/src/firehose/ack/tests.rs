//! Batches, the tracker and the in-flight limit.

use super::*;

const HOST: HostId = HostId(0);
const OTHER: HostId = HostId(1);

fn run_state() -> Arc<RunState> {
    let in_flight = InFlightLimit::new(100, 1_000, None);
    RunState::new(vec!["a".to_owned()], AckTracker::new([Some(10)]), in_flight)
}

fn batch(run: &Arc<RunState>, seqs: &[u64]) -> Arc<Batch> {
    let track = |seq: &u64| run.tracker().track(HOST, Some(*seq));
    let tickets = seqs.iter().map(track).collect();
    seqs.iter().for_each(|_| assert!(run.in_flight.try_acquire(1)));
    Batch::open(run, tickets, seqs.len(), Box::default())
}

fn cursor(tracker: &AckTracker) -> Option<u64> {
    tracker.cursors().next().unwrap()
}

#[test]
fn a_batch_is_complete_when_the_last_of_its_events_is_acknowledged() {
    let run = run_state();
    let batch = batch(&run, &[11, 12, 13]);
    let acks: Vec<Ack> = (0..3).map(|at| batch.ack(Some(at))).collect();
    batch.close(vec![]);
    for ack in acks.into_iter().rev() {
        assert_eq!((cursor(&run.tracker()), run.in_flight.events()), (Some(10), 3));
        assert!(!batch.is_complete());
        ack.done();
    }
    assert_eq!((cursor(&run.tracker()), run.in_flight.events()), (Some(13), 0));
    assert!(batch.is_complete() && run.acked() == 3);
}

#[test]
fn a_batch_that_is_still_being_delivered_is_open_even_if_all_its_events_are_acknowledged() {
    let run = run_state();
    let batch = batch(&run, &[11, 12]);
    batch.ack(Some(0)).done();
    assert!(!batch.is_complete());
    batch.ack(Some(1)).done();
    batch.close(vec![]);
    assert_eq!(cursor(&run.tracker()), Some(12));
}

#[test]
fn an_acknowledgement_may_come_from_another_thread() {
    let run = run_state();
    let batch = batch(&run, &[11]);
    let ack = batch.ack(Some(0));
    batch.close(vec![]);
    std::thread::spawn(move || ack.done()).join().unwrap();
    assert_eq!(cursor(&run.tracker()), Some(11));
}

#[test]
fn an_acknowledged_event_spends_the_budget_and_a_skipped_one_does_not() {
    let in_flight = InFlightLimit::new(100, 1_000, Some(3));
    let run = RunState::new(vec!["a".to_owned()], AckTracker::new([None]), in_flight);
    let batch = batch(&run, &[11, 12, 13]);
    let acks: Vec<Ack> = (0..3).map(|at| batch.ack(Some(at))).collect();
    // A resynced repository has no part in the budget.
    batch.ack(None).skip();
    batch.close(vec![]);
    for (number, ack) in acks.into_iter().enumerate() {
        if number > 0 { ack.done() } else { ack.skip() }
    }
    assert_eq!((cursor(&run.tracker()), run.in_flight.events()), (Some(13), 0));
    assert!(run.in_flight.try_acquire(1) && !run.in_flight.try_acquire(1), "one event is left");
}

#[test]
fn a_dropped_event_fails_the_run_and_the_cursor_stays() {
    let run = run_state();
    let batch = batch(&run, &[11, 12]);
    let (lost, other) = (batch.ack(Some(1)), batch.ack(Some(0)));
    batch.close(vec![]);
    drop(lost);
    other.done();
    assert_eq!(cursor(&run.tracker()), Some(10));
    let reason = run.failure.take().unwrap();
    let RunError::Unacknowledged { stream, seq } = reason else { panic!("{reason}") };
    assert_eq!((&*stream, seq), ("a", Some(12)));
}

#[test]
fn events_that_will_not_be_delivered_are_not_outstanding() {
    let run = run_state();
    let _events = batch(&run, &[11, 12, 13]);
    assert_eq!(run.outstanding(), 3);
    run.abandon(2);
    assert_eq!(run.outstanding(), 1);
}

#[test]
fn a_checkpoint_is_due_when_enough_events_of_complete_batches_are_acknowledged() {
    let run = run_state();
    run.checkpoint.wait(2, Duration::ZERO);
    for (seq, is_due) in [(11, false), (12, true)] {
        let batch = batch(&run, &[seq]);
        let ack = batch.ack(Some(0));
        batch.close(vec![]);
        ack.done();
        assert_eq!(run.checkpoint.lock().is_due, is_due, "after {seq}");
    }
}

#[tokio::test]
async fn a_requested_checkpoint_is_waited_for() {
    let signal = CheckpointSignal::default();
    let requests = async {
        signal.write_now().await;
        signal.lock().served
    };
    let writes = async {
        tokio::task::yield_now().await;
        assert!(signal.lock().is_due);
        signal.written(signal.wait(usize::MAX, Duration::ZERO));
    };
    assert_eq!(tokio::join!(requests, writes).0, 1);
}

fn track(tracker: &mut AckTracker, seqs: &[u64]) -> Vec<Ticket> {
    seqs.iter().map(|seq| tracker.track(HOST, Some(*seq))).collect()
}

#[test]
fn the_cursor_stops_before_the_oldest_event_that_is_not_acknowledged() {
    let mut tracker = AckTracker::new([Some(7)]);
    let tickets = track(&mut tracker, &[11, 12, 15, 16]);
    for (acked, expected) in [(1, 7), (0, 12), (3, 12), (2, 16)] {
        tracker.ack(tickets[acked]);
        assert_eq!(cursor(&tracker), Some(expected), "after {acked}");
    }
    assert_eq!(tracker.outstanding(), 0);
}

#[test]
fn no_order_of_acknowledgements_moves_the_cursor_past_an_outstanding_event() {
    let orders =
        |n: usize| (0..n.pow(4)).map(move |i| [i % n, i / n % n, i / n / n % n, i / n / n / n]);
    for order in orders(4) {
        let mut tracker = AckTracker::new([None]);
        let tickets = track(&mut tracker, &[1, 2, 3, 4]);
        let mut is_acked = [false; 4];
        for at in order {
            tracker.ack(tickets[at]);
            is_acked[at] = true;
            let oldest = is_acked.iter().position(|acked| !acked).unwrap_or(4);
            assert_eq!(cursor(&tracker).unwrap_or(0), oldest as u64, "{order:?}");
        }
    }
}

#[test]
fn each_host_has_its_own_cursor() {
    let mut tracker = AckTracker::new([Some(1), Some(900)]);
    let first = tracker.track(HOST, Some(2));
    let second = tracker.track(OTHER, Some(901));
    tracker.ack(second);
    assert!(tracker.cursors().eq([Some(1), Some(901)]));
    tracker.ack(first);
    assert!(tracker.cursors().eq([Some(2), Some(901)]));
}

#[test]
fn an_event_without_seq_holds_the_cursor_but_does_not_move_it() {
    let mut tracker = AckTracker::new([Some(5)]);
    let info = tracker.track(HOST, None);
    let event = tracker.track(HOST, Some(6));
    tracker.ack(event);
    assert_eq!((cursor(&tracker), tracker.seq(info)), (Some(5), None));
    tracker.ack(info);
    assert_eq!(cursor(&tracker), Some(6));
}

#[test]
fn a_host_whose_numbers_go_back_is_followed() {
    let mut tracker = AckTracker::new([Some(500)]);
    let tickets = track(&mut tracker, &[501, 3, 4]);
    tracker.ack(tickets[1]);
    tracker.ack(tickets[0]);
    assert_eq!(cursor(&tracker), Some(3));
    tracker.ack(tickets[2]);
    assert_eq!(cursor(&tracker), Some(4));
}

#[test]
fn an_event_below_the_cursor_of_an_earlier_run_holds_it_below_its_number() {
    let mut tracker = AckTracker::new([Some(500)]);
    let ticket = tracker.track(HOST, Some(3));
    assert_eq!(cursor(&tracker), Some(2));
    tracker.ack(ticket);
    assert_eq!(cursor(&tracker), Some(3));
}

#[test]
fn a_host_after_the_known_ones_has_a_cursor_of_its_own() {
    let mut tracker = AckTracker::new([Some(1)]);
    for (host, before) in [(1, &[Some(1), None][..]), (3, &[Some(1), Some(7), None, None])] {
        let ticket = tracker.track(HostId(host), Some(7));
        assert!(tracker.cursors().eq(before.iter().copied()));
        tracker.ack(ticket);
    }
    assert!(tracker.cursors().eq([Some(1), Some(7), None, Some(7)]));
}

#[test]
fn an_event_that_arrives_late_holds_the_cursor_below_its_number() {
    let mut tracker = AckTracker::new([Some(4)]);
    let tickets = track(&mut tracker, &[5, 7, 6, 8]);
    for (acked, expected) in [(0, 5), (1, 5), (3, 5), (2, 8)] {
        tracker.ack(tickets[acked]);
        assert_eq!(cursor(&tracker), Some(expected), "after {acked}");
    }
    let tickets = track(&mut tracker, &[12, 3, 6]);
    assert_eq!(cursor(&tracker), Some(2), "below that before the oldest outstanding event");
    tracker.ack(tickets[1]);
    assert_eq!(cursor(&tracker), Some(3), "6 goes back too, from 12");
}

#[test]
fn an_event_with_the_number_of_an_outstanding_one_holds_the_cursor_below_it() {
    let mut tracker = AckTracker::new([Some(4)]);
    let tickets = track(&mut tracker, &[5, 5]);
    tracker.ack(tickets[0]);
    assert_eq!(cursor(&tracker), Some(4));
    tracker.ack(tickets[1]);
    assert_eq!(cursor(&tracker), Some(5));
}

#[test]
fn a_reset_host_has_no_cursor_until_a_new_event_is_acknowledged() {
    let mut tracker = AckTracker::new([Some(1_000)]);
    let old = track(&mut tracker, &[1_001, 1_002]);
    tracker.ack(old[0]);
    tracker.reset(HOST);
    assert_eq!(cursor(&tracker), None);
    let new = track(&mut tracker, &[1, 2]);
    tracker.ack(new[0]);
    assert_eq!(cursor(&tracker), None);
    tracker.ack(old[1]);
    assert_eq!(cursor(&tracker), Some(1));
}

#[test]
fn an_event_that_is_never_acknowledged_costs_no_memory_for_later_ones() {
    let mut tracker = AckTracker::new([None]);
    tracker.track(HOST, Some(1));
    for seq in 2..10_000 {
        let ticket = tracker.track(HOST, Some(seq));
        tracker.ack(ticket);
    }
    assert_eq!((tracker.outstanding(), cursor(&tracker)), (1, None));
}

#[test]
fn events_and_bytes_in_flight_are_bounded() {
    let limit = InFlightLimit::new(3, 100, None);
    assert!(limit.try_acquire(60) && limit.try_acquire(40) && !limit.try_acquire(1));
    limit.release(1, 60, 0);
    assert!(limit.try_acquire(10) && limit.try_acquire(10) && !limit.try_acquire(0));
    assert_eq!((limit.events(), limit.bytes()), (3, 60));
}

#[test]
fn an_event_longer_than_the_limit_is_admitted_alone() {
    let limit = InFlightLimit::new(3, 100, None);
    assert!(limit.try_acquire(5_000) && !limit.try_acquire(0));
    limit.release(1, 5_000, 0);
    assert!(limit.try_acquire(0) && !limit.try_acquire(5_000));
}

#[tokio::test]
async fn a_spent_budget_admits_nothing_even_when_nothing_is_in_flight() {
    let limit = InFlightLimit::new(5, 100, Some(2));
    assert!(limit.try_acquire(1) && limit.try_acquire(1) && !limit.try_acquire(1));
    limit.release(2, 2, 0);
    assert_eq!((limit.try_acquire(0), limit.events()), (false, 0));
    limit.spent().await;
}

#[tokio::test]
async fn a_waiting_acquire_continues_after_a_release() {
    let limit = InFlightLimit::new(1, 100, None);
    limit.acquire(1).await;
    let acquires = async {
        limit.acquire(2).await;
        limit.bytes()
    };
    let releases = async {
        tokio::task::yield_now().await;
        limit.release(1, 1, 0);
    };
    assert_eq!(tokio::join!(acquires, releases).0, 2);
}

#[test]
fn a_live_stream_without_an_event_has_the_cursor_of_the_oldest_until_its_first() {
    let mut tracker = AckTracker::new([None, Some(7)]);
    let started = |tracker: &AckTracker| tracker.started_cursors().collect::<Vec<_>>();
    assert_eq!(started(&tracker), [None, None]);
    tracker.open_live(HostId(0));
    tracker.open_live(HostId(1));
    assert_eq!(started(&tracker), [Some(0), None], "the other one has a cursor");
    tracker.start(HostId(0), 30);
    assert_eq!(started(&tracker), [Some(29), None]);
    tracker.open_live(HostId(0));
    assert_eq!(started(&tracker), [Some(29), None]);
    tracker.reset(HostId(0));
    assert_eq!(started(&tracker), [None, None]);
}
