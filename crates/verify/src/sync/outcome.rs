//! What becomes of an event, told apart by what its reader does next.

use atproto::event::{Commit, Event, Sync};
use codec::Cid;

use super::rejection::SyncRejection;
use crate::Verified;
use atproto::syntax::Tid;

/// A frame, judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged<'a> {
    /// What the frame says, proved or not, where it can be read at all: for the lines of a log.
    pub event: Option<&'a Event<'a>>,
    /// The verdict.
    pub outcome: Outcome<'a>,
}

const _: () = assert!(size_of::<Judged<'_>>() <= 112, "a batch has one for each frame");

/// A verdict.
///
/// | | a relay | a consumer |
/// |---|---|---|
/// | [`Commit`](Self::Commit) | passes it on | applies it, or resyncs, as the [`Chain`] says |
/// | [`Sync`](Self::Sync) | passes it on | resyncs, unless [`SyncEffect::Unchanged`] |
/// | [`Ignored`](Self::Ignored) | drops it in silence | drops it in silence |
/// | [`Rejected`](Self::Rejected) | drops and counts it | drops it, resyncs if it comes again |
/// | [`Unjudged`](Self::Unjudged) | has its own rules for it | has its own rules for it |
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome<'a> {
    /// A `#commit` that is valid by itself, and how it continues what was stored.
    ///
    /// Proved: the account's key signed the commit object; each operation is what the signed tree
    /// holds at its path; the record of each create and update is present and is what its CID names;
    /// and, but for [`Chain::Unproved`], there were no other changes since `prevData`. The account's
    /// state is now that of this commit.
    Commit(Verified<&'a Commit<'a>>, Chain),
    /// A `#sync` whose commit object the account's key signed, and what it changed. The account's
    /// state is now that of this commit.
    Sync(Verified<&'a Sync<'a>>, SyncEffect),
    /// Nothing new, or nothing wanted. No state changed.
    Ignored(Ignored),
    /// Not what its account said, or not provably. No state changed.
    Rejected(SyncRejection<'a>),
    /// A message that carries no proof: `#identity`, `#account`, `#info`, an error, an unknown one.
    Unjudged(&'a Event<'a>),
}

/// How a valid commit continues what was stored of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Exactly: the changes can be applied.
    Intact,
    /// Nothing was stored: the chain begins here.
    FirstSeen,
    /// Not: something is missing in between. The account is desynchronized from now on.
    Broken(ChainBreak),
    /// Exactly, but an earlier break is not mended yet: the account stays out of step.
    StillDesynchronized,
    /// As far as can be told; a leniency of the policy took what could not.
    Unproved(Leniency),
}

/// What is missing between a valid commit and what was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChainBreak {
    /// The event follows another revision (row 14).
    #[error("the event follows revision {}, but {stored} is stored", or_none(.since))]
    Since {
        /// What the event says came before.
        since: Option<Tid>,
        /// What came before.
        stored: Tid,
    },
    /// The event starts from another tree (row 15).
    #[error("the event starts from the tree {prev_data}, but {stored} is stored")]
    PrevData {
        /// The tree that the event starts from.
        prev_data: Cid,
        /// The tree that was there.
        stored: Cid,
    },
}

impl ChainBreak {
    /// The stable name of the rule that was broken.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Since { .. } => "event/since",
            Self::PrevData { .. } => "event/prev-data",
        }
    }

    /// The row of the [table of checks](super#the-table-of-checks).
    pub fn row(&self) -> u8 {
        match self {
            Self::Since { .. } => 14,
            Self::PrevData { .. } => 15,
        }
    }
}

/// Which leniency of the [`Policy`](super::Policy) let a commit pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leniency {
    /// [`accept_missing_prev_data`](super::Policy::accept_missing_prev_data)
    MissingPrevData,
    /// [`accept_ops_without_prev`](super::Policy::accept_ops_without_prev)
    OpsWithoutPrev,
    /// [`accept_failed_inversion`](super::Policy::accept_failed_inversion)
    FailedInversion,
}

/// What a valid `#sync` changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncEffect {
    /// The tree is the stored one; only the revision is new.
    Unchanged,
    /// The tree is another: the account is desynchronized from now on.
    Desynchronized,
    /// Nothing was stored: the chain begins here.
    FirstSeen,
}

/// Why an event is of no interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Ignored {
    /// The account is not active (row 5).
    #[error("the account is not active")]
    Inactive,
    /// The revision was seen, or a later one was (row 6).
    #[error("revision {rev} is not later than {stored}, which is stored")]
    Stale {
        /// The event's revision.
        rev: Tid,
        /// The stored one.
        stored: Tid,
    },
}

impl Ignored {
    /// The stable name of the rule.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Inactive => "event/inactive",
            Self::Stale { .. } => "event/stale-rev",
        }
    }

    /// The row of the [table of checks](super#the-table-of-checks).
    pub fn row(&self) -> u8 {
        match self {
            Self::Inactive => 5,
            Self::Stale { .. } => 6,
        }
    }
}

impl Outcome<'_> {
    /// Whether the event is valid: its account's state is now that of its commit.
    pub fn is_accepted(&self) -> bool {
        matches!(self, Self::Commit(..) | Self::Sync(..))
    }
}

impl From<Ignored> for Outcome<'_> {
    fn from(ignored: Ignored) -> Self {
        Self::Ignored(ignored)
    }
}

impl<'a> From<SyncRejection<'a>> for Outcome<'a> {
    #[cold]
    fn from(rejection: SyncRejection<'a>) -> Self {
        Self::Rejected(rejection)
    }
}

fn or_none(since: &Option<Tid>) -> String {
    since.map_or_else(|| "none".to_owned(), |since| since.to_string())
}
