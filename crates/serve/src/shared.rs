//! State that the connections of a server share.

use std::sync::Arc;

use net::client_places::ClientPlaces;

use crate::beat::Beat;
use crate::consumers::ServedConsumers;
use crate::directory::Directory;
use crate::hosts::SourceHosts;
use crate::log::EventLog;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::repositories::Repositories;

/// State that the connections of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) log: Arc<EventLog>,
    pub(crate) beat: Beat,
    pub(crate) directory: Directory,
    pub(crate) repositories: Repositories,
    pub(crate) consumers: Option<Arc<ServedConsumers>>,
    pub(crate) hosts: SourceHosts,
    pub(crate) clients: Arc<ClientPlaces>,
    pub(crate) metrics: Metrics,
}

impl Shared {
    /// The time that the stored events span, in seconds.
    pub(crate) fn window_seconds(&self) -> f64 {
        let last = *self.log.stored().borrow();
        self.log.wal.first().map_or(0.0, |first| (last - first) as f64 / 1e6)
    }

    /// The time by which the directory is behind the newest event, in seconds.
    pub(crate) fn directory_lag(&self) -> f64 {
        let (last, applied) = (*self.log.stored().borrow(), self.directory.applied());
        ((last - applied) as f64 / 1e6).max(0.0)
    }
}
