//! The events of tap's channel: each operation of a verified line as a `record`, and what is known of an account as an
//! `identity`.
//!
//! | line | events |
//! |---|---|
//! | verified `commit`, or one for which no verification was asked | a `record` for each operation, with `live: true`, one after the other |
//! | `resync` | a `record` for each operation, with `live: false`; the pieces of a repository together, after what was before it |
//! | `identity`; `account` of an active account | an `identity` |
//! | `status` | an `identity` of an inactive account |
//! | any other | none |
//!
//! The id of an event is the position of its line times 4,096, plus its number in the line: the same at every delivery,
//! and exact in JavaScript below the position 2⁴¹.

use serde::Serialize;
use serde_json::value::RawValue;

use super::schedule::{Outgoing, OutgoingMessage};
use crate::event::Event;
use crate::tables::{Line, Op};

/// The messages of a line; none if tap has no event for it. Those of an account have its handle, if it is verified.
pub(super) fn messages(event: &Event, handle: Option<&str>) -> Result<Outgoing, &'static str> {
    let line = Line::parse(event.payload());
    let handle = handle.unwrap_or(UNVERIFIED_HANDLE);
    let mut messages = Messages { position: event.position(), handle, all: Vec::new() };
    match (&*line.kind, line.has_operations(), line.is_claim()) {
        ("commit" | "resync", true, _) => {
            for op in &line.ops {
                messages.add(TapEvent::Record { record: Record::of(&line, op) })?;
            }
        }
        ("identity", _, true) => messages.add_identity(&line, "active")?,
        ("account", _, true) if line.active == Some(true) => {
            messages.add_identity(&line, "active")?;
        }
        ("status", _, true) if line.active == Some(false) => {
            messages.add_identity(&line, inactive(line.status.as_deref()))?;
        }
        _ => {}
    }
    // The pieces of one repository have different records; those before it may have the same.
    let (position, is_concurrent) = (event.position(), !line.live && line.piece != Some(0));
    let names_handle = line.kind != "commit" && line.kind != "resync";
    Ok(Outgoing { position, is_concurrent, names_handle, messages: messages.all.into() })
}

/// The word of tap for an inactive account.
fn inactive(status: Option<&str>) -> &'static str {
    match status {
        Some("takendown") => "takendown",
        Some("suspended") => "suspended",
        Some("deleted") => "deleted",
        _ => "deactivated",
    }
}

struct Messages<'h> {
    position: u64,
    handle: &'h str,
    all: Vec<OutgoingMessage>,
}

impl Messages<'_> {
    fn add(&mut self, event: TapEvent<'_>) -> Result<(), &'static str> {
        let number = self.all.len() as u64;
        if number >= MAX_LINE_EVENTS {
            return Err("a line of more than 4,096 operations");
        }
        let id = self.position * MAX_LINE_EVENTS + number;
        let text = serde_json::to_string(&Numbered { id, event });
        let text = text.map_err(|_| "a record that is not JSON")?;
        self.all.push(OutgoingMessage { id: id.to_string().into(), text: text.into() });
        Ok(())
    }

    fn add_identity(&mut self, line: &Line<'_>, status: &'static str) -> Result<(), &'static str> {
        let is_active = status == "active";
        let identity = Identity { did: &line.did, handle: self.handle, is_active, status };
        self.add(TapEvent::Identity { identity })
    }
}

#[derive(Serialize)]
struct Numbered<'l> {
    id: u64,
    #[serde(flatten)]
    event: TapEvent<'l>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum TapEvent<'l> {
    Record { record: Record<'l> },
    Identity { identity: Identity<'l> },
}

#[derive(Serialize)]
struct Record<'l> {
    live: bool,
    did: &'l str,
    rev: &'l str,
    collection: &'l str,
    rkey: &'l str,
    action: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<&'l RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cid: Option<&'l str>,
}

impl<'l> Record<'l> {
    /// An operation. One whose record is invalid deletes what was at its path, as tap has no form for it.
    fn of(line: &'l Line<'_>, op: &'l Op<'_>) -> Self {
        let (action, cid) = match op.record {
            Some(_) => (&*op.action, op.cid.as_deref()),
            None => ("delete", None),
        };
        let rev = line.rev.as_deref().unwrap_or_default();
        let (live, did, record) = (line.live, &*line.did, op.record);
        Self { live, did, rev, collection: &op.collection, rkey: &op.rkey, action, record, cid }
    }
}

#[derive(Serialize)]
struct Identity<'l> {
    did: &'l str,
    handle: &'l str,
    is_active: bool,
    status: &'l str,
}

/// Maximum number of events of a line.
const MAX_LINE_EVENTS: u64 = 4096;

/// What stands for a handle that is not verified.
const UNVERIFIED_HANDLE: &str = "handle.invalid";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::{EventId, NewEvent};

    fn sent(line: &Value) -> (Vec<Value>, bool) {
        let id = EventId::of_commit("did:web:a.test", "1");
        let event = NewEvent::new(id, "did:web:a.test", line.to_string()).unwrap();
        let outgoing = messages(&Event::stored(3, &event), None).unwrap();
        let parsed = |message: &OutgoingMessage| -> Value {
            let value: Value = serde_json::from_str(&message.text).unwrap();
            assert_eq!(value["id"].to_string(), *message.id);
            value
        };
        (outgoing.messages.iter().map(parsed).collect(), outgoing.is_concurrent)
    }

    fn commit(verdict: &str, live: bool, kind: &str) -> Value {
        let op = |action: &str, rkey: &str| json!({"action": action, "collection": "a.b.c", "rkey": rkey, "cid": "bafy"});
        let mut created = op("create", "one");
        created["record"] = json!({"$type": "a.b.c", "text": "\u{2028}<é>"});
        let mut invalid = op("update", "two");
        invalid["invalid"] = json!({"code": "record/cbor"});
        let deleted = json!({"action": "delete", "collection": "a.b.c", "rkey": "three"});
        json!({"id": "did:web:a.test/1", "live": live, "kind": kind, "did": "did:web:a.test", "rev": "1",
            "verdict": verdict, "ops": [created, invalid, deleted]})
    }

    #[test]
    fn each_operation_of_a_verified_commit_is_a_record_event_with_a_number_of_its_own() {
        let (events, is_concurrent) = sent(&commit("verified", true, "commit"));
        let record = |action: &str, rkey: &str| {
            json!({"live": true, "did": "did:web:a.test", "rev": "1", "collection": "a.b.c", "rkey": rkey,
                "action": action})
        };
        let mut created = record("create", "one");
        created["record"] = json!({"$type": "a.b.c", "text": "\u{2028}<é>"});
        created["cid"] = json!("bafy");
        let expected = [created, record("delete", "two"), record("delete", "three")];
        let expected: Vec<Value> = (12_288..)
            .zip(expected)
            .map(|(id, record)| json!({"id": id, "type": "record", "record": record}))
            .collect();
        assert_eq!((events, is_concurrent), (expected, false));
        let mut piece = commit("verified", false, "resync");
        for (number, expected) in [(0, false), (1, true)] {
            piece["piece"] = number.into();
            let (events, is_concurrent) = sent(&piece);
            assert_eq!((events.len(), is_concurrent), (3, expected));
        }
        let (events, _) = sent(&piece);
        assert_eq!(events[0]["record"]["live"], false);
    }

    #[test]
    fn what_was_not_verified_by_request_is_sent() {
        let (events, _) = sent(&commit("not-asked", true, "commit"));
        assert_eq!(events.len(), 3);
        let line = json!({"kind": "identity", "did": "did:web:a.test", "verdict": "not-asked"});
        assert_eq!(sent(&line).0[0]["identity"]["status"], "active");
        assert_eq!(sent(&commit("not-asked", false, "resync")).0.len(), 3);
    }

    #[test]
    fn what_is_not_verified_or_has_no_form_in_tap_is_not_sent() {
        for verdict in ["refused", "ignored", "unknown-key", "unchecked", ""] {
            assert_eq!(sent(&commit(verdict, true, "commit")).0, [Value::Null; 0], "{verdict}");
        }
        for kind in ["sync", "info", "unknown", ""] {
            assert_eq!(sent(&commit("verified", true, kind)).0, [Value::Null; 0], "{kind}");
        }
        let inactive = json!({"kind": "account", "did": "did:web:a.test", "active": false, "verdict": "unchecked"});
        assert_eq!(sent(&inactive).0, [Value::Null; 0], "a claim of the host");
    }

    #[test]
    fn accounts_are_identity_events_with_the_words_of_tap() {
        let identity = |line: Value| sent(&line).0[0]["identity"].clone();
        let expected = |status: &str| {
            json!({"did": "did:web:a.test", "handle": "handle.invalid", "is_active": status == "active",
                "status": status})
        };
        let line = json!({"kind": "identity", "did": "did:web:a.test", "handle": "a.test", "verdict": "unchecked"});
        assert_eq!(identity(line), expected("active"));
        let line = json!({"kind": "account", "did": "did:web:a.test", "active": true, "verdict": "unchecked"});
        assert_eq!(identity(line), expected("active"));
        for (status, word) in
            [("deleted", "deleted"), ("takendown", "takendown"), ("odd", "deactivated")]
        {
            let line = json!({"kind": "status", "did": "did:web:a.test", "active": false, "status": status,
                "verdict": "unchecked"});
            assert_eq!(identity(line), expected(word));
        }
    }
}
