//! Values that are borrowed from a line if its text has them unescaped.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use data_encoding::BASE64_NOPAD;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A text; it owns its characters only where the line has escapes in it.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'l>(Cow<'l, str>);

impl<'l> Text<'l> {
    /// The same text, borrowed from this one.
    pub fn by_ref(&self) -> Text<'_> {
        Text(Cow::Borrowed(self))
    }

    /// The text, borrowed or owned.
    pub fn into_cow(self) -> Cow<'l, str> {
        self.0
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<'l> From<&'l str> for Text<'l> {
    fn from(text: &'l str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de: 'l, 'l> Deserialize<'de> for Text<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(text.into())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(text.to_owned().into())
    }
}

/// A value as its JSON text, which is neither read nor changed.
#[derive(Clone, Debug)]
pub struct Json<'l>(Cow<'l, RawValue>);

impl Json<'_> {
    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The same value, borrowed from this one.
    pub fn by_ref(&self) -> Json<'_> {
        Json(Cow::Borrowed(&self.0))
    }
}

impl<'l> From<&'l RawValue> for Json<'l> {
    fn from(json: &'l RawValue) -> Self {
        Self(Cow::Borrowed(json))
    }
}

impl From<Box<RawValue>> for Json<'_> {
    fn from(json: Box<RawValue>) -> Self {
        Self(Cow::Owned(json))
    }
}

/// Compares the texts.
impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json<'_> {}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de: 'l, 'l> Deserialize<'de> for Json<'l> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// Bytes, in base64 without padding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bytes<'l> {
    /// The text in base64.
    #[serde(borrow, rename = "$bytes")]
    pub base64: Text<'l>,
}

impl From<&[u8]> for Bytes<'_> {
    fn from(bytes: &[u8]) -> Self {
        Self { base64: BASE64_NOPAD.encode(bytes).into() }
    }
}
