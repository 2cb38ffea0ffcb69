//! Acknowledgements: the cursor that follows from them, and the bound on events in flight.
//!
//! Events are delivered in batches, and a batch is complete when all of its events are acknowledged. Then
//! its tickets are returned to the [`AckTracker`] and its permits to the [`InFlightLimit`]. An event that is
//! never acknowledged holds back the cursor, but no event after it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use tokio::sync::Notify;
use verify::sync::AccountState;

use super::error::{FirstError, RunError};
use super::feed::Upstream;
use super::local_clock::LocalClock;
use super::more_hosts::{AddedHost, HostRole};
use crate::hosts::HostId;
use crate::http::Url;

/// Acknowledges one event: the cursor may move past it.
///
/// An event may be acknowledged at any time and from any thread. Until then it is in flight and counts
/// towards [`FlowLimits`](super::FlowLimits): a handler that collects events must acknowledge them every few
/// thousand events, or no more are read.
///
/// Dropping an `Ack` without using it ends the run with an error, as the event would be lost silently.
#[must_use = "an event that is not acknowledged ends the run"]
#[derive(Debug)]
pub struct Ack {
    batch: Arc<Batch>,
    /// The index of the event's ticket; `None` for a resynced repository, which has none.
    ticket: Option<usize>,
    is_used: bool,
}

impl Ack {
    /// Acknowledges the event.
    pub fn done(mut self) {
        self.is_used = true;
    }

    /// Acknowledges the event without counting it towards [`Options::max_events`](super::Options).
    pub fn skip(mut self) {
        self.is_used = true;
        if self.ticket.is_some() {
            self.batch.skipped.fetch_add(1, Relaxed);
        }
    }
}

impl Drop for Ack {
    fn drop(&mut self) {
        if self.is_used { self.batch.complete_one() } else { self.batch.fail(self.ticket) }
    }
}

/// The stream of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FollowedStream {
    /// Its name, under which its cursor is stored.
    pub(super) name: String,
    /// The server, if the host speaks only for the accounts on it.
    pub(super) pds: Option<Url>,
}

/// The state that all parts of a run share.
#[derive(Debug)]
pub(super) struct RunState {
    streams: RwLock<Vec<FollowedStream>>,
    has_pds: AtomicBool,
    tracker: Mutex<AckTracker>,
    pub(super) in_flight: InFlightLimit,
    pub(super) failure: FirstError,
    pub(super) clock: LocalClock,
    /// Acknowledged events of complete batches.
    acked: AtomicUsize,
    /// Events that will not be delivered.
    abandoned: AtomicUsize,
    pub(super) checkpoint: CheckpointSignal,
    /// Notified when a batch is complete or failed.
    pub(super) progress: Notify,
}

impl RunState {
    pub(super) fn new(
        streams: Vec<String>,
        tracker: AckTracker,
        in_flight: InFlightLimit,
    ) -> Arc<Self> {
        let (failure, clock, checkpoint, progress, acked, abandoned) = Default::default();
        let tracker = Mutex::new(tracker);
        let streams = streams.into_iter().map(|name| FollowedStream { name, pds: None });
        let streams = RwLock::new(streams.collect());
        Arc::new(Self {
            streams,
            has_pds: AtomicBool::new(false),
            tracker,
            in_flight,
            failure,
            clock,
            acked,
            abandoned,
            checkpoint,
            progress,
        })
    }

    pub(super) fn tracker(&self) -> MutexGuard<'_, AckTracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the stream of a host that was added, with the next number.
    pub(super) fn add_stream(&self, added: &AddedHost, cursor: Option<u64>) {
        let name = Upstream::new(added.url.clone()).stream_name();
        let pds = (added.role == HostRole::Pds).then(|| added.url.clone());
        self.has_pds.fetch_or(pds.is_some(), AcqRel);
        self.tracker().add_host(cursor);
        self.streams
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(FollowedStream { name, pds });
    }

    /// Whether a host speaks only for the accounts on it.
    pub(super) fn has_pds(&self) -> bool {
        self.has_pds.load(Acquire)
    }

    /// The server, if this host speaks only for the accounts on it.
    pub(super) fn pds(&self, host: HostId) -> Option<Url> {
        self.streams().get(host.0).and_then(|stream| stream.pds.clone())
    }

    /// The streams of the hosts, by number.
    pub(super) fn streams(&self) -> RwLockReadGuard<'_, Vec<FollowedStream>> {
        self.streams.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records events that will not be delivered.
    pub(super) fn abandon(&self, events: usize) {
        self.abandoned.fetch_add(events, AcqRel);
    }

    /// The number of events that may still be acknowledged.
    pub(super) fn outstanding(&self) -> usize {
        self.tracker().outstanding().saturating_sub(self.abandoned.load(Acquire))
    }

    /// The number of acknowledged events of complete batches.
    pub(super) fn acked(&self) -> usize {
        self.acked.load(Acquire)
    }
}

/// Events that were delivered together.
#[derive(Debug)]
pub(super) struct Batch {
    run: Arc<RunState>,
    tickets: Box<[Ticket]>,
    bytes: usize,
    /// The hashed accounts of the events.
    accounts: Box<[u64]>,
    /// The states of accounts that changed with these events.
    states: Mutex<ChangedStates>,
    /// One per event, and one for the dispatcher.
    open: AtomicUsize,
    /// Events that were acknowledged by [`Ack::skip`].
    skipped: AtomicUsize,
}

/// Changed states of accounts, with the accounts' hashes.
pub(super) type ChangedStates = Vec<(u64, Box<str>, AccountState)>;

impl Batch {
    /// A batch of events with these tickets and total size. It stays open until [`close`](Self::close).
    pub(super) fn open(
        run: &Arc<RunState>,
        tickets: Box<[Ticket]>,
        bytes: usize,
        accounts: Box<[u64]>,
    ) -> Arc<Self> {
        let (open, skipped) = (AtomicUsize::new(1), AtomicUsize::new(0));
        let (run, states) = (run.clone(), Mutex::default());
        Arc::new(Self { run, tickets, bytes, accounts, states, open, skipped })
    }

    /// The acknowledgement for the event with the ticket at this index.
    pub(super) fn ack(self: &Arc<Self>, ticket: Option<usize>) -> Ack {
        self.open.fetch_add(1, Relaxed);
        Ack { batch: self.clone(), ticket, is_used: false }
    }

    /// Closes the batch: all events are delivered, and these states follow from them.
    pub(super) fn close(&self, states: ChangedStates) {
        *self.states() = states;
        self.complete_one();
    }

    /// Whether all events are acknowledged.
    pub(super) fn is_complete(&self) -> bool {
        self.open.load(Acquire) == 0
    }

    pub(super) fn accounts(&self) -> &[u64] {
        &self.accounts
    }

    /// Takes the changed states out.
    pub(super) fn take_states(&self) -> ChangedStates {
        std::mem::take(&mut *self.states())
    }

    fn states(&self) -> MutexGuard<'_, ChangedStates> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete_one(&self) {
        if self.open.fetch_sub(1, AcqRel) != 1 {
            return;
        }
        let mut tracker = self.run.tracker();
        self.tickets.iter().for_each(|ticket| tracker.ack(*ticket));
        drop(tracker);
        let count = self.tickets.len();
        let before = self.run.acked.fetch_add(count, AcqRel);
        self.run.in_flight.release(count, self.bytes, self.skipped.load(Relaxed));
        self.run.checkpoint.acked(before + count);
        self.run.progress.notify_one();
    }

    /// Fails the run for a dropped event. The batch stays open, so the cursor never moves past it.
    #[cold]
    fn fail(&self, ticket: Option<usize>) {
        let ticket = ticket.and_then(|at| self.tickets.get(at));
        let streams = self.run.streams();
        let stream = ticket.and_then(|ticket| streams.get(ticket.host.0));
        let stream = stream.map(|stream| stream.name.clone()).unwrap_or_default();
        drop(streams);
        let seq = ticket.and_then(|ticket| self.run.tracker().seq(*ticket));
        self.run.failure.set(RunError::Unacknowledged { stream, seq });
        self.run.progress.notify_one();
    }
}

/// Derives the cursors of the hosts from the events that are not acknowledged yet.
///
/// Every event takes a ticket on arrival and returns it when it is acknowledged, in any order. The cursor of
/// a host is the last sequence number before its oldest outstanding ticket:
///
/// ```text
/// seq           101  102  105  106        cursor 102: 105 is outstanding, 106 comes after it
/// ticket          0    1    2    3
/// outstanding     ·    ·    ×    ·
/// ```
///
/// Events are ordered by arrival, not by `seq`, as a host may reset its sequence. An event whose number is not above the
/// outstanding ones also holds the cursor below its own number: a host that is asked for the events after a higher one
/// would not send it again. Memory is proportional to the number of outstanding tickets, whatever came after the oldest.
#[derive(Debug)]
pub(super) struct AckTracker {
    hosts: Vec<HostTickets>,
    next_number: u64,
}

/// An event between arrival and acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ticket {
    host: HostId,
    number: u64,
}

#[derive(Debug, Default)]
struct HostTickets {
    /// Whether an event with a sequence number has arrived since the run or the sequence began.
    is_started: bool,
    /// Whether the stream was opened live, and no event has arrived yet: its place has no number, and the cursor is the
    /// oldest event's.
    awaits_first: bool,
    /// The cursor when no ticket is outstanding.
    newest: Option<u64>,
    outstanding: BTreeMap<u64, Outstanding>,
    /// The highest sequence number since no ticket was outstanding.
    highest: Option<u64>,
    /// The outstanding tickets of events that were not above it.
    regressed: BTreeSet<u64>,
}

/// An outstanding ticket.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    /// The cursor once everything before is acknowledged.
    cursor_before: Option<u64>,
    seq: Option<u64>,
}

impl HostTickets {
    fn cursor(&self) -> Option<u64> {
        let oldest = self.outstanding.first_key_value();
        let cursor = oldest.map_or(self.newest, |(_, oldest)| oldest.cursor_before);
        let regressed = self.regressed.iter().filter_map(|number| self.outstanding.get(number));
        regressed.map(|ticket| ticket.cursor_before).fold(cursor, Option::min)
    }
}

/// The cursor of the oldest event of a host.
const OLDEST: u64 = 0;

impl AckTracker {
    /// No outstanding tickets, and these cursors.
    pub(super) fn new(cursors: impl IntoIterator<Item = Option<u64>>) -> Self {
        let host = |newest| HostTickets { newest, ..HostTickets::default() };
        Self { hosts: cursors.into_iter().map(host).collect(), next_number: 0 }
    }

    /// Adds a host with this cursor and the next number.
    fn add_host(&mut self, cursor: Option<u64>) {
        self.hosts.push(HostTickets { newest: cursor, ..HostTickets::default() });
    }

    /// Records that a stream was opened live. Without another cursor, a run that ends before its first event leaves the
    /// cursor of the oldest one.
    pub(super) fn open_live(&mut self, host: HostId) {
        let host = self.host_mut(host);
        host.awaits_first = !host.is_started && host.newest.is_none();
    }

    /// Starts a stream with its first event: the cursor is before it unless an earlier run left one.
    pub(super) fn start(&mut self, host: HostId, seq: u64) {
        let host = self.host_mut(host);
        let before = *host.newest.get_or_insert(seq.saturating_sub(1));
        (host.is_started, host.awaits_first) = (true, false);
        for ticket in host.outstanding.values_mut() {
            ticket.cursor_before.get_or_insert(before);
        }
    }

    /// The ticket of an event that arrived from `host`; without `seq` it does not move the cursor.
    pub(super) fn track(&mut self, host: HostId, seq: Option<u64>) -> Ticket {
        let number = self.next_number;
        self.next_number += 1;
        let tickets = self.host_mut(host);
        let mut cursor_before = tickets.newest;
        if tickets.outstanding.is_empty() {
            tickets.highest = tickets.newest;
        }
        if seq.is_some() && seq <= tickets.highest {
            cursor_before = cursor_before.min(seq.map(|seq| seq.saturating_sub(1)));
            tickets.regressed.insert(number);
        }
        tickets.highest = tickets.highest.max(seq);
        tickets.outstanding.insert(number, Outstanding { cursor_before, seq });
        tickets.newest = seq.or(tickets.newest);
        Ticket { host, number }
    }

    /// Acknowledges the event.
    pub(super) fn ack(&mut self, ticket: Ticket) {
        let host = self.host_mut(ticket.host);
        host.outstanding.remove(&ticket.number);
        host.regressed.remove(&ticket.number);
    }

    /// Voids the cursor of a host that has reset its sequence, until an event that arrives from now on is
    /// acknowledged, and all before it.
    pub(super) fn reset(&mut self, host: HostId) {
        let host = self.host_mut(host);
        (host.newest, host.highest) = (None, None);
        (host.is_started, host.awaits_first) = (false, false);
        host.outstanding.values_mut().for_each(|ticket| ticket.cursor_before = None);
    }

    /// The cursors of the hosts, in their order.
    pub(super) fn cursors(&self) -> impl Iterator<Item = Option<u64>> {
        self.hosts.iter().map(HostTickets::cursor)
    }

    /// The cursors of the hosts that have started; `None` for the others.
    pub(super) fn started_cursors(&self) -> impl Iterator<Item = Option<u64>> {
        self.hosts.iter().map(|host| {
            if host.awaits_first { Some(OLDEST) } else { host.cursor().filter(|_| host.is_started) }
        })
    }

    /// The sequence number of an outstanding event.
    fn seq(&self, ticket: Ticket) -> Option<u64> {
        self.hosts.get(ticket.host.0)?.outstanding.get(&ticket.number)?.seq
    }

    /// The number of outstanding tickets.
    pub(super) fn outstanding(&self) -> usize {
        self.hosts.iter().map(|host| host.outstanding.len()).sum()
    }

    fn host_mut(&mut self, host: HostId) -> &mut HostTickets {
        let at = host.0;
        if at >= self.hosts.len() {
            self.hosts.resize_with(at + 1, HostTickets::default);
        }
        &mut self.hosts[at]
    }
}

/// Bounded in-flight accounting: permits for events and bytes, and a budget of events for the whole run.
/// One task acquires, many threads release.
#[derive(Debug)]
pub(super) struct InFlightLimit {
    max_events: usize,
    max_bytes: usize,
    events: AtomicUsize,
    bytes: AtomicUsize,
    /// The number of events that may still be acquired.
    budget: AtomicU64,
    released: Notify,
    spent: Notify,
}

impl InFlightLimit {
    pub(super) fn new(max_events: usize, max_bytes: usize, budget: Option<u64>) -> Self {
        let (events, bytes, released, spent) = Default::default();
        let budget = AtomicU64::new(budget.unwrap_or(u64::MAX));
        Self { max_events, max_bytes, events, bytes, budget, released, spent }
    }

    /// Acquires a permit for one event, if there is one. An event longer than the limit is admitted alone.
    pub(super) fn try_acquire(&self, bytes: usize) -> bool {
        // A release restores the budget before it decrements the count.
        let events = self.events.load(Acquire);
        let has_permit = events < self.max_events && self.budget.load(Relaxed) > 0;
        let fits = events == 0 || self.bytes().saturating_add(bytes) <= self.max_bytes;
        if !has_permit || !fits {
            return false;
        }
        self.budget.fetch_sub(1, Relaxed);
        self.events.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
        true
    }

    /// Waits for a permit for one event.
    pub(super) async fn acquire(&self, bytes: usize) {
        while !self.try_acquire(bytes) {
            // A release since the attempt has left a permit in `Notify`.
            self.released.notified().await;
        }
    }

    /// Releases the permits of these events, of which `skipped` do not count towards the budget.
    pub(super) fn release(&self, events: usize, bytes: usize, skipped: usize) {
        self.budget.fetch_add(skipped as u64, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
        self.events.fetch_sub(events, Release);
        self.released.notify_one();
        self.spent.notify_one();
    }

    /// Waits until the budget is spent and no event is in flight. For one waiter.
    pub(super) async fn spent(&self) {
        while self.events.load(Acquire) > 0 || self.budget.load(Relaxed) > 0 {
            self.spent.notified().await;
        }
    }

    /// The number of events in flight.
    pub(super) fn events(&self) -> usize {
        self.events.load(Relaxed)
    }

    /// The number of bytes in flight.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }
}

/// Wakes the [`Checkpointer`](super::checkpoint::Checkpointer).
#[derive(Debug, Default)]
pub(super) struct CheckpointSignal {
    state: Mutex<SignalState>,
    changed: Condvar,
    is_written: Notify,
}

#[derive(Debug, Default)]
struct SignalState {
    is_due: bool,
    is_final: bool,
    /// The number of acknowledged events at which a checkpoint is due.
    due_at: usize,
    /// The number of requests by [`CheckpointSignal::write_now`].
    requests: u64,
    /// The requests that a written checkpoint has served.
    served: u64,
}

/// Why a checkpoint is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CheckpointRequest {
    pub(super) is_final: bool,
    /// The number of requests that it serves.
    requests: u64,
}

impl CheckpointSignal {
    /// Reports the number of acknowledged events.
    pub(super) fn acked(&self, acked: usize) {
        self.change(|state| state.is_due |= acked >= state.due_at);
    }

    /// Requests the final checkpoint.
    pub(super) fn request_final(&self) {
        self.change(|state| state.is_final = true);
    }

    /// Requests a checkpoint, and waits until it is written. For one waiter.
    pub(super) async fn write_now(&self) {
        let mut number = 0;
        self.change(|state| {
            state.is_due = true;
            state.requests += 1;
            number = state.requests;
        });
        while self.lock().served < number {
            self.is_written.notified().await;
        }
    }

    /// Reports that the checkpoint is written.
    pub(super) fn written(&self, request: CheckpointRequest) {
        self.lock().served = request.requests;
        self.is_written.notify_one();
    }

    /// Waits for the next checkpoint: until `due_at` events are acknowledged, `interval` has passed, or one
    /// is requested.
    pub(super) fn wait(&self, due_at: usize, interval: Duration) -> CheckpointRequest {
        let mut state = self.lock();
        state.due_at = due_at;
        let is_idle = |state: &mut SignalState| !state.is_due && !state.is_final;
        let waited = self.changed.wait_timeout_while(state, interval, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.is_due = false;
        CheckpointRequest { is_final: state.is_final, requests: state.requests }
    }

    fn lock(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut SignalState)) {
        let mut state = self.lock();
        change(&mut state);
        if state.is_due || state.is_final {
            self.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
