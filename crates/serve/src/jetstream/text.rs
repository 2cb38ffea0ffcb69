//! The JSON of an event on a Jetstream, byte for byte as the reference server writes it.
//!
//! Version 1 has its keys in the order of its documentation, version 2 in alphabetical order. `#sync` is of version 2
//! alone.

use jiff::Timestamp;
use net::jetstream::EventKind;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::content::{CommitContent, Content, OpContent};
use crate::event::{ServedEvent, Texts, Wire};
use crate::record_json::append_text;
use crate::seq::seq_of;

/// The texts of an event: one per operation of a commit, otherwise one, or none.
pub(crate) fn of_event(event: &ServedEvent, wire: Wire) -> Texts {
    match (event.content(), wire) {
        (Content::Commit(commit), _) => of_commit(event, commit, wire),
        (Content::Sync { json, .. }, Wire::V2) => [message(event, json)].into(),
        (Content::Identity { json } | Content::Account { json, .. }, Wire::V1) => {
            [subscribe_message(event, json)].into()
        }
        (Content::Identity { json } | Content::Account { json, .. }, Wire::V2) => {
            [message(event, json)].into()
        }
        (Content::Sync { .. }, Wire::V1) | (Content::Unreadable, _) => Texts::default(),
    }
}

/// The texts of a commit's operations. An operation whose record has no JSON form has an empty text.
fn of_commit(event: &ServedEvent, commit: &CommitContent, wire: Wire) -> Texts {
    let time = time_text(event.arrival);
    let rev = &*commit.head.rev;
    let numbered = (seq_of(event.arrival)..).zip(&commit.ops);
    let text = |(seq, op): (i64, &OpContent)| {
        if op.record.as_ref().is_some_and(|record| record.json.is_none()) {
            return Utf8Bytes::default();
        }
        utf8(match wire {
            Wire::V1 => subscribe_op(event, rev, seq, op),
            Wire::V2 => op_message(event, rev, seq, &time, op),
        })
    };
    numbered.map(text).collect()
}

/// An operation in version 1.
fn subscribe_op(event: &ServedEvent, rev: &str, seq: i64, op: &OpContent) -> Vec<u8> {
    let mut out = subscribe_head(event, seq);
    out.extend_from_slice(b"{\"rev\":");
    append_text(&mut out, rev);
    push(&mut out, &[",\"operation\":\"", op.action.as_str(), "\",\"collection\":"]);
    append_text(&mut out, &op.collection);
    out.extend_from_slice(b",\"rkey\":");
    append_text(&mut out, &op.rkey);
    if let Some(record) = &op.record {
        out.extend_from_slice(b",\"record\":");
        out.extend_from_slice(record.json.as_deref().unwrap_or(b"null"));
        push(&mut out, &[",\"cid\":\"", &record.cid, "\""]);
    }
    out.extend_from_slice(b"}}");
    out
}

/// Another event in version 1, with its fields.
fn subscribe_message(event: &ServedEvent, fields: &[u8]) -> Utf8Bytes {
    let mut out = subscribe_head(event, seq_of(event.arrival));
    out.extend_from_slice(fields);
    out.push(b'}');
    utf8(out)
}

/// The start of a text of version 1, up to the value of the kind.
fn subscribe_head(event: &ServedEvent, seq: i64) -> Vec<u8> {
    let kind = event.kind.name();
    let mut out = b"{\"did\":".to_vec();
    append_text(&mut out, &event.did);
    let rest =
        format!(",\"time_us\":{},\"cursor\":{seq},\"kind\":\"{kind}\",\"{kind}\":", event.arrival);
    out.extend_from_slice(rest.as_bytes());
    out
}

/// An operation in version 2.
fn op_message(event: &ServedEvent, rev: &str, seq: i64, time: &str, op: &OpContent) -> Vec<u8> {
    let record = op.record.as_ref();
    let cid = record.map(|record| quoted(&record.cid));
    let mut fields = Fields::default();
    fields.optional("cid", cid.as_deref());
    fields.text("collection", &op.collection);
    fields.text("did", &event.did);
    fields.text("operation", op.action.as_str());
    fields.optional("record", record.and_then(|record| record.json.as_deref()));
    fields.text("rev", rev);
    fields.text("rkey", &op.rkey);
    fields.json("seq", seq.to_string().as_bytes());
    fields.text("time", time);
    fields.message(EventKind::Commit)
}

/// Another event in version 2, with the fields of its frame.
fn message(event: &ServedEvent, content: &[u8]) -> Utf8Bytes {
    let (did, time) = (quoted(&event.did), quoted(&time_text(event.arrival)));
    let seq = seq_of(event.arrival).to_string();
    let mut keys =
        [("did", &*did), (event.kind.name(), content), ("seq", seq.as_bytes()), ("time", &*time)];
    keys.sort_unstable_by_key(|(key, _)| *key);
    let mut fields = Fields::default();
    keys.iter().for_each(|(key, json)| fields.json(key, json));
    utf8(fields.message(event.kind))
}

/// The fields of a payload of version 2 after its type.
#[derive(Default)]
struct Fields(Vec<u8>);

impl Fields {
    fn json(&mut self, key: &str, json: &[u8]) {
        push(&mut self.0, &[",\"", key, "\":"]);
        self.0.extend_from_slice(json);
    }

    fn text(&mut self, key: &str, text: &str) {
        push(&mut self.0, &[",\"", key, "\":"]);
        append_text(&mut self.0, text);
    }

    fn optional(&mut self, key: &str, json: Option<&[u8]>) {
        json.into_iter().for_each(|json| self.json(key, json));
    }

    /// The message with these fields.
    fn message(self, kind: EventKind) -> Vec<u8> {
        let head = format!("{MESSAGE}{METHOD}#{}\"", kind.name());
        [head.as_bytes(), &self.0, b"}}"].concat()
    }
}

fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    append_text(&mut out, text);
    out
}

/// The notice of version 2 that a cursor was before the first event, with the number that the stream begins after.
pub(crate) fn outdated(floor: i64) -> Utf8Bytes {
    let why = format!("the cursor is before the first event: the stream begins after {floor}");
    let head = format!("{MESSAGE}{METHOD}#info\"");
    let mut fields = Fields::default();
    fields.text("message", &why);
    fields.text("name", "OutdatedCursor");
    utf8([head.as_bytes(), &fields.0, b"}}"].concat())
}

/// The last message of a stream of version 2 that ends with an error.
pub(crate) fn error(name: &str, text: &str) -> Utf8Bytes {
    let mut out = b"{\"$type\":\"error\",\"error\":".to_vec();
    append_text(&mut out, name);
    out.extend_from_slice(b",\"message\":");
    append_text(&mut out, text);
    out.push(b'}');
    utf8(out)
}

/// A time with six digits of a second's fraction.
fn time_text(micros: i64) -> String {
    let time = Timestamp::from_microsecond(micros).unwrap_or_default();
    format!("{time:.6}")
}

fn push(out: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
}

fn utf8(bytes: Vec<u8>) -> Utf8Bytes {
    Utf8Bytes::try_from(bytes).expect("JSON of texts is UTF-8")
}

const MESSAGE: &str = "{\"$type\":\"message\",\"payload\":{\"$type\":\"";

/// The method of version 2.
pub(crate) const METHOD: &str = "network.bsky.jetstream.subscribeEvents";
