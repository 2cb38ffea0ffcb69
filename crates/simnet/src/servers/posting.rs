//! What does a Jetstream make of an event? JSON, without blocks, proofs and signatures.

use atproto::event::{Decoder, Event, Options, RepoOp};
use codec::{cbor, json};
use serde_json::Value;

use super::told::Told;

/// An event of a Jetstream, but for its place and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) kind: &'static str,
    /// What an operation was on; none for other kinds.
    pub(super) collection: Option<String>,
    /// The fields of the kind, as JSON: what stands between the braces of `commit`, or the upstream
    /// event.
    pub(super) body: String,
}

/// One for each operation of a commit; one for each event of another kind.
pub(super) fn postings(told: &Told) -> Vec<Posting> {
    let frame = told.to_frame(told.micros as i64);
    let mut decoder = Decoder::new(Options { trust_hashes: true, ..Options::default() });
    match decoder.decode(&frame) {
        Ok(Event::Commit(commit)) => {
            commit.ops.iter().filter_map(|op| of_operation(commit.rev, op)).collect()
        }
        Ok(Event::Sync(sync)) => {
            let fields = [("did", sync.did), ("rev", sync.rev), ("time", sync.time)];
            let blocks = json::encode(&cbor::Value::Bytes(sync.car)).expect("bytes have JSON");
            vec![other("sync", format!("{},\"blocks\":{blocks}", text_fields(&fields)), None)]
        }
        Ok(Event::Identity(identity)) => {
            let mut fields = vec![("did", identity.did), ("time", identity.time)];
            fields.extend(identity.handle.map(|handle| ("handle", handle)));
            vec![other("identity", text_fields(&fields), None)]
        }
        Ok(Event::Account(account)) => {
            let mut fields = vec![("did", account.did), ("time", account.time)];
            fields.extend(account.status.map(|status| ("status", status)));
            vec![other("account", text_fields(&fields), Some(account.active))]
        }
        _ => Vec::new(),
    }
}

fn other(kind: &'static str, mut body: String, active: Option<bool>) -> Posting {
    if let Some(active) = active {
        body.push_str(&format!(",\"active\":{active}"));
    }
    Posting { kind, collection: None, body }
}

fn of_operation(rev: &str, op: &RepoOp<'_>) -> Option<Posting> {
    let (collection, rkey) = op.path.split_once('/')?;
    let operation = op.action.as_str();
    let fields =
        [("rev", rev), ("operation", operation), ("collection", collection), ("rkey", rkey)];
    let mut body = text_fields(&fields);
    if let Some((cid, value)) = op.cid.zip(op.record.and_then(|block| block.value)) {
        body.push_str(",\"record\":");
        body.push_str(&json::encode(&value).ok()?);
        body.push_str(&format!(",\"cid\":\"{cid}\""));
    }
    Some(Posting { kind: "commit", collection: Some(collection.to_owned()), body })
}

fn text_fields(fields: &[(&str, &str)]) -> String {
    let field = |(name, text): &(&str, &str)| format!("\"{name}\":{}", Value::from(*text));
    fields.iter().map(field).collect::<Vec<_>>().join(",")
}
