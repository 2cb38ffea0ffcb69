//! What do tags say that a layout tells by counts: of tags, then for each of values, then the values?

use std::marker::PhantomData;

use bumpalo::Bump;

use super::compact::Form;
use crate::input::Input;
use crate::{DecodeError, Limits, Reason, Tag, Value};

/// How a layout tells counts and values.
pub(crate) trait Layout {
    /// How many tags follow.
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError>;

    /// How many values follow.
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError>;

    /// In which form a value follows, and how many bytes of it.
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError>;

    /// What else a value is held to.
    #[inline(always)]
    fn rule(_: &Value<'_>) -> Result<(), Reason> {
        Ok(())
    }
}

/// The tags that follow, in `arena`.
#[inline(always)]
pub(crate) fn read<'a, L: Layout>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let start = *input;
    let count = held(L::tag_count(input)?, start, *input)?;
    limits.hold_tags(count, start.offset())?;
    Ok(arena.alloc_slice_try_fill_with(count, |_| tag::<L>(input, arena, limits))?)
}

#[inline(always)]
fn tag<'a, L: Layout>(
    input: &mut Input<'a>,
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Tag<'a>, DecodeError> {
    let start = *input;
    let count = held(L::value_count(input)?, start, *input)?;
    limits.hold_tag_values(count, start.offset())?;
    let value = |_| {
        let start = input.offset();
        let value = value::<L>(input)?;
        limits.hold_value(value.text_len(), start)?;
        Ok(value)
    };
    Ok(arena.alloc_slice_try_fill_with(count, value)?)
}

/// The value that follows.
#[inline(always)]
fn value<'a, L: Layout>(input: &mut Input<'a>) -> Result<Value<'a>, DecodeError> {
    let start = *input;
    let value = match L::head(input)? {
        (Form::Text, len) => Value::Text(input.text(len)?),
        (Form::Bytes, len) => Value::Hex(input.take(len)?),
    };
    match L::rule(&value) {
        Ok(()) => Ok(value),
        Err(reason) => Err(start.fault(reason)),
    }
}

/// A count that stands at `start`, of items that take a byte each at least.
#[inline(always)]
fn held(count: u64, start: Input<'_>, behind: Input<'_>) -> Result<usize, DecodeError> {
    if count > behind.rest().len() as u64 {
        return Err(start.fault(Reason::Truncated));
    }
    Ok(count as usize)
}

/// Tags that are read one by one, without an arena; ends behind the first fault.
#[derive(Clone, Debug)]
pub struct Tags<'a, L> {
    // None behind a fault.
    input: Option<Input<'a>>,
    left: u64,
    layout: PhantomData<L>,
}

#[expect(private_bounds, reason = "the layouts are those of the formats here")]
impl<'a, L: Layout> Tags<'a, L> {
    pub(super) fn new(mut input: Input<'a>) -> Result<Self, DecodeError> {
        let left = L::tag_count(&mut input)?;
        Ok(Self { input: Some(input), left, layout: PhantomData })
    }
}

impl<'a, L: Layout> Iterator for Tags<'a, L> {
    type Item = Result<Values<'a, L>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut input = self.input.take()?;
        let values = values(&mut input);
        self.input = values.is_ok().then_some(input);
        Some(values)
    }
}

/// The values of a tag, read one by one; ends behind the first fault.
#[derive(Clone, Debug)]
pub struct Values<'a, L> {
    // None behind a fault.
    input: Option<Input<'a>>,
    left: u64,
    layout: PhantomData<L>,
}

/// The values of the tag that follows, over which `input` steps.
fn values<'a, L: Layout>(input: &mut Input<'a>) -> Result<Values<'a, L>, DecodeError> {
    let left = L::value_count(input)?;
    let values = Values { input: Some(*input), left, layout: PhantomData };
    for _ in 0..left {
        let (_, len) = L::head(input)?;
        input.take(len)?;
    }
    Ok(values)
}

impl<'a, L: Layout> Iterator for Values<'a, L> {
    type Item = Result<Value<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut input = self.input.take()?;
        let value = value::<L>(&mut input);
        self.input = value.is_ok().then_some(input);
        Some(value)
    }
}
