//! The state that an outbox, its writer thread and its consumers share: queued events, bounds, and acknowledgements.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use crate::database::{self, Consumers};
use crate::error::{OutboxError, OutboxFault};
use crate::event::{Event, NewEvent};
use crate::outbox_options::{Bound, Options};

/// Receives the result of storing an event.
pub(crate) type Completion = Box<dyn FnOnce(Result<(), OutboxError>) + Send>;

/// An event that waits for the next transaction.
pub(crate) struct Queued {
    pub(crate) event: NewEvent,
    pub(crate) done: Completion,
}

/// The next step of the writer.
pub(crate) struct Work {
    pub(crate) events: Vec<Queued>,
    /// The acknowledgements at this moment.
    pub(crate) consumers: Consumers,
    pub(crate) replies: Vec<SyncSender<Result<(), OutboxError>>>,
    /// Whether no further work is expected.
    pub(crate) is_ending: bool,
}

/// The content of the file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// Position of the oldest stored event; `next` if there is none.
    pub(crate) oldest: u64,
    pub(crate) next: u64,
    pub(crate) bytes: u64,
    /// When the oldest batch was stored, in microseconds since 1970.
    pub(crate) oldest_micros: Option<u64>,
}

/// Shared by all threads.
pub(crate) struct Shared {
    pub(crate) path: PathBuf,
    pub(crate) options: Options,
    state: Mutex<State>,
    /// Notified when there is work for the writer.
    work: Condvar,
    /// Notified when there may be room for events.
    room: Condvar,
    /// The next position, after every transaction that stored events.
    pub(crate) committed: watch::Sender<u64>,
    /// The last events, in batches: consumers that keep up do not read the file.
    recent: Mutex<Recent>,
    /// Whether the file has an account with a history.
    has_histories: AtomicBool,
}

pub(crate) struct State {
    queue: Vec<Queued>,
    queued_bytes: u64,
    /// Accounts whose records change by events that are not in the file yet, with the number of those events.
    changing: HashMap<Box<str>, usize>,
    pub(crate) extent: Extent,
    pub(crate) consumers: Consumers,
    /// Consumers in use, with their notifications of acknowledgements.
    pub(crate) attached: BTreeMap<Box<str>, Arc<Notify>>,
    /// Consumers that receive no events.
    pub(crate) paused: BTreeSet<Box<str>>,
    /// Since when there are acknowledgements that are not in the file.
    unsaved_since: Option<Instant>,
    replies: Vec<SyncSender<Result<(), OutboxError>>>,
    /// Number of callers that wait for room.
    waiting: usize,
    /// Number of failed transactions, and the error of the last transaction if it failed.
    failures: u64,
    pub(crate) last_error: Option<OutboxError>,
    pub(crate) is_closed: bool,
    is_ending: bool,
    /// Whether the writer has ended: nothing is stored any more.
    is_abandoned: bool,
}

#[derive(Default)]
struct Recent {
    batches: VecDeque<RecentBatch>,
    bytes: usize,
}

struct RecentBatch {
    bytes: usize,
    events: Vec<Event>,
}

impl Recent {
    /// Whether the whole oldest batch is before this position.
    fn starts_before(&self, position: u64) -> bool {
        let last = self.batches.front().and_then(|batch| batch.events.last());
        last.is_some_and(|last| last.position() < position)
    }
}

impl Shared {
    pub(crate) fn new(
        path: PathBuf,
        options: Options,
        extent: Extent,
        consumers: Consumers,
    ) -> Arc<Self> {
        let state = State {
            queue: Vec::new(),
            queued_bytes: 0,
            changing: HashMap::new(),
            extent,
            consumers,
            attached: BTreeMap::new(),
            paused: BTreeSet::new(),
            unsaved_since: None,
            replies: Vec::new(),
            waiting: 0,
            failures: 0,
            last_error: None,
            is_closed: false,
            is_ending: false,
            is_abandoned: false,
        };
        let (state, committed) = (Mutex::new(state), watch::Sender::new(extent.next));
        let (work, room, recent, has_histories) = Default::default();
        Arc::new(Self { path, options, state, work, room, committed, recent, has_histories })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_histories(&self) -> bool {
        self.has_histories.load(Relaxed)
    }

    /// Notes that there is one. It stays so.
    pub(crate) fn set_has_histories(&self, has_histories: bool) {
        self.has_histories.fetch_or(has_histories, Relaxed);
    }

    pub(crate) fn error(&self, fault: impl Into<OutboxFault>) -> OutboxError {
        OutboxError::new(&self.path, fault)
    }

    /// Queues an event, after waiting for room. `done` gets the result, here or on the writer thread.
    pub(crate) fn append(&self, event: NewEvent, done: Completion) {
        match self.wait_for_room(event.stored_len() as u64) {
            Ok(mut state) => {
                state.queued_bytes += event.stored_len() as u64;
                if let Some((account, _)) = event.effects() {
                    *state.changing.entry(account.into()).or_default() += 1;
                }
                state.queue.push(Queued { event, done });
                let is_first = state.queue.len() == 1;
                drop(state);
                if is_first {
                    self.work.notify_one();
                }
            }
            Err(error) => done(Err(error)),
        }
    }

    /// Waits until an event of this many bytes is within the bounds.
    fn wait_for_room(&self, bytes: u64) -> Result<MutexGuard<'_, State>, OutboxError> {
        let mut state = self.lock();
        let failures = state.failures;
        loop {
            if state.is_closed {
                return Err(self.error(OutboxFault::Closed));
            }
            if state.consumers.is_empty() {
                return Err(self.error(OutboxFault::NoConsumer));
            }
            if state.bound(bytes, &self.options).is_none() {
                return Ok(state);
            }
            if state.failures != failures
                && let Some(error) = &state.last_error
            {
                // Without writes there will be no room.
                return Err(error.clone());
            }
            state.waiting += 1;
            self.work.notify_one();
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    /// Waits for work, for the writer. `None` when there is none and none will come.
    pub(crate) fn next_work(&self) -> Option<Work> {
        let mut state = self.lock();
        while !state.is_due(&self.options) {
            if state.is_ending && state.unsaved_since.is_none() {
                return None;
            }
            let interval = match state.unsaved_since {
                Some(since) => self.options.ack_interval.saturating_sub(since.elapsed()),
                None => IDLE_INTERVAL,
            };
            let waited = self.work.wait_timeout(state, interval);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.unsaved_since = None;
        state.queued_bytes = 0;
        let (events, replies) =
            (std::mem::take(&mut state.queue), std::mem::take(&mut state.replies));
        // Until the transaction ends, its events count as queued.
        let taken: u64 = events.iter().map(|queued| queued.event.stored_len() as u64).sum();
        state.extent.bytes += taken;
        state.extent.next += events.len() as u64;
        let (consumers, is_ending) = (state.consumers.clone(), state.is_ending);
        Some(Work { events, consumers, replies, is_ending })
    }

    /// Records the end of a transaction of these events.
    pub(crate) fn record(
        &self,
        extent: Extent,
        events: &[Queued],
        result: &Result<(), OutboxError>,
    ) {
        let mut state = self.lock();
        state.extent = extent;
        for (account, _) in events.iter().filter_map(|queued| queued.event.effects()) {
            state.settle(account);
        }
        match result {
            Ok(()) => state.last_error = None,
            Err(error) => {
                state.failures += 1;
                state.last_error = Some(error.clone());
                state.unsaved_since.get_or_insert_with(Instant::now);
            }
        }
        drop(state);
        self.room.notify_all();
    }

    /// Changes acknowledgements or consumers; the writer stores them within the interval.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state);
        state.unsaved_since.get_or_insert_with(Instant::now);
        let is_urgent = state.waiting > 0;
        drop(state);
        if is_urgent {
            self.work.notify_one();
        }
        changed
    }

    /// Waits until all changes of this account's records are in the file.
    pub(crate) fn flush_account(&self, account: &str) -> Result<(), OutboxError> {
        let is_changing = self.lock().changing.contains_key(account);
        if is_changing { self.flush() } else { Ok(()) }
    }

    /// Waits until everything that was queued and acknowledged before is in the file.
    pub(crate) fn flush(&self) -> Result<(), OutboxError> {
        let (reply, stored) = std::sync::mpsc::sync_channel(1);
        let mut state = self.lock();
        if state.is_abandoned {
            return Err(self.error(OutboxFault::Closed));
        }
        state.replies.push(reply);
        drop(state);
        self.work.notify_one();
        stored.recv().unwrap_or_else(|_| Err(self.error(OutboxFault::Closed)))
    }

    /// Stores no further events: callers that wait for room get an error.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.room.notify_all();
    }

    /// Ends the writer when it has stored its queue.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        (state.is_closed, state.is_ending) = (true, true);
        drop(state);
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Drops the requests that a writer that has ended will not serve.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        (state.is_closed, state.is_abandoned) = (true, true);
        let (queue, replies) =
            (std::mem::take(&mut state.queue), std::mem::take(&mut state.replies));
        drop(state);
        drop(replies);
        queue.into_iter().for_each(|queued| (queued.done)(Err(self.error(OutboxFault::Closed))));
        self.room.notify_all();
    }

    /// Keeps a batch that was stored, in place of the oldest ones and of those with no event that a consumer needs from
    /// this position on.
    pub(crate) fn keep_recent(&self, bytes: usize, events: Vec<Event>, needed_from: u64) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.bytes += bytes;
        recent.batches.push_back(RecentBatch { bytes, events });
        while recent.bytes > self.options.recent_bytes || recent.starts_before(needed_from) {
            let Some(oldest) = recent.batches.pop_front() else { break };
            recent.bytes -= oldest.bytes;
        }
    }

    /// The events of the recent batch that contains a position, from there on.
    pub(crate) fn recent(&self, position: u64) -> Option<Vec<Event>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let first = |batch: &RecentBatch| batch.events[0].position();
        let after = recent.batches.partition_point(|batch| first(batch) <= position);
        let batch = &recent.batches[after.checked_sub(1)?];
        let at = usize::try_from(position - first(batch)).ok()?;
        batch.events.get(at..).filter(|events| !events.is_empty()).map(<[Event]>::to_vec)
    }
}

impl State {
    /// Notes that an event of this account is in the file, or has failed.
    fn settle(&mut self, account: &str) {
        if let Some(events) = self.changing.get_mut(account) {
            *events -= 1;
            if *events == 0 {
                self.changing.remove(account);
            }
        }
    }

    /// The content of the file with the events that wait for the next transaction, if none of them is a repetition.
    pub(crate) fn extent_with_queue(&self) -> Extent {
        Extent {
            next: self.extent.next + self.queue.len() as u64,
            bytes: self.extent.bytes + self.queued_bytes,
            ..self.extent
        }
    }

    /// The bound that one more event of this many bytes exceeds. An event beyond the bound of bytes is stored alone.
    fn bound(&self, bytes: u64, options: &Options) -> Option<Bound> {
        let held = self.extent_with_queue();
        let events = held.next - held.oldest;
        match () {
            () if events >= options.max_events => Some(Bound::Events),
            () if events > 0 && held.bytes + bytes > options.max_bytes => Some(Bound::Bytes),
            () if self.age() > options.max_age => Some(Bound::Age),
            () => None,
        }
    }

    /// The bound at which the source waits.
    pub(crate) fn reached_bound(&self, options: &Options) -> Option<Bound> {
        self.bound(0, options).or((self.waiting > 0).then_some(Bound::Bytes))
    }

    /// The age of the oldest event.
    pub(crate) fn age(&self) -> Duration {
        let micros =
            self.extent.oldest_micros.map_or(0, |at| database::now_micros().saturating_sub(at));
        Duration::from_micros(micros)
    }

    fn is_due(&self, options: &Options) -> bool {
        let has_requests = !self.queue.is_empty() || !self.replies.is_empty();
        let are_acks_due = self.unsaved_since.is_some_and(|since| {
            self.waiting > 0 || self.is_ending || since.elapsed() >= options.ack_interval
        });
        has_requests || are_acks_due
    }
}

/// Interval at which an idle writer looks for work.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);
