//! Filters of events: what a host is asked for, and the same check on the client side.

use std::collections::HashSet;

use atproto::syntax::{DidBuf, Nsid};

use super::event::{Event, EventBody};

/// What is to be told: of each kind of choice, all if it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Kinds of events. Version 1 is told everything, and the others are left out here.
    pub kinds: Vec<EventKind>,
    /// Collections, or the beginnings of their names with `.*` behind; they choose among commits only.
    pub collections: Vec<String>,
    /// Accounts.
    pub dids: Vec<DidBuf>,
    /// The longest message, in bytes; longer ones the host leaves out.
    pub max_message_bytes: Option<u32>,
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// An operation of a commit.
    Commit,
    /// What an account is called, or its keys, may have changed.
    Identity,
    /// What an account's host says of it has changed.
    Account,
    /// An account's repository is at another place; version 2 alone.
    Sync,
}

impl EventKind {
    /// The name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Identity => "identity",
            Self::Account => "account",
            Self::Sync => "sync",
        }
    }
}

/// What cannot be wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// More collections than the protocol allows.
    #[error("{0} collections: {MAX_COLLECTIONS} may be wanted")]
    Collections(usize),
    /// More accounts than the protocol allows.
    #[error("{0} accounts: {MAX_DIDS} may be wanted")]
    Dids(usize),
    /// Not the name of a collection, nor the beginning of one.
    #[error("{0:?} is neither a collection nor the beginning of one with .* behind")]
    Collection(String),
    /// Collections are wanted and commits are not.
    #[error("collections are wanted, and commits are not")]
    CollectionsWithoutCommits,
    /// What was given to unpack messages with is no dictionary.
    #[error("what was given is no dictionary of Zstandard")]
    NotADictionary,
}

impl Filter {
    /// Whether this may be asked for.
    ///
    /// # Errors
    /// If not: why.
    pub fn check(&self) -> Result<(), FilterError> {
        if self.collections.len() > MAX_COLLECTIONS {
            return Err(FilterError::Collections(self.collections.len()));
        }
        if self.dids.len() > MAX_DIDS {
            return Err(FilterError::Dids(self.dids.len()));
        }
        if let Some(wrong) = self.collections.iter().find(|wanted| !is_collection(wanted)) {
            return Err(FilterError::Collection(wrong.clone()));
        }
        let no_commits = !self.kinds.is_empty() && !self.kinds.contains(&EventKind::Commit);
        match no_commits && !self.collections.is_empty() {
            true => Err(FilterError::CollectionsWithoutCommits),
            false => Ok(()),
        }
    }
}

/// A name, or its beginning: the beginning of a name of three parts may have one or two.
fn is_collection(wanted: &str) -> bool {
    match wanted.strip_suffix(".*") {
        Some(start) => Nsid::parse(&format!("{start}.a.a")).is_ok(),
        None => Nsid::parse(wanted).is_ok(),
    }
}

/// Whether events are wanted: for what a host was not asked to leave out.
#[derive(Clone, Debug)]
pub(super) struct FilterMatcher {
    kinds: Vec<EventKind>,
    collections: HashSet<String>,
    starts: Vec<String>,
    dids: HashSet<DidBuf>,
}

impl FilterMatcher {
    pub(super) fn new(wanted: &Filter) -> Self {
        let starts = wanted.collections.iter().filter_map(|wanted| wanted.strip_suffix('*'));
        let whole = wanted.collections.iter().filter(|wanted| !wanted.ends_with('*'));
        Self {
            kinds: wanted.kinds.clone(),
            collections: whole.cloned().collect(),
            starts: starts.map(str::to_owned).collect(),
            dids: wanted.dids.iter().cloned().collect(),
        }
    }

    pub(super) fn wants(&self, event: &Event) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&event.kind());
        let is_did = self.dids.is_empty() || self.dids.contains(&event.did);
        is_kind && is_did && self.wants_body(&event.body)
    }

    fn wants_body(&self, body: &EventBody) -> bool {
        let EventBody::Commit(commit) = body else { return true };
        let name = commit.collection.as_str();
        (self.collections.is_empty() && self.starts.is_empty())
            || self.collections.contains(name)
            || self.starts.iter().any(|start| name.starts_with(start))
    }
}

/// The most collections that may be wanted.
pub(super) const MAX_COLLECTIONS: usize = 100;

/// The most accounts that may be wanted.
pub(super) const MAX_DIDS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn collections(names: &[&str]) -> Filter {
        Filter {
            collections: names.iter().map(|name| (*name).to_owned()).collect(),
            ..Filter::default()
        }
    }

    #[test]
    fn collections_are_names_or_the_beginnings_of_names() {
        for right in ["app.bsky.feed.post", "app.bsky.feed.*", "app.bsky.*", "app.*"] {
            assert_eq!(collections(&[right]).check(), Ok(()), "{right}");
        }
        for wrong in ["", "*", ".*", "app", "app.bsky", "app.bsky.feed.", "a b.*", "app.bsky.f*"] {
            let error = FilterError::Collection(wrong.to_owned());
            assert_eq!(collections(&[wrong]).check(), Err(error), "{wrong}");
        }
    }

    #[test]
    fn the_limits_of_the_protocol_are_held() {
        let name = "app.bsky.feed.post";
        assert_eq!(collections(&[name; 100]).check(), Ok(()));
        assert_eq!(collections(&[name; 101]).check(), Err(FilterError::Collections(101)));
        let dids = |count: usize| Filter {
            dids: vec!["did:web:a.test".parse().unwrap(); count],
            ..Filter::default()
        };
        assert_eq!(dids(10_000).check(), Ok(()));
        assert_eq!(dids(10_001).check(), Err(FilterError::Dids(10_001)));
        let odd = Filter { kinds: vec![EventKind::Identity], ..collections(&[name]) };
        assert_eq!(odd.check(), Err(FilterError::CollectionsWithoutCommits));
    }
}
