//! AT-URIs in the restricted form that records use: `at://`, a DID or a handle, an optional collection, and
//! an optional record key.
//!
//! No query, no fragment, no trailing slash, at most 8,192 bytes. URIs of permissioned spaces, with more
//! parts, are rejected.

use std::fmt::Write;

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::text::text_type;
use super::{AtIdentifier, Nsid, RecordKey};

text_type! {
    /// A reference to an account, a collection or a record.
    ///
    /// ```
    /// use wireproof::atproto::syntax::AtUri;
    /// let uri = AtUri::parse("at://alice.example.com/app.bsky.feed.post/3jt5tqkl6pb2x")?;
    /// assert_eq!(uri.authority(), "alice.example.com");
    /// assert_eq!(uri.collection().unwrap(), "app.bsky.feed.post");
    /// assert_eq!(uri.record_key().unwrap(), "3jt5tqkl6pb2x");
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    AtUri, AtUriBuf, as_at_uri, check_at_uri
}

impl<'a> AtUri<'a> {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 8192;

    /// The account.
    pub fn authority(self) -> AtIdentifier<'a> {
        AtIdentifier::trusted(self.parts().next().expect("checked when parsed"))
    }

    /// The collection, if there is one.
    pub fn collection(self) -> Option<Nsid<'a>> {
        self.parts().nth(1).map(Nsid::trusted)
    }

    /// The record's name in its collection, if there is one.
    pub fn record_key(self) -> Option<RecordKey<'a>> {
        self.parts().nth(2).map(RecordKey::trusted)
    }

    /// The form with the handle and the collection's authority in lower case.
    pub fn to_normalized(self) -> AtUriBuf {
        let mut text = format!("{PREFIX}{}", self.authority().to_normalized());
        let collection = self.collection().map(Nsid::to_normalized);
        let parts =
            [collection.as_ref().map(AsRef::as_ref), self.record_key().map(RecordKey::as_str)];
        for part in parts.into_iter().flatten() {
            write!(text, "/{part}").expect("a String takes all");
        }
        AtUriBuf(text.into())
    }

    fn parts(self) -> impl Iterator<Item = &'a str> {
        self.0[PREFIX.len()..].split('/')
    }
}

fn check_at_uri(text: &str) -> Result<(), SyntaxError> {
    if text.len() > AtUri::MAX_LEN {
        return fail(SyntaxKind::AtUri, SyntaxRule::TooLong, AtUri::MAX_LEN);
    }
    let Some(rest) = text.strip_prefix(PREFIX) else {
        return fail(SyntaxKind::AtUri, SyntaxRule::Prefix, 0);
    };
    // A third slash stays in the record key, which rejects it.
    let mut parts = rest.splitn(3, '/');
    let mut offset = PREFIX.len();
    let mut next = || {
        let (part, at) = (parts.next()?, offset);
        offset += part.len() + 1;
        Some((part, move |error: SyntaxError| error.shifted(at)))
    };
    if let Some((part, shifted)) = next() {
        AtIdentifier::parse(part).map_err(shifted)?;
    }
    if let Some((part, shifted)) = next() {
        Nsid::parse(part).map_err(shifted)?;
    }
    if let Some((part, shifted)) = next() {
        RecordKey::parse(part).map_err(shifted)?;
    }
    Ok(())
}

const PREFIX: &str = "at://";
