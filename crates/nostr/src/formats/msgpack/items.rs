//! How does MessagePack tell the parts of an event?
//!
//! The library reads each head; here is asked whether it is the one that must stand there, and as short
//! as it can be.

use rmp::Marker;
use rmp::decode::{self, Bytes, NumValueReadError, ValueReadError};

use crate::formats::compact::{self, Form, LEAST_DIGITS};
use crate::formats::tags::Layout;
use crate::input::Input;
use crate::{DecodeError, Field, Limits, Reason, Value};

/// How tags are told.
#[derive(Clone, Copy, Debug)]
pub enum Counted {}

impl Layout for Counted {
    #[inline(always)]
    fn tag_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        Ok(array_len(input, "an array of tags")?.into())
    }

    #[inline(always)]
    fn value_count(input: &mut Input<'_>) -> Result<u64, DecodeError> {
        Ok(array_len(input, "an array of values")?.into())
    }

    #[inline(always)]
    fn head(input: &mut Input<'_>) -> Result<(Form, usize), DecodeError> {
        let (form, len) = match marker(input)? {
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => (Form::Bytes, binary_len(input)?),
            _ => (Form::Text, text_len(input, "text or binary")?),
        };
        Ok((form, len as usize))
    }

    #[inline(always)]
    fn rule(value: &Value<'_>) -> Result<(), Reason> {
        compact::only_form(value, LEAST_DIGITS)
    }
}

#[inline(always)]
pub(super) fn array_len(input: &mut Input<'_>, expected: &'static str) -> Result<u32, DecodeError> {
    let start = *input;
    let count = counted(input, expected, decode::read_array_len)?;
    shortest(start, &[(Marker::Array16, 16), (Marker::Array32, 1 << 16)], count.into())?;
    Ok(count)
}

#[inline(always)]
pub(super) fn fixed<'a, const N: usize>(
    input: &mut Input<'a>,
    field: Field,
) -> Result<&'a [u8; N], DecodeError> {
    let start = *input;
    match binary_len(input)? as usize {
        len if len == N => input.array(),
        _ => Err(start.fault(Reason::Length(field))),
    }
}

#[inline(always)]
pub(super) fn content<'a>(input: &mut Input<'a>, limits: &Limits) -> Result<&'a str, DecodeError> {
    let start = input.offset();
    let len = text_len(input, "text")? as usize;
    limits.hold_content(len, start)?;
    input.text(len)
}

#[inline(always)]
pub(super) fn created_at(input: &mut Input<'_>) -> Result<i64, DecodeError> {
    integer(input, Field::CreatedAt)
}

#[inline(always)]
pub(super) fn kind(input: &mut Input<'_>) -> Result<u16, DecodeError> {
    let start = *input;
    let kind = integer(input, Field::Kind)?;
    u16::try_from(kind).map_err(|_| start.fault(Reason::Range(Field::Kind)))
}

#[inline(always)]
fn integer(input: &mut Input<'_>, field: Field) -> Result<i64, DecodeError> {
    let start = *input;
    let mut bytes = Bytes::new(input.rest());
    let value: i64 = decode::read_int(&mut bytes).map_err(|error| {
        start.fault(match error {
            NumValueReadError::OutOfRange => Reason::Range(field),
            NumValueReadError::TypeMismatch(_) => Reason::Expected("an integer"),
            _ => Reason::Truncated,
        })
    })?;
    input.take(bytes.position() as usize)?;
    if value < 0 {
        shortest(start, BELOW_ZERO, value.unsigned_abs() - 1)?;
    } else {
        shortest(start, FROM_ZERO, value as u64)?;
    }
    Ok(value)
}

#[inline(always)]
fn text_len(input: &mut Input<'_>, expected: &'static str) -> Result<u32, DecodeError> {
    let start = *input;
    let len = counted(input, expected, decode::read_str_len)?;
    let steps = [(Marker::Str8, 32), (Marker::Str16, 1 << 8), (Marker::Str32, 1 << 16)];
    shortest(start, &steps, len.into())?;
    Ok(len)
}

#[inline(always)]
fn binary_len(input: &mut Input<'_>) -> Result<u32, DecodeError> {
    let start = *input;
    let len = counted(input, "binary", decode::read_bin_len)?;
    shortest(start, &[(Marker::Bin16, 1 << 8), (Marker::Bin32, 1 << 16)], len.into())?;
    Ok(len)
}

/// What `read` answers of the bytes that follow.
#[inline(always)]
fn counted<'a>(
    input: &mut Input<'a>,
    expected: &'static str,
    read: impl FnOnce(&mut Bytes<'a>) -> Result<u32, ValueReadError<decode::bytes::BytesReadError>>,
) -> Result<u32, DecodeError> {
    let mut bytes = Bytes::new(input.rest());
    let count = read(&mut bytes).map_err(|error| {
        input.fault(match error {
            ValueReadError::TypeMismatch(_) => Reason::Expected(expected),
            _ => Reason::Truncated,
        })
    })?;
    input.take(bytes.position() as usize)?;
    Ok(count)
}

/// The marker that follows.
#[inline(always)]
fn marker(input: &Input<'_>) -> Result<Marker, DecodeError> {
    let first = input.rest().first().ok_or_else(|| input.fault(Reason::Truncated))?;
    Ok(Marker::from_u8(*first))
}

/// Refuses a marker at `start` for less than what `least` says that it is needed for; one that `least`
/// does not list is as short as any.
#[inline(always)]
fn shortest(start: Input<'_>, least: &[(Marker, u64)], value: u64) -> Result<(), DecodeError> {
    let found = marker(&start)?;
    let needs = least.iter().find(|(marker, _)| *marker == found).map_or(0, |(_, least)| *least);
    if value < needs { Err(start.fault(Reason::NotMinimal)) } else { Ok(()) }
}

/// What integers from zero up need a marker for; those with a sign they never need.
const FROM_ZERO: &[(Marker, u64)] = &[
    (Marker::U8, 1 << 7),
    (Marker::U16, 1 << 8),
    (Marker::U32, 1 << 16),
    (Marker::U64, 1 << 32),
    (Marker::I8, u64::MAX),
    (Marker::I16, u64::MAX),
    (Marker::I32, u64::MAX),
    (Marker::I64, u64::MAX),
];

/// The same below zero, of the distance from -1.
const BELOW_ZERO: &[(Marker, u64)] =
    &[(Marker::I8, 1 << 5), (Marker::I16, 1 << 7), (Marker::I32, 1 << 15), (Marker::I64, 1 << 31)];
