//! The JSON of operations in the four forms of the reference server, with its order of keys.
//!
//! | form | keys |
//! |---|---|
//! | audit log | `did`, `operation`, `cid`, `nullified`, `createdAt` |
//! | export by number | `did`, `cid`, `seq`, `createdAt`, `operation`, `type` |
//! | export by time | `did`, `cid`, `createdAt`, `operation`, `nullified` |
//! | stream | `seq`, `type`, `did`, `operation`, `cid`, `createdAt` |
//!
//! DIDs and CIDs of a verified mirror need no escapes.

use store::MirrorRow;

use crate::time::push_iso;

/// The entry of an audit log.
pub(crate) fn push_audit(of: &MirrorRow<'_>, out: &mut String) {
    push(out, &["{\"did\":\"", of.did, "\",\"operation\":", of.json, ",\"cid\":\"", of.cid]);
    push(out, &["\",\"nullified\":", flag(of), ",\"createdAt\":\""]);
    push_iso(of.created_at_micros, out);
    out.push_str("\"}");
}

/// The line of an export by number.
pub(crate) fn push_numbered(of: &MirrorRow<'_>, out: &mut String) {
    let seq = of.seq.to_string();
    push(out, &["{\"did\":\"", of.did, "\",\"cid\":\"", of.cid, "\",\"seq\":", &seq]);
    out.push_str(",\"createdAt\":\"");
    push_iso(of.created_at_micros, out);
    push(out, &["\",\"operation\":", of.json, ",\"type\":\"sequenced_op\"}"]);
}

/// The line of an export by time.
pub(crate) fn push_timed(of: &MirrorRow<'_>, out: &mut String) {
    push(out, &["{\"did\":\"", of.did, "\",\"cid\":\"", of.cid, "\",\"createdAt\":\""]);
    push_iso(of.created_at_micros, out);
    push(out, &["\",\"operation\":", of.json, ",\"nullified\":", flag(of), "}"]);
}

/// The message of a stream.
pub(crate) fn push_streamed(of: &MirrorRow<'_>, out: &mut String) {
    let seq = of.seq.to_string();
    push(out, &["{\"seq\":", &seq, ",\"type\":\"sequenced_op\",\"did\":\"", of.did]);
    push(out, &["\",\"operation\":", of.json, ",\"cid\":\"", of.cid, "\",\"createdAt\":\""]);
    push_iso(of.created_at_micros, out);
    out.push_str("\"}");
}

fn flag(of: &MirrorRow<'_>) -> &'static str {
    if of.nullified { "true" } else { "false" }
}

fn push(out: &mut String, parts: &[&str]) {
    parts.iter().for_each(|part| out.push_str(part));
}
