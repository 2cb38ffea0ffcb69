//! Lines written straight into a buffer: the operations from values in memory, everything else from a [`Line`].

use std::convert::Infallible;
use std::fmt::Display;
use std::io::Write as _;

use atproto::event::Action;
use codec::cbor::Value;
use codec::cid::CidRef;
use codec::json::{Json, append, append_text};
use codec::printable::escape_json;
use serde::{Serialize, Serializer};

use crate::code::Code;
use crate::line::Line;
use crate::write::WriteKeys;

/// Writes a line whose operations are values in memory, which never become JSON of their own: it takes less time than
/// [`Line::append`], and writes the same bytes.
///
/// ```text
/// begin ── keys before `ops` ──> begin_ops ── op ── op ── … ──> end ── keys after `ops`
/// ```
#[derive(Debug)]
pub struct LineWriter<'b> {
    object: Object<'b>,
    /// Number of operations, once `ops` has begun.
    ops: Option<u64>,
}

/// An operation whose record is a value in memory.
#[derive(Clone, Copy, Debug)]
pub struct NewOp<'o> {
    /// The change to the record.
    pub action: Action,
    /// The path of the record. Of a key that is no record path, all before the first slash is the collection.
    pub path: &'o str,
    /// The CID of the record; none of a deletion.
    pub cid: Option<CidRef<'o>>,
    /// The content; none of a deletion.
    pub content: Option<NewContent<'o>>,
    /// Of a deletion: the record is there, and does not match the condition of the run any more.
    pub filtered: bool,
}

/// The content of a record in memory.
#[derive(Clone, Copy, Debug)]
pub enum NewContent<'o> {
    /// The value that these bytes encode. One without a JSON form is written as an invalid one is.
    Record(&'o Value<'o>, &'o [u8]),
    /// The rule that the bytes break, the place, and the bytes.
    Invalid(InvalidContent<'o>),
}

/// A record that is invalid or has no JSON form: the broken rule, and the bytes in the place of a value.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InvalidContent<'o> {
    /// The stable name of the rule.
    pub code: &'o str,
    /// Bytes from the start of the record.
    pub offset: usize,
    /// The rule, for a person.
    pub message: &'o str,
    /// The record.
    #[serde(serialize_with = "bytes_form")]
    #[cfg_attr(test, schemars(with = "crate::text::Bytes<'o>"))]
    pub bytes: &'o [u8],
}

impl<'b> LineWriter<'b> {
    /// Begins the line with the keys before its operations. The operations of `line` itself are not written.
    pub fn begin(lines: &'b mut Vec<u8>, line: &Line<'_>) -> Self {
        let mut object = Object::begin(lines);
        let Ok(()) = line.write_head(&mut object);
        Self { object, ops: None }
    }

    /// Begins the operations. Returns the length of the line until then, with its invisible characters escaped.
    pub fn begin_ops(&mut self) -> usize {
        let len = self.object.escape();
        self.object.key("ops");
        self.object.line.push(b'[');
        self.ops = Some(0);
        len
    }

    /// Writes an operation, after [`begin_ops`](Self::begin_ops).
    pub fn op(&mut self, op: &NewOp<'_>) {
        let count = self.ops.get_or_insert(0);
        if *count > 0 {
            self.object.line.push(b',');
        }
        *count += 1;
        op.write(self.object.line);
    }

    /// Length of the line until now, in bytes.
    pub fn byte_len(&self) -> usize {
        self.object.line.len() - self.object.start
    }

    /// Ends the line with the keys of `line` after its operations, and a line feed.
    pub fn end(mut self, line: &Line<'_>) {
        if self.ops.is_some() {
            self.object.line.push(b']');
        }
        let Ok(()) = line.write_tail(&mut self.object);
        self.object.escape();
        self.object.line.extend_from_slice(b"}\n");
    }
}

impl NewOp<'_> {
    fn write(&self, line: &mut Vec<u8>) {
        let (collection, rkey) = self.path.split_once('/').unwrap_or((self.path, ""));
        let mut object = Object::begin(line);
        object.text("action", self.action.as_str());
        object.text("collection", collection);
        object.text("rkey", rkey);
        if let Some(cid) = self.cid {
            object.plain("cid", cid);
        }
        match self.content {
            Some(NewContent::Record(value, bytes)) => object.record(value, bytes),
            Some(NewContent::Invalid(invalid)) => object.json("invalid", &invalid),
            None => {}
        }
        if self.filtered {
            object.json("filtered", &true);
        }
        object.line.push(b'}');
    }
}

/// A JSON object that is being written.
#[derive(Debug)]
struct Object<'b> {
    line: &'b mut Vec<u8>,
    /// The offset of its brace: other lines may be before it.
    start: usize,
    is_first: bool,
    /// The offset from which on invisible characters are not escaped yet.
    unescaped: usize,
}

impl<'b> Object<'b> {
    fn begin(line: &'b mut Vec<u8>) -> Self {
        let start = line.len();
        line.push(b'{');
        Self { line, start, is_first: true, unescaped: start }
    }

    /// Writes a key, which needs no escapes, and its colon.
    fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.is_first) {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        append_text(self.line, text);
    }

    /// Writes a text that needs no escapes, such as a CID.
    fn plain(&mut self, key: &str, text: impl Display) {
        self.key(key);
        write!(self.line, "\"{text}\"").expect("writing to memory does not fail");
    }

    fn json(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.key(key);
        serde_json::to_writer(&mut *self.line, value).expect("text and numbers have a JSON form");
    }

    /// Writes the record that `bytes` encode. One without a JSON form is written as an invalid one is.
    fn record(&mut self, value: &Value<'_>, bytes: &[u8]) {
        let (len, is_first) = (self.line.len(), self.is_first);
        self.key("record");
        if let Err(error) = append(self.line, value) {
            self.line.truncate(len);
            self.is_first = is_first;
            let message = error.to_string();
            let code = Code::DataKey.as_str();
            self.json("invalid", &InvalidContent { code, offset: 0, message: &message, bytes });
        }
    }

    /// Escapes the invisible characters of all texts, and returns the length of the object until now.
    fn escape(&mut self) -> usize {
        escape_json(self.line, self.unescaped);
        self.unescaped = self.line.len();
        self.unescaped - self.start
    }
}

impl WriteKeys for Object<'_> {
    type Error = Infallible;

    fn put(
        &mut self,
        key: &'static str,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Infallible> {
        self.json(key, value);
        Ok(())
    }

    fn text(&mut self, key: &'static str, text: &str) -> Result<(), Infallible> {
        Object::text(self, key, text);
        Ok(())
    }
}

fn bytes_form<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    Json(&Value::Bytes(bytes)).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use codec::cbor::{Arena, Map};
    use codec::json as codec_json;

    use super::*;

    const HISTORY: &str = r#"{"v":1,"host":"h","kind":"commit","did":"d\u202e","rev":"3k","verdict":"not-asked","code":"not-asked","#;

    /// The line with these operations, which [`Line`] reads and writes again.
    fn written(ops: &[NewOp<'_>]) -> String {
        let empty = format!("{HISTORY}\"ops\":[]}}");
        let line = Line::parse(empty.as_bytes()).unwrap();
        let mut bytes = b"before\n".to_vec();
        let mut writer = LineWriter::begin(&mut bytes, &line);
        assert_eq!(writer.begin_ops() + 1, HISTORY.len());
        ops.iter().for_each(|op| writer.op(op));
        writer.end(&line);
        let text = String::from_utf8(bytes.split_off(7)).unwrap();
        let mut again = Vec::new();
        Line::parse(text.as_bytes()).unwrap().append(&mut again);
        assert_eq!(again, text.as_bytes());
        let ops = text.strip_prefix(HISTORY).and_then(|ops| ops.strip_prefix("\"ops\":["));
        ops.and_then(|ops| ops.strip_suffix("]}\n")).unwrap().to_owned()
    }

    fn put(content: NewContent<'_>) -> NewOp<'_> {
        let (action, path) = (Action::Create, "a.b.c/\u{202e}\n");
        NewOp { action, path, cid: None, content: Some(content), filtered: false }
    }

    const HEAD: &str = r#"{"action":"create","collection":"a.b.c","rkey":"\u202e\n","#;

    #[test]
    fn a_record_has_the_json_form_of_the_data_model_with_untrusted_text_escaped() {
        let arena = Arena::new();
        let text = r#"{"n":[1,{"$bytes":"aGkhPw"}],"text":"\u0007\\\u009b\u200b"}"#;
        let value = codec_json::decode(text, &arena).unwrap();
        let ops = written(&[put(NewContent::Record(&value, b""))]);
        assert_eq!(ops, format!("{HEAD}\"record\":{text}}}"));
    }

    #[test]
    fn a_record_without_a_json_form_is_replaced_by_the_rule_and_its_bytes() {
        let mut entries = [("$link", Value::Integer(7))];
        let map = Value::Map(Map::from_entries(&mut entries).unwrap());
        let values = [Value::Boolean(true), map];
        let ops = written(&[put(NewContent::Record(&Value::Array(&values), b"hi!?"))]);
        let start = format!(r#"{HEAD}"invalid":{{"code":"data/key","offset":0,"message":""#);
        assert!(ops.starts_with(&start), "{ops}");
        assert!(ops.ends_with("\"bytes\":{\"$bytes\":\"aGkhPw\"}}}"), "{ops}");
        assert!(!ops.contains("true"), "{ops}");
    }

    #[test]
    fn an_invalid_record_and_deletions_have_their_keys_in_order() {
        let invalid =
            InvalidContent { code: "record/cbor", offset: 3, message: "m", bytes: b"hi!?" };
        let delete = |filtered| NewOp {
            action: Action::Delete,
            path: "a",
            cid: None,
            content: None,
            filtered,
        };
        let ops = written(&[put(NewContent::Invalid(invalid)), delete(false), delete(true)]);
        let deletion = r#"{"action":"delete","collection":"a","rkey":"""#;
        let expected = format!(
            r#"{HEAD}"invalid":{{"code":"record/cbor","offset":3,"message":"m","bytes":{{"$bytes":"aGkhPw"}}}}}},{deletion}}},{deletion},"filtered":true}}"#
        );
        assert_eq!(ops, expected);
        assert_eq!(written(&[]), "");
    }
}
