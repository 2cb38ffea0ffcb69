//! The bytes of messages: ranges, bounds and numbers.

use super::Item;
use crate::input::Input;
use crate::{DecodeError, Reason};

/// Half of a SHA-256 over the ids of a side in a range.
pub(super) type Fingerprint = [u8; 16];

/// The ids of a side in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range<'m> {
    Skip,
    Fingerprint(Fingerprint),
    Ids(&'m [[u8; 32]]),
}

/// The end of a range: the items before it are in the range.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// `u64::MAX` for no end.
    created_at: u64,
    /// The prefix of an id, and zeros.
    id: [u8; 32],
    /// Length of the prefix in bytes, at most 32.
    len: usize,
}

impl Bound {
    pub(super) const INFINITE: Self = Self { created_at: u64::MAX, id: [0; 32], len: 0 };

    /// The bound before this item.
    pub(super) fn of(item: &Item) -> Self {
        Self { created_at: item.created_at, id: item.id, len: 32 }
    }

    /// The shortest bound after one item and not after the next one.
    pub(super) fn between(before: &Item, next: &Item) -> Self {
        let is_same_time = before.created_at == next.created_at;
        let shared = || before.id.iter().zip(&next.id).take_while(|(a, b)| a == b).count();
        let len = if is_same_time { shared() + 1 } else { 0 };
        let mut id = [0; 32];
        id[..len].copy_from_slice(&next.id[..len]);
        Self { created_at: next.created_at, id, len }
    }

    pub(super) fn is_after(&self, item: &Item) -> bool {
        self.created_at == u64::MAX || (item.created_at, &item.id) < (self.created_at, &self.id)
    }
}

/// Reads the ranges of a message.
pub(super) struct RangeReader<'m> {
    input: Input<'m>,
    last: Bound,
}

impl<'m> RangeReader<'m> {
    pub(super) fn new(message: &'m [u8]) -> Result<Self, DecodeError> {
        let mut input = Input::new(message);
        match input.byte()? {
            VERSION => Ok(Self { input, last: Bound { created_at: 0, id: [0; 32], len: 0 } }),
            other => Err(DecodeError::new(0, Reason::Version(other.into()))),
        }
    }

    /// The next range and its end; `None` at the end of the message.
    pub(super) fn next_range(&mut self) -> Result<Option<(Bound, Range<'m>)>, DecodeError> {
        if self.input.rest().is_empty() {
            return Ok(None);
        }
        let bound = self.bound()?;
        let start = self.input;
        let range = match varint(&mut self.input)? {
            0 => Range::Skip,
            1 => Range::Fingerprint(*self.input.array()?),
            2 => Range::Ids(self.ids()?),
            _ => return Err(start.error(Reason::Expected("mode 0, 1 or 2"))),
        };
        Ok(Some((bound, range)))
    }

    fn bound(&mut self) -> Result<Bound, DecodeError> {
        let start = self.input;
        let created_at = match varint(&mut self.input)? {
            0 => u64::MAX,
            difference => self.last.created_at.saturating_add(difference - 1),
        };
        let at = self.input;
        let len = usize::try_from(varint(&mut self.input)?).unwrap_or(usize::MAX);
        if len > 32 {
            return Err(at.error(Reason::Expected("a prefix of up to 32 bytes")));
        }
        let mut id = [0; 32];
        id[..len].copy_from_slice(self.input.take(len)?);
        let bound = Bound { created_at, id, len };
        if (bound.created_at, bound.id) < (self.last.created_at, self.last.id) {
            return Err(start.error(Reason::Expected("a bound after the one before")));
        }
        self.last = bound;
        Ok(bound)
    }

    fn ids(&mut self) -> Result<&'m [[u8; 32]], DecodeError> {
        let count = usize::try_from(varint(&mut self.input)?).unwrap_or(usize::MAX);
        let bytes = self.input.take(count.saturating_mul(32))?;
        Ok(bytes.as_chunks().0)
    }
}

/// Writes the ranges of a message. Ranges without content are left out at the end, and joined before others.
pub(super) struct RangeWriter {
    bytes: Vec<u8>,
    last_created_at: u64,
    /// The end of ranges that are not written yet.
    skipped: Option<Bound>,
}

impl RangeWriter {
    pub(super) fn new() -> Self {
        Self { bytes: vec![VERSION], last_created_at: 0, skipped: None }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn skip(&mut self, bound: Bound) {
        self.skipped = Some(bound);
    }

    pub(super) fn fingerprint(&mut self, bound: Bound, fingerprint: Fingerprint) {
        self.start(bound, 1);
        self.bytes.extend_from_slice(&fingerprint);
    }

    pub(super) fn ids<'i>(
        &mut self,
        bound: Bound,
        ids: impl ExactSizeIterator<Item = &'i [u8; 32]>,
    ) {
        self.start(bound, 2);
        write_varint(ids.len() as u64, &mut self.bytes);
        ids.for_each(|id| self.bytes.extend_from_slice(id));
    }

    /// Writes the range of all that was not answered.
    pub(super) fn rest(&mut self, fingerprint: Fingerprint) {
        self.fingerprint(Bound::INFINITE, fingerprint);
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn start(&mut self, bound: Bound, mode: u8) {
        if let Some(skipped) = self.skipped.take() {
            self.bound(skipped);
            self.bytes.push(0);
        }
        self.bound(bound);
        self.bytes.push(mode);
    }

    fn bound(&mut self, Bound { created_at, id, len }: Bound) {
        let number = match created_at {
            u64::MAX => 0,
            _ => created_at - self.last_created_at + 1,
        };
        self.last_created_at = created_at;
        write_varint(number, &mut self.bytes);
        write_varint(len as u64, &mut self.bytes);
        self.bytes.extend_from_slice(&id[..len]);
    }
}

/// Reads a number of 7 bits a byte, the most significant first.
fn varint(input: &mut Input<'_>) -> Result<u64, DecodeError> {
    let (start, mut value) = (*input, 0_u64);
    loop {
        let byte = input.byte()?;
        if value > u64::MAX >> 7 {
            return Err(start.error(Reason::Expected("an integer of 64 bits")));
        }
        if value == 0 && byte == 0x80 {
            return Err(start.error(Reason::NotMinimal));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
}

/// Appends a number of 7 bits a byte, the most significant first.
pub(super) fn write_varint(value: u64, out: &mut Vec<u8>) {
    let digits = (64 - (value | 1).leading_zeros()).div_ceil(7);
    for digit in (0..digits).rev() {
        let bits = (value >> (7 * digit)) as u8 & 0x7f;
        out.push(if digit > 0 { bits | 0x80 } else { bits });
    }
}

/// The version of the protocol.
const VERSION: u8 = 0x61;
