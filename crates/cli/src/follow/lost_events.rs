//! What follows from the notice that events may be missing: a host has reset its sequence, or no longer keeps what comes
//! after the cursor.
//!
//! Every account may have missed events, and one that does nothing more would never show it. So complete histories are
//! outdated, and the accounts of the state file are checked, both noted on disk before the next event is read.

use std::sync::Arc;

use tokio::sync::Notify;
use wireproof::delivery::Outbox;
use wireproof::net::firehose::{Notice, StopSignal};

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
}

impl LostEvents {
    /// Notes a loss, if the notice is of one. What cannot be noted stops the run.
    pub(super) fn record(&self, notice: &Notice) {
        if !notice.loses_events() {
            return;
        }
        if let Err(failure) = self.note() {
            let why = failure.message().unwrap_or_default();
            self.status.print_warning(&format!(
                "the loss of events cannot be noted, and the run stops: delete the state folder, or start with --cursor \
                 oldest and another one: {why}"
            ));
            return self.stop.request();
        }
        self.status.print_warning(match self.resyncs {
            true => "events may be missing: the repositories of all accounts are fetched again",
            false => "events may be missing: accounts that do nothing more will not show it; --resync fetches them again",
        });
    }

    fn note(&self) -> Result<(), Failure> {
        if let Some(outbox) = &self.outbox {
            outbox.outdate_histories()?;
            self.outdated.notify_one();
        }
        self.recheck.begin()
    }
}
