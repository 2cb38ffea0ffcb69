//! Building values in an arena while scanning.

use bumpalo::Bump;

use super::error::{DecodeError, Reason};
use super::reader::{Reader, fail};
use super::scan::{Place, Sink, item};
use super::value::{Map, Value, WideInteger};
use crate::cid::CidRef;

/// Decodes exactly one canonical item. Containers are made in `arena`; text, bytes and links are
/// borrowed from `input`.
///
/// # Errors
/// If `input` is not one canonical item: the rule, and the offset of the item that broke it.
pub fn decode<'a>(input: &'a [u8], arena: &'a Bump) -> Result<Value<'a>, DecodeError> {
    match decode_prefix(input, arena)? {
        (value, len) if len == input.len() => Ok(value),
        (_, len) => fail(len, Reason::TrailingBytes),
    }
}

/// Decodes the canonical item at the start of `input`, and answers its length in bytes.
///
/// # Errors
/// If `input` does not begin with a canonical item.
pub fn decode_prefix<'a>(
    input: &'a [u8],
    arena: &'a Bump,
) -> Result<(Value<'a>, usize), DecodeError> {
    let mut reader = Reader::new(input);
    let value = item(&mut reader, InArena(arena), Place::TOP)?;
    Ok((value, reader.offset()))
}

#[derive(Clone, Copy)]
struct InArena<'a>(&'a Bump);

impl<'a> Sink<'a> for InArena<'a> {
    type Item = Value<'a>;

    #[inline]
    fn integer(self, integer: i64) -> Value<'a> {
        Value::Integer(integer)
    }
    #[inline]
    fn wide_integer(self, integer: WideInteger) -> Value<'a> {
        Value::WideInteger(integer)
    }
    #[inline]
    fn float(self, float: f64) -> Value<'a> {
        Value::Float(float)
    }
    #[inline]
    fn boolean(self, boolean: bool) -> Value<'a> {
        Value::Boolean(boolean)
    }
    #[inline]
    fn null(self) -> Value<'a> {
        Value::Null
    }
    #[inline]
    fn text(self, text: &'a str) -> Value<'a> {
        Value::Text(text)
    }
    #[inline]
    fn bytes(self, bytes: &'a [u8]) -> Value<'a> {
        Value::Bytes(bytes)
    }
    #[inline]
    fn link(self, cid: CidRef<'a>) -> Value<'a> {
        Value::Link(cid)
    }
    #[inline]
    fn array(
        self,
        count: usize,
        next: impl FnMut(usize) -> Result<Value<'a>, DecodeError>,
    ) -> Result<Value<'a>, DecodeError> {
        Ok(Value::Array(self.0.alloc_slice_try_fill_with(count, next)?))
    }
    #[inline]
    fn map(
        self,
        count: usize,
        next: impl FnMut(usize) -> Result<(&'a str, Value<'a>), DecodeError>,
    ) -> Result<Value<'a>, DecodeError> {
        Ok(Value::Map(Map::from_canonical(self.0.alloc_slice_try_fill_with(count, next)?)))
    }
}
