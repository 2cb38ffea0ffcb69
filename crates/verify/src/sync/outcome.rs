//! The outcome of judging a frame, distinguished by the next action of a relay or consumer.

use atproto::event::{Commit, Event, Sync};
use codec::Cid;
use crypto::CompressedKey;

use super::rejection::SyncRejection;
use crate::Verified;
use atproto::syntax::Tid;

/// A frame and its verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged<'a> {
    /// The event as sent, proved or not, if the frame can be decoded: for logs.
    pub event: Option<&'a Event<'a>>,
    /// The verdict.
    pub outcome: Outcome<'a>,
    /// The key under which an accepted event was verified.
    pub key: Option<CompressedKey>,
}

const _: () = assert!(size_of::<Judged<'_>>() <= 152, "a batch has one for each frame");

/// A verdict.
///
/// | | a relay | a consumer |
/// |---|---|---|
/// | [`Commit`](Self::Commit) | forwards it | applies it, or resyncs, as the [`Chain`] says |
/// | [`Sync`](Self::Sync) | forwards it | resyncs, unless [`SyncEffect::Unchanged`] |
/// | [`Ignored`](Self::Ignored) | drops it silently | drops it silently |
/// | [`Rejected`](Self::Rejected) | drops and counts it | drops it, resyncs if it happens repeatedly |
/// | [`Unjudged`](Self::Unjudged) | has its own rules for it | has its own rules for it |
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome<'a> {
    /// A `#commit` that is valid by itself, and how it continues the stored state.
    ///
    /// Proved: the account's key signed the commit object; every operation matches the signed tree at its path; the
    /// record of every create and update is present and matches its CID; and, except with [`Chain::Unproved`], there
    /// were no other changes since `prevData`. The account's state is now this commit's. Under
    /// [`accept_unproved_operations`](super::Policy::accept_unproved_operations) only the signature and the hashes of
    /// the records are proved, whatever the chain.
    Commit(Verified<&'a Commit<'a>>, Chain),
    /// A `#sync` whose commit object the account's key signed, and its effect. The account's state is now this
    /// commit's.
    Sync(Verified<&'a Sync<'a>>, SyncEffect),
    /// Stale, or of an inactive account. No state changed.
    Ignored(Ignored),
    /// Invalid, or not provable. No state changed.
    Rejected(SyncRejection<'a>),
    /// A message that carries no proof: `#identity` and `#account`, whose fields are well formed, `#info`, an
    /// error, an unknown one.
    Unjudged(&'a Event<'a>),
}

/// How a valid commit continues the stored state of its account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Without a gap: the changes can be applied.
    Intact,
    /// No state was stored: the chain begins here.
    FirstSeen,
    /// With a gap. The account is desynchronized from now on.
    Broken(ChainBreak),
    /// Without a gap, but an earlier break is not repaired yet: the account stays desynchronized.
    StillDesynchronized,
    /// Without a gap as far as can be proved; a leniency of the policy accepted the rest.
    Unproved(Leniency),
}

/// The gap between a valid commit and the stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainBreak {
    /// The event follows another revision (row 14).
    #[error("the event follows revision {}, the stored revision is {stored}", or_none(.since))]
    Since {
        /// The preceding revision according to the event.
        since: Option<Tid>,
        /// The stored revision.
        stored: Tid,
    },
    /// The event starts from another tree (row 15).
    #[error("the event starts from the tree {prev_data}, the stored tree is {stored}")]
    PrevData {
        /// The tree that the event starts from.
        prev_data: Cid,
        /// The stored tree.
        stored: Cid,
    },
}

impl ChainBreak {
    /// The stable code of the broken rule.
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

/// The leniency of the [`Policy`](super::Policy) under which a commit was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Leniency {
    /// [`accept_missing_prev_data`](super::Policy::accept_missing_prev_data)
    MissingPrevData,
    /// [`accept_ops_without_prev`](super::Policy::accept_ops_without_prev)
    OpsWithoutPrev,
    /// [`accept_failed_inversion`](super::Policy::accept_failed_inversion)
    FailedInversion,
    /// [`accept_unproved_operations`](super::Policy::accept_unproved_operations)
    UnprovedOperations,
}

/// The effect of a valid `#sync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncEffect {
    /// The tree is the stored one; only the revision is new.
    Unchanged,
    /// The tree differs from the stored one: the account is desynchronized from now on.
    Desynchronized,
    /// No state was stored: the chain begins here.
    FirstSeen,
}

/// Why an event is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ignored {
    /// The account is not active (row 5).
    #[error("the account is not active")]
    Inactive,
    /// This revision or a later one was accepted before (row 6).
    #[error("revision {rev} is not later than the stored revision {stored}")]
    Stale {
        /// The event's revision.
        rev: Tid,
        /// The stored one.
        stored: Tid,
    },
}

impl Ignored {
    /// The stable code of the rule.
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
    /// The stable code.
    ///
    /// | code | the event |
    /// |---|---|
    /// | `verified` | is verified, and continues the known state or starts it |
    /// | `verified/broken` | is verified, but the event before it is missing |
    /// | `verified/unmended` | is verified, but the account is still desynchronized |
    /// | `verified/unproved` | is signed; a leniency of the policy accepted the rest |
    /// | `unchecked` | has no signature |
    /// | any other | breaks the rule of this code |
    pub fn code(&self) -> &'static str {
        match self {
            Self::Commit(_, Chain::Unproved(_)) => "verified/unproved",
            Self::Commit(_, Chain::Broken(_)) => "verified/broken",
            Self::Commit(_, Chain::StillDesynchronized) => "verified/unmended",
            Self::Sync(_, SyncEffect::Desynchronized) => "verified/broken",
            Self::Commit(..) | Self::Sync(..) => "verified",
            Self::Ignored(why) => why.code(),
            Self::Rejected(why) => why.code(),
            Self::Unjudged(_) => "unchecked",
        }
    }

    /// The verdict in one word.
    ///
    /// | verdict | the event |
    /// |---|---|
    /// | `verified` | is verified |
    /// | `ignored` | is left out: its account is inactive, or its revision is not new |
    /// | `refused` | breaks a rule |
    /// | `unchecked` | has no signature |
    pub fn verdict(&self) -> &'static str {
        match self {
            Self::Commit(..) | Self::Sync(..) => "verified",
            Self::Ignored(_) => "ignored",
            Self::Rejected(_) => "refused",
            Self::Unjudged(_) => "unchecked",
        }
    }

    /// Whether the event is valid: its account's state is now its commit's.
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
