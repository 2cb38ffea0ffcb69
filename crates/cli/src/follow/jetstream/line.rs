//! What is printed of an event of a Jetstream? The fields of other lines, as far as it tells them.

use wireproof::atproto::syntax::DatetimeBuf;
use wireproof::net::jetstream::{Commit, Event, EventBody, Operation, Unrecognized};

use super::super::line::Object;

/// Writes the line of an event.
pub(super) fn write(line: &mut Vec<u8>, host: &str, event: &Event) {
    let mut object = Object::begin(line);
    object.text("host", host);
    object.value("seq", event.cursor);
    object.text("kind", event.kind().name());
    object.text("did", event.did.as_str());
    let said = DatetimeBuf::from_unix_micros(i64::try_from(event.micros).unwrap_or(i64::MAX));
    match &event.body {
        EventBody::Commit(commit) => {
            object.optional("time", said.as_ref().map(|time| time.as_str()));
            object.plain("rev", commit.rev);
        }
        EventBody::Sync(sync) => {
            object.text("time", &sync.time);
            object.plain("rev", sync.rev);
        }
        EventBody::Identity(identity) => {
            object.text("time", &identity.time);
            object.optional("handle", identity.handle.as_deref());
        }
        EventBody::Account(account) => {
            object.text("time", &account.time);
            object.json("active", &account.active);
            object.optional("status", account.status.as_deref());
        }
    }
    object.text("verdict", NOT_ASKED);
    object.text("code", NOT_ASKED);
    if let EventBody::Commit(commit) = &event.body {
        op(&mut object, commit);
    }
    object.end();
}

/// Writes the line of a message that is no event.
pub(super) fn write_strange(line: &mut Vec<u8>, host: &str, strange: &Unrecognized) {
    let mut object = Object::begin(line);
    object.text("host", host);
    object.text("kind", UNDECODABLE);
    object.text("verdict", "refused");
    object.text("code", MESSAGE);
    object.text("reason", &strange.reason);
    object.bytes("frame", &strange.bytes);
    object.end();
}

fn op(object: &mut Object<'_>, commit: &Commit) {
    object.key("ops");
    object.line.push(b'[');
    let mut op = Object::begin(object.line);
    op.text(
        "action",
        match commit.operation {
            Operation::Create => "create",
            Operation::Update => "update",
            Operation::Delete => "delete",
        },
    );
    op.text("collection", commit.collection.as_str());
    op.text("rkey", commit.rkey.as_str());
    op.optional("cid", commit.cid.as_ref().map(|cid| cid.as_str()));
    if let Some(record) = &commit.record {
        op.key("record");
        // Line ends can only be white space here: a text has them escaped.
        let one_line = |byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
        op.line.extend(record.get().bytes().map(one_line));
    }
    op.close();
    object.line.push(b']');
}

/// Verdict and code of what nobody signed.
pub(super) const NOT_ASKED: &str = "not-asked";

/// The kind of what cannot be read, and why it is refused.
pub(super) const UNDECODABLE: &str = "undecodable";
pub(super) const MESSAGE: &str = "message";
