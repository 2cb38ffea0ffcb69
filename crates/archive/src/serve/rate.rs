//! The rate of a replay.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// A limit on events a second. Up to a hundredth of a second's events come at once: timers count milliseconds.
#[derive(Debug)]
pub struct EventRate {
    ticks: Interval,
    per_tick: u32,
    /// Events that are due before the next tick.
    due: u32,
}

impl EventRate {
    /// A limit of this number of events a second.
    ///
    /// # Panics
    /// Outside of a Tokio runtime with a timer.
    pub fn new(per_second: NonZeroU32) -> Self {
        let per_tick = (per_second.get() / TICKS_PER_SECOND).max(1);
        let period = Duration::from_secs(per_tick.into()) / per_second.get();
        let mut ticks = interval(period);
        // A reader that was slow does not get the events of that time at once.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, per_tick, due: 0 }
    }

    /// Waits until the next event is due. Cancel-safe.
    pub async fn ready(&mut self) {
        if self.due == 0 {
            self.ticks.tick().await;
            self.due = self.per_tick;
        }
        self.due -= 1;
    }
}

/// Maximum number of ticks a second.
const TICKS_PER_SECOND: u32 = 100;

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    async fn time_of(events: u32, per_second: u32) -> Duration {
        let mut rate = EventRate::new(NonZeroU32::new(per_second).unwrap());
        let since = Instant::now();
        for _ in 0..events {
            rate.ready().await;
        }
        since.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn events_come_at_their_rate_whether_it_is_below_or_above_that_of_the_ticks() {
        for per_second in [1, 3, 100, 250, 12_345] {
            let time = time_of(per_second * 4, per_second).await;
            let seconds = time.as_secs_f64();
            assert!((3.0..=4.1).contains(&seconds), "{per_second} a second: {seconds} s");
        }
        assert_eq!(time_of(1, 1).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_does_not_get_what_it_missed_at_once() {
        let mut rate = EventRate::new(NonZeroU32::new(10).unwrap());
        rate.ready().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        rate.ready().await;
        let since = Instant::now();
        rate.ready().await;
        rate.ready().await;
        assert!(since.elapsed() >= Duration::from_millis(199), "{:?}", since.elapsed());
    }
}
