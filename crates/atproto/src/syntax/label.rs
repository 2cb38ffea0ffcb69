//! One label of a name with dots, as handles and NSIDs have them: 1 to 63 letters, digits and
//! hyphens, no hyphen first or last.

use super::error::{SyntaxError, SyntaxKind, SyntaxRule, fail};
use super::symbols::LABEL;

/// Where the label that starts at `start` ends: at the end of `bytes` or at a dot.
#[inline(always)]
pub(super) fn end_of_label(
    kind: SyntaxKind,
    bytes: &[u8],
    start: usize,
) -> Result<usize, SyntaxError> {
    let end = start + LABEL.prefix_len(&bytes[start..]);
    if end < bytes.len() && bytes[end] != b'.' {
        return fail(kind, SyntaxRule::Symbol, end);
    }
    match bytes[start..end] {
        [] => fail(kind, SyntaxRule::EmptyPart, start),
        [b'-', ..] => fail(kind, SyntaxRule::Hyphen, start),
        [.., b'-'] => fail(kind, SyntaxRule::Hyphen, end - 1),
        _ if end - start > MAX_LEN => fail(kind, SyntaxRule::LongPart, start + MAX_LEN),
        _ => Ok(end),
    }
}

const MAX_LEN: usize = 63;
