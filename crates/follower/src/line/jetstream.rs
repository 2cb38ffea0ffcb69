//! The lines of the events of a Jetstream.

use atproto::event::Action;
use atproto::syntax::DatetimeBuf;
use events::{
    AccountClaims, Body, Claims, Code, CommitClaims, Content, EventBody, IdentityClaims, Json,
    Line, Op, SyncClaims, Text, Verdict,
};
use net::jetstream::{self, EventBody as Received, Operation, Unrecognized};
use serde_json::value::RawValue;

/// Writes the line of an event of a Jetstream.
pub(crate) fn write_jetstream(lines: &mut Vec<u8>, host: &str, event: &jetstream::Event) {
    let ops = match &event.body {
        Received::Commit(commit) => Some(vec![op(commit)]),
        _ => None,
    };
    let body = EventBody {
        seq: i64::try_from(event.cursor).ok(),
        did: Some(event.did.as_str().into()),
        ops,
        ..empty(host, claims(event))
    };
    let verdict = Verdict::NotAsked;
    let code = Code::NotAsked;
    let body = Body::Event(body);
    Line { id: None, live: None, verdict, code, body }.append(lines);
}

/// Writes the line of a Jetstream message that is no event.
pub(crate) fn write_unrecognized(lines: &mut Vec<u8>, host: &str, message: &Unrecognized) {
    let body = EventBody {
        message: Some((&*message.reason).into()),
        frame: Some((&*message.bytes).into()),
        ..empty(host, Claims::Undecodable)
    };
    let verdict = Verdict::Refused;
    let code = Code::Message;
    let body = Body::Event(body);
    Line { id: None, live: None, verdict, code, body }.append(lines);
}

/// A message with these claims and nothing else.
fn empty<'l>(host: &'l str, claims: Claims<'l>) -> EventBody<'l> {
    EventBody {
        arrival: None,
        host: host.into(),
        seq: None,
        repeated: false,
        did: None,
        claims,
        key: None,
        message: None,
        verified_against: None,
        ops: None,
        proof: None,
        frame: None,
    }
}

fn claims(event: &jetstream::Event) -> Claims<'_> {
    match &event.body {
        Received::Commit(commit) => {
            let micros = i64::try_from(event.micros).unwrap_or(i64::MAX);
            let time = DatetimeBuf::from_unix_micros(micros);
            let time = time.map(|time| time.as_str().to_owned().into());
            Claims::Commit(Some(CommitClaims {
                time,
                rev: commit.rev.to_string().into(),
                commit: None,
            }))
        }
        Received::Sync(sync) => {
            let (time, rev) = (Some((&*sync.time).into()), sync.rev.to_string().into());
            Claims::Sync(Some(SyncClaims { time, rev }))
        }
        Received::Identity(identity) => {
            let handle = identity.handle.as_deref().map(Text::from);
            let time = Some((&*identity.time).into());
            Claims::Identity(Some(IdentityClaims { time, handle }))
        }
        Received::Account(account) => Claims::Account(Some(AccountClaims {
            time: Some((&*account.time).into()),
            active: account.active,
            status: account.status.as_deref().map(Text::from),
        })),
    }
}

fn op(commit: &jetstream::Commit) -> Op<'_> {
    Op {
        action: match commit.operation {
            Operation::Create => Action::Create,
            Operation::Update => Action::Update,
            Operation::Delete => Action::Delete,
        },
        collection: commit.collection.as_str().into(),
        rkey: commit.rkey.as_str().into(),
        cid: commit.cid.as_ref().map(|cid| cid.as_str().into()),
        content: commit.record.as_deref().map(|record| Content::Record(in_one_line(record))),
        filtered: false,
    }
}

/// A record without line ends, which can only be white space: in text they are escaped.
fn in_one_line(record: &RawValue) -> Json<'_> {
    if !record.get().contains(['\n', '\r']) {
        return record.into();
    }
    let text = record.get().replace(['\n', '\r'], " ");
    RawValue::from_string(text).map_or_else(|_| record.into(), Json::from)
}
