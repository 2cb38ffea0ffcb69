//! Events and acknowledgements survive restarts, bounds hold, and unusable files are refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};

use proptest::prelude::*;
use store::StoreFault;
use tempfile::TempDir;

use super::*;
use crate::consumer::Consumer;
use crate::database::FORMAT;
use crate::event::{Event, EventId};

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("folder").join("outbox.sqlite")
}

fn open(dir: &TempDir) -> Outbox {
    Outbox::open(&file(dir), Options::default()).unwrap()
}

/// An event of one of 7 accounts.
fn event(number: u64) -> NewEvent {
    let did = format!("did:web:{}.test", number % 7);
    let id = EventId::of_commit(&did, &number.to_string());
    NewEvent::new(id, &did, format!("{{\"number\":{number}}}")).unwrap()
}

fn events(numbers: std::ops::Range<u64>) -> impl Iterator<Item = NewEvent> {
    numbers.map(event)
}

/// The numbers of the next events of a consumer.
fn next(consumer: &mut Consumer) -> Vec<(u64, u64)> {
    let numbered = |event: &Event| {
        let text = str::from_utf8(event.payload()).unwrap();
        let number = text.strip_prefix("{\"number\":").unwrap().strip_suffix('}').unwrap();
        let number = number.parse().unwrap();
        assert_eq!(event.id(), self::event(number).id().as_str());
        (event.position(), number)
    };
    block_on(consumer.next_events()).unwrap().iter().map(numbered).collect()
}

/// All events of a consumer that are stored now and may be delivered.
fn drain(consumer: &mut Consumer) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    while let Some(received) = next_now(consumer) {
        all.extend(received);
    }
    all
}

/// The next events, if there are any.
fn next_now(consumer: &mut Consumer) -> Option<Vec<(u64, u64)>> {
    consumer.has_next().then(|| next(consumer)).filter(|events| !events.is_empty())
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn fault<T>(result: Result<T, OutboxError>) -> OutboxFault {
    result.err().expect("an error").fault
}

#[test]
fn what_is_not_acknowledged_is_delivered_again_after_a_restart_at_the_same_positions() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox.append_all(events(0..10)).unwrap();
    let mut consumer = outbox.consumer("a").unwrap();
    let received = drain(&mut consumer);
    assert_eq!(received, (0..10).map(|number| (number + 1, number)).collect::<Vec<_>>());
    // Not the last: a read of its batch alone would wait for another event.
    consumer.acknowledge([1, 2, 5, 9]).unwrap();
    assert_eq!((consumer.cursor(), outbox.status().consumers[0].behind), (2, 6));
    let identity = outbox.identity();
    drop((consumer, outbox));

    let outbox = open(&dir);
    assert_eq!(outbox.identity(), identity);
    let mut consumer = outbox.consumer("a").unwrap();
    let expected = [3, 4, 6, 7, 8, 10].map(|position| (position, position - 1));
    assert_eq!(drain(&mut consumer), expected);
    outbox.append_all(events(10..12)).unwrap();
    assert_eq!(drain(&mut consumer), [(11, 10), (12, 11)], "positions rise");
}

#[test]
fn each_consumer_has_its_own_cursor_and_the_slowest_holds_the_events() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    (0..4).for_each(|at| outbox.append_all(events(at * 10..at * 10 + 10)).unwrap());
    outbox.register("b", StartAt::Oldest).unwrap();
    outbox.register("c", StartAt::Next).unwrap();
    let [mut a, mut b, mut c] = ["a", "b", "c"].map(|name| outbox.consumer(name).unwrap());
    assert_eq!((drain(&mut a).len(), drain(&mut b).len(), drain(&mut c).len()), (40, 40, 0));
    a.acknowledge(1..=40).unwrap();
    outbox.flush().unwrap();
    assert_eq!(outbox.status().events, 40, "b has acknowledged none");
    b.acknowledge(1..=15).unwrap();
    outbox.flush().unwrap();
    let events = outbox.status().events;
    assert!((25..=35).contains(&events), "whole batches are deleted: {events}");
    drop(b);
    outbox.remove("b").unwrap();
    assert_eq!((outbox.status().events, outbox.status().bytes), (0, 0), "its space is free");
    assert_eq!(fault(outbox.consumer("b")), OutboxFault::UnknownConsumer("b".to_owned()));
}

#[test]
fn events_stay_in_memory_until_the_slowest_consumer_has_acknowledged_them() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    ["a", "b"].into_iter().for_each(|name| outbox.register(name, StartAt::Oldest).unwrap());
    let is_in_memory = |position| outbox.0.shared.recent(position).is_some();
    let append = |at: u64| outbox.append_all(events(at * 10..at * 10 + 10)).unwrap();
    append(0);
    let [mut a, mut b] = ["a", "b"].map(|name| outbox.consumer(name).unwrap());
    assert_eq!((drain(&mut a).len(), drain(&mut b).len()), (10, 10));
    a.acknowledge(1..=10).unwrap();
    outbox.flush().unwrap();
    append(1);
    assert!(is_in_memory(1) && is_in_memory(11), "b needs them");
    b.acknowledge(1..=10).unwrap();
    outbox.flush().unwrap();
    append(2);
    assert!(!is_in_memory(1) && is_in_memory(11) && is_in_memory(21));
}

#[test]
fn the_source_waits_at_each_bound_until_a_consumer_acknowledges() {
    let len = event(0).stored_len() as u64;
    let bounds = [
        (Bound::Events, Options { max_events: 3, ..Options::default() }),
        (Bound::Bytes, Options { max_bytes: len * 3 + 1, ..Options::default() }),
        (Bound::Age, Options { max_age: Duration::from_millis(20), ..Options::default() }),
    ];
    for (bound, options) in bounds {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Outbox::open(&file(&dir), options).unwrap();
        outbox.register("a", StartAt::Oldest).unwrap();
        outbox.append_all(events(0..3)).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let (stored, is_stored) = channel();
        let source = outbox.clone();
        let thread = std::thread::spawn(move || {
            source.append(event(3), move |result| stored.send(result).unwrap());
        });
        let waited = is_stored.recv_timeout(Duration::from_millis(300));
        assert_eq!(waited, Err(RecvTimeoutError::Timeout), "{bound:?}");
        assert_eq!(outbox.status().reached, Some(bound));
        let mut consumer = outbox.consumer("a").unwrap();
        assert_eq!(drain(&mut consumer).len(), 3);
        consumer.acknowledge(1..=3).unwrap();
        assert_eq!(is_stored.recv_timeout(LONG), Ok(Ok(())), "{bound:?}");
        thread.join().unwrap();
        assert_eq!(drain(&mut consumer), [(4, 3)]);
    }
}

#[test]
fn a_source_that_waits_gets_an_error_when_appends_are_stopped_and_consumers_continue() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_events: 1, ..Options::default() };
    let outbox = Outbox::open(&file(&dir), options).unwrap();
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox.append_all(events(0..1)).unwrap();
    let source = outbox.clone();
    let thread = std::thread::spawn(move || source.append_all(events(1..2)));
    std::thread::sleep(Duration::from_millis(50));
    outbox.stop_appends();
    assert_eq!(fault(thread.join().unwrap()), OutboxFault::Closed);
    let mut consumer = outbox.consumer("a").unwrap();
    assert_eq!(drain(&mut consumer).len(), 1);
}

#[test]
fn an_event_larger_than_the_bound_is_stored_alone() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_bytes: 10, ..Options::default() };
    let outbox = Outbox::open(&file(&dir), options).unwrap();
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox.append_all(events(0..1)).unwrap();
    assert_eq!(outbox.status().events, 1);
}

#[test]
fn events_without_a_consumer_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    assert_eq!(fault(outbox.append_all(events(0..1))), OutboxFault::NoConsumer);
    for name in ["", "A", "a b", "../a", &"a".repeat(65)] {
        assert!(matches!(
            fault(outbox.register(name, StartAt::Oldest)),
            OutboxFault::ConsumerName(_)
        ));
    }
}

#[test]
fn a_paused_consumer_receives_nothing_until_it_is_resumed_and_others_continue() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    ["a", "b"].into_iter().for_each(|name| outbox.register(name, StartAt::Oldest).unwrap());
    let [mut a, mut b] = ["a", "b"].map(|name| outbox.consumer(name).unwrap());
    outbox.append_all(events(0..4)).unwrap();
    outbox.set_paused("a", true).unwrap();
    assert_eq!((drain(&mut a).len(), drain(&mut b).len()), (0, 4));
    let is_paused: Vec<bool> = outbox.status().consumers.iter().map(|of| of.is_paused).collect();
    assert_eq!(is_paused, [true, false]);
    let resumed = outbox.clone();
    let received = block_on(async {
        // The wait ends by the resume alone.
        let (received, ()) = tokio::join!(a.next_events(), async {
            resumed.set_paused("a", false).unwrap();
        });
        received.unwrap().len()
    });
    // The events may have been stored as several batches, of which this is the first.
    assert_eq!(received + drain(&mut a).len(), 4);
    let unknown = fault(outbox.set_paused("c", true));
    assert!(matches!(unknown, OutboxFault::UnknownConsumer(_)));
}

#[test]
fn what_is_undelivered_of_an_account_is_counted_for_each_consumer() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    ["a", "b"].into_iter().for_each(|name| outbox.register(name, StartAt::Oldest).unwrap());
    outbox.append_all(events(0..20)).unwrap();
    let mut a = outbox.consumer("a").unwrap();
    drain(&mut a);
    // Events 3, 10 and 17 are of the account, at the positions 4, 11 and 18.
    a.acknowledge([1, 2, 3, 4, 18]).unwrap();
    let of = |account: &str, max_bytes| outbox.undelivered_of(account, max_bytes).unwrap();
    let found = of("did:web:3.test", u64::MAX);
    let counts: Vec<_> =
        found.iter().map(|of| (&*of.consumer, of.events, of.oldest.as_deref())).collect();
    let oldest = |number: u64| Some(format!("did:web:3.test/{number}"));
    assert_eq!(counts, [("a", 1, oldest(10).as_deref()), ("b", 3, oldest(3).as_deref())]);
    assert!(found.iter().all(|of| of.is_complete));
    assert!(of("did:web:other.test", u64::MAX).iter().all(|of| of.events == 0));
    let unread = of("did:web:3.test", 0);
    assert!(unread.iter().all(|of| !of.is_complete && of.events == 0));
}

#[test]
fn a_consumer_is_received_by_one_task_and_not_removed_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    let consumer = outbox.consumer("a").unwrap();
    let in_use = OutboxFault::ConsumerInUse("a".to_owned());
    assert_eq!([fault(outbox.consumer("a")), fault(outbox.remove("a"))], [in_use.clone(), in_use]);
    drop(consumer);
    outbox.consumer("a").unwrap();
}

#[test]
fn an_event_that_was_not_received_cannot_be_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox.append_all(events(0..2)).unwrap();
    let mut consumer = outbox.consumer("a").unwrap();
    assert_eq!(fault(consumer.acknowledge([1])), OutboxFault::NotDelivered(1));
    assert_eq!(drain(&mut consumer).len(), 2);
    assert_eq!(fault(consumer.acknowledge([1, 3])), OutboxFault::NotDelivered(3));
    assert_eq!(consumer.cursor(), 0, "none of them is acknowledged");
}

#[test]
fn a_repeated_event_is_stored_once_also_after_a_restart_and_after_its_deletion() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox.append_all([event(0), event(1), event(0)]).unwrap();
    let mut consumer = outbox.consumer("a").unwrap();
    assert_eq!(drain(&mut consumer), [(1, 0), (2, 1)]);
    consumer.acknowledge([1, 2]).unwrap();
    drop((consumer, outbox));
    let outbox = open(&dir);
    outbox.append_all(events(0..3)).unwrap();
    // The same id with other bytes is another event: dropping it could be a loss.
    let other = NewEvent::new(event(2).id().clone(), "did:web:2.test", "{\"number\":2}  ").unwrap();
    outbox.append_all([other]).unwrap();
    let consumer = outbox.consumer("a").unwrap();
    assert_eq!((outbox.status().events, consumer.cursor()), (2, 2));
}

#[test]
fn a_commit_is_known_again_by_its_operations_whatever_its_host_and_verdict_are() {
    let line = |host: &str, ops: &str, id: &EventId| {
        let head = format!("{{\"host\":\"{host}\",");
        let new = NewEvent::new(id.clone(), "did:web:a.test", format!("{head}\"ops\":[{ops}]}}"));
        new.unwrap().compared_from(head.len())
    };
    let [first, second] = ["3k", "3l"].map(|rev| EventId::of_commit("did:web:a.test", rev));
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox.append_all([line("a", "1", &first), line("b.test", "1", &first)]).unwrap();
    drop(outbox);
    let outbox = open(&dir);
    outbox.append_all([line("c", "1", &first)]).unwrap();
    assert_eq!(outbox.status().events, 1);
    // With another selection it has other operations, which a consumer has not.
    outbox.append_all([line("a", "1,2", &first), line("a", "1", &second)]).unwrap();
    assert_eq!(outbox.status().events, 3);
}

#[test]
fn a_message_is_recognized_by_its_bytes_whatever_its_verdict_is() {
    let line = |code: &str, frame: &[u8]| {
        let id = EventId::of_message("did:web:a.test", "host", 7);
        let new = NewEvent::new(id, "did:web:a.test", format!("{{\"code\":\"{code}\"}}"));
        new.unwrap().compared_by_source(frame)
    };
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox
        .append_all([line("event/stale-rev", b"frame"), line("event/inactive", b"frame")])
        .unwrap();
    drop(outbox);
    let outbox = open(&dir);
    outbox.append_all([line("signature/wrong", b"frame")]).unwrap();
    assert_eq!(outbox.status().events, 1);
    // A host can give one number to two messages.
    outbox.append_all([line("event/stale-rev", b"another")]).unwrap();
    assert_eq!(outbox.status().events, 2);
}

#[test]
fn an_outbox_of_version_3_recognizes_its_events() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox.append_all(events(0..3)).unwrap();
    drop(outbox);
    let other = rusqlite::Connection::open(file(&dir)).unwrap();
    let to_3 = "ALTER TABLE digest DROP COLUMN keys; DROP TABLE selection; PRAGMA user_version = 3";
    other.execute_batch(to_3).unwrap();
    other.close().unwrap();
    let outbox = open(&dir);
    outbox.append_all(events(0..4)).unwrap();
    assert_eq!(outbox.status().events, 4);
    assert_eq!(drain(&mut outbox.consumer("a").unwrap()).len(), 4);
}

#[test]
fn a_receiver_that_knows_its_position_skips_to_it_and_not_beyond_the_outbox() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    outbox.append_all(events(0..5)).unwrap();
    let mut consumer = outbox.consumer("a").unwrap();
    consumer.skip_through(3).unwrap();
    assert_eq!(drain(&mut consumer), [(4, 3), (5, 4)]);
    let ahead = OutboxFault::SinkAhead { stored: 6, last: 5 };
    assert_eq!(fault(consumer.skip_through(6)), ahead);
    let behind = OutboxFault::SinkBehind { stored: 2, cursor: 3 };
    assert_eq!(fault(consumer.skip_through(2)), behind);
}

#[test]
fn delivery_waits_at_the_end_of_the_window_until_the_oldest_event_is_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    let window = crate::window::MAX_AHEAD;
    outbox.append_all(events(0..window + 10)).unwrap();
    let mut consumer = outbox.consumer("a").unwrap();
    assert_eq!(drain(&mut consumer).len() as u64, window);
    consumer.acknowledge(2..=window).unwrap();
    assert!(!consumer.has_next(), "event 1 is not acknowledged");
    consumer.acknowledge([1]).unwrap();
    assert_eq!(drain(&mut consumer).len(), 10);
}

#[test]
fn a_second_process_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    let error = Outbox::open(&file(&dir), Options::default()).unwrap_err();
    assert_eq!(error.fault, OutboxFault::InUse);
    assert!(error.to_string().contains("another process uses this outbox"), "{error}");
    drop(outbox);
    open(&dir);
}

#[test]
fn an_event_counts_from_the_moment_when_it_is_appended() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    let (entered, is_stored) = channel();
    let (release, released) = channel::<()>();
    // The writer is in this function while the second event is appended.
    outbox.append(event(0), move |result| {
        entered.send(result).unwrap();
        released.recv().unwrap();
    });
    is_stored.recv().unwrap().unwrap();
    outbox.append(event(1), |result| result.unwrap());
    let status = outbox.status();
    assert_eq!((status.events, status.next, status.consumers[0].behind), (2, 3, 2));
    assert_eq!(status.bytes, event(0).stored_len() as u64 + event(1).stored_len() as u64);
    release.send(()).unwrap();
    // A repetition counts until it is known to be one.
    outbox.append_all(events(0..2)).unwrap();
    assert_eq!((outbox.status().events, outbox.status().consumers[0].behind), (2, 2));
}

#[test]
fn a_full_disk_is_an_error_of_the_events_and_acknowledgements_make_room() {
    let dir = tempfile::tempdir().unwrap();
    // No transaction without events follows the one that fails, and would clear its error.
    let ack_interval = Duration::from_secs(3_600);
    let options = Options { max_file_bytes: Some(256 << 10), ack_interval, ..Options::default() };
    let outbox = Outbox::open(&file(&dir), options).unwrap();
    outbox.register("a", StartAt::Oldest).unwrap();
    let mut stored = 0;
    let error = loop {
        // One transaction per event, so that none is queued when one fails.
        match outbox.append_all(events(stored..stored + 1)) {
            Ok(()) => stored += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.fault, OutboxFault::File(StoreFault::Full));
    let status = outbox.status();
    assert_eq!((status.events, status.last_error), (stored, Some(error)));
    let mut consumer = outbox.consumer("a").unwrap();
    assert!(stored > 0);
    assert_eq!(drain(&mut consumer).len() as u64, stored, "nothing stored is lost");
    consumer.acknowledge(1..=stored).unwrap();
    outbox.flush().unwrap();
    outbox.append_all(events(stored..stored + 100)).unwrap();
    assert_eq!(drain(&mut consumer).len(), 100);
    assert_eq!(outbox.status().last_error, None);
}

#[test]
fn an_outbox_of_a_later_version_is_refused_with_the_cure_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(&dir));
    let other = rusqlite::Connection::open(file(&dir)).unwrap();
    other.pragma_update(None, "user_version", FORMAT.version + 1).unwrap();
    other.close().unwrap();
    let before = fs::read(file(&dir)).unwrap();
    let error = Outbox::open(&file(&dir), Options::default()).unwrap_err();
    assert_eq!(
        error.fault,
        OutboxFault::OtherVersion { found: FORMAT.version + 1, known: FORMAT.version }
    );
    assert!(error.to_string().contains("use the program that wrote it"), "{error}");
    assert_eq!(fs::read(file(&dir)).unwrap(), before);
}

#[test]
fn another_file_is_refused_and_unchanged() {
    for bytes in [vec![b'x'; 8192], Vec::new()] {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(file(&dir).parent().unwrap()).unwrap();
        fs::write(file(&dir), &bytes).unwrap();
        let fault = fault(Outbox::open(&file(&dir), Options::default()));
        let expected = if bytes.is_empty() {
            OutboxFault::Damaged("it has 0 bytes".to_owned())
        } else {
            OutboxFault::NotOurs
        };
        assert_eq!((fault, fs::read(file(&dir)).unwrap()), (expected, bytes));
    }
}

#[test]
fn a_file_that_is_deleted_in_use_is_an_error_of_the_next_event() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    fs::remove_file(file(&dir)).unwrap();
    let fault = fault(outbox.append_all(events(0..1)));
    assert_eq!(fault, OutboxFault::File(StoreFault::Replaced));
}

#[test]
fn each_change_of_a_small_table_or_an_event_is_an_error() {
    for change in [
        "UPDATE consumer SET cursor = 3",
        "UPDATE consumer SET ahead = x'02'",
        "DELETE FROM consumer",
        "UPDATE outbox SET next = 99",
        "DELETE FROM outbox",
        "DELETE FROM batch WHERE first = 1",
        "DELETE FROM batch",
        "UPDATE batch SET data = x'00'",
        "UPDATE batch SET first = 0 WHERE first = 1",
        "DELETE FROM digest",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let outbox = open(&dir);
        outbox.register("a", StartAt::Oldest).unwrap();
        (0..2).for_each(|at| outbox.append_all(events(at..at + 1)).unwrap());
        drop(outbox);
        let other = rusqlite::Connection::open(file(&dir)).unwrap();
        other.execute_batch(change).unwrap();
        other.close().unwrap();
        let read = || -> Result<Vec<Event>, OutboxError> {
            let outbox = Outbox::open(&file(&dir), Options::default())?;
            let mut consumer = outbox.consumer("a")?;
            let mut events = Vec::new();
            while consumer.has_next() {
                events.extend(block_on(consumer.next_events())?);
            }
            Ok(events)
        };
        assert!(matches!(fault(read()), OutboxFault::Damaged(_)), "{change}");
    }
}

#[test]
fn nothing_is_next_where_all_that_follows_is_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = open(&dir);
    outbox.register("a", StartAt::Oldest).unwrap();
    for first in [0, 2] {
        outbox.append_all(events(first..first + 2)).unwrap();
        outbox.flush().unwrap();
    }
    let mut consumer = outbox.consumer("a").unwrap();
    assert_eq!(drain(&mut consumer).len(), 4);
    consumer.acknowledge([3, 4]).unwrap();
    drop(consumer);
    let mut consumer = outbox.consumer("a").unwrap();
    assert_eq!(drain(&mut consumer), [(1, 0), (2, 1)]);
    assert!(!consumer.has_next());
    outbox.append_all(events(4..5)).unwrap();
    assert_eq!(next(&mut consumer), [(5, 4)]);
}

/// A step of a random history.
#[derive(Clone, Debug)]
enum Step {
    /// Appends this many new events.
    Append(u64),
    /// Appends an event again that was appended this many events before.
    Repeat(u64),
    /// A consumer receives the available events.
    Receive(usize),
    /// A consumer acknowledges one of the events that it has received.
    Acknowledge(usize, prop::sample::Index),
    /// A consumer acknowledges the oldest of them.
    AcknowledgeOldest(usize, usize),
    Remove(usize),
    Register(usize, bool),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let consumer = || 0..CONSUMERS.len();
    prop_oneof![
        6 => (1..40_u64).prop_map(Step::Append),
        1 => (1..30_u64).prop_map(Step::Repeat),
        6 => consumer().prop_map(Step::Receive),
        8 => (consumer(), any::<prop::sample::Index>()).prop_map(|(at, index)| Step::Acknowledge(at, index)),
        4 => (consumer(), 1..40_usize).prop_map(|(at, count)| Step::AcknowledgeOldest(at, count)),
        1 => consumer().prop_map(Step::Remove),
        2 => (consumer(), any::<bool>()).prop_map(|(at, is_next)| Step::Register(at, is_next)),
        2 => Just(Step::Reopen),
    ]
}

/// The events that a consumer must receive, by position: the numbers of those not yet acknowledged.
#[derive(Clone, Debug, Default)]
struct ModelConsumer {
    unacknowledged: BTreeMap<u64, u64>,
    /// The positions that were received since the consumer was attached.
    received: Vec<u64>,
}

/// A plain outbox in memory.
#[derive(Debug, Default)]
struct Model {
    /// The numbers of the events, by position from 1 on.
    events: Vec<u64>,
    consumers: BTreeMap<usize, ModelConsumer>,
}

impl Model {
    fn append(&mut self, number: u64) {
        self.events.push(number);
        let position = self.events.len() as u64;
        for consumer in self.consumers.values_mut() {
            consumer.unacknowledged.insert(position, number);
        }
    }

    fn acknowledge(&mut self, at: usize, position: u64) {
        let consumer = self.consumers.get_mut(&at).unwrap();
        consumer.unacknowledged.remove(&position);
        consumer.received.retain(|received| *received != position);
    }

    /// The position up to which everything is acknowledged.
    fn cursor(&self, at: usize) -> u64 {
        let oldest = self.consumers[&at].unacknowledged.keys().next().copied();
        oldest.map_or(self.events.len() as u64, |oldest| oldest - 1)
    }
}

/// The outbox and the model, which do the same.
struct Pair {
    dir: TempDir,
    outbox: Option<Outbox>,
    attached: BTreeMap<usize, Consumer>,
    model: Model,
    next_number: u64,
}

impl Pair {
    fn outbox(&self) -> &Outbox {
        self.outbox.as_ref().unwrap()
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Append(_) | Step::Repeat(_) if self.model.consumers.is_empty() => {}
            Step::Append(count) => {
                let numbers = self.next_number..self.next_number + count;
                self.next_number = numbers.end;
                self.outbox().append_all(events(numbers.clone())).unwrap();
                numbers.for_each(|number| self.model.append(number));
            }
            Step::Repeat(distance) => {
                let number = self.next_number.checked_sub(distance);
                let repeated = number.map(event);
                self.outbox().append_all(repeated).unwrap();
            }
            Step::Receive(at) => self.receive(at),
            Step::Acknowledge(at, index) => {
                let received = self.received(at);
                if !received.is_empty() {
                    self.acknowledge(at, &[received[index.index(received.len())]]);
                }
            }
            Step::AcknowledgeOldest(at, count) => {
                let received = self.received(at);
                self.acknowledge(at, &received[..count.min(received.len())]);
            }
            Step::Remove(at) => {
                self.attached.remove(&at);
                let is_removed = self.outbox().remove(CONSUMERS[at]).is_ok();
                assert_eq!(is_removed, self.model.consumers.remove(&at).is_some());
            }
            Step::Register(at, is_next) => self.register(at, is_next),
            Step::Reopen => {
                self.attached.clear();
                self.outbox = None;
                self.outbox = Some(open(&self.dir));
                self.model.consumers.values_mut().for_each(|consumer| consumer.received.clear());
            }
        }
    }

    fn received(&self, at: usize) -> Vec<u64> {
        self.model.consumers.get(&at).map(|consumer| consumer.received.clone()).unwrap_or_default()
    }

    fn receive(&mut self, at: usize) {
        if !self.model.consumers.contains_key(&at) {
            return;
        }
        let attach = || self.outbox.as_ref().unwrap().consumer(CONSUMERS[at]).unwrap();
        let received = drain(self.attached.entry(at).or_insert_with(attach));
        let model = self.model.consumers.get_mut(&at).unwrap();
        let is_new = |position: &u64| !model.received.contains(position);
        let expected = model.unacknowledged.iter().filter(|(position, _)| is_new(position));
        let expected: Vec<_> = expected.map(|(position, number)| (*position, *number)).collect();
        assert_eq!(received, expected, "{}", CONSUMERS[at]);
        model.received.extend(received.iter().map(|(position, _)| position));
        model.received.sort_unstable();
    }

    fn acknowledge(&mut self, at: usize, positions: &[u64]) {
        if let Some(consumer) = self.attached.get(&at) {
            consumer.acknowledge(positions.iter().copied()).unwrap();
            positions.iter().for_each(|position| self.model.acknowledge(at, *position));
            assert_eq!(consumer.cursor(), self.model.cursor(at));
        }
    }

    fn register(&mut self, at: usize, is_next: bool) {
        let start = if is_next { StartAt::Next } else { StartAt::Oldest };
        self.outbox().flush().unwrap();
        let status = self.outbox().status();
        let oldest = status.next - status.events;
        self.outbox().register(CONSUMERS[at], start).unwrap();
        let first = if is_next { status.next } else { oldest };
        let numbered = (1..).zip(self.model.events.iter().copied());
        let unacknowledged = numbered.filter(|(position, _)| *position >= first).collect();
        let new = ModelConsumer { unacknowledged, received: Vec::new() };
        self.model.consumers.entry(at).or_insert(new);
    }

    /// Checks that the file holds no event that every consumer has, except the rest of a batch of 40.
    fn check_space(&self) {
        self.outbox().flush().unwrap();
        let needed = self.model.consumers.keys().map(|at| self.model.cursor(*at)).min();
        let needed = needed.map_or(0, |cursor| self.model.events.len() as u64 - cursor);
        let events = self.outbox().status().events;
        assert!((needed..=needed + 40).contains(&events), "{events} stored, {needed} needed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// However events are appended, received, acknowledged and reclaimed, over restarts, every consumer receives the
    /// events that a plain model in memory predicts.
    #[test]
    fn an_outbox_is_a_list_with_cursors(steps in prop::collection::vec(step(), 1..80)) {
        let dir = tempfile::tempdir().unwrap();
        let outbox = Some(open(&dir));
        let (attached, model) = Default::default();
        let mut pair = Pair { dir, outbox, attached, model, next_number: 0 };
        pair.run(Step::Register(0, false));
        for step in steps {
            pair.run(step);
        }
        (0..CONSUMERS.len()).for_each(|at| pair.receive(at));
        pair.check_space();
    }
}

const CONSUMERS: [&str; 3] = ["files", "kafka", "hook"];

const LONG: Duration = Duration::from_secs(60);
