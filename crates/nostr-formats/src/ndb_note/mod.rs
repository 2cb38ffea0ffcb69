//! The note of nostrdb, as that database stores it. Hand-written.
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 1 | version, 1 |
//! | 1 | 3 | zero |
//! | 4, 36, 68 | 32, 32, 64 | `id`, `pubkey`, `sig` |
//! | 132 | 8 | `created_at`, without sign |
//! | 140 | 4 | `kind` |
//! | 144 | 4 | length of the content in bytes |
//! | 148 | 4 | content, a string |
//! | 152 | 4 | offset of the string pool |
//! | 156 | 2 | zero |
//! | 158 | 2 | number of tags |
//! | 160 | … | per tag: number of values in 2 bytes, then the values, strings |
//! | … | … | string pool: texts, and ids of 32 bytes, all followed by a zero byte |
//! | … | 0–7 | zero bytes, up to a multiple of 8 |
//!
//! | last byte of a string | first three bytes |
//! |---|---|
//! | 1 | up to two bytes of text, then a zero byte; a third one is written as zero, and not looked at |
//! | 0 | offset of the text in the pool |
//! | 2 | offset of an id in the pool, for text of 64 lower-case digits |
//!
//! All integers are little-endian. The encoder puts the values into the pool in order and the content after them,
//! or shares the string of the first value equal to the content. A string ends with a zero byte and cannot
//! contain one, so values with NUL are rejected, as are times before 1970 and pools over 16 MiB. nostrdb itself
//! also compacts upper-case digits and so loses their case; this encoder does not. The decoder accepts strings
//! that share bytes of the pool, but reads at most sixteen times the length of the note. A batch is framed.

mod explain;
mod reader;
#[cfg(test)]
mod tests;

use bumpalo::Bump;

use super::codec::{Codec, or_truncate};
use super::explain::Visit;
use super::fields::ReadFields;
use nostr::{DecodeError, EncodeError, Event, Field, Limits, Reason, Value, input};

/// The codec.
#[derive(Clone, Copy, Debug)]
pub struct NdbNote;

impl Codec for NdbNote {
    type Fields<'a> = Fields<'a>;

    fn encode(self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        or_truncate(out, |out| write(event, out))
    }

    fn decode<'a>(
        self,
        bytes: &'a [u8],
        arena: &'a Bump,
        limits: &Limits,
    ) -> Result<Event<'a>, DecodeError> {
        reader::event(bytes, arena, limits)
    }

    fn explain(self, bytes: &[u8], visit: Visit<'_>) -> Result<(), DecodeError> {
        explain::event(bytes, visit)
    }

    #[inline]
    fn fields<'a>(
        self,
        bytes: &'a [u8],
        _: &'a Bump,
        _: &Limits,
    ) -> Result<Fields<'a>, DecodeError> {
        Fields::new(bytes)
    }
}

/// The fields of the header, which is complete.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    // At least HEADER_BYTES.
    note: &'a [u8],
}

impl<'a> Fields<'a> {
    #[inline]
    fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.len() < HEADER_BYTES {
            return Err(DecodeError::new(bytes.len(), Reason::Truncated));
        }
        match bytes[..ID] {
            [VERSION, 0, 0, 0] => Ok(Self { note: bytes }),
            [VERSION, ..] => Err(DecodeError::new(1, NOT_ZERO)),
            _ => Err(DecodeError::new(0, Reason::Version(bytes[0].into()))),
        }
    }

    /// The id.
    #[inline]
    pub fn id(&self) -> &'a [u8; 32] {
        self.at(ID)
    }

    /// The signature.
    #[inline]
    pub fn sig(&self) -> &'a [u8; 64] {
        self.at(SIG)
    }

    #[inline]
    fn at<const N: usize>(&self, start: usize) -> &'a [u8; N] {
        self.note[start..].first_chunk().expect("the header is complete")
    }

    #[inline]
    fn u32(&self, start: usize) -> u32 {
        u32::from_le_bytes(*self.at(start))
    }
}

impl ReadFields for Fields<'_> {
    #[inline]
    fn pubkey(&self) -> Result<[u8; 32], DecodeError> {
        Ok(*self.at(PUBKEY))
    }

    #[inline]
    fn created_at(&self) -> Result<i64, DecodeError> {
        let out_of_range = |_| DecodeError::new(CREATED_AT, Reason::Range(Field::CreatedAt));
        u64::from_le_bytes(*self.at(CREATED_AT)).try_into().map_err(out_of_range)
    }

    #[inline]
    fn kind(&self) -> Result<u16, DecodeError> {
        input::kind(self.u32(KIND).into(), KIND)
    }
}

/// Appends the note; on an error, part of it.
fn write(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    EncodeError::at_most("tags", event.tags.len(), MAX_COUNT)?;
    let mut entry_bytes = 0;
    for tag in event.tags {
        EncodeError::at_most("values in a tag", tag.len(), MAX_COUNT)?;
        entry_bytes += 2 + 4 * tag.len();
    }
    let pool = HEADER_BYTES + entry_bytes;
    EncodeError::at_most("bytes before the pool", pool, u32::MAX as usize)?;
    let start = out.len();
    out.reserve(pool + 10 * entry_bytes + event.content.len());
    write_header(event, pool as u32, out)?;
    out.resize(start + pool, 0);
    Writer { pool: start + pool, next: start + HEADER_BYTES, out }.strings(event, start)?;
    out.resize(start + (out.len() - start).next_multiple_of(8), 0);
    Ok(())
}

fn write_header(event: &Event<'_>, pool: u32, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let past = EncodeError::Range { field: Field::CreatedAt, value: event.created_at };
    let created_at = u64::try_from(event.created_at).map_err(|_| past)?;
    EncodeError::at_most("bytes of content", event.content.len(), u32::MAX as usize)?;
    out.extend_from_slice(&[VERSION, 0, 0, 0]);
    out.extend_from_slice(&event.id);
    out.extend_from_slice(&event.pubkey);
    out.extend_from_slice(&event.sig);
    out.extend_from_slice(&created_at.to_le_bytes());
    out.extend_from_slice(&u32::from(event.kind).to_le_bytes());
    out.extend_from_slice(&(event.content.len() as u32).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&pool.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&(event.tags.len() as u16).to_le_bytes());
    Ok(())
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    // Offset in `out` of the pool.
    pool: usize,
    // Offset in `out` of the next count or string, before the pool.
    next: usize,
}

impl Writer<'_> {
    fn strings(&mut self, event: &Event<'_>, start: usize) -> Result<(), EncodeError> {
        let mut content = None;
        for tag in event.tags {
            self.put(&(tag.len() as u16).to_le_bytes());
            for value in *tag {
                let string = self.value(value)?;
                if matches!(value, Value::Text(text) if *text == event.content) {
                    content = content.or(Some(string).filter(|string| string[3] != IS_ID));
                }
                self.put(&string);
            }
        }
        let string = match content {
            Some(string) => string,
            None => self.text(event.content.as_bytes())?,
        };
        self.out[start + CONTENT..start + POOL].copy_from_slice(&string);
        Ok(())
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.next..self.next + bytes.len()].copy_from_slice(bytes);
        self.next += bytes.len();
    }

    #[inline]
    fn value(&mut self, value: &Value<'_>) -> Result<[u8; 4], EncodeError> {
        if value.text_len() == ID_DIGITS && value.hex_len(ID_DIGITS).is_some() {
            let string = self.offset(IS_ID)?;
            value.write_hex_bytes(self.out);
            self.out.push(0);
            return Ok(string);
        }
        match value {
            Value::Text(text) => {
                let zeros = text.bytes().filter(|byte| *byte == 0).count();
                EncodeError::at_most("NUL bytes in a value", zeros, 0)?;
                self.text(text.as_bytes())
            }
            Value::Hex(_) => self.text(value.to_text().as_bytes()),
        }
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> Result<[u8; 4], EncodeError> {
        match *text {
            [] => Ok([0, 0, 0, INLINE]),
            [one] => Ok([one, 0, 0, INLINE]),
            [one, two] => Ok([one, two, 0, INLINE]),
            _ => {
                let string = self.offset(IN_POOL)?;
                self.out.extend_from_slice(text);
                self.out.push(0);
                Ok(string)
            }
        }
    }

    /// A string that starts at the current end of the pool.
    #[inline]
    fn offset(&self, flag: u8) -> Result<[u8; 4], EncodeError> {
        let offset = self.out.len() - self.pool;
        EncodeError::at_most("bytes of strings", offset, MAX_POOL)?;
        let [low, middle, high, _] = (offset as u32).to_le_bytes();
        Ok([low, middle, high, flag])
    }
}

const VERSION: u8 = 1;

/// Offsets of the fields of the header.
const ID: usize = 4;
const PUBKEY: usize = 36;
const SIG: usize = 68;
const CREATED_AT: usize = 132;
const KIND: usize = 140;
const CONTENT_LEN: usize = 144;
const CONTENT: usize = 148;
const POOL: usize = 152;
const TAGS: usize = 156;
const HEADER_BYTES: usize = 160;

/// Last byte of a string.
const IN_POOL: u8 = 0;
const INLINE: u8 = 1;
const IS_ID: u8 = 2;

const NOT_ZERO: Reason = Reason::NotCanonical("a reserved byte is not zero");

const ID_DIGITS: usize = 64;
const MAX_COUNT: usize = u16::MAX as usize;
const MAX_POOL: usize = (1 << 24) - 1;
