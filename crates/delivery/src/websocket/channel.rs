//! The events of tap's channel: every operation of a verified line as a `record`, and the known data of an account as an `identity`.
//!
//! | line | events |
//! |---|---|
//! | verified `commit`, or one for which no verification was asked | a `record` per operation, with `live: true`, one after the other |
//! | `resync` | a `record` per operation, with `live: false`; the pieces of a repository together, after all earlier events |
//! | `identity`; `account` of an active account | an `identity` |
//! | `status` | an `identity` of an inactive account |
//! | any other | none |
//!
//! The id of an event is the position of its line times 4,096, plus its number in the line: the same at every delivery,
//! and exact in JavaScript below the position 2⁴¹.

use events::{Action, Body, Claims, Json, Kind, Line, Op};
use serde::Serialize;

use super::schedule::{Outgoing, OutgoingMessage};
use crate::event::Event;

/// The messages of a line; none if tap has no event for it. Messages about an account have its handle, if it is
/// verified.
pub(super) fn messages(event: &Event, handle: Option<&str>) -> Result<Outgoing, &'static str> {
    let line = Line::parse(event.payload()).map_err(|_| NO_LINE)?;
    let handle = handle.unwrap_or(UNVERIFIED_HANDLE);
    let mut messages = Messages { position: event.position(), handle, all: Vec::new() };
    match &line.body {
        Body::Event(event) => match &event.claims {
            Claims::Commit(Some(commit)) if line.has_operations() => {
                messages.add_records(
                    &line,
                    &commit.rev,
                    event.ops.as_deref().unwrap_or_default(),
                )?;
            }
            Claims::Identity(_) if line.is_claim() => messages.add_identity(&line, "active")?,
            Claims::Account(Some(account)) if line.is_claim() && account.active => {
                messages.add_identity(&line, "active")?;
            }
            _ => {}
        },
        Body::Resync(resync) if line.has_operations() => {
            messages.add_records(&line, &resync.rev, &resync.ops)?;
        }
        Body::Status(status) if line.is_claim() && !status.active => {
            messages.add_identity(&line, inactive(status.status.as_deref()))?;
        }
        _ => {}
    }
    // The pieces of one repository have different records; those before it may have the same.
    let is_first_piece = matches!(&line.body, Body::Resync(resync) if resync.piece == 0);
    let (position, is_concurrent) = (event.position(), !line.is_live() && !is_first_piece);
    let names_handle = !matches!(line.kind(), Kind::Commit | Kind::Resync);
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

    fn add_records(
        &mut self,
        line: &Line<'_>,
        rev: &str,
        ops: &[Op<'_>],
    ) -> Result<(), &'static str> {
        let record = |op| TapEvent::Record { record: Record::of(line, rev, op) };
        ops.iter().try_for_each(|op| self.add(record(op)))
    }

    fn add_identity(&mut self, line: &Line<'_>, status: &'static str) -> Result<(), &'static str> {
        let is_active = status == "active";
        let identity = Identity { did: line.did(), handle: self.handle, is_active, status };
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
    record: Option<&'l Json<'l>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cid: Option<&'l str>,
}

impl<'l> Record<'l> {
    /// An operation. One whose record is invalid deletes the record at its path, as tap has no form for it.
    fn of(line: &'l Line<'_>, rev: &'l str, op: &'l Op<'_>) -> Self {
        let record = op.record();
        let action = if record.is_some() { op.action } else { Action::Delete };
        Self {
            live: line.is_live(),
            did: line.did(),
            rev,
            collection: &op.collection,
            rkey: &op.rkey,
            action: action.as_str(),
            record,
            cid: op.cid.as_deref().filter(|_| record.is_some()),
        }
    }
}

#[derive(Serialize)]
struct Identity<'l> {
    did: &'l str,
    handle: &'l str,
    is_active: bool,
    status: &'l str,
}

/// Why the connection ends at an event that cannot be read: the consumer waits for it until the operator looks.
const NO_LINE: &str = "an event that is no line of follow (line/malformed)";

/// Maximum number of events of a line.
const MAX_LINE_EVENTS: u64 = 4096;

/// Placeholder for a handle that is not verified.
const UNVERIFIED_HANDLE: &str = "handle.invalid";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::{EventId, NewEvent};

    fn stored(payload: &str) -> Event {
        let id = EventId::of_commit("did:web:a.test", "1");
        Event::stored(3, &NewEvent::new(id, "did:web:a.test", payload.to_owned()).unwrap())
    }

    /// A line about the account with these keys, and the keys that all lines have.
    fn line(kind: &str, verdict: &str, more: &Value) -> Value {
        let mut line = json!({"v": 1, "host": "https://a", "kind": kind, "did": "did:web:a.test",
            "verdict": verdict, "code": "unchecked"});
        let line_keys = line.as_object_mut().unwrap();
        line_keys.extend(more.as_object().unwrap().clone());
        line
    }

    fn sent(line: &Value) -> (Vec<Value>, bool) {
        let outgoing = messages(&stored(&line.to_string()), None).unwrap();
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
        let more = json!({"id": "did:web:a.test/1", "live": live, "rev": "1", "name": "a", "commit": "bafy",
            "records": 3, "invalid_records": 1, "bytes": 9, "piece": 1, "whole": true, "last": false,
            "ops": [created, invalid, deleted]});
        line(kind, verdict, &more)
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
        assert_eq!(
            sent(&line("identity", "not-asked", &json!({}))).0[0]["identity"]["status"],
            "active"
        );
        assert_eq!(sent(&commit("not-asked", false, "resync")).0.len(), 3);
    }

    #[test]
    fn what_is_not_verified_or_has_no_form_in_tap_is_not_sent() {
        for verdict in ["refused", "ignored", "unknown-key", "unchecked"] {
            assert_eq!(sent(&commit(verdict, true, "commit")).0, [Value::Null; 0], "{verdict}");
        }
        for kind in ["sync", "info", "unknown", "history"] {
            assert_eq!(sent(&commit("verified", true, kind)).0, [Value::Null; 0], "{kind}");
        }
        let inactive = line("account", "unchecked", &json!({"active": false}));
        assert_eq!(sent(&inactive).0, [Value::Null; 0], "a claim of the host");
    }

    #[test]
    fn accounts_are_identity_events_with_the_words_of_tap() {
        let identity = |line: Value| sent(&line).0[0]["identity"].clone();
        let expected = |status: &str| {
            json!({"did": "did:web:a.test", "handle": "handle.invalid", "is_active": status == "active",
                "status": status})
        };
        let changed = line("identity", "unchecked", &json!({"handle": "a.test"}));
        assert_eq!(identity(changed), expected("active"));
        let back = line("account", "unchecked", &json!({"active": true}));
        assert_eq!(identity(back), expected("active"));
        for (status, word) in
            [("deleted", "deleted"), ("takendown", "takendown"), ("odd", "deactivated")]
        {
            let confirmed =
                line("status", "unchecked", &json!({"active": false, "status": status}));
            assert_eq!(identity(confirmed), expected(word));
        }
    }

    #[test]
    fn a_payload_that_is_no_line_is_an_error() {
        for payload in ["no line", "{}", r#"{"v":1,"kind":"commit"}"#] {
            assert_eq!(messages(&stored(payload), None), Err(NO_LINE), "{payload}");
        }
    }
}
