//! The serializer: content becomes a value in an arena.

use std::fmt::Display;
use std::mem;

use bumpalo::collections::Vec as ArenaVec;
use serde::ser::{self, Serialize, Serializer};

use super::leaves::{self, BYTES, LINK};
use super::{SerdeError, SerdeFault};
use crate::cbor::{Arena, EncodeError, MAX_DEPTH, Map, Value, WideInteger};
use crate::cid::{Cid, CidRef};

/// Makes a value inside `depth` containers.
#[derive(Clone, Copy)]
pub(super) struct ToValue<'a> {
    arena: &'a Arena,
    depth: u32,
}

impl<'a> ToValue<'a> {
    pub(super) fn new(arena: &'a Arena) -> Self {
        Self { arena, depth: 0 }
    }

    /// The serializer for the content of a container here.
    fn inside(self) -> Result<Self, SerdeError> {
        if self.depth < MAX_DEPTH {
            return Ok(Self { depth: self.depth + 1, ..self });
        }
        Err(SerdeError::new(SerdeFault::Encode(EncodeError::Depth)))
    }

    fn array(self, len: Option<usize>) -> Result<Items<'a>, SerdeError> {
        let inside = self.inside()?;
        let items = ArenaVec::with_capacity_in(capacity(len), self.arena);
        Ok(Items { inside, items, variant: None })
    }

    fn map(self, len: Option<usize>) -> Result<Entries<'a>, SerdeError> {
        let inside = self.inside()?;
        let entries = ArenaVec::with_capacity_in(capacity(len), self.arena);
        Ok(Entries { inside, entries, key: "", variant: None })
    }

    fn text(self, text: &str) -> Value<'a> {
        Value::Text(self.arena.alloc_str(text))
    }

    /// The map of one entry that holds the content of a variant.
    fn variant(self, name: &'static str, content: Value<'a>) -> Value<'a> {
        Value::Map(Map::from_canonical(self.arena.alloc([(name, content)])))
    }

    fn link(self, content: Value<'a>) -> Result<Value<'a>, SerdeError> {
        let cid = match content {
            Value::Bytes(bytes) => CidRef::from_bytes(bytes),
            // Content that serde buffered was serialized as for a human-readable format.
            _ => content.get(LINK).and_then(Value::as_text).and_then(|text| {
                let cid: Cid = text.parse().ok()?;
                Some(self.arena.alloc(cid).as_cid_ref())
            }),
        };
        cid.map(Value::Link).ok_or_else(|| ser::Error::custom("not a content identifier"))
    }

    fn bytes(self, content: Value<'a>) -> Result<Value<'a>, SerdeError> {
        let bytes = match content {
            Value::Bytes(bytes) => Some(bytes),
            _ => content.get(BYTES).and_then(Value::as_text).and_then(|text| {
                let bytes = leaves::decode_base64(text).ok()?;
                Some(&*self.arena.alloc_slice_copy(&bytes))
            }),
        };
        bytes.map(Value::Bytes).ok_or_else(|| ser::Error::custom("not a byte string"))
    }
}

impl<'a> Serializer for ToValue<'a> {
    type Ok = Value<'a>;
    type Error = SerdeError;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Items<'a>;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Entries<'a>;
    type SerializeStructVariant = Entries<'a>;

    fn serialize_bool(self, boolean: bool) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Boolean(boolean))
    }
    fn serialize_i8(self, integer: i8) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Integer(integer.into()))
    }
    fn serialize_i16(self, integer: i16) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Integer(integer.into()))
    }
    fn serialize_i32(self, integer: i32) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Integer(integer.into()))
    }
    fn serialize_i64(self, integer: i64) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Integer(integer))
    }
    fn serialize_i128(self, integer: i128) -> Result<Value<'a>, SerdeError> {
        if let Ok(number) = u64::try_from(integer) {
            return self.serialize_u64(number);
        }
        let number = u64::try_from(-1 - integer);
        let number = number.map_err(|_| SerdeError::new(SerdeFault::IntegerRange))?;
        let wide = Value::WideInteger(WideInteger::Negative(number));
        Ok(i64::try_from(number).map_or(wide, |number| Value::Integer(-1 - number)))
    }
    fn serialize_u8(self, number: u8) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Integer(number.into()))
    }
    fn serialize_u16(self, number: u16) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Integer(number.into()))
    }
    fn serialize_u32(self, number: u32) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Integer(number.into()))
    }
    fn serialize_u64(self, number: u64) -> Result<Value<'a>, SerdeError> {
        let wide = Value::WideInteger(WideInteger::Positive(number));
        Ok(i64::try_from(number).map_or(wide, Value::Integer))
    }
    fn serialize_u128(self, number: u128) -> Result<Value<'a>, SerdeError> {
        match u64::try_from(number) {
            Ok(number) => self.serialize_u64(number),
            Err(_) => Err(SerdeError::new(SerdeFault::IntegerRange)),
        }
    }
    fn serialize_f32(self, float: f32) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Float(float.into()))
    }
    fn serialize_f64(self, float: f64) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Float(float))
    }
    fn serialize_char(self, character: char) -> Result<Value<'a>, SerdeError> {
        Ok(self.text(character.encode_utf8(&mut [0; 4])))
    }
    fn serialize_str(self, text: &str) -> Result<Value<'a>, SerdeError> {
        Ok(self.text(text))
    }
    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Bytes(self.arena.alloc_slice_copy(bytes)))
    }
    fn serialize_none(self) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Null)
    }
    fn serialize_some<T: Serialize + ?Sized>(self, content: &T) -> Result<Value<'a>, SerdeError> {
        content.serialize(self)
    }
    fn serialize_unit(self) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Null)
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Null)
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value<'a>, SerdeError> {
        Ok(Value::Text(variant))
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        content: &T,
    ) -> Result<Value<'a>, SerdeError> {
        let content = content.serialize(self)?;
        match name {
            LINK => self.link(content),
            BYTES => self.bytes(content),
            _ => Ok(content),
        }
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        content: &T,
    ) -> Result<Value<'a>, SerdeError> {
        let content = content.serialize(self.inside()?).map_err(|error| error.within(variant))?;
        Ok(self.variant(variant, content))
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Items<'a>, SerdeError> {
        self.array(len)
    }
    fn serialize_tuple(self, len: usize) -> Result<Items<'a>, SerdeError> {
        self.array(Some(len))
    }
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Items<'a>, SerdeError> {
        self.array(Some(len))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Items<'a>, SerdeError> {
        Ok(Items { variant: Some(variant), ..self.inside()?.array(Some(len))? })
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Entries<'a>, SerdeError> {
        self.map(len)
    }
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Entries<'a>, SerdeError> {
        self.map(Some(len))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Entries<'a>, SerdeError> {
        Ok(Entries { variant: Some(variant), ..self.inside()?.map(Some(len))? })
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The capacity to reserve for a container whose length the type states, but does not have to keep to.
fn capacity(len: Option<usize>) -> usize {
    len.unwrap_or_default().min(1_024)
}

/// The error, seen from the container: the step to the item, and the variant around it.
#[cold]
fn locate(error: SerdeError, step: impl Display, variant: Option<&'static str>) -> SerdeError {
    let error = error.within(step);
    match variant {
        Some(variant) => error.within(variant),
        None => error,
    }
}

/// An array in the making.
pub(super) struct Items<'a> {
    inside: ToValue<'a>,
    items: ArenaVec<'a, Value<'a>>,
    variant: Option<&'static str>,
}

impl<'a> Items<'a> {
    fn push<T: Serialize + ?Sized>(&mut self, content: &T) -> Result<(), SerdeError> {
        let item = content.serialize(self.inside);
        self.items.push(item.map_err(|error| locate(error, self.items.len(), self.variant))?);
        Ok(())
    }

    fn finish(self) -> Value<'a> {
        let array = Value::Array(self.items.into_bump_slice());
        self.variant.map_or(array, |variant| self.inside.variant(variant, array))
    }
}

/// A map in the making.
pub(super) struct Entries<'a> {
    inside: ToValue<'a>,
    entries: ArenaVec<'a, (&'a str, Value<'a>)>,
    /// The key of the next value.
    key: &'a str,
    variant: Option<&'static str>,
}

impl<'a> Entries<'a> {
    fn push<T: Serialize + ?Sized>(&mut self, key: &'a str, content: &T) -> Result<(), SerdeError> {
        let value = content.serialize(self.inside);
        let value = value.map_err(|error| locate(error, key, self.variant))?;
        self.entries.push((key, value));
        Ok(())
    }

    fn finish(self) -> Result<Value<'a>, SerdeError> {
        let map = Map::from_entries(self.entries.into_bump_slice_mut()).map_err(|duplicate| {
            SerdeError::new(SerdeFault::DuplicateKey(duplicate.0.to_owned()))
        })?;
        let map = Value::Map(map);
        Ok(self.variant.map_or(map, |variant| self.inside.variant(variant, map)))
    }
}

macro_rules! array_forms {
    ($($form:ident :: $push:ident),*) => {$(
        impl<'a> ser::$form for Items<'a> {
            type Ok = Value<'a>;
            type Error = SerdeError;
            fn $push<T: Serialize + ?Sized>(&mut self, content: &T) -> Result<(), SerdeError> {
                self.push(content)
            }
            fn end(self) -> Result<Value<'a>, SerdeError> {
                Ok(self.finish())
            }
        }
    )*};
}

array_forms!(
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field
);

macro_rules! struct_forms {
    ($($form:ident),*) => {$(
        impl<'a> ser::$form for Entries<'a> {
            type Ok = Value<'a>;
            type Error = SerdeError;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                content: &T,
            ) -> Result<(), SerdeError> {
                self.push(key, content)
            }
            fn end(self) -> Result<Value<'a>, SerdeError> {
                self.finish()
            }
        }
    )*};
}

struct_forms!(SerializeStruct, SerializeStructVariant);

impl<'a> ser::SerializeMap for Entries<'a> {
    type Ok = Value<'a>;
    type Error = SerdeError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), SerdeError> {
        match key.serialize(self.inside)? {
            Value::Text(key) => self.key = key,
            _ => return Err(SerdeError::new(SerdeFault::KeyNotText)),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, content: &T) -> Result<(), SerdeError> {
        let key = mem::take(&mut self.key);
        self.push(key, content)
    }

    fn end(self) -> Result<Value<'a>, SerdeError> {
        self.finish()
    }
}
