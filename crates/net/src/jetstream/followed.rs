//! The position of each host, and the cursor of the next request.

use std::time::Duration;

use super::MIN_TIME_CURSOR;
use crate::firehose::{StartFrom, Upstream};
use crate::hosts::HostId;
use crate::http::Url;

/// A host and how far it is known.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) url: Url,
    /// The last event that it told, or the cursor of an earlier run.
    pub(super) cursor: Option<u64>,
    /// When that was told.
    pub(super) micros: Option<u64>,
    pub(super) begin: StartFrom,
    /// The cursor of the last attempt.
    pub(super) given: Option<u64>,
}

impl Followed {
    pub(super) fn new(origin: &Upstream, begin: StartFrom) -> Self {
        let micros = origin.cursor.filter(|cursor| *cursor >= MIN_TIME_CURSOR);
        Self { url: origin.url.clone(), cursor: origin.cursor, micros, begin, given: None }
    }
}

/// The cursor with which a host is asked.
///
/// Numbers are of one host, so another one is asked for the time of what came last, and a little
/// earlier. That time is the one of an event and not of an attempt: however many attempts fail, it does
/// not go back.
pub(super) fn cursor(
    followed: &[Followed],
    latest: Option<(HostId, u64)>,
    rewind: Duration,
    host: HostId,
) -> Option<u64> {
    let Followed { cursor, micros, begin, .. } = &followed[host.0];
    let rewind = u64::try_from(rewind.as_micros()).unwrap_or(u64::MAX);
    let bound = latest.map(|(_, micros)| micros.saturating_sub(rewind).max(MIN_TIME_CURSOR));
    let is_another = latest.is_some_and(|(last, _)| last != host);
    match (*cursor, bound) {
        (Some(_), Some(bound)) if is_another && micros.is_none_or(|told| told < bound) => {
            Some(bound)
        }
        (Some(own), _) => Some(own),
        (None, Some(bound)) => Some(bound),
        (None, None) => (*begin == StartFrom::Oldest).then_some(MIN_TIME_CURSOR),
    }
}
