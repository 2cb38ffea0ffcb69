//! Paths within a repository: a collection's NSID, one slash, a record key.
//!
//! They are the keys of the repository's tree, whose own rules are looser: a tree asks for order and a
//! length, and it is here that a key must be a path.

use std::str;

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::text::{borrowed, owned};
use super::{Nsid, RecordKey};

borrowed! {
    /// The name of a record in its repository.
    ///
    /// ```
    /// use wireproof_atproto::syntax::RepoPath;
    /// let path = RepoPath::parse("app.bsky.actor.profile/self")?;
    /// assert_eq!(path.collection(), "app.bsky.actor.profile");
    /// assert_eq!(path.record_key(), "self");
    /// # Ok::<(), wireproof_atproto::syntax::SyntaxError>(())
    /// ```
    RepoPath, RepoPathBuf
}

owned! {
    /// The name of a record in its repository, owned.
    RepoPathBuf, RepoPath, as_repo_path
}

impl<'a> RepoPath<'a> {
    /// The most bytes there can be.
    pub const MAX_LEN: usize = Nsid::MAX_LEN + 1 + RecordKey::MAX_LEN;

    /// Checks a key of a tree.
    ///
    /// # Errors
    /// If it is no path.
    pub fn from_bytes(key: &'a [u8]) -> Result<Self, SyntaxError> {
        match str::from_utf8(key) {
            Ok(text) => Self::parse(text),
            Err(error) => fail(SyntaxKind::RepoPath, SyntaxRule::Symbol, error.valid_up_to()),
        }
    }

    /// The collection.
    pub fn collection(self) -> Nsid<'a> {
        Nsid::trusted(self.split().0)
    }

    /// The record's name in its collection.
    pub fn record_key(self) -> RecordKey<'a> {
        RecordKey::trusted(self.split().1)
    }

    fn split(self) -> (&'a str, &'a str) {
        self.0.split_once('/').expect("checked when it was made")
    }
}

fn check(text: &str) -> Result<(), SyntaxError> {
    let Some((collection, key)) = text.split_once('/') else {
        return fail(SyntaxKind::RepoPath, SyntaxRule::FewParts, text.len());
    };
    Nsid::parse(collection)?;
    RecordKey::parse(key).map_err(|error| error.behind(collection.len() + 1))?;
    Ok(())
}
