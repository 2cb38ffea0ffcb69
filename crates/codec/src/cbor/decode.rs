//! Decoding to values in an arena.

use super::Arena;
use super::error::DecodeError;
use super::item::ItemError;
use super::scan::{self, Entries, Sink};
use super::value::{Map, Value, WideInteger};
use crate::cid::CidRef;

/// Decodes exactly one canonical item. Containers are made in `arena`; text, bytes and links are
/// borrowed from `input`.
///
/// # Errors
/// If `input` is not one canonical item: the rule, and the offset of the item that broke it.
pub fn decode<'a>(input: &'a [u8], arena: &'a Arena) -> Result<Value<'a>, DecodeError> {
    let mut value = Value::Null;
    decode_into(input, arena, &mut value)?;
    Ok(value)
}

/// Like [`decode`], into `value`: for callers that store values inside something larger. A value that is
/// returned and then moved is copied through the stack, which costs some nanoseconds.
///
/// # Errors
/// As [`decode`]; the content of `value` is then unspecified.
#[inline]
pub fn decode_into<'a>(
    input: &'a [u8],
    arena: &'a Arena,
    value: &mut Value<'a>,
) -> Result<(), DecodeError> {
    scan::build(input, InArena(arena), value)
}

/// Decodes the canonical item at the start of `input`, and returns its length in bytes.
///
/// # Errors
/// If `input` does not begin with a canonical item.
pub fn decode_prefix<'a>(
    input: &'a [u8],
    arena: &'a Arena,
) -> Result<(Value<'a>, usize), DecodeError> {
    let mut value = Value::Null;
    let len = scan::build_prefix(input, InArena(arena), &mut value)?;
    Ok((value, len))
}

#[derive(Clone, Copy)]
struct InArena<'a>(&'a Arena);

impl<'a> Sink<'a> for InArena<'a> {
    type Slot = Value<'a>;

    #[inline]
    fn integer(self, slot: &mut Value<'a>, integer: i64) {
        *slot = Value::Integer(integer);
    }
    #[inline]
    fn wide_integer(self, slot: &mut Value<'a>, integer: WideInteger) {
        *slot = Value::WideInteger(integer);
    }
    #[inline]
    fn float(self, slot: &mut Value<'a>, float: f64) {
        *slot = Value::Float(float);
    }
    #[inline]
    fn boolean(self, slot: &mut Value<'a>, boolean: bool) {
        *slot = Value::Boolean(boolean);
    }
    #[inline]
    fn null(self, slot: &mut Value<'a>) {
        *slot = Value::Null;
    }
    #[inline]
    fn text(self, slot: &mut Value<'a>, text: &'a str) {
        *slot = Value::Text(text);
    }
    #[inline]
    fn bytes(self, slot: &mut Value<'a>, bytes: &'a [u8]) {
        *slot = Value::Bytes(bytes);
    }
    #[inline]
    fn link(self, slot: &mut Value<'a>, cid: CidRef<'a>) {
        *slot = Value::Link(cid);
    }
    #[inline]
    fn array(
        self,
        slot: &mut Value<'a>,
        count: usize,
        mut read: impl FnMut(usize, &mut Value<'a>) -> Result<(), ItemError>,
    ) -> Result<(), ItemError> {
        let items = self.0.alloc_slice_fill_copy(count, Value::Null);
        for (at, item) in items.iter_mut().enumerate() {
            read(at, item)?;
        }
        *slot = Value::Array(items);
        Ok(())
    }
    #[inline]
    fn map(
        self,
        slot: &mut Value<'a>,
        count: usize,
        entries: &mut Entries<'a, Self>,
    ) -> Result<(), ItemError> {
        let map = self.0.alloc_slice_fill_copy(count, ("", Value::Null));
        for (key, value) in &mut *map {
            *key = entries.next(value)?;
        }
        *slot = Value::Map(Map::from_canonical(map));
        Ok(())
    }
}
