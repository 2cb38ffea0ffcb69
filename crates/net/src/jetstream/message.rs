//! Messages of a Jetstream: parsing of the JSON of both versions.

use std::time::SystemTime;

use atproto::syntax::{CidTextBuf, Datetime, DidBuf, NsidBuf, RecordKeyBuf, Tid};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{Account, Commit, Event, EventBody, Identity, Operation, Sync};
use super::options::Version;
use crate::hosts::HostId;

/// A parsed message.
#[derive(Debug)]
pub(super) enum Message {
    Event(Event),
    /// Information of the host about the stream.
    Info {
        name: String,
        message: String,
    },
    /// An error, after which the host ends the stream.
    Error {
        name: String,
        message: String,
    },
    /// The name of an unknown kind.
    Unknown(String),
}

/// Parses a message. The error describes the invalid field.
pub(super) fn parse(
    version: Version,
    host: HostId,
    text: &[u8],
    received: SystemTime,
) -> Result<Message, String> {
    let parsed = match version {
        Version::V1 => parse_v1(text),
        Version::V2 => parse_v2(text),
    };
    Ok(match parsed? {
        Parsed::Event { cursor, micros, did, body } => {
            Message::Event(Event { host, cursor, micros, did, body, received })
        }
        Parsed::Other(message) => message,
    })
}

enum Parsed {
    Event { cursor: u64, micros: u64, did: DidBuf, body: EventBody },
    Other(Message),
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

fn required<T>(field: Option<T>, name: &str) -> Result<T, String> {
    field.ok_or_else(|| format!("missing field: {name}"))
}

#[derive(Deserialize)]
struct V1 {
    did: Option<DidBuf>,
    time_us: Option<u64>,
    kind: Option<String>,
    commit: Option<Commit>,
    identity: Option<Identity>,
    account: Option<Account>,
    error: Option<String>,
    message: Option<String>,
}

fn parse_v1(text: &[u8]) -> Result<Parsed, String> {
    let message: V1 = from_json(text)?;
    if let Some(name) = message.error {
        let message = message.message.unwrap_or_default();
        return Ok(Parsed::Other(Message::Error { name, message }));
    }
    let kind = required(message.kind, "kind")?;
    let body = match &*kind {
        "commit" => EventBody::Commit(required(message.commit, "commit")?),
        "identity" => EventBody::Identity(required(message.identity, "identity")?),
        "account" => EventBody::Account(required(message.account, "account")?),
        _ => return Ok(Parsed::Other(Message::Unknown(kind))),
    };
    let micros = required(message.time_us, "time_us")?;
    Ok(Parsed::Event { cursor: micros, micros, did: required(message.did, "did")?, body })
}

#[derive(Deserialize)]
struct V2<'a> {
    #[serde(rename = "$type")]
    kind: String,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    error: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct Payload {
    #[serde(rename = "$type")]
    kind: String,
    seq: Option<u64>,
    did: Option<DidBuf>,
    time: Option<String>,
    // Fields of commits.
    rev: Option<Tid>,
    operation: Option<Operation>,
    collection: Option<NsidBuf>,
    rkey: Option<RecordKeyBuf>,
    record: Option<Box<RawValue>>,
    cid: Option<CidTextBuf>,
    // Fields of the other kinds.
    identity: Option<Identity>,
    account: Option<Account>,
    sync: Option<Sync>,
    // Fields of information about the stream.
    name: Option<String>,
    message: Option<String>,
}

fn parse_v2(text: &[u8]) -> Result<Parsed, String> {
    let message: V2<'_> = from_json(text)?;
    match &*message.kind {
        "message" => parse_payload(required(message.payload, "payload")?.get().as_bytes()),
        "error" => {
            let (name, message) =
                (required(message.error, "error")?, message.message.unwrap_or_default());
            Ok(Parsed::Other(Message::Error { name, message }))
        }
        _ => Ok(Parsed::Other(Message::Unknown(message.kind))),
    }
}

fn parse_payload(text: &[u8]) -> Result<Parsed, String> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "$type")]
        kind: String,
    }
    // Fields of unknown kinds may have any type.
    let Kind { kind } = from_json(text)?;
    let name = kind.rsplit_once('#').map_or("", |(_, name)| name);
    if !["commit", "identity", "account", "sync", "info"].contains(&name) {
        return Ok(Parsed::Other(Message::Unknown(kind)));
    }
    let payload: Payload = from_json(text)?;
    debug_assert_eq!(payload.kind, kind);
    if name == "info" {
        let name = required(payload.name, "name")?;
        let message = payload.message.unwrap_or_default();
        return Ok(Parsed::Other(Message::Info { name, message }));
    }
    let (cursor, micros) =
        (required(payload.seq, "seq")?, micros(&required(payload.time, "time")?)?);
    let did = required(payload.did, "did")?;
    let body = match name {
        "commit" => EventBody::Commit(Commit {
            rev: required(payload.rev, "rev")?,
            operation: required(payload.operation, "operation")?,
            collection: required(payload.collection, "collection")?,
            rkey: required(payload.rkey, "rkey")?,
            cid: payload.cid,
            record: payload.record,
        }),
        "identity" => EventBody::Identity(required(payload.identity, "identity")?),
        "account" => EventBody::Account(required(payload.account, "account")?),
        _ => EventBody::Sync(required(payload.sync, "sync")?),
    };
    Ok(Parsed::Event { cursor, micros, did, body })
}

fn micros(time: &str) -> Result<u64, String> {
    let time = Datetime::parse(time).map_err(|error| format!("time: {error}"))?;
    u64::try_from(time.unix_micros()).map_err(|_| "the time is before 1970".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(version: Version, text: &str) -> Result<Message, String> {
        super::parse(version, HostId(0), text.as_bytes(), SystemTime::UNIX_EPOCH)
    }

    fn event(version: Version, text: &str) -> Event {
        match parse(version, text) {
            Ok(Message::Event(event)) => event,
            other => panic!("{other:?}"),
        }
    }

    const COMMIT: &str = r#"{"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","time_us":1782864000000001,
        "kind":"commit","commit":{"rev":"3jt5tqkl6pb2x","operation":"create","collection":
        "app.bsky.feed.post","rkey":"3jt5tqkl6pb2x","record":{"$type":"app.bsky.feed.post","n":1.5},
        "cid":"bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454"},"cursor":7}"#;

    #[test]
    fn a_record_of_version_1_keeps_its_json_text() {
        let event = event(Version::V1, COMMIT);
        assert_eq!((event.cursor, event.micros), (1_782_864_000_000_001, 1_782_864_000_000_001));
        let EventBody::Commit(commit) = event.body else { panic!("a commit") };
        let record = commit.record.unwrap();
        assert_eq!(record.get(), r#"{"$type":"app.bsky.feed.post","n":1.5}"#);
        assert_eq!(commit.collection.as_str(), "app.bsky.feed.post");
    }

    #[test]
    fn an_event_of_version_2_has_a_sequence_number_and_a_time() {
        let text = r##"{"$type":"message","payload":{"$type":"x.y.z#account","seq":9,"did":
            "did:web:a.test","time":"2026-07-01T00:00:00.000001Z","account":{"active":false,
            "status":"deleted","time":"2026-07-01T00:00:00Z","seq":3,"did":"did:web:a.test"}}}"##;
        let event = event(Version::V2, text);
        assert_eq!((event.cursor, event.micros), (9, 1_782_864_000_000_001));
        assert!(matches!(event.body, EventBody::Account(Account { active: false, .. })));
    }

    #[test]
    fn unknown_kinds_errors_and_information_are_distinguished() {
        let other = |version, text| match parse(version, text).unwrap() {
            Message::Unknown(name) => name,
            Message::Error { name, message } | Message::Info { name, message } => name + &message,
            Message::Event(event) => panic!("{event:?}"),
        };
        let v1 = |text| other(Version::V1, text);
        let v2 = |text| other(Version::V2, text);
        assert_eq!(v1(r#"{"did":"did:web:a.test","time_us":1,"kind":"tide","tide":5}"#), "tide");
        assert_eq!(v1(r#"{"error":"TooSlow","message":"!"}"#), "TooSlow!");
        assert_eq!(v2(r#"{"$type":"tide","payload":5}"#), "tide");
        assert_eq!(v2(r##"{"$type":"message","payload":{"$type":"x#tide","seq":"?"}}"##), "x#tide");
        let info = r##"{"$type":"message","payload":{"$type":"x#info","name":"OutdatedCursor"}}"##;
        assert_eq!(v2(info), "OutdatedCursor");
        assert_eq!(
            v2(r#"{"$type":"error","error":"FutureCursor","message":"!"}"#),
            "FutureCursor!"
        );
    }

    #[test]
    fn an_invalid_message_is_rejected_with_its_field() {
        let invalid = [
            (COMMIT.replace("did:plc:", "plc:"), "DID"),
            (COMMIT.replace("\"time_us\":1782864000000001,", ""), "time_us"),
            (COMMIT.replace("\"create\"", "\"move\""), "move"),
            (COMMIT.replace("app.bsky.feed.post\",\"rkey", "post\",\"rkey"), "NSID"),
            (COMMIT.replace("\"commit\":{", "\"commits\":{"), "commit"),
            (COMMIT[..100].to_owned(), "EOF"),
            (String::new(), "EOF"),
            ("[]".repeat(2), ""),
        ];
        for (text, word) in invalid {
            let error = parse(Version::V1, &text).unwrap_err();
            assert!(error.contains(word), "{word}: {error}");
        }
    }

    #[test]
    fn deeply_nested_records_do_not_overflow_the_stack() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = COMMIT.replace("1.5", &deep);
        // It may be accepted or rejected.
        let _ = parse(Version::V1, &text);
    }
}
