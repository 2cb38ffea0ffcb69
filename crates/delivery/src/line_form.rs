//! The form in which events are sent: a line an event, or a flat line for each of its operations.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What is one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineForm {
    /// An event, with all its operations.
    #[default]
    Events,
    /// An operation of a commit or a repository, with the keys of its event. Events without operations stay as they are.
    Operations,
}

impl LineForm {
    /// Appends the lines of a payload, a line of `wireproof follow`, each with a line feed. Returns the paths of its
    /// operations if each of them has a line: the id of that line is the event's, a slash and the path.
    pub fn append(self, payload: &[u8], lines: &mut Vec<u8>) -> Vec<String> {
        let payload = payload.strip_suffix(b"\n").unwrap_or(payload);
        let event = match self {
            Self::Events => None,
            Self::Operations => serde_json::from_slice::<EventLine<'_>>(payload).ok(),
        };
        match event {
            Some(event) if !event.ops.is_empty() => event.append_operations(lines),
            _ => {
                lines.extend_from_slice(payload);
                lines.push(b'\n');
                Vec::new()
            }
        }
    }
}

/// The keys of an event that each of its operations has, and the operations.
#[derive(Deserialize)]
struct EventLine<'l> {
    #[serde(borrow)]
    v: &'l RawValue,
    #[serde(borrow)]
    id: Option<Cow<'l, str>>,
    live: Option<bool>,
    #[serde(borrow)]
    host: &'l RawValue,
    seq: Option<u64>,
    repeated: Option<bool>,
    #[serde(borrow)]
    did: &'l RawValue,
    #[serde(borrow)]
    time: Option<&'l RawValue>,
    #[serde(borrow)]
    rev: &'l RawValue,
    #[serde(borrow)]
    commit: Option<&'l RawValue>,
    #[serde(borrow)]
    verdict: &'l RawValue,
    #[serde(borrow)]
    code: &'l RawValue,
    #[serde(borrow)]
    verified_against: Option<&'l RawValue>,
    #[serde(borrow)]
    message: Option<&'l RawValue>,
    piece: Option<u64>,
    whole: Option<bool>,
    last: Option<bool>,
    #[serde(borrow)]
    proof: Option<&'l RawValue>,
    #[serde(borrow)]
    ops: Vec<Op<'l>>,
}

/// An operation. Values that are not read are copied as they are.
#[derive(Deserialize, Serialize)]
struct Op<'l> {
    #[serde(borrow)]
    action: &'l RawValue,
    #[serde(borrow)]
    collection: &'l RawValue,
    #[serde(borrow)]
    rkey: &'l RawValue,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    cid: Option<&'l RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    record: Option<&'l RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    invalid: Option<&'l RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filtered: Option<bool>,
}

/// The line of an operation.
#[derive(Serialize)]
struct OperationLine<'e, 'l> {
    v: &'l RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<bool>,
    host: &'l RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<bool>,
    kind: &'static str,
    did: &'l RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'l RawValue>,
    rev: &'l RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'l RawValue>,
    verdict: &'l RawValue,
    code: &'l RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified_against: Option<&'l RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'l RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    piece: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<bool>,
    /// Number of the operation among those of the event.
    index: usize,
    /// Whether it is the last of the commit or of the repository.
    last: bool,
    #[serde(flatten)]
    op: &'e Op<'l>,
    /// That of the event, in the line of its first operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<&'l RawValue>,
}

impl Op<'_> {
    /// The path of the record.
    fn path(&self) -> String {
        let text = |json: &RawValue| serde_json::from_str::<String>(json.get()).unwrap_or_default();
        format!("{}/{}", text(self.collection), text(self.rkey))
    }
}

impl EventLine<'_> {
    fn append_operations(&self, lines: &mut Vec<u8>) -> Vec<String> {
        let paths: Vec<String> = self.ops.iter().map(Op::path).collect();
        for (index, (op, path)) in self.ops.iter().zip(&paths).enumerate() {
            let line = OperationLine {
                v: self.v,
                id: self.id.as_ref().map(|id| format!("{id}/{path}")),
                live: self.live,
                host: self.host,
                seq: self.seq,
                repeated: self.repeated,
                kind: "operation",
                did: self.did,
                time: self.time,
                rev: self.rev,
                commit: self.commit,
                verdict: self.verdict,
                code: self.code,
                verified_against: self.verified_against,
                message: self.message,
                piece: self.piece,
                whole: self.whole,
                index,
                last: index + 1 == self.ops.len() && self.last.unwrap_or(true),
                op,
                proof: self.proof.filter(|_| index == 0),
            };
            serde_json::to_writer(&mut *lines, &line).expect("text and numbers have a JSON form");
            lines.push(b'\n');
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(payload: &str) -> (Vec<String>, String) {
        let mut lines = Vec::new();
        let paths = LineForm::Operations.append(payload.as_bytes(), &mut lines);
        (paths, String::from_utf8(lines).unwrap())
    }

    const COMMIT: &str = concat!(
        r#"{"v":1,"id":"did:web:a.test/3k","live":true,"host":"http://h","seq":7,"kind":"commit","did":"did:web:a.test","#,
        r#""time":"t","rev":"3k","commit":"bafy","verdict":"verified","code":"verified","ops":["#,
        r#"{"action":"create","collection":"a.b.c","rkey":"1","cid":"bafx","record":{"t":"\u202e","n":1.0}},"#,
        r#"{"action":"delete","collection":"a.b.c","rkey":"2"}]}"#
    );

    #[test]
    fn each_operation_has_a_line_with_the_keys_of_its_event_and_its_values_as_they_are() {
        let (paths, lines) = flat(COMMIT);
        assert_eq!(paths, ["a.b.c/1", "a.b.c/2"]);
        let header = |path: &str| {
            format!(
                r#"{{"v":1,"id":"did:web:a.test/3k/{path}","live":true,"host":"http://h","seq":7,"kind":"operation","did":"did:web:a.test","time":"t","rev":"3k","commit":"bafy","verdict":"verified","code":"verified","#
            )
        };
        let first = r#""index":0,"last":false,"action":"create","collection":"a.b.c","rkey":"1","cid":"bafx","record":{"t":"\u202e","n":1.0}}"#;
        let second = r#""index":1,"last":true,"action":"delete","collection":"a.b.c","rkey":"2"}"#;
        let expected = format!("{}{first}\n{}{second}\n", header("a.b.c/1"), header("a.b.c/2"));
        assert_eq!(lines, expected);
    }

    #[test]
    fn only_the_last_operation_of_the_last_piece_of_a_repository_is_the_last() {
        for (last, expected) in [("false", [false, false]), ("true", [false, true])] {
            let piece = COMMIT
                .replace(r#""code":"#, &format!(r#""piece":3,"whole":true,"last":{last},"code":"#));
            let (_, lines) = flat(&piece);
            let found: Vec<bool> =
                lines.lines().map(|line| line.contains(r#""last":true"#)).collect();
            assert_eq!(found, expected);
            assert!(
                lines.lines().all(|line| line.contains(r#""piece":3,"whole":true"#)),
                "{lines}"
            );
        }
    }

    #[test]
    fn each_operation_says_what_was_not_proved() {
        let less = r#""code":"verified/unproved","verified_against":"signature""#;
        let (_, lines) = flat(&COMMIT.replace(r#""code":"verified""#, less));
        assert!(lines.lines().all(|line| line.contains(less)), "{lines}");
    }

    #[test]
    fn what_has_no_operations_stays_as_it_is() {
        let (start, _) = COMMIT.split_once(r#","ops""#).unwrap();
        for payload in
            [format!("{start}}}"), format!(r#"{start},"ops":[]}}"#), "no line".to_owned()]
        {
            assert_eq!(flat(&payload), (Vec::new(), format!("{payload}\n")));
        }
        let mut lines = Vec::new();
        assert!(LineForm::Events.append(COMMIT.as_bytes(), &mut lines).is_empty());
        assert_eq!(lines, format!("{COMMIT}\n").as_bytes());
    }
}
