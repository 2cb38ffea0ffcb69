//! Verifies a batch of events, delivers the verdicts, and reports accounts to look up or resync.

use std::sync::Arc;
use std::time::Duration;

use atproto::event::{self, Decoder, Event, Frame};
use atproto::syntax::Did;
use crypto::KeyCache;
use tokio::time::Instant;
use verify::sync::{
    AccountKey, AccountState, Chain, ChainState, FutureWindow, Ignored, Judge, Judged, KeySource,
    Leniency, Outcome, SyncEffect, SyncRejection, SyncState,
};

use super::ack::{ChangedStates, RunState};
use super::error::RunError;
use super::feed_item::FrameKind;
use super::gaps::{AfterGap, events_after_gaps, is_gap};
use super::handler::{Dispatcher, Handler, Verdict, Warning};
use super::keys::{KeyError, KeyProvider};
use super::local_clock::Future;
use super::options::{Options, Verification};
use super::queue::{AccountHasher, LookedUpKey, QueuedEvent, random_seed};
use super::revisions::{Revisions, StaleEvent};
use super::status::StatusAnswers;
use crate::bounded_map::BoundedMap;
use crate::clock::future_window;
use base::now_micros;

/// The processing of events: verification, or decoding only.
pub(super) enum Processor<S> {
    Verify(Box<Verifier<S>>),
    Decode(Decoder),
}

impl<S> Processor<S> {
    /// The processor of one worker, with the state of its accounts.
    pub(super) fn new(options: &Options, state: S, hasher: &AccountHasher) -> Self {
        match &options.verify {
            Verification::Off { decoding } => Self::Decode(Decoder::new(*decoding)),
            Verification::On { policy, keys, cache_bytes } => {
                let cache = KeyCache::new(cache_bytes / options.workers.max(1), random_seed());
                let (judge, keys) = (Judge::new(*policy, cache), keys.clone());
                let resync = options.resync.as_ref();
                let resyncs_new = resync.is_some_and(|resync| resync.on_first_seen);
                let (hasher, statuses) = (hasher.clone(), StatusAnswers::new());
                let (limited, revisions) =
                    (BoundedMap::new(MAX_LIMITED_ACCOUNTS), Revisions::new());
                let verifier = Verifier {
                    judge,
                    state,
                    keys,
                    statuses,
                    hasher,
                    resyncs_new,
                    limited,
                    revisions,
                };
                Self::Verify(Box::new(verifier))
            }
        }
    }
}

/// Verifies events of one worker's accounts.
pub(super) struct Verifier<S> {
    judge: Judge,
    pub(super) state: S,
    keys: Arc<dyn KeyProvider>,
    pub(super) statuses: StatusAnswers,
    pub(super) hasher: AccountHasher,
    /// Whether an account that was not known before is resynced.
    resyncs_new: bool,
    /// The hashed accounts that are active by their last `#account` event, but limited: `throttled`, `desynchronized`.
    limited: BoundedMap<u64, ()>,
    pub(super) revisions: Revisions,
}

/// The result of a batch.
#[derive(Debug, Default)]
pub(super) struct BatchOutcome {
    /// The accounts whose keys must be looked up.
    pub(super) unresolved: Vec<UnresolvedKey>,
    /// The accounts whose status must be confirmed before their commits are ignored.
    pub(super) unconfirmed: Vec<UnconfirmedStatus>,
    /// The events of both, and those after gaps, in order, which were not delivered.
    pub(super) undelivered: Vec<QueuedEvent>,
    /// Events, in order, to judge again once the local clock is compared.
    pub(super) held: Vec<QueuedEvent>,
    /// The accounts that are desynchronized.
    pub(super) desynchronized: Vec<(u64, Box<str>)>,
    /// The accounts that the stream calls active again, which are desynchronized too.
    pub(super) reactivated: Vec<(u64, Box<str>)>,
}

/// An account whose key is unknown or may be stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnresolvedKey {
    pub(super) account: u64,
    pub(super) did: Box<str>,
    /// Whether the cached key did not verify the signature.
    pub(super) refresh: bool,
    /// The index in the batch of the first event that needs the key.
    from: usize,
}

/// An account that the stream called inactive, and which sent a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnconfirmedStatus {
    pub(super) account: u64,
    pub(super) did: Box<str>,
    /// Whether an answer that still holds says that the account is active.
    pub(super) is_active: bool,
    /// The index in the batch of the first event that is ignored.
    from: usize,
}

impl<S: ChainState> Verifier<S> {
    /// The revisions that the policy allows at this time.
    pub(super) fn window(&self) -> FutureWindow {
        future_window(self.judge.policy())
    }

    /// The state of an account. A void head counts as unknown.
    pub(super) fn account(&mut self, did: &str) -> Result<AccountState, S::Error> {
        let mut account = [AccountState::UNKNOWN];
        self.state.load_many(&[did], &mut account)?;
        Ok(account[0].within(self.window()))
    }

    /// Verifies events and delivers them, except those whose key is unresolved, and events after a gap of an account
    /// whose resync may start. An account that `is_resynced` and is called active again is desynchronized: its changes
    /// meanwhile are unknown, and consumers may have deleted its records.
    ///
    /// An account has at most one `#account` or `#identity` event among them, as its last.
    pub(super) fn verify<H: Handler>(
        &mut self,
        events: Vec<QueuedEvent>,
        dispatcher: &Dispatcher<H>,
        starts_resync: impl Fn(u64, &str) -> bool,
        is_resynced: impl Fn(&str) -> bool,
    ) -> Result<BatchOutcome, S::Error> {
        let Self { judge, state, keys, statuses, hasher, resyncs_new, .. } = self;
        let (limited, revisions) = (&mut self.limited, &mut self.revisions);
        let is_signature_only = judge.policy().accept_unproved_operations;
        let started = Instant::now();
        let before = judge.cache().stats();
        let frames: Vec<Frame<'_>> = events.iter().map(|event| event.received.as_frame()).collect();
        let mut state = RecordingState::new(state, hasher, dispatcher.keeps_accounts);
        let batch_keys = BatchKeys::new(&**keys, &events);
        let mut judged = judge.judge_batch(&frames, &batch_keys, &mut state, now_micros())?;
        dispatcher.metrics.verify_time.count(started.elapsed());
        check_hosts(&mut judged, &events, &batch_keys, &dispatcher.run);
        let mut unresolved = unresolved_keys(&events, &judged);
        let unconfirmed = unconfirmed_statuses(&events, &judged, statuses);
        let mut future = future_accounts(&events, &judged, &dispatcher.run);
        join_waits(&mut future, &mut unresolved);
        let is_waiting = |event: &QueuedEvent, at| {
            is_held(&unresolved, &unconfirmed, event, at)
                || future.iter().any(|(account, from)| *account == event.account && at >= *from)
        };
        let is_delivered = |at: usize| !is_waiting(&events[at], at);
        let after_gaps = events_after_gaps(&events, &judged, is_delivered, starts_resync);
        for AfterGap { did, head, .. } in &after_gaps {
            state.update(did, |account| {
                (account.head, account.sync) = (Some(*head), SyncState::Desynchronized);
            })?;
        }
        let after_gaps: Vec<_> = after_gaps.iter().map(|of| (of.account, of.from)).collect();
        let is_withheld = |event: &QueuedEvent, at| {
            let is_after_gap = |(of, from): &(u64, usize)| *of == event.account && at >= *from;
            is_waiting(event, at) || after_gaps.iter().any(is_after_gap)
        };
        let is_resolved = |at: &usize| !is_withheld(&events[*at], *at);
        let resolved = (0..events.len()).filter(is_resolved);
        let (keys, resyncs_new) = (&**keys, *resyncs_new);
        let handler: &dyn Handler = &*dispatcher.handler;
        let (desynchronized, reactivated) = Default::default();
        let is_resynced: &dyn Fn(&str) -> bool = &is_resynced;
        let mut effects = Effects {
            state,
            keys,
            handler,
            resyncs_new,
            is_resynced,
            limited,
            revisions,
            desynchronized,
            reactivated,
        };
        let mut delivery = dispatcher.start(resolved.clone().map(|at| &events[at]));
        for at in resolved {
            let (queued, Judged { event, outcome, key }) = (&events[at], &judged[at]);
            let verdict = verdict(outcome, queued, is_signature_only);
            delivery.deliver(queued, *event, verdict, *key);
            effects.apply(queued, outcome, *event)?;
        }
        let Effects { state, desynchronized, reactivated, .. } = effects;
        delivery.finish(state.changed.unwrap_or_default());
        drop(judged);
        dispatcher.metrics.count_cache(&before, &judge.cache().stats());
        let is_empty = unresolved.is_empty() && unconfirmed.is_empty() && future.is_empty();
        let withheld = if is_empty && after_gaps.is_empty() {
            Vec::new()
        } else {
            retain(events, is_withheld)
        };
        let is_future = |event: &QueuedEvent| future.iter().any(|(of, _)| *of == event.account);
        let (held, undelivered) = withheld.into_iter().partition(is_future);
        Ok(BatchOutcome { unresolved, unconfirmed, undelivered, held, desynchronized, reactivated })
    }
}

/// The effects of delivered events, other than the states that the judge stores.
struct Effects<'s, S> {
    state: RecordingState<'s, S>,
    keys: &'s dyn KeyProvider,
    handler: &'s dyn Handler,
    resyncs_new: bool,
    /// Whether the repository of an account may be fetched.
    is_resynced: &'s dyn Fn(&str) -> bool,
    limited: &'s mut BoundedMap<u64, ()>,
    revisions: &'s mut Revisions,
    desynchronized: Vec<(u64, Box<str>)>,
    reactivated: Vec<(u64, Box<str>)>,
}

impl<S: ChainState> Effects<'_, S> {
    fn apply(
        &mut self,
        queued: &QueuedEvent,
        outcome: &Outcome<'_>,
        event: Option<&Event<'_>>,
    ) -> Result<(), S::Error> {
        self.record_revision(queued, outcome, event);
        match outcome {
            Outcome::Unjudged(Event::Account(event)) => self.apply_status(queued.account, event)?,
            Outcome::Unjudged(Event::Identity(event)) => self.keys.invalidate(event.did),
            Outcome::Rejected(rejection) => self.apply_rejection(queued, rejection)?,
            outcome if needs_resync(outcome, self.resyncs_new) => {
                let did = queued.received.did().unwrap_or_default();
                self.desynchronized.push((queued.account, did.into()));
            }
            _ => {}
        }
        Ok(())
    }

    fn record_revision(
        &mut self,
        queued: &QueuedEvent,
        outcome: &Outcome<'_>,
        event: Option<&Event<'_>>,
    ) {
        let account = queued.account;
        let host = queued.received.host;
        let seq = queued.received.seq;
        match outcome {
            Outcome::Commit(commit, _) => self.revisions.accepted(account, host, seq, commit.rev),
            Outcome::Sync(sync, _) => self.revisions.accepted(account, host, seq, sync.rev),
            Outcome::Ignored(Ignored::Stale { rev, stored }) => {
                let time = match event {
                    Some(Event::Commit(commit)) => Some(commit.time),
                    _ => None,
                };
                let (rev, known) = (*rev, *stored);
                let stale = StaleEvent { host, seq, rev, known, time };
                if self.revisions.ignored(account, &stale) {
                    let did = queued.received.did().unwrap_or_default();
                    self.handler.warning(&Warning::RevisionsGoBack { did, rev, known });
                }
            }
            _ => {}
        }
    }

    fn apply_status(&mut self, account: u64, event: &event::Account<'_>) -> Result<(), S::Error> {
        let is_limited = event.active && event.status.is_some();
        let was_limited = self.limited.peek(&account).is_some();
        if is_limited {
            self.limited.insert(account, ())
        } else {
            self.limited.remove(&account)
        }
        let is_resynced = event.active && (self.is_resynced)(event.did);
        if self.state.set_active(event, is_resynced, is_limited || was_limited)? {
            self.reactivated.push((account, event.did.into()));
        }
        Ok(())
    }

    fn apply_rejection(
        &mut self,
        queued: &QueuedEvent,
        rejection: &SyncRejection<'_>,
    ) -> Result<(), S::Error> {
        let did = queued.received.did().unwrap_or_default();
        if *rejection == SyncRejection::NoKey && queued.received.kind == FrameKind::Identity {
            // The account is on the right host, or unknown; its document may have a key now.
            self.keys.invalidate(did);
        }
        let Some(error) = passed_over(queued, rejection) else { return Ok(()) };
        self.handler.warning(&Warning::KeyUnavailable { did, error });
        self.state.set_desynchronized(did)
    }
}

/// Decodes events and delivers them.
pub(super) fn decode<H: Handler>(
    decoder: &mut Decoder,
    queued: &[QueuedEvent],
    dispatcher: &Dispatcher<H>,
) {
    let started = Instant::now();
    let frames: Vec<Frame<'_>> = queued.iter().map(|event| event.received.as_frame()).collect();
    let events = decoder.decode_batch(&frames);
    dispatcher.metrics.verify_time.count(started.elapsed());
    let mut delivery = dispatcher.start(queued.iter());
    for (queued, event) in queued.iter().zip(events) {
        match event {
            Ok(event) => delivery.deliver(queued, Some(event), Verdict::NotVerified, None),
            Err(error) => delivery.deliver(queued, None, Verdict::Undecodable(*error), None),
        }
    }
    delivery.finish(Vec::new());
}

/// The accounts whose keys are unknown or may be stale, from their first such event on. If a later event
/// of the account is accepted, its key is right, and the rejection stands.
fn unresolved_keys(events: &[QueuedEvent], judged: &[Judged<'_>]) -> Vec<UnresolvedKey> {
    let mut unresolved: Vec<UnresolvedKey> = Vec::new();
    for (at, (queued, judgement)) in events.iter().zip(judged).enumerate() {
        let Outcome::Rejected(rejection) = &judgement.outcome else { continue };
        if !rejection.may_be_stale_key() || is_final(queued, rejection) {
            continue;
        }
        let account = queued.account;
        let is_first = unresolved.iter().all(|key| key.account != account);
        let mut later = events.iter().zip(judged).skip(at);
        if is_first && !later.any(|(e, j)| e.account == account && j.outcome.is_accepted()) {
            let did = queued.received.did().unwrap_or_default().into();
            let refresh = !matches!(rejection, SyncRejection::NoKey);
            unresolved.push(UnresolvedKey { account, did, refresh, from: at });
        }
    }
    unresolved
}

/// Whether another lookup is useless: the key could not be looked up, or was refreshed.
fn is_final(queued: &QueuedEvent, rejection: &SyncRejection<'_>) -> bool {
    let is_final = |key: &LookedUpKey| key.is_final || matches!(rejection, SyncRejection::NoKey);
    queued.looked_up.as_deref().is_some_and(is_final)
}

/// The accounts with ignored commits whose inactivity no answer confirms.
fn unconfirmed_statuses(
    events: &[QueuedEvent],
    judged: &[Judged<'_>],
    answers: &mut StatusAnswers,
) -> Vec<UnconfirmedStatus> {
    let mut unconfirmed: Vec<UnconfirmedStatus> = Vec::new();
    for (from, (queued, judgement)) in events.iter().zip(judged).enumerate() {
        let account = queued.account;
        let is_known = |status: &UnconfirmedStatus| status.account == account;
        if judgement.outcome != Outcome::Ignored(Ignored::Inactive)
            || unconfirmed.iter().any(is_known)
        {
            continue;
        }
        let answer = answers.get(account, Instant::now());
        if answer != Some(false) {
            let did = queued.received.did().unwrap_or_default().into();
            unconfirmed.push(UnconfirmedStatus { account, did, is_active: answer.is_some(), from });
        }
    }
    unconfirmed
}

/// Whether an event is not delivered until a lookup for its account ends.
fn is_held(
    unresolved: &[UnresolvedKey],
    unconfirmed: &[UnconfirmedStatus],
    event: &QueuedEvent,
    at: usize,
) -> bool {
    let holds = |account: u64, from: usize| account == event.account && at >= from;
    unresolved.iter().any(|key| holds(key.account, key.from))
        || unconfirmed.iter().any(|status| holds(status.account, status.from))
}

/// Refuses unsigned events about accounts that another host has, in a run of one server, and from a host that speaks
/// only for its own accounts. Without the account's document, they are unresolved like a commit.
fn check_hosts(
    judged: &mut [Judged<'_>],
    events: &[QueuedEvent],
    keys: &BatchKeys<'_>,
    run: &RunState,
) {
    let checks_host = keys.cached.checks_host();
    if !checks_host && !run.has_pds() {
        return;
    }
    for (judgement, queued) in judged.iter_mut().zip(events) {
        let did = match judgement.outcome {
            Outcome::Unjudged(Event::Account(event)) => event.did,
            Outcome::Unjudged(Event::Identity(event)) => event.did,
            _ => continue,
        };
        let server = run.pds(queued.received.host);
        if !checks_host && server.is_none() {
            continue;
        }
        match keys.key(did) {
            AccountKey::Known(_) if server.is_none_or(|server| keys.cached.is_at(did, &server)) => {
            }
            AccountKey::Known(_) => judgement.outcome = SyncRejection::Host.into(),
            AccountKey::Unknown => judgement.outcome = SyncRejection::NoKey.into(),
            AccountKey::OtherHost => judgement.outcome = SyncRejection::Host.into(),
        }
    }
}

/// The accounts with events from the future that wait until clocks are compared, from their first such event on.
/// Fails the run if the local clock is behind.
fn future_accounts(
    events: &[QueuedEvent],
    judged: &[Judged<'_>],
    run: &RunState,
) -> Vec<(u64, usize)> {
    let of_future = |judgement: &Judged<'_>| match FutureTime::of(judgement) {
        Some(_) => Some(true),
        None => judgement.outcome.is_accepted().then_some(false),
    };
    let all = || events.iter().zip(judged);
    run.clock.record(all().filter_map(|(event, of)| Some((event.account, of_future(of)?))));
    let mut future: Vec<(u64, usize)> = Vec::new();
    for (at, (event, judgement)) in all().enumerate() {
        let account = event.account;
        let Some(ahead) = FutureTime::of(judgement) else { continue };
        // An account with a later event of the present has a wrong clock itself.
        let is_own = all().skip(at).any(|(e, j)| e.account == account && j.outcome.is_accepted());
        let is_known = future.iter().any(|(of, _)| *of == account);
        if !is_known && !is_own && ahead.awaits_clock(run) {
            future.push((account, at));
        }
    }
    future
}

/// Lets an account wait for the clock alone, from the first event on that it cannot deliver for any reason.
/// Its events are judged again after that, and may then wait for a lookup. None of these accounts is inactive:
/// commits of inactive accounts are ignored whatever their revision.
fn join_waits(future: &mut [(u64, usize)], unresolved: &mut Vec<UnresolvedKey>) {
    for (account, from) in future {
        let keys = unresolved.extract_if(.., |key| key.account == *account).map(|key| key.from);
        *from = keys.fold(*from, usize::min);
    }
}

/// How far the revision of an event is ahead of the local clock.
#[derive(Clone, Copy, Debug)]
struct FutureTime {
    ahead: Duration,
    /// The part that the policy does not allow.
    excess: Duration,
}

impl FutureTime {
    /// `None` for an event that was not rejected for its revision.
    fn of(judgement: &Judged<'_>) -> Option<Self> {
        let Outcome::Rejected(SyncRejection::FutureRev { rev, now_micros, window_micros }) =
            judgement.outcome
        else {
            return None;
        };
        let ahead = Duration::from_micros(rev.micros().saturating_sub(now_micros));
        let excess = ahead.saturating_sub(Duration::from_micros(window_micros));
        Some(Self { ahead, excess })
    }

    /// Whether the event waits until clocks are compared, or the local clock is behind, which fails the run.
    fn awaits_clock(self, run: &RunState) -> bool {
        match run.clock.decide(self.ahead, self.excess, Instant::now()) {
            Future::OfAccount => false,
            Future::Undecided => true,
            Future::OfLocalClock(behind) => {
                run.failure.set(RunError::LocalClock { behind });
                true
            }
        }
    }
}

/// Maximum number of accounts of a worker that are remembered as limited.
const MAX_LIMITED_ACCOUNTS: usize = 16 << 10;

fn retain(
    events: Vec<QueuedEvent>,
    is_retained: impl Fn(&QueuedEvent, usize) -> bool,
) -> Vec<QueuedEvent> {
    let numbered = events.into_iter().enumerate().filter(|(at, event)| is_retained(event, *at));
    numbered.map(|(_, event)| event).collect()
}

fn needs_resync(outcome: &Outcome<'_>, resyncs_new: bool) -> bool {
    match outcome {
        outcome if is_gap(outcome) => true,
        Outcome::Commit(_, Chain::FirstSeen) | Outcome::Sync(_, SyncEffect::FirstSeen) => {
            resyncs_new
        }
        _ => false,
    }
}

/// The verdict of an event; `is_signature_only` if operations are not proved, so that no commit is more than signed.
fn verdict<'a>(
    outcome: &Outcome<'a>,
    queued: &'a QueuedEvent,
    is_signature_only: bool,
) -> Verdict<'a> {
    let rejection = match outcome {
        Outcome::Rejected(rejection) => rejection,
        Outcome::Commit(commit, Chain::FirstSeen) if is_signature_only => {
            let chain = Chain::Unproved(Leniency::UnprovedOperations);
            return Verdict::Judged(Outcome::Commit(*commit, chain));
        }
        _ => return Verdict::Judged(*outcome),
    };
    match (rejection, key_error(queued, rejection)) {
        (SyncRejection::Frame(error), _) => Verdict::Undecodable(*error),
        (_, Some(error)) => Verdict::UnknownKey(error),
        _ => Verdict::Judged(*outcome),
    }
}

/// Why the key that an event needs is unknown. A rejection by a cached key does not count if the key should have been
/// refreshed and could not.
fn key_error<'e>(queued: &'e QueuedEvent, rejection: &SyncRejection<'_>) -> Option<&'e KeyError> {
    match rejection {
        SyncRejection::NoKey => Some(queued.key_error().unwrap_or(&KeyError::UnknownAccount)),
        _ if rejection.may_be_stale_key() => queued.key_error().filter(|why| why.is_temporary()),
        _ => None,
    }
}

/// Why an event is delivered without verification although its key may be found later. Its account then misses
/// the event.
fn passed_over<'e>(queued: &'e QueuedEvent, rejection: &SyncRejection<'_>) -> Option<&'e KeyError> {
    key_error(queued, rejection).filter(|error| error.is_temporary())
}

/// The keys of a batch: the cached ones, then those just looked up. A cached key is never older: an event may
/// carry the result of a lookup that another one has replaced since.
struct BatchKeys<'e> {
    cached: &'e dyn KeyProvider,
    looked_up: Vec<(&'e str, AccountKey)>,
}

impl<'e> BatchKeys<'e> {
    fn new(cached: &'e dyn KeyProvider, events: &'e [QueuedEvent]) -> Self {
        let looked_up = |event: &'e QueuedEvent| {
            let key = *event.looked_up.as_ref()?.key.as_ref().ok()?;
            Some((event.received.did()?, key))
        };
        Self { cached, looked_up: events.iter().filter_map(looked_up).collect() }
    }
}

impl KeySource for BatchKeys<'_> {
    fn key(&self, did: &str) -> AccountKey {
        match (self.cached.cached(did), self.looked_up.iter().find(|(of, _)| *of == did)) {
            (AccountKey::Unknown, Some((_, key))) => *key,
            (cached, _) => cached,
        }
    }
}

/// A state that records its stored content.
#[derive(Debug)]
pub(super) struct RecordingState<'s, S> {
    state: &'s mut S,
    hasher: &'s AccountHasher,
    /// The changed states, for the journal; `None` if it keeps none.
    pub(super) changed: Option<ChangedStates>,
}

impl<'s, S> RecordingState<'s, S> {
    pub(super) fn new(state: &'s mut S, hasher: &'s AccountHasher, records: bool) -> Self {
        Self { state, hasher, changed: records.then(Vec::new) }
    }
}

impl<S: ChainState> RecordingState<'_, S> {
    /// Applies an `#account` event. Of an account without a verified commit nothing is stored: anyone can invent
    /// accounts. Whether the account is desynchronized as its status ends, if it `is_resynced`; a status can be one of an
    /// active account, which `is_limited`.
    fn set_active(
        &mut self,
        event: &event::Account<'_>,
        is_resynced: bool,
        is_limited: bool,
    ) -> Result<bool, S::Error> {
        let Ok(did) = Did::parse(event.did) else { return Ok(false) };
        let mut is_back = false;
        self.update(did.as_str(), |account| {
            let is_doubtful =
                is_limited || !account.is_active || account.sync != SyncState::Synchronized;
            let is_known = account.head.is_some() || account.sync != SyncState::Synchronized;
            is_back = is_resynced && is_known && is_doubtful;
            account.is_active = event.active || account.head.is_none();
            if is_back {
                account.sync = SyncState::Desynchronized;
            }
        })?;
        Ok(is_back)
    }

    /// Records that the account missed an event.
    pub(super) fn set_desynchronized(&mut self, did: &str) -> Result<(), S::Error> {
        self.update(did, |account| account.sync = SyncState::Desynchronized)
    }

    /// Updates the state of one account.
    pub(super) fn update(
        &mut self,
        did: &str,
        update: impl FnOnce(&mut AccountState),
    ) -> Result<(), S::Error> {
        let mut accounts = [AccountState::UNKNOWN];
        self.load_many(&[did], &mut accounts)?;
        let [before] = accounts;
        let mut account = before;
        update(&mut account);
        if account == before { Ok(()) } else { self.store_many(&[(did, account)]) }
    }
}

impl<S: ChainState> ChainState for RecordingState<'_, S> {
    type Error = S::Error;

    fn load_many(&mut self, dids: &[&str], accounts: &mut [AccountState]) -> Result<(), S::Error> {
        self.state.load_many(dids, accounts)
    }

    fn store_many(&mut self, changed: &[(&str, AccountState)]) -> Result<(), S::Error> {
        self.state.store_many(changed)?;
        if let Some(recorded) = &mut self.changed {
            let record = |(did, state): &(&str, AccountState)| {
                (self.hasher.hash(Some(did)), Box::from(*did), *state)
            };
            recorded.extend(changed.iter().map(record));
        }
        Ok(())
    }
}
