//! Limits on the requests to each PDS, in windows that begin with the first request.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::spec::{RequestLimit, Server};

/// The windows of all PDSs.
#[derive(Debug)]
pub(super) struct RequestLimits {
    limit: Option<RequestLimit>,
    windows: Mutex<BTreeMap<Server, Window>>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    started: Instant,
    requests: u32,
}

impl RequestLimits {
    pub(super) fn new(limit: Option<RequestLimit>) -> Self {
        Self { limit, windows: Mutex::default() }
    }

    /// Counts a request, or returns the seconds until the next window.
    pub(super) fn take(&self, server: Server) -> Result<(), u64> {
        let (Some(limit), Server::Pds(_)) = (self.limit, server) else { return Ok(()) };
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let new = Window { started: Instant::now(), requests: 0 };
        let window = windows.entry(server).or_insert(new);
        if window.started.elapsed() >= limit.window {
            *window = new;
        }
        if window.requests < limit.requests {
            window.requests += 1;
            return Ok(());
        }
        Err(limit.window.saturating_sub(window.started.elapsed()).as_secs() + 1)
    }
}
