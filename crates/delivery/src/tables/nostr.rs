//! The columns of a Nostr event.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// An event, as its JSON has it.
#[derive(Debug, Deserialize)]
pub(crate) struct NostrEvent<'l> {
    #[serde(borrow)]
    pub(crate) id: Cow<'l, str>,
    #[serde(borrow)]
    pub(crate) pubkey: Cow<'l, str>,
    /// In seconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) kind: u16,
    #[serde(borrow)]
    pub(crate) tags: &'l RawValue,
    #[serde(borrow)]
    pub(crate) content: Cow<'l, str>,
    #[serde(borrow)]
    pub(crate) sig: Cow<'l, str>,
}

impl<'l> NostrEvent<'l> {
    /// Reads a payload; `None` for one that is no event.
    pub(crate) fn parse(payload: &'l [u8]) -> Option<Self> {
        serde_json::from_slice(payload).ok()
    }
}
