//! The interface of sinks: a delivery sends them batches of events, and gets the results.

use std::time::Duration;

use events::LineError;
use net::remote_text::{MAX_MESSAGE_CHARS, sanitize};

use crate::database::OutboxIdentity;
use crate::event::Event;

/// Receives events.
///
/// A delivery calls [`send`](Self::send) for up to [`SinkLimits::concurrency`] batches at once. Events of one account
/// are in one batch, or in batches one after the other. With a concurrency of 1 all events come in the order of their
/// positions, so a sink that stores data and position in one transaction is exactly once: see [`stored`](Self::stored).
pub trait Sink: Send + Sync + 'static {
    /// The limits of its batches.
    fn limits(&self) -> SinkLimits;

    /// Sends events, in their order, and returns when the receiver has them for good. The order of an account also
    /// holds within a failed batch: an event that is accepted has no unaccepted one of its account before it.
    ///
    /// The delivery repeats events that were not accepted. Every wait must have a limit. Dropped only at the end of a
    /// stop that took too long.
    ///
    /// # Errors
    /// If not all events are accepted: which are, and why the others are not.
    fn send(&self, events: &[Event]) -> impl Future<Output = Result<(), SendFailure>> + Send;

    /// The position that the sink has stored with its data, for an outbox of this identity. The delivery continues
    /// after it, whatever was acknowledged later; one before the last acknowledged event is an error. So a sink that
    /// stores positions and refuses events must [`skip`](Self::skip) them. The default has none.
    ///
    /// # Errors
    /// If the sink cannot tell: the delivery tries again.
    fn stored(
        &self,
        outbox: OutboxIdentity,
    ) -> impl Future<Output = Result<Option<u64>, SendFailure>> + Send {
        let _ = outbox;
        async { Ok(None) }
    }

    /// Passes over an event that was refused and is now set aside. A sink that stores positions stores this one, so that the event does not
    /// come again. The default does nothing.
    ///
    /// # Errors
    /// If it fails: the event is sent again.
    fn skip(&self, event: &Event) -> impl Future<Output = Result<(), SendFailure>> + Send {
        let _ = event;
        async { Ok(()) }
    }

    /// Number of rows that the sink has written or deleted since it was opened. The default, for sinks without rows, is `None`.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// Does periodic work, about once a second while nothing is sent. The default does nothing.
    ///
    /// # Errors
    /// If it fails: it is called again.
    fn maintain(&self) -> impl Future<Output = Result<(), SendFailure>> + Send {
        async { Ok(()) }
    }

    /// Ends the sink after its last batch. The default does nothing.
    ///
    /// # Errors
    /// If it fails; accepted events are not affected.
    fn close(&self) -> impl Future<Output = Result<(), SendFailure>> + Send {
        async { Ok(()) }
    }
}

/// Limits of the batches of a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkLimits {
    /// Maximum number of events in a batch; at least 1.
    pub max_events: usize,
    /// Size of a batch in bytes, which only a single event may exceed.
    pub max_bytes: usize,
    /// Maximum number of batches that are sent at once; at least 1.
    pub concurrency: usize,
}

impl SinkLimits {
    /// Batches of up to this many events and bytes, one at a time.
    pub const fn new(max_events: usize, max_bytes: usize) -> Self {
        Self { max_events, max_bytes, concurrency: 1 }
    }

    /// Allows this many batches at once.
    #[must_use]
    pub const fn with_concurrency(self, concurrency: usize) -> Self {
        Self { concurrency, ..self }
    }
}

/// A batch that was not accepted as a whole.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct SendFailure {
    /// The positions of the events that were accepted.
    pub accepted: Vec<u64>,
    /// How to handle the other events.
    pub kind: FailureKind,
    /// The reason, for a person.
    pub reason: String,
}

/// The consequence of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The receiver may accept the same events later, and not before this delay.
    Temporary(Duration),
    /// The receiver refuses at least one of the events. The delivery finds out which by halving the batch, tries these
    /// alone a few times, and then sets them aside.
    Refused,
    /// The receiver refuses something: one of the events, or whatever comes from here. As [`Refused`](Self::Refused), but an
    /// event is set aside only if another one was accepted meanwhile.
    Declined,
    /// The sink cannot continue. The delivery ends.
    Fatal,
}

impl SendFailure {
    /// No event was accepted; the same events may be accepted later.
    pub fn temporary(reason: impl ToString) -> Self {
        Self::new(FailureKind::Temporary(Duration::ZERO), reason)
    }

    /// The same failure in a run: a failure that needs the operator, such as credentials that have ended, is tried
    /// again, as the operator may mend it at any time.
    #[cfg(feature = "tls")]
    pub(crate) fn in_run(self) -> Self {
        let kind = match self.kind {
            FailureKind::Fatal => FailureKind::Temporary(Duration::ZERO),
            other => other,
        };
        Self { kind, ..self }
    }

    /// The payload of the event with this id cannot be read, and never can be: it is refused.
    #[cold]
    pub(crate) fn malformed(id: &str, error: &LineError) -> Self {
        let id = sanitize(id, MAX_MESSAGE_CHARS);
        Self::new(FailureKind::Refused, format!("{id}: {error} ({})", error.code()))
    }

    /// No event was accepted, for this kind of reason.
    pub fn new(kind: FailureKind, reason: impl ToString) -> Self {
        Self { accepted: Vec::new(), kind, reason: reason.to_string() }
    }
}
