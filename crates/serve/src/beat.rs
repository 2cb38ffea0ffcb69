//! The beat at which clients learn of new events: with many clients, the events of a moment are one write for each of them.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

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

    /// Beats for the events that are stored, at once for few clients.
    pub(crate) async fn run(
        &self,
        mut stored: watch::Receiver<i64>,
        clients: impl Fn() -> u64,
    ) -> Infallible {
        loop {
            let last = *stored.borrow_and_update();
            self.0.send_if_modified(|beat| std::mem::replace(beat, last) != last);
            if clients() > FEW_CLIENTS {
                sleep(INTERVAL).await;
            }
            if stored.changed().await.is_err() {
                // The log is closed with the server.
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Number of clients up to which every event is sent at once.
const FEW_CLIENTS: u64 = 16;

/// Time between beats, half of which an event waits on average. A write takes the kernel longer than the event takes us.
const INTERVAL: Duration = Duration::from_millis(12);

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn few_clients_learn_of_an_event_at_once_and_many_at_the_next_beat() {
        for (clients, at_least) in [(FEW_CLIENTS, Duration::ZERO), (FEW_CLIENTS + 1, INTERVAL)] {
            let (log, stored) = watch::channel(0);
            let beat = std::sync::Arc::new(Beat::new(0));
            let mut learned = beat.subscribe();
            let of_task = beat.clone();
            let running = tokio::spawn(async move { of_task.run(stored, move || clients).await });
            log.send_replace(1);
            assert_eq!(*learned.wait_for(|last| *last == 1).await.unwrap(), 1);
            let before = Instant::now();
            log.send_replace(2);
            learned.wait_for(|last| *last == 2).await.unwrap();
            let waited = before.elapsed();
            assert!((at_least..=INTERVAL).contains(&waited), "{clients} clients: {waited:?}");
            running.abort();
        }
    }
}
