//! The firehose: cursors, sequence numbers, hosts, and errors of servers.

use std::time::Duration;

use net::egress::EgressPolicy;
use net::firehose::{Feed, FeedError, FrameKind, Notice, StartFrom, Upstream};
use net::hosts::{HostId, Jitter};
use net::websocket::SocketError;
use simnet::servers::{CursorPolicy, Fault, FaultSchedule, Server, Simulation};

use crate::setup::{
    BACKOFF, RELAY, Received, dialer, feed, follow_to_the_end, options, sent, sim, sim_with,
};

const OTHER: Server = Server::Relay(1);

/// Asserts that every event was delivered once, in the order in which it was sent.
fn assert_complete(sim: &Simulation, received: &Received) {
    assert_eq!(received.seqs(), sent(sim, RELAY));
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn every_event_is_delivered_once_in_order_with_its_account() {
    let sim = sim(|_| ());
    let received = follow_to_the_end(&sim).await;
    assert_complete(&sim, &received);
    let accounts: Vec<_> = received.arrivals.iter().map(|arrival| arrival.did().unwrap()).collect();
    let sent: Vec<_> = sim.sent_events(RELAY).into_iter().map(|line| line.subject.did).collect();
    assert_eq!(accounts, sent);
    assert_eq!(received.cursors(), [Some(0)]);
}

#[tokio::test]
async fn an_upgrade_refused_for_a_while_is_tried_again_with_waits_in_between() {
    for fault in
        [Fault::UpgradeTooMany, Fault::UpgradeUnavailable, Fault::UpgradeForbidden, Fault::Drop]
    {
        let sim = sim_with(fault, FaultSchedule::times(5));
        let received = follow_to_the_end(&sim).await;
        assert_complete(&sim, &received);
        assert_eq!(received.count(|notice| matches!(notice, Notice::ConnectFailed { .. })), 5);
        assert_eq!(received.count(|notice| matches!(notice, Notice::RetryScheduled { .. })), 5);
        assert_eq!(sim.faults().fired(RELAY, fault), 5);
    }
}

#[tokio::test]
async fn a_host_outside_the_policy_ends_the_feed_with_the_reason() {
    let upstream = Upstream::new("wss://10.0.0.1/".parse().unwrap());
    let mut feed = Feed::new(dialer(EgressPolicy::Loopback), &[upstream], options(), Jitter::new());
    let mut received = Received::default();
    received.until(&mut feed, |_| false).await;
    let failure = received.failure.unwrap();
    assert!(matches!(&failure, FeedError::NoHostLeft(error) if error.host == "10.0.0.1"));
    assert!(failure.to_string().contains("not allowed"), "{failure}");
}

#[tokio::test]
async fn after_a_refusal_the_next_host_is_followed_at_once() {
    let sim = sim(|spec| spec.relays = 2);
    sim.faults().enable(RELAY, Fault::UpgradeForbidden, FaultSchedule::ALWAYS);
    let mut received = Received::default();
    let mut feed = feed(&sim, &[(RELAY, None), (OTHER, None)], options());
    received.until(&mut feed, |received| received.arrivals.len() == 40).await;
    assert_eq!(received.seqs(), sent(&sim, OTHER));
    let rotated = Notice::Rotated { from: HostId(0), to: HostId(1) };
    assert_eq!(received.count(|notice| *notice == rotated), 1);
    assert_eq!(received.count(|notice| matches!(notice, Notice::ConnectFailed { .. })), 1);
    assert_eq!(received.count(|notice| matches!(notice, Notice::HostExcluded { .. })), 0);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_stream_cut_at_any_byte_resumes() {
    let (mut sim, mut cuts) = (sim(|_| ()), 0);
    // Every byte of the first frames' heads and some of their bodies, and then here and there.
    for bytes in (1..60).chain((60..9_000).step_by(499)) {
        sim.faults().enable(RELAY, Fault::Cut, FaultSchedule::ONCE.with_amount(bytes));
        assert_complete(&sim, &follow_to_the_end(&sim).await);
        cuts += 1;
        if cuts % 20 == 0 {
            sim = crate::setup::sim(|_| ());
        }
    }
}

#[tokio::test]
async fn many_cuts_in_a_row_lose_nothing() {
    let sim = sim(|spec| spec.initial_commits = 1_000);
    sim.faults().enable(RELAY, Fault::Cut, FaultSchedule::times(64).with_amount(30_000));
    let received = follow_to_the_end(&sim).await;
    assert_complete(&sim, &received);
    let lost = received.count(is_lost);
    assert_eq!(lost as u64, sim.faults().fired(RELAY, Fault::Cut));
    assert!(lost > 10, "{lost}");
    // Cursors do not decrease: received events are not requested again.
    let cursors = received.cursors();
    assert!(cursors.windows(2).all(|pair| pair[0] <= pair[1]), "{cursors:?}");
}

#[tokio::test]
async fn a_stall_is_found_and_the_stream_goes_on() {
    let sim = sim_with(Fault::Stall, FaultSchedule::ONCE.after(9));
    let received = follow_to_the_end(&sim).await;
    assert_complete(&sim, &received);
    let reason = SocketError::Idle(options().socket.idle_timeout);
    let idle = Notice::Disconnected { host: HostId(0), reason };
    assert_eq!(received.count(|notice| *notice == idle), 1);
}

#[tokio::test]
async fn a_server_that_only_answers_pings_is_left_after_a_while() {
    let sim = sim(|_| ());
    let quiet = Duration::from_millis(700);
    let mut options = options();
    (options.message_timeout, options.start) = (Some(quiet), StartFrom::Live);
    let mut received = Received::default();
    let mut feed = feed(&sim, &[(RELAY, None)], options);
    received.until(&mut feed, |received| received.cursors().len() == 2).await;
    let left = Notice::Disconnected { host: HostId(0), reason: SocketError::NoMessage(quiet) };
    assert_eq!(received.count(|notice| *notice == left), 1);
}

#[tokio::test]
async fn a_repeated_seq_is_reported_and_delivered_once() {
    let sim = sim_with(Fault::RepeatedSeq, FaultSchedule::ALWAYS.every(7));
    let received = follow_to_the_end(&sim).await;
    assert_complete(&sim, &received);
    let repeated = received.count(|notice| matches!(notice, Notice::Repeated { .. }));
    // The repetition of the last event may still be on its way.
    assert!((5..=6).contains(&repeated), "{repeated}");
}

#[tokio::test]
async fn a_missing_seq_is_reported_as_a_gap() {
    let sim = sim(|_| ());
    let server = Server::Pds(0);
    sim.faults().enable(server, Fault::MissingSeq, FaultSchedule::ONCE.after(3));
    let mut missing = sent(&sim, server);
    let lost = missing.remove(3);
    let mut received = Received::default();
    let mut feed = feed(&sim, &[(server, None)], options());
    received.until(&mut feed, |received| received.arrivals.len() == missing.len()).await;
    assert_eq!(received.seqs(), missing);
    let gap = Notice::Gap { host: HostId(0), after: lost - 1, seq: lost + 1 };
    let gaps = received.notices.iter().filter(|notice| matches!(notice, Notice::Gap { .. }));
    assert_eq!(gaps.collect::<Vec<_>>(), [&gap]);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_lower_seq_is_reported_and_its_event_delivered() {
    let sim = sim_with(Fault::ReversedSeq, FaultSchedule::ONCE.after(3));
    let received = follow_to_the_end(&sim).await;
    let mut reversed = sent(&sim, RELAY);
    let (early, late) = (reversed[3], reversed[4]);
    reversed.swap(3, 4);
    assert_eq!(received.seqs(), reversed);
    let regressed = Notice::Regressed { host: HostId(0), after: late, seq: early };
    assert_eq!(received.count(|notice| *notice == regressed), 1);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn what_is_no_event_is_handed_over_with_its_bytes_and_costs_no_event() {
    let strange = [
        (Fault::GarbageFrame, FrameKind::Undecodable),
        (Fault::WrongMessage, FrameKind::Undecodable),
        (Fault::UnknownKind, FrameKind::Unknown),
        (Fault::UnknownOperation, FrameKind::Unknown),
        (Fault::OversizedFrame, FrameKind::Undecodable),
    ];
    for (fault, kind) in strange {
        let sim = sim_with(fault, FaultSchedule::ONCE.after(9));
        let received = follow_to_the_end(&sim).await;
        assert_eq!(received.arrivals[9].kind, kind, "{}", fault.name());
        assert!(!received.arrivals[9].frame.is_empty());
        let mut expected = sent(&sim, RELAY);
        if fault == Fault::WrongMessage {
            expected.remove(9);
        }
        assert_eq!(received.seqs(), expected, "{}", fault.name());
        assert_eq!(received.cursors().len(), 1);
        assert_eq!(sim.faults().unfired(), []);
    }
}

#[tokio::test]
async fn an_oversized_message_ends_the_connection_and_loses_no_event() {
    let sim = sim_with(Fault::OversizedFrame, FaultSchedule::ONCE.after(9).with_amount(200_000));
    let mut options = options();
    options.socket.max_message_bytes = 150_000;
    let mut received = Received::default();
    let mut feed = feed(&sim, &[(RELAY, None)], options);
    received.until(&mut feed, |received| received.arrivals.len() == 40).await;
    assert_complete(&sim, &received);
    let reason = SocketError::TooLarge(150_000);
    let ended = Notice::Disconnected { host: HostId(0), reason };
    assert_eq!(received.count(|notice| *notice == ended), 1);
}

#[tokio::test]
async fn an_error_is_reported_and_the_next_connection_resumes() {
    let sim = sim_with(Fault::ErrorFrame, FaultSchedule::ONCE.after(9));
    let received = follow_to_the_end(&sim).await;
    assert_complete(&sim, &received);
    assert_eq!(received.arrivals[10].kind, FrameKind::Error);
    let slow = received.count(|notice| matches!(notice, Notice::ConsumerTooSlow { .. }));
    assert_eq!(slow, 1);
    assert_eq!(received.cursors(), [Some(0), received.arrivals[9].seq]);
}

#[tokio::test]
async fn a_close_is_reported_and_the_next_connection_resumes() {
    let sim = sim_with(Fault::Close, FaultSchedule::ONCE.after(9));
    let received = follow_to_the_end(&sim).await;
    assert_complete(&sim, &received);
    let is_close = |notice: &Notice| {
        matches!(notice, Notice::Disconnected { reason: SocketError::Closed { .. }, .. })
    };
    assert_eq!(received.count(is_close), 1);
}

/// Follows the relay from the event of this place on, to the end.
async fn resume(behavior: CursorPolicy, place: usize) -> (Simulation, Received) {
    let sim = sim(|spec| spec.relay_cursor_policy = behavior);
    let cursor = sent(&sim, RELAY)[place];
    let mut received = Received::default();
    let last = sim.last_seq(RELAY) as u64;
    let mut feed = feed(&sim, &[(RELAY, Some(cursor))], options());
    received.until(&mut feed, |received| received.seqs().contains(&last)).await;
    (sim, received)
}

#[tokio::test]
async fn inclusive_and_exclusive_servers_give_what_is_behind_the_cursor() {
    for behavior in
        [CursorPolicy::SPECIFIED, CursorPolicy::REFERENCE_PDS, CursorPolicy::DEPLOYED_RELAY]
    {
        let (sim, received) = resume(behavior, 11).await;
        assert_eq!(received.seqs(), sent(&sim, RELAY)[12..], "{behavior:?}");
        let repeated = received.count(|notice| matches!(notice, Notice::Repeated { .. }));
        assert_eq!(repeated, usize::from(behavior.inclusive));
    }
}

#[tokio::test]
async fn a_cursor_ahead_of_the_stream_is_dropped_and_the_stream_is_restarted() {
    for (begin, expected) in [(StartFrom::Oldest, 40), (StartFrom::Live, 1)] {
        let sim = sim(|_| ());
        let ahead = sim.last_seq(RELAY) as u64 + 1_000_000;
        let mut options = options();
        options.start_after_reset = Some(begin);
        let (mut received, mut feed) =
            (Received::default(), feed(&sim, &[(RELAY, Some(ahead))], options));
        received.until(&mut feed, |received| received.cursors().len() == 2).await;
        if begin == StartFrom::Live {
            sim.write_commits(1);
        }
        received.until(&mut feed, |received| received.seqs().len() == expected).await;
        assert_eq!(
            received.seqs(),
            sent(&sim, RELAY)[40 * usize::from(begin == StartFrom::Live)..]
        );
        let is_void = |notice: &Notice| matches!(notice, Notice::FutureCursor { cursor: Some(cursor), .. } if *cursor == ahead);
        assert_eq!(received.count(is_void), 1);
        assert_eq!(received.arrivals[0].kind, FrameKind::Error);
    }
}

#[tokio::test]
async fn a_cursor_ahead_of_the_stream_is_an_error_if_configured() {
    let sim = sim(|_| ());
    let ahead = sim.last_seq(RELAY) as u64 + 1;
    let mut options = options();
    options.start_after_reset = None;
    let mut received = Received::default();
    received.until(&mut feed(&sim, &[(RELAY, Some(ahead))], options), |_| false).await;
    let failure = FeedError::FutureCursor { host: "localhost".to_owned(), cursor: ahead };
    assert_eq!(received.failure, Some(failure));
}

#[tokio::test]
async fn a_server_that_resets_its_sequence_without_notice_is_read_from_its_oldest_event() {
    let sim = sim(|spec| spec.relay_cursor_policy = CursorPolicy::DEPLOYED_RELAY);
    let ahead = sim.last_seq(RELAY) as u64 + 1_000_000;
    let (mut received, mut feed) =
        (Received::default(), feed(&sim, &[(RELAY, Some(ahead))], options()));
    received.until(&mut feed, |received| received.cursors().len() == 1).await;
    sim.write_commits(5);
    received.until(&mut feed, |received| received.seqs().len() == 45).await;
    assert_eq!(received.seqs(), sent(&sim, RELAY));
    let is_reset =
        |notice: &Notice| matches!(notice, Notice::SequenceReset { after, .. } if *after == ahead);
    assert_eq!(received.count(is_reset), 1);
    assert_eq!(received.cursors(), [Some(ahead), Some(0)]);
}

#[tokio::test]
async fn an_outdated_cursor_is_reported_with_the_gap() {
    let sim = sim(|spec| (spec.retained_events, spec.initial_commits) = (10, 0));
    sim.write_commits(40);
    let sent = sent(&sim, RELAY);
    let (cursor, kept) = (sent[5], &sent[sent.len() - 10..]);
    let mut received = Received::default();
    let mut feed = feed(&sim, &[(RELAY, Some(cursor))], options());
    received.until(&mut feed, |received| received.seqs().len() == 10).await;
    assert_eq!(received.seqs(), kept);
    assert_eq!(received.arrivals[0].kind, FrameKind::Info);
    let is_outdated = |notice: &Notice| matches!(notice, Notice::OutdatedCursor { cursor: Some(given), .. } if *given == cursor);
    assert_eq!(received.count(is_outdated), 1);
    let gap = Notice::Gap { host: HostId(0), after: cursor, seq: kept[0] };
    assert_eq!(received.count(|notice| *notice == gap), 1);
}

fn is_lost(notice: &Notice) -> bool {
    matches!(notice, Notice::Disconnected { .. })
}

#[tokio::test]
async fn every_host_has_a_cursor_of_its_own() {
    let sim = sim(|spec| spec.relays = 2);
    let mut received = Received::default();
    let mut feed = feed(&sim, &[(RELAY, None), (OTHER, None)], options());
    let (first, mut expected) = (sent(&sim, RELAY).len(), sent(&sim, RELAY));
    received.until(&mut feed, |received| received.arrivals.len() == expected.len()).await;
    // The first host fails: later events come from the other one, starting with its oldest.
    sim.stop_server(RELAY);
    received.until(&mut feed, |received| received.count(is_lost) == 1).await;
    sim.write_commits(10);
    expected.extend(sent(&sim, OTHER));
    received.until(&mut feed, |received| received.arrivals.len() == expected.len()).await;
    sim.start_server(RELAY).unwrap();
    sim.stop_server(OTHER);
    received.until(&mut feed, |received| received.count(is_lost) == 2).await;
    sim.write_commits(10);
    expected.extend(&sent(&sim, RELAY)[first..]);
    received.until(&mut feed, |received| received.arrivals.len() == expected.len()).await;
    assert_eq!(received.seqs(), expected);
    assert_eq!(received.cursors(), [Some(0), Some(0), Some(expected[first - 1])]);
    let from_other = received.arrivals.iter().filter(|arrival| arrival.host == HostId(1));
    assert_eq!(from_other.count(), sent(&sim, OTHER).len() - 10);
    // A connection that brought something is no failed attempt; three refusals follow.
    assert_eq!(received.count(|notice| matches!(notice, Notice::ConnectFailed { .. })), 6);
}

#[tokio::test]
async fn a_host_that_sends_only_what_was_received_is_left_for_the_next() {
    let sim = sim(|spec| {
        (spec.relays, spec.relay_cursor_policy) = (2, CursorPolicy::SPECIFIED);
    });
    sim.faults().enable(RELAY, Fault::Close, FaultSchedule::ALWAYS);
    let cursor = sent(&sim, RELAY).last().copied();
    let mut received = Received::default();
    let mut feed = feed(&sim, &[(RELAY, cursor), (OTHER, None)], options());
    received.until(&mut feed, |received| received.cursors().len() == 4).await;
    assert_eq!(received.cursors(), [cursor, cursor, cursor, Some(0)]);
    assert_eq!(received.count(|notice| matches!(notice, Notice::Repeated { .. })), 3);
}

#[tokio::test]
async fn waits_grow_and_a_busy_host_is_given_its_time() {
    let sim = sim_with(Fault::UpgradeTooMany, FaultSchedule::times(2).with_amount(1));
    let received = follow_to_the_end(&sim).await;
    let wait = |notice: &Notice| match notice {
        Notice::RetryScheduled { time, .. } => Some(*time),
        _ => None,
    };
    let waits: Vec<Duration> = received.notices.iter().filter_map(wait).collect();
    // The server requested one second, which this backoff limits.
    assert_eq!(waits, [BACKOFF.max_requested; 2]);
    assert_eq!(sim.faults().unfired(), []);
}

#[tokio::test]
async fn a_reader_who_pauses_makes_the_server_wait_and_misses_nothing() {
    let sim = sim(|spec| spec.initial_commits = 3_000);
    let (mut received, mut feed) = (Received::default(), feed(&sim, &[(RELAY, None)], options()));
    received.until(&mut feed, |received| !received.arrivals.is_empty()).await;
    tokio::time::sleep(3 * options().socket.idle_timeout).await;
    let waiting = sim.backlogs(RELAY)[0];
    assert!(waiting > 100, "{waiting}");
    let last = sim.last_seq(RELAY) as u64;
    received.until(&mut feed, |received| received.arrivals.last().unwrap().seq == Some(last)).await;
    assert_eq!((received.seqs(), received.cursors().len()), (sent(&sim, RELAY), 1));
}
