//! What is a tag's value?

use std::fmt;

use runner_shell::nostr::{Tally, line};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Text, or the bytes that its digits spell.
pub(crate) enum Value<'a> {
    Text(&'a str),
    Hex(&'a [u8]),
}

impl Value<'_> {
    pub(crate) fn tell(&self, tally: &mut Tally) {
        match self {
            Value::Text(text) => tally.text(text),
            Value::Hex(bytes) => tally.hex(bytes),
        }
    }
}

impl Serialize for Value<'_> {
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

impl<'de: 'a, 'a> Deserialize<'de> for Value<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrBytes)
    }
}

struct TextOrBytes;

impl<'de> Visitor<'de> for TextOrBytes {
    type Value = Value<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("text or bytes")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(text))
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Value<'de>, E> {
        Ok(Value::Hex(bytes))
    }
}

const LEAST_DIGITS: usize = 8;
