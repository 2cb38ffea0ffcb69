//! The keys of a line of `wireproof follow` that the tables need.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A line. Keys that it does not have are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line<'l> {
    #[serde(borrow)]
    pub(super) kind: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) did: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) verdict: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) code: Cow<'l, str>,
    pub(super) rev: Option<Cow<'l, str>>,
    pub(super) live: bool,
    /// The handle that an `#identity` event claims.
    pub(super) handle: Option<String>,
    /// Whether an `#account` event calls the account active, and the status that it names.
    pub(super) active: Option<bool>,
    pub(super) status: Option<String>,
    /// The number of a line of a repository, and whether it is the last.
    pub(super) piece: Option<i64>,
    pub(super) last: bool,
    #[serde(borrow)]
    pub(super) ops: Vec<Op<'l>>,
}

/// An operation of a commit, or a record of a repository.
#[derive(Debug, Deserialize)]
pub(super) struct Op<'l> {
    #[serde(borrow)]
    pub(super) action: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) collection: Cow<'l, str>,
    #[serde(borrow)]
    pub(super) rkey: Cow<'l, str>,
    pub(super) cid: Option<Cow<'l, str>>,
    #[serde(borrow)]
    pub(super) record: Option<&'l RawValue>,
    #[serde(borrow)]
    pub(super) invalid: Option<&'l RawValue>,
}

impl<'l> Line<'l> {
    /// Reads a payload. One that is not a line has empty keys, and so no effect but its row in `event`.
    pub(super) fn parse(payload: &'l [u8]) -> Self {
        serde_json::from_slice(payload).unwrap_or_default()
    }

    pub(super) fn is_verified(&self) -> bool {
        self.verdict == "verified"
    }

    /// Whether the event has no signature, and is well formed.
    pub(super) fn is_claim(&self) -> bool {
        self.verdict == "unchecked"
    }
}
