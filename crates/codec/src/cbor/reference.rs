//! The definition of canonical DAG-CBOR in plain code, against which the scanner's fast paths are tested.
//! Slow on purpose; compiled in tests only.

use super::error::{DecodeError, Reason};
use super::{ItemCounts, MAX_DEPTH};
use crate::cid::CidRef;

/// Checks an input that must be one canonical item, and counts its items.
pub(super) fn check(input: &[u8]) -> Result<ItemCounts, DecodeError> {
    let mut checker = Checker { input, at: 0, counts: ItemCounts::default() };
    checker.item(0, 0)?;
    if checker.at < input.len() {
        return checker.fail(checker.at, Reason::TrailingBytes);
    }
    Ok(checker.counts)
}

struct Checker<'a> {
    input: &'a [u8],
    at: usize,
    counts: ItemCounts,
}

impl<'a> Checker<'a> {
    fn fail<T>(&self, offset: usize, reason: Reason) -> Result<T, DecodeError> {
        Err(DecodeError { offset, reason })
    }

    /// Major type and number of the head at the current offset.
    fn head(&mut self) -> Result<(u8, u64), DecodeError> {
        let start = self.at;
        let Some(byte) = self.input.get(start) else {
            return self.fail(start, Reason::Truncated);
        };
        let low = byte & 0x1f;
        let width = match low {
            0..24 => 0,
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            31 => return self.fail(start, Reason::IndefiniteLength),
            _ => return self.fail(start, Reason::ReservedHead),
        };
        let Some(bytes) = self.input.get(start + 1..start + 1 + width) else {
            return self.fail(start, Reason::Truncated);
        };
        let number = bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let shortest = match number {
            0..24 => 0,
            24..0x100 => 1,
            0x100..0x1_0000 => 2,
            0x1_0000..0x1_0000_0000 => 4,
            _ => 8,
        };
        if width == 0 {
            self.at = start + 1;
            return Ok((byte >> 5, u64::from(low)));
        }
        if width != shortest {
            return self.fail(start, Reason::NotMinimal);
        }
        self.at = start + 1 + width;
        Ok((byte >> 5, number))
    }

    fn content(&mut self, start: usize, len: u64) -> Result<&'a [u8], DecodeError> {
        let left = self.input.len() - self.at;
        if len > left as u64 {
            return self.fail(start, Reason::LengthBeyondInput);
        }
        let content = &self.input[self.at..self.at + len as usize];
        self.at += len as usize;
        Ok(content)
    }

    fn text(&mut self, start: usize, len: u64) -> Result<&'a str, DecodeError> {
        let content = self.content(start, len)?;
        std::str::from_utf8(content).or_else(|_| self.fail(start, Reason::NotUtf8))
    }

    /// One item inside `depth` containers, which need `reserved` bytes after it.
    fn item(&mut self, depth: u32, reserved: usize) -> Result<(), DecodeError> {
        let start = self.at;
        if self.input.get(start).is_some_and(|byte| byte >> 5 == 7) {
            return self.simple();
        }
        let (kind, number) = self.head()?;
        match kind {
            0 | 1 => self.counts.integers += 1,
            2 => self.counts.byte_string_bytes += self.content(start, number)?.len() as u64,
            3 => self.counts.text_bytes += self.text(start, number)?.len() as u64,
            4 => self.array(start, number, depth, reserved)?,
            5 => self.map(start, number, depth, reserved)?,
            _ => self.link(start, number)?,
        }
        Ok(())
    }

    fn simple(&mut self) -> Result<(), DecodeError> {
        let start = self.at;
        self.at += 1;
        match self.input[start] {
            0xf4 | 0xf5 => self.counts.booleans += 1,
            0xf6 => self.counts.nulls += 1,
            0xfb => {
                let Some(bytes) = self.input.get(self.at..self.at + 8) else {
                    return self.fail(start, Reason::Truncated);
                };
                let float = f64::from_be_bytes(bytes.try_into().expect("eight bytes"));
                if float.is_nan()
                    || float.is_infinite()
                    || (float == 0.0 && float.is_sign_negative())
                {
                    return self.fail(start, Reason::FloatValue);
                }
                self.at += 8;
                self.counts.floats += 1;
            }
            0xf9 | 0xfa => return self.fail(start, Reason::FloatWidth),
            0xff => return self.fail(start, Reason::IndefiniteLength),
            0xfc..=0xfe => return self.fail(start, Reason::ReservedHead),
            _ => return self.fail(start, Reason::Simple),
        }
        Ok(())
    }

    fn enter(
        &self,
        start: usize,
        count: u64,
        bytes_each: usize,
        depth: u32,
        reserved: usize,
    ) -> Result<usize, DecodeError> {
        if depth == MAX_DEPTH {
            return self.fail(start, Reason::Depth);
        }
        let left = (self.input.len() - self.at).saturating_sub(reserved);
        if count > (left / bytes_each) as u64 {
            return self.fail(start, Reason::LengthBeyondInput);
        }
        Ok(count as usize)
    }

    fn array(
        &mut self,
        start: usize,
        count: u64,
        depth: u32,
        reserved: usize,
    ) -> Result<(), DecodeError> {
        let count = self.enter(start, count, 1, depth, reserved)?;
        self.counts.arrays += 1;
        self.counts.array_items += count as u64;
        (0..count).try_for_each(|at| self.item(depth + 1, reserved + count - 1 - at))
    }

    fn map(
        &mut self,
        start: usize,
        count: u64,
        depth: u32,
        reserved: usize,
    ) -> Result<(), DecodeError> {
        let count = self.enter(start, count, 2, depth, reserved)?;
        self.counts.maps += 1;
        self.counts.map_entries += count as u64;
        let mut before: Option<&str> = None;
        for at in 0..count {
            let start = self.at;
            let (kind, len) = self.key_head()?;
            if kind != 3 {
                return self.fail(start, Reason::KeyNotText);
            }
            let key = self.text(start, len)?;
            if let Some(before) = before {
                match (before.len(), before).cmp(&(key.len(), key)) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => return self.fail(start, Reason::DuplicateKey),
                    std::cmp::Ordering::Greater => return self.fail(start, Reason::KeyOrder),
                }
            }
            before = Some(key);
            self.counts.text_bytes += key.len() as u64;
            self.item(depth + 1, reserved + 2 * (count - 1 - at))?;
        }
        Ok(())
    }

    /// A key's head: a simple value or float in place of a key is reported as not text.
    fn key_head(&mut self) -> Result<(u8, u64), DecodeError> {
        let start = self.at;
        match self.input.get(start) {
            Some(byte) if byte >> 5 == 7 => self.fail(start, Reason::KeyNotText),
            _ => self.head(),
        }
    }

    fn link(&mut self, start: usize, tag: u64) -> Result<(), DecodeError> {
        if tag != 42 {
            return self.fail(start, Reason::Tag);
        }
        if self.input.get(self.at).is_none_or(|byte| byte >> 5 != 2) {
            return self.fail(start, Reason::Link);
        }
        let inner = self.at;
        let (_, len) = self.head()?;
        match self.content(inner, len)? {
            [0, cid @ ..] if CidRef::from_bytes(cid).is_some() => {
                self.counts.links += 1;
                Ok(())
            }
            _ => self.fail(start, Reason::Link),
        }
    }
}
