//! What is printed of an event? One line of JSON, written straight into a buffer.
//!
//! | field | |
//! |---|---|
//! | `host`, `seq` | who sent it, and its number there |
//! | `kind` | `commit`, `sync`, `identity`, `account`, `info`, `error`, `unknown`, `undecodable`, `resync` |
//! | `did`, `time`, `rev`, `commit` | what it says, where its kind has that |
//! | `verdict` | `verified`, `refused`, `ignored`, `unknown-key`, `unchecked` (carries no proof), `not-asked` |
//! | `code`, `reason` | the stable name of the verdict, and what there is to say of it |
//! | `ops` | `action`, `collection`, `rkey`, `cid`, `record`; not if the event is refused or ignored |
//! | `frame` | the bytes, of what could not be read |

use std::fmt::{Display, Write as _};
use std::io::Write as _;

use serde::Serialize;
use wireproof::atproto::event::{Action, Commit, Event, RepoOp};
use wireproof::codec::cbor::Value;
use wireproof::codec::json::Json;
use wireproof::net::firehose::{DeliveredEvent, FrameKind, ResyncedRepo, Verdict};
use wireproof::verify::sync::{Chain, Outcome};

use super::selection::Selection;

/// Writes the line of `event`, if it is wanted, and says whether it is.
pub(super) fn write(
    line: &mut Vec<u8>,
    host: &str,
    event: &DeliveredEvent<'_>,
    selection: &Selection,
) -> bool {
    if !selection.has_account(event.did) {
        return false;
    }
    let commit = match event.event {
        Some(Event::Commit(commit)) => Some(commit),
        _ => None,
    };
    if commit.is_some_and(|commit| !selection.has_any(commit.ops.iter().map(|op| op.path))) {
        return false;
    }
    let mut object = Object::begin(line);
    object.text("host", host);
    if let Some(seq) = event.seq {
        object.value("seq", seq);
    }
    object.text("kind", event.kind.name());
    if let Some(did) = event.did {
        object.text("did", did);
    }
    if let Some(said) = event.event {
        claims(&mut object, said);
    }
    verdict(&mut object, event);
    if let Some(commit) = commit.filter(|_| may_be_read(&event.verdict)) {
        ops(&mut object, commit, selection);
    }
    if matches!(event.kind, FrameKind::Unknown | FrameKind::Undecodable)
        || matches!(event.verdict, Verdict::Undecodable(_))
    {
        object.bytes("frame", event.frame);
    }
    object.end();
    true
}

/// Writes the line of a repository that was fetched anew.
pub(super) fn write_resynced(
    line: &mut Vec<u8>,
    resynced: &ResyncedRepo,
    selection: &Selection,
) -> bool {
    if !selection.has_account(Some(&resynced.did)) {
        return false;
    }
    let mut object = Object::begin(line);
    object.text("host", &resynced.host);
    object.text("kind", "resync");
    object.text("did", &resynced.did);
    object.plain("rev", resynced.head.rev);
    object.plain("commit", resynced.head.commit);
    object.text("verdict", "verified");
    object.text("code", "verified");
    object.value("records", resynced.records);
    object.value("bytes", resynced.bytes);
    object.end();
    true
}

/// What the event says of itself, proved or not.
fn claims(object: &mut Object<'_>, said: &Event<'_>) {
    match said {
        Event::Commit(commit) => {
            object.text("time", commit.time);
            object.text("rev", commit.rev);
            object.plain("commit", commit.commit);
        }
        Event::Sync(sync) => {
            object.text("time", sync.time);
            object.text("rev", sync.rev);
        }
        Event::Identity(identity) => {
            object.text("time", identity.time);
            object.optional("handle", identity.handle);
        }
        Event::Account(account) => {
            object.text("time", account.time);
            object.json("active", &account.active);
            object.optional("status", account.status);
        }
        Event::Info(info) => {
            object.text("name", info.name);
            object.optional("message", info.message);
        }
        Event::Error(error) => {
            object.text("name", error.error);
            object.optional("message", error.message);
        }
        Event::Unknown(unknown) => object.optional("type", unknown.header.kind),
    }
}

fn verdict(object: &mut Object<'_>, event: &DeliveredEvent<'_>) {
    object.text("verdict", word(&event.verdict));
    object.text("code", event.verdict.code());
    match &event.verdict {
        Verdict::Judged(Outcome::Rejected(why)) => object.reason(why),
        Verdict::Judged(Outcome::Ignored(why)) => object.reason(why),
        Verdict::Judged(Outcome::Commit(_, Chain::Broken(why))) => object.reason(why),
        Verdict::UnknownKey(why) => object.reason(why),
        Verdict::Undecodable(why) => object.reason(why),
        _ => {}
    }
}

/// The verdict in one of a few words.
pub(super) fn word(verdict: &Verdict<'_>) -> &'static str {
    match verdict {
        Verdict::Judged(Outcome::Commit(..) | Outcome::Sync(..)) => "verified",
        Verdict::Judged(Outcome::Ignored(_)) => "ignored",
        Verdict::Judged(Outcome::Rejected(_)) | Verdict::Undecodable(_) => "refused",
        Verdict::Judged(Outcome::Unjudged(_)) => "unchecked",
        Verdict::UnknownKey(_) => "unknown-key",
        Verdict::NotVerified => "not-asked",
    }
}

/// Whether the operations are proved, or nobody wanted to know.
fn may_be_read(verdict: &Verdict<'_>) -> bool {
    verdict.is_verified() || matches!(verdict, Verdict::NotVerified)
}

fn ops(object: &mut Object<'_>, commit: &Commit<'_>, selection: &Selection) {
    object.key("ops");
    object.line.push(b'[');
    let wanted = commit.ops.iter().filter(|op| selection.has_path(op.path));
    for (number, op) in wanted.enumerate() {
        if number > 0 {
            object.line.push(b',');
        }
        write_op(object.line, op);
    }
    object.line.push(b']');
}

fn write_op(line: &mut Vec<u8>, op: &RepoOp<'_>) {
    let (collection, rkey) = op.path.split_once('/').unwrap_or((op.path, ""));
    let mut object = Object::begin(line);
    object.text("action", op.action.as_str());
    object.text("collection", collection);
    object.text("rkey", rkey);
    if let Some(cid) = op.cid.filter(|_| op.action != Action::Delete) {
        object.plain("cid", cid);
    }
    if let Some(value) = op.record.and_then(|block| block.value.as_ref()) {
        object.record(value);
    }
    object.close();
}

/// A JSON object in the making.
pub(super) struct Object<'l> {
    pub(super) line: &'l mut Vec<u8>,
    is_first: bool,
}

impl<'l> Object<'l> {
    pub(super) fn begin(line: &'l mut Vec<u8>) -> Self {
        line.push(b'{');
        Self { line, is_first: true }
    }

    /// The key, which needs no escapes, and its colon.
    pub(super) fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.is_first) {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.json(key, text);
    }

    pub(super) fn optional(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    pub(super) fn value(&mut self, key: &str, number: u64) {
        self.json(key, &number);
    }

    /// A text that needs no escapes, such as a CID.
    pub(super) fn plain(&mut self, key: &str, text: impl Display) {
        self.key(key);
        write!(self.line, "\"{text}\"").expect("memory takes all");
    }

    pub(super) fn bytes(&mut self, key: &str, bytes: &[u8]) {
        self.json(key, &Json(&Value::Bytes(bytes)));
    }

    pub(super) fn reason(&mut self, why: impl Display) {
        let mut text = String::new();
        write!(text, "{why}").expect("memory takes all");
        self.text("reason", &text);
    }

    pub(super) fn json(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.key(key);
        serde_json::to_writer(&mut *self.line, value).expect("text and numbers into memory");
    }

    /// A record; one that has no JSON form is told instead.
    fn record(&mut self, value: &Value<'_>) {
        let start = (self.line.len(), self.is_first);
        self.key("record");
        if let Err(error) = serde_json::to_writer(&mut *self.line, &Json(value)) {
            self.line.truncate(start.0);
            self.is_first = start.1;
            self.text("record_fault", &error.to_string());
        }
    }

    pub(super) fn close(self) {
        self.line.push(b'}');
    }

    pub(super) fn end(self) {
        self.line.extend_from_slice(b"}\n");
    }
}

#[cfg(test)]
mod tests {
    use bumpalo::Bump;
    use wireproof::codec::json;

    use super::*;

    fn object(fill: impl FnOnce(&mut Object<'_>)) -> String {
        let mut line = Vec::new();
        let mut object = Object::begin(&mut line);
        fill(&mut object);
        object.end();
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn texts_of_strangers_stay_in_their_line_and_their_quotes() {
        let line = object(|object| {
            object.text("a", "x\"\n\u{1b}[2J\\");
            object.value("b", u64::MAX);
        });
        assert_eq!(line, "{\"a\":\"x\\\"\\n\\u001b[2J\\\\\",\"b\":18446744073709551615}\n");
    }

    #[test]
    fn a_record_is_in_the_json_form_of_the_data_model() {
        let arena = Bump::new();
        let text = r#"{"n":[1,{"$bytes":"aGkhPw"}],"text":"\u0007"}"#;
        let value = json::decode(text, &arena).unwrap();
        assert_eq!(object(|object| object.record(&value)), format!("{{\"record\":{text}}}\n"));
    }

    #[test]
    fn a_record_without_a_json_form_is_told_and_leaves_nothing_behind() {
        let values = [Value::Boolean(true), Value::Float(f64::NAN)];
        for (before, comma) in [(false, ""), (true, "\"a\":1,")] {
            let line = object(|object| {
                if before {
                    object.value("a", 1);
                }
                object.record(&Value::Array(&values));
            });
            assert!(line.starts_with(&format!("{{{comma}\"record_fault\":\"")), "{line}");
            assert!(line.ends_with("\"}\n") && !line.contains("true"), "{line}");
        }
    }
}
