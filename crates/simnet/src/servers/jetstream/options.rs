//! What does a reader want to be told, and how?

use std::collections::HashSet;

use tokio_tungstenite::tungstenite::Message;

use super::super::network::Network;
use super::super::posting::Posting;
use super::super::zstandard::Dictionary;
use std::sync::Arc;

/// What a reader wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// Empty for all.
    pub(super) kinds: Vec<&'static str>,
    /// NSIDs, or the beginnings of some with `.*` behind them; empty for all.
    pub(super) collections: Vec<String>,
    /// Empty for all.
    pub(super) dids: HashSet<String>,
    /// Longer messages are left out; `None` for any length.
    pub(super) max_bytes: Option<usize>,
}

impl Wanted {
    /// Whether this one is wanted. Collections choose among commits only.
    pub(super) fn wants(&self, did: &str, posting: &Posting) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&posting.kind);
        let is_did = self.dids.is_empty() || self.dids.contains(did);
        is_kind && is_did && posting.collection.as_deref().is_none_or(|name| self.wants_from(name))
    }

    fn wants_from(&self, collection: &str) -> bool {
        let matches = |wanted: &String| match wanted.strip_suffix(".*") {
            Some(prefix) => {
                collection.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'))
            }
            None => wanted == collection,
        };
        self.collections.is_empty() || self.collections.iter().any(matches)
    }

    /// Whether a message of this length is wanted.
    pub(super) fn bears(&self, bytes: usize) -> bool {
        self.max_bytes.is_none_or(|most| bytes <= most)
    }
}

/// How messages go out.
pub(super) struct Packing {
    network: Arc<Network>,
    dictionary: Option<for<'n> fn(&'n Network) -> &'n Dictionary>,
}

impl Packing {
    pub(super) fn new(
        network: &Arc<Network>,
        dictionary: Option<for<'n> fn(&'n Network) -> &'n Dictionary>,
    ) -> Self {
        Self { network: network.clone(), dictionary }
    }

    /// Text as it is, or compressed.
    pub(super) fn pack(&self, text: String) -> Message {
        match self.dictionary {
            None => Message::text(text),
            Some(dictionary) => {
                let mut compressor = dictionary(&self.network).compressor();
                Message::binary(compressor.compress(text.as_bytes()).expect("memory for it"))
            }
        }
    }
}

/// The most collections that a reader may want.
pub(super) const MAX_COLLECTIONS: usize = 100;

/// The most DIDs that a reader may want.
pub(super) const MAX_DIDS: usize = 10_000;

/// From this number on, a cursor is a time in microseconds; below it is a sequence number.
pub(super) const LEAST_MICROS: i64 = 1_000_000_000_000_000;
