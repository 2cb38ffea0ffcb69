//! Limits on the requests to every PDS, in windows that begin with the first request.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::host_condition::HostCondition;
use super::spec::{RequestLimit, Server, Spec};

/// The windows of all PDSs.
#[derive(Debug)]
pub(super) struct RequestLimits {
    limits: BTreeMap<Server, HostLimit>,
    windows: Mutex<BTreeMap<Server, Window>>,
}

#[derive(Clone, Copy, Debug)]
struct HostLimit {
    limit: RequestLimit,
    /// Whether answers beyond the limit say when the next window begins.
    is_stated: bool,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    started: Instant,
    requests: u32,
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
        Self { limits, windows: Mutex::default() }
    }

    /// The stated limit of the first PDS.
    pub(super) fn of_one(limit: RequestLimit) -> Self {
        let limits = [(Server::Pds(0), HostLimit { limit, is_stated: true })].into();
        Self { limits, windows: Mutex::default() }
    }

    /// Counts a request.
    pub(super) fn take(&self, server: Server) -> Result<(), BeyondLimit> {
        let Some(HostLimit { limit, is_stated }) = self.limits.get(&server) else { return Ok(()) };
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
        let left = limit.window.saturating_sub(window.started.elapsed());
        Err(if *is_stated {
            BeyondLimit::Stated(left.as_secs() + 1)
        } else {
            BeyondLimit::Unstated
        })
    }
}
