//! The keys of a line of `wireproof follow` that tables and channels need.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A line. Keys that it does not have are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Line<'l> {
    #[serde(borrow)]
    pub(crate) kind: Cow<'l, str>,
    #[serde(borrow)]
    pub(crate) did: Cow<'l, str>,
    #[serde(borrow)]
    pub(crate) verdict: Cow<'l, str>,
    #[serde(borrow)]
    pub(crate) code: Cow<'l, str>,
    pub(crate) rev: Option<Cow<'l, str>>,
    pub(crate) live: bool,
    /// The handle that an `#identity` event claims.
    pub(crate) handle: Option<String>,
    /// Whether an `#account` event calls the account active, and the status that it names.
    pub(crate) active: Option<bool>,
    pub(crate) status: Option<String>,
    /// The number of a line of a repository; below, whether it is the last.
    pub(crate) piece: Option<i64>,
    /// Whether its lines have all records, or only the difference to the lines before.
    pub(crate) whole: bool,
    pub(crate) last: bool,
    #[serde(borrow)]
    pub(crate) ops: Vec<Op<'l>>,
}

/// An operation of a commit, or a record of a repository.
#[derive(Debug, Deserialize)]
pub(crate) struct Op<'l> {
    #[serde(borrow)]
    pub(crate) action: Cow<'l, str>,
    #[serde(borrow)]
    pub(crate) collection: Cow<'l, str>,
    #[serde(borrow)]
    pub(crate) rkey: Cow<'l, str>,
    pub(crate) cid: Option<Cow<'l, str>>,
    #[serde(borrow)]
    pub(crate) record: Option<&'l RawValue>,
    #[serde(borrow)]
    pub(crate) invalid: Option<&'l RawValue>,
}

impl<'l> Line<'l> {
    /// Reads a payload. One that is not a line has empty keys, and so no effect but its row in `event`.
    pub(crate) fn parse(payload: &'l [u8]) -> Self {
        serde_json::from_slice(payload).unwrap_or_default()
    }

    pub(crate) fn is_verified(&self) -> bool {
        self.verdict == "verified"
    }

    /// Whether its operations count: they are verified, or the operator asked for no verification.
    pub(crate) fn has_operations(&self) -> bool {
        self.is_verified() || self.is_not_asked()
    }

    /// Whether the event has no signature, and is well formed as far as that was asked for.
    pub(crate) fn is_claim(&self) -> bool {
        self.verdict == "unchecked" || self.is_not_asked()
    }

    fn is_not_asked(&self) -> bool {
        self.verdict == "not-asked"
    }
}
