//! Bytes as text, two lower-case digits each.

/// The digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
