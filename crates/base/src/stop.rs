//! The signal that ends a run.

use std::sync::Arc;

use tokio::sync::watch;

/// Stops a run: reading ends, events in flight are finished. Clones share the signal.
///
/// ```
/// use wireproof::StopSignal;
/// let stop = StopSignal::new();
/// let other = stop.clone();
/// other.request();
/// assert!(stop.is_requested());
/// ```
#[derive(Clone, Debug)]
pub struct StopSignal(Arc<watch::Sender<bool>>);

impl StopSignal {
    /// A signal that is not set.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Sets the signal, from any thread. Setting it again has no effect.
    pub fn request(&self) {
        if !self.0.send_replace(true) {
            tracing::debug!(target: "wireproof::base", "a stop is requested");
        }
    }

    /// Whether the signal is set.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the signal is set.
    pub async fn requested(&self) {
        // Waiting fails only without a sender, and `self` is one.
        let _ = self.0.subscribe().wait_for(|is_requested| *is_requested).await;
    }
}

impl Default for StopSignal {
    fn default() -> Self {
        Self::new()
    }
}
