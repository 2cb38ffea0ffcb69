//! The beat at which clients learn of new events: with many clients, the events of a moment are one write for each of them.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

/// The last stored arrival, as clients learn it.
#[derive(Debug)]
pub(crate) struct Beat(watch::Sender<i64>);

impl Beat {
    pub(crate) fn new(stored: i64) -> Self {
        Self(watch::Sender::new(stored))
    }

    /// Changes with every beat after which there are new events.
    pub(crate) fn subscribe(&self) -> watch::Receiver<i64> {
        self.0.subscribe()
    }

    /// Beats for the events that are stored, of which there are `events` so far; at once for few clients.
    pub(crate) async fn run(
        &self,
        mut stored: watch::Receiver<i64>,
        clients: impl Fn() -> u64,
        events: impl Fn() -> u64,
    ) -> Infallible {
        loop {
            let sent = events();
            let last = *stored.borrow_and_update();
            self.0.send_if_modified(|beat| std::mem::replace(beat, last) != last);
            if clients() > FEW_CLIENTS {
                gather(&mut stored, || events().saturating_sub(sent)).await;
            }
            while events() == sent {
                if stored.changed().await.is_err() {
                    // The log is closed with the server.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

/// Waits until a write to every client is worth its time.
async fn gather(stored: &mut watch::Receiver<i64>, new_events: impl Fn() -> u64) {
    let beat = Instant::now();
    sleep_until(beat + MIN_INTERVAL).await;
    while new_events() < ENOUGH_EVENTS
        && matches!(timeout_at(beat + MAX_INTERVAL, stored.changed()).await, Ok(Ok(())))
    {}
}

/// Number of clients up to which every event is sent at once.
const FEW_CLIENTS: u64 = 16;

/// Bounds of the time between beats. A write takes the kernel longer than the event takes us.
const MIN_INTERVAL: Duration = Duration::from_millis(12);
const MAX_INTERVAL: Duration = Duration::from_millis(48);

/// Number of events for which a beat comes before its maximum time.
const ENOUGH_EVENTS: u64 = 8;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// The time until clients learn of some events that come together, so long after a beat.
    async fn delay_after(silence: Duration, clients: u64, events: u64) -> Duration {
        let (log, stored) = watch::channel(0);
        let (beat, count) = (Arc::new(Beat::new(0)), Arc::new(AtomicU64::new(0)));
        let mut learned = beat.subscribe();
        let (of_task, counted) = (beat.clone(), count.clone());
        let running = tokio::spawn(async move {
            of_task.run(stored, move || clients, move || counted.load(Relaxed)).await
        });
        let store = |last: u64| {
            count.store(last, Relaxed);
            log.send_replace(last as i64);
        };
        store(1);
        learned.wait_for(|last| *last == 1).await.unwrap();
        tokio::time::sleep(silence).await;
        let before = Instant::now();
        store(1 + events);
        learned.wait_for(|last| *last == 1 + events as i64).await.unwrap();
        running.abort();
        before.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn few_clients_learn_of_an_event_at_once_and_many_at_the_next_beat() {
        let (few, many) = (FEW_CLIENTS, FEW_CLIENTS + 1);
        for (clients, events, at_least) in [
            (few, 1, Duration::ZERO),
            (many, ENOUGH_EVENTS, MIN_INTERVAL),
            (many, ENOUGH_EVENTS - 1, MAX_INTERVAL),
        ] {
            let waited = delay_after(Duration::ZERO, clients, events).await;
            let at_most = at_least + Duration::from_millis(2);
            assert!((at_least..=at_most).contains(&waited), "{clients}, {events}: {waited:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_after_a_silence_is_sent_at_once() {
        let waited = delay_after(MAX_INTERVAL * 2, FEW_CLIENTS + 1, 1).await;
        assert_eq!(waited, Duration::ZERO);
    }
}
