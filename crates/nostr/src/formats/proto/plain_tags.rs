//! Are these tags what nearly all are: text, each field shorter than 128 bytes?
//!
//! Then keys and lengths are ASCII, and all tags together are UTF-8 if each text is: that is asked
//! once, and a value is a part of the text that is known to be one. Whatever is otherwise, the reader of
//! all messages reads again.

use bumpalo::Bump;
use kernels::utf8;

use super::wire::Key;
use super::{TAGS, Type, VALUES};
use crate::{Limits, Tag, Value};

/// The tags that follow one another from the start of `bytes`, and how many bytes they take, if all are
/// such tags and within `limits`.
#[inline]
pub(super) fn read<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Option<(&'a [Tag<'a>], usize)> {
    let (count, len) = fields(bytes, TAG);
    let is_all = bytes.get(len) != Some(&TAG);
    if !is_all || count > limits.tags || limits.value_bytes < LONGEST {
        return None;
    }
    let mut text = utf8::from_utf8(&bytes[..len])?;
    let next = |_| {
        let (tag, rest) = field(text, TAG).ok_or(())?;
        text = rest;
        values(tag, arena, limits).ok_or(())
    };
    let tags = arena.alloc_slice_try_fill_with(count, next).ok()?;
    Some((tags, len))
}

/// The values of a tag that is nothing else.
#[inline(always)]
fn values<'a>(mut tag: &'a str, arena: &'a Bump, limits: &Limits) -> Option<Tag<'a>> {
    let (count, len) = fields(tag.as_bytes(), VALUE);
    if len != tag.len() || count > limits.tag_values {
        return None;
    }
    let next = |_| {
        let (value, rest) = field(tag, VALUE).ok_or(())?;
        tag = rest;
        Ok::<_, ()>(Value::Text(value))
    };
    Some(arena.alloc_slice_try_fill_with(count, next).ok()?)
}

/// How many whole short fields of that key `bytes` begin with, and how many bytes they take.
#[inline(always)]
fn fields(bytes: &[u8], key: u8) -> (usize, usize) {
    let (mut count, mut end) = (0, 0);
    while let Some([found, len @ 0..=LONGEST_BYTE]) =
        bytes.get(end..).and_then(|rest| rest.first_chunk())
        && *found == key
        && usize::from(*len) + 2 <= bytes.len() - end
    {
        count += 1;
        end += 2 + usize::from(*len);
    }
    (count, end)
}

/// What the short field of that key at the start of `text` has, and what is behind it.
#[inline(always)]
fn field(text: &str, key: u8) -> Option<(&str, &str)> {
    let [found, len @ 0..=LONGEST_BYTE, ..] = text.as_bytes() else { return None };
    let (field, rest) = text.split_at_checked(2 + usize::from(*len))?;
    (*found == key).then_some((&field[2..], rest))
}

const TAG: u8 = Key::new(TAGS, Type::Delimited).bits() as u8;
const VALUE: u8 = Key::new(VALUES, Type::Delimited).bits() as u8;

/// The longest length that is one byte.
const LONGEST_BYTE: u8 = 0x7f;
const LONGEST: usize = LONGEST_BYTE as usize;
