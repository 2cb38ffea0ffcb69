//! Events of a Jetstream.

use std::hash::{Hash, Hasher};
use std::time::SystemTime;

use atproto::syntax::{CidTextBuf, DidBuf, NsidBuf, RecordKeyBuf, Tid};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wanted::EventKind;
use crate::hosts::HostId;

/// An event, as one host tells it.
#[derive(Clone, Debug)]
pub struct Event {
    /// Who told it.
    pub host: HostId,
    /// What brings this host to this event: its time in version 1, its number in version 2.
    pub cursor: u64,
    /// When the host told it first, in microseconds since 1970.
    pub micros: u64,
    /// The account.
    pub did: DidBuf,
    /// What happened.
    pub body: EventBody,
    /// When it came.
    pub received: SystemTime,
}

/// What happened to an account.
#[derive(Clone, Debug)]
pub enum EventBody {
    /// It did this to a record.
    Commit(Commit),
    /// Its handle, keys or host may have changed.
    Identity(Identity),
    /// What its host says of it has changed.
    Account(Account),
    /// Its repository is at another place.
    Sync(Sync),
}

/// One operation of a commit.
#[derive(Clone, Debug, Deserialize)]
pub struct Commit {
    /// The revision of the commit.
    pub rev: Tid,
    /// What was done.
    pub operation: Operation,
    /// The collection of the record.
    pub collection: NsidBuf,
    /// The record within its collection.
    pub rkey: RecordKeyBuf,
    /// The record's hash; none when it is deleted.
    pub cid: Option<CidTextBuf>,
    /// The record, as JSON; none when it is deleted.
    pub record: Option<Box<RawValue>>,
}

/// What was done to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// It is new.
    Create,
    /// It is another one.
    Update,
    /// It is no more.
    Delete,
}

/// Who an account is may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Identity {
    /// The handle, as far as it is told; it is not checked.
    pub handle: Option<String>,
    /// When that was told first.
    pub time: String,
}

/// What the host of an account says of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Account {
    /// Whether its repository may be served.
    pub active: bool,
    /// Why not.
    pub status: Option<String>,
    /// When that was told first.
    pub time: String,
}

/// Where an account's repository is.
#[derive(Clone, Debug, Deserialize)]
pub struct Sync {
    /// The revision.
    pub rev: Tid,
    /// When that was told first.
    pub time: String,
    /// The commit block in a CAR, as JSON spells bytes.
    pub blocks: Option<Box<RawValue>>,
}

impl Event {
    /// Which kind it is.
    pub fn kind(&self) -> EventKind {
        match &self.body {
            EventBody::Commit(_) => EventKind::Commit,
            EventBody::Identity(_) => EventKind::Identity,
            EventBody::Account(_) => EventKind::Account,
            EventBody::Sync(_) => EventKind::Sync,
        }
    }

    /// Hashes what is the same on every host: not its place there, nor the record, which follows from
    /// the revision.
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
