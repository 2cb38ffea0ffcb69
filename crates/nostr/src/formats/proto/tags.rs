//! Which tags does a message have, and which values a tag?

use kernels::utf8;

use super::reader::{once, text};
use super::*;
use crate::gather::Gather;
use crate::{Field, Reason, Tag, Value};

/// The tags as they come in.
#[derive(Default)]
pub(super) struct Tags<'a> {
    /// Those that followed one another, if no others came.
    together: &'a [Tag<'a>],
    /// All, if other fields came between them.
    apart: Option<BumpVec<'a, Tag<'a>>>,
}

impl<'a> Tags<'a> {
    /// Reads the tags that follow one another from here, or the first of them; there is one at least.
    #[inline]
    pub(super) fn read(
        &mut self,
        schema: Schema,
        input: &mut Input<'a>,
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<(), DecodeError> {
        let start = input.offset();
        if self.together.is_empty() && self.apart.is_none() {
            self.together = together(schema, input, arena, limits)?;
            if !self.together.is_empty() {
                return Ok(());
            }
        }
        let all = || BumpVec::from_iter_in(self.together.iter().copied(), arena);
        let tags = self.apart.get_or_insert_with(all);
        tags.push(next_tag(schema, input, arena, limits)?);
        limits.hold_tags(tags.len(), start)
    }

    pub(super) fn finish(self) -> &'a [Tag<'a>] {
        self.apart.map_or(self.together, BumpVec::into_bump_slice)
    }
}

/// The tags that follow one another from here; none, and nothing is read, if the first is not whole.
#[inline]
fn together<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Tag<'a>], DecodeError> {
    if schema != Schema::BinaryHex
        && let Some((tags, len)) = plain_tags::read(input.rest(), arena, limits)
    {
        input.take(len)?;
        return Ok(tags);
    }
    together_in_any_way(schema, input, arena, limits)
}

/// The same, whatever their values are.
pub(super) fn together_in_any_way<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let (count, _) = wire::run(input.rest());
    limits.hold_tags(count, input.offset())?;
    Ok(arena.alloc_slice_try_fill_with(count, |_| next_tag(schema, input, arena, limits))?)
}

fn next_tag<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Tag<'a>, DecodeError> {
    let key = wire::key(input)?.ok_or_else(|| input.fault(Reason::Truncated))?;
    tag(schema, wire::message(key, input)?, arena, limits)
}

/// The values of a tag: most are all in one list, one behind the other, and can be counted first.
#[inline(always)]
fn tag<'a>(
    schema: Schema,
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Tag<'a>, DecodeError> {
    let (count, len) = wire::run(input.rest());
    if len < input.rest().len() || !starts_with_value(schema, input) {
        return mixed_tag(schema, input, arena, limits);
    }
    limits.hold_tag_values(count, input.offset())?;
    let mut list = None;
    let value = |_| {
        let value = held_value(schema, &mut input, &mut list, limits)?;
        value.ok_or_else(|| input.fault(Reason::Expected("a value")))
    };
    Ok(arena.alloc_slice_try_fill_with(count, value)?)
}

/// Whether the first field, if there is one, is a value.
#[inline]
fn starts_with_value(schema: Schema, input: Input<'_>) -> bool {
    const FIRST: u8 = Key::new(VALUES, Type::Delimited).bits() as u8;
    const SECOND: u8 = Key::new(VALUES_V2, Type::Delimited).bits() as u8;
    match input.rest().first() {
        None | Some(&FIRST) => true,
        Some(&SECOND) => schema == Schema::BinaryHex,
        Some(_) => false,
    }
}

/// The values of a tag with fields between them that are not ours.
#[cold]
fn mixed_tag<'a>(
    schema: Schema,
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Tag<'a>, DecodeError> {
    let mut values = Gather::<Value<'a>, 8>::new(arena, Value::Text(""));
    let mut list = None;
    while let Some(value) = held_value(schema, &mut input, &mut list, limits)? {
        values.push(value);
        limits.hold_tag_values(values.len(), input.offset())?;
    }
    Ok(values.finish())
}

/// The next value; which list they must be in, the first of them says.
#[inline(always)]
fn held_value<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    list: &mut Option<u32>,
    limits: &Limits,
) -> Result<Option<Value<'a>>, DecodeError> {
    let start = input.offset();
    let Some((number, value)) = next_value(schema, input)? else { return Ok(None) };
    if *list.get_or_insert(number) != number {
        return Err(DecodeError::new(start, MIXED));
    }
    limits.hold_value(value.text_len(), start)?;
    Ok(Some(value))
}

/// The next value of a tag, and the number of the list that it is in.
#[inline(always)]
pub(super) fn next_value<'a>(
    schema: Schema,
    input: &mut Input<'a>,
) -> Result<Option<(u32, Value<'a>)>, DecodeError> {
    while let Some(key) = wire::key(input)? {
        match key.number() {
            VALUES => return Ok(Some((VALUES, Value::Text(text(key, input)?)))),
            VALUES_V2 if schema == Schema::BinaryHex => {
                let value = value_v2(wire::message(key, input)?)?;
                return Ok(Some((VALUES_V2, value)));
            }
            _ => wire::skip(key, input)?,
        }
    }
    Ok(None)
}

/// The value that all of `input` is: most have one field, in short.
#[inline(always)]
fn value_v2(input: Input<'_>) -> Result<Value<'_>, DecodeError> {
    const IS_TEXT: u8 = Key::new(TEXT, Type::Delimited).bits() as u8;
    const IS_HEX: u8 = Key::new(HEX, Type::Delimited).bits() as u8;
    match input.rest() {
        [IS_HEX, len @ 0..0x80, bytes @ ..] if bytes.len() == usize::from(*len) => {
            Ok(Value::Hex(bytes))
        }
        [IS_TEXT, len @ 0..0x80, bytes @ ..] if bytes.len() == usize::from(*len) => {
            let text = utf8::from_utf8(bytes).ok_or_else(|| input.fault(Reason::Utf8))?;
            Ok(Value::Text(text))
        }
        _ => long_value_v2(input),
    }
}

/// The value that all of `input` is, with a long length or other fields beside it.
fn long_value_v2(mut input: Input<'_>) -> Result<Value<'_>, DecodeError> {
    let start = input;
    let mut value = None;
    while let Some(key) = wire::key(&mut input)? {
        let at = input;
        let said = match key.number() {
            TEXT => Value::Text(text(key, &mut input)?),
            HEX => Value::Hex(wire::bytes(key, &mut input)?),
            _ => {
                wire::skip(key, &mut input)?;
                continue;
            }
        };
        once(&mut value, said, at, Field::Tags)?;
    }
    value.ok_or_else(|| start.fault(Reason::Expected("a value's text or bytes")))
}

const MIXED: Reason = Reason::NotCanonical("values of a tag in two lists");
