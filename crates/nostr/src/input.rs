//! The reader of untrusted bytes: every length is checked against the remaining input before use.

use kernels::utf8;

use crate::{DecodeError, Field, Limit, Reason, limits};

/// Input that is read from the front.
///
/// Functions that are not inlined take no reference to it, so that the compiler keeps it in registers.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
    // The offset of the end of `rest`: rest.len() <= end
    end: usize,
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, end: bytes.len() }
    }

    /// Offset of the next byte.
    #[inline]
    pub fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    /// The remaining bytes.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The error `reason` at the next byte.
    #[inline]
    pub fn error(&self, reason: Reason) -> DecodeError {
        DecodeError::new(self.offset(), reason)
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// If fewer remain.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.error(Reason::Truncated)),
        }
    }

    /// Reads `len` bytes as an input of their own, with the same origin of offsets.
    ///
    /// # Errors
    /// If fewer remain.
    #[inline]
    pub fn part(&mut self, len: usize) -> Result<Self, DecodeError> {
        let start = self.offset();
        Ok(Self { rest: self.take(len)?, end: start + len })
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// If fewer remain.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        match self.rest.split_first_chunk() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.error(Reason::Truncated)),
        }
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// If none remains.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        let [byte] = *self.array()?;
        Ok(byte)
    }

    /// Reads `len` bytes of UTF-8.
    ///
    /// # Errors
    /// If fewer remain, or they are not UTF-8.
    #[inline]
    pub fn text(&mut self, len: usize) -> Result<&'a str, DecodeError> {
        let start = self.offset();
        let bytes = self.take(len)?;
        utf8::from_utf8(bytes).ok_or_else(|| DecodeError::new(start, Reason::Utf8))
    }

    /// Reads a minimal LEB128 integer of up to 64 bits.
    ///
    /// # Errors
    /// If it ends early, is longer than needed, or has more bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        if let [first @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*first));
        }
        match long_varint(self.rest) {
            Ok((value, rest)) => {
                self.rest = rest;
                Ok(value)
            }
            Err(reason) => Err(self.error(reason)),
        }
    }

    /// Reads a varint that counts items of at least `min_bytes` each, at most `max` of them.
    ///
    /// # Errors
    /// If there are more than `max`, or more than the remaining bytes can hold.
    #[inline]
    pub fn count(
        &mut self,
        min_bytes: usize,
        limit: Limit,
        max: usize,
    ) -> Result<usize, DecodeError> {
        let start = *self;
        let count = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        limits::check(count, max, limit, start.offset())?;
        match count.checked_mul(min_bytes) {
            Some(bytes) if bytes <= self.rest().len() => Ok(count),
            _ => Err(start.error(Reason::Truncated)),
        }
    }

    /// Checks that no bytes remain.
    ///
    /// # Errors
    /// If some remain.
    #[inline]
    pub fn end(&self) -> Result<(), DecodeError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.error(Reason::TrailingBytes)) }
    }
}

fn long_varint(bytes: &[u8]) -> Result<(u64, &[u8]), Reason> {
    let mut value = 0;
    for (index, byte) in bytes.iter().take(10).enumerate() {
        if index == 9 && *byte > 1 {
            return Err(Reason::Expected("an integer of 64 bits"));
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let is_minimal = *byte > 0 || index == 0;
            return if is_minimal {
                Ok((value, &bytes[index + 1..]))
            } else {
                Err(Reason::NotMinimal)
            };
        }
    }
    Err(Reason::Truncated)
}

/// Appends `value` as minimal LEB128.
#[inline]
pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Length of `value` as minimal LEB128 in bytes.
#[inline]
pub fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Converts a kind that was read at `offset`.
///
/// # Errors
/// If it is more than 65,535.
#[inline]
pub fn kind(value: u64, offset: usize) -> Result<u16, DecodeError> {
    u16::try_from(value).map_err(|_| DecodeError::new(offset, Reason::Range(Field::Kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_holds_64_bits_and_no_more() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            write_varint(value, &mut bytes);
            assert_eq!(bytes.len(), varint_len(value), "{value}");
            let mut input = Input::new(&bytes);
            assert_eq!(input.varint(), Ok(value));
            assert_eq!(input.end(), Ok(()));
            for len in 0..bytes.len() {
                let error = Input::new(&bytes[..len]).varint().unwrap_err();
                assert_eq!(error.reason, Reason::Truncated);
            }
        }
        let reason = |bytes| Input::new(bytes).varint().unwrap_err().reason;
        assert_eq!(reason(&[0x80, 0]), Reason::NotMinimal);
        assert_eq!(reason(&[0xff; 10]), Reason::Expected("an integer of 64 bits"));
    }

    #[test]
    fn a_count_is_checked_against_its_limit_and_the_remaining_input() {
        let count = |bytes| Input::new(bytes).count(2, Limit::Tags, 3);
        assert_eq!(count(&[2, 0, 0, 0, 0]), Ok(2));
        assert_eq!(count(&[2, 0, 0, 0]).unwrap_err().reason, Reason::Truncated);
        assert_eq!(count(&[4, 0, 0, 0, 0]).unwrap_err().reason, Reason::Limit(Limit::Tags));
    }
}
