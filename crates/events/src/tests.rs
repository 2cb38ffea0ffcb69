//! Lines of every kind, read and written again, and texts that are no lines.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::*;

/// A line of every kind and form, as the command prints them.
const LINES: &[&str] = &[
    r#"{"v":1,"id":"did:web:a.test/3k","live":true,"host":"http://h","seq":7,"kind":"commit","did":"did:web:a.test","time":"t","rev":"3k","commit":"bafy","verdict":"verified","code":"verified/unproved","verified_against":"signature","ops":[{"action":"create","collection":"a.b.c","rkey":"1","cid":"bafx","record":{"t":"\u202e","n":1.0}},{"action":"update","collection":"a.b.c","rkey":"3","cid":"bafx","invalid":{"code":"record/cbor","offset":0,"message":"m","bytes":{"$bytes":"aGkhPw"}}},{"action":"delete","collection":"a.b.c","rkey":"2","filtered":true}],"proof":{"blocks":{"$bytes":"aGkhPw"}}}"#,
    r#"{"v":1,"host":"http://h","seq":7,"repeated":true,"kind":"commit","did":"did:web:a.test","time":"t","rev":"3k","commit":"bafy","verdict":"refused","code":"signature/wrong","message":"no \u200b \"key\"\n"}"#,
    r#"{"v":1,"host":"http://h","seq":7,"kind":"commit","did":"did:web:a.test","verdict":"refused","code":"frame/field","message":"m","frame":{"$bytes":"aGkhPw"}}"#,
    r#"{"v":1,"host":"http://h","seq":8,"kind":"commit","did":"did:web:a.test","rev":"3k","verdict":"not-asked","code":"not-asked","ops":[]}"#,
    r#"{"v":1,"id":"x","live":false,"arrival":-3,"host":"h","seq":8,"kind":"sync","did":"did:web:a.test","time":"t","rev":"3k","verdict":"verified","code":"verified","key":"did:key:z"}"#,
    r#"{"v":1,"host":"http://h","seq":8,"kind":"sync","did":"did:web:a.test","time":"t","rev":"3k","verdict":"verified","code":"verified/broken","proof":{"frame":{"$bytes":""}}}"#,
    r#"{"v":1,"host":"http://h","seq":8,"kind":"identity","did":"did:web:a.test","time":"t","handle":"a.test","verdict":"unchecked","code":"unchecked"}"#,
    r#"{"v":1,"host":"http://h","seq":8,"kind":"account","did":"did:web:a.test","time":"t","active":false,"status":"deleted","verdict":"unchecked","code":"unchecked"}"#,
    r#"{"v":1,"host":"http://h","kind":"info","name":"OutdatedCursor","message":"m","verdict":"unchecked","code":"unchecked"}"#,
    r#"{"v":1,"host":"http://h","kind":"info","verdict":"refused","code":"frame/field","message":"m","frame":{"$bytes":"aGkhPw"}}"#,
    r#"{"v":1,"host":"http://h","kind":"error","name":"FutureCursor","verdict":"unchecked","code":"unchecked"}"#,
    r##"{"v":1,"host":"http://h","seq":9,"kind":"unknown","did":"did:web:a.test","type":"#label","verdict":"unchecked","code":"unchecked","frame":{"$bytes":"aGkhPw"}}"##,
    r#"{"v":1,"host":"http://h","kind":"undecodable","verdict":"refused","code":"frame/cbor","message":"m","frame":{"$bytes":"aGkhPw"}}"#,
    r#"{"v":1,"id":"x","live":false,"time":"t","host":"http://h","kind":"resync","did":"did:web:a.test","rev":"3k","commit":"bafy","verdict":"verified","code":"verified","records":7,"invalid_records":0,"bytes":900,"piece":0,"whole":true,"ops":[{"action":"create","collection":"a.b.c","rkey":"1","cid":"bafx","record":{}}],"last":true}"#,
    r#"{"v":1,"id":"x","live":false,"kind":"status","did":"did:web:a.test","active":false,"status":"deleted","verdict":"unchecked","code":"status/confirmed"}"#,
    r#"{"v":1,"id":"x","live":false,"kind":"history","did":"did:web:a.test","verdict":"unchecked","code":"history/outdated"}"#,
    r#"{"v":1,"id":"x/a.b.c/1","live":false,"host":"http://h","kind":"operation","did":"did:web:a.test","time":"t","rev":"3k","commit":"bafy","verdict":"verified","code":"verified","piece":0,"whole":true,"index":0,"last":false,"action":"create","collection":"a.b.c","rkey":"1","cid":"bafx","record":{"a":[1, 2]},"proof":{"blocks":{"$bytes":"aGkhPw"}}}"#,
    r#"{"v":1,"host":"http://h","seq":3,"repeated":true,"kind":"operation","did":"did:web:a.test","rev":"3k","verdict":"not-asked","code":"event/later","verified_against":"none","message":"m","index":4,"last":true,"action":"delete","collection":"a.b.c","rkey":"1","filtered":true}"#,
    r#"{"v":1,"id":"y","live":false,"time":"t","host":"http://h","kind":"resync","did":"did:web:a.test","rev":"3k","commit":"bafy","verdict":"verified","code":"verified","collections":["a.b.c"],"complete":["a.b.c","a.b.d"],"records":7,"invalid_records":0,"bytes":900,"piece":0,"whole":true,"ops":[{"action":"create","collection":"a.b.c","rkey":"1","cid":"bafx","record":{}}],"last":true}"#,
    r#"{"v":1,"id":"x","live":false,"kind":"history","did":"did:web:a.test","verdict":"unchecked","code":"history/narrowed","complete":["a.b.*"]}"#,
];

fn refusal(text: &str) -> String {
    Line::parse(text.as_bytes()).expect_err(text).to_string()
}

#[test]
fn a_line_of_each_kind_is_written_again_byte_for_byte() {
    for text in LINES {
        let line = Line::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
        let mut written = b"before\n".to_vec();
        line.append(&mut written);
        assert_eq!(str::from_utf8(&written), Ok(&*format!("before\n{text}\n")));
        let again: Line<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(again, line);
    }
}

#[test]
fn texts_and_records_are_borrowed_where_they_have_no_escapes() {
    let line = Line::parse(LINES[0].as_bytes()).unwrap();
    let Body::Event(EventBody { host, did: Some(did), ops: Some(ops), .. }) = line.body else {
        panic!("a commit");
    };
    let is_within = |text: &str| LINES[0].as_bytes().as_ptr_range().contains(&text.as_ptr());
    assert!(is_within(&host) && is_within(&did) && is_within(&ops[0].rkey));
    assert!(is_within(ops[0].record().unwrap().get()));
}

#[test]
fn keys_that_are_not_known_are_skipped_and_no_key_is_there_twice() {
    let identity = LINES[6];
    let later = identity.replace(r#""seq":8"#, r#""later":{"a":[1]},"seq":8"#);
    assert_eq!(Line::parse(later.as_bytes()), Line::parse(identity.as_bytes()));
    let twice = identity.replace(r#""seq":8"#, r#""seq":8,"seq":9"#);
    assert!(refusal(&twice).starts_with("duplicate field `seq`, at byte "), "{}", refusal(&twice));
}

#[test]
fn a_line_without_a_key_of_its_kind_is_refused_with_the_kind_and_the_key() {
    let without = |line: &str, key: &str| -> String {
        let mut members: Map<String, Value> = serde_json::from_str(line).unwrap();
        members.remove(key).unwrap_or_else(|| panic!("{key}: {line}"));
        refusal(&Value::from(members).to_string())
    };
    for (at, keys) in [
        (0, "host did rev ops"),
        (3, "rev host"),
        (4, "did rev"),
        (6, "did host"),
        (7, "did active"),
        (8, "name host"),
        (13, "host did rev commit records invalid_records bytes piece whole ops last"),
        (14, "did active"),
        (15, "did"),
        (16, "host did rev index last action collection rkey"),
    ] {
        let kind = Line::parse(LINES[at].as_bytes()).unwrap().kind();
        for key in keys.split(' ') {
            let expected = format!("a line of kind `{kind}` without `{key}`, at byte ");
            let found = without(LINES[at], key);
            assert!(found.starts_with(&expected), "{found}");
        }
    }
    for line in LINES {
        for key in ["v", "kind", "verdict", "code"] {
            let found = without(line, key);
            assert!(found.starts_with(&format!("missing field `{key}`, at byte ")), "{found}");
        }
    }
}

#[test]
fn a_text_that_is_no_line_is_refused_with_its_place() {
    for (text, expected) in [
        ("", "not JSON: EOF while parsing a value, at byte 0"),
        ("no line", "not JSON: expected ident, at byte 2"),
        ("[]", "invalid length 0, expected a line, at byte 2"),
        ("{\"v\":1,\n\"seq\":\"7\"}", "invalid type: string \"7\", expected i64, at byte 17"),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
    let error = Line::parse(b"{\"v\":1,\"id\":\"\xff\"}").unwrap_err();
    assert_eq!(error.to_string(), "not JSON: not UTF-8, at byte 13");
    let with = |before: &str, after: &str| {
        assert!(LINES[0].contains(before));
        let text = LINES[0].replace(before, after);
        let end = text.find(after).unwrap() + after.len();
        let error = Line::parse(text.as_bytes()).expect_err(&text);
        assert_eq!(error.code(), "line/malformed");
        (error.fault.to_string(), end.abs_diff(error.offset))
    };
    for (before, after, rule) in [
        (r#""kind":"commit""#, r#""kind":"later""#, "unknown variant `later`"),
        (r#""verdict":"verified""#, r#""verdict":"Verified""#, "unknown variant `Verified`"),
        (r#""seq":7"#, r#""seq":"7""#, "invalid type: string \"7\", expected i64"),
        (r#""live":true"#, r#""live":1"#, "invalid type: integer `1`, expected a boolean"),
        (r#""rkey":"1""#, r#""rkey":1"#, "invalid type: integer `1`, expected a text"),
        (r#""action":"create""#, r#""action":"put""#, "the action \"put\""),
    ] {
        let (found, distance) = with(before, after);
        assert!(found.starts_with(rule) && distance <= 1, "{found}, {distance} bytes away");
    }
    let (found, _) = with(r#"{"v":1"#, r#"{"v":2"#);
    assert_eq!(found, "a line of version 2; this program reads version 1");
    let (found, _) = with(r#""filtered":true"#, r#""record":{}"#);
    assert_eq!(found, "a deletion with a record");
    let (found, _) = with(r#""record":{"#, r#""invalid":{},"record":{"#);
    assert_eq!(found, "an operation with both `record` and `invalid`");
}

#[test]
fn a_nostr_event_is_read_and_refused_with_the_place() {
    let text = r#"{"id":"aa","pubkey":"bb","created_at":-5,"kind":65535,"tags":[["t","\u0000"]],"content":"a\n","sig":"cc"}"#;
    let event = NostrEvent::parse(text.as_bytes()).unwrap();
    assert_eq!((&*event.content, event.tags.get()), ("a\n", r#"[["t","\u0000"]]"#));
    assert_eq!(serde_json::to_string(&event).unwrap(), text);
    let error = NostrEvent::parse(text.replace("65535", "65536").as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "invalid value: integer `65536`, expected u16, at byte 53");
    let error = NostrEvent::parse(b"{}").unwrap_err();
    assert_eq!(error.to_string(), "missing field `id`, at byte 2");
}

/// The object with a value for every key of a schema.
fn with_all_keys(kind: &str) -> Map<String, Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/schemas/follow");
    let schema = fs::read_to_string(folder.join(format!("{kind}.json"))).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let value = |key: &str| match key {
        "v" => json!(1),
        "kind" => json!(kind),
        "verdict" => json!("refused"),
        "verified_against" => json!("signature"),
        "action" => json!("update"),
        "live" | "repeated" | "active" | "whole" | "last" | "filtered" => json!(true),
        "arrival" | "seq" | "records" | "invalid_records" | "bytes" | "piece" | "index" => json!(7),
        "record" => json!({}),
        "invalid" | "frame" => json!({"$bytes": ""}),
        "proof" => json!({"frame": {"$bytes": ""}}),
        "ops" | "collections" | "complete" => json!([]),
        _ => json!("text"),
    };
    let keys = schema["properties"].as_object().unwrap().keys();
    keys.map(|key| (key.clone(), value(key))).collect()
}

#[test]
fn each_key_of_the_schemas_is_read_and_written_and_no_line_of_a_kind_has_another() {
    let kinds = "commit sync identity account info error unknown undecodable resync status history operation";
    for kind in kinds.split(' ') {
        let whole = with_all_keys(kind);
        let left_out = if kind == "operation" { vec!["record", "invalid"] } else { vec![""] };
        for key in left_out {
            let mut line = whole.clone();
            line.remove(key);
            let text = Value::from(line.clone()).to_string();
            let read = Line::parse(text.as_bytes()).unwrap_or_else(|why| panic!("{why}: {text}"));
            assert_eq!(serde_json::to_value(&read).unwrap(), Value::from(line), "{kind}");
        }
        for line in LINES.iter().filter(|line| line.contains(&format!("\"kind\":\"{kind}\""))) {
            let line: Map<String, Value> = serde_json::from_str(line).unwrap();
            let unknown = line.keys().find(|key| !whole.contains_key(*key));
            assert_eq!(unknown, None, "{kind}");
        }
    }
}

#[test]
fn a_line_about_a_relay_is_read_and_written_with_the_keys_of_its_schema() {
    let text = r#"{"v":1,"relay":"wss://a","kind":"event","verdict":"refused","code":"event/id","id":"aa","prefix":"p","message":"m","complete":true,"missing":1,"withheld":2,"event":{"a": 1}}"#;
    let line: RelayLine<'_> = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&line).unwrap(), text);
    let (event, mut written) = (line.event.clone().unwrap(), Vec::new());
    let line = RelayLine { event: None, ..line };
    line.append(&mut written, Some(|out: &mut Vec<u8>| out.extend(event.get().bytes())));
    assert_eq!(str::from_utf8(&written), Ok(text));
    let page =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/schemas/nostr-follow.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(page).unwrap()).unwrap();
    let read: Map<String, Value> = serde_json::from_str(text).unwrap();
    assert!(read.keys().eq(schema["properties"].as_object().unwrap().keys()));
}

#[test]
fn a_line_of_a_label_is_read_and_written_with_the_keys_of_its_schema() {
    let text = r#"{"v":1,"kind":"label","service":"did:web:a","host":"https://a","seq":7,"index":0,"verdict":"verified","code":"verified/negation","message":"m","src":"did:web:a","uri":"did:web:b","cid":"c","val":"x","neg":true,"cts":"t","exp":"u","sig":"s","key":"did:key:z"}"#;
    let line = LabelLine::parse(text.as_bytes()).unwrap();
    let mut written = Vec::new();
    line.append(&mut written);
    assert_eq!(str::from_utf8(&written), Ok(text));
    assert!(line.is_verified_label() && line.code == Some(Code::VerifiedNegation));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/schemas/labels.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(page).unwrap()).unwrap();
    let read: Map<String, Value> = serde_json::from_str(text).unwrap();
    assert!(read.keys().eq(schema["properties"].as_object().unwrap().keys()));
}
