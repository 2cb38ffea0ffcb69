//! Heads of values, versions, kinds and zigzag integers.

use nostr::canonical::ControlChars;
use nostr::input::{self, Input, write_varint};
use nostr::{DecodeError, Reason};

/// The form of a value, and its length in bytes or its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Text(usize),
    /// The bytes of digits: at least one, but not 32.
    Hex(usize),
    Key,
    WithRuns,
    /// The number of a string in the table.
    Word(u8),
    KnownKey(usize),
    KnownValue(usize),
}

impl Head {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Text(len) if len < MIN_LONG_TEXT => out.push(len as u8),
            Self::Text(len) => write_long(LONG_TEXT, len - MIN_LONG_TEXT, out),
            Self::Hex(len) if len < MIN_LONG_HEX => out.push(HEX + (len - 1) as u8),
            Self::Hex(len) => write_long(LONG_HEX, len - MIN_LONG_HEX, out),
            Self::Key => out.push(KEY),
            Self::WithRuns => out.push(WITH_RUNS),
            Self::Word(number) => out.push(WORD + number),
            Self::KnownKey(number) => write_known(KNOWN_KEY, number, out),
            Self::KnownValue(number) => write_known(KNOWN_VALUE, number, out),
        }
    }

    #[inline]
    pub(super) fn read(input: &mut Input<'_>) -> Result<Self, DecodeError> {
        let start = *input;
        Ok(match input.byte()? {
            byte @ ..HEX => Self::Text(byte.into()),
            byte @ HEX..KEY => Self::Hex(usize::from(byte - HEX) + 1),
            KEY => Self::Key,
            LONG_HEX => match read_long(input, MIN_LONG_HEX)? {
                KEY_BYTES => return Err(start.error(Reason::NotCanonical(KEY_AS_HEX))),
                len => Self::Hex(len),
            },
            LONG_TEXT => Self::Text(read_long(input, MIN_LONG_TEXT)?),
            WITH_RUNS => Self::WithRuns,
            byte @ WORD..KNOWN_KEY => Self::Word(byte - WORD),
            byte @ KNOWN_KEY..KNOWN_VALUE => Self::KnownKey(read_known(byte, input)?),
            byte @ KNOWN_VALUE.. => Self::KnownValue(read_known(byte, input)?),
            _ => return Err(start.error(Reason::Expected("the head of a value"))),
        })
    }
}

fn write_long(head: u8, more: usize, out: &mut Vec<u8>) {
    out.push(head);
    write_varint(more as u64, out);
}

/// Reads a length that is stored minus `min`. A length beyond `usize` saturates and fails as too long.
fn read_long(input: &mut Input<'_>, min: usize) -> Result<usize, DecodeError> {
    let more = usize::try_from(input.varint()?).unwrap_or(usize::MAX);
    Ok(more.saturating_add(min))
}

fn write_known(head: u8, number: usize, out: &mut Vec<u8>) {
    match number.checked_sub(NEAR) {
        None => out.extend_from_slice(&[head + (number >> 8) as u8, number as u8]),
        Some(far) => out.extend_from_slice(&[
            head + FAR_HEAD + (far >> 16) as u8,
            (far >> 8) as u8,
            far as u8,
        ]),
    }
}

fn read_known(head: u8, input: &mut Input<'_>) -> Result<usize, DecodeError> {
    let high = usize::from(head & 0x1f);
    let low = usize::from(input.byte()?);
    match high.checked_sub(FAR_HEAD.into()) {
        None => Ok(high << 8 | low),
        Some(high) => Ok(NEAR + (high << 16 | low << 8 | usize::from(input.byte()?))),
    }
}

/// Reads the version, which must be `expected`.
pub(super) fn read_version(input: &mut Input<'_>, expected: u8) -> Result<(), DecodeError> {
    match input.byte()? {
        found if found == expected => Ok(()),
        found => Err(DecodeError::new(0, Reason::Version(found.into()))),
    }
}

/// Appends a kind and the form of the control characters whose hash is the id.
#[inline]
pub(super) fn write_kind(kind: u16, id_form: ControlChars, out: &mut Vec<u8>) {
    let flag = if id_form == ControlChars::Escaped { ESCAPED_ID } else { 0 };
    write_varint(u64::from(kind) | flag, out);
}

/// Reads the bytes that [`write_kind`] appends.
#[inline]
pub(super) fn read_kind(input: &mut Input<'_>) -> Result<(u16, ControlChars), DecodeError> {
    let offset = input.offset();
    let value = input.varint()?;
    let id_form =
        if value & ESCAPED_ID == 0 { ControlChars::Verbatim } else { ControlChars::Escaped };
    Ok((input::kind(value & !ESCAPED_ID, offset)?, id_form))
}

pub(super) fn to_zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

pub(super) fn from_zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Version of a single event.
pub(super) const VERSION: u8 = 0x01;

/// Version of a batch.
pub(super) const BATCH_VERSION: u8 = 0x81;

/// Added to the kind of an event whose id is the hash of the form with escaped control characters.
const ESCAPED_ID: u64 = 1 << 16;

/// Maximum number of keys, and of short values, that have a number.
pub(super) const MAX_NUMBERS: usize = NEAR + (8 << 16);

/// Numbers below this take one byte after the head, others two.
const NEAR: usize = 24 << 8;
const FAR_HEAD: u8 = 24;

/// Length of a key in bytes.
pub(super) const KEY_BYTES: usize = 32;

const MIN_LONG_TEXT: usize = HEX as usize;
const MIN_LONG_HEX: usize = 17;

const HEX: u8 = 0x60;
const KEY: u8 = 0x70;
const LONG_HEX: u8 = 0x71;
const LONG_TEXT: u8 = 0x72;
const WITH_RUNS: u8 = 0x73;
const WORD: u8 = 0x80;
const KNOWN_KEY: u8 = 0xc0;
const KNOWN_VALUE: u8 = 0xe0;

const KEY_AS_HEX: &str = "32 bytes must be stored as a key";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_head_round_trips_and_no_truncation_is_accepted() {
        let lens = [1, 15, 16, 17, 31, 33, 95, 96, 97, 223, 224, 70_000];
        let numbers = [0, 1, 255, 256, NEAR - 1, NEAR, NEAR + 1, NEAR + 65_536, MAX_NUMBERS - 1];
        let heads = [Head::Text(0), Head::Key, Head::WithRuns, Head::Word(0), Head::Word(40)];
        let heads = heads
            .into_iter()
            .chain(lens.into_iter().flat_map(|len| [Head::Text(len), Head::Hex(len)]));
        let heads = heads.chain(
            numbers
                .into_iter()
                .flat_map(|number| [Head::KnownKey(number), Head::KnownValue(number)]),
        );
        for head in heads {
            let mut bytes = Vec::new();
            head.write(&mut bytes);
            let mut input = Input::new(&bytes);
            assert_eq!((Head::read(&mut input), input.end()), (Ok(head), Ok(())), "{bytes:x?}");
            assert!(Head::read(&mut Input::new(&bytes[..bytes.len() - 1])).is_err());
        }
    }

    #[test]
    fn a_kind_and_the_form_of_the_id_round_trip_and_larger_integers_are_rejected() {
        for kind in [0, 1, 127, 128, u16::MAX] {
            for id_form in [ControlChars::Verbatim, ControlChars::Escaped] {
                let mut bytes = Vec::new();
                write_kind(kind, id_form, &mut bytes);
                assert_eq!(read_kind(&mut Input::new(&bytes)), Ok((kind, id_form)));
            }
        }
        let mut bytes = Vec::new();
        write_varint(1 << 17, &mut bytes);
        let error = read_kind(&mut Input::new(&bytes)).unwrap_err();
        assert_eq!(error.reason, Reason::Range(nostr::Field::Kind));
    }

    #[test]
    fn every_short_input_is_rejected_or_encodes_to_itself() {
        for first in 0..=255u8 {
            for second in 0..=255u8 {
                let bytes = [first, second, 1];
                let mut input = Input::new(&bytes);
                let Ok(head) = Head::read(&mut input) else { continue };
                let mut again = Vec::new();
                head.write(&mut again);
                assert_eq!(again, bytes[..input.offset()], "{head:?}");
            }
        }
    }
}
