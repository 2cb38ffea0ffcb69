//! The keys of labelers.

use std::collections::HashMap;

use atproto::did_document::DidDocument;
use crypto::{CompressedKey, KeyError, PublicKey};

use crate::identity::to_public_key;

/// The key that signs the account's labels; `None` if the document names none. No other key of the document may replace it.
///
/// # Errors
/// If the document's text for the key is malformed.
pub fn label_key(document: &DidDocument) -> Result<Option<PublicKey>, KeyError> {
    document.label_key().map(to_public_key).transpose()
}

/// The keys of a source of labels at the time of the judgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceKeys {
    /// The key of its DID document. `None` if the document has none, or there is no document.
    pub current: Option<CompressedKey>,
    /// Keys that the document had before.
    pub earlier: Vec<CompressedKey>,
}

impl SourceKeys {
    /// One key, without earlier ones.
    pub fn of(key: CompressedKey) -> Self {
        Self { current: Some(key), earlier: Vec::new() }
    }
}

/// Where a [`LabelJudge`](super::LabelJudge) finds keys.
pub trait LabelKeys {
    /// The keys of a source; `None` if nothing is known of it.
    fn keys(&self, src: &str) -> Option<&SourceKeys>;
}

impl LabelKeys for HashMap<Box<str>, SourceKeys> {
    fn keys(&self, src: &str) -> Option<&SourceKeys> {
        self.get(src)
    }
}
