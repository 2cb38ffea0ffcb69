//! What fields follow one another on the wire?

use super::{DecodeError, Input};
use crate::Reason;

/// A field's number and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u32);

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Varint = 0,
    Delimited = 2,
}

impl Key {
    #[inline]
    pub(super) const fn new(number: u32, kind: Type) -> Self {
        Self(number << 3 | kind as u32)
    }

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0 >> 3
    }

    /// As it is written.
    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0
    }
}

/// The key that comes next, if the message goes on.
#[inline]
pub(super) fn key(input: &mut Input<'_>) -> Result<Option<Key>, DecodeError> {
    if input.rest().is_empty() {
        return Ok(None);
    }
    let start = *input;
    match u32::try_from(input.varint()?) {
        Ok(bits) if bits >= 8 => Ok(Some(Key(bits))),
        _ => Err(start.fault(Reason::Expected("a field's number"))),
    }
}

/// The integer of a field that is one.
#[inline]
pub(super) fn varint(key: Key, input: &mut Input<'_>) -> Result<u64, DecodeError> {
    must_be(Type::Varint, key, input, "an integer")?;
    input.varint()
}

/// The bytes of a field that has some.
#[inline]
pub(super) fn bytes<'a>(key: Key, input: &mut Input<'a>) -> Result<&'a [u8], DecodeError> {
    must_be(Type::Delimited, key, input, "bytes with their length")?;
    let len = len(input)?;
    input.take(len)
}

/// The message of a field that is one.
#[inline]
pub(super) fn message<'a>(key: Key, input: &mut Input<'a>) -> Result<Input<'a>, DecodeError> {
    must_be(Type::Delimited, key, input, "a message with its length")?;
    let len = len(input)?;
    input.part(len)
}

/// Passes over a field.
pub(super) fn skip(key: Key, input: &mut Input<'_>) -> Result<(), DecodeError> {
    match key.0 & 7 {
        0 => input.varint().map(drop),
        1 => input.take(8).map(drop),
        2 => bytes(key, input).map(drop),
        5 => input.take(4).map(drop),
        _ => Err(input.fault(Reason::Expected("a field that is no group"))),
    }
}

#[inline]
fn len(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    Ok(usize::try_from(input.varint()?).unwrap_or(usize::MAX))
}

#[inline]
fn must_be(
    kind: Type,
    key: Key,
    input: &Input<'_>,
    expected: &'static str,
) -> Result<(), DecodeError> {
    if key.0 & 7 == kind as u32 { Ok(()) } else { Err(input.fault(Reason::Expected(expected))) }
}
