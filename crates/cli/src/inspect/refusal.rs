//! A broken rule, its offset, and a dump of the bytes around it.

use std::fmt;
use std::io;

use atproto::corpus::CorpusError;
use atproto::event::FrameError;
use codec::CidRef;
use codec::car::{CarError, CarFault};
use codec::cbor::DecodeError;

/// A broken rule and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BrokenInput {
    /// The part of the input, such as one frame of many; empty for the whole.
    part: String,
    /// Bytes from the start of the input.
    offset: usize,
    rule: String,
}

impl BrokenInput {
    pub(super) fn new(offset: usize, rule: impl ToString) -> Self {
        Self { part: String::new(), offset, rule: rule.to_string() }
    }

    /// The same refusal, of the part of the input that starts at `start`.
    pub(super) fn inside(self, part: String, start: usize) -> Self {
        Self { part, offset: start + self.offset, rule: self.rule }
    }

    /// A block of an archive whose data, from `start` on, is not canonical.
    pub(super) fn of_block(cid: CidRef<'_>, error: DecodeError, start: usize) -> Self {
        Self::from(error).inside(format!("block {cid}"), start)
    }

    /// A canonical value without a JSON form.
    pub(super) fn no_json(error: &impl fmt::Display) -> Self {
        Self::new(0, format_args!("no JSON form: {error}"))
    }

    /// The bytes around the offset: the offset of the first in hexadecimal, up to 16 bytes before, the
    /// byte at the offset in brackets, and up to 16 after it.
    pub(super) fn bytes_around(&self, bytes: &[u8]) -> String {
        let at = self.offset.min(bytes.len());
        let start = at.saturating_sub(AROUND);
        let end = bytes.len().min(at + 1 + AROUND);
        let before: String = bytes[start..at].iter().map(|byte| format!("{byte:02x} ")).collect();
        let marked = bytes.get(at).map_or("end".to_owned(), |byte| format!("{byte:02x}"));
        let after: String =
            bytes[end.min(at + 1)..end].iter().map(|byte| format!(" {byte:02x}")).collect();
        format!("  {start:08x}  {before}[{marked}]{after}")
    }
}

impl fmt::Display for BrokenInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.part.is_empty() {
            write!(f, "{}, ", self.part)?;
        }
        write!(f, "at byte {}: {}", self.offset, self.rule)
    }
}

impl From<DecodeError> for BrokenInput {
    fn from(error: DecodeError) -> Self {
        Self::new(error.offset, error.reason)
    }
}

impl From<nostr::DecodeError> for BrokenInput {
    fn from(error: nostr::DecodeError) -> Self {
        Self::new(error.offset, error.reason)
    }
}

impl From<FrameError> for BrokenInput {
    fn from(error: FrameError) -> Self {
        Self::new(error.offset, error.fault)
    }
}

impl From<CarError> for BrokenInput {
    fn from(error: CarError) -> Self {
        let offset = usize::try_from(error.offset).expect("an offset inside a slice");
        match error.fault {
            CarFault::Header(inner) => {
                Self::new(offset + inner.offset, format_args!("the header: {}", inner.reason))
            }
            fault => Self::new(offset, fault),
        }
    }
}

impl From<CorpusError> for BrokenInput {
    fn from(error: CorpusError) -> Self {
        match error {
            CorpusError::NoCount => Self::new(0, error),
            CorpusError::Truncated { offset, index, count } => {
                Self::new(offset, format_args!("the file ends inside frame {index} of {count}"))
            }
            CorpusError::TrailingBytes(offset) => Self::new(offset, "bytes follow the last frame"),
        }
    }
}

/// Why inspection ended.
#[derive(Debug)]
pub(super) enum InspectError {
    /// The input breaks a rule.
    Refused(BrokenInput),
    /// Standard output failed.
    Output(io::Error),
}

impl From<io::Error> for InspectError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<BrokenInput> for InspectError {
    fn from(refusal: BrokenInput) -> Self {
        Self::Refused(refusal)
    }
}

/// Bytes shown on both sides of the offset.
const AROUND: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_at_the_offset_is_marked_among_its_neighbours() {
        let bytes: Vec<u8> = (0..64).collect();
        let line = BrokenInput::new(20, "").bytes_around(&bytes);
        assert!(line.starts_with("  00000004  04 05 ") && line.contains(" 13 [14] 15 "), "{line}");
        assert!(line.ends_with(" 24"), "{line}");
    }

    #[test]
    fn an_offset_at_either_end_shows_the_bytes_there_are() {
        assert_eq!(BrokenInput::new(0, "").bytes_around(b"\x01\x02"), "  00000000  [01] 02");
        assert_eq!(BrokenInput::new(2, "").bytes_around(b"\x01\x02"), "  00000000  01 02 [end]");
        assert_eq!(BrokenInput::new(0, "").bytes_around(b""), "  00000000  [end]");
    }
}
