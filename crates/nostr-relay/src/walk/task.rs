//! The requests of a walk, and the answer to one of them.

use std::collections::{HashMap, HashSet};

use nostr::Filter;

/// The id of an event.
pub(super) type Id = [u8; 32];

/// A request to make, or a proof to get.
#[derive(Clone, Debug)]
pub(super) enum Task {
    /// The newest events of a range, then the older ones.
    Range { since: i64, until: i64, edge: Edge },
    /// Whether there are newer events than the first page's.
    Newer { since: i64, known: HashSet<Id>, rounds: u32 },
    /// Whether there are others within the first page.
    Middle { since: i64, until: i64, known: HashSet<Id> },
    /// The events of a range in any order: halves of it, until all are smaller than a page.
    Half { since: i64, until: i64 },
    /// A second with as many events as a page.
    Second { at: i64, known: HashSet<Id>, proof: Proof },
    /// A part of a second.
    Slice { at: i64, filter: Filter },
    /// Events of a second by their ids.
    Ids { at: i64, ids: Vec<Id> },
}

/// The knowledge about the newest second of a range.
#[derive(Clone, Debug)]
pub(super) enum Edge {
    /// Nothing: it is the first page.
    First,
    /// Nothing: an earlier connection has read the events up to this time.
    Resumed(i64),
    /// Nothing: new events follow, and those up to this time are received.
    Joined(i64),
    /// These events, of a page that may have been cut off among them.
    Within(HashSet<Id>),
    /// The second after it has these events, and seems to be whole.
    After(HashSet<Id>),
    /// The second after it is read apart.
    Apart,
}

/// The proof to get that a second is whole.
#[derive(Clone, Copy, Debug)]
pub(super) enum Proof {
    /// The relay sends more events at once, where the filter is another one.
    LargerPage,
    /// A comparison of ids.
    Comparison,
}

/// The answer to a request.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) limit: usize,
    pub(super) events: HashMap<Id, i64>,
    /// Number of events, of which some may have no place above.
    pub(super) count: usize,
    /// Events that may have been published after the request.
    pub(super) fresh: usize,
    pub(super) oldest: i64,
    pub(super) newest: i64,
    /// Events outside the range.
    pub(super) strays: usize,
}

impl Edge {
    /// Number of events that will be sent again.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Within(ids) => ids.len(),
            _ => 0,
        }
    }
}

impl Task {
    /// The times of the events to come.
    pub(super) fn range(&self, latest: i64) -> (i64, i64) {
        match self {
            Self::Range { since, until, .. }
            | Self::Middle { since, until, .. }
            | Self::Half { since, until } => (*since, *until),
            Self::Newer { since, .. } => (*since, latest),
            Self::Slice { at, .. } => (*at, *at),
            Self::Second { .. } | Self::Ids { .. } => (i64::MIN, i64::MAX),
        }
    }

    /// Whether the relay was asked for times that it has to keep to.
    pub(super) fn is_bounded(&self) -> bool {
        !matches!(self, Self::Second { .. } | Self::Ids { .. })
    }

    /// Whether it has the newest events.
    pub(super) fn reaches(&self, until: i64) -> bool {
        matches!(self, Self::Range { until: end, .. } | Self::Half { until: end, .. } if *end == until)
    }

    /// Whether an event was received before.
    pub(super) fn knows(&self, id: &Id) -> bool {
        match self {
            Self::Range { edge: Edge::Within(known), .. }
            | Self::Newer { known, .. }
            | Self::Middle { known, .. } => known.contains(id),
            Self::Second { proof: Proof::LargerPage, .. } => true,
            _ => false,
        }
    }
}

impl Page {
    /// The events of a second.
    pub(super) fn at(&self, second: i64) -> HashSet<Id> {
        let of_second = self.events.iter().filter(|(_, at)| **at == second);
        of_second.map(|(id, _)| *id).collect()
    }
}
