//! A worker thread: verifies and delivers the events of its partition of the accounts.
//!
//! ```text
//! inbox ─> ready ──────────────> batch ─> processor ─> handler
//!            │ ▲                   │
//!            ▼ │ released first    ▼
//!          parked <── key unresolved, desynchronized ── job ─ ─ > message
//! ```
//!
//! Events from the future stop the worker for seconds, until the local clock is compared with others.
//!
//! The events of an account stay in order: while it is parked, its new events are parked after the others,
//! and when it is released, its events go before all ready ones. A worker never waits for a socket, and for more
//! events at most [`max_gather`](super::FlowLimits::max_gather).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;
use verify::sync::{AccountState, ChainState, SyncState};

use super::account_set::AccountSet;
use super::error::{PanicGuard, RunError};
use super::feed_item::FrameKind;
use super::gather::Gather;
use super::handler::{Dispatcher, Handler, Warning};
use super::jobs::Job;
use super::keys::KeyError;
use super::options::{Options, Verification};
use super::queue::{
    AccountHasher, Inbox, LookedUpKey, ParkReason, ParkedEvents, ParkedLimits, QueuedEvent,
    WaitTimeout, WorkerMessage,
};
use super::resync::Expected;
use super::resynced_repo::{ResyncError, ResyncResult, ResyncedRepo};
use super::status::StatusError;
use super::verifier::{
    self, BatchOutcome, Processor, RecordingState, UnconfirmedStatus, UnresolvedKey,
};

/// A worker: its partition, and the inbox that it reads.
pub(super) struct Worker<H, S> {
    pub(super) partition: Partition<H, S>,
    inboxes: Arc<[Inbox]>,
    pub(super) last_tick: Instant,
    gather: Gather,
}

impl<H: Handler, S: ChainState> Worker<H, S>
where
    S::Error: std::error::Error + Send + Sync + 'static,
{
    /// The worker of this partition.
    pub(super) fn new(partition: Partition<H, S>, inboxes: Arc<[Inbox]>) -> Self {
        let now = Instant::now();
        let gather = Gather::new(partition.config.max_gather, now);
        Self { partition, inboxes, last_tick: now, gather }
    }

    /// The index of the worker.
    pub(super) fn index(&self) -> usize {
        self.partition.worker
    }

    /// Works until its inbox is closed and its events are delivered, it is stopped, or the run has failed.
    pub(super) fn run(mut self) {
        let run = Arc::clone(&self.partition.dispatcher.run);
        let _guard = PanicGuard(&run.failure);
        while self.step(self.partition.wait_timeout()) {}
    }

    /// Waits up to `timeout` for the inbox, handles its messages, and processes a batch. Whether the worker
    /// goes on.
    pub(super) fn step(&mut self, timeout: WaitTimeout) -> bool {
        let run = Arc::clone(&self.partition.dispatcher.run);
        let goes_on = !run.failure.is_set()
            && self.try_step(timeout).unwrap_or_else(|error| {
                run.failure.set(RunError::State(Box::new(error)));
                false
            });
        if !goes_on {
            let Partition { worker, parked, ready, .. } = &self.partition;
            run.abandon(parked.len() + ready.len() + self.inboxes[*worker].len());
        }
        goes_on
    }

    fn try_step(&mut self, timeout: WaitTimeout) -> Result<bool, S::Error> {
        let partition = &mut self.partition;
        let mut messages = Vec::new();
        let inbox = &self.inboxes[partition.worker];
        let left = partition.ready.len();
        let max = partition.max_ready();
        let mut received = inbox.receive(&mut partition.ready, &mut messages, max, timeout);
        let wait = self.gather.wait(partition.ready.len());
        if let Some(wait) = wait.filter(|_| !received.is_closed && messages.is_empty()) {
            std::thread::sleep(wait);
            let zero = WaitTimeout::Zero;
            received = inbox.receive(&mut partition.ready, &mut messages, max, zero);
        }
        self.gather.count(partition.ready.len() - left, Instant::now());
        let is_stopped = messages.iter().any(|of| matches!(of, WorkerMessage::Stop));
        messages.into_iter().try_for_each(|message| partition.handle(message))?;
        if is_stopped {
            return Ok(false);
        }
        if self.last_tick.elapsed() >= TICK {
            self.last_tick = Instant::now();
            partition.release_overdue(self.last_tick)?;
        }
        if received.is_closed && !partition.is_draining {
            partition.start_draining();
        }
        let was_busy = partition.process_batch()?;
        partition.report_parked();
        inbox.set_awaiting_directory(partition.parked.directory_bytes());
        let has_events = !received.is_empty || !partition.ready.is_empty();
        let is_idle = received.is_closed && !was_busy && !has_events;
        Ok(!is_idle || partition.awaits_keys())
    }
}

/// The accounts of one worker, and their events.
pub(super) struct Partition<H, S> {
    /// The index of the worker.
    pub(super) worker: usize,
    pub(super) dispatcher: Dispatcher<H>,
    processor: Processor<S>,
    jobs: UnboundedSender<Job>,
    /// Events to process next, in order.
    pub(super) ready: VecDeque<QueuedEvent>,
    parked: ParkedEvents,
    /// The only accounts that may be resynced, if not all.
    pub(super) resync_accounts: Option<AccountSet>,
    /// The accounts that are being resynced.
    resyncing: HashMap<u64, Box<str>>,
    /// The accounts whose next event starts a resync.
    announced: HashSet<u64>,
    /// The accounts whose status is being looked up.
    confirming: HashMap<u64, Box<str>>,
    /// Whether the first ready event waits until clocks are compared.
    awaits_clock: bool,
    pub(super) config: WorkerConfig,
    /// Whether the inbox is closed; then no account waits for a repository.
    is_draining: bool,
}

/// The options of a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerConfig {
    /// Maximum number of events in a batch.
    pub(super) max_batch: usize,
    /// Maximum time for which the first of a batch awaits others.
    max_gather: Duration,
    /// Maximum time for which events await a repository.
    pub(super) max_hold: Duration,
    /// Whether accounts are resynced.
    pub(super) resyncs: bool,
}

impl<H: Handler, S: ChainState> Partition<H, S> {
    /// The partition of the worker with this index, and the state of its accounts.
    pub(super) fn new(
        worker: usize,
        options: &Options,
        dispatcher: Dispatcher<H>,
        state: S,
        jobs: UnboundedSender<Job>,
        hasher: &AccountHasher,
    ) -> Self {
        let limits = &options.limits;
        let config = WorkerConfig {
            max_batch: limits.max_batch.max(1),
            max_gather: match options.verify {
                Verification::On { .. } => limits.max_gather,
                Verification::Off { .. } => Duration::ZERO,
            },
            max_hold: limits.max_hold,
            resyncs: options.resync.is_some(),
        };
        let parked = ParkedEvents::new(ParkedLimits::per_worker(limits, options.workers));
        let processor = Processor::new(options, state, hasher);
        let resync_accounts = options.resync.as_ref().and_then(|resync| resync.accounts.clone());
        Self {
            worker,
            dispatcher,
            processor,
            jobs,
            ready: VecDeque::new(),
            parked,
            resync_accounts,
            resyncing: HashMap::new(),
            announced: HashSet::new(),
            confirming: HashMap::new(),
            awaits_clock: false,
            config,
            is_draining: false,
        }
    }

    pub(super) fn wait_timeout(&self) -> WaitTimeout {
        if self.awaits_clock {
            WaitTimeout::After(TICK)
        } else if !self.ready.is_empty() || (self.is_draining && !self.awaits_keys()) {
            // A closed inbox may send nothing more: the next step ends the worker.
            WaitTimeout::Zero
        } else if self.parked.account_count(ParkReason::Repository) > 0 {
            WaitTimeout::After(TICK)
        } else {
            WaitTimeout::Never
        }
    }

    fn awaits_keys(&self) -> bool {
        self.parked.account_count(ParkReason::Key) > 0
    }

    /// Number of ready events up to which more are taken from the inbox: a batch. While this worker awaits the clock, it
    /// takes all, so that the events of others are read.
    fn max_ready(&self) -> usize {
        if self.awaits_clock { usize::MAX } else { self.config.max_batch }
    }

    /// Processes the next batch. Whether there was one.
    pub(super) fn process_batch(&mut self) -> Result<bool, S::Error> {
        self.awaits_clock &= self.dispatcher.run.clock.is_pending();
        if self.awaits_clock {
            return Ok(false);
        }
        let events = self.next_batch()?;
        if events.is_empty() {
            return Ok(false);
        }
        match &mut self.processor {
            Processor::Decode(decoder) => verifier::decode(decoder, &events, &self.dispatcher),
            Processor::Verify(verifier) => {
                let resyncing = &self.resyncing;
                let accounts = &self.resync_accounts;
                let resyncs = self.config.resyncs && !self.is_draining;
                let starts_resync = |account: u64, did: &str| {
                    resyncs && !resyncing.contains_key(&account) && is_selected(accounts, did)
                };
                let may_resync = self.config.resyncs;
                let is_resynced = |did: &str| may_resync && is_selected(accounts, did);
                let outcome =
                    verifier.verify(events, &self.dispatcher, starts_resync, is_resynced)?;
                self.apply(outcome)?;
            }
        }
        Ok(true)
    }

    pub(super) fn handle(&mut self, message: WorkerMessage) -> Result<(), S::Error> {
        match message {
            WorkerMessage::Desynchronized(account, did) => {
                self.announced.remove(&account);
                self.start_resync(account, did.clone(), Expected::Anything)?;
                // Whatever becomes of the resync: it can be delayed for hours.
                if self.is_resynced(&did) && self.known(&did)?.head.is_some() {
                    self.change_state(account, &did, |known| {
                        known.sync = SyncState::Desynchronized;
                    })?;
                }
            }
            WorkerMessage::ResyncAnnounced(account) => drop(self.announced.insert(account)),
            WorkerMessage::KeyLookedUp { account, lookup, key } => {
                // The account may have been released meanwhile, and await another lookup.
                if self.parked.awaits_lookup(account, lookup) {
                    self.release_with_key(account, key);
                }
            }
            WorkerMessage::ResyncDelayed(account, error, delay) => {
                if let Some(did) = self.resyncing.get(&account).cloned() {
                    self.dispatcher.handler.resync_delayed(&did, &error, delay);
                    if self.note_outdated(account, &did, &error) {
                        // Nothing says that its server will ever have more.
                        self.release(account);
                    }
                }
            }
            WorkerMessage::Resynced(account, result) => self.finish_resync(account, result)?,
            WorkerMessage::StatusLookedUp(account, result) => {
                self.finish_confirming(account, result)?;
            }
            // Handled by the work loop.
            WorkerMessage::Stop => {}
        }
        Ok(())
    }

    /// Releases accounts that have awaited a repository or a status for too long.
    pub(super) fn release_overdue(&mut self, now: Instant) -> Result<(), S::Error> {
        let mut overdue = self.parked.overdue(self.config.max_hold, now).into_iter();
        overdue.try_for_each(|account| self.stop_waiting(account))
    }

    /// Releases the accounts that await a repository: a later run will find them desynchronized. Events that
    /// await a status are left to that run.
    pub(super) fn start_draining(&mut self) {
        self.is_draining = true;
        for account in self.parked.accounts(ParkReason::Repository) {
            if !self.confirming.contains_key(&account) {
                self.release(account);
            }
        }
    }

    fn report_parked(&self) {
        self.dispatcher.metrics.set_parked(self.worker, self.parked.event_counts());
        if let Processor::Verify(verifier) = &self.processor {
            self.dispatcher.metrics.set_behind(self.worker, verifier.revisions.len());
        }
    }

    /// The next batch: events of accounts that are not parked, none after an event that changes how its
    /// account is verified.
    fn next_batch(&mut self) -> Result<Vec<QueuedEvent>, S::Error> {
        let mut batch = Vec::new();
        let mut changed = Vec::new();
        let mut bytes = 0;
        while batch.len() < self.config.max_batch
            && bytes < MAX_BATCH_BYTES
            && self.ready.front().is_some_and(|event| !changed.contains(&event.account))
            && let Some(event) = self.ready.pop_front()
        {
            self.start_announced(&event)?;
            if self.parked.reason(event.account).is_some() {
                self.park_event(event)?;
                continue;
            }
            if changes_account(&event) {
                changed.push(event.account);
            }
            bytes += event.len();
            batch.push(event);
        }
        Ok(batch)
    }

    /// Starts the resync of the event's account, if it was announced.
    fn start_announced(&mut self, event: &QueuedEvent) -> Result<(), S::Error> {
        if self.announced.is_empty() || !self.announced.remove(&event.account) {
            return Ok(());
        }
        match event.received.did() {
            Some(did) => self.start_resync(event.account, did.into(), Expected::Anything),
            None => Ok(()),
        }
    }

    /// Adds an event to its parked account, which is released if that exceeds a limit.
    fn park_event(&mut self, event: QueuedEvent) -> Result<(), S::Error> {
        let account = event.account;
        match self.parked.push(event) {
            Some(exceeded) => self.release_exceeding(account, exceeded),
            None => Ok(()),
        }
    }

    /// Releases an account that exceeds this limit.
    fn release_exceeding(&mut self, account: u64, exceeded: KeyError) -> Result<(), S::Error> {
        match self.parked.reason(account) {
            Some(ParkReason::Key) => {
                let key = LookedUpKey { key: Err(exceeded), is_final: true };
                self.release_with_key(account, Arc::new(key));
                Ok(())
            }
            Some(ParkReason::Repository) => self.stop_waiting(account),
            None => Ok(()),
        }
    }

    /// Releases an account that awaits its repository or its status.
    fn stop_waiting(&mut self, account: u64) -> Result<(), S::Error> {
        if self.confirming.contains_key(&account) {
            self.finish_confirming(account, Err(StatusError::TimedOut))?;
        }
        // A resync that started meanwhile goes on.
        if self.parked.reason(account) == Some(ParkReason::Repository) {
            self.release(account);
        }
        Ok(())
    }

    /// Moves the events of an account before all ready ones.
    fn release(&mut self, account: u64) {
        let has_waited = self.resyncing.contains_key(&account);
        self.release_as(account, has_waited);
    }

    /// The same; `has_waited` if they awaited a resync.
    fn release_as(&mut self, account: u64, has_waited: bool) {
        for mut event in self.parked.release(account).into_iter().rev() {
            event.has_waited |= has_waited;
            self.ready.push_front(event);
        }
    }

    /// Releases an account that awaits its key, with the result of the lookup. The result is not used after an
    /// `#identity`, which may have changed the key since it was asked for; itself it has no signature.
    fn release_with_key(&mut self, account: u64, key: Arc<LookedUpKey>) {
        let mut events = self.parked.release(account);
        let is_identity = |event: &QueuedEvent| event.received.kind == FrameKind::Identity;
        let end = events.iter().position(is_identity).map_or(events.len(), |at| at + 1);
        events[..end].iter_mut().for_each(|event| event.looked_up = Some(key.clone()));
        events.into_iter().rev().for_each(|event| self.ready.push_front(event));
    }

    /// Parks the accounts whose keys are unresolved or that are desynchronized.
    fn apply(&mut self, outcome: BatchOutcome) -> Result<(), S::Error> {
        let BatchOutcome { unresolved, unconfirmed, undelivered, held, .. } = outcome;
        let BatchOutcome { desynchronized, reactivated, .. } = outcome;
        self.awaits_clock = !held.is_empty();
        held.into_iter().rev().for_each(|event| self.ready.push_front(event));
        for UnresolvedKey { account, did, refresh, .. } in unresolved {
            let lookup = self.parked.park_for_key(account, &did, Instant::now());
            self.submit(Job::LookUpKey { worker: self.worker, account, did, refresh, lookup });
        }
        for UnconfirmedStatus { account, did, is_active, .. } in &unconfirmed {
            self.parked.park_for_repo(*account, Instant::now());
            let is_running = self.confirming.insert(*account, did.clone()).is_some();
            if !is_active && !is_running {
                let worker = self.worker;
                let account = *account;
                let did = did.clone();
                self.submit(Job::LookUpStatus { worker, account, did });
            }
        }
        for (account, did) in desynchronized {
            self.start_resync(account, did, Expected::Anything)?;
        }
        for (account, did) in reactivated {
            self.start_resync(account, did, Expected::Repository)?;
        }
        // Accounts are released after all of their events are parked, or later ones would come before.
        let park = |event: QueuedEvent| Some((event.account, self.parked.push(event)?));
        let exceeding: Vec<_> = undelivered.into_iter().filter_map(park).collect();
        for (account, exceeded) in exceeding {
            self.release_exceeding(account, exceeded)?;
        }
        for UnconfirmedStatus { account, .. } in unconfirmed.iter().filter(|of| of.is_active) {
            self.finish_confirming(*account, Ok(true))?;
        }
        Ok(())
    }

    /// Whether the repository of an account may be fetched.
    fn is_resynced(&self, did: &str) -> bool {
        self.config.resyncs && is_selected(&self.resync_accounts, did)
    }

    /// Submits a resync of an account unless one is running, and parks the account.
    fn start_resync(
        &mut self,
        account: u64,
        did: Box<str>,
        expected: Expected,
    ) -> Result<(), S::Error> {
        let is_running = self.resyncing.contains_key(&account);
        if !self.is_resynced(&did) || self.is_draining || is_running {
            return Ok(());
        }
        let known = self.known(&did)?;
        self.resyncing.insert(account, did.clone());
        // An account that awaits its key continues to.
        self.parked.park_for_repo(account, Instant::now());
        self.submit(Job::Resync { worker: self.worker, account, did, known, expected });
        Ok(())
    }

    fn finish_resync(&mut self, account: u64, result: ResyncResult) -> Result<(), S::Error> {
        let Some(did) = self.resyncing.remove(&account) else { return Ok(()) };
        match result.and_then(|resynced| self.check_window(resynced)) {
            Ok(resynced) => {
                let known = self.known(&did)?.head;
                // The account was released meanwhile. Later events were accepted, or events after a gap passed, which the known
                // commit lacks.
                let is_behind = known.is_some_and(|known| resynced.head.rev < known.rev);
                let is_released = self.parked.reason(account).is_none();
                if is_behind || (is_released && resynced.base.is_some()) {
                    return self.start_resync(account, did, Expected::Anything);
                }
                self.apply_resync(account, &resynced)?;
            }
            Err(error) => {
                if self.known(&did)?.head.is_some() {
                    self.change_state(account, &did, |known| {
                        known.sync = SyncState::Desynchronized;
                    })?;
                }
                self.note_outdated(account, &did, &error);
                self.dispatcher.handler.resync_failed(&did, &error);
            }
        }
        if self.parked.reason(account) == Some(ParkReason::Repository) {
            self.release_as(account, true);
        }
        Ok(())
    }

    /// Notes an account whose own server serves an older repository than the known one. Whether it does.
    fn note_outdated(&mut self, account: u64, did: &str, error: &ResyncError) -> bool {
        let ResyncError::Outdated { rev, known, .. } = *error else { return false };
        if let Processor::Verify(verifier) = &mut self.processor
            && verifier.revisions.note(account)
        {
            self.dispatcher.handler.warning(&Warning::RevisionsGoBack { did, rev, known });
        }
        true
    }

    /// Checks the revision again: the time since the fetch may be long.
    fn check_window(&self, resynced: Arc<ResyncedRepo>) -> ResyncResult {
        if let Processor::Verify(verifier) = &self.processor {
            resynced.check_window(verifier.window())?;
        }
        Ok(resynced)
    }

    /// Sets the state of an account to its repository, and delivers the repository.
    fn apply_resync(&mut self, account: u64, resynced: &Arc<ResyncedRepo>) -> Result<(), S::Error> {
        let Processor::Verify(verifier) = &mut self.processor else { return Ok(()) };
        verifier.revisions.end(account);
        let records = self.dispatcher.keeps_accounts;
        let mut state = RecordingState::new(&mut verifier.state, &verifier.hasher, records);
        state.update(&resynced.did, |known| {
            known.head = Some(resynced.head);
            known.sync = SyncState::Synchronized;
        })?;
        self.dispatcher.deliver_resynced(account, resynced, state.changed.unwrap_or_default());
        Ok(())
    }

    /// Ends the lookup of a status. An account whose server does not answer counts as active: a claim alone
    /// does not deactivate it.
    fn finish_confirming(
        &mut self,
        account: u64,
        result: Result<bool, StatusError>,
    ) -> Result<(), S::Error> {
        let Some(did) = self.confirming.remove(&account) else { return Ok(()) };
        let is_active = result.unwrap_or_else(|error| {
            self.dispatcher
                .handler
                .warning(&Warning::StatusNotConfirmed { did: &did, error: &error });
            true
        });
        if let Processor::Verify(verifier) = &mut self.processor {
            verifier.statuses.insert(account, is_active, Instant::now());
        }
        // Its server may have confirmed the status before, and consumers may have deleted its records.
        let is_back = is_active && self.is_resynced(&did);
        self.change_state(account, &did, |known| {
            known.is_active = is_active;
            if is_back {
                known.sync = SyncState::Desynchronized;
            }
        })?;
        if is_back {
            self.start_resync(account, did, Expected::Repository)?;
        }
        let awaits_repository = self.resyncing.contains_key(&account);
        if !awaits_repository && self.parked.reason(account) == Some(ParkReason::Repository) {
            self.release(account);
        }
        Ok(())
    }

    /// Changes the state of an account outside of a batch.
    fn change_state(
        &mut self,
        account: u64,
        did: &str,
        change: impl FnOnce(&mut AccountState),
    ) -> Result<(), S::Error> {
        let Processor::Verify(verifier) = &mut self.processor else { return Ok(()) };
        let records = self.dispatcher.keeps_accounts;
        let mut state = RecordingState::new(&mut verifier.state, &verifier.hasher, records);
        state.update(did, change)?;
        self.dispatcher.change_states(account, state.changed.unwrap_or_default());
        Ok(())
    }

    fn known(&mut self, did: &str) -> Result<AccountState, S::Error> {
        match &mut self.processor {
            Processor::Verify(verifier) => verifier.account(did),
            Processor::Decode(_) => Ok(AccountState::UNKNOWN),
        }
    }

    fn submit(&self, job: Job) {
        // Fails only when the run has ended; then the job's result is not needed.
        let _ = self.jobs.send(job);
    }
}

fn is_selected(resync_accounts: &Option<AccountSet>, did: &str) -> bool {
    resync_accounts.as_ref().is_none_or(|accounts| accounts.contains(did))
}

/// Whether an event changes how later ones of its account are verified: `#account`, `#identity`, and one that may
/// be passed over, as its key is unavailable.
fn changes_account(event: &QueuedEvent) -> bool {
    matches!(event.received.kind, FrameKind::Account | FrameKind::Identity)
        || event.key_error().is_some_and(KeyError::is_temporary)
}

/// Size in bytes at which a batch ends.
const MAX_BATCH_BYTES: usize = 8 << 20;

/// Interval of the check for overdue accounts.
pub(super) const TICK: Duration = Duration::from_millis(250);
