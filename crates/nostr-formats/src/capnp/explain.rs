//! The meaning of the bytes of a message: its segments, structs, lists and the pointers between them.

use super::envelope::FIXED_DATA_BYTES;
use crate::explain::{Note, Parts, Visit, little_endian};
use nostr::{DecodeError, Reason};

/// Explains a message that was decoded before, by the schema or as the envelope.
pub(super) fn event(bytes: &[u8], is_envelope: bool, visit: Visit<'_>) -> Result<(), DecodeError> {
    let mut message = Message::new(bytes)?;
    let root = message.pointer(Place { segment: 0, word: 0 }, "")?;
    if is_envelope {
        message.envelope(root)?
    } else {
        message.schema(root)?
    }
    message.parts.visit(visit);
    Ok(())
}

/// A message: its parts, and where the words of every segment begin.
struct Message<'a> {
    parts: Parts<'a>,
    /// Offset of the first byte of every segment.
    segments: Vec<usize>,
}

/// A word of a segment.
#[derive(Clone, Copy)]
struct Place {
    segment: usize,
    word: usize,
}

/// The target of a pointer.
#[derive(Clone, Copy)]
enum Target {
    Nothing,
    /// A struct: its place, its data words and its pointers.
    Struct {
        place: Place,
        data: usize,
        pointers: usize,
    },
    /// A list: its place, the code of the size of its items, and their number.
    List {
        place: Place,
        size: u64,
        count: usize,
    },
}

impl<'a> Message<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut parts = Parts::new(bytes);
        let count = little_endian(parts.get(0, 4)?) as usize + 1;
        parts.layout(0, 4, "", format!("{count} segments"))?;
        parts.get(4, 4 * count)?;
        let table = (4 + 4 * count).next_multiple_of(8);
        let (mut segments, mut start) = (Vec::new(), table);
        for segment in 0..count {
            let at = 4 + 4 * segment;
            let words = little_endian(parts.get(at, 4)?) as usize;
            parts.layout(at, 4, "", format!("segment {segment}: {words} words"))?;
            segments.push(start);
            start += 8 * words;
        }
        parts.layout(4 + 4 * count, table - 4 - 4 * count, "", "zero")?;
        Ok(Self { parts, segments })
    }

    /// Offset of the first byte of a word.
    fn offset(&self, Place { segment, word }: Place) -> Result<usize, DecodeError> {
        let start = self.segments.get(segment).copied();
        let start = start.ok_or_else(|| DecodeError::new(0, Reason::Truncated))?;
        Ok(start.saturating_add(word.saturating_mul(8)))
    }

    fn word(&self, place: Place) -> Result<u64, DecodeError> {
        Ok(little_endian(self.parts.get(self.offset(place)?, 8)?))
    }

    fn layout(&mut self, place: Place, field: &str, words: &str) -> Result<(), DecodeError> {
        self.parts.layout(self.offset(place)?, 8, field, words).map(drop)
    }

    /// Explains the pointer at a place, through other segments.
    fn pointer(&mut self, place: Place, field: &str) -> Result<Target, DecodeError> {
        let word = self.word(place)?;
        if word & 3 != FAR {
            return self.near(place, word, beside(place, word), field);
        }
        self.layout(place, field, "pointer to another segment")?;
        let pad = far_place(word);
        let landing = self.word(pad)?;
        if word & 4 == 0 {
            return self.near(pad, landing, beside(pad, landing), field);
        }
        self.layout(pad, field, "pointer to another segment")?;
        let tag = Place { word: pad.word + 1, ..pad };
        self.near(tag, self.word(tag)?, far_place(landing), field)
    }

    /// Explains the pointer `word` at a place, which leads to `target`.
    fn near(
        &mut self,
        place: Place,
        word: u64,
        target: Place,
        field: &str,
    ) -> Result<Target, DecodeError> {
        if word == 0 {
            self.layout(place, field, "null pointer")?;
            return Ok(Target::Nothing);
        }
        let at = self.offset(target)?;
        match word & 3 {
            STRUCT => {
                let (data, pointers) = struct_size(word);
                let words =
                    format!("pointer to a struct at byte {at}: {data} words, {pointers} pointers");
                self.layout(place, field, &words)?;
                Ok(Target::Struct { place: target, data, pointers })
            }
            LIST => {
                let (size, count) = (word >> 32 & 7, (word >> 35) as usize);
                let what = if size == COMPOSITE { "words" } else { "items" };
                self.layout(
                    place,
                    field,
                    &format!("pointer to a list at byte {at}: {count} {what}"),
                )?;
                Ok(Target::List { place: target, size, count })
            }
            _ => {
                self.layout(place, field, "pointer")?;
                Ok(Target::Nothing)
            }
        }
    }

    fn envelope(&mut self, root: Target) -> Result<(), DecodeError> {
        let Target::Struct { place, data, pointers } = root else { return Ok(()) };
        if let Some((start, FIXED_DATA_BYTES)) = self.field(place, data, pointers, 0, "")? {
            for (at, len, field) in [(0, 32, "id"), (32, 32, "pubkey"), (64, 64, "sig")] {
                self.parts.add(start + at, len, field, Note::Hex)?;
            }
            self.parts.integer(start + 128, 8, "created_at")?;
            self.parts.integer(start + 136, 2, "kind")?;
        }
        if let Some((start, _)) = self.field(place, data, pointers, 1, "tags")? {
            self.tag_data(start)?;
        }
        if let Some((start, len)) = self.field(place, data, pointers, 2, "content")? {
            self.text(start, len, "content")?;
        }
        Ok(())
    }

    /// Explains the blob of tags.
    fn tag_data(&mut self, mut at: usize) -> Result<(), DecodeError> {
        let parts = &mut self.parts;
        let tags = little_endian(parts.get(at, 2)?);
        parts.layout(at, 2, "tags", format!("{tags} tags"))?;
        at += 2;
        for tag in 0..tags {
            let tag = format!("tags[{tag}]");
            let values = parts.get(at, 1)?[0];
            parts.layout(at, 1, &tag, format!("{values} values"))?;
            at += 1;
            for value in 0..values {
                let (value, head) = (format!("{tag}[{value}]"), little_endian(parts.get(at, 2)?));
                let (is_hex, len) = (head >> 15 == 1, (head & 0x7fff) as usize);
                parts.layout(at, 2, &value, crate::explain::stored(is_hex, len))?;
                parts.add(at + 2, len, &value, if is_hex { Note::Hex } else { Note::Text })?;
                at += 2 + len;
            }
        }
        Ok(())
    }

    fn schema(&mut self, root: Target) -> Result<(), DecodeError> {
        let Target::Struct { place, data, pointers } = root else { return Ok(()) };
        let start = self.offset(place)?;
        if data > 0 {
            self.parts.integer(start, 8, "created_at")?;
        }
        if data > 1 {
            self.parts.integer(start + 8, 2, "kind")?;
            self.parts.layout(start + 10, 6, "", "zero")?;
        }
        for (pointer, field) in [(0, "id"), (1, "pubkey"), (4, "sig")] {
            if let Some((start, len)) = self.field(place, data, pointers, pointer, field)? {
                self.parts.add(start, len, field, Note::Hex)?;
            }
        }
        if let Some((start, len)) = self.field(place, data, pointers, 3, "content")? {
            self.text(start, len, "content")?;
        }
        if pointers <= 2 {
            return Ok(());
        }
        let tags = Place { word: place.word + data + 2, ..place };
        let Target::List { place, size: POINTERS, count } = self.pointer(tags, "tags")? else {
            return Ok(());
        };
        for tag in 0..count {
            let at = Place { word: place.word + tag, ..place };
            let field = format!("tags[{tag}]");
            let values = self.pointer(at, &field)?;
            self.values(values, &field)?;
        }
        Ok(())
    }

    /// Explains the list of values of a tag.
    fn values(&mut self, list: Target, tag: &str) -> Result<(), DecodeError> {
        let Target::List { place, size: COMPOSITE, .. } = list else { return Ok(()) };
        let head = self.word(place)?;
        let (count, (data, pointers)) = ((head as u32 >> 2) as usize, struct_size(head));
        let words = format!("{count} structs: {data} words, {pointers} pointers each");
        self.layout(place, tag, &words)?;
        for value in 0..count {
            let word = place.word + 1 + value * (data + pointers);
            let (place, field) = (Place { word, ..place }, format!("{tag}[{value}]"));
            if data == 0 {
                continue;
            }
            let start = self.offset(place)?;
            let is_hex = little_endian(self.parts.get(start, 2)?) == 1;
            let what = if is_hex { "bytes of digits" } else { "text" };
            self.parts.layout(start, 8, &field, what)?;
            if let Some((start, len)) = self.field(place, data, pointers, 0, &field)? {
                if is_hex {
                    self.parts.add(start, len, &field, Note::Hex).map(drop)?
                } else {
                    self.text(start, len, &field)?
                }
            }
        }
        Ok(())
    }

    /// Explains the pointer of a field that is a list of bytes; returns their offset and number.
    fn field(
        &mut self,
        place: Place,
        data: usize,
        pointers: usize,
        pointer: usize,
        field: &str,
    ) -> Result<Option<(usize, usize)>, DecodeError> {
        if pointer >= pointers {
            return Ok(None);
        }
        let at = Place { word: place.word + data + pointer, ..place };
        match self.pointer(at, field)? {
            Target::List { place, size: BYTES, count } => Ok(Some((self.offset(place)?, count))),
            _ => Ok(None),
        }
    }

    /// Explains text, whose last byte is zero.
    fn text(&mut self, start: usize, len: usize, field: &str) -> Result<(), DecodeError> {
        let Some(text) = len.checked_sub(1) else { return Ok(()) };
        self.parts.add(start, text, field, Note::Text)?;
        self.parts.layout(start + text, 1, field, "zero").map(drop)
    }
}

/// The target of a pointer in the same segment.
fn beside(place: Place, word: u64) -> Place {
    let distance = (word as u32 as i32 >> 2) as isize;
    Place { word: (place.word + 1).wrapping_add_signed(distance), ..place }
}

/// The target of a pointer to another segment.
fn far_place(word: u64) -> Place {
    Place { segment: (word >> 32) as usize, word: (word as u32 >> 3) as usize }
}

/// Words of data and number of pointers of a struct.
fn struct_size(word: u64) -> (usize, usize) {
    ((word >> 32 & 0xffff) as usize, (word >> 48) as usize)
}

/// Kinds of pointers.
const STRUCT: u64 = 0;
const LIST: u64 = 1;
const FAR: u64 = 2;

/// Codes of sizes of items.
const BYTES: u64 = 2;
const POINTERS: u64 = 6;
const COMPOSITE: u64 = 7;
