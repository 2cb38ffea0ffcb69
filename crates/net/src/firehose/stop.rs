//! Who asks a run to stop?

use std::sync::Arc;

use tokio::sync::watch;

/// Asks a run to stop: nothing more is read, what is under way is finished. Clones are the same switch.
///
/// ```
/// use wireproof::net::firehose::StopSignal;
/// let stop = StopSignal::new();
/// let other = stop.clone();
/// other.request();
/// assert!(stop.is_requested());
/// ```
#[derive(Clone, Debug)]
pub struct StopSignal(Arc<watch::Sender<bool>>);

impl StopSignal {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Asks, now. From any thread, as often as one likes.
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// Whether somebody has asked.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until somebody asks.
    pub async fn requested(&self) {
        // It only fails when there is no sender, and we are one.
        let _ = self.0.subscribe().wait_for(|is_requested| *is_requested).await;
    }
}

impl Default for StopSignal {
    fn default() -> Self {
        Self::new()
    }
}
