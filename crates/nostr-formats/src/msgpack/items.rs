//! The fields of an event as MessagePack items.
//!
//! The library reads every head; the functions here check that it has the required type and its shortest
//! form.

use rmp::Marker;
use rmp::decode::{self, Bytes, NumValueReadError, ValueReadError};

use crate::explain::ItemHead;
use nostr::input::Input;
use nostr::{DecodeError, Field, Limits, Reason};

#[inline(always)]
pub(super) fn array_len(input: &mut Input<'_>, expected: &'static str) -> Result<u32, DecodeError> {
    let start = *input;
    let count = read_len(input, expected, decode::read_array_len)?;
    check_shortest(start, &[(Marker::Array16, 16), (Marker::Array32, 1 << 16)], count.into())?;
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
        _ => Err(start.error(Reason::Length(field))),
    }
}

#[inline(always)]
pub(super) fn content<'a>(input: &mut Input<'a>, limits: &Limits) -> Result<&'a str, DecodeError> {
    let start = input.offset();
    let len = text_len(input, "text")? as usize;
    limits.check_content(len, start)?;
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
    u16::try_from(kind).map_err(|_| start.error(Reason::Range(Field::Kind)))
}

#[inline(always)]
fn integer(input: &mut Input<'_>, field: Field) -> Result<i64, DecodeError> {
    let start = *input;
    let mut bytes = Bytes::new(input.rest());
    let value: i64 = decode::read_int(&mut bytes).map_err(|error| {
        start.error(match error {
            NumValueReadError::OutOfRange => Reason::Range(field),
            NumValueReadError::TypeMismatch(_) => Reason::Expected("an integer"),
            _ => Reason::Truncated,
        })
    })?;
    input.take(bytes.position() as usize)?;
    if value < 0 {
        check_shortest(start, NEGATIVE, value.unsigned_abs() - 1)?;
    } else {
        check_shortest(start, NON_NEGATIVE, value as u64)?;
    }
    Ok(value)
}

/// Reads the head of an item of an event.
pub(super) fn head(input: &mut Input<'_>) -> Result<ItemHead, DecodeError> {
    let first = input.rest().first().copied().unwrap_or_default();
    Ok(match Marker::from_u8(first) {
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
            ItemHead::Array(array_len(input, "an array")?.into())
        }
        Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
            ItemHead::Text(text_len(input, "text")? as usize)
        }
        Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
            ItemHead::Bytes(binary_len(input)? as usize)
        }
        _ => ItemHead::Integer(integer(input, Field::CreatedAt)?),
    })
}

#[inline(always)]
pub(super) fn text_len(input: &mut Input<'_>, expected: &'static str) -> Result<u32, DecodeError> {
    let start = *input;
    let len = read_len(input, expected, decode::read_str_len)?;
    let markers = [(Marker::Str8, 32), (Marker::Str16, 1 << 8), (Marker::Str32, 1 << 16)];
    check_shortest(start, &markers, len.into())?;
    Ok(len)
}

#[inline(always)]
pub(super) fn binary_len(input: &mut Input<'_>) -> Result<u32, DecodeError> {
    let start = *input;
    let len = read_len(input, "binary", decode::read_bin_len)?;
    check_shortest(start, &[(Marker::Bin16, 1 << 8), (Marker::Bin32, 1 << 16)], len.into())?;
    Ok(len)
}

/// Reads a length with `read`.
#[inline(always)]
fn read_len<'a>(
    input: &mut Input<'a>,
    expected: &'static str,
    read: impl FnOnce(&mut Bytes<'a>) -> Result<u32, ValueReadError<decode::bytes::BytesReadError>>,
) -> Result<u32, DecodeError> {
    let mut bytes = Bytes::new(input.rest());
    let count = read(&mut bytes).map_err(|error| {
        input.error(match error {
            ValueReadError::TypeMismatch(_) => Reason::Expected(expected),
            _ => Reason::Truncated,
        })
    })?;
    input.take(bytes.position() as usize)?;
    Ok(count)
}

/// The next marker, without reading it.
#[inline(always)]
pub(super) fn marker(input: &Input<'_>) -> Result<Marker, DecodeError> {
    let first = input.rest().first().ok_or_else(|| input.error(Reason::Truncated))?;
    Ok(Marker::from_u8(*first))
}

/// Rejects the marker at `start` for a `value` below the minimum in `min_values`; a marker that is not listed
/// has no shorter form.
#[inline(always)]
fn check_shortest(
    start: Input<'_>,
    min_values: &[(Marker, u64)],
    value: u64,
) -> Result<(), DecodeError> {
    let found = marker(&start)?;
    let min = min_values.iter().find(|(marker, _)| *marker == found).map_or(0, |(_, min)| *min);
    if value < min { Err(start.error(Reason::NotMinimal)) } else { Ok(()) }
}

/// Minimum value of a non-negative integer by marker; none needs a signed one.
const NON_NEGATIVE: &[(Marker, u64)] = &[
    (Marker::U8, 1 << 7),
    (Marker::U16, 1 << 8),
    (Marker::U32, 1 << 16),
    (Marker::U64, 1 << 32),
    (Marker::I8, u64::MAX),
    (Marker::I16, u64::MAX),
    (Marker::I32, u64::MAX),
    (Marker::I64, u64::MAX),
];

/// Minimum distance from -1 of a negative integer by marker.
const NEGATIVE: &[(Marker, u64)] =
    &[(Marker::I8, 1 << 5), (Marker::I16, 1 << 7), (Marker::I32, 1 << 15), (Marker::I64, 1 << 31)];
