//! State that the connections of a server share.

use std::sync::Arc;

use net::client_places::ClientPlaces;
use tokio::sync::watch;

use super::options::{ServeMetrics, ServeOptions};
use crate::archive::Archive;
use crate::replay::{ReplayView, ReplayedEvent};

/// State that the connections of a server share.
pub(super) struct Shared {
    pub(super) archive: Archive,
    pub(super) options: ServeOptions,
    pub(super) view: watch::Sender<Arc<ReplayView>>,
    pub(super) clients: Arc<ClientPlaces>,
    pub(super) metrics: Arc<ServeMetrics>,
    pub(super) lines: Option<WriteLine>,
    pub(super) warn: Warn,
}

/// Writes an event as a line.
pub(super) type WriteLine = Box<dyn Fn(&ReplayedEvent) -> Option<String> + Send + Sync>;

/// Takes a warning.
pub(super) type Warn = Box<dyn Fn(&str) + Send + Sync>;

/// The time for which events are held back, in microseconds.
pub(super) fn delay_micros(shared: &Shared) -> i64 {
    i64::try_from(shared.options.delay.as_micros()).unwrap_or(i64::MAX)
}
