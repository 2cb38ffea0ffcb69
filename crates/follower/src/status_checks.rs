//! Statuses of accounts, confirmed by the accounts' own servers.
//!
//! An `#account` event is not signed: for it alone no receiver should delete records. So the account's server is asked,
//! and if it does not serve the account, a line of kind `status` follows the event. The event is acknowledged after that
//! line, so a crash repeats the check.

use std::sync::Arc;
use std::time::Duration;

use delivery::{EventId, NewEvent, Outbox, OutboxError, RecordEffects};
use net::firehose::{ServerStatus, ServerStatuses, StopSignal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::line;
use super::outbox_acks::SharedAck;
use super::status::Status;

/// Takes the accounts whose status has to be checked.
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
                    format!("{did}: the stream calls the account inactive, and its server is not asked: too many accounts are")
                });
            }
        }
    }
}

impl StatusChecker {
    /// Makes checks until a stop is requested.
    pub(super) async fn run(mut self, stop: StopSignal) {
        let (mut running, mut repeated) = (JoinSet::new(), JoinSet::new());
        loop {
            tokio::select! {
                biased;
                () = stop.requested() => return,
                Some(checked) = running.join_next() => {
                    if let Ok(Some(unconfirmed)) = checked
                        && repeated.len() < MAX_REPEATED
                    {
                        repeated.spawn(self.asker().repeat(unconfirmed));
                    }
                }
                Some(_) = repeated.join_next() => {}
                check = self.queue.recv(), if running.len() < CONCURRENT => match check {
                    Some(check) => drop(running.spawn(self.asker().check(check))),
                    None => return,
                },
            }
        }
    }

    fn asker(&self) -> Asker {
        let (statuses, outbox) = (self.statuses.clone(), self.outbox.clone());
        Asker { statuses, outbox, status: self.status.clone() }
    }
}

/// Asks accounts' own servers.
struct Asker {
    statuses: ServerStatuses,
    outbox: Outbox,
    status: Status,
}

/// An account that the stream calls inactive, which its server has not confirmed, and the id of the line if it does.
struct Unconfirmed {
    did: Box<str>,
    id: EventId,
}

impl Asker {
    /// Asks the account's server, and stores a line if it confirms that the account is inactive.
    async fn check(self, check: Check) -> Option<Unconfirmed> {
        let Some(found) = self.ask(&check.did).await else {
            let unconfirmed = Unconfirmed { did: check.did.clone(), id: check.id.clone() };
            check.end(Ok(()));
            return Some(unconfirmed);
        };
        let outbox = self.outbox;
        // It may wait for room.
        let store = move || {
            let (id, did) = (check.id.clone(), check.did.clone());
            store(&outbox, id, &did, &found, move |stored| check.end(stored));
        };
        let _ = tokio::task::spawn_blocking(store).await;
        None
    }

    /// Asks again, some times. The event is acknowledged: another run does not ask.
    async fn repeat(self, account: Unconfirmed) {
        for delay in DELAYS_SECONDS.map(Duration::from_secs) {
            sleep(delay).await;
            if let Some(found) = self.ask(&account.did).await {
                let store = move || {
                    let Unconfirmed { did, id } = account;
                    store(&self.outbox, id, &did, &found, drop);
                };
                let _ = tokio::task::spawn_blocking(store).await;
                return;
            }
        }
    }

    /// The status, if the server says that the account is inactive.
    async fn ask(&self, did: &str) -> Option<ServerStatus> {
        let why = match timeout(MAX_LOOKUP, self.statuses.status(did)).await {
            Ok(Ok(found)) if !found.is_active => return Some(found),
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        self.status.warn("status-not-confirmed", || {
            format!(
                "{did}: the stream calls the account inactive, but its server does not confirm it: {why}"
            )
        });
        None
    }
}

/// Stores the line of a confirmed status.
fn store(
    outbox: &Outbox,
    id: EventId,
    did: &str,
    found: &ServerStatus,
    stored: impl FnOnce(Result<(), OutboxError>) + Send + 'static,
) {
    let mut line = Vec::new();
    let status = found.status.as_deref();
    line::write_status(&mut line, &id, did, status);
    line.pop();
    // A status is short, and its line is one.
    let Ok(event) = NewEvent::new(id, did, line) else { return };
    let event = if status == Some(DELETED) && outbox.has_histories() {
        event.with_effects(RecordEffects::of_deletion())
    } else {
        event
    };
    outbox.append(event, stored);
}

impl Check {
    /// Ends the check, with the result of storing the events that follow from it.
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

/// The status of a deleted account, whose records receivers delete.
const DELETED: &str = "deleted";

/// Maximum number of queued checks, and of concurrent ones.
const MAX_QUEUED: usize = 1024;
const CONCURRENT: usize = 16;

/// Maximum number of accounts that are asked for again.
const MAX_REPEATED: usize = 1024;

/// Seconds before an account that its server does not confirm is asked for again.
const DELAYS_SECONDS: [u64; 6] = [10, 60, 300, 900, 1800, 3600];

/// Maximum time of a check.
const MAX_LOOKUP: Duration = Duration::from_secs(60);
