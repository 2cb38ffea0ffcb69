//! Opening of a destination on a host, which may be starting.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::sink::{FailureKind, SendFailure};

/// Calls `open` until it succeeds, fails for good, or has failed for 10 seconds.
///
/// # Errors
/// The last failure.
pub(crate) async fn open_in_time<T>(
    open: impl AsyncFn() -> Result<T, SendFailure>,
) -> Result<T, SendFailure> {
    let since = Instant::now();
    loop {
        match open().await {
            Err(SendFailure { kind: FailureKind::Temporary(_), .. })
                if since.elapsed() < MAX_OPEN_TIME =>
            {
                sleep(OPEN_INTERVAL).await;
            }
            opened => return opened,
        }
    }
}

const MAX_OPEN_TIME: Duration = Duration::from_secs(10);
const OPEN_INTERVAL: Duration = Duration::from_millis(250);
