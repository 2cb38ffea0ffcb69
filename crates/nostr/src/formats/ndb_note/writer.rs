//! How does an event become a note?

use super::*;
use crate::{Field, Value};

/// Appends the note, or a part of it before the error.
pub(super) fn write(event: &Event<'_>, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    EncodeError::at_most("tags", event.tags.len(), MAX_COUNT)?;
    let mut places = 0;
    for tag in event.tags {
        EncodeError::at_most("values of a tag", tag.len(), MAX_COUNT)?;
        places += 2 + 4 * tag.len();
    }
    let pool = HEADER_BYTES + places;
    EncodeError::at_most("bytes before the pool", pool, u32::MAX as usize)?;
    let start = out.len();
    out.reserve(pool + 40 * places / 4 + event.content.len());
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
    // Where in `out` the pool starts, and where the next count or string goes before it.
    pool: usize,
    next: usize,
}

impl Writer<'_> {
    fn strings(&mut self, event: &Event<'_>, start: usize) -> Result<(), EncodeError> {
        let mut content = None;
        for tag in event.tags {
            self.place(&(tag.len() as u16).to_le_bytes());
            for value in *tag {
                let string = self.value(value)?;
                if matches!(value, Value::Text(text) if *text == event.content) {
                    content = content.or(Some(string).filter(|string| string[3] != IS_ID));
                }
                self.place(&string);
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
    fn place(&mut self, bytes: &[u8]) {
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
                EncodeError::at_most("zeros in a value", zeros, 0)?;
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

    /// The string that starts where the pool ends now.
    #[inline]
    fn offset(&self, flag: u8) -> Result<[u8; 4], EncodeError> {
        let offset = self.out.len() - self.pool;
        EncodeError::at_most("bytes of the pool", offset, MAX_POOL)?;
        let [low, middle, high, _] = (offset as u32).to_le_bytes();
        Ok([low, middle, high, flag])
    }
}

const ID_DIGITS: usize = 64;
const MAX_COUNT: usize = u16::MAX as usize;
const MAX_POOL: usize = (1 << 24) - 1;
