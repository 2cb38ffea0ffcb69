//! Parsing of the JSON of both versions.

use std::time::SystemTime;

use atproto::syntax::{CidTextBuf, Datetime, DidBuf, NsidBuf, RecordKeyBuf, Tid};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{Account, Commit, Event, EventBody, Identity, Operation, Sync};
use super::request::Version;
use crate::hosts::HostId;

/// What a message is.
#[derive(Debug)]
pub(super) enum Reading {
    Event(Event),
    /// The host says something of the stream.
    Info {
        name: String,
        message: String,
    },
    /// The host ends the stream.
    Error {
        name: String,
        message: String,
    },
    /// A kind that nobody knows here, by its name.
    Unknown(String),
}

/// Reads a message; the error says what is wrong with it.
pub(super) fn read(
    version: Version,
    host: HostId,
    text: &[u8],
    received: SystemTime,
) -> Result<Reading, String> {
    let told = match version {
        Version::V1 => read_v1(text),
        Version::V2 => read_v2(text),
    };
    Ok(match told? {
        Told::Event { cursor, micros, did, body } => {
            Reading::Event(Event { host, cursor, micros, did, body, received })
        }
        Told::Other(reading) => reading,
    })
}

enum Told {
    Event { cursor: u64, micros: u64, did: DidBuf, body: EventBody },
    Other(Reading),
}

fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

fn need<T>(field: Option<T>, name: &str) -> Result<T, String> {
    field.ok_or_else(|| format!("there is no {name}"))
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

fn read_v1(text: &[u8]) -> Result<Told, String> {
    let told: V1 = parse(text)?;
    if let Some(name) = told.error {
        let message = told.message.unwrap_or_default();
        return Ok(Told::Other(Reading::Error { name, message }));
    }
    let kind = need(told.kind, "kind")?;
    let body = match &*kind {
        "commit" => EventBody::Commit(need(told.commit, "commit")?),
        "identity" => EventBody::Identity(need(told.identity, "identity")?),
        "account" => EventBody::Account(need(told.account, "account")?),
        _ => return Ok(Told::Other(Reading::Unknown(kind))),
    };
    let micros = need(told.time_us, "time_us")?;
    Ok(Told::Event { cursor: micros, micros, did: need(told.did, "did")?, body })
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
    // Of a commit.
    rev: Option<Tid>,
    operation: Option<Operation>,
    collection: Option<NsidBuf>,
    rkey: Option<RecordKeyBuf>,
    record: Option<Box<RawValue>>,
    cid: Option<CidTextBuf>,
    // Of the others.
    identity: Option<Identity>,
    account: Option<Account>,
    sync: Option<Sync>,
    // Of what is said of the stream.
    name: Option<String>,
    message: Option<String>,
}

fn read_v2(text: &[u8]) -> Result<Told, String> {
    let told: V2<'_> = parse(text)?;
    match &*told.kind {
        "message" => read_payload(need(told.payload, "payload")?.get().as_bytes()),
        "error" => {
            let (name, message) = (need(told.error, "error")?, told.message.unwrap_or_default());
            Ok(Told::Other(Reading::Error { name, message }))
        }
        _ => Ok(Told::Other(Reading::Unknown(told.kind))),
    }
}

fn read_payload(text: &[u8]) -> Result<Told, String> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "$type")]
        kind: String,
    }
    // The fields of what nobody knows may be of any type.
    let Kind { kind } = parse(text)?;
    let name = kind.rsplit_once('#').map_or("", |(_, name)| name);
    if !["commit", "identity", "account", "sync", "info"].contains(&name) {
        return Ok(Told::Other(Reading::Unknown(kind)));
    }
    let payload: Payload = parse(text)?;
    debug_assert_eq!(payload.kind, kind);
    if name == "info" {
        let name = need(payload.name, "name")?;
        let message = payload.message.unwrap_or_default();
        return Ok(Told::Other(Reading::Info { name, message }));
    }
    let (cursor, micros) = (need(payload.seq, "seq")?, micros(&need(payload.time, "time")?)?);
    let did = need(payload.did, "did")?;
    let body = match name {
        "commit" => EventBody::Commit(Commit {
            rev: need(payload.rev, "rev")?,
            operation: need(payload.operation, "operation")?,
            collection: need(payload.collection, "collection")?,
            rkey: need(payload.rkey, "rkey")?,
            cid: payload.cid,
            record: payload.record,
        }),
        "identity" => EventBody::Identity(need(payload.identity, "identity")?),
        "account" => EventBody::Account(need(payload.account, "account")?),
        _ => EventBody::Sync(need(payload.sync, "sync")?),
    };
    Ok(Told::Event { cursor, micros, did, body })
}

fn micros(time: &str) -> Result<u64, String> {
    let time = Datetime::parse(time).map_err(|error| format!("time: {error}"))?;
    u64::try_from(time.unix_micros()).map_err(|_| "the time is before 1970".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(version: Version, text: &str) -> Result<Reading, String> {
        super::read(version, HostId(0), text.as_bytes(), SystemTime::UNIX_EPOCH)
    }

    fn event(version: Version, text: &str) -> Event {
        match read(version, text) {
            Ok(Reading::Event(event)) => event,
            other => panic!("{other:?}"),
        }
    }

    const COMMIT: &str = r#"{"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","time_us":1782864000000001,
        "kind":"commit","commit":{"rev":"3jt5tqkl6pb2x","operation":"create","collection":
        "app.bsky.feed.post","rkey":"3jt5tqkl6pb2x","record":{"$type":"app.bsky.feed.post","n":1.5},
        "cid":"bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454"},"cursor":7}"#;

    #[test]
    fn an_operation_of_version_1_is_read_with_its_record_as_it_stands() {
        let event = event(Version::V1, COMMIT);
        assert_eq!((event.cursor, event.micros), (1_782_864_000_000_001, 1_782_864_000_000_001));
        let EventBody::Commit(commit) = event.body else { panic!("a commit") };
        let record = commit.record.unwrap();
        assert_eq!(record.get(), r#"{"$type":"app.bsky.feed.post","n":1.5}"#);
        assert_eq!(commit.collection.as_str(), "app.bsky.feed.post");
    }

    #[test]
    fn an_event_of_version_2_has_a_number_and_a_time() {
        let text = r##"{"$type":"message","payload":{"$type":"x.y.z#account","seq":9,"did":
            "did:web:a.test","time":"2026-07-01T00:00:00.000001Z","account":{"active":false,
            "status":"deleted","time":"2026-07-01T00:00:00Z","seq":3,"did":"did:web:a.test"}}}"##;
        let event = event(Version::V2, text);
        assert_eq!((event.cursor, event.micros), (9, 1_782_864_000_000_001));
        assert!(matches!(event.body, EventBody::Account(Account { active: false, .. })));
    }

    #[test]
    fn what_nobody_knows_and_what_is_said_of_the_stream_is_told_apart() {
        let other = |version, text| match read(version, text).unwrap() {
            Reading::Unknown(name) => name,
            Reading::Error { name, message } | Reading::Info { name, message } => name + &message,
            Reading::Event(event) => panic!("{event:?}"),
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
    fn what_breaks_a_rule_is_refused_with_its_field() {
        let broken = [
            (COMMIT.replace("did:plc:", "plc:"), "DID"),
            (COMMIT.replace("\"time_us\":1782864000000001,", ""), "time_us"),
            (COMMIT.replace("\"create\"", "\"move\""), "move"),
            (COMMIT.replace("app.bsky.feed.post\",\"rkey", "post\",\"rkey"), "NSID"),
            (COMMIT.replace("\"commit\":{", "\"commits\":{"), "commit"),
            (COMMIT[..100].to_owned(), "EOF"),
            (String::new(), "EOF"),
            ("[]".repeat(2), ""),
        ];
        for (text, word) in broken {
            let error = read(Version::V1, &text).unwrap_err();
            assert!(error.contains(word), "{word}: {error}");
        }
    }

    #[test]
    fn records_of_any_depth_are_carried_without_being_walked() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = COMMIT.replace("1.5", &deep);
        // Whether such a record is taken or refused, nothing overflows.
        let _ = read(Version::V1, &text);
    }
}
