//! Tags as counted lists, and the rule that stores hexadecimal text as bytes.
//!
//! A layout of this kind writes the number of tags, then per tag the number of values, then per value a head
//! (form and length) and its bytes.
//!
//! A value is stored as bytes if it is lower-case hexadecimal with an even number of digits, at least as many as
//! the format asks for. Other digits would not survive the round trip, so they stay text.

use std::marker::PhantomData;

use bumpalo::Bump;
use kernels::hex;

use nostr::input::Input;
use nostr::limits::Budget;
use nostr::{DecodeError, Reason, Tag, Value};

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As its text.
    Text,
    /// As the bytes that its digits encode.
    Bytes,
}

/// How a layout stores counts and heads.
pub(crate) trait TagLayout {
    /// Reads the number of tags that follow.
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError>;

    /// Reads the number of values that follow.
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError>;

    /// Reads the head of a value: its form, and its length in bytes.
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError>;

    /// Rejects a value that the layout must store otherwise.
    #[inline(always)]
    fn check(_: &Value<'_>) -> Result<(), Reason> {
        Ok(())
    }
}

/// Reads tags into `arena`.
#[inline(always)]
pub(super) fn read<'a, L: TagLayout>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let start = *input;
    let count = check_count(L::tag_count(input)?, start, *input)?;
    limits.check_tags(count, start.offset())?;
    Ok(arena.alloc_slice_try_fill_with(count, |_| read_tag::<L>(input, arena, limits))?)
}

#[inline(always)]
fn read_tag<'a, L: TagLayout>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Tag<'a>, DecodeError> {
    let start = *input;
    let count = check_count(L::value_count(input)?, start, *input)?;
    limits.check_tag_values(count, start.offset())?;
    let value = |_| {
        let start = input.offset();
        let value = read_value::<L>(input)?;
        limits.check_value(value.text_len(), start)?;
        Ok(value)
    };
    Ok(arena.alloc_slice_try_fill_with(count, value)?)
}

#[inline(always)]
fn read_value<'a, L: TagLayout>(input: &mut Input<'a>) -> Result<Value<'a>, DecodeError> {
    let start = *input;
    let value = match L::head(input)? {
        (Form::Text, len) => Value::Text(input.text(len)?),
        (Form::Bytes, len) => Value::Hex(input.take(len)?),
    };
    match L::check(&value) {
        Ok(()) => Ok(value),
        Err(reason) => Err(start.error(reason)),
    }
}

/// Checks a count, read between `start` and `rest`, of items of at least one byte each.
#[inline(always)]
fn check_count(count: u64, start: Input<'_>, rest: Input<'_>) -> Result<usize, DecodeError> {
    if count > rest.rest().len() as u64 {
        return Err(start.error(Reason::Truncated));
    }
    Ok(count as usize)
}

/// Tags read one by one, without an arena; ends after the first error.
#[derive(Clone, Debug)]
pub struct Tags<'a, L> {
    // None after an error.
    input: Option<Input<'a>>,
    left: u64,
    layout: PhantomData<L>,
}

#[expect(private_bounds, reason = "only the formats of this crate have such a layout")]
impl<'a, L: TagLayout> Tags<'a, L> {
    pub(super) fn new(mut input: Input<'a>) -> Result<Self, DecodeError> {
        let left = L::tag_count(&mut input)?;
        Ok(Self { input: Some(input), left, layout: PhantomData })
    }
}

impl<'a, L: TagLayout> Iterator for Tags<'a, L> {
    type Item = Result<Values<'a, L>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut input = self.input.take()?;
        let values = split_values(&mut input);
        self.input = values.is_ok().then_some(input);
        Some(values)
    }
}

/// The values of a tag, read one by one; ends after the first error.
#[derive(Clone, Debug)]
pub struct Values<'a, L> {
    // None after an error.
    input: Option<Input<'a>>,
    left: u64,
    layout: PhantomData<L>,
}

/// The values of the tag that follows; `input` skips the tag.
fn split_values<'a, L: TagLayout>(input: &mut Input<'a>) -> Result<Values<'a, L>, DecodeError> {
    let left = L::value_count(input)?;
    let values = Values { input: Some(*input), left, layout: PhantomData };
    for _ in 0..left {
        let (_, len) = L::head(input)?;
        input.take(len)?;
    }
    Ok(values)
}

impl<'a, L: TagLayout> Iterator for Values<'a, L> {
    type Item = Result<Value<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut input = self.input.take()?;
        let value = read_value::<L>(&mut input);
        self.input = value.is_ok().then_some(input);
        Some(value)
    }
}

/// Appends `value` in the form that its text allows, after the head that `head` appends for the form and the
/// length in bytes.
#[inline(always)]
pub(super) fn write_value(
    value: &Value<'_>,
    min_digits: usize,
    out: &mut Vec<u8>,
    head: impl Fn(Form, usize, &mut Vec<u8>),
) {
    match value {
        Value::Text(text) => write_text(text.as_bytes(), min_digits, out, head),
        Value::Hex(bytes) if 2 * bytes.len() >= min_digits => {
            head(Form::Bytes, bytes.len(), out);
            out.extend_from_slice(bytes);
        }
        Value::Hex(bytes) => {
            head(Form::Text, 2 * bytes.len(), out);
            hex::encode_into(bytes, out);
        }
    }
}

/// Appends `text` as [`write_value`] does.
#[inline(always)]
pub(super) fn write_text(
    text: &[u8],
    min_digits: usize,
    out: &mut Vec<u8>,
    head: impl Fn(Form, usize, &mut Vec<u8>),
) {
    if may_be_digits(text, min_digits) && write_bytes(text, out, &head) {
        return;
    }
    head(Form::Text, text.len(), out);
    match text {
        // Tag names, half of all values: one store instead of a call to copy.
        [byte] => out.push(*byte),
        _ => out.extend_from_slice(text),
    }
}

/// Appends the bytes that `digits` encode; `false`, with nothing appended, if they are not digits.
#[inline(always)]
fn write_bytes(digits: &[u8], out: &mut Vec<u8>, head: impl Fn(Form, usize, &mut Vec<u8>)) -> bool {
    if digits.len() == 64 {
        // Ids and keys, which hold most digits: their length is known at compile time.
        let mut bytes = [0; 32];
        let is_hex = hex::decode(digits, &mut bytes);
        if is_hex {
            head(Form::Bytes, 32, out);
            out.extend_from_slice(&bytes);
        }
        return is_hex;
    }
    let start = out.len();
    head(Form::Bytes, digits.len() / 2, out);
    let is_hex = hex::decode_into(digits, out);
    if !is_hex {
        out.truncate(start);
    }
    is_hex
}

/// Rejects a value in a form that [`write_value`] would not choose for it.
#[inline(always)]
pub(super) fn check_form(value: &Value<'_>, min_digits: usize) -> Result<(), Reason> {
    match value {
        Value::Text(text) if is_digits(text.as_bytes(), min_digits) => {
            Err(Reason::NotCanonical("digits must be stored as bytes"))
        }
        Value::Hex(bytes) if 2 * bytes.len() < min_digits => {
            Err(Reason::NotCanonical("bytes must be stored as digits"))
        }
        _ => Ok(()),
    }
}

#[inline(always)]
fn is_digits(text: &[u8], min_digits: usize) -> bool {
    may_be_digits(text, min_digits) && hex::is_lower(text)
}

/// A quick check of length, first and last byte that rules out most other text.
#[inline(always)]
fn may_be_digits(text: &[u8], min_digits: usize) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() >= min_digits
        && text.len().is_multiple_of(2)
        && text.first().is_some_and(is_digit)
        && text.last().is_some_and(is_digit)
}

/// Minimum number of digits that most formats store as bytes.
pub(super) const MIN_DIGITS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn form(value: Value<'_>, min_digits: usize) -> (Form, Vec<u8>) {
        let mut out = Vec::new();
        write_value(&value, min_digits, &mut out, |form, len, out| {
            out.extend([u8::from(form == Form::Bytes), len as u8]);
        });
        let form = if out[0] == 1 { Form::Bytes } else { Form::Text };
        assert_eq!(usize::from(out[1]), out.len() - 2);
        (form, out.split_off(2))
    }

    #[test]
    fn only_enough_lower_case_pairs_of_digits_become_bytes() {
        assert_eq!(form(Value::Text("cafebabe"), 8), (Form::Bytes, vec![0xca, 0xfe, 0xba, 0xbe]));
        assert_eq!(form(Value::Hex(&[0xca, 0xfe]), 2), (Form::Bytes, vec![0xca, 0xfe]));
        assert_eq!(form(Value::Hex(&[0xca, 0xfe]), 8), (Form::Text, b"cafe".to_vec()));
        assert_eq!(form(Value::Hex(&[]), 2), (Form::Text, vec![]));
        for text in
            ["", "cafe", "cafebab", "CAFEBABE", "cafEbabe", "cafe-abe", "cafebabg", "gafebabe"]
        {
            assert_eq!(form(Value::Text(text), 8), (Form::Text, text.into()), "{text}");
            assert!(!is_digits(text.as_bytes(), 8), "{text}");
        }
        assert!(is_digits(b"cafebabe", 8));
    }
}
