//! Handles the notice that events may be missing: a host has reset its sequence, or no longer keeps the events after
//! the cursor.
//!
//! Every account may have missed events, and one that does nothing more would never show it. So complete histories are
//! outdated, and the accounts of the state file are checked, both noted on disk before the next event is read. A
//! repository whose fetch began before the loss may lack the lost events: it is fetched again too.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

use delivery::Outbox;
use net::firehose::{Notice, StopSignal};
use tokio::sync::Notify;

use super::recheck::Recheck;
use super::status::Status;
use crate::failure::Failure;

/// Notes losses of events.
pub(super) struct LostEvents {
    pub(super) outbox: Option<Outbox>,
    /// Notified when histories are outdated.
    pub(super) outdated: Arc<Notify>,
    pub(super) recheck: Arc<Recheck>,
    /// Whether repositories are fetched.
    pub(super) resyncs: bool,
    pub(super) status: Status,
    pub(super) stop: StopSignal,
    pub(super) last: LastLoss,
}

/// The time of the last loss. Fetched content is written before or after a loss is recorded, not meanwhile.
#[derive(Default)]
pub(super) struct LastLoss(RwLock<Option<Instant>>);

impl LastLoss {
    /// Notes a loss.
    fn note<T>(&self, note: impl FnOnce() -> T) -> T {
        let mut last = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *last = Some(Instant::now());
        note()
    }

    /// A guard under which fetched content is written; `None` if events were lost since it began.
    pub(super) fn none_since(
        &self,
        began: Instant,
    ) -> Option<RwLockReadGuard<'_, Option<Instant>>> {
        let last = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_before_loss = last.is_some_and(|loss| began <= loss);
        (!is_before_loss).then_some(last)
    }
}

impl LostEvents {
    /// Notes a loss, if the notice is of one. A loss that cannot be recorded stops the run.
    pub(super) fn record(&self, notice: &Notice) {
        if !notice.loses_events() {
            return;
        }
        if let Err(failure) = self.last.note(|| self.note()) {
            let why = failure.message().unwrap_or_default();
            self.status.print_warning(&format!(
                "the loss of events cannot be recorded, and the run stops: delete the state folder, or start with --cursor \
                 oldest and another one: {why}"
            ));
            return self.stop.request();
        }
        self.status.print_warning(if self.resyncs { "events may be missing: the repositories of all accounts are fetched again" } else { "events may be missing: accounts that do nothing more will not show it; --resync fetches them again" });
    }

    fn note(&self) -> Result<(), Failure> {
        if let Some(outbox) = &self.outbox {
            outbox.outdate_histories()?;
            self.outdated.notify_one();
        }
        self.recheck.begin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_fetched_before_a_loss_is_not_written_and_what_was_fetched_after_it_is() {
        let (losses, before) = (LastLoss::default(), Instant::now());
        assert!(losses.none_since(before).is_some());
        losses.note(|| {});
        assert!(losses.none_since(before).is_none());
        assert!(losses.none_since(later()).is_some());
        losses.note(|| {});
        assert!(losses.none_since(before).is_none());
    }

    /// A later time than in any earlier call.
    fn later() -> Instant {
        let now = Instant::now();
        std::iter::repeat_with(Instant::now).find(|later| *later > now).unwrap()
    }
}
