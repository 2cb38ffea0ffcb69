//! Unsigned LEB128 in its minimal form: seven bits a byte, low bits first, at most nine bytes.
//!
//! Source: multiformats *unsigned-varint*; used by CAR framing and CIDs.

use std::fmt;

/// Maximum length of a varint in bytes. Nine bytes carry 63 bits.
pub const MAX_LEN: usize = 9;

/// Why bytes are not a minimal varint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarintError {
    /// The bytes end before the varint does.
    Truncated,
    /// A shorter form of the same integer exists.
    NotMinimal,
    /// The varint is longer than nine bytes.
    TooLong,
}

impl fmt::Display for VarintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "the bytes end before the varint does",
            Self::NotMinimal => "a varint must have its shortest form",
            Self::TooLong => "a varint has at most nine bytes",
        })
    }
}

impl std::error::Error for VarintError {}

/// Reads the varint at the start of `bytes`: the integer, and its length in bytes.
///
/// # Errors
/// If the bytes end early, are not the shortest form, or are more than nine.
///
/// ```
/// assert_eq!(wireproof::kernels::varint::read(&[0xac, 0x02, 0xff]), Ok((300, 2)));
/// ```
#[inline]
pub fn read(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
    match bytes {
        [first @ 0..0x80, ..] => Ok((u64::from(*first), 1)),
        [first, second @ 1..0x80, ..] => Ok((u64::from(first & 0x7f) | u64::from(*second) << 7, 2)),
        _ => read_any(bytes),
    }
}

fn read_any(bytes: &[u8]) -> Result<(u64, usize), VarintError> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(MAX_LEN).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let is_minimal = *byte != 0 || at == 0;
            return if is_minimal { Ok((value, at + 1)) } else { Err(VarintError::NotMinimal) };
        }
    }
    Err(if bytes.len() < MAX_LEN { VarintError::Truncated } else { VarintError::TooLong })
}

/// Appends the minimal varint of `value`.
///
/// # Panics
/// If `value` needs more than 63 bits.
pub fn write(mut value: u64, out: &mut Vec<u8>) {
    assert!(value < 1 << 63, "a varint of at most nine bytes carries 63 bits");
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The number of bytes that [`write()`] appends for `value`.
pub const fn len(value: u64) -> usize {
    let bits = 64 - value.leading_zeros() as usize;
    if bits == 0 { 1 } else { bits.div_ceil(7) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_with_its_length() {
        let edges = (0..63).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for value in edges.filter(|v| *v < 1 << 63) {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            assert_eq!(bytes.len(), len(value), "{value}");
            assert_eq!(read(&bytes), Ok((value, bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(
                    read(&bytes[..cut]),
                    Err(VarintError::Truncated),
                    "{value} cut at {cut}"
                );
            }
        }
    }

    #[test]
    fn longer_forms_are_rejected() {
        assert_eq!(read(&[0x80, 0x00]), Err(VarintError::NotMinimal));
        assert_eq!(read(&[0xac, 0x82, 0x00]), Err(VarintError::NotMinimal));
        assert_eq!(read(&[0xff; 9]), Err(VarintError::TooLong));
        assert_eq!(read(&[0xff; 10]), Err(VarintError::TooLong));
        assert_eq!(
            read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            Ok((u64::MAX >> 1, 9))
        );
    }
}
