//! Links and byte strings in serde's data model, which has neither links nor `{"$bytes": …}`.
//!
//! Both travel as newtype structs with a name that the serializers of this crate know. To any other
//! format they are their content: an object with one key in human-readable formats, bytes elsewhere.
//! Reading accepts every form in which such a value may arrive, because serde buffers the content of
//! untagged and internally tagged enums and forgets the format it came from.

use std::fmt;
use std::marker::PhantomData;

use data_encoding::{BASE64, BASE64_NOPAD};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::cid::{AnyCid, Cid, CidRef};

/// The newtype name of links.
pub(super) const LINK: &str = "$link";

/// The newtype name of byte strings.
pub(super) const BYTES: &str = "$bytes";

/// The key under which our deserializers present a link to a type that reads any kind of value. Not
/// [`LINK`], so that an ordinary map is never read as a link.
pub(super) const LINK_BYTES: &str = "$wireproof::link";

/// Bytes that are a byte string in DAG-CBOR and `{"$bytes": "…"}` in JSON; borrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes<'a>(pub &'a [u8]);

/// Bytes that are a byte string in DAG-CBOR and `{"$bytes": "…"}` in JSON; owned.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteBuf(pub Vec<u8>);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = || BASE64_NOPAD.encode(self.0);
        serializer.serialize_newtype_struct(BYTES, &Leaf { key: BYTES, bytes: self.0, text })
    }
}

impl Serialize for ByteBuf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Bytes(&self.0).serialize(serializer)
    }
}

impl Serialize for CidRef<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = || self.to_string();
        serializer.serialize_newtype_struct(LINK, &Leaf { key: LINK, bytes: self.as_bytes(), text })
    }
}

impl Serialize for Cid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_cid_ref().serialize(serializer)
    }
}

impl Serialize for AnyCid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_cid_ref().serialize(serializer)
    }
}

/// The content of the newtype: `{key: text}` in human-readable formats, bytes elsewhere.
struct Leaf<'a, F> {
    key: &'static str,
    bytes: &'a [u8],
    text: F,
}

impl<F: Fn() -> String> Serialize for Leaf<'_, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return serializer.serialize_bytes(self.bytes);
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.key, &(self.text)())?;
        map.end()
    }
}

/// The bytes of base64 text, with padding or without.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, data_encoding::DecodeError> {
    let encoding = if text.ends_with('=') { BASE64 } else { BASE64_NOPAD };
    encoding.decode(text.as_bytes())
}

/// A type that can be made from a link or a byte string.
trait FromLeaf<'de>: Sized {
    /// [`LINK`] or [`BYTES`].
    const NAME: &'static str;
    const EXPECTED: &'static str;
    fn read(bytes: &[u8]) -> Option<Self>;
    fn read_borrowed(bytes: &'de [u8]) -> Option<Self> {
        Self::read(bytes)
    }
    fn read_text(text: &str) -> Result<Self, String>;
}

impl FromLeaf<'_> for Cid {
    const NAME: &'static str = LINK;
    const EXPECTED: &'static str = "a link to DAG-CBOR or raw bytes under SHA-256";
    fn read(bytes: &[u8]) -> Option<Self> {
        Self::from_bytes(bytes)
    }
    fn read_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| format!("{LINK}: {error}"))
    }
}

impl FromLeaf<'_> for AnyCid {
    const NAME: &'static str = LINK;
    const EXPECTED: &'static str = "a link";
    fn read(bytes: &[u8]) -> Option<Self> {
        CidRef::from_bytes(bytes).map(Self::from)
    }
    fn read_text(text: &str) -> Result<Self, String> {
        Cid::read_text(text).map(Self::from)
    }
}

impl<'de: 'a, 'a> FromLeaf<'de> for CidRef<'a> {
    const NAME: &'static str = LINK;
    const EXPECTED: &'static str = "a link that can be borrowed";
    fn read(_: &[u8]) -> Option<Self> {
        None
    }
    fn read_borrowed(bytes: &'de [u8]) -> Option<Self> {
        Self::from_bytes(bytes)
    }
    fn read_text(_: &str) -> Result<Self, String> {
        Err("a link as text cannot be borrowed: use `Cid`".to_owned())
    }
}

impl FromLeaf<'_> for ByteBuf {
    const NAME: &'static str = BYTES;
    const EXPECTED: &'static str = "a byte string";
    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.to_vec()))
    }
    fn read_text(text: &str) -> Result<Self, String> {
        decode_base64(text).map(Self).map_err(|error| format!("{BYTES}: {error}"))
    }
}

impl<'de: 'a, 'a> FromLeaf<'de> for Bytes<'a> {
    const NAME: &'static str = BYTES;
    const EXPECTED: &'static str = "a byte string that can be borrowed";
    fn read(_: &[u8]) -> Option<Self> {
        None
    }
    fn read_borrowed(bytes: &'de [u8]) -> Option<Self> {
        Some(Self(bytes))
    }
    fn read_text(_: &str) -> Result<Self, String> {
        Err("bytes as text cannot be borrowed: use `ByteBuf`".to_owned())
    }
}

macro_rules! deserialize_leaves {
    ($(($($lifetime:tt)*) $leaf:ty),*) => {$(
        impl<'de $($lifetime)*> Deserialize<'de> for $leaf {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let name = <Self as FromLeaf<'de>>::NAME;
                deserializer.deserialize_newtype_struct(name, LeafVisitor(PhantomData))
            }
        }
    )*};
}

deserialize_leaves!(() Cid, () AnyCid, (: 'a, 'a) CidRef<'a>, () ByteBuf, (: 'a, 'a) Bytes<'a>);

struct LeafVisitor<T>(PhantomData<T>);

impl<'de, T: FromLeaf<'de>> Visitor<'de> for LeafVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, content: D) -> Result<T, D::Error> {
        content.deserialize_any(self)
    }

    // A byte string is never a link, whatever bytes it holds.
    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        let leaf = (T::NAME == BYTES).then(|| T::read(bytes)).flatten();
        leaf.ok_or_else(|| E::invalid_type(de::Unexpected::Bytes(bytes), &self))
    }

    fn visit_borrowed_bytes<E: de::Error>(self, bytes: &'de [u8]) -> Result<T, E> {
        let leaf = (T::NAME == BYTES).then(|| T::read_borrowed(bytes)).flatten();
        leaf.ok_or_else(|| E::invalid_type(de::Unexpected::Bytes(bytes), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let leaf = match map.next_key_seed(KeySeed(T::NAME))? {
            Some(KeyKind::Text) => {
                let text: String = map.next_value()?;
                T::read_text(&text).map_err(de::Error::custom)?
            }
            Some(KeyKind::LinkBytes) => map.next_value_seed(LinkBytes(PhantomData))?,
            None => return Err(de::Error::invalid_length(0, &"one key")),
        };
        match map.next_key::<de::IgnoredAny>()? {
            None => Ok(leaf),
            Some(_) => Err(de::Error::custom(format_args!("{} must be the only key", T::NAME))),
        }
    }
}

/// Reads the one key of a link or byte string in map form.
struct KeySeed(&'static str);

enum KeyKind {
    Text,
    LinkBytes,
}

impl<'de> de::DeserializeSeed<'de> for KeySeed {
    type Value = KeyKind;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<KeyKind, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = KeyKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the key {}", self.0)
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<KeyKind, E> {
        match key {
            LINK_BYTES if self.0 == LINK => Ok(KeyKind::LinkBytes),
            key if key == self.0 => Ok(KeyKind::Text),
            key => Err(E::invalid_value(de::Unexpected::Str(key), &self)),
        }
    }
}

/// Reads the bytes of a link.
struct LinkBytes<T>(PhantomData<T>);

impl<'de, T: FromLeaf<'de>> de::DeserializeSeed<'de> for LinkBytes<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl<'de, T: FromLeaf<'de>> Visitor<'de> for LinkBytes<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_bytes<E: de::Error>(self, cid: &[u8]) -> Result<T, E> {
        T::read(cid).ok_or_else(|| E::invalid_value(de::Unexpected::Other("another link"), &self))
    }

    fn visit_borrowed_bytes<E: de::Error>(self, cid: &'de [u8]) -> Result<T, E> {
        let link = T::read_borrowed(cid);
        link.ok_or_else(|| E::invalid_value(de::Unexpected::Other("another link"), &self))
    }
}
