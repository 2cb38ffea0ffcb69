//! Why does a run end before it is asked to? The first reason counts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::run::RunError;

/// The first failure of a run.
#[derive(Debug, Default)]
pub(super) struct FirstError {
    is_set: AtomicBool,
    reason: Mutex<Option<RunError>>,
    wake: Notify,
}

impl FirstError {
    /// The run ends for this reason, unless it had one before.
    #[cold]
    pub(super) fn set(&self, reason: RunError) {
        let mut first = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_set.swap(true, Ordering::AcqRel) {
            *first = Some(reason);
        }
        drop(first);
        self.wake.notify_waiters();
        self.wake.notify_one();
    }

    /// Whether the run is to end.
    pub(super) fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Until the run is to end; for one who waits.
    pub(super) async fn wait(&self) {
        while !self.is_set() {
            self.wake.notified().await;
        }
    }

    /// The reason, for the one who tells it.
    pub(super) fn take(&self) -> Option<RunError> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
