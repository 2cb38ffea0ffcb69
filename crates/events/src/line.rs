//! A line by its kind.

use crate::code::Code;
use crate::operation::Op;
use crate::text::{Bytes, Text};
use crate::words::{Kind, ProvedLevel, Verdict};

/// A line of `wireproof follow`, of version 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Line<'l> {
    /// The id of the line, the same at every delivery. Only lines from an outbox or an archive have one.
    pub id: Option<Text<'l>>,
    /// Whether it is an event of the stream, and no part of a repository. Only lines with an id say so.
    pub live: Option<bool>,
    /// The verdict.
    pub verdict: Verdict,
    /// The stable name of the verdict.
    pub code: Code<'l>,
    /// Kind of the line.
    #[cfg_attr(test, schemars(skip))]
    pub body: Body<'l>,
}

/// The subject of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'l> {
    /// An event, or the frame that came in its place.
    Event(EventBody<'l>),
    /// A part of a repository that was fetched and verified as a whole.
    Resync(Resync<'l>),
    /// A status that the account's own server confirms.
    Status(Status<'l>),
    /// The collections in which the delivered records of an account are complete, if these are fewer than before.
    History {
        /// The account.
        did: Text<'l>,
        /// The collections: `app.bsky.feed.post`, or `app.bsky.feed.*` for all below it; `None` for none of them.
        complete: Option<Vec<Text<'l>>>,
    },
    /// One operation of a commit or a repository.
    Operation(Box<Operation<'l>>),
}

/// An event as a host or an archive sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventBody<'l> {
    /// The number of the event in the archive from which it is replayed.
    pub arrival: Option<i64>,
    /// Origin of the host.
    pub host: Text<'l>,
    /// The sequence number at the host.
    pub seq: Option<i64>,
    /// Whether an earlier run may have printed the event.
    pub repeated: bool,
    /// An account: a DID where the line is verified, else the text of the event. Every commit, sync, identity and account has one.
    pub did: Option<Text<'l>>,
    /// What the event claims.
    #[cfg_attr(test, schemars(skip))]
    pub claims: Claims<'l>,
    /// The did:key under which an archived event was verified.
    pub key: Option<Text<'l>>,
    /// The explanation of the code, for a person.
    pub message: Option<Text<'l>>,
    /// How much of the event is proved, if not all.
    pub verified_against: Option<ProvedLevel>,
    /// The operations of a commit that count.
    pub ops: Option<Vec<Op<'l>>>,
    /// What proves the line again.
    pub proof: Option<Proof<'l>>,
    /// The frame as received, of one that cannot be decoded.
    pub frame: Option<Bytes<'l>>,
}

/// The claims of an event, verified or not: `None` of a refused one that cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claims<'l> {
    /// A change of a repository.
    Commit(Option<CommitClaims<'l>>),
    /// The state of a repository.
    Sync(Option<SyncClaims<'l>>),
    /// A changed identity.
    Identity(Option<IdentityClaims<'l>>),
    /// A changed status of an account.
    Account(Option<AccountClaims<'l>>),
    /// A message of the host.
    Info(Option<MessageClaims<'l>>),
    /// An error of the host.
    Error(Option<MessageClaims<'l>>),
    /// A message of this type, if it names one.
    Unknown(Option<Text<'l>>),
    /// Bytes that are no message.
    Undecodable,
}

/// The claims of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CommitClaims<'l> {
    /// When it was sent: a datetime where the line is verified, else the text of the event.
    pub time: Option<Text<'l>>,
    /// The revision of the repository: a TID where the line is verified, else the text of the event.
    pub rev: Text<'l>,
    /// The CID of the commit.
    pub commit: Option<Text<'l>>,
}

/// The claims of a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SyncClaims<'l> {
    /// When it was sent: a datetime where the line is verified, else the text of the event.
    pub time: Option<Text<'l>>,
    /// The revision of the repository: a TID where the line is verified, else the text of the event.
    pub rev: Text<'l>,
}

/// The claims of an identity event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdentityClaims<'l> {
    /// When it was sent: a datetime where the line is verified, else the text of the event.
    pub time: Option<Text<'l>>,
    /// The handle that the event claims.
    pub handle: Option<Text<'l>>,
}

/// The claims of an account event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AccountClaims<'l> {
    /// When it was sent: a datetime where the line is verified, else the text of the event.
    pub time: Option<Text<'l>>,
    /// Whether the account is active.
    pub active: bool,
    /// Why the account is not active, such as `deleted` or `takendown`, or another status.
    pub status: Option<Text<'l>>,
}

/// A message or an error of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MessageClaims<'l> {
    /// Its name.
    pub name: Text<'l>,
    /// Its text.
    pub message: Option<Text<'l>>,
}

/// What proves a line again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Proof<'l> {
    /// The frame as received.
    Frame(#[serde(borrow)] Bytes<'l>),
    /// A slice of the repository, as a CAR.
    Blocks(#[serde(borrow)] Bytes<'l>),
}

/// A part of a repository: its records in order of their paths, or the changes in them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Resync<'l> {
    /// When it was fetched; only of lines with an id.
    pub time: Option<Text<'l>>,
    /// Origin of the server that sent it.
    pub host: Text<'l>,
    /// The account.
    pub did: Text<'l>,
    /// The revision.
    pub rev: Text<'l>,
    /// The CID of the commit.
    pub commit: Text<'l>,
    /// The collections whose records were downloaded, if not all were: `app.bsky.feed.post`, or `app.bsky.feed.*` for all below it.
    pub collections: Option<Vec<Text<'l>>>,
    /// The collections in which the delivered records of the account are complete after the last line; `None` for all.
    pub complete: Option<Vec<Text<'l>>>,
    /// Number of records of the repository, or of these collections.
    pub records: u64,
    /// Number of invalid ones among them.
    pub invalid_records: u64,
    /// Size of its archive in bytes.
    pub bytes: u64,
    /// Number of the line in the lines of the repository, from 0.
    pub piece: u64,
    /// Whether its lines have all records, or the difference to the lines before.
    pub whole: bool,
    /// The records, or the changes.
    pub ops: Vec<Op<'l>>,
    /// Whether it is the last line of the repository.
    pub last: bool,
    /// What proves the line again.
    pub proof: Option<Proof<'l>>,
}

/// A status that the account's own server confirms: it does not serve the account.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status<'l> {
    /// The account.
    pub did: Text<'l>,
    /// Always false.
    pub active: bool,
    /// The reason, if the server names one.
    pub status: Option<Text<'l>>,
}

/// One operation of a commit or a repository, with the keys of its event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Operation<'l> {
    /// Origin of the host.
    pub host: Text<'l>,
    /// The sequence number at the host.
    pub seq: Option<i64>,
    /// Whether an earlier run may have printed the event.
    pub repeated: bool,
    /// The account.
    pub did: Text<'l>,
    /// When the event was sent, or the repository fetched.
    pub time: Option<Text<'l>>,
    /// The revision.
    pub rev: Text<'l>,
    /// The CID of the commit.
    pub commit: Option<Text<'l>>,
    /// How much of the event is proved, if not all.
    pub verified_against: Option<ProvedLevel>,
    /// The explanation of the code, for a person.
    pub message: Option<Text<'l>>,
    /// Number of the line of a repository, from 0.
    pub piece: Option<u64>,
    /// Of a repository: whether its lines have all records, or the difference to the lines before.
    pub whole: Option<bool>,
    /// Number of the operation in the event.
    pub index: u64,
    /// Whether it is the last of the commit or of the repository.
    pub last: bool,
    /// The operation.
    #[cfg_attr(test, schemars(skip))]
    pub op: Op<'l>,
    /// The value of the event, in the line of its first operation.
    pub proof: Option<Proof<'l>>,
}

impl Line<'_> {
    /// Version of the lines: another one when a key changes its meaning or is removed.
    pub const VERSION: u64 = 1;

    /// The kind.
    pub fn kind(&self) -> Kind {
        match &self.body {
            Body::Event(event) => event.claims.kind(),
            Body::Resync(_) => Kind::Resync,
            Body::Status(_) => Kind::Status,
            Body::History { .. } => Kind::History,
            Body::Operation(_) => Kind::Operation,
        }
    }

    /// The account; empty of a line that is about none.
    pub fn did(&self) -> &str {
        self.account().unwrap_or_default()
    }

    /// The account, if the line is about one.
    pub fn account(&self) -> Option<&str> {
        match &self.body {
            Body::Event(event) => event.did.as_deref(),
            Body::Resync(resync) => Some(&resync.did),
            Body::Status(status) => Some(&status.did),
            Body::History { did, .. } => Some(did),
            Body::Operation(operation) => Some(&operation.did),
        }
    }

    /// The revision, proved or only claimed.
    pub fn rev(&self) -> Option<&str> {
        match &self.body {
            Body::Event(event) => match &event.claims {
                Claims::Commit(Some(commit)) => Some(&commit.rev),
                Claims::Sync(Some(sync)) => Some(&sync.rev),
                _ => None,
            },
            Body::Resync(resync) => Some(&resync.rev),
            Body::Operation(operation) => Some(&operation.rev),
            Body::Status(_) | Body::History { .. } => None,
        }
    }

    /// Whether it is an event of the stream.
    pub fn is_live(&self) -> bool {
        self.live.unwrap_or_default()
    }

    /// Whether it is verified.
    pub fn is_verified(&self) -> bool {
        self.verdict == Verdict::Verified
    }

    /// Whether its operations count: they are verified, or the operator asked for no verification.
    pub fn has_operations(&self) -> bool {
        matches!(self.verdict, Verdict::Verified | Verdict::NotAsked)
    }

    /// Whether the event has no signature, and is well formed as far as that was asked for.
    pub fn is_claim(&self) -> bool {
        matches!(self.verdict, Verdict::Unchecked | Verdict::NotAsked)
    }
}

impl Claims<'_> {
    /// The kind of the event.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Commit(_) => Kind::Commit,
            Self::Sync(_) => Kind::Sync,
            Self::Identity(_) => Kind::Identity,
            Self::Account(_) => Kind::Account,
            Self::Info(_) => Kind::Info,
            Self::Error(_) => Kind::Error,
            Self::Unknown(_) => Kind::Unknown,
            Self::Undecodable => Kind::Undecodable,
        }
    }
}
