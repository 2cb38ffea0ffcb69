//! The end of a run: its errors, the first of which wins, and the signal that pauses it.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::feed::FeedError;
use super::journal::JournalError;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The feed ended.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The handler dropped an [`Ack`](super::Ack) without using it.
    #[error("an event was dropped instead of acknowledged: {stream}{}", seq.map_or(String::new(), |seq| format!(", seq {seq}")))]
    Unacknowledged {
        /// The name of the stream; empty for a resynced repository.
        stream: String,
        /// The event's sequence number, if it has one.
        seq: Option<u64>,
    },
    /// The journal could not be read or written.
    #[error("the journal failed: {0}")]
    Journal(#[from] JournalError),
    /// The state of accounts could not be loaded or stored.
    #[error("the account state failed: {0}")]
    State(Box<dyn Error + Send + Sync>),
    /// The local clock is behind: events with the current time seem to come from the future. No event is
    /// passed over.
    #[error(
        "the local clock is about {} minutes behind the stream: set it; no event was skipped, and the \
         next run continues where this one ended", .behind.as_secs().div_ceil(60)
    )]
    LocalClock {
        /// How far it is behind.
        behind: Duration,
    },
    /// A worker thread panicked: in the handler, or through a bug of this crate.
    #[error("a worker thread panicked")]
    Panicked,
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The future of the run was dropped.
    #[error("the run was dropped before it ended")]
    Abandoned,
}

/// The first failure of a run; later ones are ignored.
#[derive(Debug, Default)]
pub(super) struct FirstError {
    is_set: AtomicBool,
    error: Mutex<Option<RunError>>,
    changed: Notify,
}

impl FirstError {
    /// Sets the error unless one is set.
    #[cold]
    pub(super) fn set(&self, error: RunError) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_set.swap(true, Ordering::AcqRel) {
            *first = Some(error);
        }
        drop(first);
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// Whether an error is set.
    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Waits until an error is set. For one waiter.
    pub(super) async fn wait(&self) {
        while !self.is_set() {
            self.changed.notified().await;
        }
    }

    /// Takes the error out.
    pub(super) fn take(&self) -> Option<RunError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Fails the run when its thread panics.
pub(super) struct PanicGuard<'r>(pub(super) &'r FirstError);

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set(RunError::Panicked);
        }
    }
}

/// Pauses a run: no further event is received, and those in flight are finished. Clones share the signal.
///
/// The host notices nothing but a slow reader, and may close the connection; the run then continues after its cursor.
///
/// ```
/// use wireproof::net::firehose::PauseSignal;
/// let pause = PauseSignal::new();
/// let other = pause.clone();
/// other.set(true);
/// assert!(pause.is_set());
/// ```
#[derive(Clone, Debug)]
pub struct PauseSignal(Arc<watch::Sender<bool>>);

impl PauseSignal {
    /// A signal that is not set.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Pauses or resumes, from any thread.
    pub fn set(&self, is_paused: bool) {
        self.0.send_replace(is_paused);
    }

    /// Whether the signal is set.
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits while the signal is set.
    pub async fn resumed(&self) {
        self.is(false).await;
    }

    /// Waits until the signal is set.
    pub async fn begun(&self) {
        self.is(true).await;
    }

    async fn is(&self, wanted: bool) {
        if self.is_set() != wanted {
            // Waiting fails only without a sender, and `self` is one.
            let _ = self.0.subscribe().wait_for(|is_paused| *is_paused == wanted).await;
        }
    }
}

impl Default for PauseSignal {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, resume_unwind};

    use super::*;

    #[test]
    fn a_thread_that_panics_fails_the_run_and_one_that_ends_does_not() {
        let failure = FirstError::default();
        drop(PanicGuard(&failure));
        assert!(!failure.is_set());
        let guard = std::panic::AssertUnwindSafe(PanicGuard(&failure));
        let panicked = catch_unwind(move || {
            let _guard = guard;
            resume_unwind(Box::new("a handler"))
        });
        assert!(panicked.is_err());
        assert!(matches!(failure.take(), Some(RunError::Panicked)));
    }
}
