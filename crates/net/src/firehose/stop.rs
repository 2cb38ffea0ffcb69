//! Who asks a run to stop?

use std::sync::Arc;

use tokio::sync::watch;

/// Asks a run to stop: nothing more is read, what is under way is finished. Clones are the same switch.
///
/// ```
/// use wireproof_net::firehose::Stop;
/// let stop = Stop::new();
/// let other = stop.clone();
/// other.now();
/// assert!(stop.is_asked());
/// ```
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks, now. From any thread, as often as one likes.
    pub fn now(&self) {
        self.0.send_replace(true);
    }

    /// Whether somebody has asked.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody asks.
    pub async fn asked(&self) {
        // It only fails when there is no sender, and we are one.
        let _ = self.0.subscribe().wait_for(|is_asked| *is_asked).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
