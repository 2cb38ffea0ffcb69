//! Desynchronized accounts, until they are synchronized again.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use atproto::syntax::Tid;
use tokio::time::Instant;
use verify::sync::{AccountKey, AccountState, Head, MemoryState, SyncState};

use super::super::jobs::Job;
use super::super::queue::{Inbox, LookedUpKey, ReadAhead, WaitTimeout, WorkerMessage};
use super::super::*;
use super::support::*;
use super::test_worker::{MAX_PARKED, TestWorker};
use crate::dns::LoopbackDns;
use crate::identity;

#[test]
fn events_after_a_gap_await_the_repository_and_continue_from_there() {
    let (mut writer, mut other) = (Writer::new(0), Writer::new(1));
    let mut worker = TestWorker::new(&[&writer, &other]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    assert_eq!(worker.jobs(), [(writer.did.clone(), writer.rev())]);
    assert_eq!(worker.journaled(&writer), Some(SyncState::Desynchronized));
    worker.receive([writer.commit(3), other.commit(4), writer.commit(5)]);
    assert_eq!((worker.recorder.of(&writer).len(), worker.recorder.of(&other).len()), (2, 1));
    assert_eq!(worker.cursor(), Some(2));
    let fetched = writer.head();
    worker.receive([writer.commit(6)]);
    worker.resynced(&writer, Some(fetched));
    let expected = [
        (1, "verified"),
        (2, "verified/broken"),
        (RESYNCED, "resynced"),
        (3, "event/stale-rev"),
        (5, "event/stale-rev"),
        (6, "verified"),
    ];
    assert_eq!(worker.recorder.of(&writer), expected);
    assert_eq!((worker.cursor(), worker.jobs()), (Some(6), vec![]));
    assert_eq!(worker.journaled(&writer), Some(SyncState::Synchronized));
    let verdicts = worker.partition.dispatcher.metrics.snapshot().verdicts;
    let counts = [("event/stale-rev", 2), ("verified", 3), ("verified/broken", 1)];
    assert_eq!(verdicts, BTreeMap::from(counts), "`other` has one");
}

#[test]
fn events_of_the_same_batch_as_a_gap_await_the_repository_too() {
    let (mut writer, mut other) = (Writer::new(0), Writer::new(1));
    let mut worker = TestWorker::new(&[&writer, &other]);
    let before = [writer.commit(1), writer.skip().commit(2)];
    let rev_of_gap = writer.rev();
    let covered = writer.commit(4);
    let fetched = writer.head();
    let after = [other.commit(3), covered, writer.commit(5), writer.commit(6)];
    worker.receive(before.into_iter().chain(after));
    assert_eq!(worker.recorder.of(&writer), [(1, "verified"), (2, "verified/broken")]);
    assert_eq!(worker.recorder.of(&other), [(3, "verified")]);
    assert_eq!(worker.jobs(), [(writer.did.clone(), rev_of_gap)]);
    assert_eq!(worker.cursor(), Some(3));
    worker.resynced(&writer, Some(fetched));
    let expected = [(4, "event/stale-rev"), (5, "verified"), (6, "verified")];
    assert_eq!(worker.recorder.of(&writer)[2], (RESYNCED, "resynced"));
    assert_eq!(worker.recorder.of(&writer)[3..], expected);
    assert_eq!((worker.cursor(), worker.jobs()), (Some(6), vec![]));
    assert_eq!(worker.journaled(&writer), Some(SyncState::Synchronized));
}

#[test]
fn events_of_a_batch_wait_for_one_resync_and_are_lost_by_none_that_fails() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.resynced(&writer, None);
    assert_eq!(worker.jobs().len(), 1);
    // The account is still desynchronized: its next event starts another resync, for which the others wait.
    worker.receive([writer.commit(3), writer.commit(4), writer.skip().commit(5)]);
    assert_eq!(worker.recorder.of(&writer)[2..], [(3, "verified/unmended")]);
    worker.resynced(&writer, None);
    let rest = [(4, "verified/unmended"), (5, "verified/broken")];
    assert_eq!(worker.recorder.of(&writer)[3..], rest, "an event waits once");
    assert_eq!(worker.jobs().len(), 2, "and starts another resync");
    worker.resynced(&writer, Some(writer.head()));
    worker.receive([writer.commit(6)]);
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(6, "verified")));
}

#[test]
fn a_batch_after_a_gap_that_exceeds_the_limits_is_delivered_at_once() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    let first = [writer.commit(1), writer.skip().commit(2)];
    let more: Vec<_> = (3..=3 + MAX_PARKED as u64).map(|seq| writer.commit(seq)).collect();
    worker.receive(first.into_iter().chain(more));
    let unmended: Vec<_> =
        (3..=3 + MAX_PARKED as u64).map(|seq| (seq, "verified/unmended")).collect();
    assert_eq!(worker.recorder.of(&writer)[2..], unmended);
    assert_eq!(worker.jobs().len(), 1);
}

#[test]
fn events_await_a_resync_that_is_repeated() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.receive([writer.commit(3)]);
    let account = worker.hasher.hash(Some(&writer.did));
    let delayed =
        WorkerMessage::ResyncDelayed(account, ResyncError::NoHost, Duration::from_secs(60));
    worker.partition.handle(delayed).unwrap();
    worker.receive([writer.commit(4)]);
    assert_eq!(worker.recorder.of(&writer).len(), 2, "neither is delivered");
    worker.partition.release_overdue(Instant::now() + Duration::from_secs(61)).unwrap();
    worker.process();
    worker.receive([writer.commit(5)]);
    let unmended = [3, 4, 5].map(|seq| (seq, "verified/unmended"));
    assert_eq!(worker.recorder.of(&writer)[2..], unmended, "after the limit");
    assert_eq!(worker.jobs().len(), 1, "the resync goes on");
    worker.resynced(&writer, Some(writer.head()));
    worker.receive([writer.commit(6)]);
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(6, "verified")));
}

#[test]
fn an_account_whose_revisions_go_back_is_reported_once_until_one_is_later() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    let reported = |worker: &TestWorker| worker.recorder.going_back.lock().unwrap().len();
    for round in 1..=2 {
        let seq = round * 10;
        writer.skip_to(SystemTime::now() - Duration::from_secs(100 - round));
        worker.receive([writer.commit(seq)]);
        worker.resynced(&writer, Some(writer.head()));
        writer.skip_to(UNIX_EPOCH + Duration::from_secs(round));
        worker.receive((1..4).map(|more| writer.commit(seq + more)).collect::<Vec<_>>());
        let codes = worker.recorder.of(&writer).into_iter().rev().take(3).map(|(_, code)| code);
        assert!(codes.into_iter().all(|code| code == "event/stale-rev"));
        assert_eq!(reported(&worker), round as usize);
    }
    assert_eq!(worker.recorder.going_back.lock().unwrap()[0], writer.did);
}

#[test]
fn events_do_not_await_a_server_whose_repository_is_older_than_what_is_known() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.receive([writer.commit(3)]);
    assert_eq!(worker.recorder.of(&writer).len(), 2);
    let account = worker.hasher.hash(Some(&writer.did));
    let (rev, known) = (Tid::new(1, 0), writer.rev().unwrap());
    let host = "pds.test".into();
    let error = ResyncError::Outdated { host, rev, known };
    let delayed = WorkerMessage::ResyncDelayed(account, error, Duration::from_secs(60));
    worker.partition.handle(delayed).unwrap();
    worker.process();
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(3, "verified/unmended")));
    worker.receive([writer.commit(4)]);
    assert_eq!(worker.recorder.of(&writer).len(), 4, "nor do later ones");
    assert_eq!(worker.recorder.going_back.lock().unwrap().len(), 1);
    assert_eq!(worker.jobs().len(), 1, "the resync goes on");
    worker.resynced(&writer, Some(writer.head()));
    assert_eq!(worker.journaled(&writer), Some(SyncState::Synchronized));
}

#[test]
fn the_next_event_of_an_announced_account_waits_for_its_repository() {
    let (mut writer, mut other) = (Writer::new(0), Writer::new(1));
    let mut worker = TestWorker::new(&[&writer, &other]);
    let requests = ResyncRequests::default();
    requests.announce(&writer.did);
    let read_ahead = Arc::new(ReadAhead::new(&FlowLimits::default(), 1));
    let inboxes: Arc<[Inbox]> = Arc::new([Inbox::new(read_ahead)]);
    requests.attach(inboxes.clone(), worker.hasher.clone());
    requests.announce(&other.did);
    requests.request(&other.did);
    let mut messages = Vec::new();
    inboxes[0].receive(&mut VecDeque::new(), &mut messages, 10, WaitTimeout::Zero);
    assert_eq!(messages.len(), 3);
    messages.into_iter().for_each(|message| worker.partition.handle(message).unwrap());
    assert_eq!(worker.jobs(), [(other.did.clone(), None)]);
    worker.receive([writer.commit(1), other.commit(2)]);
    assert_eq!((worker.recorder.of(&writer).len(), worker.recorder.of(&other).len()), (0, 0));
    assert_eq!(worker.jobs(), [(writer.did.clone(), None)]);
    let fetched = writer.head();
    worker.receive([writer.commit(3)]);
    worker.resynced(&writer, Some(fetched));
    let expected = [(RESYNCED, "resynced"), (1, "event/stale-rev"), (3, "verified")];
    assert_eq!(worker.recorder.of(&writer), expected);
}

#[test]
fn an_event_whose_key_is_unavailable_desynchronizes_its_account_before_the_next_event_of_the_batch()
{
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    let mut forger = Writer::new(0);
    forger.rotate();
    let unavailable = LookedUpKey { key: Err(KeyError::TooManyEvents), is_final: true };
    let forged = (forger.commit(1), Some(Arc::new(unavailable)));
    worker.receive_looked_up([forged, (writer.commit(2), None)]);
    assert_eq!(worker.recorder.of(&writer), [(1, "signature/no-key"), (2, "verified/unmended")]);
    assert_eq!(worker.jobs(), [(writer.did.clone(), writer.rev())]);
}

#[test]
fn an_event_that_breaks_another_rule_is_refused_for_it_although_its_key_is_unavailable() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    let mut without_time = writer.commit(1);
    let unavailable = LookedUpKey { key: Err(KeyError::TooManyEvents), is_final: true };
    let at = without_time.windows(5).position(|bytes| bytes == b"2026-").unwrap();
    without_time[at] = b'x';
    worker.receive_looked_up([(without_time, Some(Arc::new(unavailable)))]);
    assert_eq!(worker.recorder.of(&writer), [(1, "event/time")]);
    assert_eq!(worker.jobs(), []);
}

#[test]
fn an_account_seen_first_is_resynced_if_that_is_asked_for() {
    for on_first_seen in [false, true] {
        let mut writers = [Writer::new(0), Writer::new(1)];
        let resync = ResyncOptions { on_first_seen, ..resync_options() };
        let options = Options { resync: Some(resync), ..options(keys(&writers)) };
        let mut worker = TestWorker::with_options(options, MemoryState::new([7; 16]));
        worker.receive([writers[0].commit(1), writers[1].sync(2)]);
        let resynced = writers.iter().map(|writer| (writer.did.clone(), writer.rev()));
        assert_eq!(worker.jobs(), resynced.filter(|_| on_first_seen).collect::<Vec<_>>());
    }
}

#[test]
fn a_first_commit_is_unproved_if_operations_are_not_proved() {
    for (accept_unproved_operations, code) in [(false, "verified"), (true, "verified/unproved")] {
        let mut writer = Writer::new(0);
        let mut options = options(keys([&writer]));
        let Verification::On { policy, .. } = &mut options.verify else { unreachable!() };
        policy.accept_unproved_operations = accept_unproved_operations;
        let mut worker = TestWorker::with_options(options, MemoryState::new([7; 16]));
        worker.receive([writer.commit(1)]);
        assert_eq!(worker.recorder.of(&writer), [(1, code)]);
    }
}

#[test]
fn events_that_waited_do_not_wait_for_a_second_repository_and_a_third() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.receive([writer.commit(3), writer.commit(4), writer.commit(5)]);
    worker.partition.release_overdue(Instant::now() + Duration::from_secs(3_600)).unwrap();
    let account = worker.hasher.hash(Some(&writer.did));
    let fail = |worker: &mut TestWorker| {
        let failed = WorkerMessage::Resynced(account, Err(ResyncError::NoHost));
        worker.partition.handle(failed).unwrap();
    };
    fail(&mut worker);
    // The first of them starts the second resync, for which the others are parked.
    worker.partition.config.max_batch = 1;
    worker.process();
    assert_eq!(worker.recorder.of(&writer)[2..], [(3, "verified/unmended")]);
    assert_eq!(worker.jobs().len(), 2);
    fail(&mut worker);
    // The next starts the third, together with which the last is delivered.
    worker.partition.config.max_batch = 10;
    worker.process();
    let rest = [(4, "verified/unmended"), (5, "verified/unmended")];
    assert_eq!(worker.recorder.of(&writer)[3..], rest);
    assert_eq!(worker.jobs().len(), 1);
}

#[test]
fn a_key_that_was_looked_up_does_not_replace_a_cached_one_that_is_newer() {
    let mut writer = Writer::new(0);
    let replaced = LookedUpKey { key: Ok(AccountKey::Known(writer.key())), is_final: false };
    let by_old_key = writer.commit(1);
    writer.rotate();
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive_looked_up([(by_old_key, Some(Arc::new(replaced)))]);
    assert_eq!(worker.recorder.of(&writer), []);
    let Ok(Job::LookUpKey { refresh: true, .. }) = worker.jobs.try_recv() else {
        panic!("the cached key may be stale")
    };
}

#[test]
fn a_sync_to_another_tree_starts_a_resync_for_which_the_next_event_waits() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.sync(2)]);
    assert_eq!(worker.jobs(), [], "the tree is the same");
    writer.change_tree();
    let sync = writer.sync(3);
    let rev = writer.rev();
    worker.receive([sync, writer.sync(4)]);
    assert_eq!(worker.jobs(), [(writer.did.clone(), rev)]);
    assert_eq!(worker.recorder.of(&writer).len(), 3, "the next event waits");
    worker.resynced(&writer, None);
    assert_eq!(worker.recorder.of(&writer)[3..], [(4, "verified")]);
    assert_eq!(worker.journaled(&writer), Some(SyncState::Desynchronized));
}

#[test]
fn an_account_without_a_repository_continues_desynchronized() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.receive([writer.commit(3)]);
    assert_eq!(worker.jobs().len(), 1);
    worker.resynced(&writer, None);
    let expected = [(1, "verified"), (2, "verified/broken"), (3, "verified/unmended")];
    assert_eq!(worker.recorder.of(&writer), expected);
    assert_eq!(worker.jobs(), [(writer.did.clone(), writer.rev())], "another attempt");
}

#[test]
fn events_beyond_the_limit_are_released_and_the_repository_must_reach_them() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    let fetched = writer.head();
    worker.receive((3..).take(MAX_PARKED + 1).map(|seq| writer.commit(seq)).collect::<Vec<_>>());
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(7, "verified/unmended")));
    assert_eq!((worker.jobs().len(), worker.cursor()), (1, Some(7)));
    worker.resynced(&writer, Some(fetched));
    assert_eq!(worker.jobs(), [(writer.did.clone(), writer.rev())], "it is too old");
    worker.resynced(&writer, Some(writer.head()));
    worker.receive([writer.commit(8)]);
    assert_eq!(worker.recorder.of(&writer)[7..], [(RESYNCED, "resynced"), (8, "verified")]);
}

#[test]
fn added_collections_are_fetched_again_without_the_known_commit_if_events_passed_meanwhile() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1)]);
    let head = writer.head();
    let syncs = |worker: &mut TestWorker| -> Vec<SyncState> {
        worker.known_states().into_iter().map(|(_, known)| known.sync).collect()
    };
    worker.request(&writer);
    assert_eq!(syncs(&mut worker), [SyncState::Synchronized], "the known commit has all events");
    worker.resynced_added(&writer, head);
    assert_eq!(worker.recorder.of(&writer)[1..], [(RESYNCED, "resynced")]);

    worker.request(&writer);
    worker.partition.release_overdue(Instant::now() + Duration::from_secs(3_600)).unwrap();
    worker.resynced_added(&writer, head);
    assert_eq!(syncs(&mut worker), [SyncState::Synchronized, SyncState::Desynchronized]);
    assert_eq!(worker.recorder.of(&writer).len(), 2, "it is not delivered");
    worker.resynced(&writer, Some(head));
    assert_eq!(worker.recorder.of(&writer)[2..], [(RESYNCED, "resynced")]);
    assert_eq!(worker.journaled(&writer), Some(SyncState::Synchronized));
}

#[test]
fn overdue_events_are_released() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.receive([writer.commit(3)]);
    let long = Instant::now() + worker.partition.config.max_hold;
    worker.partition.release_overdue(long);
    worker.process();
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(3, "verified/unmended")));
    assert_eq!(worker.jobs().len(), 1, "the resync is still running");
}

#[test]
fn a_draining_worker_awaits_no_repository() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.receive([writer.commit(3)]);
    worker.jobs();
    worker.partition.start_draining();
    worker.process();
    assert_eq!(worker.recorder.of(&writer).last(), Some(&(3, "verified/unmended")));
    assert_eq!((worker.jobs(), worker.cursor()), (vec![], Some(3)));
    assert_eq!(worker.journaled(&writer), Some(SyncState::Desynchronized));
}

#[test]
fn an_account_desynchronized_before_the_run_is_resynced_at_the_start() {
    let writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    let account = worker.hasher.hash(Some(&writer.did));
    worker
        .partition
        .handle(WorkerMessage::Desynchronized(account, writer.did.as_str().into()))
        .unwrap();
    assert_eq!(worker.jobs(), [(writer.did.clone(), None)]);
}

#[test]
fn only_the_selected_accounts_are_resynced_and_the_others_are_not_parked() {
    let (mut selected, mut other) = (Writer::new(0), Writer::new(1));
    let mut worker = TestWorker::new(&[&selected, &other]);
    worker.partition.resync_accounts = Some(HashSet::from([selected.did.clone()]).into());
    for (writer, seq) in [(&mut selected, 1), (&mut other, 3)] {
        worker.receive([writer.commit(seq), writer.skip().commit(seq + 1)]);
    }
    assert_eq!(worker.jobs(), [(selected.did.clone(), selected.rev())]);
    worker.receive([selected.commit(5), other.commit(6)]);
    assert_eq!(worker.recorder.of(&selected).len(), 2, "parked");
    assert_eq!(worker.recorder.of(&other).last(), Some(&(6, "verified/unmended")));
    assert_eq!(worker.jobs(), []);
}

#[test]
fn an_account_found_desynchronized_is_resynced_at_its_next_event() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.partition.config.resyncs = false;
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    assert_eq!(worker.jobs(), []);
    worker.partition.config.resyncs = true;
    worker.receive([writer.commit(3)]);
    assert_eq!(worker.jobs(), [(writer.did.clone(), writer.rev())]);
}

/// The same head, with a revision that is a year ahead of the clock.
fn in_the_future(head: Head) -> Head {
    let year = Duration::from_secs(365 * 24 * 3600);
    let micros = (SystemTime::now() + year).duration_since(UNIX_EPOCH).unwrap().as_micros();
    Head { rev: Tid::new(micros as u64, 0), ..head }
}

#[test]
fn a_repository_ahead_of_the_clock_is_refused_and_does_not_mute_its_account() {
    let mut writer = Writer::new(0);
    let mut worker = TestWorker::new(&[&writer]);
    worker.receive([writer.commit(1), writer.skip().commit(2)]);
    worker.jobs();
    worker.resynced(&writer, Some(in_the_future(writer.head())));
    worker.receive([writer.commit(3)]);
    let expected = [(1, "verified"), (2, "verified/broken"), (3, "verified/unmended")];
    assert_eq!(worker.recorder.of(&writer), expected);
    assert_eq!(worker.jobs(), [(writer.did.clone(), writer.rev())], "another attempt");
}

#[test]
fn a_stored_head_ahead_of_the_clock_is_void_and_its_account_is_resynced() {
    let mut writer = Writer::new(0);
    let (first, mut state) = (writer.commit(1), MemoryState::new([7; 16]));
    let head = Some(in_the_future(writer.head()));
    state.put(&writer.did, AccountState { head, ..AccountState::UNKNOWN });
    let mut worker = TestWorker::with_state(&[&writer], state);
    worker.receive([first]);
    assert_eq!(worker.jobs(), [(writer.did.clone(), writer.rev())]);
    worker.resynced(&writer, Some(writer.head()));
    worker.receive([writer.commit(2)]);
    let expected = [(1, "verified/unmended"), (RESYNCED, "resynced"), (2, "verified")];
    assert_eq!(worker.recorder.of(&writer), expected);
}

/// Runs three commits of an account, which awaits its repository from the second one on, until `stop_after` events.
async fn run_without_repository(stop_after: usize, max_hold: Duration) -> Vec<(u64, &'static str)> {
    // Accepts connections, and never answers.
    let directory = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}", directory.local_addr().unwrap().port());
    let identity = identity::Options { directory: url.parse().unwrap(), ..Default::default() };
    let resolver = identity::Resolver::new(http_client(), Arc::new(LoopbackDns), identity);
    let mut writer = Writer::new(0);
    let options = Options {
        resync: Some(ResyncOptions { resolver, ..resync_options() }),
        limits: FlowLimits { max_batch: 2, max_hold, ..FlowLimits::default() },
        stop_timeout: Duration::MAX,
        ..options(keys([&writer]))
    };
    let frames = [writer.commit(1), writer.skip().commit(2), writer.commit(3), writer.commit(4)];
    let (recorder, journal) = (Recorder::new(stop_after, AckMode::Immediate), Arc::default());
    let script = Script::new(frames);
    let ended = run(options, script, &recorder, &journal).await.unwrap();
    assert_eq!(ended.unacknowledged, 0);
    recorder.of(&writer)
}

#[tokio::test]
async fn events_that_await_a_repository_are_delivered_when_they_are_overdue_or_the_run_is_stopped()
{
    let unmended = [3, 4].map(|seq| (seq, "verified/unmended"));
    let events = [&[(1, "verified"), (2, "verified/broken")][..], &unmended].concat();
    assert_eq!(run_without_repository(2, Duration::MAX).await, events);
    assert_eq!(run_without_repository(4, Duration::from_millis(300)).await, events);
}

#[test]
fn the_result_of_a_lookup_that_was_given_up_is_not_used_for_the_next_one() {
    let mut writer = Writer::at_host(0);
    let mut worker = TestWorker::new(&[]);
    let frames: Vec<_> = (1..=2 + MAX_PARKED as u64).map(|seq| writer.commit(seq)).collect();
    worker.receive(frames);
    let given_up = worker.recorder.events().len();
    worker.receive([writer.commit(20)]);
    let lookups = [(); 2].map(|()| worker.jobs.try_recv());
    let [Ok(Job::LookUpKey { account, lookup: first, .. }), Ok(Job::LookUpKey { .. })] = lookups
    else {
        panic!("{lookups:?}")
    };
    let key = Arc::new(LookedUpKey { key: Ok(AccountKey::Known(writer.key())), is_final: false });
    let found = WorkerMessage::KeyLookedUp { account, lookup: first.number, key };
    worker.partition.handle(found).unwrap();
    worker.process();
    assert_eq!(worker.recorder.events().len(), given_up);
}
