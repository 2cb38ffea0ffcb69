//! Heads of CBOR items (RFC 8949, section 3): reading, writing, and skipping whole items.
//!
//! Heads are in their shortest form and lengths are definite.

use crate::explain::ItemHead;
use nostr::input::Input;
use nostr::limits::MAX_DEPTH;
use nostr::{DecodeError, Limit, Reason};

/// Major types.
pub(super) const UNSIGNED: u8 = 0;
pub(super) const NEGATIVE: u8 = 1;
pub(super) const BYTES: u8 = 2;
pub(super) const TEXT: u8 = 3;
pub(super) const ARRAY: u8 = 4;
pub(super) const MAP: u8 = 5;
pub(super) const TAG: u8 = 6;
pub(super) const SIMPLE: u8 = 7;

/// Reads the major type and the argument of an item.
#[inline(always)]
pub(super) fn read(input: &mut Input<'_>) -> Result<(u8, u64), DecodeError> {
    let first = match input.rest() {
        [first, ..] => *first,
        [] => return Err(input.error(Reason::Truncated)),
    };
    let info = first & 0x1f;
    if info < 24 {
        input.take(1)?;
        return Ok((first >> 5, u64::from(info)));
    }
    match argument(input.rest(), info) {
        Ok((argument, len)) => {
            input.take(len)?;
            Ok((first >> 5, argument))
        }
        Err(reason) => Err(input.error(reason)),
    }
}

/// Reads a head for an explanation.
pub(super) fn item(input: &mut Input<'_>) -> Result<ItemHead, DecodeError> {
    let (major, argument) = read(input)?;
    let len = usize::try_from(argument).unwrap_or(usize::MAX);
    Ok(match major {
        UNSIGNED => ItemHead::Integer(argument as i64),
        NEGATIVE => ItemHead::Integer(!(argument as i64)),
        BYTES => ItemHead::Bytes(len),
        TEXT => ItemHead::Text(len),
        ARRAY => ItemHead::Array(argument),
        MAP => ItemHead::Map(argument),
        TAG => ItemHead::Prefix,
        _ => ItemHead::Other,
    })
}

/// The argument of the head at the start of `bytes`, and the length of the head.
#[inline]
fn argument(bytes: &[u8], info: u8) -> Result<(u64, usize), Reason> {
    let (argument, min, len) = match (info, bytes) {
        (24, [_, a, ..]) => (u64::from(*a), 24, 2),
        (25, [_, a, b, ..]) => (u64::from(u16::from_be_bytes([*a, *b])), 1 << 8, 3),
        (26, [_, a, b, c, d, ..]) => (u64::from(u32::from_be_bytes([*a, *b, *c, *d])), 1 << 16, 5),
        (27, [_, a, b, c, d, e, f, g, h, ..]) => {
            (u64::from_be_bytes([*a, *b, *c, *d, *e, *f, *g, *h]), 1 << 32, 9)
        }
        (24..=27, _) => return Err(Reason::Truncated),
        _ => return Err(Reason::Expected("a definite length")),
    };
    // The argument of a simple value is a bit pattern of this width, not an integer.
    let is_simple = bytes[0] >> 5 == SIMPLE;
    if argument < min && !is_simple { Err(Reason::NotMinimal) } else { Ok((argument, len)) }
}

/// Appends the shortest head.
#[inline(always)]
pub(super) fn write(major: u8, argument: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    match argument {
        0..24 => out.push(major | argument as u8),
        24..=0xff => out.extend_from_slice(&[major | 24, argument as u8]),
        _ => write_long(major, argument, out),
    }
}

fn write_long(major: u8, argument: u64, out: &mut Vec<u8>) {
    match argument {
        0..=0xffff => {
            out.push(major | 25);
            out.extend_from_slice(&(argument as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 26);
            out.extend_from_slice(&(argument as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&argument.to_be_bytes());
        }
    }
}

/// Skips an item at nesting level `depth`, as strictly as items are read.
pub(super) fn skip(input: &mut Input<'_>, depth: usize) -> Result<(), DecodeError> {
    if depth > MAX_DEPTH {
        return Err(input.error(Reason::Limit(Limit::Depth)));
    }
    let start = *input;
    let (major, argument) = read(input)?;
    let len = usize::try_from(argument).unwrap_or(usize::MAX);
    match major {
        BYTES => input.take(len).map(drop),
        TEXT => input.text(len).map(drop),
        ARRAY => skip_items(input, argument, depth),
        MAP => skip_items(input, argument.saturating_mul(2), depth),
        TAG => skip(input, depth + 1),
        SIMPLE if is_simple(&start, argument) => Ok(()),
        SIMPLE => Err(start.error(Reason::Expected("a known simple value"))),
        _ => Ok(()),
    }
}

/// Skips `count` items. An item takes at least a byte, so that a false count ends with the input.
fn skip_items(input: &mut Input<'_>, count: u64, depth: usize) -> Result<(), DecodeError> {
    (0..count).try_for_each(|_| skip(input, depth + 1))
}

/// Whether the head at `start` is `false`, `true`, `null`, `undefined`, a float, or a simple value without a
/// shorter form.
fn is_simple(start: &Input<'_>, argument: u64) -> bool {
    match start.rest()[0] & 0x1f {
        0..20 => false,
        24 => argument >= 32,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_written_in_their_shortest_form_and_no_other_is_accepted() {
        let steps = [0, 23, 24, 0xff, 0x100, 0xffff, 0x1_0000, 0xffff_ffff, 1 << 32, u64::MAX];
        for (argument, len) in steps.into_iter().zip([1, 1, 2, 2, 3, 3, 5, 5, 9, 9]) {
            let mut bytes = Vec::new();
            write(TEXT, argument, &mut bytes);
            assert_eq!(bytes.len(), len);
            let mut input = Input::new(&bytes);
            assert_eq!(read(&mut input), Ok((TEXT, argument)));
            assert_eq!(input.end(), Ok(()));
            for len in 0..len {
                let error = read(&mut Input::new(&bytes[..len])).unwrap_err();
                assert_eq!(error.reason, Reason::Truncated);
            }
        }
        let error = |bytes: &[u8]| read(&mut Input::new(bytes)).unwrap_err().reason;
        for longer in [&[0x18, 23][..], &[0x79, 0, 255], &[0x1a, 0, 0, 255, 255]] {
            assert_eq!(error(longer), Reason::NotMinimal);
        }
        assert_eq!(error(&[0x1b, 0, 0, 0, 0, 255, 255, 255, 255]), Reason::NotMinimal);
        for indefinite in [0x5f, 0x7f, 0x9f, 0xbf, 0xff, 0x1c] {
            assert_eq!(error(&[indefinite]), Reason::Expected("a definite length"));
        }
    }
}
