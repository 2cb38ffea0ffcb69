//! Deliveries to sinks that fail, refuse, stall and panic.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::database::OutboxIdentity;
use crate::event::{EventId, NewEvent};
use crate::outbox::{Outbox, StartAt};
use crate::outbox_options::Options;
use crate::sink::Sink;

/// A sink that acts as a function says, and records the events that it accepted.
struct TestSink<F> {
    limits: SinkLimits,
    respond: F,
    stored: Option<u64>,
    seen: Arc<Mutex<Seen>>,
}

/// The events that a sink has seen.
#[derive(Debug, Default)]
struct Seen {
    /// Positions in the order in which they were accepted.
    accepted: Vec<u64>,
    /// The last accepted position of every account.
    last: BTreeMap<String, u64>,
    /// The accounts of batches that are being sent.
    busy: HashSet<String>,
    sends: u64,
    max_concurrent: usize,
    concurrent: usize,
}

impl Seen {
    fn begin(&mut self, events: &[Event]) {
        self.sends += 1;
        self.concurrent += 1;
        self.max_concurrent = self.max_concurrent.max(self.concurrent);
        for account in accounts(events) {
            assert!(self.busy.insert(account), "an account is in two batches at once");
        }
    }

    fn end(&mut self, events: &[Event], accepted: &[u64]) {
        self.concurrent -= 1;
        accounts(events).iter().for_each(|account| assert!(self.busy.remove(account)));
        for event in events.iter().filter(|event| accepted.contains(&event.position())) {
            let last = self.last.insert(event.account().to_owned(), event.position());
            assert!(last < Some(event.position()), "{} of {}", event.position(), event.account());
            self.accepted.push(event.position());
        }
    }
}

fn accounts(events: &[Event]) -> BTreeSet<String> {
    events.iter().map(|event| event.account().to_owned()).collect()
}

impl<F, R> Sink for TestSink<F>
where
    F: Fn(Vec<Event>, u64) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), SendFailure>> + Send,
{
    fn limits(&self) -> SinkLimits {
        self.limits
    }

    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        let number = {
            let mut seen = self.seen.lock().unwrap();
            seen.begin(events);
            seen.sends
        };
        let result = (self.respond)(events.to_vec(), number).await;
        let all: Vec<u64> = events.iter().map(Event::position).collect();
        let accepted = result.as_ref().err().map_or(&all, |failure| &failure.accepted);
        self.seen.lock().unwrap().end(events, accepted);
        result
    }

    async fn stored(&self, _: OutboxIdentity) -> Result<Option<u64>, SendFailure> {
        Ok(self.stored)
    }
}

/// An outbox with events of seven accounts, and a consumer.
fn outbox(dir: &TempDir, events: u64) -> Outbox {
    let outbox = Outbox::open(&dir.path().join("outbox.sqlite"), Options::default()).unwrap();
    outbox.register("a", StartAt::Oldest).unwrap();
    let event = |number: u64| {
        let did = format!("did:web:{}.test", number % 7);
        NewEvent::new(
            EventId::of_commit(&did, &number.to_string()),
            &did,
            format!("{{\"n\":{number}}}"),
        )
    };
    outbox.append_all((1..=events).map(|number| event(number).unwrap())).unwrap();
    outbox
}

/// Delays of milliseconds.
fn quick() -> DeliveryOptions {
    let ms = Duration::from_millis(1);
    let backoff = BackoffOptions { initial: ms, max: 4 * ms, ..BackoffOptions::default() };
    DeliveryOptions { backoff, stop_timeout: Duration::from_secs(2), ..DeliveryOptions::default() }
}

/// Runs a delivery until `is_done`, then stops it.
async fn run(
    delivery: Delivery,
    is_done: impl Fn(&DeliveryMetrics) -> bool,
) -> Result<DeliverySummary, DeliveryError> {
    let (stop, metrics) = (StopSignal::new(), delivery.metrics());
    let mut running = tokio::spawn(delivery.run(stop.clone()));
    let waiting = async {
        let started = tokio::time::Instant::now();
        while !is_done(&metrics) {
            sleep(Duration::from_millis(1)).await;
            assert!(started.elapsed() < Duration::from_secs(120), "{metrics:?}");
        }
    };
    tokio::select! {
        ended = &mut running => return ended.unwrap(),
        () = waiting => stop.request(),
    }
    running.await.unwrap()
}

fn sink<F>(limits: SinkLimits, respond: F) -> (TestSink<F>, Arc<Mutex<Seen>>) {
    let seen = Arc::<Mutex<Seen>>::default();
    (TestSink { limits, respond, stored: None, seen: seen.clone() }, seen)
}

fn letters(folder: &Path) -> DeadLetters {
    DeadLetters::open(&folder.join("refused.ndjson"), "a", 1 << 20).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_account_is_in_order_and_accounts_are_sent_side_by_side_whatever_fails() {
    const EVENTS: u64 = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, EVENTS);
    // A third of the batches fails, after a part of them is accepted.
    let respond = |events: Vec<Event>, number: u64| async move {
        let mut random = Jitter::seeded(number);
        sleep(Duration::from_micros((random.fraction() * 2_000.0) as u64)).await;
        if random.fraction() > 0.33 {
            return Ok(());
        }
        let count = (random.fraction() * events.len() as f64) as usize;
        let accepted = events[..count].iter().map(Event::position).collect();
        Err(SendFailure { accepted, ..SendFailure::temporary("a third fails") })
    };
    let (sink, seen) = sink(SinkLimits::new(3, 1 << 20).with_concurrency(3), respond);
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink, None, quick());
    let summary = run(delivery, |metrics| metrics.accepted() == EVENTS).await.unwrap();
    let seen = seen.lock().unwrap();
    let positions: BTreeSet<u64> = seen.accepted.iter().copied().collect();
    assert_eq!((positions.len() as u64, seen.accepted.len() as u64), (EVENTS, EVENTS));
    assert_eq!((summary.cursor, summary.accepted), (EVENTS, EVENTS));
    assert!(seen.max_concurrent > 1 && seen.max_concurrent <= 3, "{}", seen.max_concurrent);
}

#[tokio::test]
async fn one_batch_at_a_time_has_all_events_in_the_order_of_their_positions() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 500);
    let respond = |_: Vec<Event>, number: u64| async move {
        if number.is_multiple_of(3) { Err(SendFailure::temporary("a third fails")) } else { Ok(()) }
    };
    let (sink, seen) = sink(SinkLimits::new(16, 1 << 20), respond);
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink, None, quick());
    run(delivery, |metrics| metrics.accepted() == 500).await.unwrap();
    assert_eq!(seen.lock().unwrap().accepted, (1..=500).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_sink_that_stores_its_position_receives_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 10);
    let (mut sink, seen) = sink(SinkLimits::new(4, 1 << 20), |_, _| async { Ok(()) });
    sink.stored = Some(7);
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink, None, quick());
    let summary = run(delivery, |metrics| metrics.accepted() == 3).await.unwrap();
    assert_eq!((summary.cursor, &*seen.lock().unwrap().accepted), (10, &[8, 9, 10][..]));
}

/// Refuses every batch with an event at one of these positions.
fn refusing(
    positions: &'static [u64],
) -> impl Fn(Vec<Event>, u64) -> std::future::Ready<Result<(), SendFailure>> {
    move |events, _| {
        let is_refused = |event: &Event| positions.contains(&event.position());
        std::future::ready(if events.iter().any(is_refused) {
            Err(SendFailure::new(FailureKind::Refused, "status 422"))
        } else {
            Ok(())
        })
    }
}

#[tokio::test]
async fn refused_events_are_found_and_set_aside_after_some_attempts_and_all_others_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 100);
    let (sink, seen) = sink(SinkLimits::new(64, 1 << 20), refusing(&[5, 6, 77]));
    let consumer = outbox.consumer("a").unwrap();
    let delivery = Delivery::new(consumer, sink, Some(letters(dir.path())), quick());
    let summary = run(delivery, |metrics| metrics.accepted() == 97).await.unwrap();
    assert_eq!((summary.cursor, summary.set_aside), (100, 3));
    assert_eq!(seen.lock().unwrap().accepted.len(), 97);
    let text = std::fs::read_to_string(dir.path().join("refused.ndjson")).unwrap();
    let letters = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let letters: Vec<serde_json::Value> = letters.collect();
    let positions: Vec<_> = letters.iter().map(|letter| letter["position"].as_u64()).collect();
    assert_eq!(positions, [Some(5), Some(6), Some(77)]);
    assert!(
        letters.iter().all(|letter| letter["attempts"] == 5 && letter["reason"] == "status 422")
    );
}

#[tokio::test]
async fn without_dead_letters_a_refused_event_holds_its_account_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 70);
    // Position 1 is of the account that has every seventh event.
    let (sink, seen) = sink(SinkLimits::new(1, 1 << 20).with_concurrency(2), refusing(&[1]));
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink, None, quick());
    let summary = run(delivery, |metrics| metrics.accepted() == 60).await.unwrap();
    assert_eq!((summary.cursor, summary.set_aside), (0, 0));
    assert!(seen.lock().unwrap().accepted.iter().all(|position| position % 7 != 1));
    let consumer = &outbox.status().consumers[0];
    assert_eq!((consumer.behind, consumer.ahead), (10, 60));
}

#[tokio::test]
async fn refused_events_of_more_accounts_than_places_delay_no_other_account() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 70);
    // The first event of five of the seven accounts.
    let limits = SinkLimits::new(1, 1 << 20).with_concurrency(2);
    let (sink, seen) = sink(limits, refusing(&[1, 2, 3, 4, 5]));
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink, None, quick());
    run(delivery, |metrics| metrics.accepted() == 20).await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.accepted.iter().all(|position| matches!(position % 7, 6 | 0)));
    assert!(seen.max_concurrent <= 2, "{}", seen.max_concurrent);
}

#[tokio::test]
async fn a_stop_leaves_what_is_not_accepted_to_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 100);
    let respond = |events: Vec<Event>, _| async move {
        let positions = events.iter().map(Event::position);
        let accepted: Vec<u64> = positions.filter(|position| *position <= 40).collect();
        if accepted.len() == events.len() {
            Ok(())
        } else {
            Err(SendFailure { accepted, ..SendFailure::temporary("not yet") })
        }
    };
    let (first, seen) = sink(SinkLimits::new(10, 1 << 20), respond);
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), first, None, quick());
    let metrics = delivery.metrics();
    let summary = run(delivery, |metrics| metrics.failed_batches() > 2).await.unwrap();
    assert_eq!((summary.cursor, seen.lock().unwrap().accepted.len()), (40, 40));
    assert_eq!(metrics.last_failure().as_deref(), Some("not yet"));
    let (second, seen) = sink(SinkLimits::new(10, 1 << 20), |_, _| async { Ok(()) });
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), second, None, quick());
    run(delivery, |metrics| metrics.accepted() == 60).await.unwrap();
    assert_eq!(seen.lock().unwrap().accepted, (41..=100).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_in_its_time_with_a_sink_that_never_answers() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 10);
    let (sink, _) = sink(SinkLimits::new(10, 1 << 20), |_, _| std::future::pending());
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink, None, quick());
    let summary = run(delivery, |metrics| metrics.in_flight() > 0).await.unwrap();
    assert_eq!((summary.cursor, summary.accepted), (0, 0));
}

#[tokio::test]
async fn a_sink_that_cannot_continue_or_panics_ends_the_delivery_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 10);
    let fatal = SendFailure::new(FailureKind::Fatal, "no table `event`");
    let failing = fatal.clone();
    let respond = move |_, _| std::future::ready(Err(failing.clone()));
    let (sink_, _) = sink(SinkLimits::new(4, 1 << 20), respond);
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink_, None, quick());
    let error = run(delivery, |_| false).await.unwrap_err();
    assert_eq!(error, DeliveryError::Sink(fatal));
    let respond = |_: Vec<Event>, _: u64| async { panic!("a bug of the sink") };
    let (sink, _) = sink(SinkLimits::new(4, 1 << 20), respond);
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink, None, quick());
    assert_eq!(run(delivery, |_| false).await.unwrap_err(), DeliveryError::Panicked);
    assert_eq!(outbox.status().consumers[0].behind, 10);
}

#[tokio::test]
async fn a_batch_is_within_the_limits_of_its_sink_but_for_a_single_event() {
    let dir = tempfile::tempdir().unwrap();
    let outbox = outbox(&dir, 100);
    let sizes = Arc::<Mutex<Vec<(usize, usize)>>>::default();
    let recorded = sizes.clone();
    let respond = move |events: Vec<Event>, _| {
        let bytes = events.iter().map(Event::size).sum();
        recorded.lock().unwrap().push((events.len(), bytes));
        std::future::ready(Ok(()))
    };
    let (sink, _) = sink(SinkLimits::new(5, 100), respond);
    let delivery = Delivery::new(outbox.consumer("a").unwrap(), sink, None, quick());
    run(delivery, |metrics| metrics.accepted() == 100).await.unwrap();
    let sizes = sizes.lock().unwrap();
    assert!(sizes.iter().all(|(events, bytes)| *events <= 5 && (*bytes <= 100 || *events == 1)));
    assert!(sizes.iter().any(|(events, _)| *events > 1), "{sizes:?}");
}
