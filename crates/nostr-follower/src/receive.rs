//! Receives the events of relays, one task per relay, and gathers them into batches. Bytes in flight are bounded: at the
//! limit nothing is read.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use net::firehose::StopSignal;
use nostr_relay::{Client, RelayItem, RelayNotice, Traffic};
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout_at};

use follower::Status;

/// Receives until every relay has ended, or a stop is requested.
pub(crate) struct Receiver {
    /// The names of the relays.
    pub(crate) names: Vec<String>,
    pub(crate) status: Status,
    pub(crate) stop: StopSignal,
    /// Whether a relay ends with its stored events.
    pub(crate) ends_with_stored: bool,
    /// Maximum time until a relay is reached, by relay.
    pub(crate) first_contacts: Vec<Option<Duration>>,
}

/// Why a relay is not followed any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// A stop was requested.
    Stopped,
    /// It has sent its stored events.
    Complete,
    /// Some of its stored events may be missing.
    Incomplete(String),
    /// It cannot be followed.
    Failed(String),
}

/// Events that were received together; empty once a second, for periodic work.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Received>,
}

/// A message of a relay.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) relay: usize,
    pub(crate) item: RelayItem,
    /// Bytes in flight.
    _permit: OwnedSemaphorePermit,
}

impl Received {
    /// The length of an event in bytes.
    pub(crate) fn byte_len(&self) -> usize {
        byte_len(&self.item)
    }
}

fn byte_len(item: &RelayItem) -> usize {
    match item {
        RelayItem::Event(event) => event.text.as_str().len(),
        _ => 0,
    }
}

impl Receiver {
    /// Sends batches of the relays' events. Returns how every relay ended, and the bytes of all.
    pub(crate) async fn run(
        self,
        clients: Vec<Client>,
        batches: mpsc::Sender<Batch>,
        max_gather: Duration,
    ) -> (Vec<RelayEnd>, Traffic) {
        let (sender, items) = mpsc::channel(QUEUED_ITEMS);
        let in_flight = Arc::new(Semaphore::new(MAX_IN_FLIGHT_KB));
        let mut ends = vec![RelayEnd::Stopped; clients.len()];
        let mut tasks = JoinSet::new();
        for (relay, client) in clients.into_iter().enumerate() {
            let sender = sender.clone();
            let in_flight = in_flight.clone();
            let stop = self.stop.clone();
            let mut source = Source {
                relay,
                client,
                sender,
                in_flight,
                failures: 0,
                unanswered: 0,
                answered: 0,
                gap: None,
                is_reached: Arc::default(),
            };
            let missed = missed(self.first_contacts[relay], source.is_reached.clone());
            let ends_with_stored = self.ends_with_stored;
            let (name, status) = (self.names[relay].clone(), self.status.clone());
            tasks.spawn(async move {
                let end = tokio::select! {
                    end = source.receive(ends_with_stored) => end,
                    end = missed => end,
                    () = stop.requested() => RelayEnd::Stopped,
                };
                let end = match (end, source.gap.take()) {
                    (RelayEnd::Stopped | RelayEnd::Complete, Some(gap)) => {
                        RelayEnd::Incomplete(gap)
                    }
                    (end, _) => end,
                };
                if let RelayEnd::Failed(reason) = &end {
                    status.print_warning(&format!("{name}: not followed any more: {reason}"));
                }
                let traffic = source.client.traffic();
                source.client.close().await;
                (relay, end, traffic)
            });
        }
        drop(sender);
        if gather(items, batches, max_gather).await.is_err() {
            self.stop.request();
        }
        let mut all = Traffic::default();
        while let Some(Ok((relay, end, traffic))) = tasks.join_next().await {
            ends[relay] = end;
            all.sent += traffic.sent;
            all.received += traffic.received;
        }
        (ends, all)
    }
}

/// A relay, and the receiver of its messages.
struct Source {
    relay: usize,
    client: Client,
    sender: mpsc::Sender<Received>,
    in_flight: Arc<Semaphore>,
    /// Connections in a row that brought no event, and those on which no request was answered.
    failures: u32,
    unanswered: u32,
    /// Number of answers before.
    answered: u64,
    /// Why stored events may be missing.
    gap: Option<String>,
    /// Whether a connection was open.
    is_reached: Arc<AtomicBool>,
}

/// Waits for `limit`, and ends a relay that is not reached then.
async fn missed(limit: Option<Duration>, is_reached: Arc<AtomicBool>) -> RelayEnd {
    let Some(limit) = limit else { return pending().await };
    sleep(limit).await;
    if is_reached.load(Relaxed) {
        return pending().await;
    }
    RelayEnd::Failed(format!("no connection within {} s", limit.as_secs()))
}

impl Source {
    /// Receives until the relay cannot be followed, or its stored events are received and nothing else is wanted.
    async fn receive(&mut self, ends_with_stored: bool) -> RelayEnd {
        loop {
            let item = match self.client.next().await {
                Ok(item) => item,
                Err(error) => return RelayEnd::Failed(error.to_string()),
            };
            let mut is_complete = false;
            match &item {
                RelayItem::Event(_) => self.failures = 0,
                RelayItem::Notice(RelayNotice::Connected { .. }) => {
                    self.is_reached.store(true, Relaxed);
                }
                RelayItem::Notice(RelayNotice::RetryScheduled(_)) => {
                    self.failures += 1;
                    let answered = std::mem::replace(&mut self.answered, self.client.answered());
                    let is_answered = self.answered > answered;
                    self.unanswered = if is_answered { 0 } else { self.unanswered + 1 };
                }
                RelayItem::Notice(RelayNotice::EndOfStored { gap, .. }) => {
                    is_complete = ends_with_stored;
                    self.gap =
                        gap.as_ref().map(|gap| format!("stored events may be missing: {gap}"));
                }
                _ => {}
            }
            if !self.send(item).await {
                return RelayEnd::Stopped;
            }
            if is_complete {
                return RelayEnd::Complete;
            }
            if ends_with_stored && self.failures >= MAX_FAILURES {
                return RelayEnd::Failed(format!("{MAX_FAILURES} connections without an event"));
            }
            if ends_with_stored && self.unanswered >= MAX_UNANSWERED {
                let reason = format!("{MAX_UNANSWERED} connections that answered no request");
                return RelayEnd::Failed(reason);
            }
        }
    }

    /// Passes an item on, once few enough bytes are in flight. Whether there is somebody to take it.
    async fn send(&mut self, item: RelayItem) -> bool {
        let kilobytes = u32::try_from(byte_len(&item) / 1024 + 1).unwrap_or(u32::MAX);
        let kilobytes = kilobytes.min(MAX_IN_FLIGHT_KB as u32);
        let permit = self.in_flight.clone().acquire_many_owned(kilobytes).await;
        let permit = permit.expect("the semaphore is never closed");
        let received = Received { relay: self.relay, item, _permit: permit };
        self.sender.send(received).await.is_ok()
    }
}

/// Gathers items into batches: the available ones, and the ones that follow within a time. An error if the receiver of
/// the batches has ended.
async fn gather(
    mut items: mpsc::Receiver<Received>,
    batches: mpsc::Sender<Batch>,
    max_gather: Duration,
) -> Result<(), SendError<Batch>> {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let mut batch = Batch::default();
        tokio::select! {
            count = items.recv_many(&mut batch.items, BATCH_EVENTS) => if count == 0 { return Ok(()) },
            _ = tick.tick() => {}
        }
        let deadline = Instant::now() + max_gather;
        while (1..BATCH_EVENTS).contains(&batch.items.len()) {
            let room = BATCH_EVENTS - batch.items.len();
            match timeout_at(deadline, items.recv_many(&mut batch.items, room)).await {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        batches.send(batch).await?;
    }
}

/// Events that are verified together: one group of the library.
const BATCH_EVENTS: usize = 512;

/// Items that wait to be gathered.
const QUEUED_ITEMS: usize = 2 * BATCH_EVENTS;

/// Maximum size of the events in flight in KiB, each rounded up.
const MAX_IN_FLIGHT_KB: usize = 64 << 10;

/// Connections in a row without an event after which a relay is given up whose stored events are wanted.
const MAX_FAILURES: u32 = 3;

/// Connections in a row on which no request was answered to its end, after which such a relay is given up too.
const MAX_UNANSWERED: u32 = 10;

const TICK: Duration = Duration::from_secs(1);
