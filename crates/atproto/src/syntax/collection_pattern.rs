//! Patterns that select collections: the name of one, or the start of many names.
//!
//! | pattern | collections | keys of their records begin with |
//! |---|---|---|
//! | `app.bsky.feed.post` | this one | `app.bsky.feed.post/` |
//! | `app.bsky.feed.*` | all whose names begin with `app.bsky.feed.` | `app.bsky.feed.` |
//!
//! The part before `.*` is one label or more, by the rules of the labels of an NSID's authority.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::repo_path::{Nsid, NsidBuf, check_labels, check_nsid};
use super::text::text_type;

text_type! {
    /// A pattern that selects collections.
    ///
    /// ```
    /// use wireproof::atproto::syntax::CollectionPattern;
    /// let graph = CollectionPattern::parse("app.bsky.graph.*")?;
    /// assert!(graph.matches("app.bsky.graph.follow") && !graph.matches("app.bsky.graphs.follow"));
    /// assert_eq!(graph.key_prefix(), "app.bsky.graph.");
    /// assert_eq!(CollectionPattern::parse("app.bsky.feed.post")?.key_prefix(), "app.bsky.feed.post/");
    /// # Ok::<(), wireproof::atproto::syntax::SyntaxError>(())
    /// ```
    CollectionPattern, CollectionPatternBuf, as_pattern, check_pattern
}

impl<'a> CollectionPattern<'a> {
    /// The maximum length in bytes of a pattern that ends in `.*`: the shortest names below it have four bytes more than the part
    /// before.
    pub const MAX_PREFIX_LEN: usize = Nsid::MAX_LEN - 2;

    /// The collection, if the pattern names one.
    pub fn as_nsid(self) -> Option<Nsid<'a>> {
        self.name_prefix().is_none().then(|| Nsid::trusted(self.0))
    }

    /// The beginning of the names of its collections, with a dot at its end; `None` if the pattern names one collection.
    pub fn name_prefix(self) -> Option<&'a str> {
        self.0.strip_suffix('*')
    }

    /// The beginning of the keys of all records in its collections, and of no others.
    pub fn key_prefix(self) -> String {
        self.name_prefix().map_or_else(|| format!("{}/", self.0), str::to_owned)
    }

    /// A collection that it selects: the one that it names, or one whose keys are near the first of its keys.
    pub fn first_collection(self) -> NsidBuf {
        match self.name_prefix() {
            None => Nsid::trusted(self.0).to_buf(),
            Some(prefix) => {
                let name = format!("{prefix}a.a");
                Nsid::trusted(&name).to_buf()
            }
        }
    }

    /// Whether it selects a collection.
    pub fn matches(self, collection: &str) -> bool {
        self.name_prefix().map_or(collection == self.0, |prefix| collection.starts_with(prefix))
    }

    /// Whether it selects all collections that another pattern does.
    pub fn includes(self, other: CollectionPattern<'_>) -> bool {
        match (self.name_prefix(), other.name_prefix()) {
            (Some(prefix), Some(inner)) => inner.starts_with(prefix),
            (None, Some(_)) => false,
            (_, None) => self.matches(other.0),
        }
    }
}

impl CollectionPatternBuf {
    /// Whether it selects a collection.
    pub fn matches(&self, collection: &str) -> bool {
        self.as_pattern().matches(collection)
    }

    /// Whether it selects all collections that another pattern does.
    pub fn includes(&self, other: &Self) -> bool {
        self.as_pattern().includes(other.as_pattern())
    }
}

impl<'a> From<Nsid<'a>> for CollectionPattern<'a> {
    fn from(collection: Nsid<'a>) -> Self {
        Self(collection.as_str())
    }
}

impl From<NsidBuf> for CollectionPatternBuf {
    fn from(collection: NsidBuf) -> Self {
        CollectionPattern::from(collection.as_nsid()).to_buf()
    }
}

fn check_pattern(text: &str) -> Result<(), SyntaxError> {
    if !text.ends_with(".*") {
        return check_nsid(text);
    }
    if text.len() > CollectionPattern::MAX_PREFIX_LEN {
        return fail(SyntaxKind::Nsid, SyntaxRule::TooLong, CollectionPattern::MAX_PREFIX_LEN);
    }
    check_labels(&text.as_bytes()[..text.len() - 2]).map(drop)
}
