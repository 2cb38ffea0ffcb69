//! The content of a frame in the parts that Jetstreams and the directory need.

use std::cell::RefCell;

use atproto::event::{Account, Action, Decoder, Event, Identity, Options, RepoOp, Sync};
use data_encoding::BASE64_NOPAD;

use crate::record_json;

/// The content of a served frame.
#[derive(Debug)]
pub(crate) enum Content {
    Commit(CommitContent),
    /// The message as the JSON of its fields, and the new commit.
    Sync {
        json: Vec<u8>,
        head: Head,
    },
    Identity {
        json: Vec<u8>,
    },
    Account {
        json: Vec<u8>,
        active: bool,
        status: Option<Box<str>>,
    },
    /// A frame that this version does not read.
    Unreadable,
}

/// A commit.
#[derive(Debug)]
pub(crate) struct CommitContent {
    pub(crate) head: Head,
    pub(crate) ops: Vec<OpContent>,
}

/// The newest commit of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) rev: Box<str>,
    /// The CID of the commit object as text; empty if the frame has none.
    pub(crate) commit: Box<str>,
}

/// An operation of a commit.
#[derive(Debug)]
pub(crate) struct OpContent {
    pub(crate) action: Action,
    pub(crate) collection: Box<str>,
    pub(crate) rkey: Box<str>,
    pub(crate) record: Option<RecordContent>,
}

/// The record of an operation.
#[derive(Debug)]
pub(crate) struct RecordContent {
    pub(crate) cid: String,
    /// The record as JSON; `None` if it has no JSON form.
    pub(crate) json: Option<Vec<u8>>,
}

impl Content {
    /// Reads a frame of the log, whose hashes were checked before it was stored.
    pub(crate) fn of_frame(frame: &[u8]) -> Self {
        DECODER.with_borrow_mut(|decoder| match decoder.decode(frame) {
            Ok(event) => Self::of_event(&event),
            Err(_) => Self::Unreadable,
        })
    }

    fn of_event(event: &Event<'_>) -> Self {
        match event {
            Event::Commit(commit) => {
                let head =
                    Head { rev: commit.rev.into(), commit: commit.commit.to_string().into() };
                let ops = commit.ops.iter().map(OpContent::of_op).collect();
                Self::Commit(CommitContent { head, ops })
            }
            Event::Sync(sync) => {
                let commit = sync.root.map(|root| root.to_string()).unwrap_or_default();
                let head = Head { rev: sync.rev.into(), commit: commit.into() };
                Self::Sync { json: sync_json(sync), head }
            }
            Event::Identity(identity) => Self::Identity { json: identity_json(identity) },
            Event::Account(account) => Self::Account {
                json: account_json(account),
                active: account.active,
                status: account.status.map(Into::into),
            },
            Event::Info(_) | Event::Error(_) | Event::Unknown(_) => Self::Unreadable,
        }
    }
}

impl OpContent {
    fn of_op(op: &RepoOp<'_>) -> Self {
        let (collection, rkey) = op.path.split_once('/').unwrap_or((op.path, ""));
        let record = op.cid.filter(|_| op.action != Action::Delete).map(|cid| {
            let value = op.record.and_then(|block| block.value.as_ref());
            let json = value.and_then(|value| {
                let mut json = Vec::new();
                record_json::append(&mut json, value).map(|()| json)
            });
            RecordContent { cid: cid.to_string(), json }
        });
        Self { action: op.action, collection: collection.into(), rkey: rkey.into(), record }
    }
}

/// A JSON object whose keys are written in order.
struct Object(Vec<u8>);

impl Object {
    fn new() -> Self {
        Self(vec![b'{'])
    }

    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        record_json::append_text(&mut self.0, key);
        self.0.push(b':');
        &mut self.0
    }

    fn text(mut self, key: &str, text: &str) -> Self {
        record_json::append_text(self.key(key), text);
        self
    }

    fn optional(self, key: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    /// A value that has its JSON form already.
    fn raw(mut self, key: &str, json: &str) -> Self {
        self.key(key).extend_from_slice(json.as_bytes());
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

fn identity_json(identity: &Identity<'_>) -> Vec<u8> {
    let object = Object::new().text("did", identity.did).optional("handle", identity.handle);
    object.raw("seq", &identity.seq.to_string()).text("time", identity.time).end()
}

fn account_json(account: &Account<'_>) -> Vec<u8> {
    let object = Object::new().raw("active", if account.active { "true" } else { "false" });
    let object = object.text("did", account.did).raw("seq", &account.seq.to_string());
    object.optional("status", account.status).text("time", account.time).end()
}

fn sync_json(sync: &Sync<'_>) -> Vec<u8> {
    let blocks = format!("{{\"$bytes\":\"{}\"}}", BASE64_NOPAD.encode(sync.car));
    let object = Object::new().raw("blocks", &blocks).text("did", sync.did).text("rev", sync.rev);
    object.raw("seq", &sync.seq.to_string()).text("time", sync.time).end()
}

fn options() -> Options {
    let mut options = Options::default();
    options.trust_hashes = true;
    options
}

thread_local! {
    static DECODER: RefCell<Decoder> = RefCell::new(Decoder::new(options()));
}
