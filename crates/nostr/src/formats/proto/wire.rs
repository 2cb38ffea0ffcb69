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
#[inline(always)]
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

/// How many fields with lengths and with the key of the first, in one byte, follow one another from the
/// start of `bytes`, and how many bytes they take.
#[inline]
pub(super) fn run(bytes: &[u8]) -> (usize, usize) {
    let (mut count, mut end) = (0, 0);
    let first = bytes.first().copied().filter(|key| *key < 0x80 && key & 7 == 2);
    while let Some(next) = field_end(bytes, end, first) {
        count += 1;
        end = next;
    }
    (count, end)
}

/// Where the field at `at` ends, if it has that key and is whole.
#[inline(always)]
fn field_end(bytes: &[u8], at: usize, key: Option<u8>) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let end = match rest {
        [first, len @ 0..0x80, ..] if Some(*first) == key => at + 2 + usize::from(*len),
        [first, low, high @ 0..0x80, ..] if Some(*first) == key => {
            at + 3 + (usize::from(*high) << 7 | usize::from(*low & 0x7f))
        }
        [first, behind @ ..] if Some(*first) == key => {
            let mut input = Input::new(behind);
            let len = len(&mut input).ok()?;
            at.checked_add(1 + input.offset())?.checked_add(len)?
        }
        _ => return None,
    };
    (end <= bytes.len()).then_some(end)
}

/// The integer of a field that is one.
#[inline(always)]
pub(super) fn varint(key: Key, input: &mut Input<'_>) -> Result<u64, DecodeError> {
    must_be(Type::Varint, key, input, "an integer")?;
    input.varint()
}

/// The bytes of a field that has some.
#[inline(always)]
pub(super) fn bytes<'a>(key: Key, input: &mut Input<'a>) -> Result<&'a [u8], DecodeError> {
    must_be(Type::Delimited, key, input, "bytes with their length")?;
    let len = len(input)?;
    input.take(len)
}

/// The message of a field that is one.
#[inline(always)]
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

#[inline(always)]
fn len(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    Ok(usize::try_from(input.varint()?).unwrap_or(usize::MAX))
}

#[inline(always)]
fn must_be(
    kind: Type,
    key: Key,
    input: &Input<'_>,
    expected: &'static str,
) -> Result<(), DecodeError> {
    if key.0 & 7 == kind as u32 { Ok(()) } else { Err(input.fault(Reason::Expected(expected))) }
}
