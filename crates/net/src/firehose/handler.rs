//! The handler of events, its input, and the dispatcher that delivers to it.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

use atproto::event::{Event, FrameError};
use atproto::syntax::Tid;
use bytes::Bytes;
use crypto::CompressedKey;
use verify::InvalidRecords;
use verify::sync::{Outcome, SyncRejection};

use super::ack::{Ack, Batch, ChangedStates, RunState, Ticket};
use super::checkpoint::PendingStates;
use super::feed_item::{FrameKind, Notice};
use super::keys::KeyError;
use super::metrics::RunMetrics;
use super::queue::QueuedEvent;
use super::resynced_repo::{ResyncError, ResyncedRepo};
use super::status::StatusError;
use crate::hosts::HostId;

/// Handles the events of a run.
pub trait Handler: Send + Sync + 'static {
    /// Handles an event. Called on a worker thread, in order per account. Blocking here delays the
    /// other accounts of the worker and, at the limits, the server.
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack);

    /// Handles the end of a batch: [`event`](Self::event) was called on this thread for all of its events, and was not
    /// called for others meanwhile. A handler that collects its output passes it on here, so that it takes a lock or
    /// wakes a thread once a batch; a batch is never delayed. The default does nothing.
    fn batch_end(&self) {}

    /// Handles a resynced repository, which comes between the account's events before and after it; events up
    /// to its revision that arrive later are ignored as stale, as [its records](ResyncedRepo::file) cover them.
    /// Until it is acknowledged, the state of the account is not journaled, and a later run resyncs it again.
    /// Called on a worker thread. The default acknowledges it.
    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        let _ = resynced;
        ack.done();
    }

    /// Handles a failed resync: the account stays desynchronized, and its next event starts another attempt.
    /// Called on a worker thread. The default does nothing.
    fn resync_failed(&self, did: &str, error: &ResyncError) {
        let _ = (did, error);
    }

    /// Handles a failed resync that is repeated after `delay`; until then the account's events wait, within the limits. Called
    /// on a worker thread. The default handles it as a failed one.
    fn resync_delayed(&self, did: &str, error: &ResyncError, delay: Duration) {
        let _ = delay;
        self.resync_failed(did, error);
    }

    /// Handles a condition that an operator should know about. Called from any thread, as often as it occurs: limit the
    /// rate of messages by [`Warning::code`]. The default does nothing.
    fn warning(&self, warning: &Warning<'_>) {
        let _ = warning;
    }

    /// Handles a notice about the connection. Called by the task that reads, which waits meanwhile. The
    /// default does nothing.
    fn notice(&self, notice: &Notice) {
        let _ = notice;
    }
}

impl<H: Handler> Handler for Arc<H> {
    fn event(&self, event: &DeliveredEvent<'_>, ack: Ack) {
        H::event(self, event, ack);
    }

    fn batch_end(&self) {
        H::batch_end(self);
    }

    fn resynced(&self, resynced: &Arc<ResyncedRepo>, ack: Ack) {
        H::resynced(self, resynced, ack);
    }

    fn resync_failed(&self, did: &str, error: &ResyncError) {
        H::resync_failed(self, did, error);
    }

    fn resync_delayed(&self, did: &str, error: &ResyncError, delay: Duration) {
        H::resync_delayed(self, did, error, delay);
    }

    fn warning(&self, warning: &Warning<'_>) {
        H::warning(self, warning);
    }

    fn notice(&self, notice: &Notice) {
        H::notice(self, notice);
    }
}

/// A condition that an operator should know about.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Warning<'a> {
    /// The key of an account cannot be looked up at the moment.
    #[error("the key of {did} cannot be looked up: {error}")]
    KeyUnavailable {
        /// The account.
        did: &'a str,
        /// The reason.
        error: &'a KeyError,
    },
    /// The revisions of an account go back, as after a migration that lost them: its events are ignored until one is later
    /// than the known revision, or until that is forgotten. Once per account, until that ends.
    #[error(
        "the revisions of {did} go back, to {rev}, but {known} is known: its events are ignored until one is later"
    )]
    RevisionsGoBack {
        /// The account.
        did: &'a str,
        /// The older revision.
        rev: Tid,
        /// The known one.
        known: Tid,
    },
    /// The stream called an account inactive, and the account's own server did not confirm it: the account's
    /// commits are delivered with the verdicts of their signatures.
    #[error("the stream calls {did} inactive, but its server does not confirm it: {error}")]
    StatusNotConfirmed {
        /// The account.
        did: &'a str,
        /// The reason.
        error: &'a StatusError,
    },
}

impl Warning<'_> {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::KeyUnavailable { .. } => "key-unavailable",
            Self::RevisionsGoBack { .. } => "revisions-go-back",
            Self::StatusNotConfirmed { .. } => "status-not-confirmed",
        }
    }
}

/// An event as it is delivered to a [`Handler`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DeliveredEvent<'a> {
    /// The host that sent it.
    pub host: HostId,
    /// The sequence number in the stream of that host, if it has one.
    pub seq: Option<u64>,
    /// The kind of message.
    pub kind: FrameKind,
    /// The account that it is about, unvalidated.
    pub did: Option<&'a str>,
    /// The bytes of the frame. Clones share them.
    pub frame: &'a Bytes,
    /// The time of arrival.
    pub received: SystemTime,
    /// The decoded event, verified or not; `None` if it cannot be decoded.
    pub event: Option<&'a Event<'a>>,
    /// The result of verification.
    pub verdict: Verdict<'a>,
    /// The key under which a verified event was verified.
    pub key: Option<CompressedKey>,
}

/// The result of verifying an event.
#[derive(Clone, Copy, Debug)]
pub enum Verdict<'a> {
    /// The outcome of [`verify::sync`]: verified, ignored, rejected, or a message without signature. Never
    /// rejected for lack of a key.
    Judged(Outcome<'a>),
    /// The account's key is unknown, so nothing is verified.
    UnknownKey(&'a KeyError),
    /// Verification is off.
    NotVerified,
    /// Bytes that are not a frame, or a message with invalid fields.
    Undecodable(FrameError),
}

impl Verdict<'_> {
    /// The stable code: the code of the [outcome](Outcome::code), `not-asked` if verification is off, or the code of
    /// the rule that the event breaks.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Judged(outcome) => outcome.code(),
            Self::UnknownKey(_) => "signature/no-key",
            Self::NotVerified => "not-asked",
            Self::Undecodable(error) => SyncRejection::Frame(*error).code(),
        }
    }

    /// Whether the event is verified to be its account's.
    pub fn is_verified(&self) -> bool {
        matches!(self, Self::Judged(outcome) if outcome.is_accepted())
    }
}

/// Delivers the events of one worker to the handler, in batches.
#[derive(Debug)]
pub(super) struct Dispatcher<H> {
    pub(super) handler: Arc<H>,
    pub(super) run: Arc<RunState>,
    pub(super) pending_states: Arc<PendingStates>,
    pub(super) metrics: Arc<RunMetrics>,
    /// Whether account states are journaled.
    pub(super) keeps_accounts: bool,
}

/// A batch that is being delivered.
#[derive(Debug)]
pub(super) struct BatchDelivery<'d, H> {
    dispatcher: &'d Dispatcher<H>,
    batch: Arc<Batch>,
    /// Number of delivered events.
    delivered: usize,
    started: Instant,
    verdicts: Vec<(&'static str, u64)>,
    invalid_records: u64,
    /// Time of arrival of the last event.
    received: Option<SystemTime>,
}

impl<H: Handler> Dispatcher<H> {
    pub(super) fn new(
        handler: &Arc<H>,
        run: &Arc<RunState>,
        metrics: &Arc<RunMetrics>,
        keeps_accounts: bool,
    ) -> Self {
        let handler = handler.clone();
        let run = run.clone();
        let metrics = metrics.clone();
        Self { handler, run, pending_states: Arc::default(), metrics, keeps_accounts }
    }

    /// Starts the delivery of these events.
    pub(super) fn start<'e>(
        &self,
        events: impl Iterator<Item = &'e QueuedEvent> + Clone,
    ) -> BatchDelivery<'_, H> {
        let tickets = events.clone().map(|event| event.ticket).collect();
        let bytes = events.clone().map(QueuedEvent::len).sum();
        let batch = self.open(tickets, bytes, events.map(|event| event.account));
        BatchDelivery {
            dispatcher: self,
            batch,
            delivered: 0,
            started: Instant::now(),
            verdicts: Vec::new(),
            invalid_records: 0,
            received: None,
        }
    }

    /// Delivers a resynced repository, and the state that follows from it.
    pub(super) fn deliver_resynced(
        &self,
        account: u64,
        resynced: &Arc<ResyncedRepo>,
        states: ChangedStates,
    ) {
        let batch = self.open(Box::default(), 0, [account].into_iter());
        self.metrics.invalid_records.fetch_add(resynced.invalid_records, Relaxed);
        self.handler.resynced(resynced, batch.ack(None));
        batch.close(states);
    }

    /// Records states that follow from no event.
    pub(super) fn change_states(&self, account: u64, states: ChangedStates) {
        self.open(Box::default(), 0, [account].into_iter()).close(states);
    }

    fn open(
        &self,
        tickets: Box<[Ticket]>,
        bytes: usize,
        accounts: impl Iterator<Item = u64>,
    ) -> Arc<Batch> {
        let accounts = if self.keeps_accounts { accounts.collect() } else { Box::default() };
        let batch = Batch::open(&self.run, tickets, bytes, accounts);
        if self.keeps_accounts {
            self.pending_states.add(batch.clone());
        }
        batch
    }
}

impl<H: Handler> BatchDelivery<'_, H> {
    /// Delivers the next event.
    pub(super) fn deliver(
        &mut self,
        queued: &QueuedEvent,
        event: Option<&Event<'_>>,
        verdict: Verdict<'_>,
        key: Option<CompressedKey>,
    ) {
        let code = verdict.code();
        match self.verdicts.iter_mut().find(|(known, _)| *known == code) {
            Some((_, count)) => *count += 1,
            None => self.verdicts.push((code, 1)),
        }
        if let Verdict::Judged(Outcome::Commit(commit, _)) = &verdict {
            self.invalid_records += InvalidRecords::of_commit(commit).records;
        }
        let received = &queued.received;
        let delivered = DeliveredEvent {
            host: received.host,
            seq: received.seq,
            kind: received.kind,
            did: received.did(),
            frame: &received.frame,
            received: received.received,
            event,
            verdict,
            key,
        };
        let ack = self.batch.ack(Some(self.delivered));
        self.delivered += 1;
        self.received = Some(received.received);
        self.dispatcher.handler.event(&delivered, ack);
    }

    /// Ends the delivery, with the states that follow from the events.
    pub(super) fn finish(self, states: ChangedStates) {
        self.dispatcher.handler.batch_end();
        self.batch.close(states);
        let metrics = &self.dispatcher.metrics;
        let delivered = self.delivered as u64;
        metrics.count_verdicts(&self.verdicts);
        metrics.delivered.fetch_add(delivered, Relaxed);
        metrics.invalid_records.fetch_add(self.invalid_records, Relaxed);
        metrics.handler_time.count(self.started.elapsed());
        let lag = self.received.and_then(|received| received.elapsed().ok());
        metrics.lag.count_many(lag.unwrap_or_default(), delivered);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use codec::Cid;
    use codec::cid::Codec;
    use verify::sync::{AccountState, Head};

    use super::super::ack::{AckTracker, InFlightLimit};
    use super::*;

    struct Ignore;

    impl Handler for Ignore {
        fn event(&self, _: &DeliveredEvent<'_>, ack: Ack) {
            ack.done();
        }
    }

    fn dispatcher(keeps_accounts: bool) -> Dispatcher<Ignore> {
        let in_flight = InFlightLimit::new(10, 10, None);
        let run = RunState::new(vec!["a".into()], AckTracker::new([None]), in_flight);
        Dispatcher::new(&Arc::new(Ignore), &run, &Arc::default(), keeps_accounts)
    }

    fn states() -> ChangedStates {
        vec![(7, "did:x:y".into(), AccountState::UNKNOWN)]
    }

    #[test]
    fn a_state_waits_for_the_events_of_its_account_before_it() {
        let dispatcher = dispatcher(true);
        let open = dispatcher.open(Box::default(), 0, [7].into_iter());
        dispatcher.change_states(7, states());
        assert!(dispatcher.pending_states.take().is_empty());
        open.close(vec![]);
        assert_eq!(dispatcher.pending_states.take().len(), 1);
    }

    #[test]
    fn without_a_journal_of_accounts_no_state_is_kept() {
        let dispatcher = dispatcher(false);
        dispatcher.change_states(7, states());
        assert!(dispatcher.pending_states.take().is_empty());
    }

    #[test]
    fn a_handler_of_events_alone_acknowledges_resynced_repositories() {
        let dispatcher = dispatcher(true);
        let (rev, data) = (Tid::new(1, 0), Cid::of(Codec::DagCbor, b""));
        let head = Head { rev, data, commit: data };
        let mut resynced = ResyncedRepo::new("did:x:y", head).unwrap();
        resynced.invalid_records = 3;
        dispatcher.deliver_resynced(7, &Arc::new(resynced), states());
        assert!(dispatcher.run.failure.take().is_none());
        assert_eq!(dispatcher.pending_states.take().len(), 1);
        assert_eq!(dispatcher.metrics.snapshot().invalid_records, 3);
    }

    /// Keeps the delay of the last resync in seconds.
    #[derive(Default)]
    struct Delay(AtomicU64);

    impl Handler for Delay {
        fn event(&self, _: &DeliveredEvent<'_>, ack: Ack) {
            ack.done();
        }

        fn resync_delayed(&self, _: &str, _: &ResyncError, delay: Duration) {
            self.0.store(delay.as_secs(), Relaxed);
        }
    }

    #[test]
    fn a_shared_handler_is_called_for_a_delayed_resync() {
        let shared = Arc::<Delay>::default();
        Handler::resync_delayed(&shared, "did:x:y", &ResyncError::NoHost, Duration::from_secs(7));
        assert_eq!(shared.0.load(Relaxed), 7);
    }

    #[test]
    fn what_is_not_judged_is_not_verified() {
        assert!(!Verdict::NotVerified.is_verified());
    }
}
