//! One deserializer over two sources: decoded values, and bytes that are checked as they are read.

use std::iter;
use std::slice;

use serde::de::value::{
    BorrowedBytesDeserializer, BorrowedStrDeserializer, MapAccessDeserializer, MapDeserializer,
};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::leaves::{BYTES, LINK, LINK_BYTES};
use super::{SerdeError, SerdeFault};
use crate::cbor::item::{self, ItemError, KeyOrder, Read, Simple};
use crate::cbor::{DecodeError, EncodeError, MAX_DEPTH, Reason, Value, WideInteger, scan};
use crate::cid::CidRef;

/// As [`super::from_value`].
pub(super) fn from_value<'de, T: Deserialize<'de>>(value: &Value<'de>) -> Result<T, SerdeError> {
    T::deserialize(Typed(ValueSource { value: *value, depth: 0 }))
}

/// As [`super::from_slice`]. It may report another fault than the first.
pub(super) fn from_slice<'de, T: Deserialize<'de>>(input: &'de [u8]) -> Result<T, SerdeError> {
    let mut cursor = Cursor { rest: input, len: input.len() };
    let content = T::deserialize(Typed(ByteSource { cursor: &mut cursor, depth: 0 }))?;
    match cursor.rest {
        [] => Ok(content),
        rest => cursor.result(item::fail(rest, Reason::TrailingBytes)),
    }
}

/// An item about to be read.
trait Source<'de>: Sized {
    type Container: Container<'de>;

    fn open(self) -> Result<Item<'de, Self::Container>, SerdeError>;
    /// Consumes a null, if the item is one.
    fn take_null(&mut self) -> bool;
    fn skip(self) -> Result<(), SerdeError>;
}

/// The item that was found. A container is yet to be read.
enum Item<'de, C> {
    Null,
    Boolean(bool),
    Integer(i64),
    WideInteger(WideInteger),
    Float(f64),
    Text(&'de str),
    Bytes(&'de [u8]),
    Link(CidRef<'de>),
    Array(C),
    Map(C),
}

/// The items of an array, or the entries of a map, that are yet to be read.
trait Container<'de> {
    type Child<'c>: Source<'de>
    where
        Self: 'c;

    /// The number of items or values that are yet to be read.
    fn left(&self) -> usize;
    /// The next key. Called before every [`child`](Self::child) of a map.
    fn key(&mut self) -> Result<&'de str, SerdeError>;
    /// The next item or value. Called at most [`left`](Self::left) times.
    fn child(&mut self) -> Result<Self::Child<'_>, SerdeError>;
}

/// The deserializer of an item.
struct Typed<S>(S);

impl<'de, S: Source<'de>> Deserializer<'de> for Typed<S> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        match self.0.open()? {
            Item::Null => visitor.visit_unit(),
            Item::Boolean(boolean) => visitor.visit_bool(boolean),
            Item::Integer(integer) => visitor.visit_i64(integer),
            Item::WideInteger(WideInteger::Positive(number)) => visitor.visit_u64(number),
            Item::WideInteger(integer) => visitor.visit_i128(integer.get()),
            Item::Float(float) => visitor.visit_f64(float),
            Item::Text(text) => visitor.visit_borrowed_str(text),
            Item::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Item::Link(cid) => visitor.visit_newtype_struct(Link(cid)),
            Item::Array(items) => Access::new(items).read(|items| visitor.visit_seq(items)),
            Item::Map(entries) => Access::new(entries).read(|entries| visitor.visit_map(entries)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, SerdeError> {
        if self.0.take_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        if name != LINK && name != BYTES {
            return visitor.visit_newtype_struct(self);
        }
        match self.0.open()? {
            Item::Link(cid) if name == LINK => visitor.visit_newtype_struct(Link(cid)),
            Item::Bytes(bytes) if name == BYTES => visitor.visit_borrowed_bytes(bytes),
            other => Err(de::Error::invalid_type(other.unexpected(), &visitor)),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SerdeError> {
        match self.0.open()? {
            Item::Text(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Item::Map(entries) if entries.left() == 1 => Access::new(entries)
                .read(|entries| visitor.visit_enum(MapAccessDeserializer::new(entries))),
            other => Err(de::Error::invalid_type(other.unexpected(), &VARIANT)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        self.0.skip()?;
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

const VARIANT: &str = "the name of a variant, or a map of one variant";

impl<C> Item<'_, C> {
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Item::Null => Unexpected::Unit,
            Item::Boolean(boolean) => Unexpected::Bool(*boolean),
            Item::Integer(integer) => Unexpected::Signed(*integer),
            Item::WideInteger(_) => Unexpected::Other("an integer beyond 64 bits with a sign"),
            Item::Float(float) => Unexpected::Float(*float),
            Item::Text(text) => Unexpected::Str(text),
            Item::Bytes(bytes) => Unexpected::Bytes(bytes),
            Item::Link(_) => Unexpected::Other("a link"),
            Item::Array(_) => Unexpected::Seq,
            Item::Map(_) => Unexpected::Map,
        }
    }
}

/// A container as serde reads it, with the path to the current item.
struct Access<'de, C> {
    container: C,
    len: usize,
    /// The last key, of a map.
    key: &'de str,
}

impl<'de, C: Container<'de>> Access<'de, C> {
    fn new(container: C) -> Self {
        Self { len: container.left(), container, key: "" }
    }

    /// Lets `visit` read the container, all of it.
    fn read<T>(
        mut self,
        visit: impl FnOnce(&mut Self) -> Result<T, SerdeError>,
    ) -> Result<T, SerdeError> {
        let content = visit(&mut self)?;
        match self.container.left() {
            0 => Ok(content),
            left => {
                let expected = format!("{} items", self.len - left);
                Err(de::Error::invalid_length(self.len, &expected.as_str()))
            }
        }
    }
}

impl<'de, C: Container<'de>> de::SeqAccess<'de> for Access<'de, C> {
    type Error = SerdeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SerdeError> {
        let left = self.container.left();
        if left == 0 {
            return Ok(None);
        }
        let content = seed.deserialize(Typed(self.container.child()?));
        content.map(Some).map_err(|error| error.within(self.len - left))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.container.left())
    }
}

impl<'de, C: Container<'de>> de::MapAccess<'de> for Access<'de, C> {
    type Error = SerdeError;

    fn next_key_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SerdeError> {
        if self.container.left() == 0 {
            return Ok(None);
        }
        self.key = self.container.key()?;
        seed.deserialize(BorrowedStrDeserializer::new(self.key)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, SerdeError> {
        let content = seed.deserialize(Typed(self.container.child()?));
        content.map_err(|error| error.within(self.key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.container.left())
    }
}

/// A link inside its newtype: a map of one key that no other map has, see [`LINK_BYTES`].
struct Link<'de>(CidRef<'de>);

impl<'de> Deserializer<'de> for Link<'de> {
    type Error = SerdeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SerdeError> {
        let cid = BorrowedBytesDeserializer::new(self.0.as_bytes());
        visitor.visit_map(MapDeserializer::new(iter::once((LINK_BYTES, cid))))
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

/// A value inside `depth` containers.
struct ValueSource<'de> {
    value: Value<'de>,
    depth: u32,
}

impl<'de> Source<'de> for ValueSource<'de> {
    type Container = ValueContainer<'de>;

    fn open(self) -> Result<Item<'de, ValueContainer<'de>>, SerdeError> {
        let inside = |children| {
            check_depth(self.depth)?;
            Ok(ValueContainer { children, depth: self.depth + 1 })
        };
        Ok(match self.value {
            Value::Null => Item::Null,
            Value::Boolean(boolean) => Item::Boolean(boolean),
            Value::Integer(integer) => Item::Integer(integer),
            Value::WideInteger(integer) => Item::WideInteger(integer),
            Value::Float(float) => Item::Float(float),
            Value::Text(text) => Item::Text(text),
            Value::Bytes(bytes) => Item::Bytes(bytes),
            Value::Link(cid) => Item::Link(cid),
            Value::Array(items) => Item::Array(inside(Children::Items(items.iter()))?),
            Value::Map(map) => Item::Map(inside(Children::Entries(map.iter()))?),
        })
    }

    fn take_null(&mut self) -> bool {
        self.value == Value::Null
    }

    fn skip(self) -> Result<(), SerdeError> {
        Ok(())
    }
}

struct ValueContainer<'de> {
    children: Children<'de>,
    /// Containers around the children.
    depth: u32,
}

enum Children<'de> {
    Items(slice::Iter<'de, Value<'de>>),
    Entries(slice::Iter<'de, (&'de str, Value<'de>)>),
}

impl<'de> Container<'de> for ValueContainer<'de> {
    type Child<'c>
        = ValueSource<'de>
    where
        Self: 'c;

    fn left(&self) -> usize {
        match &self.children {
            Children::Items(items) => items.len(),
            Children::Entries(entries) => entries.len(),
        }
    }

    fn key(&mut self) -> Result<&'de str, SerdeError> {
        match &self.children {
            Children::Entries(entries) => entries.as_slice().first().map(|(key, _)| *key),
            Children::Items(_) => None,
        }
        .ok_or_else(out_of_turn)
    }

    fn child(&mut self) -> Result<ValueSource<'de>, SerdeError> {
        let value = match &mut self.children {
            Children::Items(items) => items.next().copied(),
            Children::Entries(entries) => entries.next().map(|(_, value)| *value),
        };
        Ok(ValueSource { value: value.ok_or_else(out_of_turn)?, depth: self.depth })
    }
}

/// The error of a `Visitor` that reads more items than there are.
#[cold]
fn out_of_turn() -> SerdeError {
    de::Error::custom("the type reads beyond the end of a container")
}

fn check_depth(depth: u32) -> Result<(), SerdeError> {
    if depth < MAX_DEPTH {
        return Ok(());
    }
    Err(SerdeError::new(SerdeFault::Encode(EncodeError::Depth)))
}

/// Input that is not yet read.
struct Cursor<'de> {
    rest: &'de [u8],
    /// The length of the whole input.
    len: usize,
}

impl<'de> Cursor<'de> {
    fn read<T>(&mut self, read: impl FnOnce(&'de [u8]) -> Read<'de, T>) -> Result<T, SerdeError> {
        let (content, rest) = self.result(read(self.rest))?;
        self.rest = rest;
        Ok(content)
    }

    fn result<T>(&self, read: Result<T, ItemError>) -> Result<T, SerdeError> {
        read.map_err(|error| {
            let error: DecodeError = error.within(self.len);
            SerdeError::new(SerdeFault::Decode(error))
        })
    }
}

/// The item at a cursor, inside `depth` containers.
struct ByteSource<'r, 'de> {
    cursor: &'r mut Cursor<'de>,
    depth: u32,
}

impl<'r, 'de> ByteSource<'r, 'de> {
    fn container(self, bytes_each: usize) -> Result<ByteContainer<'r, 'de>, SerdeError> {
        let Self { cursor, depth } = self;
        let rest = cursor.rest;
        let left = cursor.read(|rest| item::count(rest, bytes_each, 0))?;
        if depth == MAX_DEPTH {
            return cursor.result(item::fail(rest, Reason::Depth));
        }
        Ok(ByteContainer { cursor, keys: KeyOrder::new(), left, depth: depth + 1 })
    }
}

impl<'r, 'de> Source<'de> for ByteSource<'r, 'de> {
    type Container = ByteContainer<'r, 'de>;

    fn open(self) -> Result<Item<'de, ByteContainer<'r, 'de>>, SerdeError> {
        let kind = item::kind(self.cursor.rest);
        Ok(match kind {
            Some(item::TAG) => Item::Link(self.cursor.read(item::link)?),
            Some(item::BYTES) => Item::Bytes(self.cursor.read(item::bytes)?),
            Some(item::TEXT) => Item::Text(self.cursor.read(item::text)?),
            Some(item::ARRAY) => Item::Array(self.container(1)?),
            Some(item::MAP) => Item::Map(self.container(2)?),
            Some(item::SIMPLE) => match self.cursor.read(item::simple)? {
                Simple::Null => Item::Null,
                Simple::Boolean(boolean) => Item::Boolean(boolean),
                Simple::Float(float) => Item::Float(float),
            },
            kind => {
                let number = self.cursor.read(item::number)?;
                integer(number, kind == Some(item::NEGATIVE))
            }
        })
    }

    fn take_null(&mut self) -> bool {
        let rest = self.cursor.rest.strip_prefix(&[item::NULL]);
        rest.inspect(|rest| self.cursor.rest = rest).is_some()
    }

    fn skip(self) -> Result<(), SerdeError> {
        self.cursor.read(|rest| scan::skip(rest, self.depth).map(|rest| ((), rest)))
    }
}

fn integer<'de, C>(number: u64, is_negative: bool) -> Item<'de, C> {
    match (i64::try_from(number), is_negative) {
        (Ok(number), false) => Item::Integer(number),
        (Ok(number), true) => Item::Integer(-1 - number),
        (Err(_), false) => Item::WideInteger(WideInteger::Positive(number)),
        (Err(_), true) => Item::WideInteger(WideInteger::Negative(number)),
    }
}

struct ByteContainer<'r, 'de> {
    cursor: &'r mut Cursor<'de>,
    keys: KeyOrder<'de>,
    left: usize,
    /// Containers around the children.
    depth: u32,
}

impl<'de> Container<'de> for ByteContainer<'_, 'de> {
    type Child<'c>
        = ByteSource<'c, 'de>
    where
        Self: 'c;

    fn left(&self) -> usize {
        self.left
    }

    fn key(&mut self) -> Result<&'de str, SerdeError> {
        let keys = &mut self.keys;
        self.cursor.read(|rest| item::key(rest, keys))
    }

    fn child(&mut self) -> Result<ByteSource<'_, 'de>, SerdeError> {
        self.left = self.left.checked_sub(1).ok_or_else(out_of_turn)?;
        Ok(ByteSource { cursor: self.cursor, depth: self.depth })
    }
}
