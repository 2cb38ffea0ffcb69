//! Decoding of the tags of a message and of the values of a tag.
//!
//! Nearly all tags are text fields shorter than 128 bytes. Their keys and lengths are then ASCII, so that all tags
//! together are UTF-8 exactly if every text is: [`short_text_tags`] validates them at once and splits the text.
//! Other tags are read field by field.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::utf8;

use super::wire::{self, Key, Type};
use super::{HEX, Schema, TAGS, TEXT, VALUES, VALUES_V2};
use nostr::draft::set_once;
use nostr::input::Input;
use nostr::limits::Budget;
use nostr::{DecodeError, Field, Reason, Tag, Value};

/// The tags of a message that is being decoded.
#[derive(Default)]
pub(super) struct DecodedTags<'a> {
    /// The tags, while all are in one run of fields.
    run: &'a [Tag<'a>],
    /// All tags, if other fields stand between them.
    separate: Option<BumpVec<'a, Tag<'a>>>,
}

impl<'a> DecodedTags<'a> {
    /// Reads the run of tags that starts here, or its first tag.
    #[inline]
    pub(super) fn read(
        &mut self,
        schema: Schema,
        input: &mut Input<'a>,
        arena: &'a Bump,
        limits: &Budget<'_>,
    ) -> Result<(), DecodeError> {
        if self.run.is_empty() && self.separate.is_none() {
            self.run = read_run(schema, input, arena, limits)?;
            if !self.run.is_empty() {
                return Ok(());
            }
        }
        let tags = match &mut self.separate {
            Some(tags) => tags,
            None => self.separate.insert(separate_tags(self.run, *input, arena, limits)?),
        };
        tags.push(next_tag(schema, input, arena, limits)?);
        Ok(())
    }

    pub(super) fn finish(self) -> &'a [Tag<'a>] {
        self.separate.map_or(self.run, BumpVec::into_bump_slice)
    }
}

/// The tags of a run, and memory for all tags from `input` on, which other fields separate.
#[cold]
fn separate_tags<'a>(
    run: &[Tag<'a>],
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<BumpVec<'a, Tag<'a>>, DecodeError> {
    let (start, mut count) = (input.offset(), run.len());
    while let Some(key) = wire::key(&mut input)? {
        count += usize::from(key.number() == TAGS);
        wire::skip(key, &mut input)?;
    }
    limits.check_tags(count, start)?;
    let mut tags = BumpVec::with_capacity_in(count, arena);
    tags.extend_from_slice_copy(run);
    Ok(tags)
}

/// Reads a run of tags; empty, with nothing read, if the first tag is incomplete.
#[inline]
fn read_run<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<&'a [Tag<'a>], DecodeError> {
    if schema != Schema::BinaryHex
        && let Some((tags, len)) = short_text_tags(input.rest(), arena, limits)
    {
        input.take(len)?;
        return Ok(tags);
    }
    read_any_run(schema, input, arena, limits)
}

/// Reads a run of tags of any form.
pub(super) fn read_any_run<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let (count, _) = wire::run(input.rest());
    limits.check_tags(count, input.offset())?;
    Ok(arena.alloc_slice_try_fill_with(count, |_| next_tag(schema, input, arena, limits))?)
}

fn next_tag<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Tag<'a>, DecodeError> {
    let key = wire::key(input)?.ok_or_else(|| input.error(Reason::Truncated))?;
    read_tag(schema, wire::message(key, input)?, arena, limits)
}

/// Reads the values of a tag. In most tags they are one run of fields and can be counted first.
#[inline(always)]
fn read_tag<'a>(
    schema: Schema,
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Tag<'a>, DecodeError> {
    let (count, len) = wire::run(input.rest());
    if len < input.rest().len() || !starts_with_value(schema, input) {
        return mixed_tag(schema, input, arena, limits);
    }
    limits.check_tag_values(count, input.offset())?;
    let mut list = None;
    let value = |_| {
        let value = checked_value(schema, &mut input, &mut list, limits)?;
        value.ok_or_else(|| input.error(Reason::Expected("a value")))
    };
    Ok(arena.alloc_slice_try_fill_with(count, value)?)
}

/// Whether the first field, if any, is a value.
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

/// Reads the values of a tag with unknown fields between them.
#[cold]
fn mixed_tag<'a>(
    schema: Schema,
    mut input: Input<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Tag<'a>, DecodeError> {
    let start = input.offset();
    let mut rest = input;
    let mut count = 0;
    while next_value(schema, &mut rest)?.is_some() {
        count += 1;
    }
    limits.check_tag_values(count, start)?;
    let (mut values, mut list) = (BumpVec::with_capacity_in(count, arena), None);
    while let Some(value) = checked_value(schema, &mut input, &mut list, limits)? {
        values.push(value);
    }
    Ok(values.into_bump_slice())
}

/// Reads a value, which must be in the same list as the first value of the tag.
#[inline(always)]
fn checked_value<'a>(
    schema: Schema,
    input: &mut Input<'a>,
    list: &mut Option<u32>,
    limits: &Budget<'_>,
) -> Result<Option<Value<'a>>, DecodeError> {
    let start = input.offset();
    let Some((number, value)) = next_value(schema, input)? else { return Ok(None) };
    if *list.get_or_insert(number) != number {
        return Err(DecodeError::new(start, MIXED));
    }
    limits.check_value(value.text_len(), start)?;
    Ok(Some(value))
}

/// Reads a value and the number of its list.
#[inline(always)]
pub(super) fn next_value<'a>(
    schema: Schema,
    input: &mut Input<'a>,
) -> Result<Option<(u32, Value<'a>)>, DecodeError> {
    while let Some(key) = wire::key(input)? {
        match key.number() {
            VALUES => return Ok(Some((VALUES, Value::Text(wire::text(key, input)?)))),
            VALUES_V2 if schema == Schema::BinaryHex => {
                let value = value_v2(wire::message(key, input)?)?;
                return Ok(Some((VALUES_V2, value)));
            }
            _ => wire::skip(key, input)?,
        }
    }
    Ok(None)
}

/// Reads all of `input` as a value. Most have one short field.
#[inline(always)]
fn value_v2(input: Input<'_>) -> Result<Value<'_>, DecodeError> {
    const IS_TEXT: u8 = Key::new(TEXT, Type::Delimited).bits() as u8;
    const IS_HEX: u8 = Key::new(HEX, Type::Delimited).bits() as u8;
    match input.rest() {
        [IS_HEX, len @ 0..0x80, bytes @ ..] if bytes.len() == usize::from(*len) => {
            Ok(Value::Hex(bytes))
        }
        [IS_TEXT, len @ 0..0x80, bytes @ ..] if bytes.len() == usize::from(*len) => {
            let text = utf8::from_utf8(bytes).ok_or_else(|| input.error(Reason::Utf8))?;
            Ok(Value::Text(text))
        }
        _ => long_value_v2(input),
    }
}

/// Reads all of `input` as a value with a long length or unknown fields.
fn long_value_v2(mut input: Input<'_>) -> Result<Value<'_>, DecodeError> {
    let start = input;
    let mut value = None;
    while let Some(key) = wire::key(&mut input)? {
        let at = input;
        let field = match key.number() {
            TEXT => Value::Text(wire::text(key, &mut input)?),
            HEX => Value::Hex(wire::bytes(key, &mut input)?),
            _ => {
                wire::skip(key, &mut input)?;
                continue;
            }
        };
        set_once(&mut value, field, Field::Tags, at.offset())?;
    }
    value.ok_or_else(|| start.error(Reason::Expected("text or bytes of a value")))
}

/// Reads a run of tags that are all short text within `limits`; returns them and their length in bytes.
#[inline]
pub(super) fn short_text_tags<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Option<(&'a [Tag<'a>], usize)> {
    let (count, len) = short_fields(bytes, TAG);
    let is_all = bytes.get(len) != Some(&TAG);
    if !is_all || limits.value_bytes < usize::from(MAX_SHORT_LEN) {
        return None;
    }
    limits.check_tags(count, 0).ok()?;
    let mut text = utf8::from_utf8(&bytes[..len])?;
    let next = |_| {
        let (tag, rest) = short_field(text, TAG).ok_or(())?;
        text = rest;
        short_text_values(tag, arena, limits).ok_or(())
    };
    let tags = arena.alloc_slice_try_fill_with(count, next).ok()?;
    Some((tags, len))
}

/// Reads the values of a tag of short text and nothing else.
#[inline(always)]
fn short_text_values<'a>(
    mut tag: &'a str,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Option<Tag<'a>> {
    let (count, len) = short_fields(tag.as_bytes(), VALUE);
    if len != tag.len() {
        return None;
    }
    limits.check_tag_values(count, 0).ok()?;
    let next = |_| {
        let (value, rest) = short_field(tag, VALUE).ok_or(())?;
        tag = rest;
        Ok::<_, ()>(Value::Text(value))
    };
    Some(arena.alloc_slice_try_fill_with(count, next).ok()?)
}

/// Counts the complete short fields of that key at the start of `bytes`; returns their number and length.
#[inline(always)]
fn short_fields(bytes: &[u8], key: u8) -> (usize, usize) {
    let (mut count, mut end) = (0, 0);
    while let Some([found, len @ 0..=MAX_SHORT_LEN]) =
        bytes.get(end..).and_then(|rest| rest.first_chunk())
        && *found == key
        && usize::from(*len) + 2 <= bytes.len() - end
    {
        count += 1;
        end += 2 + usize::from(*len);
    }
    (count, end)
}

/// Splits off the short field of that key at the start of `text`; returns its value and the rest.
#[inline(always)]
fn short_field(text: &str, key: u8) -> Option<(&str, &str)> {
    let [found, len @ 0..=MAX_SHORT_LEN, ..] = text.as_bytes() else { return None };
    let (field, rest) = text.split_at_checked(2 + usize::from(*len))?;
    (*found == key).then_some((&field[2..], rest))
}

const TAG: u8 = Key::new(TAGS, Type::Delimited).bits() as u8;
const VALUE: u8 = Key::new(VALUES, Type::Delimited).bits() as u8;

/// Maximum length of a short field in bytes: its length is one byte.
const MAX_SHORT_LEN: u8 = 0x7f;

const MIXED: Reason = Reason::NotCanonical("the values of a tag are in two lists");
