//! Queues of a worker: the inbox of events and messages, the bound on all inboxes, and the events parked until a key is
//! known or a repository is resynced.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use crypto::SeededState;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use verify::sync::AccountKey;

use super::ack::Ticket;
use super::feed_item::ReceivedFrame;
use super::flow_limits::FlowLimits;
use super::keys::{KeyError, host_domain};
use super::resynced_repo::{ResyncError, ResyncResult};
use super::status::StatusError;

/// An event between arrival and delivery.
#[derive(Clone, Debug)]
pub(super) struct QueuedEvent {
    pub(super) received: ReceivedFrame,
    pub(super) ticket: Ticket,
    /// The hashed account, by [`AccountHasher`].
    pub(super) account: u64,
    /// The result of the last key lookup since the event arrived.
    pub(super) looked_up: Option<Arc<LookedUpKey>>,
    /// Whether the event has awaited the resync of its account.
    pub(super) has_waited: bool,
}

/// The result of a key lookup.
#[derive(Clone, Debug)]
pub(super) struct LookedUpKey {
    pub(super) key: Result<AccountKey, KeyError>,
    /// Whether another lookup is useless: this one refreshed a cached key.
    pub(super) is_final: bool,
}

impl QueuedEvent {
    /// Why the key is unknown, if it was looked up.
    pub(super) fn key_error(&self) -> Option<&KeyError> {
        self.looked_up.as_ref()?.key.as_ref().err()
    }

    /// The size in bytes.
    pub(super) fn len(&self) -> usize {
        self.received.frame.len()
    }
}

/// Hashes accounts with a secret of the run: an attacker who chooses DIDs can choose neither their worker
/// nor a collision. Accounts that collide only wait for each other.
#[derive(Clone, Debug)]
pub(super) struct AccountHasher(SeededState);

impl Default for AccountHasher {
    fn default() -> Self {
        Self::new(random_seed())
    }
}

impl AccountHasher {
    /// Hashes with this secret.
    pub(super) fn new(seed: [u8; 16]) -> Self {
        Self(SeededState::new(seed))
    }

    /// The hash of an account; one for all events without account.
    pub(super) fn hash(&self, did: Option<&str>) -> u64 {
        did.map_or(0, |did| self.0.hash_one(did))
    }
}

/// A secret seed for a hash table.
pub(super) fn random_seed() -> [u8; 16] {
    let random = RandomState::new();
    let halves = [random.hash_one(0), random.hash_one(1)].map(u64::to_le_bytes);
    let mut seed = [0; 16];
    seed.copy_from_slice(halves.as_flattened());
    seed
}

/// The worker of a hashed account.
pub(super) fn worker_of(account: u64, workers: usize) -> usize {
    (account % workers as u64) as usize
}

/// Bounds how far reading is ahead of delivery, in bytes: of the events in all inboxes, and of events that await keys
/// of the directory. One task waits, workers take and park.
#[derive(Debug)]
pub(super) struct ReadAhead {
    queued: BoundedBytes,
    awaiting_directory: BoundedBytes,
    /// Notified when half of a bound is free again.
    drained: Notify,
}

#[derive(Debug)]
struct BoundedBytes {
    max: usize,
    bytes: AtomicUsize,
}

impl ReadAhead {
    /// The bounds of a run with this number of workers.
    pub(super) fn new(limits: &FlowLimits, workers: usize) -> Self {
        let bound = |max: usize| BoundedBytes { max: max.max(1), bytes: AtomicUsize::new(0) };
        Self {
            queued: bound(limits.max_queued_bytes.saturating_mul(workers)),
            awaiting_directory: bound(limits.max_directory_key_bytes),
            drained: Notify::new(),
        }
    }

    /// At a bound, waits until half of it is free, so that a wakeup is worth its cost.
    pub(super) async fn wait(&self) {
        for bound in [&self.queued, &self.awaiting_directory] {
            if bound.bytes() < bound.max {
                continue;
            }
            while bound.bytes() > bound.max / 2 {
                // If half became free since the comparison, `Notify` has a permit.
                self.drained.notified().await;
            }
        }
    }

    fn subtract(&self, bound: &BoundedBytes, bytes: usize) {
        let before = bound.bytes.fetch_sub(bytes, Relaxed);
        let half = bound.max / 2;
        if before > half && before - bytes <= half {
            self.drained.notify_one();
        }
    }
}

impl BoundedBytes {
    fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Relaxed);
    }
}

/// The inbox of a worker. Many send, one receives; [`ReadAhead`] bounds its length.
#[derive(Debug)]
pub(super) struct Inbox {
    state: Mutex<InboxState>,
    changed: Condvar,
    read_ahead: Arc<ReadAhead>,
    /// Bytes of the worker's events that await keys of the directory.
    awaiting_directory: AtomicUsize,
}

#[derive(Debug, Default)]
struct InboxState {
    events: VecDeque<QueuedEvent>,
    messages: Vec<WorkerMessage>,
    is_closed: bool,
    /// Whether anything changed since the last receive.
    is_changed: bool,
    /// Whether the worker sleeps.
    is_waiting: bool,
}

/// A message to a worker, other than an event.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    /// The account was desynchronized before the run, or its resync is requested.
    Desynchronized(u64, Box<str>),
    /// The account will be resynced, at the latest at its next event.
    ResyncAnnounced(u64),
    /// The lookup of this number, of the account's key, ended.
    KeyLookedUp { account: u64, lookup: u64, key: Arc<LookedUpKey> },
    /// A resync of the account failed, and is repeated after a delay.
    ResyncDelayed(u64, ResyncError, Duration),
    /// The resync of the account ended.
    Resynced(u64, ResyncResult),
    /// The lookup of the account's status ended.
    StatusLookedUp(u64, Result<bool, StatusError>),
    /// The time for deliveries is over: abandon undelivered events.
    Stop,
}

/// How long a receive waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitTimeout {
    /// Not at all.
    Zero,
    After(Duration),
    Never,
}

/// An inbox after a receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InboxStatus {
    /// Whether it is closed for events.
    pub(super) is_closed: bool,
    /// Whether it has no more events.
    pub(super) is_empty: bool,
}

impl Inbox {
    /// An empty inbox under this bound.
    pub(super) fn new(read_ahead: Arc<ReadAhead>) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            read_ahead,
            awaiting_directory: AtomicUsize::new(0),
        }
    }

    /// Appends events, in order.
    pub(super) fn push(&self, events: &mut Vec<QueuedEvent>) {
        if !events.is_empty() {
            self.read_ahead.queued.add(events.iter().map(QueuedEvent::len).sum());
            self.change(|state| state.events.extend(events.drain(..)));
        }
    }

    /// The number of events.
    pub(super) fn len(&self) -> usize {
        self.lock().events.len()
    }

    /// Sends a message.
    pub(super) fn send(&self, message: WorkerMessage) {
        self.change(|state| state.messages.push(message));
    }

    /// Closes the inbox for events.
    pub(super) fn close(&self) {
        self.change(|state| state.is_closed = true);
    }

    /// Takes all messages out, and events until there are `max_events`; waits if there is nothing.
    pub(super) fn receive(
        &self,
        events: &mut VecDeque<QueuedEvent>,
        messages: &mut Vec<WorkerMessage>,
        max_events: usize,
        timeout: WaitTimeout,
    ) -> InboxStatus {
        let mut state = self.lock();
        if timeout != WaitTimeout::Zero && !state.is_changed {
            state = self.wait(state, timeout);
        }
        let before = events.len();
        let count = max_events.saturating_sub(before).min(state.events.len());
        events.extend(state.events.drain(..count));
        messages.append(&mut state.messages);
        let is_empty = state.events.is_empty();
        // Nothing waits for the remaining events.
        state.is_changed = !is_empty;
        let status = InboxStatus { is_closed: state.is_closed, is_empty };
        drop(state);
        let taken = events.range(before..).map(QueuedEvent::len).sum();
        self.read_ahead.subtract(&self.read_ahead.queued, taken);
        status
    }

    /// Reports the bytes of the worker's events that await keys of the directory. Called by the worker alone.
    pub(super) fn set_awaiting_directory(&self, bytes: usize) {
        let before = self.awaiting_directory.swap(bytes, Relaxed);
        let bound = &self.read_ahead.awaiting_directory;
        match bytes.checked_sub(before) {
            Some(more) => bound.add(more),
            None => self.read_ahead.subtract(bound, before - bytes),
        }
    }

    /// Waits once: after a spurious wakeup the worker loop waits again.
    fn wait<'s>(
        &self,
        mut state: MutexGuard<'s, InboxState>,
        timeout: WaitTimeout,
    ) -> MutexGuard<'s, InboxState> {
        state.is_waiting = true;
        let mut state = match timeout {
            WaitTimeout::After(time) => {
                let waited = self.changed.wait_timeout(state, time);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            _ => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
        state.is_waiting = false;
        state
    }

    fn change(&self, change: impl FnOnce(&mut InboxState)) {
        let mut state = self.lock();
        change(&mut state);
        state.is_changed = true;
        let is_waiting = state.is_waiting;
        drop(state);
        if is_waiting {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parked accounts of a worker, with their events in order.
#[derive(Debug)]
pub(super) struct ParkedEvents {
    limits: ParkedLimits,
    accounts: HashMap<u64, ParkedAccount>,
    /// Load of the accounts that await a repository.
    awaiting_repo: EventLoad,
    /// Load of the accounts that await a key.
    awaiting_key: EventLoad,
    /// Load of those whose key is at a host of their own.
    awaiting_host: EventLoad,
    /// Number of events of those, by registrable domain of the host.
    domains: HashMap<Box<str>, usize>,
    /// Number of accounts that await a key.
    key_accounts: usize,
    /// Number of key lookups so far.
    lookups: u64,
}

/// Limits on parked events. Events that await a key of the directory are not released at a limit: [`ReadAhead`] stops
/// reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParkedLimits {
    /// For one account that awaits a repository, or a key at a host.
    account: EventLoad,
    /// For all accounts that await a repository.
    awaiting_repo: EventLoad,
    /// For all accounts that await a key at a host.
    awaiting_host: EventLoad,
    /// Number of events for all accounts that await a key at hosts of one registrable domain.
    domain_events: usize,
}

/// A number of events, and their size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EventLoad {
    events: usize,
    bytes: usize,
}

/// The reason that an account is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParkReason {
    Key,
    /// A repository, or the status at the account's server.
    Repository,
}

#[derive(Debug)]
struct ParkedAccount {
    wait: Wait,
    since: Instant,
    events: Vec<QueuedEvent>,
    load: EventLoad,
}

#[derive(Debug)]
enum Wait {
    Key(KeyWait),
    Repository,
}

/// The wait for a key lookup.
#[derive(Debug)]
struct KeyWait {
    lookup: u64,
    /// The registrable domain of the host that is asked; `None` for the directory.
    domain: Option<Box<str>>,
    /// Dropped to cancel the lookup.
    _running: oneshot::Sender<Infallible>,
}

/// A key lookup to be started.
#[derive(Debug)]
pub(super) struct LookupHandle {
    /// Distinguishes its result from results of earlier lookups of the account.
    pub(super) number: u64,
    /// Completes when the account was released, and the result is no longer needed.
    pub(super) released: oneshot::Receiver<Infallible>,
}

impl ParkedAccount {
    fn reason(&self) -> ParkReason {
        match self.wait {
            Wait::Key(_) => ParkReason::Key,
            Wait::Repository => ParkReason::Repository,
        }
    }
}

impl ParkedLimits {
    /// The share of one worker.
    pub(super) fn per_worker(limits: &FlowLimits, workers: usize) -> Self {
        let share = |total: usize| total / workers.max(1);
        Self {
            account: EventLoad {
                events: limits.max_account_events,
                bytes: limits.max_account_bytes,
            },
            awaiting_repo: EventLoad {
                events: share(limits.max_held_events),
                bytes: share(limits.max_held_bytes),
            },
            awaiting_host: EventLoad {
                events: share(limits.max_host_key_events),
                bytes: share(limits.max_host_key_bytes),
            },
            domain_events: share(limits.max_domain_key_events),
        }
    }
}

impl ParkedEvents {
    pub(super) fn new(limits: ParkedLimits) -> Self {
        Self {
            limits,
            accounts: HashMap::default(),
            awaiting_repo: EventLoad::default(),
            awaiting_key: EventLoad::default(),
            awaiting_host: EventLoad::default(),
            domains: HashMap::default(),
            key_accounts: 0,
            lookups: 0,
        }
    }

    /// The reason that an account is parked, if it is.
    pub(super) fn reason(&self, account: u64) -> Option<ParkReason> {
        self.accounts.get(&account).map(ParkedAccount::reason)
    }

    /// Parks an account until its repository is resynced. One that is parked already keeps its reason.
    pub(super) fn park_for_repo(&mut self, account: u64, now: Instant) {
        self.park(account, Wait::Repository, now);
    }

    /// Parks an account, which must not be parked already, until its key is looked up.
    pub(super) fn park_for_key(&mut self, account: u64, did: &str, now: Instant) -> LookupHandle {
        let (running, released) = oneshot::channel();
        self.lookups += 1;
        let number = self.lookups;
        let domain = host_domain(did);
        self.park(account, Wait::Key(KeyWait { lookup: number, domain, _running: running }), now);
        LookupHandle { number, released }
    }

    fn park(&mut self, account: u64, wait: Wait, now: Instant) {
        if let Entry::Vacant(entry) = self.accounts.entry(account) {
            self.key_accounts += usize::from(matches!(wait, Wait::Key(_)));
            let events = Vec::new();
            let load = EventLoad::default();
            entry.insert(ParkedAccount { wait, since: now, events, load });
        }
    }

    /// Whether an account awaits the result of this key lookup.
    pub(super) fn awaits_lookup(&self, account: u64, lookup: u64) -> bool {
        let wait = self.accounts.get(&account).map(|parked| &parked.wait);
        matches!(wait, Some(Wait::Key(wait)) if wait.lookup == lookup)
    }

    /// Adds an event of a parked account. The exceeded limit if the account must be released now; events that
    /// are added before it is released come after the others.
    pub(super) fn push(&mut self, mut event: QueuedEvent) -> Option<KeyError> {
        let parked = self.accounts.get_mut(&event.account)?;
        // A parked event must not keep the whole receive buffer alive.
        event.received.frame = Bytes::copy_from_slice(&event.received.frame);
        let load = EventLoad { events: 1, bytes: event.len() };
        parked.events.push(event);
        parked.load.add(load);
        let exceeds_account = parked.load.exceeds(self.limits.account);
        let domain = match &parked.wait {
            Wait::Repository => {
                self.awaiting_repo.add(load);
                let exceeds = self.awaiting_repo.exceeds(self.limits.awaiting_repo);
                return (exceeds_account || exceeds).then_some(KeyError::TooManyEvents);
            }
            Wait::Key(wait) => wait.domain.as_deref(),
        };
        self.awaiting_key.add(load);
        let domain = domain?;
        self.awaiting_host.add(load);
        let of_domain = match self.domains.get_mut(domain) {
            Some(events) => events,
            None => self.domains.entry(domain.into()).or_default(),
        };
        *of_domain += 1;
        if exceeds_account {
            Some(KeyError::TooManyEvents)
        } else if *of_domain > self.limits.domain_events {
            Some(KeyError::TooManyOfDomain(domain.into()))
        } else {
            let exceeds = self.awaiting_host.exceeds(self.limits.awaiting_host);
            exceeds.then_some(KeyError::TooManyOfHosts)
        }
    }

    /// Releases an account, and returns its events in order. A key lookup for it is cancelled.
    pub(super) fn release(&mut self, account: u64) -> Vec<QueuedEvent> {
        let Some(parked) = self.accounts.remove(&account) else { return Vec::new() };
        match parked.wait {
            Wait::Repository => self.awaiting_repo.subtract(parked.load),
            Wait::Key(wait) => {
                self.awaiting_key.subtract(parked.load);
                self.key_accounts -= 1;
                if let Some(domain) = wait.domain {
                    self.awaiting_host.subtract(parked.load);
                    self.subtract_domain(&domain, parked.load.events);
                }
            }
        }
        parked.events
    }

    fn subtract_domain(&mut self, domain: &str, events: usize) {
        if let Some(of_domain) = self.domains.get_mut(domain) {
            *of_domain -= events;
            if *of_domain == 0 {
                self.domains.remove(domain);
            }
        }
    }

    /// The accounts that have awaited a repository for `max` or longer.
    pub(super) fn overdue(&self, max: Duration, now: Instant) -> Vec<u64> {
        let is_overdue = |parked: &ParkedAccount| {
            parked.reason() == ParkReason::Repository
                && now.saturating_duration_since(parked.since) >= max
        };
        self.accounts_where(is_overdue)
    }

    /// The number of parked events.
    pub(super) fn len(&self) -> usize {
        let (awaiting_key, awaiting_repo) = self.event_counts();
        awaiting_key + awaiting_repo
    }

    /// Size in bytes of the events that await keys of the directory.
    pub(super) fn directory_bytes(&self) -> usize {
        self.awaiting_key.bytes - self.awaiting_host.bytes
    }

    /// The numbers of events that await a key, and a repository.
    pub(super) fn event_counts(&self) -> (usize, usize) {
        (self.awaiting_key.events, self.awaiting_repo.events)
    }

    /// The accounts that are parked for this reason.
    pub(super) fn accounts(&self, reason: ParkReason) -> Vec<u64> {
        self.accounts_where(|parked| parked.reason() == reason)
    }

    /// The accounts that are `such`, in the order in which they were parked.
    fn accounts_where(&self, such: impl Fn(&ParkedAccount) -> bool) -> Vec<u64> {
        let found = self.accounts.iter().filter(|(_, parked)| such(parked));
        let mut found: Vec<_> = found.map(|(account, parked)| (parked.since, *account)).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, account)| account).collect()
    }

    /// The number of accounts that are parked for this reason.
    pub(super) fn account_count(&self, reason: ParkReason) -> usize {
        match reason {
            ParkReason::Key => self.key_accounts,
            ParkReason::Repository => self.accounts.len() - self.key_accounts,
        }
    }
}

impl EventLoad {
    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.bytes += other.bytes;
    }

    fn subtract(&mut self, other: Self) {
        self.events -= other.events;
        self.bytes -= other.bytes;
    }

    /// Whether the load is above `limit` in events or in bytes.
    fn exceeds(self, limit: Self) -> bool {
        self.events > limit.events || self.bytes > limit.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::SystemTime;

    use futures_util::FutureExt;

    use super::super::ack::AckTracker;
    use super::*;
    use crate::hosts::HostId;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn accounts_are_spread_over_the_workers_by_a_hash_that_each_run_has_for_itself() {
        let (one, other) = (AccountHasher::default(), AccountHasher::default());
        let dids: Vec<String> = (0..100).map(|number| format!("did:plc:{number}")).collect();
        let workers = |hasher: &AccountHasher| -> Vec<usize> {
            dids.iter().map(|did| worker_of(hasher.hash(Some(did)), 4)).collect()
        };
        assert!((0..4).all(|worker| workers(&one).contains(&worker)));
        assert_eq!(workers(&one), workers(&one));
        assert_ne!(workers(&one), workers(&other));
    }

    /// An inbox at whose bound, or with as many bytes that await the directory, nothing is read.
    fn inbox(max_bytes: usize) -> (Inbox, Arc<ReadAhead>) {
        let (max_queued_bytes, max_directory_key_bytes) = (max_bytes, max_bytes);
        let limits =
            FlowLimits { max_queued_bytes, max_directory_key_bytes, ..FlowLimits::default() };
        let read_ahead = Arc::new(ReadAhead::new(&limits, 1));
        (Inbox::new(Arc::clone(&read_ahead)), read_ahead)
    }

    /// Takes up to `max_events` out: their sequence numbers, and the status.
    fn take(inbox: &Inbox, max_events: usize) -> (Vec<u64>, InboxStatus) {
        let mut events = VecDeque::new();
        let status = inbox.receive(&mut events, &mut Vec::new(), max_events, WaitTimeout::Never);
        (seqs(events.into()), status)
    }

    #[test]
    fn what_is_left_in_an_inbox_is_received_in_order_and_without_a_wait() {
        let (inbox, _) = inbox(100);
        inbox.push(&mut (1..=3).map(|seq| event(1, seq, 1)).collect());
        inbox.close();
        let status = |is_empty| InboxStatus { is_closed: true, is_empty };
        assert_eq!((inbox.len(), take(&inbox, 2)), (3, (vec![1, 2], status(false))));
        assert_eq!((inbox.len(), take(&inbox, 2)), (1, (vec![3], status(true))));
    }

    #[test]
    fn a_receive_waits_for_an_event_no_longer_than_its_time() {
        let (inbox, _) = inbox(100);
        let (mut events, mut messages) = (VecDeque::new(), Vec::new());
        let wait = WaitTimeout::After(Duration::from_millis(1));
        let status = inbox.receive(&mut events, &mut messages, 1, wait);
        assert_eq!(status, InboxStatus { is_closed: false, is_empty: true });
        assert!(events.is_empty() && messages.is_empty());
    }

    #[test]
    fn reading_waits_at_the_bound_until_half_of_it_is_free() {
        let (inbox, read_ahead) = inbox(100);
        inbox.push(&mut vec![event(1, 1, 49), event(1, 2, 50)]);
        assert!(read_ahead.wait().now_or_never().is_some(), "below the bound");
        inbox.push(&mut vec![event(1, 3, 1)]);
        let mut waiting = pin!(read_ahead.wait());
        let mut goes_on = || waiting.as_mut().now_or_never().is_some();
        assert!(!goes_on());
        take(&inbox, 1);
        assert!(!goes_on(), "half of the bound and a byte");
        take(&inbox, 2);
        assert!(goes_on());
    }

    #[test]
    fn reading_waits_while_too_many_events_await_the_directory() {
        let (inbox, read_ahead) = inbox(100);
        inbox.set_awaiting_directory(99);
        assert!(read_ahead.wait().now_or_never().is_some(), "below the bound");
        inbox.set_awaiting_directory(100);
        let mut waiting = pin!(read_ahead.wait());
        let mut goes_on = || waiting.as_mut().now_or_never().is_some();
        assert!(!goes_on());
        inbox.push(&mut vec![event(1, 1, 100)]);
        take(&inbox, 1);
        assert!(!goes_on(), "room in the inbox is not enough");
        inbox.set_awaiting_directory(51);
        assert!(!goes_on(), "half of the bound and a byte");
        inbox.set_awaiting_directory(50);
        assert!(goes_on());
    }

    #[test]
    fn the_events_that_await_the_directory_are_those_of_no_host() {
        let mut parked = parked();
        let _lookup = parked.park_for_key(1, "did:plc:ewvi7nxzyoun6zhxrhs64oiz", Instant::now());
        let _other = await_key(&mut parked, 2, "a.test");
        for (account, len) in [(1, 7), (2, 20), (1, 3)] {
            parked.push(event(account, 1, len));
        }
        assert_eq!(parked.directory_bytes(), 10);
        parked.release(2);
        assert_eq!(parked.directory_bytes(), 10);
        parked.release(1);
        assert_eq!(parked.directory_bytes(), 0);
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken() {
        let (inbox, read_ahead) = inbox(10);
        inbox.push(&mut vec![event(1, 1, 10)]);
        let waiting = tokio::spawn(async move { read_ahead.wait().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        take(&inbox, 1);
        waiting.await.unwrap();
    }

    #[test]
    fn an_event_that_is_longer_than_the_bound_passes() {
        let (inbox, read_ahead) = inbox(10);
        inbox.push(&mut vec![event(1, 1, 1_000)]);
        assert_eq!(take(&inbox, 1).0, [1]);
        assert!(read_ahead.wait().now_or_never().is_some());
    }

    #[test]
    fn the_workers_share_the_limits_of_parked_events() {
        let limits = FlowLimits::default();
        let whole = ParkedLimits::per_worker(&limits, 1);
        let quarter = ParkedLimits::per_worker(&limits, 4);
        assert_eq!(whole.awaiting_repo.events, limits.max_held_events);
        assert_eq!(quarter.awaiting_repo.events, limits.max_held_events / 4);
        assert_eq!(quarter.awaiting_host.bytes, limits.max_host_key_bytes / 4);
        assert_eq!(quarter.account.events, whole.account.events, "an account has one worker");
    }

    fn parked() -> ParkedEvents {
        let account = EventLoad { events: 3, bytes: 100 };
        let awaiting_repo = EventLoad { events: 5, bytes: 1_000 };
        let (awaiting_host, domain_events) = (awaiting_repo, 4);
        let limits = ParkedLimits { account, awaiting_repo, awaiting_host, domain_events };
        ParkedEvents::new(limits)
    }

    /// Parks an account of this host until its key is known.
    fn await_key(parked: &mut ParkedEvents, account: u64, host: &str) -> LookupHandle {
        parked.park_for_key(account, &format!("did:web:{host}"), Instant::now())
    }

    fn event(account: u64, seq: u64, len: usize) -> QueuedEvent {
        let ticket = AckTracker::new([None]).track(HostId(0), Some(seq));
        let frame = vec![0; len].into();
        let mut received = ReceivedFrame::new(HostId(0), frame, SystemTime::UNIX_EPOCH);
        received.seq = Some(seq);
        QueuedEvent { received, ticket, account, looked_up: None, has_waited: false }
    }

    fn seqs(events: Vec<QueuedEvent>) -> Vec<u64> {
        events.into_iter().filter_map(|event| event.received.seq).collect()
    }

    #[test]
    fn parked_events_are_released_in_order_and_once() {
        let (mut parked, now) = (parked(), Instant::now());
        let _lookup = await_key(&mut parked, 1, "a.test");
        parked.park_for_repo(2, now);
        for (account, seq) in [(1, 10), (2, 11), (1, 12)] {
            assert_eq!(parked.push(event(account, seq, 1)), None);
        }
        assert_eq!((parked.len(), parked.event_counts()), (3, (2, 1)));
        let accounts = [ParkReason::Key, ParkReason::Repository].map(|r| parked.account_count(r));
        assert_eq!(accounts, [1, 1]);
        assert_eq!((parked.reason(1), parked.reason(3)), (Some(ParkReason::Key), None));
        assert_eq!((seqs(parked.release(1)), seqs(parked.release(1))), (vec![10, 12], vec![]));
        let counts = [ParkReason::Key, ParkReason::Repository].map(|r| parked.account_count(r));
        assert_eq!((counts, parked.event_counts()), ([0, 1], (0, 1)));
        assert_eq!(parked.awaiting_repo, EventLoad { events: 1, bytes: 1 });
    }

    #[test]
    fn a_parked_account_keeps_its_reason() {
        let mut parked = parked();
        let _lookup = await_key(&mut parked, 1, "a.test");
        parked.park_for_repo(1, Instant::now());
        let count = parked.account_count(ParkReason::Key);
        assert_eq!((parked.reason(1), count), (Some(ParkReason::Key), 1));
    }

    #[test]
    fn an_account_with_too_many_events_or_bytes_exceeds_its_limit() {
        let mut parked = parked();
        let _lookup = await_key(&mut parked, 1, "a.test");
        let many = [0, 1, 2, 3].map(|seq| parked.push(event(1, seq, 1)));
        assert_eq!(many, [None, None, None, Some(KeyError::TooManyEvents)]);
        parked.release(1);
        let _lookup = await_key(&mut parked, 2, "b.test");
        assert_eq!(parked.push(event(2, 9, 100)), None);
        assert_eq!(parked.push(event(2, 10, 1)), Some(KeyError::TooManyEvents));
    }

    #[test]
    fn the_events_that_await_keys_at_one_domain_and_at_all_hosts_have_limits() {
        let mut parked = parked();
        let hosts = ["a.one.test", "b.one.test", "two.test"];
        let _lookups: Vec<_> =
            (1..).zip(hosts).map(|(at, host)| await_key(&mut parked, at, host)).collect();
        let mut push = |account| parked.push(event(account, 1, 1));
        assert_eq!([1, 1, 2, 2].map(&mut push), [None, None, None, None]);
        assert_eq!(push(2), Some(KeyError::TooManyOfDomain("one.test".into())));
        assert_eq!(push(3), Some(KeyError::TooManyOfHosts), "five are the limit of all hosts");
        (1..=3).for_each(|account| drop(parked.release(account)));
        assert_eq!((parked.awaiting_host, parked.domains.len()), (EventLoad::default(), 0));
    }

    #[test]
    fn events_that_await_the_directory_are_not_limited_here() {
        let mut parked = parked();
        let _lookup = parked.park_for_key(1, "did:plc:ewvi7nxzyoun6zhxrhs64oiz", Instant::now());
        assert!((0..100).all(|seq| parked.push(event(1, seq, 100)).is_none()));
    }

    #[test]
    fn a_lookup_ends_with_the_release_and_is_told_from_the_next_one() {
        let mut parked = parked();
        let mut first = await_key(&mut parked, 1, "a.test");
        assert!(parked.awaits_lookup(1, first.number));
        assert_eq!(first.released.try_recv(), Err(oneshot::error::TryRecvError::Empty));
        parked.release(1);
        assert_eq!(first.released.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        let second = await_key(&mut parked, 1, "a.test");
        assert!(!parked.awaits_lookup(1, first.number) && parked.awaits_lookup(1, second.number));
    }

    #[test]
    fn the_events_that_await_repositories_have_a_limit_together() {
        let (mut parked, now) = (parked(), Instant::now());
        (1..=3).for_each(|account| parked.park_for_repo(account, now));
        let pushed = [1, 1, 2, 2, 3, 3].map(|account| parked.push(event(account, 1, 1)).is_some());
        assert_eq!(pushed, [false, false, false, false, false, true]);
    }

    #[test]
    fn only_an_account_that_awaits_a_repository_is_overdue() {
        let (mut parked, now) = (parked(), Instant::now());
        let _lookup = await_key(&mut parked, 1, "a.test");
        parked.park_for_repo(2, now);
        parked.park_for_repo(3, now + LONG);
        assert!(parked.overdue(LONG, now + LONG / 2).is_empty());
        assert_eq!(parked.overdue(LONG, now + LONG), [2]);
    }

    #[test]
    fn a_parked_event_owns_its_bytes() {
        let (mut parked, mut long) = (parked(), event(1, 1, 100));
        let whole = long.received.frame.clone();
        long.received.frame = whole.slice(10..20);
        parked.park_for_repo(1, Instant::now());
        parked.push(long);
        let kept = parked.release(1).remove(0).received.frame;
        assert_eq!(kept.len(), 10);
        assert!(!whole.as_ptr_range().contains(&kept.as_ptr()));
    }
}
