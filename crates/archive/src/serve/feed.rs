//! Reads the events for one client, from its cursor on.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::Sender;
use tokio::time::sleep;

use super::rate::EventRate;
use super::shared::{Shared, delay_micros};
use crate::error::ArchiveError;
use crate::replay::{Replay, ReplayView, ReplayedEvent};

/// The next item for a client.
#[derive(Debug)]
pub(super) enum Item {
    /// An event.
    Event(ReplayedEvent),
    /// The cursor is before the first event.
    Outdated,
    /// The cursor is after the last event: the stream ends.
    Future,
    /// All events were sent: the stream ends.
    End,
    /// The archive cannot be read: the stream ends.
    Failed,
}

/// Sends the events after a cursor, until the client is gone or has all of them.
pub(super) async fn run(shared: Arc<Shared>, cursor: Option<i64>, items: Sender<Item>) {
    let result = tokio::select! {
        () = items.closed() => return,
        result = read(&shared, cursor, &items) => result,
    };
    if let Err(error) = result {
        (shared.warn)(&format!("a client is disconnected, as the archive cannot be read: {error}"));
        // A client that is gone needs no reason.
        let _ = items.send(Item::Failed).await;
    }
}

async fn read(
    shared: &Shared,
    cursor: Option<i64>,
    items: &Sender<Item>,
) -> Result<(), ArchiveError> {
    let options = &shared.options;
    let mut views = shared.view.subscribe();
    let view = views.borrow_and_update().clone();
    let (first, last) = view.bounds().unwrap_or((0, 0));
    if let Some(cursor) = cursor {
        if is_future(shared, &view, cursor, last).await? {
            let _ = items.send(Item::Future).await;
            return Ok(());
        }
        if cursor != 0 && cursor < first.max(*options.arrivals.start()) {
            let _ = items.send(Item::Outdated).await;
        }
    }
    let mut replay = Replay::new(shared.archive.clone(), view, options.arrivals.clone());
    if let Some(cursor) = cursor.or(options.follows.then_some(last)) {
        replay = replay.after_number(cursor);
    }
    let mut rate = options.rate.map(EventRate::new);
    let mut left_out = 0;
    loop {
        replay.set_end((*options.arrivals.end()).min(horizon(shared)));
        while let Some(event) = replay.next().await? {
            if views.has_changed().unwrap_or_default() {
                replay.set_view(views.borrow_and_update().clone());
            }
            if let Some(rate) = &mut rate {
                rate.ready().await;
            }
            if items.send(Item::Event(event)).await.is_err() {
                return Ok(());
            }
        }
        shared.metrics.left_out.fetch_add(replay.left_out() - left_out, Relaxed);
        left_out = replay.left_out();
        if !options.follows {
            let _ = items.send(Item::End).await;
            return Ok(());
        }
        tokio::select! {
            changed = views.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                replay.set_view(views.borrow_and_update().clone());
            }
            // Events that are served later, with a delay.
            () = sleep(options.poll_interval), if !options.delay.is_zero() => {}
        }
    }
}

/// The last arrival that is served now.
fn horizon(shared: &Shared) -> i64 {
    if shared.options.delay.is_zero() {
        return i64::MAX;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(delay_micros(shared))
}

/// Whether a cursor is after the last event, whose number can be greater than its arrival.
async fn is_future(
    shared: &Shared,
    view: &Arc<ReplayView>,
    cursor: i64,
    last: i64,
) -> Result<bool, ArchiveError> {
    if cursor <= last {
        return Ok(false);
    }
    let replay = Replay::new(shared.archive.clone(), view.clone(), i64::MIN..=i64::MAX);
    let mut replay = replay.after_number(cursor);
    while replay.next().await?.is_some() {}
    Ok(replay.last_number().is_none_or(|number| number < cursor))
}
