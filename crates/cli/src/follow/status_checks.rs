//! Statuses of accounts, confirmed by the accounts' own servers.
//!
//! An `#account` event is not signed: for it alone no receiver should delete records. So the account's server is asked,
//! and if it does not serve the account, a line of kind `status` follows the event. The event is acknowledged after that
//! line, so a crash repeats the check.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::timeout;
use wireproof::delivery::{EventId, NewEvent, Outbox, OutboxError};
use wireproof::net::firehose::{ServerStatus, ServerStatuses, StopSignal};

use super::line;
use super::outbox_acks::SharedAck;
use super::status::Status;

/// Takes the accounts whose status is to be checked.
#[derive(Clone, Debug)]
pub(super) struct StatusChecks {
    queue: Sender<Check>,
    status: Status,
}

/// Makes the checks.
pub(super) struct StatusChecker {
    pub(super) queue: Receiver<Check>,
    pub(super) statuses: ServerStatuses,
    pub(super) outbox: Outbox,
    pub(super) status: Status,
}

/// A check that is not made yet.
#[derive(Debug)]
pub(super) struct Check {
    did: Box<str>,
    id: EventId,
    ack: Arc<SharedAck>,
    is_made: bool,
}

impl StatusChecks {
    /// The queue of checks, and its end for the checker.
    pub(super) fn new(status: Status) -> (Self, Receiver<Check>) {
        let (queue, checks) = channel(MAX_QUEUED);
        (Self { queue, status }, checks)
    }

    /// Queues a check of an account that the event of this number calls inactive. Without room the event stays a claim.
    /// The event must be in the outbox before.
    pub(super) fn add(&self, did: &str, host: &str, seq: Option<u64>, ack: Arc<SharedAck>) {
        let id = EventId::of_message(did, &format!("{host}/status"), seq.unwrap_or_default());
        let check = Check { did: did.into(), id, ack, is_made: false };
        match self.queue.try_reserve() {
            Ok(room) => room.send(check),
            Err(_) => {
                check.end(Ok(()));
                self.status.warn("status-unchecked", || {
                    format!("{did}: called inactive by the stream, and its server is not asked: too many accounts are")
                });
            }
        }
    }
}

impl StatusChecker {
    /// Makes checks until a stop is requested.
    pub(super) async fn run(mut self, stop: StopSignal) {
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return,
                Some(_) = running.join_next() => {}
                check = self.queue.recv(), if running.len() < CONCURRENT => match check {
                    Some(check) => drop(running.spawn(self.check(check))),
                    None => return,
                },
            }
        }
    }

    /// Asks the account's server, and stores a line if it confirms that the account is inactive.
    fn check(&self, check: Check) -> impl Future<Output = ()> + Send + use<> {
        let (statuses, outbox) = (self.statuses.clone(), self.outbox.clone());
        let status = self.status.clone();
        async move {
            let found = timeout(MAX_LOOKUP, statuses.status(&check.did)).await;
            match found {
                Ok(Ok(found)) if !found.is_active => {
                    // It may wait for room.
                    let store = move || store(&outbox, check, &found);
                    let _ = tokio::task::spawn_blocking(store).await;
                    return;
                }
                Ok(Ok(_)) => {}
                Ok(Err(error)) => status.warn("status-not-confirmed", || {
                    format!("{}: called inactive by the stream, which its server does not confirm: {error}", check.did)
                }),
                Err(_) => status.warn("status-not-confirmed", || {
                    format!("{}: called inactive by the stream, and its server does not answer", check.did)
                }),
            }
            check.end(Ok(()));
        }
    }
}

/// Stores the line of a confirmed status.
fn store(outbox: &Outbox, check: Check, found: &ServerStatus) {
    let mut line = Vec::new();
    line::write_status(&mut line, &check.id, &check.did, found.status.as_deref());
    line.pop();
    // A status is short, and its line is one.
    if let Ok(event) = NewEvent::new(check.id.clone(), &check.did, line) {
        outbox.append(event, move |stored| check.end(stored));
    }
}

impl Check {
    /// Ends the check, with the result of storing what follows from it.
    fn end(mut self, stored: Result<(), OutboxError>) {
        self.is_made = true;
        self.ack.record(stored);
    }
}

impl Drop for Check {
    /// A check that was not made is left to the next run, with its event.
    fn drop(&mut self) {
        if !self.is_made {
            self.ack.give_up();
        }
    }
}

/// Maximum number of queued checks, and of concurrent ones.
const MAX_QUEUED: usize = 1024;
const CONCURRENT: usize = 16;

/// Maximum time of a check.
const MAX_LOOKUP: Duration = Duration::from_secs(60);
