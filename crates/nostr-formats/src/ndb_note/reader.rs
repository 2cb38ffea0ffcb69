//! Decoding of a note.

use std::ffi::CStr;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use kernels::utf8;

use super::{
    CONTENT, CONTENT_LEN, Fields, HEADER_BYTES, IN_POOL, INLINE, IS_ID, NOT_ZERO, POOL, TAGS,
};
use crate::fields::ReadFields;
use nostr::input::Input;
use nostr::limits::Budget;
use nostr::{DecodeError, Event, Field, Limits, Reason, Tag, Value};

/// Decodes `bytes`, which must be exactly one note.
pub(super) fn event<'a>(
    bytes: &'a [u8],
    arena: &'a Bump,
    limits: &Limits,
) -> Result<Event<'a>, DecodeError> {
    let fields = Fields::new(bytes)?;
    if !bytes.len().is_multiple_of(8) {
        return Err(DecodeError::new(bytes.len(), Reason::Expected("a multiple of 8 bytes")));
    }
    let mut pool = Pool::new(&fields)?;
    let tags = tags(bytes, &mut pool, arena, &Budget::new(bytes.len(), limits))?;
    let content = pool.content(&fields, limits)?;
    pool.end()?;
    Ok(Event {
        id: *fields.id(),
        pubkey: fields.pubkey()?,
        created_at: fields.created_at()?,
        kind: fields.kind()?,
        tags,
        content,
        sig: *fields.sig(),
    })
}

fn tags<'a>(
    bytes: &'a [u8],
    pool: &mut Pool<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<&'a [Tag<'a>], DecodeError> {
    let mut input = Input::new(&bytes[..pool.start]);
    input.take(TAGS)?;
    if *input.array()? != [0; 2] {
        return Err(DecodeError::new(TAGS, NOT_ZERO));
    }
    let count = usize::from(u16::from_le_bytes(*input.array()?));
    limits.check_tags(count, TAGS + 2)?;
    if 2 * count > input.rest().len() {
        return Err(input.error(Reason::Truncated));
    }
    let mut tags = BumpVec::with_capacity_in(count, arena);
    for _ in 0..count {
        tags.push(tag(&mut input, pool, arena, limits)?);
    }
    input.end()?;
    Ok(tags.into_bump_slice())
}

#[inline]
fn tag<'a>(
    input: &mut Input<'a>,
    pool: &mut Pool<'a>,
    arena: &'a Bump,
    limits: &Budget<'_>,
) -> Result<Tag<'a>, DecodeError> {
    let start = input.offset();
    let count = usize::from(u16::from_le_bytes(*input.array()?));
    limits.check_tag_values(count, start)?;
    if 4 * count > input.rest().len() {
        return Err(input.error(Reason::Truncated));
    }
    let mut values = BumpVec::with_capacity_in(count, arena);
    for _ in 0..count {
        let start = input.offset();
        let value = pool.value(input.array()?, start)?;
        limits.check_value(value.text_len(), start)?;
        values.push(value);
    }
    Ok(values.into_bump_slice())
}

/// The string pool of a note.
struct Pool<'a> {
    bytes: &'a [u8],
    /// Offset of the pool in the note.
    start: usize,
    /// End of the last string that was read, as an offset in the pool.
    end: usize,
    /// Number of bytes that may still be read.
    left: usize,
}

impl<'a> Pool<'a> {
    fn new(fields: &Fields<'a>) -> Result<Self, DecodeError> {
        let (note, start) = (fields.note, fields.u32(POOL) as usize);
        let outside = || DecodeError::new(POOL, Reason::Expected("a pool in the note"));
        let bytes = note.get(start..).filter(|_| start >= HEADER_BYTES).ok_or_else(outside)?;
        Ok(Self { bytes, start, end: 0, left: MAX_READ_RATIO * note.len() })
    }

    #[inline]
    fn value(&mut self, string: &'a [u8; 4], at: usize) -> Result<Value<'a>, DecodeError> {
        match string[3] {
            IN_POOL => {
                let bytes = self.until_zero(offset(string))?;
                Ok(Value::Text(self.text(bytes, self.start + offset(string))?))
            }
            INLINE => Ok(Value::Text(self.text(inline(string, at)?, at)?)),
            IS_ID => Ok(Value::Hex(self.with_zero(offset(string), 32)?)),
            _ => Err(DecodeError::new(at, KIND_OF_STRING)),
        }
    }

    fn content(&mut self, fields: &Fields<'a>, limits: &Limits) -> Result<&'a str, DecodeError> {
        let len = fields.u32(CONTENT_LEN) as usize;
        limits.check_content(len, CONTENT_LEN)?;
        let string: &[u8; 4] = fields.at(CONTENT);
        let wrong_len = || DecodeError::new(CONTENT_LEN, Reason::Length(Field::Content));
        match string[3] {
            IN_POOL => {
                let bytes = self.with_zero(offset(string), len)?;
                self.text(bytes, self.start + offset(string))
            }
            INLINE if len <= 2 && string[len] == 0 => self.text(&string[..len], CONTENT),
            INLINE => Err(wrong_len()),
            _ => Err(DecodeError::new(CONTENT, KIND_OF_STRING)),
        }
    }

    #[inline]
    fn text(&self, bytes: &'a [u8], at: usize) -> Result<&'a str, DecodeError> {
        utf8::from_utf8(bytes).ok_or_else(|| DecodeError::new(at, Reason::Utf8))
    }

    /// The bytes of the pool from `start` to the next zero byte.
    #[inline]
    fn until_zero(&mut self, start: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        match CStr::from_bytes_until_nul(rest) {
            Ok(text) => self.with_zero(start, text.count_bytes()),
            Err(_) => Err(self.truncated()),
        }
    }

    /// The `len` bytes of the pool from `start`, which a zero byte must follow.
    #[inline]
    fn with_zero(&mut self, start: usize, len: usize) -> Result<&'a [u8], DecodeError> {
        let end = start + len;
        let Some((zero, bytes)) = self.bytes.get(start..=end).and_then(<[u8]>::split_last) else {
            return Err(self.truncated());
        };
        if *zero != 0 {
            return Err(DecodeError::new(
                self.start + end,
                Reason::Expected("a zero byte after a string"),
            ));
        }
        let Some(left) = self.left.checked_sub(len) else {
            return Err(DecodeError::new(self.start + start, SHARED_TOO_OFTEN));
        };
        self.left = left;
        self.end = self.end.max(end + 1);
        Ok(bytes)
    }

    /// Checks that only the padding of the note follows the last string.
    fn end(&self) -> Result<(), DecodeError> {
        let padding = &self.bytes[self.end..];
        if padding.len() < 8 && padding.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        Err(DecodeError::new(self.start + self.end, Reason::TrailingBytes))
    }

    #[cold]
    fn truncated(&self) -> DecodeError {
        DecodeError::new(self.start + self.bytes.len(), Reason::Truncated)
    }
}

#[inline]
fn offset(string: &[u8; 4]) -> usize {
    u32::from_le_bytes([string[0], string[1], string[2], 0]) as usize
}

/// The text in a string. nostrdb does not set the byte after the zero that ends it.
#[inline]
fn inline(string: &[u8; 4], at: usize) -> Result<&[u8], DecodeError> {
    match string {
        [0, 0, _, _] => Ok(&[]),
        [_, 0, _, _] => Ok(&string[..1]),
        [first, _, 0, _] if *first != 0 => Ok(&string[..2]),
        _ => Err(DecodeError::new(at, Reason::Expected("two bytes of text and a zero byte"))),
    }
}

const KIND_OF_STRING: Reason = Reason::Expected("a string of a known kind");
const SHARED_TOO_OFTEN: Reason = Reason::Expected("strings that share fewer bytes");

/// Maximum total length of the strings read, as a multiple of the length of the note. Equal strings may share
/// bytes, but an untrusted sender must not make the decoder read the same bytes without end.
const MAX_READ_RATIO: usize = 16;
