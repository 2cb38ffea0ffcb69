//! The lines of the events of a Jetstream.

use atproto::syntax::DatetimeBuf;
use net::jetstream::{self, EventBody, Operation, Unrecognized};

use super::object::Object;
use super::{NOT_ASKED, NOT_ASKED_CODE, UNDECODABLE, UNREADABLE_CODE};

/// Writes the line of an event of a Jetstream.
pub(crate) fn write_jetstream(line: &mut Vec<u8>, host: &str, event: &jetstream::Event) {
    let mut object = Object::begin_line(line);
    object.text("host", host);
    object.number("seq", event.cursor);
    object.text("kind", event.kind().name());
    object.text("did", event.did.as_str());
    match &event.body {
        EventBody::Commit(commit) => {
            let micros = i64::try_from(event.micros).unwrap_or(i64::MAX);
            let time = DatetimeBuf::from_unix_micros(micros);
            object.optional("time", time.as_ref().map(|time| time.as_str()));
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
    object.text("code", NOT_ASKED_CODE);
    if let EventBody::Commit(commit) = &event.body {
        write_jetstream_op(&mut object, commit);
    }
    object.end();
}

fn write_jetstream_op(object: &mut Object<'_>, commit: &jetstream::Commit) {
    object.key("ops");
    object.line.push(b'[');
    let mut op = Object::begin(object.line);
    let action = match commit.operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
    };
    op.text("action", action);
    op.text("collection", commit.collection.as_str());
    op.text("rkey", commit.rkey.as_str());
    op.optional("cid", commit.cid.as_ref().map(|cid| cid.as_str()));
    if let Some(record) = &commit.record {
        op.key("record");
        // Line ends can only be white space here: in text they are escaped.
        let one_line = |byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
        op.line.extend(record.get().bytes().map(one_line));
    }
    op.close();
    object.line.push(b']');
}

/// Writes the line of a Jetstream message that is no event.
pub(crate) fn write_unrecognized(line: &mut Vec<u8>, host: &str, message: &Unrecognized) {
    let mut object = Object::begin_line(line);
    object.text("host", host);
    object.text("kind", UNDECODABLE);
    object.text("verdict", "refused");
    object.text("code", UNREADABLE_CODE);
    object.text("message", &message.reason);
    object.bytes("frame", &message.bytes);
    object.end();
}
