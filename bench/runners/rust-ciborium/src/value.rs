//! What is a tag's value in the layouts that compact hexadecimal, and how are its tags walked?

use std::fmt;

use runner_shell::nostr::{Tally, line};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Text, or the bytes that its digits spell. ciborium reads from a stream, so nothing is borrowed.
pub(crate) enum Value {
    Text(String),
    Hex(Vec<u8>),
}

pub(crate) type Tags = Vec<Vec<Value>>;

/// The tags of a line, all of them text as yet.
pub(crate) fn tags(tags: Vec<Vec<line::Text<'_>>>) -> Tags {
    let value = |text: line::Text<'_>| Value::Text(text.0.into());
    tags.into_iter().map(|tag| tag.into_iter().map(value).collect()).collect()
}

/// Walks all tags.
pub(crate) fn tell(tags: &Tags, tally: &mut Tally) {
    for tag in tags {
        tally.tag();
        for value in tag {
            match value {
                Value::Text(text) => tally.text(text),
                Value::Hex(bytes) => tally.hex(bytes),
            }
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Hex(bytes) => serializer.serialize_bytes(bytes),
            Value::Text(text) => line::with_spelled(text, LEAST_DIGITS, |bytes| match bytes {
                Some(bytes) => serializer.serialize_bytes(bytes),
                None => serializer.serialize_str(text),
            }),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrBytes)
    }
}

struct TextOrBytes;

impl Visitor<'_> for TextOrBytes {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("text or bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::Hex(bytes.to_vec()))
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Value, E> {
        Ok(Value::Hex(bytes))
    }
}

const LEAST_DIGITS: usize = 8;
