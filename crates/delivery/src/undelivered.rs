//! The events of one account that consumers have not acknowledged.

use store::sqlite_file;

use crate::database;
use crate::error::{OutboxError, OutboxFault};
use crate::event::{self, Event};
use crate::state::Shared;
use crate::window::AckWindow;

/// The events of an account that a consumer has not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Undelivered {
    /// The name of the consumer.
    pub consumer: String,
    /// Number of these events among the events that were read.
    pub events: u64,
    /// Id of the oldest of them.
    pub oldest: Option<String>,
    /// Whether all events of the outbox were read: otherwise there may be more.
    pub is_complete: bool,
}

/// Counts the events of an account, over at most `max_bytes` of the oldest events that some consumer awaits.
pub(crate) fn of_account(
    shared: &Shared,
    account: &str,
    max_bytes: u64,
) -> Result<Vec<Undelivered>, OutboxError> {
    let account = event::bounded(account);
    let consumers = shared.lock().consumers.clone();
    let end = *shared.committed.borrow();
    let mut next = consumers.values().map(|window| window.cursor() + 1).min().unwrap_or(end);
    let (mut found, mut bytes) = (vec![(0, None); consumers.len()], 0);
    let reader = sqlite_file::open_reader(&shared.path)?;
    while next < end && bytes < max_bytes {
        let damaged = |rule: &str| shared.error(OutboxFault::Damaged(rule.to_owned()));
        let batch = match database::read_batch(&reader, next) {
            Ok(batch) => batch,
            // Every consumer has acknowledged it since.
            Err(_) if oldest_awaited(shared) > next => {
                next = oldest_awaited(shared);
                continue;
            }
            Err(fault) => return Err(shared.error(fault)),
        };
        let events = batch.events().map_err(damaged)?;
        bytes += batch.data.len() as u64;
        next = events.last().map_or(end, |last| last.position() + 1);
        for event in events.iter().filter(|event| event.account() == &*account) {
            let awaiting = consumers.values().zip(&mut found).filter(|(at, _)| !has(at, event));
            for (_, (count, oldest)) in awaiting {
                *count += 1;
                oldest.get_or_insert_with(|| event.id().to_owned());
            }
        }
    }
    let is_complete = next >= end;
    let counted = consumers.keys().zip(found);
    let undelivered = counted.map(|(name, (events, oldest))| Undelivered {
        consumer: name.to_string(),
        events,
        oldest,
        is_complete,
    });
    Ok(undelivered.collect())
}

fn has(window: &AckWindow, event: &Event) -> bool {
    window.has(event.position())
}

fn oldest_awaited(shared: &Shared) -> u64 {
    let state = shared.lock();
    let slowest = state.consumers.values().map(AckWindow::cursor).min();
    slowest.map_or(state.extent.next, |cursor| cursor + 1)
}
