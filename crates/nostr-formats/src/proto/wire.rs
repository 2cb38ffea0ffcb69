//! The wire format: keys, and the values that follow them.

use kernels::utf8;

use nostr::input::Input;
use nostr::{DecodeError, Reason};

/// The number and type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u32);

/// Wire type of the fields in use.
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

    /// The integer on the wire.
    #[inline]
    pub(super) const fn bits(self) -> u32 {
        self.0
    }
}

/// Reads a key; `None` at the end of the message.
#[inline(always)]
pub(super) fn key(input: &mut Input<'_>) -> Result<Option<Key>, DecodeError> {
    if input.rest().is_empty() {
        return Ok(None);
    }
    let start = *input;
    match u32::try_from(input.varint()?) {
        Ok(bits) if bits >= 8 => Ok(Some(Key(bits))),
        _ => Err(start.error(Reason::Expected("a field number"))),
    }
}

/// Counts the delimited fields at the start of `bytes` that have the key of the first, if that is one byte;
/// returns the number of fields and their length in bytes.
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

/// The end of the field at `at`, if the field has that key and is complete.
#[inline(always)]
fn field_end(bytes: &[u8], at: usize, key: Option<u8>) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let end = match rest {
        [first, len @ 0..0x80, ..] if Some(*first) == key => at + 2 + usize::from(*len),
        [first, low, high @ 0..0x80, ..] if Some(*first) == key => {
            at + 3 + (usize::from(*high) << 7 | usize::from(*low & 0x7f))
        }
        [first, after @ ..] if Some(*first) == key => {
            let mut input = Input::new(after);
            let len = len(&mut input).ok()?;
            at.checked_add(1 + input.offset())?.checked_add(len)?
        }
        _ => return None,
    };
    (end <= bytes.len()).then_some(end)
}

/// Reads the value of an integer field.
#[inline(always)]
pub(super) fn varint(key: Key, input: &mut Input<'_>) -> Result<u64, DecodeError> {
    check_type(Type::Varint, key, input, "an integer")?;
    input.varint()
}

/// Reads the value of a delimited field.
#[inline(always)]
pub(super) fn bytes<'a>(key: Key, input: &mut Input<'a>) -> Result<&'a [u8], DecodeError> {
    check_type(Type::Delimited, key, input, "bytes with their length")?;
    let len = len(input)?;
    input.take(len)
}

/// Reads the value of a text field.
#[inline(always)]
pub(super) fn text<'a>(key: Key, input: &mut Input<'a>) -> Result<&'a str, DecodeError> {
    let start = *input;
    utf8::from_utf8(bytes(key, input)?).ok_or_else(|| start.error(Reason::Utf8))
}

/// Reads the value of a message field.
#[inline(always)]
pub(super) fn message<'a>(key: Key, input: &mut Input<'a>) -> Result<Input<'a>, DecodeError> {
    check_type(Type::Delimited, key, input, "a message with its length")?;
    let len = len(input)?;
    input.part(len)
}

/// Skips the value of a field.
pub(super) fn skip(key: Key, input: &mut Input<'_>) -> Result<(), DecodeError> {
    match key.0 & 7 {
        0 => input.varint().map(drop),
        1 => input.take(8).map(drop),
        2 => bytes(key, input).map(drop),
        5 => input.take(4).map(drop),
        _ => Err(input.error(Reason::Expected("a field that is not a group"))),
    }
}

#[inline(always)]
fn len(input: &mut Input<'_>) -> Result<usize, DecodeError> {
    Ok(usize::try_from(input.varint()?).unwrap_or(usize::MAX))
}

#[inline(always)]
fn check_type(
    kind: Type,
    key: Key,
    input: &Input<'_>,
    expected: &'static str,
) -> Result<(), DecodeError> {
    if key.0 & 7 == kind as u32 { Ok(()) } else { Err(input.error(Reason::Expected(expected))) }
}
