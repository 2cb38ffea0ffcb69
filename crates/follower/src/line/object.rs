//! A JSON object that is written straight into a buffer.

use std::fmt::{Display, Write as _};
use std::io::Write as _;

use codec::cbor::Value;
use codec::json::{Json, append, append_text};
use codec::printable::escape_json;
use serde::Serialize;
use verify::InvalidRecord;

use crate::json::InvalidBytes;

/// A JSON object that is being written.
pub struct Object<'l> {
    /// The line that it is appended to.
    pub line: &'l mut Vec<u8>,
    /// The offset of its brace: other lines may be before it.
    pub start: usize,
    is_first: bool,
    /// The offset from which on invisible characters are not escaped yet.
    unescaped: usize,
}

impl<'l> Object<'l> {
    /// Begins an object.
    pub fn begin(line: &'l mut Vec<u8>) -> Self {
        let start = line.len();
        line.push(b'{');
        Self { line, start, is_first: true, unescaped: start }
    }

    /// Begins a line, with the version of its format.
    pub fn begin_line(line: &'l mut Vec<u8>) -> Self {
        let mut object = Self::begin(line);
        object.number("v", VERSION);
        object
    }

    /// Writes a key, which needs no escapes, and its colon.
    pub fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.is_first) {
            self.line.push(b',');
        }
        self.line.push(b'"');
        self.line.extend_from_slice(key.as_bytes());
        self.line.extend_from_slice(b"\":");
    }

    /// Adds a text.
    pub fn text(&mut self, key: &str, text: &str) {
        self.key(key);
        append_text(self.line, text);
    }

    /// Adds a text, if there is one.
    pub fn optional(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(key, text);
        }
    }

    /// Adds a number.
    pub fn number(&mut self, key: &str, number: u64) {
        self.json(key, &number);
    }

    /// Writes a text that needs no escapes, such as a CID.
    pub fn plain(&mut self, key: &str, text: impl Display) {
        self.key(key);
        write!(self.line, "\"{text}\"").expect("writing to memory does not fail");
    }

    /// Adds bytes that prove the line, with their form.
    pub fn proof(&mut self, form: &str, bytes: &[u8]) {
        self.key("proof");
        let mut object = Object::begin(self.line);
        object.bytes(form, bytes);
        object.close();
    }

    /// Adds bytes.
    pub fn bytes(&mut self, key: &str, bytes: &[u8]) {
        self.json(key, &Json(&Value::Bytes(bytes)));
    }

    /// Adds why an event is refused.
    pub fn message(&mut self, why: impl Display) {
        let mut text = String::new();
        write!(text, "{why}").expect("writing to memory does not fail");
        self.text("message", &text);
    }

    /// Adds a value.
    pub fn json(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.key(key);
        serde_json::to_writer(&mut *self.line, value).expect("text and numbers have a JSON form");
    }

    /// Writes the record that `bytes` encode. One without a JSON form is written as an invalid one is.
    pub fn record(&mut self, value: &Value<'_>, bytes: &[u8]) {
        let start = (self.line.len(), self.is_first);
        self.key("record");
        if let Err(error) = append(self.line, value) {
            self.line.truncate(start.0);
            self.is_first = start.1;
            self.json("invalid", &InvalidBytes::without_json(&error, bytes));
        }
    }

    /// Writes the broken rule and the bytes of a record that is no valid one.
    pub fn invalid(&mut self, invalid: &InvalidRecord, bytes: &[u8]) {
        self.json("invalid", &InvalidBytes::new(&invalid.error, bytes));
    }

    /// Ends the object.
    pub fn close(self) {
        self.line.push(b'}');
    }

    /// Escapes the invisible characters of all texts, and returns the length of the object until now.
    pub fn escape(&mut self) -> usize {
        escape_json(self.line, self.unescaped);
        self.unescaped = self.line.len();
        self.unescaped - self.start
    }

    /// Ends the line, with the invisible characters of all its texts escaped.
    pub fn end(mut self) {
        self.escape();
        self.line.extend_from_slice(b"}\n");
    }
}

/// Version of the lines: another one when a key changes its meaning or is removed.
const VERSION: u64 = 1;

#[cfg(test)]
mod tests {
    use bumpalo::Bump;
    use codec::cbor::Map;
    use codec::json as codec_json;

    use super::*;

    fn object(fill: impl FnOnce(&mut Object<'_>)) -> String {
        let mut line = Vec::new();
        let mut object = Object::begin(&mut line);
        fill(&mut object);
        object.end();
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn untrusted_text_is_escaped() {
        let line = object(|object| {
            object.text("a", "x\"\n\u{1b}[2J\\\u{9b}\u{202e}\u{200b}");
            object.number("b", u64::MAX);
        });
        let text = r#""x\"\n\u001b[2J\\\u009b\u202e\u200b""#;
        assert_eq!(line, format!("{{\"a\":{text},\"b\":18446744073709551615}}\n"));
    }

    #[test]
    fn a_record_has_the_json_form_of_the_data_model() {
        let arena = Bump::new();
        let text = r#"{"n":[1,{"$bytes":"aGkhPw"}],"text":"\u0007"}"#;
        let value = codec_json::decode(text, &arena).unwrap();
        assert_eq!(object(|object| object.record(&value, b"")), format!("{{\"record\":{text}}}\n"));
    }

    #[test]
    fn a_record_without_a_json_form_is_replaced_by_the_rule_and_its_bytes() {
        let mut entries = [("$link", Value::Integer(7))];
        let map = Value::Map(Map::from_entries(&mut entries).unwrap());
        let values = [Value::Boolean(true), map];
        for (before, comma) in [(false, ""), (true, "\"a\":1,")] {
            let line = object(|object| {
                if before {
                    object.number("a", 1);
                }
                object.record(&Value::Array(&values), b"hi!?");
            });
            let start = format!(r#"{{{comma}"invalid":{{"code":"data/key","offset":0,"message":""#);
            assert!(line.starts_with(&start), "{line}");
            assert!(line.ends_with("\"bytes\":{\"$bytes\":\"aGkhPw\"}}}\n"), "{line}");
            assert!(!line.contains("true"), "{line}");
        }
    }
}
