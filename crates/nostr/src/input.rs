//! How are bytes of a stranger read: each length held against what is left before it is used.

use kernels::utf8;

use crate::{DecodeError, Field, Limit, Limits, Reason};

/// Bytes that are read from the front.
///
/// What is not inlined takes no reference to it: the compiler then keeps it in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
    // Where the rest ends in what offsets are counted in: rest.len() <= end
    end: usize,
}

impl<'a> Input<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, end: bytes.len() }
    }

    /// Bytes read so far.
    #[inline]
    pub(crate) fn offset(&self) -> usize {
        self.end - self.rest.len()
    }

    /// What was not read yet.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The fault `reason` at what is read next.
    #[inline]
    pub(crate) fn fault(&self, reason: Reason) -> DecodeError {
        DecodeError::new(self.offset(), reason)
    }

    /// The next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest.split_at_checked(len) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.fault(Reason::Truncated)),
        }
    }

    /// The next `len` bytes as an input of their own, whose offsets go on counting from where ours do.
    #[inline]
    pub(crate) fn part(&mut self, len: usize) -> Result<Self, DecodeError> {
        let start = self.offset();
        Ok(Self { rest: self.take(len)?, end: start + len })
    }

    /// The next `N` bytes.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], DecodeError> {
        match self.rest.split_first_chunk() {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.fault(Reason::Truncated)),
        }
    }

    /// The next byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, DecodeError> {
        let [byte] = *self.array()?;
        Ok(byte)
    }

    /// The next `len` bytes as text.
    #[inline]
    pub(crate) fn text(&mut self, len: usize) -> Result<&'a str, DecodeError> {
        let start = self.offset();
        let bytes = self.take(len)?;
        utf8::from_utf8(bytes).ok_or_else(|| DecodeError::new(start, Reason::Utf8))
    }

    /// The next minimal LEB128, of all 64 bits.
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        if let [first @ 0..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*first));
        }
        match long_varint(self.rest) {
            Ok((value, rest)) => {
                self.rest = rest;
                Ok(value)
            }
            Err(reason) => Err(self.fault(reason)),
        }
    }

    /// The next varint as a count of items that take `least_bytes` each at least, of which `limit`
    /// allows `most`.
    #[inline]
    pub(crate) fn count(
        &mut self,
        least_bytes: usize,
        limit: Limit,
        most: usize,
    ) -> Result<usize, DecodeError> {
        let start = *self;
        let count = usize::try_from(self.varint()?).unwrap_or(usize::MAX);
        hold(count, most, limit, start.offset())?;
        match count.checked_mul(least_bytes) {
            Some(bytes) if bytes <= self.rest().len() => Ok(count),
            _ => Err(start.fault(Reason::Truncated)),
        }
    }

    /// That nothing is left.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.fault(Reason::TrailingBytes)) }
    }
}

fn long_varint(bytes: &[u8]) -> Result<(u64, &[u8]), Reason> {
    let mut value = 0;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        if at == 9 && *byte > 1 {
            return Err(Reason::Expected("an integer of 64 bits"));
        }
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let is_minimal = *byte > 0 || at == 0;
            return if is_minimal {
                Ok((value, &bytes[at + 1..]))
            } else {
                Err(Reason::NotMinimal)
            };
        }
    }
    Err(Reason::Truncated)
}

/// Appends the minimal LEB128 of `value`, all 64 bits of it.
#[inline]
pub(crate) fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`write_varint`] appends.
#[inline]
pub(crate) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

impl Limits {
    /// Refuses content over its limit.
    #[inline]
    pub(crate) fn hold_content(&self, len: usize, offset: usize) -> Result<(), DecodeError> {
        hold(len, self.content_bytes, Limit::ContentBytes, offset)
    }

    /// Refuses a value over its limit.
    #[inline]
    pub(crate) fn hold_value(&self, text_len: usize, offset: usize) -> Result<(), DecodeError> {
        hold(text_len, self.value_bytes, Limit::ValueBytes, offset)
    }

    /// Refuses more tags than the limit.
    #[inline]
    pub(crate) fn hold_tags(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        hold(count, self.tags, Limit::Tags, offset)
    }

    /// Refuses more values of a tag than the limit.
    #[inline]
    pub(crate) fn hold_tag_values(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        hold(count, self.tag_values, Limit::TagValues, offset)
    }

    /// Refuses more events than the limit.
    #[inline]
    pub(crate) fn hold_events(&self, count: usize, offset: usize) -> Result<(), DecodeError> {
        hold(count, self.events, Limit::Events, offset)
    }
}

#[inline]
fn hold(count: usize, most: usize, limit: Limit, offset: usize) -> Result<(), DecodeError> {
    if count > most { Err(DecodeError::new(offset, Reason::Limit(limit))) } else { Ok(()) }
}

/// The kind that `value` is, if it is one.
#[inline]
pub(crate) fn kind(value: u64, offset: usize) -> Result<u16, DecodeError> {
    u16::try_from(value).map_err(|_| DecodeError::new(offset, Reason::Range(Field::Kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_carries_all_64_bits_and_no_more() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX >> 1, u64::MAX] {
            let mut bytes = Vec::new();
            write_varint(value, &mut bytes);
            assert_eq!(bytes.len(), varint_len(value), "{value}");
            let mut input = Input::new(&bytes);
            assert_eq!(input.varint(), Ok(value));
            assert_eq!(input.end(), Ok(()));
            for len in 0..bytes.len() {
                let fault = Input::new(&bytes[..len]).varint().unwrap_err();
                assert_eq!(fault.reason, Reason::Truncated);
            }
        }
        let reason = |bytes| Input::new(bytes).varint().unwrap_err().reason;
        assert_eq!(reason(&[0x80, 0]), Reason::NotMinimal);
        assert_eq!(reason(&[0xff; 10]), Reason::Expected("an integer of 64 bits"));
    }

    #[test]
    fn a_count_is_held_against_its_limit_and_against_what_is_left() {
        let count = |bytes| Input::new(bytes).count(2, Limit::Tags, 3);
        assert_eq!(count(&[2, 0, 0, 0, 0]), Ok(2));
        assert_eq!(count(&[2, 0, 0, 0]).unwrap_err().reason, Reason::Truncated);
        assert_eq!(count(&[4, 0, 0, 0, 0]).unwrap_err().reason, Reason::Limit(Limit::Tags));
    }
}
