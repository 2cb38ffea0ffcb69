//! Limits on the requests to every PDS, in windows that begin with the first request.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::host_condition::HostCondition;
use super::spec::{RequestLimit, Server, Spec};

/// The windows of all PDSs.
#[derive(Debug)]
pub(super) struct RequestLimits {
    limits: BTreeMap<Server, HostLimit>,
    windows: Mutex<BTreeMap<Server, Windows>>,
    /// Whether all answers say how many requests are left.
    is_announced: bool,
}

/// The windows of a server.
#[derive(Debug)]
struct Windows {
    started: Instant,
    current: RequestWindow,
    ended: Vec<RequestWindow>,
}

/// The requests to a server within a window of its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestWindow {
    /// The number of requests that were answered.
    pub answered: u32,
    /// The number of requests beyond the limit.
    pub rejected: u32,
}

/// The state of a limit that an answer announces.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnnouncedLimit {
    pub(super) limit: RequestLimit,
    /// Requests that the window has left.
    pub(super) left: u32,
    /// The time until the next window.
    pub(super) time: Duration,
}

#[derive(Clone, Copy, Debug)]
struct HostLimit {
    limit: RequestLimit,
    /// Whether answers beyond the limit say when the next window begins.
    is_stated: bool,
}

/// A request beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BeyondLimit {
    /// The answer states these seconds until the next window.
    Stated(u64),
    /// The answer does not say when the next window begins.
    Unstated,
}

impl RequestLimits {
    /// The limits of the network, or of the conditions of its hosts.
    pub(super) fn new(spec: &Spec, conditions: &[HostCondition]) -> Self {
        let limit = |(number, condition): (usize, &HostCondition)| {
            let limit = condition.request_limit().or(spec.request_limit)?;
            let is_stated = *condition != HostCondition::LimitedSilently;
            Some((Server::Pds(number), HostLimit { limit, is_stated }))
        };
        let limits = conditions.iter().enumerate().filter_map(limit).collect();
        Self { limits, windows: Mutex::default(), is_announced: spec.announces_limit }
    }

    /// The stated limit of the first PDS.
    pub(super) fn of_one(limit: RequestLimit) -> Self {
        let limits = [(Server::Pds(0), HostLimit { limit, is_stated: true })].into();
        Self { limits, windows: Mutex::default(), is_announced: false }
    }

    /// Counts a request.
    pub(super) fn take(&self, server: Server) -> Result<(), BeyondLimit> {
        let Some(HostLimit { limit, is_stated }) = self.limits.get(&server) else { return Ok(()) };
        let mut windows = self.lock();
        let windows = windows.entry(server).or_insert_with(Windows::new);
        if windows.started.elapsed() >= limit.window {
            windows.ended.push(windows.current);
            (windows.started, windows.current) = (Instant::now(), RequestWindow::default());
        }
        if windows.current.answered < limit.requests {
            windows.current.answered += 1;
            return Ok(());
        }
        windows.current.rejected += 1;
        let left = limit.window.saturating_sub(windows.started.elapsed());
        Err(if *is_stated {
            BeyondLimit::Stated(left.as_secs() + 1)
        } else {
            BeyondLimit::Unstated
        })
    }

    /// The state of a limit that answers announce.
    pub(super) fn announced(&self, server: Server) -> Option<AnnouncedLimit> {
        let HostLimit { limit, .. } = *self.limits.get(&server).filter(|_| self.is_announced)?;
        let windows = self.lock();
        let windows = windows.get(&server)?;
        let left = limit.requests - windows.current.answered;
        let time = limit.window.saturating_sub(windows.started.elapsed());
        Some(AnnouncedLimit { limit, left, time })
    }

    /// The windows of a server so far, without the ones in which nothing was requested.
    pub(super) fn windows(&self, server: Server) -> Vec<RequestWindow> {
        let windows = self.lock();
        let of = windows.get(&server);
        of.map(|of| [&of.ended[..], &[of.current]].concat()).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Server, Windows>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Windows {
    fn new() -> Self {
        Self { started: Instant::now(), current: RequestWindow::default(), ended: Vec::new() }
    }
}
