//! Opening of a destination on a host, which may be starting.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::sink::{FailureKind, SendFailure};

/// Calls `open` until it succeeds, fails for good, or has failed for 8 seconds; for a minute while the destination answers
/// that it is not ready, and how long to wait.
///
/// # Errors
/// The last failure.
pub(crate) async fn open_in_time<T, F>(open: impl Fn() -> F) -> Result<T, SendFailure>
where
    F: Future<Output = Result<T, SendFailure>>,
{
    let since = Instant::now();
    loop {
        let failure = match open().await {
            Err(failure) => failure,
            opened => return opened,
        };
        let FailureKind::Temporary(delay) = failure.kind else { return Err(failure) };
        let limit = if delay.is_zero() { MAX_SILENT_TIME } else { MAX_STARTING_TIME };
        if since.elapsed() >= limit {
            return Err(failure);
        }
        sleep(delay.clamp(OPEN_INTERVAL, MAX_SILENT_TIME)).await;
    }
}

/// Maximum time without an answer.
const MAX_SILENT_TIME: Duration = Duration::from_secs(8);

/// Maximum time until a destination that answers is ready.
const MAX_STARTING_TIME: Duration = Duration::from_secs(60);

const OPEN_INTERVAL: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    /// The time until a destination that always fails with this kind is given up.
    async fn time_of(kind: FailureKind) -> Duration {
        let since = Instant::now();
        let opened = open_in_time(|| ready(Err::<(), _>(SendFailure::new(kind, "no")))).await;
        assert_eq!(opened.unwrap_err().kind, kind);
        since.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_destination_that_answers_that_it_starts_is_waited_for_longer() {
        assert_eq!(time_of(FailureKind::Fatal).await, Duration::ZERO);
        let [silent, starting] =
            [Duration::ZERO, Duration::from_millis(500)].map(FailureKind::Temporary);
        assert_eq!(time_of(silent).await, MAX_SILENT_TIME);
        assert_eq!(time_of(starting).await, MAX_STARTING_TIME);
    }
}
