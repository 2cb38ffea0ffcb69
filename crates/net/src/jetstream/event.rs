//! Events of a Jetstream, the items that a client returns, and filters.

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::time::SystemTime;

use atproto::syntax::{CidTextBuf, CollectionPattern, DidBuf, NsidBuf, RecordKeyBuf, Tid};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::firehose::Notice;
use crate::hosts::HostId;

/// An item of a Jetstream client.
#[derive(Clone, Debug)]
pub enum JetstreamItem {
    /// An event.
    Event(Event),
    /// A message that is not a valid event.
    Unrecognized(Unrecognized),
    /// A change of a connection, or a report of the host.
    Notice(Notice),
}

/// A message that is not a valid event.
#[derive(Clone, Debug)]
pub struct Unrecognized {
    /// The host that sent it.
    pub host: HostId,
    /// The message, decompressed if possible.
    pub bytes: Bytes,
    /// The reason: an unknown kind, or a violated rule.
    pub reason: String,
    /// The time of receipt.
    pub received: SystemTime,
}

/// An event, as sent by one host.
#[derive(Clone, Debug)]
pub struct Event {
    /// The host that sent it.
    pub host: HostId,
    /// The cursor of this event on this host: a time in microseconds in version 1, a sequence number in
    /// version 2.
    pub cursor: u64,
    /// Time at which the host first sent it, in microseconds since 1970.
    pub micros: u64,
    /// The account.
    pub did: DidBuf,
    /// The content.
    pub body: EventBody,
    /// The time of receipt.
    pub received: SystemTime,
}

/// The content of an event.
#[derive(Clone, Debug)]
pub enum EventBody {
    /// An operation on a record.
    Commit(Commit),
    /// A possible change of the handle, keys or host.
    Identity(Identity),
    /// A change of the account's status on its host.
    Account(Account),
    /// A reset of the repository to another commit.
    Sync(Sync),
}

/// One operation of a commit.
#[derive(Clone, Debug, Deserialize)]
pub struct Commit {
    /// The revision of the commit.
    pub rev: Tid,
    /// The operation.
    pub operation: Operation,
    /// The collection of the record.
    pub collection: NsidBuf,
    /// The record key.
    pub rkey: RecordKeyBuf,
    /// The CID of the record; `None` for a deletion.
    pub cid: Option<CidTextBuf>,
    /// The record as JSON; `None` for a deletion.
    pub record: Option<Box<RawValue>>,
}

/// An operation on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Creation.
    Create,
    /// Replacement.
    Update,
    /// Deletion.
    Delete,
}

/// A possible change of an identity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Identity {
    /// The handle, if the event has one; not verified.
    pub handle: Option<String>,
    /// Time of the event.
    pub time: String,
}

/// The status of an account on its host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Account {
    /// Whether the repository may be served.
    pub active: bool,
    /// The reason if it may not.
    pub status: Option<String>,
    /// Time of the event.
    pub time: String,
}

/// The current commit of a repository.
#[derive(Clone, Debug, Deserialize)]
pub struct Sync {
    /// The revision.
    pub rev: Tid,
    /// Time of the event.
    pub time: String,
    /// A CAR of the commit block, in the JSON encoding of bytes.
    pub blocks: Option<Box<RawValue>>,
}

impl Event {
    /// The kind.
    pub fn kind(&self) -> EventKind {
        match &self.body {
            EventBody::Commit(_) => EventKind::Commit,
            EventBody::Identity(_) => EventKind::Identity,
            EventBody::Account(_) => EventKind::Account,
            EventBody::Sync(_) => EventKind::Sync,
        }
    }

    /// Names the event among others with the same cursor: it is equal wherever and whenever the event is received. Two
    /// events with the same name have the same fields, except the host, its cursor and the record.
    ///
    /// In version 1 several events can have the cursor of one microsecond. So the events handled up to a cursor are
    /// known by the cursor and the names of the events at it.
    pub fn identity(&self) -> String {
        let rest = match &self.body {
            EventBody::Commit(commit) => {
                let cid = commit.cid.as_ref().map_or("", |cid| cid.as_str());
                let operation = match commit.operation {
                    Operation::Create => "create",
                    Operation::Update => "update",
                    Operation::Delete => "delete",
                };
                let (collection, rkey) = (commit.collection.as_str(), commit.rkey.as_str());
                format!("{} {operation} {collection} {rkey} {cid}", commit.rev)
            }
            EventBody::Identity(of) => {
                format!("{} {}", of.time, of.handle.as_deref().unwrap_or_default())
            }
            EventBody::Account(of) => {
                let status = of.status.as_deref().unwrap_or_default();
                format!("{} {} {status}", of.time, of.active)
            }
            EventBody::Sync(of) => format!("{} {}", of.rev, of.time),
        };
        format!("{} {} {rest}", self.did.as_str(), self.kind().name())
    }

    /// Hashes the fields that are equal on every host, without the cursor and without the record, which the
    /// revision determines.
    pub(super) fn hash_identity(&self, hasher: &mut impl Hasher) {
        self.did.as_str().hash(hasher);
        self.kind().hash(hasher);
        match &self.body {
            EventBody::Commit(commit) => {
                let cid = commit.cid.as_ref().map(|cid| cid.as_str());
                let path = (commit.collection.as_str(), commit.rkey.as_str());
                (commit.rev.to_bytes(), commit.operation, path, cid).hash(hasher);
            }
            EventBody::Identity(identity) => identity.hash(hasher),
            EventBody::Account(account) => account.hash(hasher),
            EventBody::Sync(sync) => (sync.rev.to_bytes(), &sync.time).hash(hasher),
        }
    }
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// An operation on a record.
    Commit,
    /// A possible change of the handle, keys or host.
    Identity,
    /// A change of the account's status on its host.
    Account,
    /// A reset of the repository to another commit; only in version 2.
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

/// A filter of events. An empty list does not restrict its field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Kinds of events. Version 1 has no such parameter: the client drops the others.
    pub kinds: Vec<EventKind>,
    /// Collections, or prefixes of their names followed by `.*`. They restrict commits only.
    pub collections: Vec<String>,
    /// Accounts.
    pub dids: Vec<DidBuf>,
    /// Maximum message size in bytes; the host omits larger ones.
    pub max_message_bytes: Option<u32>,
}

/// Why a filter, or a dictionary, is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// More collections than the protocol allows.
    #[error("{0} collections in the filter: at most {MAX_COLLECTIONS} are allowed")]
    Collections(usize),
    /// More accounts than the protocol allows.
    #[error("{0} accounts in the filter: at most {MAX_DIDS} are allowed")]
    Dids(usize),
    /// Neither the name of a collection nor a prefix of one.
    #[error("`{0}` is neither a collection nor a prefix of one followed by .*")]
    Collection(String),
    /// Collections are given, and the kinds exclude commits.
    #[error("the filter has collections, and its kinds exclude commits")]
    CollectionsWithoutCommits,
    /// The given dictionary is invalid.
    #[error("the given bytes are not a Zstandard dictionary")]
    NotADictionary,
}

impl Filter {
    /// Checks the limits and rules of the protocol.
    ///
    /// # Errors
    /// If the filter violates one.
    pub fn check(&self) -> Result<(), FilterError> {
        if self.collections.len() > MAX_COLLECTIONS {
            return Err(FilterError::Collections(self.collections.len()));
        }
        if self.dids.len() > MAX_DIDS {
            return Err(FilterError::Dids(self.dids.len()));
        }
        if let Some(invalid) =
            self.collections.iter().find(|name| CollectionPattern::parse(name).is_err())
        {
            return Err(FilterError::Collection(invalid.clone()));
        }
        let excludes_commits = !self.kinds.is_empty() && !self.kinds.contains(&EventKind::Commit);
        if excludes_commits && !self.collections.is_empty() {
            Err(FilterError::CollectionsWithoutCommits)
        } else {
            Ok(())
        }
    }
}

/// The client-side check of a filter, for the parts that a host does not apply.
#[derive(Clone, Debug)]
pub(super) struct FilterMatcher {
    kinds: Vec<EventKind>,
    collections: HashSet<String>,
    prefixes: Vec<String>,
    dids: HashSet<DidBuf>,
}

impl FilterMatcher {
    pub(super) fn new(filter: &Filter) -> Self {
        let prefixes = filter.collections.iter().filter_map(|name| name.strip_suffix('*'));
        let exact = filter.collections.iter().filter(|name| !name.ends_with('*'));
        Self {
            kinds: filter.kinds.clone(),
            collections: exact.cloned().collect(),
            prefixes: prefixes.map(str::to_owned).collect(),
            dids: filter.dids.iter().cloned().collect(),
        }
    }

    pub(super) fn matches(&self, event: &Event) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&event.kind());
        let is_did = self.dids.is_empty() || self.dids.contains(&event.did);
        is_kind && is_did && self.matches_body(&event.body)
    }

    fn matches_body(&self, body: &EventBody) -> bool {
        let EventBody::Commit(commit) = body else { return true };
        let name = commit.collection.as_str();
        (self.collections.is_empty() && self.prefixes.is_empty())
            || self.collections.contains(name)
            || self.prefixes.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Maximum number of collections in a filter.
const MAX_COLLECTIONS: usize = 100;

/// Maximum number of accounts in a filter.
const MAX_DIDS: usize = 10_000;

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
    fn collections_are_names_or_prefixes_of_names() {
        for valid in ["app.bsky.feed.post", "app.bsky.feed.*", "app.bsky.*", "app.*"] {
            assert_eq!(collections(&[valid]).check(), Ok(()), "{valid}");
        }
        for invalid in ["", "*", ".*", "app", "app.bsky", "app.bsky.feed.", "a b.*", "app.bsky.f*"]
        {
            let error = FilterError::Collection(invalid.to_owned());
            assert_eq!(collections(&[invalid]).check(), Err(error), "{invalid}");
        }
    }

    #[test]
    fn filters_beyond_the_limits_of_the_protocol_are_rejected() {
        let name = "app.bsky.feed.post";
        assert_eq!(collections(&[name; 100]).check(), Ok(()));
        assert_eq!(collections(&[name; 101]).check(), Err(FilterError::Collections(101)));
        let dids = |count: usize| Filter {
            dids: vec!["did:web:a.test".parse().unwrap(); count],
            ..Filter::default()
        };
        assert_eq!(dids(10_000).check(), Ok(()));
        assert_eq!(dids(10_001).check(), Err(FilterError::Dids(10_001)));
        let no_commits = Filter { kinds: vec![EventKind::Identity], ..collections(&[name]) };
        assert_eq!(no_commits.check(), Err(FilterError::CollectionsWithoutCommits));
    }
}
