//! Messages for an operator, as events of `tracing`: a program prints them, an embedder subscribes to them.

use tracing::Level;

/// Emits a message, which may quote strangers.
pub(super) fn print(level: Level, text: &str) {
    match level {
        Level::ERROR => tracing::error!(target: TARGET, "{text}"),
        Level::WARN => tracing::warn!(target: TARGET, "{text}"),
        Level::INFO => tracing::info!(target: TARGET, "{text}"),
        _ => tracing::debug!(target: TARGET, "{text}"),
    }
}

/// Whether a subscriber wants details.
pub(super) fn has_details() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

/// The target of these events.
const TARGET: &str = "wireproof::follower";
