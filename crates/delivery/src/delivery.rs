//! The delivery: sends the events of one consumer to a sink, retries, and acknowledges accepted events.
//!
//! ```text
//! consumer ── ready ──┬─ batch ── sink ── accepted ──> acknowledged
//!    ▲          ▲     ├─ batch ── sink ── refused, retried after a delay
//!    │          │     └─ …
//!    │          └── events of an account wait while a batch with that account is sent
//!    └── read while the ready and waiting events are within their limits
//! ```

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::{StopSignal, crash_point};
use net::hosts::{Backoff, BackoffOptions, Jitter};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::Instrument as _;

use crate::any_sink::{AnySink, ErasedSink};
use crate::consumer::{Acks, Consumer};
use crate::dead_letters::DeadLetters;
use crate::error::OutboxError;
use crate::event::Event;
use crate::sink::{FailureKind, SendFailure, SinkLimits};

/// Options of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryOptions {
    /// Delays between the attempts to send a batch. Default: up to 1 s, doubled to a minute.
    pub backoff: BackoffOptions,
    /// Number of times that a single event may be refused before it is set aside. Default: 5.
    pub max_refusals: u32,
    /// Maximum time to finish the batches that are being sent after a stop is requested. Default: 10 s.
    pub stop_timeout: Duration,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        let backoff = BackoffOptions::default();
        Self { backoff, max_refusals: 5, stop_timeout: Duration::from_secs(10) }
    }
}

/// Sends the events of a consumer to a sink.
#[derive(Debug)]
pub struct Delivery {
    consumer: Consumer,
    sender: Arc<Sender>,
}

/// The result of a delivery that was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliverySummary {
    /// The position up to which every event is acknowledged.
    pub cursor: u64,
    /// Number of events that the sink has accepted.
    pub accepted: u64,
    /// Number of events that were set aside.
    pub set_aside: u64,
}

/// Why a delivery has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeliveryError {
    /// The outbox cannot be read or written.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// The sink cannot continue.
    #[error("{0}")]
    Sink(SendFailure),
    /// The sink has panicked.
    #[error("the sink has panicked")]
    Panicked,
}

/// Counters of a delivery, which can be read at any time.
#[derive(Debug, Default)]
pub struct DeliveryMetrics {
    accepted: AtomicU64,
    accepted_bytes: AtomicU64,
    failed_batches: AtomicU64,
    set_aside: AtomicU64,
    in_flight: AtomicU64,
    /// 0 of a sink without rows, and otherwise one more than their number.
    rows: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl DeliveryMetrics {
    /// Number of events that the sink has accepted.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Size of their payloads in bytes.
    pub fn accepted_bytes(&self) -> u64 {
        self.accepted_bytes.load(Relaxed)
    }

    /// Number of batches that were not accepted as a whole, every attempt counted.
    pub fn failed_batches(&self) -> u64 {
        self.failed_batches.load(Relaxed)
    }

    /// Number of events that were set aside.
    pub fn set_aside(&self) -> u64 {
        self.set_aside.load(Relaxed)
    }

    /// Number of events in the batches that are being sent.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    /// Number of rows that the sink has written or deleted; `None` if it has no rows.
    pub fn rows(&self) -> Option<u64> {
        self.rows.load(Relaxed).checked_sub(1)
    }

    /// The reason of the last failure, until a batch is accepted.
    pub fn last_failure(&self) -> Option<String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn record_accepted(&self, events: &[&Event]) {
        self.accepted.fetch_add(events.len() as u64, Relaxed);
        let bytes: usize = events.iter().map(|event| event.payload().len()).sum();
        self.accepted_bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn record_failure(&self, failure: Option<&SendFailure>) {
        if let Some(SendFailure { reason, .. }) = failure {
            tracing::debug!(target: "wireproof::delivery", reason, "a batch is not accepted");
        }
        self.failed_batches.fetch_add(u64::from(failure.is_some()), Relaxed);
        self.set_last(failure);
    }

    /// Says more of a failure that was recorded.
    fn note(&self, failure: &SendFailure) {
        self.set_last(Some(failure));
    }

    fn set_last(&self, failure: Option<&SendFailure>) {
        let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        *last = failure.map(|failure| failure.reason.clone());
    }
}

impl Delivery {
    /// A delivery of the consumer's events to `sink`, a [`Sink`](crate::Sink). Refused events are set aside in
    /// `dead_letters`; without them, a refused event is repeated until it is accepted, and the later events of its account
    /// wait.
    pub fn new(
        consumer: Consumer,
        sink: impl Into<AnySink>,
        dead_letters: Option<DeadLetters>,
        options: DeliveryOptions,
    ) -> Self {
        let sink = sink.into().0;
        let acks = consumer.acks();
        let metrics = Arc::default();
        let stop = StopSignal::new();
        let (permits, parked) =
            (Semaphore::new(sink.limits().concurrency.max(1)), Parked::default());
        let sender = Sender { sink, acks, dead_letters, options, metrics, stop, permits, parked };
        sender.count_rows();
        Self { consumer, sender: Arc::new(sender) }
    }

    /// The counters.
    pub fn metrics(&self) -> Arc<DeliveryMetrics> {
        self.sender.metrics.clone()
    }

    /// Delivers until `stop` is requested; then the batches that are being sent are finished, retries end, and the
    /// acknowledgements are stored. The next run delivers the events that are not acknowledged.
    ///
    /// Must be called in a Tokio runtime with time.
    ///
    /// # Errors
    /// If the outbox fails or the sink cannot continue.
    pub async fn run(self, stop: StopSignal) -> Result<DeliverySummary, DeliveryError> {
        let consumer = self.consumer.name();
        let span = tracing::info_span!(target: "wireproof::delivery", "delivery", consumer);
        self.run_in_span(stop).instrument(span).await
    }

    async fn run_in_span(mut self, stop: StopSignal) -> Result<DeliverySummary, DeliveryError> {
        self.skip_stored(&stop).await?;
        let mut batches = Batches::new(self.sender.sink.limits());
        let mut sending = JoinSet::new();
        let ended = self.deliver(&mut batches, &mut sending, &stop).await;
        self.sender.stop.request();
        let finished = timeout(self.sender.options.stop_timeout, finish(&mut sending)).await;
        sending.shutdown().await;
        self.sender.acks.flush().await?;
        let closed = timeout(self.sender.options.stop_timeout, self.sender.sink.close()).await;
        ended?;
        // Events that took too long are delivered again.
        finished.unwrap_or(Ok(()))?;
        closed.unwrap_or(Ok(())).map_err(DeliveryError::Sink)?;
        let metrics = &self.sender.metrics;
        let (accepted, set_aside) = (metrics.accepted(), metrics.set_aside());
        Ok(DeliverySummary { cursor: self.consumer.cursor(), accepted, set_aside })
    }

    /// Continues after the position that the sink has stored itself.
    async fn skip_stored(&mut self, stop: &StopSignal) -> Result<(), DeliveryError> {
        let identity = self.consumer.outbox().identity();
        let mut backoff = self.sender.backoff();
        while !stop.is_requested() {
            match self.sender.sink.stored(identity).await {
                Ok(Some(position)) => return Ok(self.consumer.skip_through(position)?),
                Ok(None) => return Ok(()),
                Err(failure) => self.sender.wait_after(&failure, &mut backoff, stop).await?,
            }
        }
        Ok(())
    }

    /// Sends batches until a stop is requested or something fails.
    async fn deliver(
        &mut self,
        batches: &mut Batches,
        sending: &mut JoinSet<Sent>,
        stop: &StopSignal,
    ) -> Result<(), DeliveryError> {
        let mut maintenance = interval(MAINTENANCE_INTERVAL);
        maintenance.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            while let Some(batch) = batches.take(self.sender.parked.count()) {
                sending.spawn(self.sender.clone().send_batch(batch));
            }
            tokio::select! {
                biased;
                () = stop.requested() => return Ok(()),
                () = self.sender.parked.changed.notified() => {}
                Some(sent) = sending.join_next() => batches.release(&sent_accounts(sent)?),
                events = self.consumer.next_events(), if batches.has_room() => batches.add(events?),
                _ = maintenance.tick() => self.sender.maintain().await?,
            }
        }
    }
}

/// Waits for the batches that are being sent.
async fn finish(sending: &mut JoinSet<Sent>) -> Result<(), DeliveryError> {
    while let Some(sent) = sending.join_next().await {
        sent_accounts(sent)?;
    }
    Ok(())
}

/// The accounts of a batch that was sent, or why the sink cannot continue.
type Sent = Result<Vec<u64>, DeliveryError>;

fn sent_accounts(sent: Result<Sent, tokio::task::JoinError>) -> Sent {
    sent.unwrap_or(Err(DeliveryError::Panicked))
}

/// Events with the hashes of their accounts.
type HashedEvents = Vec<(u64, Event)>;

/// Events that wait to be sent, and the accounts of events that are being sent.
struct Batches {
    limits: SinkLimits,
    hasher: RandomState,
    ready: VecDeque<(u64, Event)>,
    /// The later events of the accounts in a batch that is being sent, by the account's hash.
    waiting: HashMap<u64, Vec<Event>>,
    /// Number and size of all ready and waiting events.
    events: usize,
    bytes: usize,
    in_flight: usize,
}

impl Batches {
    fn new(limits: SinkLimits) -> Self {
        let (hasher, ready, waiting) = Default::default();
        Self { limits, hasher, ready, waiting, events: 0, bytes: 0, in_flight: 0 }
    }

    /// Whether more events may be read: enough to fill the next batches, in addition to events that wait for their
    /// accounts.
    fn has_room(&self) -> bool {
        let batches = self.limits.concurrency.max(1) + 1;
        let max_ready = self.limits.max_events.max(1).saturating_mul(batches);
        self.ready.len() < max_ready
            && self.events < max_ready.saturating_add(MAX_WAITING_EVENTS)
            && self.bytes < self.limits.max_bytes.saturating_mul(batches).max(MAX_WAITING_BYTES)
    }

    fn add(&mut self, events: Vec<Event>) {
        for event in events {
            self.events += 1;
            self.bytes += event.size();
            self.ready.push_back((self.hasher.hash_one(event.account()), event));
        }
    }

    /// The next batch, if one may be sent in addition to batches in flight, of which `parked` wait for a refused event.
    /// With a concurrency of 1 none is sent before the refused event, as all events are in order.
    fn take(&mut self, parked: usize) -> Option<HashedEvents> {
        let concurrency = self.limits.concurrency.max(1);
        let beside = if concurrency > 1 { parked.min(MAX_PARKED) } else { 0 };
        if self.in_flight >= concurrency + beside {
            return None;
        }
        let (mut batch, mut bytes) = (HashedEvents::new(), 0);
        let busy_before = self.in_flight > 0;
        while let Some((account, event)) = self.ready.front() {
            if busy_before && let Some(later) = self.waiting.get_mut(account) {
                later.extend(self.ready.pop_front().map(|(_, event)| event));
                continue;
            }
            let is_full = batch.len() >= self.limits.max_events
                || bytes + event.size() > self.limits.max_bytes;
            if is_full && !batch.is_empty() {
                break;
            }
            bytes += event.size();
            batch.extend(self.ready.pop_front());
        }
        if batch.is_empty() {
            return None;
        }
        for (account, _) in &batch {
            self.waiting.entry(*account).or_default();
        }
        self.in_flight += 1;
        self.events -= batch.len();
        self.bytes -= bytes;
        Some(batch)
    }

    /// Ends a batch: the next events of its accounts may be sent, before all others.
    fn release(&mut self, accounts: &[u64]) {
        self.in_flight -= 1;
        for account in accounts.iter().rev() {
            let later = self.waiting.remove(account).unwrap_or_default();
            later.into_iter().rev().for_each(|event| self.ready.push_front((*account, event)));
        }
    }
}

/// State that the batches in flight share.
#[derive(Debug)]
struct Sender {
    sink: Box<dyn ErasedSink>,
    acks: Acks,
    dead_letters: Option<DeadLetters>,
    options: DeliveryOptions,
    metrics: Arc<DeliveryMetrics>,
    /// Ends retries.
    stop: StopSignal,
    /// One per batch that may be sent at once.
    permits: Semaphore,
    parked: Parked,
}

/// The batches that wait before a refused event is sent again: others are sent meanwhile, so that events that no receiver
/// accepts do not take all places.
#[derive(Debug, Default)]
struct Parked {
    count: AtomicUsize,
    changed: Notify,
}

impl Parked {
    fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Counts a batch as parked during this wait.
    async fn during(
        &self,
        wait: impl Future<Output = Result<(), DeliveryError>>,
    ) -> Result<(), DeliveryError> {
        self.count.fetch_add(1, Relaxed);
        self.changed.notify_one();
        let waited = wait.await;
        self.count.fetch_sub(1, Relaxed);
        waited
    }
}

/// How the attempts to send some events have ended.
enum Attempted {
    /// All events are accepted or set aside.
    Done,
    /// One of them is refused.
    Refused(Vec<Event>),
    /// A stop is requested.
    Stopped,
}

impl Sender {
    /// Sends a batch until every event is accepted or set aside, or a stop is requested.
    async fn send_batch(self: Arc<Self>, batch: HashedEvents) -> Sent {
        let (mut accounts, events): (Vec<u64>, Vec<Event>) = batch.into_iter().unzip();
        accounts.sort_unstable();
        accounts.dedup();
        let count = events.len() as u64;
        self.metrics.in_flight.fetch_add(count, Relaxed);
        let sent = self.send_parts(events).await;
        self.metrics.in_flight.fetch_sub(count, Relaxed);
        sent.map(|()| accounts)
    }

    /// Sends events, and halves of those among which one is refused, in their order.
    async fn send_parts(&self, events: Vec<Event>) -> Result<(), DeliveryError> {
        let (mut parts, accepted_before) = (vec![events], self.metrics.accepted());
        while let Some(part) = parts.pop() {
            match self.attempt(part, accepted_before).await? {
                Attempted::Done => {}
                Attempted::Refused(mut first) => {
                    let second = first.split_off(first.len() / 2);
                    parts.extend([second, first]);
                }
                Attempted::Stopped => break,
            }
        }
        Ok(())
    }

    /// Tries until all events are accepted, one is refused, or a stop is requested. `accepted_before` is the number of events that
    /// were accepted when the batch was first sent.
    async fn attempt(
        &self,
        mut events: Vec<Event>,
        accepted_before: u64,
    ) -> Result<Attempted, DeliveryError> {
        let (mut backoff, mut refusals) = (self.backoff(), 0);
        while !self.stop.is_requested() {
            let sent = self.send(&events).await;
            crash_point("delivery/sent");
            self.count_rows();
            self.metrics.record_failure(sent.as_ref().err());
            let Err(mut failure) = sent else {
                self.accept(&events, |_| true);
                return Ok(Attempted::Done);
            };
            self.accept(&events, |event| failure.accepted.contains(&event.position()));
            events.retain(|event| !failure.accepted.contains(&event.position()));
            if events.is_empty() {
                return Ok(Attempted::Done);
            }
            let is_refused = matches!(failure.kind, FailureKind::Refused | FailureKind::Declined);
            if is_refused && events.len() > 1 {
                return Ok(Attempted::Refused(events));
            }
            refusals += u32::from(is_refused);
            if is_refused && refusals >= self.options.max_refusals {
                let is_of_event = failure.kind == FailureKind::Refused
                    || self.metrics.accepted() > accepted_before;
                if !is_of_event {
                    failure.reason += ALL_REFUSED;
                    self.metrics.note(&failure);
                } else if self.set_aside(&events[0], refusals, &failure).await {
                    return Ok(Attempted::Done);
                }
            }
            let wait = self.wait_after(&failure, &mut backoff, &self.stop);
            if is_refused { self.parked.during(wait).await? } else { wait.await? }
        }
        Ok(Attempted::Stopped)
    }

    /// Sends events when fewer batches than allowed are being sent.
    async fn send(&self, events: &[Event]) -> Result<(), SendFailure> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        self.sink.send(events).await
    }

    /// Acknowledges the accepted events.
    fn accept(&self, events: &[Event], is_accepted: impl Fn(&Event) -> bool) {
        let accepted: Vec<&Event> = events.iter().filter(|event| is_accepted(event)).collect();
        self.metrics.record_accepted(&accepted);
        self.acks.acknowledge(accepted.iter().map(|event| event.position()));
    }

    /// Writes a refused event to the dead letters, and acknowledges it. Whether that is done.
    async fn set_aside(&self, event: &Event, refusals: u32, failure: &SendFailure) -> bool {
        let Some(dead_letters) = &self.dead_letters else { return false };
        let written = dead_letters.write(event, refusals, &failure.reason).await;
        let skipped = match written {
            Ok(()) => self.sink.skip(event).await.map_err(|failure| failure.reason),
            Err(error) => Err(error.to_string()),
        };
        match skipped {
            Ok(()) => {
                crash_point("delivery/set-aside");
                let id = event.id();
                tracing::debug!(target: "wireproof::delivery", id, "an event is set aside");
                self.metrics.set_aside.fetch_add(1, Relaxed);
                self.acks.acknowledge([event.position()]);
                true
            }
            Err(error) => {
                let reason = format!("{}; {error}", failure.reason);
                self.metrics.record_failure(Some(&SendFailure::temporary(reason)));
                false
            }
        }
    }

    /// Waits before the next attempt, or until a stop is requested.
    async fn wait_after(
        &self,
        failure: &SendFailure,
        backoff: &mut Backoff,
        stop: &StopSignal,
    ) -> Result<(), DeliveryError> {
        let requested = match failure.kind {
            FailureKind::Fatal => return Err(DeliveryError::Sink(failure.clone())),
            FailureKind::Temporary(requested) => requested,
            FailureKind::Refused | FailureKind::Declined => Duration::ZERO,
        };
        tokio::select! {
            () = stop.requested() => {}
            () = sleep(backoff.next_delay(requested)) => {}
        }
        Ok(())
    }

    async fn maintain(&self) -> Result<(), DeliveryError> {
        match self.sink.maintain().await {
            Err(failure) if failure.kind == FailureKind::Fatal => Err(DeliveryError::Sink(failure)),
            Err(failure) => {
                self.metrics.record_failure(Some(&failure));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn count_rows(&self) {
        let rows = self.sink.rows().map_or(0, |rows| rows.saturating_add(1));
        self.metrics.rows.fetch_max(rows, Relaxed);
    }

    fn backoff(&self) -> Backoff {
        Backoff::new(self.options.backoff, Jitter::new())
    }
}

/// The message about a refusal while nothing is accepted.
const ALL_REFUSED: &str =
    "; nothing else was accepted since, so the address may be wrong: the event is kept";

/// Number, and size in bytes, of the events at which none is read although the next batches are not full.
const MAX_WAITING_EVENTS: usize = 16_384;
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Maximum number of parked batches while others are sent.
const MAX_PARKED: usize = 64;

const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
