//! How is an item passed over that nobody asked for?

use super::head::{self, ARRAY, BYTES, MAP, SIMPLE, TAG, TEXT};
use crate::input::Input;
use crate::{DecodeError, Limit, Reason};

/// Passes over one item, as strictly as those that are read; `depth` levels are above it.
pub(super) fn item(input: &mut Input<'_>, depth: usize) -> Result<(), DecodeError> {
    if depth > MAX_DEPTH {
        return Err(input.fault(Reason::Limit(Limit::Depth)));
    }
    let start = *input;
    let (major, argument) = head::read(input)?;
    let len = usize::try_from(argument).unwrap_or(usize::MAX);
    match major {
        BYTES => input.take(len).map(drop),
        TEXT => input.text(len).map(drop),
        ARRAY => items(input, argument, depth),
        MAP => items(input, argument.saturating_mul(2), depth),
        TAG => item(input, depth + 1),
        SIMPLE if is_simple(&start, argument) => Ok(()),
        SIMPLE => Err(start.fault(Reason::Expected("a known simple value"))),
        _ => Ok(()),
    }
}

/// Passes over `count` items. Each takes a byte at least, so a count that is a lie ends with the bytes.
fn items(input: &mut Input<'_>, count: u64, depth: usize) -> Result<(), DecodeError> {
    (0..count).try_for_each(|_| item(input, depth + 1))
}

/// Whether the head at `start` is `false`, `true`, `null`, `undefined`, a float, or a simple value that
/// has no shorter form.
fn is_simple(start: &Input<'_>, argument: u64) -> bool {
    match start.rest()[0] & 0x1f {
        0..20 => false,
        24 => argument >= 32,
        _ => true,
    }
}

/// Levels of an item that is passed over.
const MAX_DEPTH: usize = 64;
