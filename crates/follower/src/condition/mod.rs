//! `--where`: a condition on the operations of commits and the records of repositories.

#[cfg(feature = "where")]
mod check;
#[cfg(feature = "where")]
mod expression;
#[cfg(feature = "where")]
mod memory;
#[cfg(not(feature = "where"))]
mod missing;

use std::sync::atomic::AtomicU64;

use atproto::event::Action;
use codec::cbor;

#[cfg(feature = "where")]
pub(super) use expression::Condition;
#[cfg(not(feature = "where"))]
pub(super) use missing::Condition;

/// Numbers of evaluations by their result.
#[derive(Debug, Default)]
pub(super) struct ConditionCounts {
    pub(super) matched: AtomicU64,
    pub(super) unmatched: AtomicU64,
    /// A key is missing, or a value has another type.
    pub(super) failed: AtomicU64,
    /// The record is too large for the loops or the values of the condition.
    pub(super) too_large: AtomicU64,
}

/// The input of a condition.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "where"), expect(dead_code, reason = "nothing is evaluated"))]
pub(super) struct Subject<'s> {
    pub(super) did: &'s str,
    pub(super) rev: &'s str,
    /// Whether it is an event of the stream, and no history.
    pub(super) live: bool,
    pub(super) action: Action,
    pub(super) path: &'s str,
    /// The record, and its size in bytes; none if it is invalid.
    pub(super) record: Option<(&'s cbor::Value<'s>, usize)>,
}
